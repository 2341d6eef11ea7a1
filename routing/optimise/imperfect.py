"""Imperfect merging: filters that are nearly one filter become one that matches a little more.

Theory of operation. Two filters that say the same but on one dimension have a *hull*: the same with the
narrowest range there that covers both. What of it neither of them asked for is *extra*: events that match it
are sent for nothing. Filters are merged into their hull as long as the share of the extra in it, as
selectivity estimates it, is at most a bound. A merged filter remembers how much was asked for beneath it, so
that the bound holds for what was there at the beginning, however often it is merged again.

The filters that differ on one dimension only are a *line* of ranges. Neighbours on a line are tried, over all
lines the best pair first; what is merged has other neighbours, on all lines that it is on, and these are
tried too, until no two neighbours are within the bound. Which pair is best hangs on the filters alone, and
not on the order in which they came.

Shares are those that the filters themselves suggest (`selectivity.py`), also where others were counted: the
share of a hull must fit those of its parts. Estimates take constraints as independent. They may be wrong, and
then more is sent for nothing than the bound says. Nothing is ever lost. Entries with trees are left alone.

Cost: O(constraints · log): each filter is on as many lines as it has ranges, and each merger takes two
filters off theirs and puts one on.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import pairwise
from math import prod
from typing import TypeAlias

from branchline.routing import intervals
from branchline.routing.dimensions import Dimension
from branchline.routing.filters import Constraint, Contradiction, Filter, Range, conjoin
from branchline.routing.intervals import Interval
from branchline.routing.optimise.entries import Entry, filter_order, in_order, plain, separate
from branchline.routing.optimise.protocols import Optimisation, Selectivity, Smaller
from branchline.routing.optimise.selectivity import Assumed

BOUND_PERCENT = 10
"""Unless another bound is given."""


class Imperfect:
    """Merge filters into their hull, as long as little of it was not asked for."""

    learns = False

    def __init__(self, bound: float) -> None:
        """With a bound for the share that was not asked for, from 0 to 1."""
        self._bound = bound

    def optimise(self, entries: Sequence[Entry], selectivity: Selectivity) -> Smaller:
        entries = separate(entries)
        trees = [entry for entry in entries if entry.tree is not None]
        filters = [entry.cover[0] for entry in entries if entry.tree is None]
        # A hull is a range that nobody has counted: it must be measured as what it is made of is.
        shares = selectivity if isinstance(selectivity, Assumed) else Assumed(entries)
        made = in_order([*trees, *map(plain, _Merger(self._bound, shares).merge(filters))])
        return Smaller(made, {"filters_merged_imperfectly": len(entries) - len(made)})


_Line: TypeAlias = tuple[Dimension, Filter]
"""A dimension and what filters say beside it: those of one line differ on that dimension only."""

_Order: TypeAlias = list[tuple[object, ...]]


class _Merger:
    """Filters that are left, and the pairs of them that may be merged."""

    def __init__(self, bound: float, selectivity: Selectivity) -> None:
        self._bound, self._selectivity = bound, selectivity
        self._shares: dict[Constraint, float] = {}
        self._asked: dict[Filter, float] = {}
        """The filters that are left, with the share of events that was asked for beneath each."""
        self._lines: dict[_Line, list[Interval]] = {}
        """The ranges on each line, in order."""
        self._pairs: list[tuple[float, _Order, _Order, _Line, Interval, Interval]] = []
        """A heap of extra, the two filters' order, and the line and ranges of the two."""

    def merge(self, filters: Iterable[Filter]) -> list[Filter]:
        """Filters that hold at least for what these do."""
        for each in filters:
            self._asked[each] = self._share(each)
            for dimension, rest, interval in _lines(each):
                self._lines.setdefault((dimension, rest), []).append(interval)
        for line, ranges in self._lines.items():
            ranges.sort()
            for one, other in pairwise(ranges):
                self._push(line, one, other)
        while self._pairs:
            _, _, _, line, one, other = heappop(self._pairs)
            self._try(line, one, other)
        return list(self._asked)

    def _try(self, line: _Line, one: Interval, other: Interval) -> None:
        """Merge two filters of a line if they are still there."""
        first, second = _filter(line, one), _filter(line, other)
        if first not in self._asked or second not in self._asked:
            return
        asked = self._asked_together(line, one, other)
        wide = _filter(line, intervals.hull(one, other))
        for each in (first, second):
            if each != wide:
                self._remove(each)
        if wide in self._asked:
            self._asked[wide] = max(asked, self._asked[wide])
        else:
            self._add(wide, asked)

    def _add(self, filter_: Filter, asked: float) -> None:
        self._asked[filter_] = asked
        for dimension, rest, interval in _lines(filter_):
            ranges = self._lines.setdefault((dimension, rest), [])
            place = bisect_left(ranges, interval)
            ranges.insert(place, interval)
            for one, other in pairwise(ranges[max(0, place - 1) : place + 2]):
                self._push((dimension, rest), one, other)

    def _remove(self, filter_: Filter) -> None:
        del self._asked[filter_]
        for dimension, rest, interval in _lines(filter_):
            ranges = self._lines[dimension, rest]
            place = bisect_left(ranges, interval)
            del ranges[place]
            if 0 < place < len(ranges):
                self._push((dimension, rest), ranges[place - 1], ranges[place])

    def _push(self, line: _Line, one: Interval, other: Interval) -> None:
        """Note two neighbours of a line, if little of their hull was not asked for."""
        whole = self._share(line[1]) * self._on(line[0], intervals.hull(one, other))
        extra = max(0.0, 1 - self._asked_together(line, one, other) / whole)
        if extra <= self._bound:
            mine, theirs = (filter_order(_filter(line, each)) for each in (one, other))
            heappush(self._pairs, (extra, mine, theirs, line, one, other))

    def _asked_together(self, line: _Line, one: Interval, other: Interval) -> float:
        """The share of events that was asked for beneath the two, what both ask for counted once."""
        common = intervals.intersect(one, other)
        both = 0.0 if common is None else self._share(line[1]) * self._on(line[0], common)
        mine, theirs = (self._asked[_filter(line, each)] for each in (one, other))
        return max(mine, theirs, mine + theirs - both)

    def _on(self, dimension: Dimension, interval: Interval) -> float:
        return self._constraint_share(Range(*dimension, interval))

    def _share(self, filter_: Filter) -> float:
        return prod(map(self._constraint_share, filter_))

    def _constraint_share(self, constraint: Constraint) -> float:
        known = self._shares.get(constraint)
        if known is None:
            known = self._shares[constraint] = self._selectivity.share(constraint)
        return known


def _lines(filter_: Filter) -> Iterator[tuple[Dimension, Filter, Interval]]:
    """The lines that a filter is on, and its range on each."""
    for place, each in enumerate(filter_):
        if isinstance(each, Range):
            yield each.dimension, filter_[:place] + filter_[place + 1 :], each.interval


def _filter(line: _Line, interval: Interval) -> Filter:
    made = conjoin((*line[1], Range(*line[0], interval)))
    assert not isinstance(made, Contradiction), "what is wider holds for what was there"
    return made


def make(number: int | None) -> Optimisation:
    return Imperfect((BOUND_PERCENT if number is None else number) / 100)
