"""Filters of the CloudEvents Subscriptions API: what they match, and what is refused and where."""

import json
from typing import Any

import pytest
from amounts import often
from cloudevents_documents import documents, filters, single_events
from hypothesis import given
from hypothesis import strategies as st

from branchline.routing.codes import Code
from branchline.routing.evaluate import evaluate
from branchline.routing.expression import And, Anything, Expression, IsTrue, Matches, Not, Or, Reading
from branchline.routing.limits import FILTER_MAX_DEPTH
from branchline.routing.patterns import ending, exactly, starting
from branchline.routing.spellings import cesql
from branchline.routing.spellings.cloudevents import read
from branchline.routing.spellings.errors import FilterError, place
from branchline.routing.values import JsonValue


def is_exactly(name: str, text: str) -> Matches:
    return Matches((name,), exactly(text), Reading.CANONICAL)


A, B, C = is_exactly("a", "1"), is_exactly("b", "2"), is_exactly("c", "3")
JSON_A, JSON_B, JSON_C = '{"exact": {"a": "1"}}', '{"exact": {"b": "2"}}', '{"exact": {"c": "3"}}'


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("[]", Anything()),
        (JSON_A, A),
        (f"[{JSON_A}]", A),
        (f"[{JSON_A}, {JSON_B}]", And((A, B))),
        ('{"exact": {"a": "1", "b": "2"}}', And((A, B))),
        ('{"prefix": {"a.b": "x"}}', Matches(("a.b",), starting("x"), Reading.CANONICAL)),
        ('{"suffix": {"a": "x"}}', Matches(("a",), ending("x"), Reading.CANONICAL)),
        (f'{{"all": [{JSON_A}]}}', A),
        (f'{{"all": [{JSON_A}, {{"all": [{JSON_B}, {JSON_C}]}}]}}', And((A, B, C))),
        (f'[{{"all": [{JSON_A}, {JSON_B}]}}, {JSON_C}]', And((A, B, C))),
        (f'{{"any": [{JSON_A}, {{"any": [{JSON_B}, {JSON_C}]}}]}}', Or((A, B, C))),
        (f'{{"any": [{JSON_A}, {{"all": [{JSON_B}, {JSON_C}]}}]}}', Or((A, And((B, C))))),
        (f'{{"not": {JSON_A}}}', Not(IsTrue(A))),
        (f'{{"not": {{"not": {JSON_A}}}}}', Not(IsTrue(Not(IsTrue(A))))),
        ('{"\\u0065xact": {"\\u0061": "\\u0031"}}', A),
    ],
)
def test_reads(text: str, expression: Expression) -> None:
    """Each dialect gives the one tree that stands for it; AND and OR within their like are flat."""
    assert read(text) == expression


ORDER = {"type": "order.created", "n": 5, "f": 2.0, "yes": True, "none": None, "tags": ["x", "yz"], "o": {}}


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("[]", True),
        ('{"exact": {"type": "order.created"}}', True),
        ('{"exact": {"type": "Order.created"}}', False),
        ('{"exact": {"type": "order"}}', False),
        ('{"prefix": {"type": "order."}}', True),
        ('{"suffix": {"type": ".created"}}', True),
        ('{"suffix": {"type": ".Created"}}', False),
        ('{"exact": {"n": "5", "f": "2", "yes": "true"}}', True),
        ('{"exact": {"n": "5.0"}}', False),
        ('{"exact": {"n": "5", "f": "3"}}', False),
        ('{"exact": {"missing": "x"}}', False),
        ('{"not": {"exact": {"missing": "x"}}}', True),
        ('{"exact": {"none": "null"}}', False),
        ('{"not": {"exact": {"none": "null"}}}', True),
        ('{"not": {"prefix": {"o": "x"}}}', True),
        ('{"not": {"not": {"exact": {"missing": "x"}}}}', False),
        ('{"any": [{"exact": {"missing": "x"}}, {"exact": {"n": "5"}}]}', True),
        ('{"all": [{"exact": {"missing": "x"}}, {"exact": {"n": "5"}}]}', False),
        ('[{"exact": {"n": "5"}}, {"exact": {"n": "6"}}]', False),
        ('{"exact": {"tags": "x"}}', True),
        ('[{"exact": {"tags": "x"}}, {"suffix": {"tags": "z"}}]', False),
        ('{"exact": {"a.b": "x"}}', False),
    ],
)
def test_matches(text: str, verdict: bool) -> None:
    """All named attributes must match, by canonical text; what is missing does not, so `not` of it does."""
    assert evaluate(read(text), ORDER) is verdict  # type: ignore[arg-type]


