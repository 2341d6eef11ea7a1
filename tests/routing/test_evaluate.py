"""The naive evaluator does what the definition of filters says."""

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

import pytest
import strategies as our
from hypothesis import assume, example, given

from branchline.routing import limits
from branchline.routing.codes import Code, Rejection
from branchline.routing.evaluate import evaluate, everything, holds, read_as
from branchline.routing.evaluate import truth as truth_in
from branchline.routing.expression import (
    NULLS,
    And,
    CompareFields,
    Comparison,
    Every,
    Expression,
    Has,
    IsTrue,
    Not,
    OfKind,
    Or,
    Path,
    Reading,
    SingleConstraint,
    chosen_paths,
)
from branchline.routing.patterns import ANY_ONE, Pattern, fits
from branchline.routing.spellings.sql import read, write
from branchline.routing.values import Kind, Operator, kind

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
        ("x CONTAINS ''", "", True),
        ("x CONTAINS '%'", "a", False),
        ("x STARTS WITH 'a'", "ba", False),
        ("x ENDS WITH 'a'", {"a": 1}, None),
        ("x = 'STRASSE' IGNORE CASE", "straße", True),
        ("x = 'straße' IGNORE CASE", "STRASSE", True),
        ("x <> 'A' IGNORE CASE", "a", False),
        ("x = 'a' IGNORE CASE", 1, None),
        ("x LIKE 'stra__e' IGNORE CASE", "Straße", True),
        ("x LIKE 'stra_e' IGNORE CASE", "Straße", False),
        ("x ILIKE '%ΣΑΣ'", "οσας", True),
        ("x = 'İ' IGNORE CASE", "i", False),
        ("x IN ('A', 'b') IGNORE CASE", "B", True),
        ("x NOT IN ('A', 'b') IGNORE CASE", "c", True),
        ("TEXT(x) = '1'", 1.0, True),
        ("TEXT(x) = '1'", "1", True),
        ("TEXT(x) = 'true'", True, True),
        ("TEXT(x) = '1.5'", 1.5, True),
        ("TEXT(x) = '1e+21'", 1e21, False),
        ("TEXT(x) LIKE '1%000'", 1e21, True),
        ("TEXT(x) STARTS WITH '-9007199254740993'", -9007199254740993, True),
        ("TEXT(x) <> '1'", None, None),
        ("TEXT(x) <> '1'", MISSING, None),
        ("TEXT(x) LIKE '%'", {}, None),
        ("x = TIMESTAMP '2026-11-16T12:00:00Z'", "2026-11-16T13:00:00.00+01:00", True),
        ("x < TIMESTAMP '2026-11-16T12:00:00.5Z'", "2026-11-16T12:00:00.49Z", True),
        ("x <> TIMESTAMP '2026-11-16T12:00:00Z'", "2026-11-16", None),
        ("x = TIMESTAMP '2026-11-16T12:00:00Z'", 1794830400, None),
        ("x = '2026-11-16T12:00:00Z'", "2026-11-16T13:00:00+01:00", False),
        ("x IN (1, TIMESTAMP '2026-11-16T12:00:00Z')", "2026-11-16t12:00:00z", True),
        (
            "x BETWEEN TIMESTAMP '2026-11-16T12:00:00Z' AND TIMESTAMP '2026-11-16T13:00:00Z'",
            "2026-11-16T14:00:00+01:00",
            True,
        ),
        ("x IN CIDR '10.0.0.0/8'", "10.255.255.255", True),
        ("x IN CIDR '10.0.0.0/8'", "11.0.0.0", False),
        ("x IN CIDR '10.0.0.0/8'", "::ffff:10.0.0.1", False),
        ("x IN CIDR '::/0'", "10.0.0.1", False),
        ("x NOT IN CIDR '10.0.0.0/8'", "010.0.0.1", None),
        ("x IN CIDR '10.0.0.0/8'", 167772161, None),
        ("x IN CIDR '2001:db8::/32'", "2001:DB8:0::1", True),
        ("x IS MISSING", MISSING, True),
        ("x IS MISSING", None, False),
        ("x IS MISSING", [], True),
        ("x.y IS MISSING", 5, True),
        ("x IS JSON NULL", None, True),
        ("x IS JSON NULL", MISSING, False),
        ("x IS BOOLEAN", True, True),
        ("x IS NUMBER", True, False),
        ("x IS NUMBER", 1.5, True),
        ("x IS TEXT", "", True),
        ("x IS OBJECT", {}, True),
        ("x IS (TEXT, NUMBER)", False, False),
        ("x IS NOT (TEXT, NUMBER)", MISSING, True),
        ("EXISTS x", None, True),
        ("EXISTS x", MISSING, False),
        ("x IS TRUE", 1, False),
        ("x IS TRUE", True, True),
        ("x IS NOT TRUE", MISSING, True),
        ("x IS FALSE", None, False),
        ("(x = 1) IS FALSE", 2, True),
        ("(x = 1) IS FALSE", "1", False),
        ("(x = 1) IS UNKNOWN", "1", True),
        ("(x = 1) IS NOT UNKNOWN", "1", False),
        ("(x = 1) IS UNKNOWN", 2, False),
        ("x = x", 1, True),
        ("x <> x", "a", False),
        ("x = x", MISSING, None),
        ("x = x", None, None),
        ("x = x", {}, None),
        ("x.a < x.b", {"a": 1, "b": 1.5}, True),
        ("x.a = x.b", {"a": 1, "b": True}, None),
        ("x.a = x.b", {"a": 2**53 + 1, "b": 2.0**53}, False),
        ("x.a > x.b", {"a": "b", "b": "a"}, True),
        ("x.a = x.b", {"a": "2026-11-16T12:00:00Z", "b": "2026-11-16T13:00:00+01:00"}, False),
        ("x HAS 1", 1.0, True),
        ("x HAS 1", "1", False),
        ("x HAS 1", None, None),
        ("x HAS 1", MISSING, None),
        ("x HAS 1", [], False),
        ("x HAS 1", [None, [None]], None),
        ("x HAS 1", [None, "a"], False),
        ("x HAS 1", [2, [3, [1]]], True),
        ("x HAS TRUE", [1], False),
        ("x.y HAS 1", [{"y": 2}, {"y": [1]}], True),
        ("x.y HAS 1", [{}, 5], None),
        ("x HAS TIMESTAMP '2026-11-16T12:00:00Z'", ["x", "2026-11-16T12:00:00Z"], True),
        ("x HAS ALL (1, 2)", [1, 2, 3], True),
        ("x HAS ALL (1, 4)", [1, 2, 3], False),
        ("x HAS ANY (4, 1)", [1, 2, 3], True),
        ("EVERY x > 1", [2, 3], True),
        ("EVERY x > 1", [2, 1], False),
        ("EVERY x > 1", [2, "a"], None),
        ("EVERY x > 1", [1, "a"], False),
        ("EVERY x > 1", [], True),
        ("EVERY x > 1", MISSING, None),
        ("EVERY x > 1", 2, True),
        ("EVERY x.y > 1", [{"y": [2, 3]}, {"y": 4}], True),
        ("EVERY x.y > 1", [{"y": [2, 3]}, {}], None),
        ("EVERY x.y IS NUMBER", [{"y": 1}, 5], False),
        ("EVERY x IS NOT NULL", [1, None], False),
        ("EVERY x LIKE 'A%' IGNORE CASE", ["ab", "AB"], True),
        ("FALSE", 1, False),
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


