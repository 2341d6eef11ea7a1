"""Imperfect merging: filters that are nearly one filter become one that matches a little more.

Theory of operation. Two filters on the same dimensions have a *hull*, the narrowest filter that covers both.
What of it neither of them asked for is *extra*: events that match it are sent for nothing. Filters are merged
into their hull as long as the share of the extra in it, as selectivity estimates it, is at most a bound. A
merged filter remembers how much was asked for beneath it, so that the bound holds for what was there at the
beginning, however often it is merged again.

Filters stand in *rows*, one for each of their ranges: those with the same points and words and the same
dimensions, in the order of that range; where it is a point, those that are equal but for it. Neighbours are
tried, over all rows the best pair first; what is merged has other neighbours, and these are tried too, until
no two neighbours are within the bound. Which pair is best hangs on the filters alone, and not on the order in
which they came.

Shares are those that the filters themselves suggest (`selectivity.py`), also where others were counted: the
share of a hull must fit those of its parts. Estimates take constraints as independent. They may be wrong, and
then more is sent for nothing than the bound says. Nothing is ever lost. Entries with trees are left alone.

Cost: O(constraints · log): each filter is in as many rows as it has ranges, and each merger takes two
filters out of theirs and puts one in.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import pairwise
from math import prod
from typing import TypeAlias

from branchline.routing import intervals
from branchline.routing.filters import (
    Constraint,
    Contradiction,
    Filter,
    Range,
    conjoin,
    filter_order,
    intersect,
)
from branchline.routing.intervals import Interval, is_point
from branchline.routing.optimise.entries import Entry, in_order, plain, separate
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


_Row: TypeAlias = tuple[object, ...]
"""What filters have in common that stand side by side in the order of one dimension."""
_Order: TypeAlias = list[tuple[object, ...]]
_Place: TypeAlias = tuple[Interval, _Order, Filter]


class _Merger:
    """Filters that are left, and the pairs of them that may be merged."""

    def __init__(self, bound: float, selectivity: Selectivity) -> None:
        self._bound, self._selectivity = bound, selectivity
        self._shares: dict[Constraint, float] = {}
        self._asked: dict[Filter, float] = {}
        """The filters that are left, with the share of events that was asked for beneath each."""
        self._rows: dict[_Row, list[_Place]] = {}
        self._pairs: list[tuple[float, _Order, _Order, Filter, Filter]] = []
        """A heap, the least extra first."""

    def merge(self, filters: Iterable[Filter]) -> list[Filter]:
        """Filters that hold at least for what these do."""
        for each in filters:
            self._asked[each] = self._share(each)
            for row, place in _places(each):
                self._rows.setdefault(row, []).append(place)
        for places in self._rows.values():
            places.sort()
            for one, other in pairwise(places):
                self._push(one, other)
        while self._pairs:
            _, _, _, first, second = heappop(self._pairs)
            if first in self._asked and second in self._asked:
                self._merge(first, second)
        return list(self._asked)

    def _merge(self, one: Filter, other: Filter) -> None:
        wide, asked = _hull(one, other), self._asked_together(one, other)
        for each in (one, other):
            if each != wide:
                self._remove(each)
        if wide in self._asked:
            self._asked[wide] = max(asked, self._asked[wide])
        else:
            self._add(wide, asked)

    def _add(self, filter_: Filter, asked: float) -> None:
        self._asked[filter_] = asked
        for row, place in _places(filter_):
            places = self._rows.setdefault(row, [])
            at = bisect_left(places, place)
            places.insert(at, place)
            for one, other in pairwise(places[max(0, at - 1) : at + 2]):
                self._push(one, other)

    def _remove(self, filter_: Filter) -> None:
        del self._asked[filter_]
        for row, place in _places(filter_):
            places = self._rows[row]
            at = bisect_left(places, place)
            del places[at]
            if 0 < at < len(places):
                self._push(places[at - 1], places[at])

    def _push(self, one: _Place, other: _Place) -> None:
        """Note two neighbours, if little of their hull was not asked for."""
        whole = self._share(_hull(one[2], other[2]))
        extra = max(0.0, 1 - self._asked_together(one[2], other[2]) / whole)
        if extra <= self._bound:
            heappush(self._pairs, (extra, one[1], other[1], one[2], other[2]))

    def _asked_together(self, one: Filter, other: Filter) -> float:
        """The share of events that was asked for beneath the two, what both ask for counted once."""
        both = intersect(one, other)
        mine, theirs = self._asked[one], self._asked[other]
        return max(mine, theirs, mine + theirs - (0.0 if both is None else self._share(both)))

    def _share(self, filter_: Filter) -> float:
        return prod(map(self._constraint_share, filter_))

    def _constraint_share(self, constraint: Constraint) -> float:
        known = self._shares.get(constraint)
        if known is None:
            known = self._shares[constraint] = self._selectivity.share(constraint)
        return known


def _places(filter_: Filter) -> Iterator[tuple[_Row, _Place]]:
    """The rows that a filter stands in, and where."""
    wide = tuple(each.dimension if _is_wide(each) else each for each in filter_)
    order = filter_order(filter_)
    for place, each in enumerate(filter_):
        if isinstance(each, Range):
            # Where this one is a point, all the rest must be equal: points apart have much between them.
            common = wide if _is_wide(each) else (*filter_[:place], None, *filter_[place + 1 :])
            yield (each.dimension, common), (each.interval, order, filter_)


def _is_wide(constraint: Constraint) -> bool:
    return isinstance(constraint, Range) and not is_point(constraint.interval)


def _hull(one: Filter, other: Filter) -> Filter:
    """The narrowest filter that covers both, which have the same dimensions."""
    made = conjoin(
        mine._replace(interval=intervals.hull(mine.interval, theirs.interval))
        if isinstance(mine, Range) and isinstance(theirs, Range)
        else mine
        for mine, theirs in zip(one, other, strict=True)
    )
    assert not isinstance(made, Contradiction), "what is wider holds for what was there"
    return made


def make(number: int | None) -> Optimisation:
    return Imperfect((BOUND_PERCENT if number is None else number) / 100)
