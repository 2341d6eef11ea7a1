"""Covers: what is joined, what is absorbed, and what is widened when there is too much."""

from typing import Any

import pytest
from amounts import often
from filter_world import WORLD, A, B, dependent, normal
from hypothesis import given
from hypothesis import strategies as st

from branchline.routing import covers, filters
from branchline.routing.covers import ALL, Cover, conjoin_covers, disjoin, widen
from branchline.routing.dimensions import Axis
from branchline.routing.filters import Filter, Range
from branchline.routing.intervals import point, text_point
from branchline.routing.limits import COVER_MAX_FILTERS

filter_lists = st.lists(normal(dependent), max_size=5)


def events(cover: Cover | list[Filter]) -> set[int]:
    """The events of the world for which the cover holds."""
    return {place for place, event in enumerate(WORLD) if event.may_match(tuple(cover))}


@often
@given(filter_lists, st.randoms(use_true_random=False))
def test_a_disjunction_has_one_normal_form(found: list[Filter], random: Any) -> None:
    """It holds for the same events, and is the same for any order, for repeats, and when made again."""
    made = disjoin(found)
    assert events(made) == events(found)
    shuffled = found + found[:1]
    random.shuffle(shuffled)
    assert disjoin(shuffled) == made == disjoin(made)


@often
@given(filter_lists)
def test_no_filter_of_a_cover_covers_another(found: list[Filter]) -> None:
    """Whatever another filter covers is dropped."""
    made = disjoin(found)
    assert not any(filters.covers(one, other) for one in made for other in made if one is not other)


@often
@given(st.lists(filter_lists.map(disjoin), max_size=4), st.randoms(use_true_random=False))
def test_a_conjunction_of_covers_holds_where_all_do(parts: list[Cover], random: Any) -> None:
    """It holds for the events that all parts hold for, whatever their order."""
    made = conjoin_covers(parts)
    expected = set(range(len(WORLD)))
    for part in parts:
        expected &= events(part)
    assert events(made.cover) == expected
    assert not made.widened
    shuffled = list(parts)
    random.shuffle(shuffled)
    assert conjoin_covers(shuffled).cover == made.cover


@often
@given(filter_lists, st.integers(1, 4))
def test_widening_only_adds(found: list[Filter], most: int) -> None:
    """A widened cover is short enough and holds wherever the cover did."""
    cover = disjoin(found)
    wide = widen(cover, most)
    assert len(wide) <= most
    assert events(wide) >= events(cover)


def points(path: tuple[str, ...], values: list[int]) -> Cover:
    return disjoin([(Range(path, Axis.NUMBER, point(value)),) for value in values])


def test_a_product_that_is_too_large_is_widened_and_still_constrains_both() -> None:
    """A hundred values of one attribute and a hundred of another fit, roughly; neither is forgotten."""
    made = conjoin_covers([points(A, list(range(0, 1000, 10))), points(B, list(range(0, 1000, 10)))])
    assert 1 < len(made.cover) <= COVER_MAX_FILTERS
    assert made.widened
    assert all({constraint.path for constraint in each} == {A, B} for each in made.cover)


def test_a_list_of_full_size_is_not_widened() -> None:
    """A hundred values are a hundred points."""
    made = conjoin_covers([points(A, list(range(0, 1000, 10))), ((Range(B, Axis.NUMBER, point(1)),),)])
    assert len(made.cover) == 100
    assert not made.widened


def test_many_exclusions_stay_short() -> None:
    """A <> 1 AND a <> 2 AND … is one interval more than there are exclusions, not two to their power."""
    without = [
        disjoin([(Range(A, Axis.NUMBER, gap),) for gap in covers.intervals.gaps([point(value)])])
        for value in range(60)
    ]
    made = conjoin_covers(without)
    assert len(made.cover) == 61
    assert not made.widened


def test_neighbours_are_joined_before_anything_is_dropped() -> None:
    """Of many points, the closest are joined to ranges first; the far one stays a point."""
    wide = widen(points(A, [1, 2, 3, 1000]), 2)
    assert (Range(A, Axis.NUMBER, point(1000)),) in wide
    assert len(wide) == 2


def test_texts_that_share_most_are_joined_first() -> None:
    """Among texts, those that share a longer start."""
    texts = disjoin([(Range(A, Axis.TEXT, text_point(text)),) for text in ("MAD", "MAN", "ZRH")])
    assert (Range(A, Axis.TEXT, text_point("ZRH")),) in widen(texts, 2)


@pytest.mark.parametrize("part", [ALL, disjoin([(), (Range(A, Axis.NUMBER, point(1)),)])])
def test_everything_absorbs(part: Cover) -> None:
    """A cover with the filter without constraints is that filter alone."""
    assert part == ((),)
