"""The algebra of intervals agrees with brute force, for numbers and for text."""

from itertools import pairwise, product
from typing import Any

import pytest
from amounts import often
from hypothesis import given
from hypothesis import strategies as st

from branchline.routing import intervals
from branchline.routing.dimensions import common_prefix, number_value, prefix_range
from branchline.routing.intervals import (
    HIGHEST,
    LOWEST,
    WHOLE,
    Interval,
    after,
    before,
    holds,
    is_point,
    text_before,
    text_point,
)

NUMBERS = (-1, 0, 0.5, 1, 1.5, 2, 2**53, 2**53 + 1, float(2**53 + 2), 10**400)
"""Between any two of NUMBERS[1:-1:2] lies another: what holds for these holds for all numbers."""

TEXTS = tuple("".join(letters) for length in range(4) for letters in product("\0a\U0010ffff", repeat=length))
"""Cuts are made at the texts of at most two letters; between any two of them lies one of three."""

number_cuts = st.sampled_from((0, 1, 2, 2**53 + 1)).flatmap(
    lambda value: st.sampled_from([before(value), after(value)])
)
text_cuts = st.sampled_from([text for text in TEXTS if len(text) < 3]).flatmap(
    lambda text: st.sampled_from([text_before(text), after(text)])
)


def spans(cuts: st.SearchStrategy[Any]) -> st.SearchStrategy[Interval]:
    ends = st.just(LOWEST) | st.just(HIGHEST) | cuts
    return st.tuples(ends, ends).filter(lambda pair: pair[0] < pair[1]).map(lambda pair: Interval(*pair))


pairs = st.one_of(
    st.tuples(spans(number_cuts), spans(number_cuts), st.just(NUMBERS)),
    st.tuples(spans(text_cuts), spans(text_cuts), st.just(TEXTS)),
)


def members(interval: Interval | None, values: tuple[Any, ...]) -> set[Any]:
    return set() if interval is None else {value for value in values if holds(interval, value)}


@often
@given(pairs)
def test_the_algebra_agrees_with_sets_of_values(pair: tuple[Interval, Interval, tuple[Any, ...]]) -> None:
    """Covers, overlaps, intersect, difference, hull and gaps are what they are for the sets of values."""
    one, other, values = pair
    mine, theirs = members(one, values), members(other, values)
    assert mine, "an interval between two different cuts is not empty"
    assert intervals.covers(one, other) == (mine >= theirs)
    assert intervals.overlaps(one, other) == bool(mine & theirs)
    assert members(intervals.intersect(one, other), values) == mine & theirs
    assert (one == other) == (mine == theirs)
    pieces = intervals.difference(one, other)
    assert set().union(*(members(piece, values) for piece in pieces)) == mine - theirs
    assert all(members(piece, values) for piece in pieces)
    assert members(intervals.hull(one, other), values) >= mine | theirs
    rest = intervals.gaps([one, other])
    assert set().union(*(members(gap, values) for gap in rest)) == set(values) - mine - theirs


@often
@given(st.lists(spans(number_cuts), max_size=5))
def test_joined_intervals_hold_the_same_values_apart(found: list[Interval]) -> None:
    """Joining keeps the values, gives intervals in order that do not touch, and is the same in any order."""
    made = intervals.joined(found)
    assert {v for each in made for v in members(each, NUMBERS)} == {
        v for each in found for v in members(each, NUMBERS)
    }
    assert all(one.high < other.low for one, other in pairwise(made))
    assert intervals.joined(found[::-1]) == intervals.joined(made) == made


@often
@given(spans(text_cuts), st.sampled_from(TEXTS))
def test_a_point_holds_one_text(interval: Interval, text: str) -> None:
    """An interval is a point if and only if it is the one around a text; a prefix's range is no point."""
    assert is_point(text_point(text))
    assert is_point(interval) == any(interval == text_point(each) for each in TEXTS)
    assert not is_point(prefix_range(text))


@often
@given(st.text("ab\0\U0010ffff\ud7ff\ue000", max_size=4), st.text("ab\0\U0010ffff\ud7ff\ue000", max_size=6))
def test_the_range_of_a_prefix_is_what_starts_with_it(prefix: str, text: str) -> None:
    """A text lies in the range of a prefix if and only if it starts with it."""
    assert holds(prefix_range(prefix), text) == text.startswith(prefix)


@often
@given(spans(text_cuts))
def test_every_text_of_an_interval_has_its_common_prefix(interval: Interval) -> None:
    """The common prefix is one of every text in the interval."""
    assert all(text.startswith(common_prefix(interval)) for text in members(interval, TEXTS))


@pytest.mark.parametrize("prefix", ["a", "ab", "\ud7ff", "\ue000", "a\0", "é", "𝄞"])
def test_the_common_prefix_of_a_prefix_is_itself(prefix: str) -> None:
    """Nothing is lost on the way from a prefix to its range and back, so it can be written again."""
    assert common_prefix(prefix_range(prefix)) == common_prefix(text_point(prefix)) == prefix


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, 1.0), (0, -0.0), (2**53, float(2**53)), (10**21, 1e21), (10**400, 10**400), (5e-324, 5e-324)],
)
def test_equal_numbers_have_one_value(one: float, other: float) -> None:
    """Numbers that are equal become one value of one type, so that equal filters are written alike."""
    assert repr(number_value(one)) == repr(number_value(other))
    assert number_value(one) == one


def test_integers_beyond_floats_stay_apart() -> None:
    """2^53 and 2^53 + 1 are two values, though they are one as floats; so are 1e21 and its neighbour."""
    assert number_value(2**53) != number_value(2**53 + 1)
    assert number_value(10**21 + 1) != number_value(1e21)
    assert Interval(LOWEST, HIGHEST) == WHOLE
