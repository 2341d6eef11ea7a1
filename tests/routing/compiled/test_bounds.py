"""Values in order, ranges in ranks, and positions on them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from indexed import POOLS, some_filters

from branchline.routing.compiled import hashing
from branchline.routing.compiled.bounds import ranked
from branchline.routing.compiled.gathering import Gathering, gathered, key_of, laid_together, late_key
from branchline.routing.compiled.paths import Paths
from branchline.routing.compiled.ranking import rank
from branchline.routing.compiled.reading import rows_of
from branchline.routing.compiled.regathering import unranked
from branchline.routing.dimensions import Axis, text_position
from branchline.routing.filters import Filter, Range
from branchline.routing.intervals import HIGHEST, Interval, after, before, text_point

A = ("a",)


def number(low: Any, high: Any) -> Filter:
    return (Range(A, Axis.NUMBER, Interval(low, high)),)


def test_ranks_of_numbers() -> None:
    """2i+1 is the i-th value and 2i the gap before it; equal numbers are one value, whatever their types."""
    filters = [number(before(1), after(1.0)), number(after(-0.0), before(2)), number(after(2.0), HIGHEST)]
    found = ranked(gathered(filters), Paths())
    assert found.low.tolist() == [3, 2, 6]
    assert found.high.tolist() == [3, 4, 6]
    assert found.bounds.value_first.tolist() == [0, 3]


@given(some_filters, some_filters)
def test_ranks_do_not_depend_on_how_filters_came_together(one: list[Filter], other: list[Filter]) -> None:
    """Filters that were in ranks, and more that come to them, are ranked as all at once are."""
    first = ranked(gathered(one), Paths())
    checks = np.stack([first.slot, first.low, first.high], 1)
    again = unranked(first.bounds, first.first, checks, np.ones(len(one), np.bool_))
    both, at_once = (
        ranked(laid_together([again, gathered(other)]), Paths()),
        ranked(gathered(one + other), Paths()),
    )
    assert both.bounds.kins == at_once.bounds.kins
    for name in ("first", "slot", "low", "high"):
        assert np.array_equal(getattr(both, name), getattr(at_once, name)), name
    for name, array in at_once.bounds.arrays.items():
        assert np.array_equal(both.bounds.arrays[name], array), name
    assert both.bounds.wide == at_once.bounds.wide


@given(some_filters, st.data())
def test_filters_flattened_together_are_as_one_by_one(filters: list[Filter], data: st.DataObject) -> None:
    """Constraints that several filters have as one object are flattened as those that are equal."""
    drawn = data.draw(st.lists(st.integers(0, len(filters) - 1), max_size=20)) if filters else []
    several = filters + [filters[each] + filters[-each] for each in drawn]
    gathering = Gathering()
    for each in several:
        gathering.add(each)
    one_by_one, together = gathering.parts(), gathered(iter(several))
    assert together.kins == one_by_one.kins
    assert together.wide == one_by_one.wide
    for name in ("number_kin", "near", "text_kin", "at", "blob", "first", "kin", "low", "high"):
        mine, theirs = getattr(together, name), getattr(one_by_one, name)
        assert np.array_equal(mine, theirs), name
        assert mine.dtype == theirs.dtype, name


@given(some_filters, st.data())
def test_filters_that_are_dropped_leave_nothing(filters: list[Filter], data: st.DataObject) -> None:
    """What is left is as if the others had never been."""
    kept = np.array(
        data.draw(st.lists(st.booleans(), min_size=len(filters), max_size=len(filters))), np.bool_
    )
    found = ranked(gathered(filters).kept(kept), Paths())
    alone = ranked(gathered([each for each, is_kept in zip(filters, kept, strict=True) if is_kept]), Paths())
    assert found.bounds.kins == alone.bounds.kins
    for name, array in alone.bounds.arrays.items():
        assert np.array_equal(found.bounds.arrays[name], array), name


@pytest.mark.parametrize("axis", [axis for axis in POOLS if axis is not Axis.NUMBER])
def test_keys_are_in_the_order_of_positions(axis: Axis) -> None:
    """Positions as bytes: equal and in order if and only if the positions are."""
    positions = list(POOLS[axis]) + [text_position(axis, text) for text in POOLS[Axis.TEXT]]
    for one in positions:
        for other in positions:
            assert (key_of(axis, one) < key_of(axis, other)) == (one < other)
            assert (key_of(axis, one) == key_of(axis, other)) == (one == other)


def test_late_keys_are_read_from_texts() -> None:
    """The same as the text's position, remembered or too long for that."""
    for text in ("İstanbul", "x" * 1000 + "ß"):
        assert late_key(Axis.FOLDED, text.encode()) == text.casefold().encode()


def test_hashes_that_all_fall_on_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where values find no place in the table of hashes, they are found by bisection."""
    texts = [f"value{place}" for place in range(200)]
    filters: list[Filter] = [(Range(A, Axis.TEXT, text_point(text)),) for text in texts]
    monkeypatch.setattr(hashing, "_place", lambda table, kin: False)
    paths = Paths()
    found = ranked(gathered(filters), paths)
    cells = rank(found.bounds, rows_of(paths, [{"a": text} for text in texts]).scanned)
    assert cells.rank.tolist() == found.low.tolist()


def test_a_text_that_nothing_names_has_no_rank_among_points() -> None:
    """On a dimension of points only; where there are ranges, its gap is its rank."""
    paths = Paths()
    points: list[Filter] = [(Range(A, Axis.TEXT, text_point(text)),) for text in ("a", "c")]
    bounds = ranked(gathered(points), paths).bounds
    assert rank(bounds, rows_of(paths, [{"a": "b"}]).scanned).rank.size == 0
    ranges: Filter = (Range(A, Axis.TEXT, Interval(after("a"), HIGHEST)),)
    scanned = rows_of(paths, [{"a": "b"}]).scanned
    assert rank(ranked(gathered([*points, ranges]), paths).bounds, scanned).rank.tolist() == [2]
