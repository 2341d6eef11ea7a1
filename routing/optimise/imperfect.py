"""Imperfect merging: filters that are nearly one filter become one that matches a little more.

Theory of operation. Two filters on the same dimensions have a *hull*, the narrowest filter that covers both.
What of it neither of them asked for is *extra*: events that match it are sent for nothing. Filters are merged
into their hull as long as the share of the extra in it, as selectivity estimates it, is at most a bound. A
merged filter remembers how much was asked for beneath it, so that the bound holds for what was there at the
beginning, however often it is merged again.

The pairs that are tried are neighbours in an order of the filters with the same dimensions, one order for
each dimension, in which the filters that differ on that dimension only stand side by side. Of those that are
not above the bound the best come first; then the rest is tried again. Nothing hangs on the order in which
filters came.

Shares are those that the filters themselves suggest (`selectivity.py`), also where others were counted: the
share of a hull must fit those of its parts. Estimates take constraints as independent. They may be wrong, and
then more is sent for nothing than the bound says. Nothing is ever lost. Entries with trees are left alone.

Cost: a round sorts each group once for each dimension, O(constraints · log); only groups in which something
was merged have another. Each round merges whatever pairs it can, so there are few rounds.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from math import prod
from typing import NamedTuple, TypeAlias

from branchline.routing import intervals
from branchline.routing.filters import Constraint, Contains, Contradiction, Filter, Range, conjoin
from branchline.routing.optimise.entries import (
    Entry,
    constraint_order,
    filter_order,
    in_order,
    plain,
    separate,
)
from branchline.routing.optimise.protocols import Optimisation, Selectivity, Smaller
from branchline.routing.optimise.selectivity import Assumed

BOUND_PERCENT = 10
"""Unless another bound is given."""

_APART = 2
"""Dimensions on which two filters that are merged may differ: beyond, hardly any hull is within a bound."""


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


class _Pair(NamedTuple):
    """Two filters that may be merged, and what that would give."""

    extra: float
    one: Filter
    other: Filter
    hull: Filter
    asked: float


class _Merger:
    def __init__(self, bound: float, selectivity: Selectivity) -> None:
        self._bound, self._selectivity = bound, selectivity
        self._shares: dict[Constraint, float] = {}
        self._asked: dict[Filter, float] = {}
        """The filters that are left, with the share of events that was asked for beneath each."""

    def merge(self, filters: Iterable[Filter]) -> list[Filter]:
        """Filters that hold at least for what these do."""
        groups: dict[_Dimensions, set[Filter]] = {}
        for each in filters:
            self._asked[each] = self._share(each)
            groups.setdefault(_dimensions(each), set()).add(each)
        pending = set(groups)
        while pending:
            dimensions = min(pending)
            pending.discard(dimensions)
            for pair in self._best(groups[dimensions]):
                for each in (pair.one, pair.other):
                    groups[dimensions].discard(each)
                    del self._asked[each]
                self._asked[pair.hull] = max(pair.asked, self._asked.get(pair.hull, 0.0))
                wider = _dimensions(pair.hull)
                groups.setdefault(wider, set()).add(pair.hull)
                pending |= {dimensions, wider}
        return list(self._asked)

    def _best(self, group: set[Filter]) -> Iterator[_Pair]:
        """Pairs of the group that may be merged, the best ones first, and each filter in one of them only."""
        used: set[Filter] = set()
        for pair in sorted(self._pairs(group), key=_order):
            if pair.one not in used and pair.other not in used and pair.hull not in used:
                used |= {pair.one, pair.other, pair.hull}
                yield pair

    def _pairs(self, group: set[Filter]) -> Iterator[_Pair]:
        for last in range(len(next(iter(group), ()))):
            in_turn = [(filter_order((*each[:last], *each[last + 1 :], each[last])), each) for each in group]
            in_turn.sort()
            for (_, one), (_, other) in pairwise(in_turn):
                pair = self._pair(one, other)
                if pair is not None and pair.extra <= self._bound:
                    yield pair

    def _pair(self, one: Filter, other: Filter) -> _Pair | None:
        if sum(mine != theirs for mine, theirs in zip(one, other, strict=True)) > _APART:
            return None
        wide: list[Constraint] = []
        shared: list[Constraint] | None = []
        for mine, theirs in zip(one, other, strict=True):
            if isinstance(mine, Range) and isinstance(theirs, Range) and mine != theirs:
                wide.append(mine._replace(interval=intervals.hull(mine.interval, theirs.interval)))
                common = intervals.intersect(mine.interval, theirs.interval)
                if common is None:
                    shared = None
                elif shared is not None:
                    shared.append(mine._replace(interval=common))
            else:
                wide.append(mine)
                if shared is not None:
                    shared.append(mine)
        hull = conjoin(wide)
        assert not isinstance(hull, Contradiction), "what is wider holds for what was there"
        both = 0.0 if shared is None else self._share(shared)
        mine_asked, their_asked = self._asked[one], self._asked[other]
        asked = max(mine_asked, their_asked, mine_asked + their_asked - both)
        whole = self._share(wide)
        return _Pair(max(0.0, 1 - asked / whole), one, other, hull, min(asked, whole))

    def _share(self, filter_: Iterable[Constraint]) -> float:
        return prod(map(self._constraint_share, filter_))

    def _constraint_share(self, constraint: Constraint) -> float:
        known = self._shares.get(constraint)
        if known is None:
            known = self._shares[constraint] = self._selectivity.share(constraint)
        return known


def _order(pair: _Pair) -> tuple[object, ...]:
    return pair.extra, filter_order(pair.one), filter_order(pair.other)


_Dimensions: TypeAlias = tuple[tuple[object, ...], ...]


def _dimensions(filter_: Filter) -> _Dimensions:
    """What filters must have in common to be merged: their dimensions, and their words."""
    return tuple(
        constraint_order(each) if isinstance(each, Contains) else (each.path, each.axis) for each in filter_
    )


def make(number: int | None) -> Optimisation:
    return Imperfect((BOUND_PERCENT if number is None else number) / 100)
