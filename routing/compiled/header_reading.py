"""The headers of many events, read at once.

The format is that of `prefix/header.py`, which stays the reference: a row is *ok* only if the reference
accepts the same bytes and finds the same in them. Rows that are not ok are the reference's to decide: they
are damaged, or have what does not fit here, which is a scope beyond 64 homes or a number beyond the sizes
that `prefixes.py` names. So nothing is ever accepted here that would be refused there.

The reference encodes what it has read and compares. Here each thing that can be written in two ways is looked
at where it is read: a number with an empty last byte, unknown flags, a scope with an empty last byte. Entries
have one form only, once the bits that lead through them fit together: before each of them some run of
siblings must be open, and none after the last. An entry opens a run if there are entries below it, and closes
its own if it is the last. So entries are checked by counting runs, without knowing their levels, and stay
where they are.

Cost: one pass over the bytes for the checksum and one to read, without a branch that hangs on an entry,
unless its number takes several bytes. Only where numbers add up to more than the largest, they are looked at
one by one.
"""

from typing import NamedTuple

import numpy as np

from branchline.routing.compiled.checksums import crc32
from branchline.routing.compiled.kernels import inlined, kernel
from branchline.routing.compiled.memory import byte_at
from branchline.routing.compiled.prefixes import (
    CHILD_NUMBER_MAX,
    Bytes,
    Flags,
    Longs,
    Prefixes,
    Words,
    frozen,
)
from branchline.routing.compiled.varints import take_number
from branchline.routing.overlay.topology import TOPOLOGY_NUMBER_MAX
from branchline.routing.prefix.header import DECODED_MAX_BYTES, FORMAT_VERSION

_SHORTEST = 6
_SHORTEST_PART = 5
_SCOPE_BYTES_MAX = 8
_BESIDE_MAX = 2**62


class Headers(NamedTuple):
    """What the brokers before told about events."""

    ok: Flags
    """Rows that were read; of the others nothing here means anything, and they have no parts."""
    hops: Longs
    topology: Longs
    scope: Words
    parts_at: Longs
    """Where in the data the parts begin, their count included."""
    prefixes: Prefixes


def read_headers(data: Bytes, first: Longs) -> Headers:
    """The headers that lie in the data one after the other, row r from `first[r]` to `first[r + 1]`."""
    data = frozen(data)
    heads, arrays, parts, entries, beside = _read(data, frozen(first))
    return Headers(*heads, Prefixes(arrays, *parts, data, *entries, *beside))


@kernel
def _read(
    data: Bytes, first: Longs
) -> tuple[
    tuple[Flags, Longs, Longs, Words, Longs],
    Flags,
    tuple[Longs, Longs, Longs, Flags, Flags],
    tuple[Longs, Longs, Longs],
    tuple[Longs, Longs],
]:
    rows = len(first) - 1
    size = first[rows] - first[0]
    ok, arrays = np.zeros(rows, np.bool_), np.zeros(rows, np.bool_)
    hops, topology = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    scope, parts_at = np.zeros(rows, np.uint64), np.zeros(rows, np.int64)
    parts_max = size // _SHORTEST_PART + 1
    part_first = np.zeros(rows + 1, np.int64)
    incarnation, clock = np.empty(parts_max, np.int64), np.empty(parts_max, np.int64)
    cut, many = np.empty(parts_max, np.bool_), np.empty(parts_max, np.bool_)
    entries, entries_at = np.empty(parts_max, np.int64), np.empty(parts_max, np.int64)
    entries_end, beside_first = np.empty(parts_max, np.int64), np.empty(parts_max + 1, np.int64)
    beside_first[0] = 0
    beside = np.empty(size, np.int64)
    open_runs = np.empty(DECODED_MAX_BYTES + 2, np.int64)
    parts = 0
    for row in range(rows):
        part_first[row] = parts
        at, end = first[row], first[row + 1] - 4
        if not _is_sealed(data, at, end) or data[at] != FORMAT_VERSION or data[at + 1] > 1:
            continue
        arrays[row] = data[at + 1] == 1
        hops[row], at = take_number(data, at + 2, end)
        topology[row], at = take_number(data, at, end)
        scope[row], at = _scope(data, at, end)
        parts_at[row] = at
        count, at = take_number(data, at, end)
        if at < 0 or topology[row] > TOPOLOGY_NUMBER_MAX or count > end - at:
            continue
        made = parts
        for part in range(parts, parts + count):
            flags = data[at] if 0 <= at < end else 4
            if flags > 3:
                at = -1
                break
            cut[part], many[part] = flags & 1 != 0, flags & 2 != 0
            incarnation[part], at = take_number(data, at + 1, end)
            clock[part], at = take_number(data, at, end)
            entries[part], entries_at[part] = take_number(data, at, end)
            at = entries_end[part] = _entries(data, entries_at[part], end, entries[part], open_runs)
            beside_first[part + 1], at = _beside(data, at, end, beside_first[part], beside)
            if at < 0:
                break
            made += 1
        if at == end:
            ok[row] = True
            parts = made
    part_first[rows] = parts
    return (
        (ok, hops, topology, scope, parts_at),
        arrays,
        (part_first, incarnation[:parts], clock[:parts], cut[:parts], many[:parts]),
        (entries[:parts], entries_at[:parts], entries_end[:parts]),
        (beside_first[: parts + 1], beside[: beside_first[parts]]),
    )