@pytest.mark.parametrize("term", TERMS)
def test_is_true_makes_two_values_of_three(term: bool | None) -> None:
    """IS TRUE, IS FALSE and IS UNKNOWN are each true of one of the three, and never unknown."""
    text = write(TERMS[term])
    for word, value in (("TRUE", True), ("FALSE", False), ("UNKNOWN", None)):
        assert truth(read(f"({text}) IS {word}")) is (term is value)
        assert truth(read(f"({text}) IS NOT {word}")) is (term is not value)
    assert truth(IsTrue(TERMS[term])) is (term is True)


@given(our.single_constraints(our.paths(our.few_names, 1)), our.values(our.few_names, arrays=False))
def test_a_constraint_is_of_the_kinds_that_it_speaks_of(constraint: SingleConstraint, value: Any) -> None:
    """OfKind is never unknown; the rest are unknown of nothing, null and objects."""
    if isinstance(constraint, OfKind):
        assert holds(constraint, value) is (kind(value) in constraint.kinds)
    elif kind(value) in (Kind.NULL, Kind.OBJECT):
        assert holds(constraint, value) is None


@given(our.kinds, our.values(our.few_names, arrays=False))
def test_kinds_and_their_complement(kinds: frozenset[Kind], value: Any) -> None:
    """NOT of some kinds is the other kinds."""
    others = OfKind(("x",), frozenset(Kind) - kinds)
    assert evaluate(Not(OfKind(("x",), kinds)), {"x": value}) is evaluate(others, {"x": value})


