"""Filters in normal form: the algebra agrees with brute force over a small world of events."""

from typing import Any

import pytest
from amounts import often
from filter_world import WORLD, A, B, conjunctions, dependent, independent, normal
from hypothesis import given
from hypothesis import strategies as st

from branchline.routing import filters
from branchline.routing.dimensions import Axis, kinds, prefix_range
from branchline.routing.filters import Constraint, Contains, Contradiction, Filter, Range, conjoin
from branchline.routing.intervals import HIGHEST, LOWEST, Interval, after, before, text_point
from branchline.routing.values import Kind


def satisfied(filter_: Filter | list[Constraint] | None) -> set[int]:
    """The events of the world that satisfy every constraint."""
    if filter_ is None:
        return set()
    return {
        place for place, event in enumerate(WORLD) if all(event.may_match(((each,),)) for each in filter_)
    }


@often
@given(conjunctions(dependent))
def test_the_normal_form_means_the_same(constraints: list[Constraint]) -> None:
    """A conjunction and its normal form hold for the same events; a contradiction holds for none."""
    made = conjoin(constraints)
    assert satisfied(None if isinstance(made, Contradiction) else made) == satisfied(constraints)


@often
@given(conjunctions(dependent), st.randoms(use_true_random=False))
def test_the_normal_form_is_one(constraints: list[Constraint], random: Any) -> None:
    """Normalising twice changes nothing, and neither does the order of the constraints, nor repeating one."""
    made = conjoin(constraints)
    shuffled = constraints + constraints[:1]
    random.shuffle(shuffled)
    again = conjoin(shuffled)
    if isinstance(made, Contradiction):
        assert isinstance(again, Contradiction)
    else:
        assert again == made == conjoin(made)


@often
@given(normal(independent), normal(independent))
def test_the_algebra_is_exact_on_independent_dimensions(one: Filter, other: Filter) -> None:
    """Covers, overlaps, intersect and difference are what they are for the sets of events."""
    mine, theirs = satisfied(one), satisfied(other)
    assert filters.covers(one, other) == (mine >= theirs)
    assert filters.overlaps(one, other) == bool(mine & theirs)
    assert satisfied(filters.intersect(one, other)) == mine & theirs
    pieces = filters.difference(one, other)
    assert pieces is not None
    assert set().union(*map(satisfied, pieces)) == mine - theirs
    assert sum(len(satisfied(piece)) for piece in pieces) == len(mine - theirs), "pieces do not overlap"


@often
@given(normal(dependent), normal(dependent))
def test_the_algebra_errs_on_the_safe_side_elsewhere(one: Filter, other: Filter) -> None:
    """With several readings of one text: what covers, does; what does not overlap, has nothing in common."""
    mine, theirs = satisfied(one), satisfied(other)
    if filters.covers(one, other):
        assert mine >= theirs
    if not filters.overlaps(one, other):
        assert not mine & theirs
    pieces = filters.difference(one, other)
    if pieces is not None:
        assert set().union(*map(satisfied, pieces)) == mine - theirs


@pytest.mark.parametrize(
    ("one", "other", "covers"),
    [
        (Contains(A, Axis.TEXT, "a"), Contains(A, Axis.TEXT, "cab"), True),
        (Contains(A, Axis.TEXT, "cab"), Contains(A, Axis.TEXT, "a"), False),
        (Contains(A, Axis.FOLDED, "a"), Contains(A, Axis.TEXT, "BAR"), True),
        (Contains(A, Axis.TEXT, "a"), Contains(A, Axis.FOLDED, "a"), False),
        (Contains(A, Axis.TEXT, "b"), Range(A, Axis.TEXT, prefix_range("abc")), True),
        (Contains(A, Axis.TEXT, "b"), Range(A, Axis.REVERSED, prefix_range("cba")), True),
        (Contains(A, Axis.FOLDED, "b"), Range(A, Axis.TEXT, text_point("ABC")), True),
        (Range(A, Axis.REVERSED, prefix_range("c")), Range(A, Axis.TEXT, text_point("abc")), True),
        (Range(A, Axis.FOLDED, text_point("abc")), Range(A, Axis.TEXT, text_point("ABC")), True),
        (Range(A, Axis.PRESENCE, kinds(Kind.TEXT, Kind.TEXT)), Contains(A, Axis.TEXT, "x"), True),
        (Range(A, Axis.TEXT, prefix_range("a")), Range(B, Axis.TEXT, prefix_range("a")), False),
    ],
)
def test_covering_across_the_readings_of_a_text(one: Constraint, other: Constraint, covers: bool) -> None:
    """A word is covered by what contains it; a text that is known decides every reading of it."""
    assert filters.covers((one,), (other,)) is covers


def number(path: tuple[str, ...], low: tuple[Any, ...], high: tuple[Any, ...]) -> Range:
    return Range(path, Axis.NUMBER, Interval(low, high))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            [
                number(("x",), after(5), HIGHEST),
                number(("x",), after(2), HIGHEST),
                number(("y",), after(3), HIGHEST),
            ],
            (number(("x",), after(5), HIGHEST), number(("y",), after(3), HIGHEST)),
        ),
        (
            [
                number(("z",), before(9), after(9)),
                number(("z",), LOWEST, before(10)),
                number(("z",), after(2), HIGHEST),
            ],
            (number(("z",), before(9), after(9)),),
        ),
        (
            [number(("x",), LOWEST, HIGHEST), number(("x",), LOWEST, before(4))],
            (number(("x",), LOWEST, before(4)),),
        ),
    ],
)
def test_the_table_of_the_prefix_forwarding_paper(given: list[Constraint], expected: Filter) -> None:
    """x>5 ∧ x>2 ∧ y>3 is x>5 ∧ y>3; z=9 ∧ z<10 ∧ z>2 is z=9; anything ∧ x<4 is x<4."""
    assert conjoin(given) == expected


def test_a_contradiction_names_its_sides() -> None:
    """x>5 ∧ x<3 is empty, and what excludes what is said."""
    sides = [number(("x",), after(5), HIGHEST), number(("x",), LOWEST, before(3))]
    assert conjoin(sides) == Contradiction(*sides)
