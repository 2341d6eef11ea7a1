"""Reading a filter's JSON: what is refused and where, that both scans agree, and that it is quick."""

import json
import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from branchline.routing import limits
from branchline.routing.codes import Code
from branchline.routing.expression import Anything, Expression
from branchline.routing.limits import FILTER_MAX_JSON_DEPTH
from branchline.routing.spellings.errors import FilterError, place
from branchline.routing.spellings.json_places import JsonPath, check_json, find_place
from branchline.routing.spellings.json_text import Misfit, read_json
from branchline.routing.values import JsonValue

LONGEST = limits.NAME_MAX_BYTES


def document(text: str) -> JsonValue:
    """The document that a spelling would get to see."""
    seen: list[JsonValue] = []

    def build(value: JsonValue) -> Expression:
        seen.append(value)
        return Anything()

    read_json(text, build, "write something")
    return seen[0]


def refusal(text: str) -> FilterError:
    with pytest.raises(FilterError) as refused:
        document(text)
    return refused.value


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
)
names = st.text('ab\\"\n\u00e9\U0001d11e', max_size=3)
documents = st.recursive(
    scalars,
    lambda smaller: st.lists(smaller, max_size=4) | st.dictionaries(names, smaller, max_size=4),
    max_leaves=12,
)
spaces = st.sampled_from(("", " ", "\n", "\t ", "\r\n"))
written = st.builds(
    lambda value, indent, ascii_only, before, after: (
        before + json.dumps(value, indent=indent, ensure_ascii=ascii_only) + after
    ),
    documents,
    st.sampled_from((None, 0, 2)),
    st.booleans(),
    spaces,
    spaces,
)
jsonish = st.text('{}[]":,\\ \n\t0123456789.eE+-truefalsnNaIiy/\x00\ud7ff\u00a0bx', max_size=40)


@st.composite
def damaged(draw: st.DrawFn, texts: st.SearchStrategy[str] = written) -> str:
    """JSON with a few characters lost, doubled or put in."""
    text = draw(texts)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        gone = draw(st.integers(0, 2))
        text = text[:at] + draw(st.sampled_from(("", *'{}[]":,\\u0-.eE\n'))) + text[at + gone :]
    return text


