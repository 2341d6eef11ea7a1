"""Matchers behind one face, for measuring: from a batch of JSON events to the filters that each matches.

All give the same pairs of event and filter, which a checksum tells: a sum over the pairs, so that their order
does not matter, of the same function that the peers in `benchmarks/` use.
"""

import gc
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt

from branchline.kafka.scanning import RecordColumns, Scanner, cells
from branchline.routing.compiled.access import AccessIndex
from branchline.routing.compiled.following import Follower
from branchline.routing.compiled.names import Names
from branchline.routing.compiled.paths import Paths
from branchline.routing.compiled.walking import Walker
from branchline.routing.event import Event
from branchline.routing.filters import Filter
from branchline.routing.prefix.forwarding import Forwarder
from branchline.routing.prefix.optimizer import Optimizer, Settings

BATCH = 5_000
"""Events that are matched at a time."""
BATCH_PAIRS = 10_000_000
"""Pairs of a batch at most, so that a dense workload does not need gigabytes."""
WARM_UP_EVENTS = 100

Pairs = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]
"""Where each event's filters begin, one more at the end, and the filters."""


@dataclass(frozen=True, slots=True)
class Pass:
    """What it took to match all events once, or several times."""

    wall_s: float
    cpu_s: float
    matches: int


class Matcher(ABC):
    """Filters, ready to be matched."""

    build_s: float
    """CPU time of building."""

    @abstractmethod
    def match(self, columns: RecordColumns) -> tuple[Pairs, int]:
        """What each event matches, and how many of them took the slow path."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of the index, 0 if it does not know."""


class AccessMatcher(Matcher):
    """The access index, by the compiled scan."""

    def __init__(self, filters: Sequence[Filter]) -> None:
        started = time.process_time()
        paths = Paths()
        self._index = AccessIndex.of(filters, paths)
        self._scanner = Scanner(paths)
        self.build_s = time.process_time() - started

    def match(self, columns: RecordColumns) -> tuple[Pairs, int]:
        read = self._scanner.scan(columns)
        assert not read.rejected and not read.unrowed, "the workloads' events have rows"
        hits = self._index.match(read.scanned, len(columns))
        return (hits.first, hits.row), read.slow

    @property
    def nbytes(self) -> int:
        return self._index.nbytes


class TreeMatcher(Matcher):
    """The Routing Tree: each event is matched once, and then its Forwarding Prefix Tree is followed."""

    def __init__(self, filters: Sequence[Filter]) -> None:
        started = time.process_time()
        optimizer, self._broker = Optimizer(1, Settings(limit_ms=0)), Forwarder()
        for filter_ in filters:
            optimizer.subscribe((filter_,))
        for update in optimizer.updates(0):
            self._broker.trees.apply(update)
        for number, filter_ in enumerate(filters):
            self._broker.subscribe((filter_,), number)
        paths = Paths()
        self._filters = filters
        self._walker = Walker(self._broker.trees, paths)
        self._follower = Follower(self._broker, [Names(self._broker.trees, 0)])
        self._follower.catch_up()
        self._numbers = np.array(self._follower.owners.table, np.int32)
        self._scanner = Scanner(paths)
        self.build_s = time.process_time() - started

    def match(self, columns: RecordColumns) -> tuple[Pairs, int]:
        read = self._scanner.scan(columns)
        single = ~read.arrays
        prefixes = self._walker.walk(read.scanned, single)
        followed = self._follower.find(prefixes, single)
        first, found = followed.first, self._numbers[followed.owner]
        doubtful = np.flatnonzero(~followed.certain)
        left = np.flatnonzero(~followed.handled)
        if len(doubtful) or len(left):
            first, found = self._settled(columns, first, found, doubtful, left)
        return (first, found), len(left)

    def _settled(
        self,
        columns: RecordColumns,
        first: npt.NDArray[np.int64],
        found: npt.NDArray[np.int32],
        doubtful: npt.NDArray[np.int64],
        left: npt.NDArray[np.int64],
    ) -> Pairs:
        """With the doubtful ones checked, and the events that are left matched one by one."""
        events = np.repeat(np.arange(len(columns)), np.diff(first))
        known: dict[int, Event] = {}
        keep = np.ones(len(found), np.bool_)
        for place in doubtful.tolist():
            number = int(events[place])
            event = known.setdefault(number, _event(columns, number))
            keep[place] = event.may_match((self._filters[found[place]],))
        more = [(number, each) for number in left.tolist() for each in self._one_by_one(columns, number)]
        events = np.concatenate([events[keep], np.array([number for number, _ in more], np.int64)])
        found = np.concatenate([found[keep], np.array([each for _, each in more], np.int32)])
        order = np.argsort(events, kind="stable")
        return np.searchsorted(events[order], np.arange(len(columns) + 1)), found[order]

    def _one_by_one(self, columns: RecordColumns, number: int) -> list[int]:
        event = _event(columns, number)
        found = self._broker.find(self._broker.enter(event), event)
        certain, doubtful = cast(set[int], found.certain), cast(set[int], found.doubtful)
        return [*certain, *(each for each in doubtful if event.may_match((self._filters[each],)))]

    @property
    def nbytes(self) -> int:
        return 0


