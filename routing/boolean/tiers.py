"""Boolean matching with arrays: what `plain.py` does, for trees that are many and do not change.

Theory of operation. Predicates stand in order, and an event has a rank on each dimension (`ordered.py`). The
ranges of a dimension are an implicit search tree: the middle one is the root of those left and right of it,
and `top` is the highest end of all below. So what an event fulfils there is found without a look at the rest.

Associations lie predicate by predicate; the counts of all trees are one array, and a tree whose count comes
to its least number is a candidate from that moment. Trees are rows of jumps (`jumps.py`).

A tier is never changed: a tree that is gone is marked by whoever asks.

Cost: some 22 bytes a leaf; of an event, a bisection for each dimension, one pass over the counts, and a few
ns for each association of what is fulfilled and each leaf that is asked.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from branchline.routing.boolean.forest import Flags, Ints, Longs, forest_of
from branchline.routing.boolean.jumps import HOLDS, Jumps, Shorts, jumps
from branchline.routing.boolean.ordered import Ordered, ordered
from branchline.routing.boolean.trees import Node, Predicate
from branchline.routing.compiled.freshness import fresh
from branchline.routing.compiled.kernels import kernel
from branchline.routing.event import Event

_DEPTH = 64
"""Of the search tree of a dimension, at most."""


class Arrays(NamedTuple):
    """A tier as kernels see it."""

    low: Ints
    """For each range the number of its low cut on its dimension: it holds for ranks above that."""
    high: Ints
    top: Ints
    """The highest `high` of the range and of all below it in the search tree."""
    known_as: Ints
    """For each predicate the number that all tiers know it by."""
    association_first: Longs
    association: Ints
    """For each predicate the trees that it stands in, each as often as it does."""
    least: Shorts
    counts: Shorts
    row: Ints
    """For each tree the number that it is known by."""
    leaf_first: Longs
    leaf: Ints
    yes: Shorts
    no: Shorts
    held: Longs
    """For each predicate the last event that fulfilled it."""


class Asked(NamedTuple):
    """What all tiers share while one event is matched; predicates and trees by the numbers that all know."""

    event: int
    """A number of its own for each event, from 1 on."""
    known: Longs
    """For each predicate the last event that fulfilled it."""
    uses: Ints
    """In how many leaves of trees that are there each predicate stands."""
    alive: Flags
    """Which trees are there."""
    fulfilled: Ints
    holding: Ints
    """Where the numbers of predicates that are fulfilled, and of trees that hold, are put."""


class FlatTrees:
    """Trees by number, in arrays."""

    def __init__(self, rows: Jumps, order: Ordered, known_as: Ints, numbers: Ints) -> None:
        """Trees with these numbers, of predicates that all tiers know as these."""
        self.trees: Sequence[tuple[int, Node]] = ()
        self._order = order
        top = order.high.copy()
        for ranked in order.ranks:
            _raise_tops(ranked.first, ranked.end, top)
        place = np.zeros(known_as.size, np.int32)
        place[order.number] = np.arange(len(order), dtype=np.int32)
        leaf = place[rows.leaf]
        first = np.concatenate([[0], np.cumsum(np.bincount(leaf, minlength=len(order)))]).astype(np.int64)
        association = np.empty(leaf.size, np.int32)
        _associate(rows.first, leaf, first[:-1].copy(), association)
        self.arrays = Arrays(
            order.low,
            order.high,
            top,
            known_as[order.number],
            first,
            association,
            rows.least,
            np.zeros(rows.least.size, np.int16),
            numbers,
            rows.first,
            leaf,
            rows.yes,
            rows.no,
            np.zeros(len(order), np.int64),
        )

    @classmethod
    def of(cls, trees: Sequence[tuple[int, Node]], numbers: dict[Predicate, int]) -> "FlatTrees":
        """These trees, none of which is TRUE or FALSE; their predicates have the numbers that are given."""
        forest = forest_of(tree for _, tree in trees)
        made = cls(
            jumps(forest.nodes),
            ordered(forest.predicates),
            np.array([numbers[each] for each in forest.predicates], np.int32),
            np.array([number for number, _ in trees], np.int32),
        )
        made.trees = trees
        return made

    def __len__(self) -> int:
        return len(self.arrays.row)

    @property
    def nbytes(self) -> int:
        """Of the arrays, without the cuts and words themselves."""
        return sum(each.nbytes for each in self.arrays)

    def match(self, event: Event, asked: Asked, fulfilled: int, holding: int) -> tuple[int, int, int]:
        """Add what is fulfilled and what holds to as many as there are: how many there are then, and how
        many trees were evaluated.
        """
        ranks = np.array([*self._order.where(event)], np.int64)
        words = np.array([*self._order.contained(event)], np.int64)
        return _match(self.arrays, asked, ranks, words, fulfilled, holding)


@fresh
@kernel
def _associate(leaf_first: Longs, leaf: Ints, room: Longs, association: Ints) -> None:
    """Put each tree to the predicates of its leaves; `room` says where the next one of each goes."""
    for tree in range(leaf_first.size - 1):
        for place in range(leaf_first[tree], leaf_first[tree + 1]):
            association[room[leaf[place]]] = tree
            room[leaf[place]] += 1


@fresh
@kernel
def _raise_tops(first: int, end: int, top: Ints) -> None:
    """Raise the top of each range to that of all below it, deepest first."""
    order = np.empty((end - first, 2), np.int64)
    size, seen = 0, 0
    if first < end:
        order[0, 0], order[0, 1] = first, end
        size = 1
    while seen < size:
        low, high = order[seen, 0], order[seen, 1]
        middle = (low + high) >> 1
        if low < middle:
            order[size, 0], order[size, 1] = low, middle
            size += 1
        if middle + 1 < high:
            order[size, 0], order[size, 1] = middle + 1, high
            size += 1
        seen += 1
    for place in range(size - 1, -1, -1):
        low, high = order[place, 0], order[place, 1]
        middle = (low + high) >> 1
        if low < middle:
            top[middle] = max(top[middle], top[(low + middle) >> 1])
        if middle + 1 < high:
            top[middle] = max(top[middle], top[(middle + 1 + high) >> 1])


@kernel
def _fulfil(arrays: Arrays, predicate: int, candidates: Ints, found: int) -> int:
    """Count a predicate that is fulfilled, for all trees that have it; how many candidates there are then."""
    for place in range(arrays.association_first[predicate], arrays.association_first[predicate + 1]):
        tree = arrays.association[place]
        arrays.counts[tree] += 1
        if arrays.counts[tree] == arrays.least[tree]:
            candidates[found] = tree
            found += 1
    return found


@kernel
def _note(arrays: Arrays, asked: Asked, predicate: int, fulfilled: int) -> int:
    """Note that a predicate is fulfilled; how many are then, each once, and of trees that are gone none."""
    number = arrays.known_as[predicate]
    if asked.known[number] != asked.event and asked.uses[number] > 0:
        asked.known[number] = asked.event
        asked.fulfilled[fulfilled] = number
        return fulfilled + 1
    return fulfilled


@kernel
def _holds(arrays: Arrays, event: int, tree: int) -> bool:
    first, at = arrays.leaf_first[tree], 0
    while at >= 0:
        leaf = first + at
        at = arrays.yes[leaf] if arrays.held[arrays.leaf[leaf]] == event else arrays.no[leaf]
    return at == HOLDS


@fresh
@kernel
def _match(
    arrays: Arrays, asked: Asked, ranks: Longs, words: Longs, fulfilled: int, holding: int
) -> tuple[int, int, int]:
    """Match an event that has these ranks, three numbers each, and these words."""
    arrays.counts[:] = 0
    candidates = np.empty(arrays.counts.size, np.int32)
    found = 0
    lows, highs = np.empty(_DEPTH, np.int64), np.empty(_DEPTH, np.int64)
    for asked_at in range(0, ranks.size, 3):
        rank = ranks[asked_at + 2]
        lows[0], highs[0] = ranks[asked_at], ranks[asked_at + 1]
        depth = 1
        while depth:
            depth -= 1
            low, high = lows[depth], highs[depth]
            middle = (low + high) >> 1
            if low >= high or arrays.top[middle] < rank:
                continue
            lows[depth], highs[depth] = low, middle
            depth += 1
            if arrays.low[middle] < rank:
                lows[depth], highs[depth] = middle + 1, high
                depth += 1
                if arrays.high[middle] >= rank and arrays.held[middle] != asked.event:
                    arrays.held[middle] = asked.event
                    fulfilled = _note(arrays, asked, middle, fulfilled)
                    found = _fulfil(arrays, middle, candidates, found)
    for word in words:
        if arrays.held[word] != asked.event:
            arrays.held[word] = asked.event
            fulfilled = _note(arrays, asked, word, fulfilled)
            found = _fulfil(arrays, word, candidates, found)
    evaluated = 0
    for place in range(found):
        tree = candidates[place]
        if asked.alive[arrays.row[tree]]:
            evaluated += 1
            if _holds(arrays, asked.event, tree):
                asked.holding[holding] = arrays.row[tree]
                holding += 1
    return fulfilled, holding, evaluated