def nested(dialect: str, times: int) -> str:
    opening, closing = ('{"not": ', "}") if dialect == "not" else (f'{{"{dialect}": [', "]}")
    return opening * times + JSON_A + closing * times


@pytest.mark.parametrize(
    ("marked", "code", "reason"),
    [
        ("¦", Code.FILTER_SYNTAX, "the filter is empty; write [] to get every event"),
        (
            '¦"x"',
            Code.FILTER_TYPE,
            'expected a filter such as {"exact": {"type": "order"}}, found the text "x"',
        ),
        ("¦null", Code.FILTER_TYPE, "found null"),
        ("[\n  ¦5]", Code.FILTER_TYPE, "found the number 5"),
        ("[¦[]]", Code.FILTER_TYPE, "found an array"),
        ("¦{}", Code.FILTER_SYNTAX, "needs a dialect, one of exact, prefix, suffix, all, any, not, sql"),
        ('{¦"like": {"a": "x"}}', Code.FILTER_SYNTAX, 'unknown dialect "like"; known: exact, prefix'),
        ('{"not": {¦"like": {"a": "x"}}}', Code.FILTER_SYNTAX, 'unknown dialect "like"'),
        ('{"all": [{¦"like": {"a": "x"}}]}', Code.FILTER_SYNTAX, 'unknown dialect "like"'),
        ('{"exact": {"a": "x"}, ¦"like": 1}', Code.FILTER_SYNTAX, 'unknown dialect "like"'),
        (
            '{"exact": {"a": "x"},\n ¦"prefix": {"a": "x"}}',
            Code.FILTER_SYNTAX,
            'prefix comes after exact; join two with "all"',
        ),
        (
            '{"exact": ¦"x"}',
            Code.FILTER_TYPE,
            'exact needs an object such as {"type": "order"}, found the text',
        ),
        ('{"exact": ¦{}}', Code.FILTER_SYNTAX, "exact needs at least one attribute"),
        ('{"prefix": {¦"": "x"}}', Code.FILTER_SYNTAX, "an attribute's name is empty"),
        ('{"suffix": {"a": ¦""}}', Code.FILTER_SYNTAX, "suffix needs a text that is not empty"),
        (
            '{"exact": {"a": "1", "b": ¦5}}',
            Code.FILTER_TYPE,
            "exact compares with text, found the number 5; in",
        ),
        ('{"exact": {"a": ¦true}}', Code.FILTER_TYPE, "found true; in double quotes"),
        ('{"exact": {"a": ¦null}}', Code.FILTER_TYPE, "found null"),
        ('{"exact": {"a": ¦["x"]}}', Code.FILTER_TYPE, "found an array"),
        ('{"all": ¦[]}', Code.FILTER_SYNTAX, "all needs at least one filter"),
        ('{"any": ¦{}}', Code.FILTER_TYPE, "any needs an array of filters, found an object"),
        ('{"not": ¦[]}', Code.FILTER_TYPE, "found an array"),
        ('{"not": ¦{}}', Code.FILTER_SYNTAX, "a filter needs a dialect"),
        ('{"sql": ¦5}', Code.FILTER_TYPE, "sql needs a CESQL expression as text, found the number 5"),
        (
            nested("not", 9).replace('{"not"', '{¦"not"', 9).replace("¦", "", 8),
            Code.FILTER_TOO_DEEP,
            "least 9",
        ),
        (nested("all", 9).replace('{"all"', '{¦"all"', 9).replace("¦", "", 8), Code.FILTER_TOO_DEEP, "is 8"),
    ],
)
def test_refuses_at_the_place(marked: str, code: Code, reason: str) -> None:
    """What is no filter is refused with its code, where it stands (before the mark)."""
    text = marked.replace("¦", "")
    with pytest.raises(FilterError) as refused:
        read(text)
    error = refused.value
    assert (error.rejection.code, error.line, error.column) == (code, *place(text, marked.index("¦")))
    assert reason in error.rejection.reason


@pytest.mark.parametrize("dialect", ["not", "all", "any"])
def test_reads_up_to_the_depth_limit(dialect: str) -> None:
    """As many levels as the limit allows are read, and one more is not."""
    read(nested(dialect, FILTER_MAX_DEPTH))
    with pytest.raises(FilterError):
        read(nested(dialect, FILTER_MAX_DEPTH + 1))


