"""Predicate replacement: a constraint gives way to a wider one that is there anyway.

Theory of operation. What an index of predicates costs are the different predicates in it. If every filter
that has `price < 10` has `price < 12` in its place, which others use, there is one predicate less to keep and
to look up, and no filter less; some events are sent for nothing. A constraint may be replaced by one that
covers it, is used already, and is satisfied by a share of events that is not larger by more than a bound (the
*degradation*, as selectivity estimates it).

The constraints of a dimension are taken from the widest to the narrowest: one that a wider one which stays
can stand for is replaced, by the one with the least degradation; else it stays. So what replaces is never
replaced itself, and the bound holds for each constraint as it was. Words are replaced by words that they
contain.

Entries with trees are left alone.

Cost: sorting; and for each constraint one comparison, in arrays, with the ranges of its dimension that stay.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from branchline.routing.filters import (
    Constraint,
    Contains,
    Contradiction,
    Filter,
    Range,
    conjoin,
    constraint_order,
)
from branchline.routing.intervals import is_point
from branchline.routing.optimise.entries import Entry, in_order, plain, separate
from branchline.routing.optimise.protocols import Optimisation, Selectivity, Smaller

BOUND_PERCENT = 10
"""Unless another bound is given."""


class Replacement:
    """Replace constraints by wider ones that are there anyway."""

    learns = False

    def __init__(self, bound: float) -> None:
        """With a bound for what the share of a constraint may grow by, from 0 to 1."""
        self._bound = bound

    def optimise(self, entries: Sequence[Entry], selectivity: Selectivity) -> Smaller:
        entries = separate(entries)
        filters = [entry.cover[0] for entry in entries if entry.tree is None]
        instead = replacements(filters, selectivity, self._bound)
        trees = [entry for entry in entries if entry.tree is not None]
        made = [*trees, *(plain(_replaced(filter_, instead)) for filter_ in filters)]
        return Smaller(in_order(made), {"predicates_replaced": len(instead)})


def replacements(
    filters: Iterable[Filter], selectivity: Selectivity, bound: float
) -> dict[Constraint, Constraint]:
    """What each constraint is replaced by, for those that are."""
    of_kind: dict[tuple[object, ...], set[Constraint]] = {}
    for filter_ in filters:
        for each in filter_:
            of_kind.setdefault((each.path, each.axis, type(each)), set()).add(each)
    made: dict[Constraint, Constraint] = {}
    for constraints in of_kind.values():
        shares = {each: selectivity.share(each) for each in constraints}
        ordered = sorted(constraints, key=lambda each: (-shares[each], constraint_order(each)))
        stay = _Words(shares, bound) if isinstance(ordered[0], Contains) else _Ranges(ordered, shares, bound)
        for each in ordered:
            wider = stay.wider(each)  # type: ignore[arg-type]
            if wider is None:
                stay.add(each)  # type: ignore[arg-type]
            else:
                made[each] = wider
    return made


class _Ranges:
    """Ranges of one dimension that stay."""

    def __init__(self, ordered: Sequence[Constraint], shares: dict[Constraint, float], bound: float) -> None:
        cuts = sorted({cut for each in ordered if isinstance(each, Range) for cut in each.interval})
        self._ranks = {cut: rank for rank, cut in enumerate(cuts)}
        self._shares, self._bound = shares, bound
        self._lows, self._highs = np.empty(len(ordered), np.int64), np.empty(len(ordered), np.int64)
        self._all: list[Range] = []

    def add(self, constraint: Range) -> None:
        if not is_point(constraint.interval):
            # A point covers nothing but itself.
            self._lows[len(self._all)], self._highs[len(self._all)] = self._ends(constraint)
            self._all.append(constraint)

    def _ends(self, constraint: Range) -> tuple[int, int]:
        return self._ranks[constraint.interval.low], self._ranks[constraint.interval.high]

    def wider(self, constraint: Range) -> Range | None:
        """The narrowest of them that covers the constraint within the bound: they come widest first."""
        low, high = self._ends(constraint)
        count = len(self._all)
        covering = np.flatnonzero((self._lows[:count] <= low) & (self._highs[:count] >= high))
        if not len(covering):
            return None
        found = self._all[covering[-1]]
        return found if self._shares[found] - self._shares[constraint] <= self._bound else None


class _Words:
    """Words on one dimension that stay."""

    def __init__(self, shares: dict[Constraint, float], bound: float) -> None:
        self._shares, self._bound = shares, bound
        self._all: dict[str, Contains] = {}

    def add(self, constraint: Contains) -> None:
        self._all[constraint.word] = constraint

    def wider(self, constraint: Contains) -> Contains | None:
        word = constraint.word
        pieces = {word[first:last] for first in range(len(word)) for last in range(first + 1, len(word) + 1)}
        found = [self._all[piece] for piece in sorted(pieces) if piece in self._all]
        best = min(found, key=lambda each: self._shares[each], default=None)
        if best is None or self._shares[best] - self._shares[constraint] > self._bound:
            return None
        return best


def _replaced(filter_: Filter, instead: dict[Constraint, Constraint]) -> Filter:
    made = conjoin(instead.get(each, each) for each in filter_)
    assert not isinstance(made, Contradiction), "what is wider holds for what was there"
    return made


def make(number: int | None) -> Optimisation:
    return Replacement((BOUND_PERCENT if number is None else number) / 100)
