"""The two forms of forwarding tables, made of the filters of `cw_workload.py` and timed with the same events.

What is timed is from an event's values, as read, to the interfaces: CPU time of this process.
"""

import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from branchline.ops.cw_workload import cw_filters
from branchline.ops.memory import allocated_bytes
from branchline.ops.simulation.kind import Row
from branchline.routing.counting.table import COUNTED, EARLY, EXCLUDED, CountingTable
from branchline.routing.event import Event
from branchline.routing.prefix.forwarding import Found
from branchline.routing.values import JsonValue

if TYPE_CHECKING:  # compiled loops take seconds to load
    from branchline.routing.compiled.counting import CountingIndex
    from branchline.routing.compiled.spans import Scanned

_T = TypeVar("_T")
Ints = NDArray[np.int32]


class Form(Protocol):
    """How tables are kept."""

    def open(self, filters: int) -> None:
        """From now on tables are of so many filters."""
        ...

    def measure(self, of_filter: Ints, interfaces: int, rounds: int, passes: int) -> Row:
        """What a table takes in which each filter is of an interface."""
        ...


def _timed(act: Callable[[], _T]) -> tuple[_T, float]:
    started = time.process_time()
    done = act()
    return done, time.process_time() - started


def _median_s(act: Callable[[], object], passes: int) -> float:
    act()  # what is slow the first time only
    return median(_timed(act)[1] for _ in range(passes))


class FlatForm:
    """Tables in compiled arrays."""

    def __init__(self, seed: int, events: Sequence[dict[str, JsonValue]]) -> None:
        self._seed, self._events = seed, events
        self._index: CountingIndex
        self._scanned: Scanned
        self._build_s = 0.0
        self.open(1)  # loads the compiled loops

    def open(self, filters: int) -> None:
        from branchline.ops.cw_flat import cw_parts
        from branchline.routing.compiled.counting import CountingIndex
        from branchline.routing.compiled.paths import Paths
        from branchline.routing.compiled.reading import rows_of

        paths, parts = Paths(), cw_parts(f"{self._seed} filters", filters)
        self._index, self._build_s = _timed(lambda: CountingIndex.built(parts, paths))
        self._scanned = rows_of(paths, self._events).scanned

    def measure(self, of_filter: Ints, interfaces: int, rounds: int, passes: int) -> Row:
        from branchline.routing.compiled.counting import FlatTable

        index, count = self._index, len(self._events)
        table, table_s = _timed(lambda: FlatTable(index, of_filter, interfaces, rounds))
        found = table.match(self._scanned)
        took_s = _median_s(lambda: table.match(self._scanned), passes)
        return {
            "constraints": index.constraints,
            "us_per_event": took_s * 1e6 / count,
            "found_per_event": len(found.filter) / count,
            "excluded_per_event": found.excluded / count,
            "counted_per_event": found.counted / count,
            "early_per_event": found.early / count,
            "bytes_per_constraint": table.nbytes / index.constraints,
            "build_us_per_constraint": (self._build_s + table_s) * 1e6 / index.constraints,
        }


class PlainForm:
    """Tables in dictionaries."""

    def __init__(self, seed: int, events: Sequence[dict[str, JsonValue]]) -> None:
        self._seed, self._events = seed, events
        self.open(1)

    def open(self, filters: int) -> None:
        self._filters = cw_filters(f"{self._seed} filters", filters)

    def measure(self, of_filter: Ints, interfaces: int, rounds: int, passes: int) -> Row:
        pairs = list(zip(of_filter.tolist(), self._filters, strict=True))
        count = len(self._events)
        table, build_s = _timed(lambda: CountingTable(pairs, rounds))
        size = allocated_bytes(lambda: CountingTable(pairs, rounds))
        total = Found()
        found = 0
        for attributes in self._events:
            mine = Found(counts=total.counts)
            table.find(Event(attributes), None, _stands, mine)
            found += len(mine.certain)

        def match() -> None:
            for attributes in self._events:
                table.find(Event(attributes), None, _stands, Found())

        return {
            "constraints": table.constraints,
            "us_per_event": _median_s(match, passes) * 1e6 / count,
            "found_per_event": found / count,
            "excluded_per_event": total.counts[EXCLUDED] / count,
            "counted_per_event": total.counts[COUNTED] / count,
            "early_per_event": total.counts[EARLY] / count,
            "bytes_per_constraint": size / table.constraints,
            "build_us_per_constraint": build_s * 1e6 / table.constraints,
        }


def _stands(owner: object, filter_: object) -> bool:
    return True