def test_sql_is_cesql() -> None:
    """The sql dialect reads its text as CESQL, also where it is negated."""
    text = "type = 'order'"
    assert read(json.dumps({"sql": text})) == cesql.read(text)
    assert read(json.dumps({"not": {"sql": text}})) == Not(IsTrue(cesql.read(text)))


@pytest.mark.parametrize("inner", ["", "type = ", "type =\n = 'order'"])
def test_a_fault_in_cesql_is_placed_at_its_text(inner: str) -> None:
    """What CESQL refuses has its code, the place of the JSON text, and the place within it in the reason."""
    with pytest.raises(FilterError) as refused:
        cesql.read(inner)
    theirs = refused.value
    with pytest.raises(FilterError) as refused:
        read('[{"sql":\n  ' + json.dumps(inner) + "}]")
    ours = refused.value
    assert (ours.rejection.code, ours.line, ours.column) == (theirs.rejection.code, 2, 3)
    assert ours.rejection.reason == (
        f"in the CESQL text at line {theirs.line}, column {theirs.column}: {theirs.rejection.reason}"
    )


def oracle(document: Any, event: dict[str, Any]) -> bool:
    """The filter's verdict on an event without arrays, straight from its JSON."""
    if isinstance(document, list):
        return all(oracle(one, event) for one in document)
    ((dialect, content),) = document.items()
    match dialect:
        case "all":
            return all(oracle(one, event) for one in content)
        case "any":
            return any(oracle(one, event) for one in content)
        case "not":
            return not oracle(content, event)
    return all(fits(dialect, event.get(name), text) for name, text in content.items())


def fits(dialect: str, value: Any, wanted: str) -> bool:
    if value is None or isinstance(value, dict):
        return False
    if not isinstance(value, str):
        value = json.dumps(int(value) if isinstance(value, float) and value == int(value) else value)
    return bool(
        value == wanted
        if dialect == "exact"
        else value[: len(wanted)] == wanted
        if dialect == "prefix"
        else value[max(0, len(value) - len(wanted)) :] == wanted
    )


@often
@given(documents, single_events)
def test_agrees_with_matching_straight_from_the_json(made: Any, event: dict[str, JsonValue]) -> None:
    """The tree's verdict is that of a plain two-valued matcher over the JSON itself."""
    assert evaluate(read(json.dumps(made)), event) is oracle(made, event)


@given(documents, single_events)
def test_spacing_order_and_escapes_mean_nothing(made: Any, event: dict[str, JsonValue]) -> None:
    """However the same JSON is spaced, ordered and escaped, its verdict is the same."""
    plain = evaluate(read(json.dumps(made)), event)
    for indent in (None, 3):
        assert evaluate(read(json.dumps(made, indent=indent, ensure_ascii=False)), event) is plain
        assert evaluate(read(json.dumps(reordered(made), indent=indent)), event) is plain
    assert evaluate(read(escaped(json.dumps(made))), event) is plain


def reordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: reordered(below) for name, below in reversed(value.items())}
    return [reordered(one) for one in reversed(value)] if isinstance(value, list) else value


def escaped(text: str) -> str:
    """JSON with every letter a written as an escape."""
    return text.replace("a", "\\u0061")


@given(st.data())
def test_whatever_is_refused_has_a_place_in_the_text(data: st.DataObject) -> None:
    """JSON of about the right shape is read, or refused with a place in the text, and nothing else."""
    words = st.sampled_from(("exact", "prefix", "all", "any", "not", "sql", "", "a", "a = 1", "TRUE"))
    shapes = st.recursive(
        words | st.sampled_from((None, True, 5)),
        lambda smaller: st.lists(smaller, max_size=3) | st.dictionaries(words, smaller, max_size=2),
        max_leaves=6,
    )
    text = json.dumps(data.draw(shapes | filters), indent=data.draw(st.sampled_from((None, 1))))
    at = data.draw(st.integers(0, len(text)))
    text = text[:at] + data.draw(st.sampled_from(("", *'{}[]":,\\u0-.eE\n'))) + text[at + 1 :]
    try:
        read(text)
    except FilterError as error:
        lines = text.split("\n")
        assert 1 <= error.line <= len(lines)
        assert 1 <= error.column <= len(lines[error.line - 1]) + 1
