"""A forwarding table in flat arrays, for many constraints and batches of events.

It finds what `routing/counting/table.py` finds, in the same way, for events of single values; one with arrays
has a row for each choice. In place of the trie and the ordered intervals there are ranks (`bounds.py`): a
text is hashed for =, bisected for < and >, and read once for all substrings; prefixes and suffixes are ranges
of ranks. So a constraint is a point, a range with one end, a range with two, or a word, and each leads to its
filters:

- those of a point or word are one run;
- ranges with one end stand in its order, and so do their filters: those that hold are one run;
- ranges with two ends hang on segments (`segments.py`), each with a run of its own, so that the filters of a
  range are there once however many segments it has.

The constraints (`CountingIndex`) and whose they are (`FlatTable`) are apart: the same constraints may be
divided among interfaces in several ways.

Cost: 4 bytes for each constraint of a filter, 8 for each filter, 4 to 8 for each different constraint beside
what `Bounds` takes; rounds times interfaces / 8 for the selectivity table. Making it sorts the constraints,
some µs each.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchline.routing.compiled.bounds import Bounds, Ranked, ranked
from branchline.routing.compiled.choosing import TREE
from branchline.routing.compiled.counters import (
    BLOCK,
    COUNTED,
    EARLY,
    EXCLUDED,
    TALLIES,
    Interfaces,
    Met,
    Runs,
    Work,
    count_rows,
)
from branchline.routing.compiled.gathering import Parts, gathered
from branchline.routing.compiled.memory import Ints, address
from branchline.routing.compiled.paths import Paths
from branchline.routing.compiled.ranking import Cells, rank
from branchline.routing.compiled.segments import in_nodes
from branchline.routing.compiled.spans import Scanned
from branchline.routing.compiled.texts import Longs
from branchline.routing.dimensions import Axis
from branchline.routing.filters import Filter

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class CountingIndex:
    """Filters by number: from what an event has to the filters whose counters go up."""

    bounds: Bounds
    sizes: Ints
    """How many constraints each filter has."""
    arrays: dict[str, Array]
    runs: Runs
    needs: Longs
    """Each filter and each path that it needs a value of, as filter * paths + path; in order."""
    paths: Ints
    """The number, in `Paths`, of each path in `needs`."""

    @staticmethod
    def of(filters: Iterable[Filter], paths: Paths) -> "CountingIndex":
        """The index of these filters, which are numbered from 0 on."""
        return CountingIndex.built(gathered(filters), paths)

    @staticmethod
    def built(parts: Parts, paths: Paths) -> "CountingIndex":
        """The index of filters that are flattened."""
        found = ranked(parts, paths)
        arrays = _laid(found)
        facts = {
            "default_count": arrays["defaults"].size,
            "everything_count": int((np.diff(found.first) == 0).sum()),
        }
        runs = Runs(*(facts[name] if name in facts else address(arrays[name]) for name in Runs._fields))
        needs, numbers = _needs(found, paths)
        return CountingIndex(found.bounds, np.diff(found.first), arrays, runs, needs, numbers)

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def constraints(self) -> int:
        return int(self.sizes.sum())

    @property
    def nbytes(self) -> int:
        """Bytes that matching needs; what only tables are made of (`sizes`, `needs`) is not in it."""
        return self.bounds.nbytes + sum(each.nbytes for each in self.arrays.values())


def _laid(found: Ranked) -> dict[str, Array]:
    """The filters of each constraint, and where they are."""
    bounds, slot, low, high = found.bounds, found.slot, found.low, found.high
    dimensions, value_first = bounds.dimensions, bounds.value_first
    values = value_first[: dimensions + 1].astype(np.int64)
    filters = np.repeat(np.arange(found.first.size - 1, dtype=np.int32), np.diff(found.first))
    bottom = (bounds.axes[:dimensions] <= int(Axis.BOOLEAN)).astype(np.int32)
    top = (2 * np.diff(values) - bottom).astype(np.int32)
    is_word = slot >= dimensions
    of = np.where(is_word, 0, slot) if dimensions else np.zeros_like(slot)
    is_point = ~is_word & (low == high) & (low & 1 > 0)
    is_up = ~is_word & ~is_point & (high >= (top[of] if dimensions else 0))
    is_down = ~is_word & ~is_point & ~is_up & (low <= (bottom[of] if dimensions else 0))
    is_range = ~(is_word | is_point | is_up | is_down)
    made: dict[str, Array] = {"value_first": value_first[: dimensions + 1].copy()}
    runs: list[Ints] = [np.flatnonzero(np.diff(found.first) == 0).astype(np.int32)]

    def put(chosen: NDArray[np.bool_], key: Longs) -> tuple[int, Longs]:
        """Put the filters of these constraints behind the others, by key: where, and the keys in order."""
        order = np.argsort(key, kind="stable")
        runs.append(filters[chosen][order])
        return sum(map(len, runs[:-1])), key[order]

    begin, key = put(is_point, values[slot[is_point]] + (low[is_point] >> 1))
    made["point_at"] = _starts(begin, key, int(values[-1]))
    begin, key = put(is_word, slot[is_word].astype(np.int64) - dimensions)
    made["word_at"] = _starts(begin, key, bounds.words)
    made |= _sides(put, slot, low, high, is_up, is_down, top, dimensions)
    made |= _ranges(put, slot, low, high, is_range, found)
    missing = (bounds.axes[:dimensions] == int(Axis.PRESENCE))[of] & ~is_word & (low <= 1) & (high >= 1)
    made["defaults"] = np.unique(slot[missing]) if dimensions else np.zeros(0, np.int32)
    made["filters"] = np.concatenate(runs)
    return made


def _starts(begin: int, key: Longs, count: int) -> Ints:
    """For each key up to a count where its run starts, and one more."""
    starts: Ints = (begin + np.searchsorted(key, np.arange(count + 1))).astype(np.int32)
    return starts


def _sides(
    put: Any,
    slot: Ints,
    low: Ints,
    high: Ints,
    is_up: NDArray[np.bool_],
    is_down: NDArray[np.bool_],
    top: Ints,
    dimensions: int,
) -> dict[str, Array]:
    """Ranges with one end, in the order in which a rank meets them."""
    chosen = is_up | is_down
    side = 2 * slot[chosen].astype(np.int64) + is_down[chosen]
    bound = np.where(is_up, low, -high)[chosen].astype(np.int64)
    # Ends are ranks, and those that go down are below zero.
    width = 2 * (int(top.max(initial=0)) + 4)
    begin, key = put(chosen, side * width + bound + width // 2)
    used, first = np.unique(key, return_index=True)
    return {
        "side_first": np.searchsorted(used // width, np.arange(2 * dimensions + 1)).astype(np.int32),
        "side_bound": (used % width - width // 2).astype(np.int32),
        "side_at": (begin + np.append(first, key.size)).astype(np.int32),
    }


def _ranges(
    put: Any, slot: Ints, low: Ints, high: Ints, is_range: NDArray[np.bool_], found: Ranked
) -> dict[str, Array]:
    """Ranges with two ends: each is there once, and hangs on segments."""
    dimensions, value_first = found.bounds.dimensions, found.bounds.value_first
    base = 2 * value_first[:dimensions].astype(np.int64) + np.arange(dimensions)
    ranks = 2 * int(value_first[dimensions]) + dimensions + 2
    start = base[slot[is_range]] + low[is_range]
    begin, key = put(is_range, start * ranks + base[slot[is_range]] + high[is_range])
    used, first = np.unique(key, return_index=True)
    start, end = used // ranks, used % ranks
    of = np.searchsorted(base, start, side="right") - 1
    ranges = np.stack([of, start - base[of], end - base[of]], axis=1).astype(np.int32)
    filed = np.zeros(dimensions, np.uint8)
    filed[of] = TREE
    made: dict[str, Array] = {"filed": filed}
    nothing = np.zeros(0, np.int32)
    numbers = np.arange(used.size, dtype=np.int32)
    node, listed = in_nodes(
        made, nothing, numbers, nothing.reshape(0, 3), ranges, value_first[: dimensions + 1]
    )
    del made["filed"]
    _, lists = np.unique(node, return_index=True)
    return made | {
        "listed": listed,
        "list_at": np.append(lists, node.size).astype(np.int32),
        "range_at": (begin + np.append(first, key.size)).astype(np.int32),
    }


def _needs(found: Ranked, paths: Paths) -> tuple[Longs, Ints]:
    """Which paths each filter needs a value of; and the numbers of paths."""
    bounds = found.bounds
    kin_of = np.concatenate(
        [
            np.arange(bounds.dimensions),
            np.repeat(
                np.arange(bounds.dimensions, len(bounds.kins)),
                np.diff(bounds.value_first[bounds.dimensions :]),
            ),
        ]
    )
    numbers = {path: number for number, path in enumerate(sorted({kin[0] for kin in bounds.kins}))}
    path_of = np.array([numbers[kin[0]] for kin in bounds.kins], np.int64)
    kin = kin_of[found.slot]
    # What holds for what is missing needs nothing.
    needed = (bounds.axes[kin] != int(Axis.PRESENCE)) | (found.low > 1)
    filters = np.repeat(np.arange(found.first.size - 1), np.diff(found.first))
    needs = np.unique((filters * max(1, len(numbers)) + path_of[kin])[needed])
    return needs, np.array([paths.add(path) for path in numbers], np.int32)


@dataclass(frozen=True, slots=True)
class Counted:
    """What rows have found: filters `filter[first[r]]` to `filter[first[r + 1]]`, one for each interface."""

    first: Longs
    filter: Ints
    took: Longs
    """For each row a line: interfaces excluded, found, counters that went up, interfaces found early."""

    @property
    def excluded(self) -> int:
        return int(self.took[:, EXCLUDED].sum())

    @property
    def counted(self) -> int:
        return int(self.took[:, COUNTED].sum())

    @property
    def early(self) -> int:
        return int(self.took[:, EARLY].sum())


class FlatTable:
    """Constraints, and the interfaces that they are of."""

    def __init__(self, index: CountingIndex, interface: Ints, interfaces: int, rounds: int) -> None:
        """For each filter its interface; each interface has some."""
        self.index = index
        self.interfaces = interfaces
        self._words = (interfaces + 63) // 64
        sizes = np.maximum(index.sizes, 1)
        self._of_filter = np.stack([interface, sizes], axis=1).astype(np.int32)
        self._shift = int(sizes.max(initial=1)).bit_length()
        self._round_path, self._round_bits = self._selectivity(interface, rounds)

    @property
    def interface(self) -> Ints:
        """For each filter its interface."""
        of_filter: Ints = self._of_filter[:, 0]
        return of_filter

    def mute(self, filter_: int) -> None:
        """Let nothing satisfy a filter any more."""
        self._of_filter[filter_, 1] = 0

    @property
    def nbytes(self) -> int:
        own = (self._of_filter, self._round_path, self._round_bits)
        return self.index.nbytes + sum(each.nbytes for each in own)

    def _selectivity(self, interface: Ints, rounds: int) -> tuple[Ints, Longs]:
        """The most selective paths, and for each the bit set of interfaces that it is a determinant of."""
        needs, paths = self.index.needs, self.index.paths
        if not rounds or not paths.size:
            return np.zeros(0, np.int32), np.zeros((0, self._words), np.int64)
        of_filter, path = needs // paths.size, needs % paths.size
        pair, count = np.unique(interface[of_filter] * np.int64(paths.size) + path, return_counts=True)
        filters = np.bincount(interface, minlength=self.interfaces)
        pair = pair[count == filters[pair // paths.size]]
        selective = np.bincount(pair % paths.size, minlength=paths.size)
        # Paths are numbered in their order, so that equally selective ones stay in it.
        order = np.argsort(-selective, kind="stable")[:rounds]
        order = order[selective[order] > 0]
        bits = np.zeros((order.size, self._words), np.int64)
        for place, each in enumerate(order):
            needing = np.zeros(64 * self._words, np.bool_)
            needing[pair[pair % paths.size == each] // paths.size] = True
            bits[place] = np.packbits(needing, bitorder="little").view(np.int64)
        return paths[order], bits

    def match(self, scanned: Scanned, rounds: int | None = None, closed: Sequence[int] = ()) -> Counted:
        """What each row finds, asking so many rounds at most, of the interfaces that are not closed."""
        return self.count(rank(self.index.bounds, scanned), scanned, rounds, closed)

    def count(
        self, cells: Cells, scanned: Scanned, rounds: int | None = None, closed: Sequence[int] = ()
    ) -> Counted:
        """The same, of rows that are ranked."""
        closed_bits = np.zeros(64 * self._words, np.bool_)
        closed_bits[list(closed)] = True
        closed_words = np.packbits(closed_bits, bitorder="little").view(np.int64)
        asked = len(self._round_path) if rounds is None else min(rounds, len(self._round_path))
        of = Interfaces(
            self.interfaces,
            self._words,
            address(self._of_filter),
            address(closed_words) if closed else 0,
            asked,
            address(self._round_path),
            address(self._round_bits),
        )
        columns: list[Array] = [
            np.ascontiguousarray(each)
            for each in (
                *(cells.first, cells.dimension, cells.rank, cells.word_first, cells.word),
                *(scanned.first, scanned.path),
            )
        ]
        met = Met(scanned.rows, *map(address, columns))
        assert scanned.rows < 1 << (31 - self._shift), "a counter holds the row that it is of"
        paths = int(max(scanned.path.max(initial=0), self.index.paths.max(initial=0))) + 1
        scratch: list[Array] = [
            np.zeros(self._words, np.int64),
            np.zeros(len(self.index), np.int32),
            np.zeros(paths, np.int32),
            np.zeros(self.index.bounds.dimensions, np.int32),
            np.zeros(BLOCK, np.int32),
            np.zeros(TALLIES, np.int64),
        ]
        work = Work(*map(address, scratch))
        first, took = np.zeros(scanned.rows + 1, np.int64), np.zeros((scanned.rows, TALLIES), np.int64)
        out = np.empty(max(4 * scanned.rows, 1024), np.int32)
        row = 0
        while True:
            row = count_rows(
                *(self.index.runs, of, met, work, row, self._shift),
                *(address(first), address(took), address(out), out.size),
            )
            if row >= scanned.rows:
                return Counted(first, out[: first[-1]], took)
            # The row is done again with more room: nothing of it may seem to be counted.
            scratch[1][:] = 0
            out = np.concatenate([out, np.empty(out.size + self.interfaces, np.int32)])