@given(our.patterns, our.some_texts)
def test_readings_of_text(pattern: Pattern, text: str) -> None:
    """Text is its own canonical text; what fits a pattern fits the folded one when folded."""
    assert read_as(Reading.CANONICAL, text) == read_as(Reading.TEXT, text) == text
    folded = read_as(Reading.FOLDED, text)
    assert folded == text.casefold()
    if ANY_ONE not in "".join(pattern.pieces) and fits(text, pattern):
        assert fits(folded, pattern.fold())


@given(our.single_constraints(), our.events(our.few_names))
def test_every_and_has_look_at_all_values(constraint: SingleConstraint, event: Any) -> None:
    """EVERY is the AND and HAS nearly the OR over all values at the path; none of them chooses."""
    values = list(everything(constraint.path, event))
    truths = [holds(constraint, value) for value in values]
    assert evaluate(Every(constraint), event) is all(truth is True for truth in truths)
    assert evaluate(Not(Every(constraint)), event) is (False in truths)
    assert not chosen_paths(Every(constraint))
    if isinstance(constraint, Comparison) and constraint.operator is Operator.EQ:
        has = Has(constraint.path, constraint.value)
        assert evaluate(has, event) is (True in truths)
        unknown = bool(values) and all(kind(value) in NULLS for value in values)
        assert evaluate(Not(has), event) is (True not in truths and not unknown)


@given(our.short_paths, our.short_paths, our.events(our.few_names, arrays=False))
def test_fields_compare_as_values_do(one: Path, other: Path, event: Any) -> None:
    """Two attributes compare as the one does with the other's value written as a literal."""
    (value,) = everything(other, event)
    for operator in Operator:
        fields = CompareFields(one, operator, other)
        if isinstance(value, bool | int | float | str):
            assert evaluate(fields, event) is evaluate(Comparison(one, operator, value), event)
        else:
            assert not evaluate(fields, event) and not evaluate(Not(fields), event)


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
        ("a = b", {"a": [1, 2], "b": [3, 2]}, True),
        ("a.x = a.y", {"a": [{"x": 1, "y": 2}, {"x": 2, "y": 1}]}, False),
        ("a <> a", {"a": [1, 2]}, False),
        ("a HAS 1 AND a HAS 2", {"a": [1, 2]}, True),
        ("EVERY a > 0 AND a = 2", {"a": [1, 2]}, True),
        ("a NOT HAS 1", {"a": [1, 2]}, False),
        ("a HAS 5", {"a": list(range(20_000))}, True),
        ("EVERY a.b >= 0", {"a": [{"b": [1] * 200}] * 200}, True),
        ("(a = 1) IS UNKNOWN", {"a": [1, "x"]}, True),
        ("a IS MISSING", {"a": [1, []]}, True),
        ("a IS NOT TRUE", {"a": [True, False]}, True),
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
                for element in at or [MISSING]:
                    yield from single_valued(replaced(event, path[: place + 1], element), filter_paths)
                return
    yield event


def replaced(event: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    kept = {name: member for name, member in event.items() if name != path[0]}
    member = replaced(event[path[0]], path[1:], value)
    return kept if member is MISSING else {**kept, path[0]: member}


@given(our.expressions(), our.events(our.few_names))
@example(read("a IS JSON NULL"), {"a": []})
@example(read("a IS MISSING AND b = 1"), {"a": [[]], "b": [0, 1]})
@example(read("a NOT HAS 1 AND a = 2"), {"a": [1, 2]})
def test_an_event_with_arrays_stands_for_its_choices(expression: Expression, event: Any) -> None:
    """A filter matches if and only if it is true of one single-valued event; HAS and EVERY see the whole."""
    choices = list(single_valued(event, sorted(chosen_paths(expression))))
    assume(len(choices) <= limits.MAX_CHOICES)
    assert evaluate(expression, event) is any(
        truth_in(expression, choice, event) is True for choice in choices
    )


@given(our.expressions(), our.events(our.few_names))
def test_choices_are_counted_exactly(expression: Expression, event: Any) -> None:
    """The filter is refused at one choice fewer than its single-valued events, and not at their number."""
    choices = len(list(single_valued(event, sorted(chosen_paths(expression)))))
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
    filter_ = And(tuple(OfKind((name,), frozenset({Kind.NULL})) for name in names))
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
