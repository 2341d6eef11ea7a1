"""An index of filters that come and go: tiers of access indexes, merged as they grow.

What is added waits until something is matched. Then it becomes a tier (`tiers.py`), and in the end part of
the *main* one. The main tier is made anew when what stands beside it is more than `max(DELTA_MIN, main /
DELTA_PART)`, or when as many of its filters are dead. A tier is never changed: merging takes its filters in
ranks, not filters as such, and so does storing.

A filter has a *row*, a number that stays the same as long as it is there. Removing marks the row as dead,
and what matches it is left out. Only when a good number is dead are those rows taken out of the tiers'
tables, and may be given again: which row a filter gets depends on what was added and removed, and on
nothing else.

Cost: adding a microsecond a constraint, removing less; the first match after that in proportion to what
came since; matching that of each tier, of which there are few.
"""

from array import array
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from branchline.routing.compiled.access import AccessIndex, Hits
from branchline.routing.compiled.freshness import fresh
from branchline.routing.compiled.gathering import Gathering, Parts, laid_together
from branchline.routing.compiled.kernels import kernel
from branchline.routing.compiled.memory import (
    Ints,
    address,
    load_byte,
    load_int,
    load_long,
    store_int,
    store_long,
)
from branchline.routing.compiled.paths import Paths
from branchline.routing.compiled.spans import Scanned
from branchline.routing.filters import Filter
from branchline.routing.prefix.layout import Facts, Kind, read, write
from branchline.routing.tiers import tiers_kept

DELTA_MIN = 4096
"""Filters beside the main tier, below which making it anew would cost more than having them there."""
DELTA_PART = 8
"""The part of the main tier from which on it is made anew: each filter is filed again eight times at most
before the tier has doubled.
"""

_ALIGNMENT = 8
_SECTIONS = ("tiers", "tier_at", "rows", "row_at", "alive", "free", "dead", "counts")


@dataclass(frozen=True, slots=True)
class _Tier:
    index: AccessIndex
    rows: Ints
    """For each filter of the index its row; -1 if it is gone."""


class _Found(NamedTuple):
    """What was found in a tier, by addresses."""

    events: int
    first: int
    row: int
    rows: int
    alive: int


