"""The prefixes of many events as flat arrays.

Row r has the parts from `part_first[r]` to `part_first[r + 1]`; part p has as many `entries`, which are the
bytes of the data from `entries_at[p]` to `entries_end[p]`, and its overflow numbers from `beside_first[p]`
on, ascending. What each of them means is in `prefix/trees.py`.

Entries stay bytes, as `prefix/header.py` writes them, from the walk that makes them through all brokers that
follow them: a byte for most, where a level and a number would take eight, and nothing to be written anew.

A child number takes 31 bits here and all else 63. A prefix with a larger one is not put into arrays: the
reference goes on with it.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from branchline.routing.prefix.header import decode_entries, encode_entries
from branchline.routing.prefix.trees import PartPrefix, Prefix
from branchline.routing.prefix.updates import Version

Bytes: TypeAlias = NDArray[np.uint8]
Flags: TypeAlias = NDArray[np.bool_]
Ints: TypeAlias = NDArray[np.int32]
Longs: TypeAlias = NDArray[np.int64]
Words: TypeAlias = NDArray[np.uint64]

CHILD_NUMBER_MAX = 2**31 - 1
SCOPE_BITS = 64
"""Homes that a scope in a column has bits for."""


class Prefixes(NamedTuple):
    """What a content match found, for each row."""

    arrays: Flags
    """For each row, whether everything found is in doubt because the event has arrays."""
    part_first: Longs
    incarnation: Longs
    clock: Longs
    cut: Flags
    many: Flags
    data: Bytes
    entries: Longs
    """How many the part has."""
    entries_at: Longs
    entries_end: Longs
    beside_first: Longs
    beside: Longs

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(self.arrays)

    def frozen(self) -> "Prefixes":
        """The same, as kernels take them."""
        return Prefixes(*map(frozen, self))

    def prefix(self, row: int) -> Prefix:
        """One of them as the reference has it."""
        parts = range(int(self.part_first[row]), int(self.part_first[row + 1]))
        return Prefix(tuple(map(self._part, parts)), bool(self.arrays[row]))

    def _part(self, part: int) -> PartPrefix:
        data = self.data[self.entries_at[part] : self.entries_end[part]].tobytes()
        return PartPrefix(
            Version(int(self.incarnation[part]), int(self.clock[part])),
            decode_entries(data, int(self.entries[part])),
            tuple(self.beside[self.beside_first[part] : self.beside_first[part + 1]].tolist()),
            bool(self.cut[part]),
            bool(self.many[part]),
        )


def flat(prefixes: Sequence[Prefix]) -> Prefixes:
    """Prefixes of the reference as arrays; none of them may have a number that is too large."""
    parts = [part for prefix in prefixes for part in prefix.parts]
    encoded = [encode_entries(part.entries) for part in parts]
    first = firsts(list(map(len, encoded)))
    return Prefixes(
        np.array([prefix.arrays for prefix in prefixes], np.bool_),
        firsts([len(prefix.parts) for prefix in prefixes]),
        np.array([part.version.incarnation for part in parts], np.int64),
        np.array([part.version.clock for part in parts], np.int64),
        np.array([part.cut for part in parts], np.bool_),
        np.array([part.many for part in parts], np.bool_),
        np.frombuffer(b"".join(encoded), np.uint8),
        np.array([len(part.entries) for part in parts], np.int64),
        first[:-1],
        first[1:],
        firsts([len(part.numbers) for part in parts]),
        np.array([number for part in parts for number in part.numbers], np.int64),
    )


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """The same cells without gaps and not to be written: for each kind of array a kernel is compiled anew."""
    made = np.ascontiguousarray(array).view()
    made.flags.writeable = False
    return made


def firsts(counts: Sequence[int] | Longs) -> Longs:
    """Where each run begins, and where the last one ends."""
    made = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=made[1:])
    return made


def runs(start: Longs, counts: Longs) -> Longs:
    """The numbers from each start on, as many as are counted."""
    ends = np.cumsum(counts)
    return np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(start - ends + counts, counts)
