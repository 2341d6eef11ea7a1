"""A k-d tree over boxes: which of them an event's point lies in.

Theory of operation. The ranges of numbers that a filter asks for are a box, and the event's numbers a point.
On each dimension the cuts of all boxes are sorted, and everything becomes a rank among them: a box reaches
from the rank `low` of one cut to the rank `high` of another, and a value has the rank of the first cut behind
it. So the value lies in the box if low < rank <= high, open ends and closed ones alike, and integers that no
float holds as well: after the sorting, nothing is compared but small integers.

What a box does not ask for is *unbounded*: it reaches from below all ranks to above them. What an event lacks
has rank 0, which is in what is unbounded and in nothing else, for a range starts at rank 0 at least. So both
need no cases either.

With d dimensions a box is a point with 2d coordinates, its lows and its highs. A node of the tree divides its
boxes at the median of one coordinate; whether a box asks for an attribute at all is such a division too. The
coordinate is the one of least cost: the boxes of both sides, each side times the share of its ranks among
those of the node, which is about how often a point that came here goes on there. Where no division is worth
it, or few boxes are left, is a leaf. A node *tests* what all its boxes have in common, their hull, where that
is much narrower than the parent's.

Nodes stand in one list, each before those below it, and each knows the first behind them: a walk goes from
one to the next, and past all that is below a node whose test fails. In a leaf every box is checked.

An event with arrays has several ranks on a dimension. Tests ask whether low < the highest of them and the
lowest of them <= high, which finds all boxes that it may lie in, and maybe more.

Only the DIMENSIONS_MAX dimensions that most boxes ask for are looked at: more of them say little about where
to look, and cost space in every box. What a box asks for beside them is left to whoever asks, as `is_whole`
says.

The tree does not change; `kd_forest.py` adds and removes. Cost: to make it, O(n log n) for each dimension; of
a walk, O(n^(1 - 1/2d) + found) nodes, fewer the narrower the boxes; 12 bytes for each test of a node and each
range of a box.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from branchline.routing.compiled.memory import Ints
from branchline.routing.dimensions import Axis
from branchline.routing.event import Event
from branchline.routing.expression import Path
from branchline.routing.filters import Range
from branchline.routing.intervals import Cut
from branchline.routing.methods.kd_walk import Flat, Walked

DIMENSIONS_MAX = 24
LEAF = 8
"""Boxes that are not divided any further: to check them costs no more than to test more nodes."""
WORTH = 0.95
"""A division that leaves more than this share of the work is not made."""
NARROWER = 0.8
"""A hull is tested where its share of the parent's ranks is at most this."""
PRESENT = 0.5
"""How often an event has an attribute, for all that is known."""

_Asked: TypeAlias = tuple[int, int, int]
"""A dimension, the low and the high rank of what is asked on it."""
Box: TypeAlias = Sequence[Range]
"""Ranges on axes of numbers, of different attributes."""

_UNBOUNDED_LOW, _UNBOUNDED_HIGH = -1, 2**31 - 1


class KdTree:
    """Boxes, numbered from 0."""

    def __init__(self, boxes: Sequence[Box]) -> None:
        asked = Counter(each.path for box in boxes for each in box)
        # In the order of paths where as many ask: the tree follows from the boxes alone.
        chosen = sorted(sorted(asked), key=lambda path: -asked[path])[:DIMENSIONS_MAX]
        self._paths: list[Path] = chosen
        self._cuts: list[list[Cut]] = []
        place = {path: dimension for dimension, path in enumerate(chosen)}
        self.is_whole = [all(each.path in place for each in box) for box in boxes]
        """For each box, whether all that it asks for is looked at here."""
        low = np.full((len(chosen), len(boxes)), _UNBOUNDED_LOW, np.int32)
        high = np.full((len(chosen), len(boxes)), _UNBOUNDED_HIGH, np.int32)
        ends: list[set[Cut]] = [set() for _ in chosen]
        for box in boxes:
            for each in box:
                if each.path in place:
                    ends[place[each.path]].update(each.interval)
        self._cuts = [sorted(each) for each in ends]
        ranks = [{cut: rank for rank, cut in enumerate(cuts)} for cuts in self._cuts]
        for number, box in enumerate(boxes):
            for each in box:
                dimension = place.get(each.path)
                if dimension is not None:
                    low[dimension, number] = ranks[dimension][each.interval.low]
                    high[dimension, number] = ranks[dimension][each.interval.high]
        self._flat = _Building(low, high, np.array([len(cuts) for cuts in self._cuts], np.int32)).built()

    def __len__(self) -> int:
        return len(self.is_whole)

    def walk(self, event: Event) -> Walked:
        """The boxes that the event lies in; with arrays, those that it may lie in."""
        return self._flat.walk(*self._ranks(event))

    def describe(self) -> str:
        """How large the tree is, and what it looks at."""
        named = ", ".join(".".join(path) for path in self._paths)
        leaves = np.count_nonzero(np.diff(self._flat.arrays.box_first))
        return (
            f"{len(self)} boxes in {len(self._flat.arrays.skip)} nodes, {leaves} of them leaves, of {named}"
        )

    def _ranks(self, event: Event) -> tuple[Ints, Ints]:
        """The lowest and the highest rank of the event on each dimension."""
        least, most = np.zeros(len(self._paths), np.int32), np.zeros(len(self._paths), np.int32)
        attributes = event.attributes
        for dimension, path in enumerate(self._paths):
            if path[0] in attributes:
                values = event.positions(path, Axis.NUMBER)
                if values:
                    cuts = self._cuts[dimension]
                    ranks = [bisect_left(cuts, (0, value, 0.5)) for value in values]
                    least[dimension], most[dimension] = min(ranks), max(ranks)
        return least, most


