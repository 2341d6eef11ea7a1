"""The headers of many copies of events, written at once: the same bytes as `prefix/header.py` writes.

`write_headers` writes prefixes that were matched here. `write_onward` writes what was read from headers once
more, for the next brokers: nothing changes but the head, so the bytes of the parts are copied and only the
head and the checksum are made. A header that would be too large is not written: the reference trims it.

Entries are bytes already (`prefixes.py`), so they are copied in both.

Cost: one pass to write and one for the checksum.
"""

from typing import NamedTuple

import numpy as np

from branchline.routing.compiled.checksums import crc32
from branchline.routing.compiled.header_reading import Headers
from branchline.routing.compiled.kernels import inlined, kernel
from branchline.routing.compiled.memory import copy_bytes
from branchline.routing.compiled.prefixes import Bytes, Flags, Longs, Prefixes, Words, frozen
from branchline.routing.compiled.varints import NUMBER_BYTES_MAX, put_number
from branchline.routing.prefix.header import FORMAT_VERSION, HEADER_MAX_BYTES
from branchline.routing.slices import Slices

_HEAD_MAX = 2 + 9 + 9 + 1 + 8
_CHECKSUM = 4


class Copies(NamedTuple):
    """Copies to be sent, each of the event of a row."""

    row: Longs
    scope: Words
    topology: Longs
    hops: Longs
    """How many links the copy will have crossed."""


class Written(NamedTuple):
    """Headers that lie in the data one after the other."""

    data: Bytes
    first: Longs
    ok: Flags
    """Whether it was written; if not, it would be too large, and its run is empty."""

    def slices(self) -> Slices:
        """Each by itself."""
        return Slices(self.data, self.first)


def write_headers(prefixes: Prefixes, copies: Copies) -> Written:
    """The header of each copy, with the prefix of its row."""
    return Written(*_write(prefixes.frozen(), Copies(*map(frozen, copies))))


def write_onward(data: Bytes, first: Longs, headers: Headers, copies: Copies) -> Written:
    """The header of each copy, with the prefix that came with its row, which must be ok."""
    at, arrays = frozen(headers.parts_at), frozen(headers.prefixes.arrays)
    return Written(*_write_onward(frozen(data), frozen(first), at, arrays, Copies(*map(frozen, copies))))


@kernel
def _write(prefixes: Prefixes, copies: Copies) -> tuple[Bytes, Longs, Flags]:
    # Asking a tuple for an array counts the array's owners up and down: not for every row.
    row_of, scopes, topologies, hops = copies.row, copies.scope, copies.topology, copies.hops
    arrays, part_first, cut, many = prefixes.arrays, prefixes.part_first, prefixes.cut, prefixes.many
    incarnations, clocks = prefixes.incarnation, prefixes.clock
    data, entries = prefixes.data, prefixes.entries
    entries_at, entries_end = prefixes.entries_at, prefixes.entries_end
    beside_first, beside = prefixes.beside_first, prefixes.beside

    rows = len(row_of)
    size = 0
    for copy in range(rows):
        low, high = part_first[row_of[copy]], part_first[row_of[copy] + 1]
        size += _HEAD_MAX + NUMBER_BYTES_MAX + (high - low) * (1 + 4 * NUMBER_BYTES_MAX) + _CHECKSUM
        for part in range(low, high):
            size += entries_end[part] - entries_at[part]
        size += (beside_first[high] - beside_first[low]) * NUMBER_BYTES_MAX
    out = np.empty(size, np.uint8)
    first, ok = np.zeros(rows + 1, np.int64), np.zeros(rows, np.bool_)
    for copy in range(rows):
        row = row_of[copy]
        start = first[copy]
        at = _put_head(out, start, arrays[row], hops[copy], topologies[copy], scopes[copy])
        at = put_number(out, at, part_first[row + 1] - part_first[row])
        for part in range(part_first[row], part_first[row + 1]):
            out[at] = cut[part] | many[part] << 1
            at = put_number(out, at + 1, incarnations[part])
            at = put_number(out, at, clocks[part])
            at = put_number(out, at, entries[part])
            at = _copy(out, at, data, entries_at[part], entries_end[part])
            at = put_number(out, at, beside_first[part + 1] - beside_first[part])
            last = np.int64(-1)
            for place in range(beside_first[part], beside_first[part + 1]):
                at = put_number(out, at, beside[place] - last - 1)
                last = beside[place]
        first[copy + 1], ok[copy] = _seal(out, start, at)
    return out[: first[rows]], first, ok


@kernel
def _write_onward(
    data: Bytes, first: Longs, parts_at: Longs, arrays: Flags, copies: Copies
) -> tuple[Bytes, Longs, Flags]:
    row_of, scopes, topologies, hops = copies.row, copies.scope, copies.topology, copies.hops
    rows = len(row_of)
    size = 0
    for copy in range(rows):
        row = row_of[copy]
        size += first[row + 1] - parts_at[row] + _HEAD_MAX
    out = np.empty(size, np.uint8)
    made, ok = np.zeros(rows + 1, np.int64), np.zeros(rows, np.bool_)
    for copy in range(rows):
        row = row_of[copy]
        start = made[copy]
        at = _put_head(out, start, arrays[row], hops[copy], topologies[copy], scopes[copy])
        at = _copy(out, at, data, parts_at[row], first[row + 1] - _CHECKSUM)
        made[copy + 1], ok[copy] = _seal(out, start, at)
    return out[: made[rows]], made, ok


@inlined
def _put_head(out: Bytes, at: int, arrays: bool, hops: int, topology: int, scope: np.uint64) -> int:
    out[at] = FORMAT_VERSION
    out[at + 1] = arrays
    at = put_number(out, at + 2, hops)
    at = put_number(out, at, topology)
    length_at = at
    at += 1
    while scope:
        out[at] = scope & np.uint64(0xFF)
        scope >>= np.uint64(8)
        at += 1
    out[length_at] = at - length_at - 1
    return at


@inlined
def _copy(out: Bytes, at: int, data: Bytes, begin: int, end: int) -> int:
    """Copy these bytes; where the next thing goes."""
    copy_bytes(out.ctypes.data + at, data.ctypes.data + begin, end - begin)
    return at + end - begin


@inlined
def _seal(out: Bytes, start: int, at: int) -> tuple[int, bool]:
    """Put the checksum behind what was written; where the next row begins, and whether this one stands."""
    if at + _CHECKSUM - start > HEADER_MAX_BYTES:
        return start, False
    remainder = crc32(out, start, at)
    for place in range(_CHECKSUM):
        out[at + place] = remainder >> 8 * place & 0xFF
    return at + _CHECKSUM, True
