"""The naive evaluator does what the definition of filters says."""

import sqlite3
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

import pytest
import strategies as our
from hypothesis import assume, given
from hypothesis import strategies as st

from branchline.routing import limits
from branchline.routing.codes import Code, Rejection
from branchline.routing.evaluate import evaluate
from branchline.routing.expression import And, Comparison, Expression, IsNull, Not, Operator, Or, Path, paths
from branchline.routing.spellings.sql import read, write

MISSING = object()
TRUE, FALSE = read("one = 1"), read("one = 2")
UNKNOWN = read("missing = 1")
TERMS: dict[bool | None, Expression] = {True: TRUE, False: FALSE, None: UNKNOWN}


def truth(expression: Expression) -> bool | None:
    """The three-valued result, seen through the two-valued matcher: unknown stays unknown under NOT."""
    event = {"one": 1}
    if evaluate(expression, event):
        return True
    return False if evaluate(Not(expression), event) else None


def matches(text: str, event: dict[str, Any]) -> bool:
    result = evaluate(read(text), event)
    assert isinstance(result, bool)
    return result


@pytest.mark.parametrize(("one", "other"), list(product(TERMS, repeat=2)))
def test_and_or_follow_kleene(one: bool | None, other: bool | None) -> None:
    """AND is the least and OR the greatest of their terms, where unknown lies between false and true."""
    order = [False, None, True]
    ranks = order.index(one), order.index(other)
    assert truth(And((TERMS[one], TERMS[other]))) is order[min(ranks)]
    assert truth(Or((TERMS[one], TERMS[other]))) is order[max(ranks)]


def test_not_follows_kleene() -> None:
    """NOT swaps true and false and leaves unknown."""
    assert [truth(Not(TERMS[term])) for term in (True, False, None)] == [False, True, None]


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("x = 1", 1.0, True),
        ("x = 1", True, None),
        ("x = TRUE", 1, None),
        ("x = '1'", 1, None),
        ("x <> '1'", 1, None),
        ("x = 9007199254740993", 2.0**53, False),
        ("x > 9007199254740992.0", 2**53 + 1, True),
        ("x > FALSE", True, True),
        ("x < 'b'", "a", True),
        ("x < 'é'", "z", True),
        ("x > '\uffff'", "𝄞", True),
        ("x IN (1, 'a')", 1, True),
        ("x IN (1, 'a')", 2, None),
        ("x IN (1, 2)", 3, False),
        ("x IN (1, 2)", None, None),
        ("x BETWEEN 1 AND 3", 3, True),
        ("x BETWEEN 3 AND 1", 2, False),
        ("x BETWEEN 1 AND 3", "2", None),
        ("x LIKE 'a%'", "ab", True),
        ("x LIKE '1%'", 1, None),
        ("x LIKE '%'", None, None),
        ("x = 1", {"y": 1}, None),
        ("x IS NULL", None, True),
        ("x IS NULL", MISSING, True),
        ("x IS NULL", 0, False),
        ("x IS NULL", {}, False),
        ("x.y IS NULL", 5, True),
        ("x.y = 1", {"y": 1}, True),
        ("x.y = 1", {"y": None}, None),
        ('"x.y" = 1', {"y": 1}, None),
        ("x = 1", [], None),
        ("x IS NULL", [], True),
    ],
)
def test_constraint(text: str, value: Any, expected: bool | None) -> None:
    """A constraint compares values of one type and is unknown otherwise; IS NULL is never unknown."""
    event = {} if value is MISSING else {"x": value}
    assert matches(text, event) is (expected is True)
    assert matches(f"NOT ({text})", event) is (expected is False)


@pytest.mark.parametrize(
    ("text", "event", "expected"),
    [
        (
            "items.sku = 'a' AND items.qty > 5",
            {"items": [{"sku": "a", "qty": 1}, {"sku": "b", "qty": 9}]},
            False,
        ),
        (
            "items.sku = 'a' AND items.qty > 5",
            {"items": [{"sku": "b", "qty": 1}, {"sku": "a", "qty": 9}]},
            True,
        ),
        ("a = 1 AND b = 2", {"a": [0, 1], "b": [2, 3]}, True),
        ("a = 1 AND a = 2", {"a": [1, 2]}, False),
        ("a = 2", {"a": [[], [1, [2]]]}, True),
        ("a IS NULL", {"a": [[]]}, True),
        ("a IS NULL", {"a": [1, None]}, True),
        ("a.b = 1 AND a.c = 3", {"a": {"b": [0, 1], "c": [2, 3]}}, True),
        ("a IS NOT NULL AND a.b = 1", {"a": [5, {"b": [1]}]}, True),
        ("a.b = 1", {"a": [1, [{"b": 2}, {"b": [3, 1]}]]}, True),
        ("a <> 1", {"a": [1, 2]}, True),
        ("NOT a = 1", {"a": [1, 2]}, True),
        ("TRUE", {"a": [[1] * 200] * 200}, True),
        ("a.b IS NOT NULL", {"a": {"b": {"c": [1] * 20_000}}}, True),
    ],
)
def test_arrays(text: str, event: dict[str, Any], expected: bool) -> None:
    """A filter speaks of one element of each array that it names, the same in all its constraints."""
    assert matches(text, event) is expected


def single_valued(event: Any, filter_paths: Iterable[Path]) -> Iterator[Any]:
    """Every single-valued event that an event stands for, by replacing one array after the other."""
    for path in filter_paths:
        at = event
        for place, name in enumerate(path):
            if not isinstance(at, dict) or name not in at:
                break
            at = at[name]
            if isinstance(at, list):
                for element in at or [None]:
                    yield from single_valued(replaced(event, path[: place + 1], element), filter_paths)
                return
    yield event


