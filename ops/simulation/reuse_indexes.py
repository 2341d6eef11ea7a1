"""Indexes that lookup reuse is measured with: all events that come by are matched together, and it is timed.

A loop that is called for one event takes longer to be called than to match. So what a match takes is measured
with many events at a time, as a router does it, and each event is charged the mean: that is what the method
takes, without what Python takes to ask for it.

- `Counting`: the forwarding table of `routing/compiled/counting.py`. Of groups, as of interfaces, it finds
  one filter each, and stops when all that are open are found.
- `Kd`: a k-d tree of `routing/methods/kd_tree.py`. Its loop is called once for each event, some µs of which
  are in the figures; it finds all boxes, whatever is asked.
"""

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from branchline.routing.compiled.counting import CountingIndex, FlatTable
from branchline.routing.compiled.paths import Paths
from branchline.routing.compiled.reading import rows_of
from branchline.routing.compiled.spans import Scanned
from branchline.routing.compiled.texts import Longs
from branchline.routing.event import Event
from branchline.routing.filters import Filter
from branchline.routing.methods.kd_forest import box_of
from branchline.routing.methods.kd_tree import KdTree
from branchline.routing.values import JsonValue


class Charged(NamedTuple):
    """What is found for each of several events, and what a match takes."""

    found: list[list[int]]
    ns: int


class Index(Protocol):
    """Filters by number."""

    def every(self, events: Sequence[int]) -> Charged:
        """All filters that match."""
        ...

    def groups(self, events: Sequence[int], group: Sequence[int], closed: frozenset[int]) -> Charged:
        """The groups that have a filter that matches, each filter being of one, but for those closed."""
        ...


class Maker(Protocol):
    """A kind of index, of the same events."""

    def __init__(self, events: Sequence[Mapping[str, JsonValue]]) -> None: ...

    def index(self, filters: Sequence[Filter]) -> Index: ...


class Counting:
    """Forwarding tables."""

    def __init__(self, events: Sequence[Mapping[str, JsonValue]]) -> None:
        self._paths, self._events = Paths(), events
        self._scanned: Scanned | None = None

    def index(self, filters: Sequence[Filter]) -> Index:
        made = CountingIndex.of(filters, self._paths)
        if self._scanned is None:
            self._scanned = rows_of(self._paths, self._events).scanned
        return _Table(made, self._scanned)


class _Table:
    def __init__(self, index: CountingIndex, scanned: Scanned) -> None:
        self._index, self._scanned = index, scanned
        self._each = FlatTable(index, np.arange(len(index), dtype=np.int32), len(index), 0)

    def every(self, events: Sequence[int]) -> Charged:
        return self._matched(self._each, events, ())

    def groups(self, events: Sequence[int], group: Sequence[int], closed: frozenset[int]) -> Charged:
        used, of = np.unique(np.array(group, np.int32), return_inverse=True)
        table = FlatTable(self._index, of.astype(np.int32), used.size, 0)
        shut = [place for place, each in enumerate(used.tolist()) if each in closed]
        filters, ns = self._matched(table, events, shut)
        return Charged([[group[each] for each in found] for found in filters], ns)

    def _matched(self, table: FlatTable, events: Sequence[int], closed: Sequence[int]) -> Charged:
        scanned = _rows(self._scanned, np.array(events))
        table.match(_rows(self._scanned, np.array(events[:1])), closed=closed)  # what is done once
        begin = time.process_time_ns()
        counted = table.match(scanned, closed=closed)
        ns = time.process_time_ns() - begin
        found = [part.tolist() for part in np.split(counted.filter, counted.first[1:-1])]
        return Charged(found, ns // len(events))


def _rows(scanned: Scanned, rows: Longs) -> Scanned:
    """Some rows of those that were scanned."""
    sizes = np.diff(scanned.first)[rows]
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    where = np.arange(first[-1]) + np.repeat(scanned.first[rows] - first[:-1], sizes)
    return Scanned(
        scanned.text,
        first,
        scanned.path[where],
        scanned.kind[where],
        scanned.start[where],
        scanned.end[where],
        np.arange(rows.size, dtype=np.int32),
    )


class Kd:
    """K-d trees."""

    def __init__(self, events: Sequence[Mapping[str, JsonValue]]) -> None:
        self._events = [Event(each) for each in events]

    def index(self, filters: Sequence[Filter]) -> Index:
        return _Tree(KdTree([box_of(each) for each in filters]), self._events)


class _Tree:
    def __init__(self, tree: KdTree, events: Sequence[Event]) -> None:
        self._tree, self._events = tree, events

    def every(self, events: Sequence[int]) -> Charged:
        chosen = [self._events[each] for each in events]
        self._tree.walk(chosen[0])
        begin = time.process_time_ns()
        found = [self._tree.walk(event).boxes for event in chosen]
        return Charged(found, (time.process_time_ns() - begin) // len(events))

    def groups(self, events: Sequence[int], group: Sequence[int], closed: frozenset[int]) -> Charged:
        every, ns = self.every(events)
        begin = time.process_time_ns()
        found = [{*map(group.__getitem__, boxes)} - closed for boxes in every]
        return Charged(list(map(list, found)), ns + (time.process_time_ns() - begin) // len(events))


MAKERS: Mapping[str, type[Maker]] = {"compiled counting": Counting, "k-d trees": Kd}