@pytest.mark.parametrize(
    ("marked", "code", "reason"),
    [
        ("{¦'a': 1}", Code.FILTER_SYNTAX, "expected a name in double quotes or }, found '"),
        ("{¦a: 1}", Code.FILTER_SYNTAX, "expected a name in double quotes or }, found a"),
        ("[¦'a']", Code.FILTER_SYNTAX, "found '; text stands in double quotes"),
        ("[¦abc]", Code.FILTER_SYNTAX, "found abc; text stands in double quotes"),
        ("[¦True]", Code.FILTER_SYNTAX, "write true"),
        ("[¦NaN]", Code.FILTER_SYNTAX, "found NaN, which is not JSON"),
        ("[¦Infinity]", Code.FILTER_SYNTAX, "found Infinity, which is not JSON"),
        ("[¦-Infinity]", Code.FILTER_SYNTAX, "found -Infinity, which is not JSON"),
        ("[¦01]", Code.FILTER_SYNTAX, "found 01, which is no number in JSON"),
        ("[¦+1]", Code.FILTER_SYNTAX, "found +1, which is no number in JSON"),
        ("[¦.5]", Code.FILTER_SYNTAX, "found .5, which is no number in JSON"),
        ("[¦1.]", Code.FILTER_SYNTAX, "found 1., which is no number in JSON"),
        ("[¦0x1f]", Code.FILTER_SYNTAX, "found 0x1f, which is no number in JSON"),
        ("[¦1e999]", Code.FILTER_NUMBER, "1e999 is too large for a decimal number"),
        (f"[¦{'9' * 401}]", Code.FILTER_NUMBER, "the number has 401 characters; the limit is 400"),
        (f"[¦0.{'9' * 399}]", Code.FILTER_NUMBER, "the number has 401 characters; the limit is 400"),
        ('{"a": 1,\n ¦"a": 2}', Code.FILTER_SYNTAX, 'the name "a" stands twice in one object'),
        ('{"a": 1,\n ¦"\\u0061": 2}', Code.FILTER_SYNTAX, 'the name "a" stands twice in one object'),
        ('["¦\\ud800"]', Code.FILTER_SYNTAX, "half of a surrogate pair is not a character"),
        ('["x¦\\uDFFF"]', Code.FILTER_SYNTAX, "half of a surrogate pair is not a character"),
        ('["\\ud83d\\ude00¦\\ud83d\\u0041"]', Code.FILTER_SYNTAX, "half of a surrogate pair"),
        ('{"¦\\ud800": 1}', Code.FILTER_SYNTAX, "half of a surrogate pair is not a character"),
        ('["¦\ud800"]', Code.FILTER_SYNTAX, "half of a surrogate pair is not a character"),
        ('["a¦\tb"]', Code.FILTER_SYNTAX, r"the control character '\t' must be escaped"),
        ('["a\\n¦\nb"]', Code.FILTER_SYNTAX, r"the control character '\n' must be escaped"),
        ('["¦\x00"]', Code.FILTER_SYNTAX, r"the control character '\x00' must be escaped"),
        ('["¦\\x"]', Code.FILTER_SYNTAX, r"\x is no escape in JSON"),
        ('["¦\\u12g4"]', Code.FILTER_SYNTAX, "four hexadecimal digits"),
        ('[¦"abc', Code.FILTER_SYNTAX, "this text has no closing quote"),
        ('[¦"abc\\', Code.FILTER_SYNTAX, "this text has no closing quote"),
        ('[¦"abc\\"', Code.FILTER_SYNTAX, "this text has no closing quote"),
        ("[1¦}", Code.FILTER_SYNTAX, "expected a comma or ], found }"),
        ("[1,¦]", Code.FILTER_SYNTAX, "expected a value, found ]"),
        ("[1 ¦2]", Code.FILTER_SYNTAX, "expected a comma or ], found 2"),
        ('{"a"¦, 1}', Code.FILTER_SYNTAX, "expected a colon, found ,"),
        ('{"a": 1, ¦}', Code.FILTER_SYNTAX, "expected a name in double quotes, found }"),
        ('{"a": 1 ¦"b": 2}', Code.FILTER_SYNTAX, 'expected a comma or }, found "b"'),
        ('{"a": [1]¦  \n', Code.FILTER_SYNTAX, "the filter ends too early; expected a comma or }"),
        ("{} ¦{}", Code.FILTER_SYNTAX, "expected the end of the filter, found {"),
        ("1 ¦1", Code.FILTER_SYNTAX, "expected the end of the filter, found 1"),
        ("¦\ufeff{}", Code.FILTER_SYNTAX, r"found '\ufeff'"),
        ("[1,¦\u00a02]", Code.FILTER_SYNTAX, r"found '\xa0'"),
        ("¦ \n ", Code.FILTER_SYNTAX, "the filter is empty; write something"),
        (f'{{¦"{"n" * (LONGEST + 1)}": 1}}', Code.FILTER_NAME_TOO_LONG, "257 bytes; the limit is 256"),
        (f'{{¦"{"é" * (LONGEST // 2 + 1)}": 1}}', Code.FILTER_NAME_TOO_LONG, "258 bytes; the limit is 256"),
        (
            "[" * FILTER_MAX_JSON_DEPTH + "¦[",
            Code.FILTER_TOO_DEEP,
            f"{FILTER_MAX_JSON_DEPTH + 1} deep; the limit is {FILTER_MAX_JSON_DEPTH}",
        ),
        (
            '{"a":' * FILTER_MAX_JSON_DEPTH + "¦[",
            Code.FILTER_TOO_DEEP,
            f"the limit is {FILTER_MAX_JSON_DEPTH}",
        ),
        ("¦" + " " * 4097 + "[]", Code.FILTER_TOO_LONG, "4099 bytes; the limit is 4096"),
    ],
)
def test_refuses_at_the_place(marked: str, code: Code, reason: str) -> None:
    """What is not JSON within our limits is refused with its code, where it stands (before the mark)."""
    text = marked.replace("¦", "")
    if not text.strip() or len(text) > limits.FILTER_MAX_BYTES:
        where = (1, 1)
    else:
        where = place(text, marked.index("¦"))
    error = refusal(text)
    assert (error.rejection.code, error.line, error.column) == (code, *where)
    assert reason in error.rejection.reason