def replaced(event: Any, path: Path, value: Any) -> Any:
    return {**event, path[0]: replaced(event[path[0]], path[1:], value)} if path else value


@given(our.expressions(), our.events(our.few_names))
def test_an_event_with_arrays_stands_for_its_choices(expression: Expression, event: Any) -> None:
    """A filter matches an event with arrays if and only if it matches one of its single-valued events."""
    choices = list(single_valued(event, sorted(paths(expression))))
    assume(len(choices) <= limits.MAX_CHOICES)
    assert evaluate(expression, event) is any(evaluate(expression, choice) for choice in choices)


@given(our.expressions(), our.events(our.few_names))
def test_choices_are_counted_exactly(expression: Expression, event: Any) -> None:
    """The filter is refused at one choice fewer than its single-valued events, and not at their number."""
    choices = len(list(single_valued(event, sorted(paths(expression)))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("branchline.routing.evaluate.MAX_CHOICES", choices)
        assert isinstance(evaluate(expression, event), bool)
        if choices > 1:
            patch.setattr("branchline.routing.evaluate.MAX_CHOICES", choices - 1)
            refused = evaluate(expression, event)
            assert isinstance(refused, Rejection)
            assert refused.code == Code.TOO_MANY_CHOICES
            assert f"{choices} choices" in refused.reason


@given(our.expressions(depth=2), our.expressions(depth=2), our.events(our.few_names))
def test_boolean_identities_hold_with_arrays(one: Expression, other: Expression, event: Any) -> None:
    """De Morgan's laws, double negation and order of terms change nothing, arrays or not."""
    assert evaluate(Not(And((one, other))), event) == evaluate(Or((Not(one), Not(other))), event)
    assert evaluate(Not(Or((one, other))), event) == evaluate(And((Not(one), Not(other))), event)
    assert evaluate(Not(Not(one)), event) == evaluate(one, event)
    assert evaluate(And((one, other)), event) == evaluate(And((other, one)), event)


@pytest.mark.parametrize("terms", ["a = 1 AND b = 1 AND c = 2", "c = 2 AND b = 1 AND a = 1"])
def test_too_many_choices_are_refused_in_any_order_of_terms(terms: str) -> None:
    """The limit counts every array that the filter names, even if one term decides; the rest is free."""
    event: dict[str, Any] = {"a": [1] * 100, "b": [1] * 101, "c": 1, "unnamed": [1] * 1000}
    result = evaluate(read(terms), event)
    assert isinstance(result, Rejection)
    assert result.code == Code.TOO_MANY_CHOICES
    assert "10100" in result.reason and str(limits.MAX_CHOICES) in result.reason
    event["b"] = [1] * 100
    assert evaluate(read(terms), event) is False


def test_counting_does_not_enumerate() -> None:
    """More choices than could ever be gone through are counted, and refused, at once."""
    names = [f"a{number}" for number in range(60)]
    filter_ = And(tuple(IsNull((name,)) for name in names))
    result = evaluate(filter_, {name: [0] * 16 for name in names})
    assert isinstance(result, Rejection)
    assert str(16**60) in result.reason


def test_an_empty_array_is_one_choice() -> None:
    """An empty array neither adds to the choices nor takes away those of the other arrays."""
    event = {"a": [], "b": [[], *range(limits.MAX_CHOICES - 1)]}
    assert evaluate(read("a IS NULL AND b = 5"), event) is True
    event["b"].append(1)
    assert isinstance(evaluate(read("a IS NULL AND b = 5"), event), Rejection)


def test_true_is_not_one_in_expressions_either() -> None:
    """Filters that differ only in true against 1 are different values; 1 and 1.0 are the same."""
    one, true, real = (Comparison(("a",), Operator.EQ, value) for value in (1, True, 1.0))
    assert one != true and len({one, true, real}) == 2
    assert read("a IN (1, 0)") != read("a IN (TRUE, FALSE)")
    assert read("a BETWEEN 0 AND 1") != read("a BETWEEN FALSE AND TRUE")


NUMBERS = st.sampled_from((0, 1, 2, 3))
NUMERIC = st.one_of(
    st.builds(Comparison, our.paths(our.few_names, 1), st.sampled_from(Operator), NUMBERS),
    st.builds(IsNull, our.paths(our.few_names, 1)),
    st.builds(
        lambda path, values: read(f"{path} IN ({', '.join(map(str, values))})"),
        our.few_names,
        st.lists(NUMBERS, min_size=1, max_size=3),
    ),
    st.builds(
        lambda path, low, high: read(f"{path} BETWEEN {low} AND {high}"), our.few_names, NUMBERS, NUMBERS
    ),
)


@given(our.expressions(NUMERIC), st.tuples(*[st.none() | NUMBERS] * 3))
def test_agrees_with_a_database(expression: Expression, row: tuple[int | None, ...]) -> None:
    """On one type, SQLite reads the written filter alike: precedence, NULLs and three-valued logic."""
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE event (a, b, items)")
        database.execute("INSERT INTO event VALUES (?, ?, ?)", row)
        found = database.execute(f"SELECT count(*) FROM event WHERE {write(expression)}").fetchone()[0] == 1
    database.close()
    assert evaluate(expression, dict(zip(("a", "b", "items"), row, strict=True))) is found
