"""Why a filter does not match: the constraints named are those that failed, with the values that they met."""

import pytest
import strategies as our
from hypothesis import given
from hypothesis import strategies as st

from branchline.routing.choices import each_choice
from branchline.routing.codes import Code, Rejection
from branchline.routing.evaluate import Attributes, evaluate, truth
from branchline.routing.expression import (
    And,
    Anything,
    Constraint,
    Expression,
    Not,
    chosen_paths,
    constraints,
)
from branchline.routing.limits import MAX_CHOICES
from branchline.routing.spellings.sql import read, write
from branchline.routing.values import MISSING, JsonValue
from branchline.routing.verdicts import Failure, WhyNot, why_not

few_events = our.events(our.few_names)


def explained(expression: Expression, attributes: Attributes) -> WhyNot:
    verdict = why_not(expression, attributes)
    assert isinstance(verdict, WhyNot)
    return verdict


def told(failures: tuple[Failure, ...]) -> list[tuple[str, object, object]]:
    return [(write(each.condition), each.truth, dict(each.found)) for each in failures]


@given(our.expressions(), few_events)
def test_there_is_no_failure_exactly_where_the_filter_matches(
    expression: Expression, event: dict[str, JsonValue]
) -> None:
    """Empty if and only if the evaluator says true, whatever the tree and the arrays."""
    assert (not explained(expression, event).failures) is evaluate(expression, event)


@given(our.expressions(), few_events)
def test_failures_are_the_expressions_own(expression: Expression, event: dict[str, JsonValue]) -> None:
    """Every constraint named stands in the filter, is named once, and what was wanted of it is not true."""
    verdict = explained(expression, event)
    named = [(each.constraint, each.wanted) for each in verdict.failures]
    known = {*constraints(expression), Anything()}
    assert len(set(named)) == len(named) and known >= {constraint for constraint, _ in named}
    alone = [each for each in verdict.failures if verdict.choices == 1]
    for failure in alone:
        assert evaluate(failure.condition, event) is False
        assert failure.truth in (False, None)


@given(st.lists(our.any_constraint, min_size=2, max_size=4), few_events)
def test_of_a_conjunction_the_terms_that_are_not_true_are_named(
    terms: list[Constraint], event: dict[str, JsonValue]
) -> None:
    """Of the choice explained, they are exactly those; and no choice has fewer."""
    expression = And(tuple(terms))
    failed = [
        {term for term in terms if truth(term, choice, event) is not True}
        for choice in each_choice(chosen_paths(expression), event)
    ]
    named = {each.constraint for each in explained(expression, event).failures}
    assert named == min(failed, key=len)


@given(our.expressions(), few_events)
def test_negating_twice_changes_nothing(expression: Expression, event: dict[str, JsonValue]) -> None:
    """NOT NOT p fails because of what p fails because of."""
    twice = Not(Not(expression))
    assert explained(twice, event).failures == explained(expression, event).failures


@pytest.mark.parametrize(
    ("text", "event", "failures"),
    [
        ("price <= 800", {"price": 950}, [("price <= 800", False, {("price",): 950})]),
        ("origin = 'BCN'", {}, [("origin = 'BCN'", None, {("origin",): MISSING})]),
        ("origin = 'BCN'", {"origin": None}, [("origin = 'BCN'", None, {("origin",): None})]),
        ("a = 1 AND b = 2", {"a": 1, "b": 1}, [("b = 2", False, {("b",): 1})]),
        ("a = 1 OR b = 2", {"a": 2}, [("a = 1", False, {("a",): 2}), ("b = 2", None, {("b",): MISSING})]),
        ("NOT a = 1", {"a": 1}, [("NOT a = 1", False, {("a",): 1})]),
        ("NOT a = 1", {}, [("NOT a = 1", None, {("a",): MISSING})]),
        ("NOT (a = 1 AND b > 1)", {"a": 1}, [
            ("NOT a = 1", False, {("a",): 1}), ("NOT b > 1", None, {("b",): MISSING}),
        ]),
        ("a IS NOT TRUE", {"a": True}, [("NOT a = TRUE", False, {("a",): True})]),
        ("(a = 1) IS UNKNOWN", {"a": 1}, [("NOT a = 1", False, {("a",): 1})]),
        ("a < b", {"a": 2, "b": 1}, [("a < b", False, {("a",): 2, ("b",): 1})]),
        ("a = 1 AND (b = 1 OR FALSE)", {"a": 1}, [("b = 1", None, {("b",): MISSING}), ("FALSE", False, {})]),
        ("a HAS 'x'", {"a": ["y", 1]}, [("a HAS 'x'", False, {("a",): ["y", 1]})]),
        ("a HAS 'x'", {"a": []}, [("a HAS 'x'", False, {("a",): []})]),
        ("a NOT HAS 'x'", {"a": ["y", "x"]}, [("a NOT HAS 'x'", False, {("a",): "x"})]),
        ("a.b HAS 'x'", {"a": [{}, {"b": "y"}]}, [("a.b HAS 'x'", False, {("a", "b"): ["y"]})]),
        ("EVERY a > 2", {"a": [3, 2, 1]}, [("EVERY a > 2", False, {("a",): 2})]),
        ("EVERY a > 2", {"a": [3, None]}, [("EVERY a > 2", None, {("a",): None})]),
        ("NOT EVERY a > 2", {"a": [3, 4]}, [("NOT EVERY a > 2", False, {("a",): [3, 4]})]),
        ("CESQL('ABS(x) > y')", {"x": 1, "y": 2}, [("CESQL('ABS(x) > y')", False, {("x",): 1, ("y",): 2})]),
    ],
)  # fmt: skip
def test_what_is_named(text: str, event: dict[str, JsonValue], failures: list[object]) -> None:
    """Each failure is the condition as wanted, its truth, and what the event has at its attributes."""
    assert told(explained(read(text), event).failures) == failures


def test_the_closest_choice_is_explained() -> None:
    """Of the choices that arrays allow it is the first with the fewest failures, told by its values."""
    items: JsonValue = [{"sku": "b", "qty": 1}, {"sku": "a", "qty": 2}, {"sku": "b", "qty": 9}]
    verdict = explained(read("items.sku = 'a' AND items.qty > 5 AND shop = 1"), {"items": items, "shop": 1})
    assert told(verdict.failures) == [("items.qty > 5", False, {("items", "qty"): 2})]
    assert verdict.choices == 3
    assert verdict.chosen == ((("items", "qty"), 2), (("items", "sku"), "a"))


def test_an_event_that_is_not_evaluated_is_not_explained() -> None:
    """Too many choices are a rejection here as they are in evaluation."""
    event: dict[str, JsonValue] = {name: list(range(MAX_CHOICES // 50)) for name in "ab"}
    verdict = why_not(read("a = 1 AND b = -1"), event)
    assert isinstance(verdict, Rejection) and verdict.code is Code.TOO_MANY_CHOICES