@inlined
def _is_sealed(data: Bytes, at: int, end: int) -> bool:
    """Whether there are as many bytes as a header has, and its checksum stands at the end."""
    if not _SHORTEST <= end + 4 - at <= DECODED_MAX_BYTES:
        return False
    told = (
        np.int64(data[end])
        | np.int64(data[end + 1]) << 8
        | np.int64(data[end + 2]) << 16
        | np.int64(data[end + 3]) << 24
    )
    return bool(crc32(data, at, end) == told)


@inlined
def _scope(data: Bytes, at: int, end: int) -> tuple[np.uint64, int]:
    count, at = take_number(data, at, end)
    if at < 0 or count > _SCOPE_BYTES_MAX or count > end - at:
        return np.uint64(0), -1
    scope = np.uint64(0)
    for place in range(count):
        scope |= np.uint64(data[at + place]) << np.uint64(8 * place)
    if count and not data[at + count - 1]:
        return np.uint64(0), -1
    return scope, at + count


@inlined
def _entries(data: Bytes, at: int, end: int, count: int, open_runs: Longs) -> int:
    """Where so many entries end that begin here; -1 if that is no tree, or one with too large a number."""
    if at < 0 or count > end - at:
        return -1
    begin, runs, total = at, np.int64(count > 0), np.int64(0)
    fewest = np.int64(1)
    start = data.ctypes.data
    for _ in range(count):
        if at >= end:
            return -1
        packed = np.int64(byte_at(start + at))
        at += 1
        if packed >= 0x80:
            long, at = take_number(data, at - 1, end)
            packed = np.int64(long)
            if at < 0 or packed >> 2 > CHILD_NUMBER_MAX:
                return -1
        fewest = min(fewest, runs)
        runs += (packed >> 1 & 1) - (packed & 1)
        total += (packed >> 2) + 1
    if fewest < 1 or runs:
        return -1
    if total > CHILD_NUMBER_MAX and _largest(data, begin, end, count, open_runs) > CHILD_NUMBER_MAX:
        return -1
    return at


@kernel
def _largest(data: Bytes, at: int, end: int, count: int, open_runs: Longs) -> int:
    """The largest child number of so many entries, which are a tree."""
    largest = np.int64(0)
    top = 0
    open_runs[0] = -1
    for _ in range(count):
        packed, at = take_number(data, at, end)
        open_runs[top] += (packed >> 2) + 1
        largest = max(largest, open_runs[top])
        top += 1 - (packed & 1)
        open_runs[top] = -1
        top -= 1 - (packed >> 1 & 1)
    return int(largest)


@inlined
def _beside(data: Bytes, at: int, end: int, made: int, beside: Longs) -> tuple[int, int]:
    """Append the overflow numbers; how many there are now, and where the next thing begins."""
    count, at = take_number(data, at, end)
    if at < 0 or count > end - at:
        return made, -1
    last = np.int64(-1)
    for place in range(made, made + count):
        more, at = take_number(data, at, end)
        if at < 0 or more > _BESIDE_MAX - last:
            return made, -1
        last += more + 1
        beside[place] = last
    return made + count, at