class NaiveMatcher(Matcher):
    """Every filter is tried for every event: what the others are checked by."""

    def __init__(self, filters: Sequence[Filter]) -> None:
        self._filters = filters
        self.build_s = 0.0

    def match(self, columns: RecordColumns) -> tuple[Pairs, int]:
        first, found = [0], []
        for number in range(len(columns)):
            event = _event(columns, number)
            found += [place for place, each in enumerate(self._filters) if event.may_match((each,))]
            first.append(len(found))
        return (np.array(first, np.int64), np.array(found, np.int32)), len(columns)

    @property
    def nbytes(self) -> int:
        return 0


def _event(columns: RecordColumns, number: int) -> Event:
    return Event(json.loads(columns.values[number] or b""))


MATCHERS: dict[str, Callable[[Sequence[Filter]], Matcher]] = {
    "access": AccessMatcher,
    "tree": TreeMatcher,
    "naive": NaiveMatcher,
}


class Run:
    """A matcher and events that it is measured with."""

    def __init__(self, matcher: Matcher, events: Sequence[bytes]) -> None:
        self._matcher = matcher
        self._events = events
        (first, _), _ = matcher.match(columns_of(events[:WARM_UP_EVENTS]))
        dense = int(first[-1]) // min(WARM_UP_EVENTS, len(events)) + 1
        size = max(1, min(BATCH, BATCH_PAIRS // dense))
        # As Spark hands them over: columns of bytes.
        self._batches = [columns_of(events[at : at + size]) for at in range(0, len(events), size)]
        gc.collect()
        gc.freeze()

    def check(self) -> tuple[int, str, float]:
        """How many pairs match, their checksum, and the share of events that took the slow path."""
        total = slow = at = 0
        sum_ = 0
        for batch in self._batches:
            (first, found), left = self._matcher.match(batch)
            event = np.repeat(np.arange(at, at + len(batch), dtype=np.uint64), np.diff(first))
            sum_ += int(mixed(event << np.uint64(32) | found.astype(np.uint64)).sum(dtype=np.uint64))
            total, slow, at = total + len(found), slow + left, at + len(batch)
        return total, f"{sum_ % 2**64:016x}", slow / len(self._events)

    def run(self, passes: int) -> Pass:
        """Match all events so many times."""
        matches = 0
        cpu, wall = time.thread_time(), time.perf_counter()
        for _ in range(passes):
            for batch in self._batches:
                (_, found), _ = self._matcher.match(batch)
                matches += len(found)
        return Pass(time.perf_counter() - wall, time.thread_time() - cpu, matches)


def columns_of(events: Sequence[bytes]) -> RecordColumns:
    """Records with these values and nothing else."""
    nothing = cells([None] * len(events))
    return RecordColumns(cells(events), nothing, nothing, np.zeros(len(events), np.int64))


def mixed(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finalizer of splitmix64."""
    values = (values ^ values >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ values >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return values ^ values >> np.uint64(31)


def resident_bytes() -> int:
    """What this process has in memory now; 0 where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * 4096
