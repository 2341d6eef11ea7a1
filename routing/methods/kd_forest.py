"""Boxes that come and go: a forest of k-d trees, of which each is made once.

A k-d tree that boxes are added to one by one gets deep where they are alike, and its hulls only widen. So a
tree is never changed. What is added *waits*, and is asked one by one; when more than WAITING_MAX wait, they
become a tree, together with all trees that have no more than RATIO times the boxes: so there are few trees,
each well balanced, and each filter is in one that is made anew only a few times. What is removed is *dead*:
it stays in its tree and is left out when found. A tree of which more than half is dead is taken down, and
what lives in it waits again.

What is found follows from what is there, and not from how it came.

Cost: of adding, O(log n) times what it takes to make a tree, shared by all; of removing, O(1); of a walk,
that of each tree and WAITING_MAX filters.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from branchline.routing.dimensions import Axis
from branchline.routing.event import Event
from branchline.routing.filters import Filter, Range
from branchline.routing.methods.kd_tree import KdTree

What = TypeVar("What")

WAITING_MAX = 16
RATIO = 4
DEAD_MIN = 16
"""Fewer dead do not matter, whatever the size of the tree."""


def box_of(filter_: Filter) -> list[Range]:
    """The ranges of numbers that a filter asks for."""
    return [each for each in filter_ if each.axis is Axis.NUMBER and isinstance(each, Range)]


@dataclass(slots=True)
class _Grown:
    """A tree, and which filters its boxes are of."""

    tree: KdTree
    rows: Sequence[int]
    is_sure: Sequence[bool]
    """For each box, whether it is all that its filter asks for."""
    dead: int = 0


class KdForest(Generic[What]):
    """Filters, each with a box of at least one range, and something that it stands for.

    That is given back when it is found, for to look it up by a filter takes longer than to find it.
    """

    def __init__(self) -> None:
        self._rows: dict[Filter, int] = {}
        self._filters: dict[int, tuple[Filter, What]] = {}
        """By row, a number that is never given again: what is not there is dead."""
        self._next = 0
        self._waiting: dict[int, None] = {}
        self._trees: list[_Grown] = []
        """The largest first."""
        self._tree_of: dict[int, _Grown] = {}
        self.counts = dict.fromkeys(("kd_visited", "kd_checked", "kd_waiting"), 0)
        """What the last walk did: nodes it came by, boxes it checked, filters that waited."""

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, filter_: Filter, what: What) -> None:
        """From now on the filter stands for this."""
        row = self._rows[filter_] = self._next
        self._next += 1
        self._filters[row] = filter_, what
        self._waiting[row] = None

    def remove(self, filter_: Filter) -> None:
        """The filter is no longer there."""
        row = self._rows.pop(filter_)
        del self._filters[row]
        tree = self._tree_of.pop(row, None)
        if tree is None:
            del self._waiting[row]
        else:
            tree.dead += 1

    def holding(self, event: Event) -> Iterator[What]:
        """What the filters stand for that hold for the event; with arrays, if each constraint may choose."""
        self._settle()
        counts = self.counts = {"kd_visited": 0, "kd_checked": 0, "kd_waiting": len(self._waiting)}
        for grown in self._trees:
            found, visited, checked = grown.tree.walk(event)
            counts["kd_visited"] += visited
            counts["kd_checked"] += checked
            arrays = event.met_array
            for box in found:
                known = self._filters.get(grown.rows[box])
                if known is None:
                    continue
                if (grown.is_sure[box] and not arrays) or event.may_match(known[:1]):
                    yield known[1]
        for row in self._waiting:
            filter_, what = self._filters[row]
            if event.may_match((filter_,)):
                yield what

    def describe(self) -> str:
        """The trees, for people."""
        lines = [f"{len(self)} filters, {len(self._waiting)} of them waiting"]
        lines += [f"{each.tree.describe()}; {each.dead} dead" for each in self._trees]
        return "\n".join(lines)

    def _settle(self) -> None:
        """Take down and make the trees that are due."""
        for grown in [each for each in self._trees if each.dead > max(DEAD_MIN, len(each.rows) // 2)]:
            self._trees = [each for each in self._trees if each is not grown]
            for row in grown.rows:
                if self._tree_of.pop(row, None) is not None:
                    self._waiting[row] = None
        if len(self._waiting) <= WAITING_MAX:
            return
        rows = sorted(self._waiting)
        while self._trees and len(self._trees[-1].rows) <= RATIO * len(rows):
            rows = [row for row in self._trees.pop().rows if row in self._filters] + rows
        self._waiting.clear()
        self._trees.append(self._grow(rows))

    def _grow(self, rows: list[int]) -> _Grown:
        filters = [self._filters[row][0] for row in rows]
        boxes = [box_of(filter_) for filter_ in filters]
        tree = KdTree(boxes)
        sure = [
            tree.is_whole[place] and len(boxes[place]) == len(filters[place]) for place in range(len(rows))
        ]
        grown = _Grown(tree, rows, sure)
        self._tree_of |= dict.fromkeys(rows, grown)
        return grown