class GrowingIndex:
    """Filters by row, which can be added and removed."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._tiers: list[_Tier] = []
        """The main tier first, then the others, each smaller than the one before."""
        self._new = Gathering(paths.add)
        self._new_rows = array("i")
        self._alive = bytearray()
        self._count = 0
        self._next = 0
        self._free: list[int] = []
        self._dead: list[int] = []
        """Rows that are dead and may still be in a tier."""
        self._removed = 0
        """How many were removed since the main tier was made."""

    def __len__(self) -> int:
        return self._count

    def add(self, filter_: Filter) -> int:
        """The row that the filter has from now on."""
        self._new.add(filter_)
        if self._free:
            row = self._free.pop()
        else:
            row = self._next
            self._next += 1
            self._alive.append(0)
        self._alive[row] = 1
        self._new_rows.append(row)
        self._count += 1
        return row

    def remove(self, row: int) -> None:
        """Take the filter of the row away."""
        assert self._alive[row], "only what is there can be removed"
        self._alive[row] = 0
        self._count -= 1
        self._dead.append(row)
        self._removed += 1
        if len(self._dead) > max(DELTA_MIN, self._count // DELTA_PART):
            self._release()

    def _release(self) -> None:
        """Take the dead rows out of all tables, so that they can be given again."""
        for tier in self._tiers:
            tier.rows[~self._is_alive(tier.rows)] = -1
        new = np.array(self._new_rows, np.int32)
        new[~self._is_alive(new)] = -1
        self._new_rows = array("i", new.tobytes())
        self._free += reversed(self._dead)
        self._dead.clear()

    def match(self, scanned: Scanned, events: int) -> Hits:
        """The rows of the filters that some row of each event satisfies."""
        self._settle()
        found = [tier.index.match(scanned, events) for tier in self._tiers]
        first = np.zeros(events + 1, np.int64)
        alive = np.frombuffer(self._alive, np.uint8)
        tiers = [
            _Found(events, address(hits.first), address(hits.row), address(tier.rows), address(alive))
            for tier, hits in zip(self._tiers, found, strict=True)
        ]
        for each in tiers:
            _count_living(each, address(first) + first.itemsize)
        np.cumsum(first, out=first)
        row, to = np.empty(int(first[-1]), np.int32), first[:-1].copy()
        for each in tiers:
            _put_living(each, address(to), address(row))
        return Hits(first, row, sum(hits.late for hits in found))

    def _settle(self) -> None:
        """File what was added, and merge what is due."""
        main = len(self._tiers[0].index) if self._tiers else 0
        most = max(DELTA_MIN, main // DELTA_PART)
        if not len(self._new) and self._removed <= most:
            return
        new = _Waiting(self._new.parts(), np.array(self._new_rows, np.int32))
        self._new, self._new_rows = Gathering(self._paths.add), array("i")
        waiting = [new.kept(self._is_alive(new.rows))]
        size = waiting[0].rows.size
        beside = sum(len(tier.index) for tier in self._tiers[1:]) + size
        everything = max(beside, self._removed) > most
        if everything:
            self._removed = 0
        sizes = [len(tier.index) for tier in self._tiers]
        stay = 0 if everything else tiers_kept(sizes, size, at_least=min(1, len(sizes)))
        for tier in self._tiers[stay:]:
            kept = self._is_alive(tier.rows)
            waiting.insert(-1, _Waiting(tier.index.parts(kept), tier.rows[kept]))
        del self._tiers[stay:]
        parts = laid_together([each.parts for each in waiting])
        rows = np.concatenate([each.rows for each in waiting])
        self._tiers.append(_Tier(AccessIndex.built(parts, self._paths), rows))

    def _is_alive(self, rows: Ints) -> NDArray[np.bool_]:
        alive = np.frombuffer(self._alive, np.bool_)
        is_alive: NDArray[np.bool_] = (rows >= 0) & alive[rows] if alive.size else rows >= 0
        return is_alive

    @property
    def nbytes(self) -> int:
        return len(self._alive) + sum(tier.index.nbytes + tier.rows.nbytes for tier in self._tiers)

    def describe(self) -> str:
        """How many filters there are, and the tiers."""
        lines = [f"{len(self)} filters, {len(self._new)} of them not yet filed, {len(self._dead)} dead"]
        for place, tier in enumerate(self._tiers):
            lines.append(f"tier {place}:")
            lines += [f"  {line}" for line in tier.index.describe().splitlines()]
        return "\n".join(lines)

    def stored(self) -> bytes:
        """The index as bytes that can be used where they lie, rows included."""
        self._settle()
        tiers, tier_at, row_at = bytearray(), [0], [0]
        for tier in self._tiers:
            tiers += tier.index.stored()
            tiers += bytes(-len(tiers) % _ALIGNMENT)
            tier_at.append(len(tiers))
            row_at.append(row_at[-1] + len(tier.rows))
        sections: dict[str, array[int] | bytes] = {
            "tiers": bytes(tiers),
            "tier_at": array("q", tier_at),
            "rows": b"".join(tier.rows.tobytes() for tier in self._tiers),
            "row_at": array("q", row_at),
            "alive": bytes(self._alive),
            "free": array("i", self._free),
            "dead": array("i", self._dead),
            "counts": array("q", [self._count, self._next, self._removed]),
        }
        return write(Facts(0, self._count, 0), sections, Kind.GROWING)

    @staticmethod
    def opened(data: memoryview, paths: Paths) -> "GrowingIndex":
        """A stored index, which goes on from there. Raises `UnreadableTree` if the bytes are no such."""
        _, found = read(data, _SECTIONS, Kind.GROWING)
        made = GrowingIndex(paths)
        rows = np.frombuffer(found["rows"], np.int32)
        for place in range(len(found["tier_at"]) - 1):
            start, end = found["tier_at"][place], found["tier_at"][place + 1]
            first, last = found["row_at"][place], found["row_at"][place + 1]
            index = AccessIndex.opened(found["tiers"][start:end], paths)
            made._tiers.append(_Tier(index, rows[first:last].copy()))
        made._alive = bytearray(found["alive"])
        made._free, made._dead = list(found["free"]), list(found["dead"])
        made._count, made._next, made._removed = found["counts"]
        return made


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Filters that are about to be filed, and their rows."""

    parts: Parts
    rows: Ints

    def kept(self, which: NDArray[np.bool_]) -> "_Waiting":
        return self if which.all() else _Waiting(self.parts.kept(which), self.rows[which])


@kernel
def _is_living(found: _Found, place: int) -> bool:
    row = load_int(found.rows, load_int(found.row, place))
    return row >= 0 and load_byte(found.alive, row) != 0


@fresh
@kernel
def _count_living(found: _Found, counts: int) -> None:
    """Add for each event the hits of a tier that are not dead."""
    for event in range(found.events):
        count = load_long(counts, event)
        for place in range(load_long(found.first, event), load_long(found.first, event + 1)):
            count += _is_living(found, place)
        store_long(counts, event, count)


@fresh
@kernel
def _put_living(found: _Found, to: int, out: int) -> None:
    """Put the rows of a tier's hits that are not dead behind those that are there already, event by event."""
    for event in range(found.events):
        at = load_long(to, event)
        for place in range(load_long(found.first, event), load_long(found.first, event + 1)):
            if _is_living(found, place):
                store_int(out, at, load_int(found.rows, load_int(found.row, place)))
                at += 1
        store_long(to, event, at)