def test_the_first_fault_is_named() -> None:
    """Of several faults the one that stands first is reported, of whatever sort they are."""
    assert refusal('{"a": 1e999, "a": NaN, ').rejection.code is Code.FILTER_NUMBER
    assert refusal("[" * 4000 + "NaN").rejection.code is Code.FILTER_TOO_DEEP


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (
            ' \r\n\t{"\\u0064ata": ["\\ud83d\\ude00", "\\/", "\\\\ud800"]} \n',
            {"data": ["😀", "/", "\\ud800"]},
        ),
        ("9" * 400, int("9" * 400)),
        (
            "[" * FILTER_MAX_JSON_DEPTH + "]" * FILTER_MAX_JSON_DEPTH,
            json.loads("[" * FILTER_MAX_JSON_DEPTH + "]" * FILTER_MAX_JSON_DEPTH),
        ),
        (f"[{'[],' * 500}[]]", [[]] * 501),
        (f'{{"{"n" * LONGEST}": 1}}', {"n" * LONGEST: 1}),
        ('"[[[{{{"', "[[[{{{"),
        ('["\x7f\u2028"]', ["\x7f\u2028"]),
    ],
)
def test_reads_up_to_the_limits(text: str, value: JsonValue) -> None:
    """What is within the limits is read, also where a shorter look could take it for beyond them."""
    assert document(text) == value


def test_numbers_keep_their_type_and_zero_its_sign() -> None:
    """Integers are exact and of any size, other numbers are floats, and no zero is negative."""
    assert repr(document("[9007199254740993, 1.0, 1e2, -0.0, -0, -0e0]")) == (
        "[9007199254740993, 1.0, 100.0, 0.0, 0, 0.0]"
    )


@given(written)
def test_reads_what_the_standard_library_reads(text: str) -> None:
    """JSON within the limits is read as the standard library reads it, however it is spaced and escaped."""
    assert document(text) == json.loads(text)


@given(jsonish | damaged())
@example("[" * 4096)
@example('{"a":' * 800)
@example('"' * 4096)
@example("\\" * 4096)
@example('"' + "\\u" * 2000)
def test_both_scans_agree_and_name_a_place_in_the_text(text: str) -> None:
    """For any text: it is read, and the slow scan finds no fault; or refused with a place within it."""
    try:
        value = document(text)
    except FilterError as error:
        lines = text.split("\n")
        assert 1 <= error.line <= len(lines)
        assert 1 <= error.column <= len(lines[error.line - 1]) + 1
    else:
        assert value == json.loads(text)
        check_json(text)


def places(value: Any, path: JsonPath = ()) -> list[tuple[JsonPath, bool, Any]]:
    """Every path of the document with what stands there, and each name with itself."""
    found: list[tuple[JsonPath, bool, Any]] = [(path, False, value)]
    if isinstance(value, dict):
        for name, below in value.items():
            found += [((*path, name), True, name), *places(below, (*path, name))]
    if isinstance(value, list):
        for index, below in enumerate(value):
            found += places(below, (*path, index))
    return found


@given(written)
def test_finds_every_name_and_value(text: str) -> None:
    """At the offset found for a path stands the value at that path, or its name; and so for code points."""
    for path, of_name, value in places(json.loads(text)):
        start = find_place(text, path, of_name, None)
        assert json.JSONDecoder().raw_decode(text, start)[0] == value
        if isinstance(value, str):
            for within in range(len(value)):
                rest = find_place(text, path, of_name, within)
                assert json.JSONDecoder().raw_decode('"' + text[rest:])[0] == value[within:]


def test_a_misfit_becomes_an_error_at_its_place() -> None:
    """What a spelling raises for a path is reported at that path's place, without the misfit behind it."""

    def build(_: JsonValue) -> Expression:
        raise Misfit(Code.FILTER_TYPE, "no", ("a", 1), within=2)

    with pytest.raises(FilterError) as refused:
        read_json('{"a": [0,\n  "\\u0061b*"]}', build, "")
    error = refused.value
    assert (error.rejection.code, error.rejection.reason) == (Code.FILTER_TYPE, "no")
    assert (error.line, error.column) == (2, 11)
    assert error.__cause__ is None and error.__context__ is None


@pytest.mark.parametrize(
    "text", ["[" * 4096, '{"a":' * 819, '"' * 4096, '"' + "\\u" * 2000, "[0," * 1365, "-" * 4096, "1" * 4096]
)
def test_hostile_texts_are_refused_quickly(text: str) -> None:
    """Texts of the largest size that are all brackets, quotes or escapes cost no more than others."""
    started = time.process_time()
    for _ in range(10):
        refusal(text)
    assert time.process_time() - started < 1