class _Building:
    """A tree that is being made."""

    def __init__(self, low: Ints, high: Ints, cuts: Ints) -> None:
        self._low, self._high = low, high
        self._cuts = cuts
        self._skip: list[int] = []
        self._test_first, self._tests = [0], list[_Asked]()
        self._box_first, self._boxes = [0], list[int]()
        self._check_first, self._checks = [0], list[_Asked]()

    def built(self) -> Flat:
        """The whole tree."""
        dimensions, boxes = self._low.shape
        nowhere = np.full(dimensions, _UNBOUNDED_LOW), np.full(dimensions, _UNBOUNDED_HIGH)
        pending = [(np.arange(boxes), *nowhere, 0)] if boxes else []
        above: list[tuple[int, int]] = []
        """Nodes, and how deep they are, of which the first behind is not known yet."""
        while pending:
            which, outer_low, outer_high, depth = pending.pop()
            while above and above[-1][1] >= depth:
                self._skip[above.pop()[0]] = len(self._skip)
            above.append((len(self._skip), depth))
            self._skip.append(0)
            low, high = self._low[:, which], self._high[:, which]
            hull_low, hull_high = low.min(axis=1), high.max(axis=1)
            tested = self._test(hull_low, hull_high, outer_low, outer_high)
            side = self._divide(low, high, hull_low, hull_high) if dimensions and len(which) > LEAF else None
            if side is None:
                self._leaf(which)
            else:
                pending += [(which[~side], *tested, depth + 1), (which[side], *tested, depth + 1)]
            self._box_first.append(len(self._boxes))
        for node, _ in above:
            self._skip[node] = len(self._skip)
        return Flat(
            self._skip,
            *(self._test_first, self._tests),
            *(self._box_first, self._boxes),
            *(self._check_first, self._checks),
        )

    def _test(self, low: Ints, high: Ints, outer_low: Ints, outer_high: Ints) -> tuple[Ints, Ints]:
        """Let the node test what is much narrower than what was tested on the way. Gives what is now."""
        narrower = self._share(low, high, outer_low, outer_high) <= NARROWER
        for dimension in np.flatnonzero(narrower).tolist():
            self._tests.append((dimension, int(low[dimension]), int(high[dimension])))
        self._test_first.append(len(self._tests))
        return np.where(narrower, low, outer_low), np.where(narrower, high, outer_high)

    def _leaf(self, which: NDArray[np.int64]) -> None:
        for number in which.tolist():
            self._boxes.append(number)
            for dimension in np.flatnonzero(self._low[:, number] != _UNBOUNDED_LOW).tolist():
                ends = int(self._low[dimension, number]), int(self._high[dimension, number])
                self._checks.append((dimension, *ends))
            self._check_first.append(len(self._checks))

    def _divide(self, low: Ints, high: Ints, hull_low: Ints, hull_high: Ints) -> NDArray[np.bool_] | None:
        """Which boxes go to one side; None if it is not worth it."""
        count = low.shape[1]
        coordinates = np.concatenate([low, high])
        median = np.partition(coordinates, count // 2, axis=1)[:, count // 2, np.newaxis]
        side = coordinates < median
        side = np.where(side.any(axis=1, keepdims=True), side, coordinates <= median)
        one, other = side.sum(axis=1), (~side).sum(axis=1)
        lows, highs = np.concatenate([low, low]), np.concatenate([high, high])
        hulls = np.concatenate([hull_low, hull_low]), np.concatenate([hull_high, hull_high])
        cost = np.zeros(len(side))
        for which, boxes in ((side, one), (~side, other)):
            inner_low = np.where(which, lows, _UNBOUNDED_HIGH).min(axis=1)
            inner_high = np.where(which, highs, _UNBOUNDED_LOW).max(axis=1)
            cost += boxes * self._share(inner_low, inner_high, *hulls)
        cost[(one == 0) | (other == 0)] = np.inf
        best = int(cost.argmin())
        return side[best] if cost[best] <= WORTH * count else None

    def _share(self, low: Ints, high: Ints, outer_low: Ints, outer_high: Ints) -> NDArray[np.float64]:
        """How often a point of the outer hull is in the inner one, on each dimension by itself."""
        cuts = np.resize(self._cuts, len(low))
        width = np.minimum(high, cuts) - np.maximum(low, 0)
        outer = np.minimum(outer_high, cuts) - np.maximum(outer_low, 0)
        asks = (outer_low == _UNBOUNDED_LOW) & (low != _UNBOUNDED_LOW)
        share: NDArray[np.float64] = width / np.maximum(outer, 1) * np.where(asks, PRESENT, 1.0)
        return share
