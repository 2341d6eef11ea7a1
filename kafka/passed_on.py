"""Copies that brokers have sent, read as columns: what `intake.py` reads of one of them, of all at once.

A record is read here if it has what we write and nothing else of ours: one `bl-prefix` that can be read, one
`bl-origin` that is a place, and no `bl-only`. Any other is left to the reference, which decides what is wrong
with it, if anything is. So nothing is accepted here that would be refused there.

What is found of a record: its header's bytes, its origin and its foreign headers, each as it would be made of
the record; and when it was published, which filters may ask for.

Cost: one pass over the cells, and those of `header_reading.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from branchline.kafka import headers as bl
from branchline.kafka.header_cells import NULL
from branchline.kafka.scanning import cells
from branchline.routing.compiled.header_reading import Headers, read_headers
from branchline.routing.compiled.kernels import inlined, kernel
from branchline.routing.compiled.memory import copy_bytes
from branchline.routing.compiled.prefixes import Bytes, Longs, frozen

_OURS, _PREFIX, _ORIGIN, _ONLY = (
    np.frombuffer(name.encode(), np.uint8) for name in (bl.OURS, bl.PREFIX, bl.ORIGIN, bl.ONLY)
)
_TOPIC_MAX = 249
_DIGITS_MAX = 19
"""Digits of a number that is below 2**63, or else seems to be negative: it is below 2**64."""
_COLON, _MINUS, _ZERO, _NINE = b":-09"


@dataclass(frozen=True, slots=True)
class PassedOn:
    """Copies, side by side."""

    rows: NDArray[np.int64]
    """Which of the cells they are, ascending; the others are left to the reference."""
    data: Bytes
    first: Longs
    headers: Headers
    """The `bl-prefix` of each, which lies in the data."""
    origins: Sequence[str]
    timestamps: Longs
    foreign: Sequence[bytes]
    """Cells of the headers that are not ours."""


def read_passed_on(column: Sequence[bytes]) -> PassedOn:
    """Those of these cells of headers that are as we write them."""
    found = _read(column)
    rows = np.flatnonzero(found.headers.ok)
    if len(rows) < len(column):
        # Without the others, so that a row is everywhere the same one.
        found = _read([column[row] for row in rows.tolist()])
    return replace(found, rows=rows)


def _read(column: Sequence[bytes]) -> PassedOn:
    """All cells; of one that is not as we write it, nothing, which is no header."""
    packed = cells(column)
    first, data, origin_first, origins, timestamps, foreign_first, foreign = _find(
        frozen(packed.data), frozen(packed.first), _OURS, _PREFIX, _ORIGIN, _ONLY
    )
    return PassedOn(
        np.arange(len(column)),
        data,
        first,
        read_headers(data, first),
        _texts(origins, origin_first),
        timestamps,
        _slices(foreign, foreign_first),
    )


def _slices(data: Bytes, first: Longs) -> list[bytes]:
    if not len(data):
        return [b""] * (len(first) - 1)
    whole = data.tobytes()
    return [whole[start:end] for start, end in pairwise(first.tolist())]


def _texts(data: Bytes, first: Longs) -> list[str]:
    whole = data.tobytes().decode("ascii")
    return [whole[start:end] for start, end in pairwise(first.tolist())]


@kernel
def _find(
    data: Bytes, first: Longs, ours: Bytes, prefix_name: Bytes, origin_name: Bytes, only_name: Bytes
) -> tuple[Longs, Bytes, Longs, Bytes, Longs, Longs, Bytes]:
    """Prefixes, origins, their timestamps and what is foreign; nothing of a cell that is unusual."""
    rows, size = len(first) - 1, first[-1] - first[0]
    timestamps = np.zeros(rows, np.int64)
    prefix_first, prefixes = np.zeros(rows + 1, np.int64), np.empty(size, np.uint8)
    origin_first, origins = np.zeros(rows + 1, np.int64), np.empty(size, np.uint8)
    foreign_first, foreign = np.zeros(rows + 1, np.int64), np.empty(size, np.uint8)
    for row in range(rows):
        at, end = int(first[row]), int(first[row + 1])
        prefix = prefix_end = origin = origin_end = -1
        foreign_at = foreign_first[row]
        fine = True
        while at < end and fine:
            start, name = at, at + 4
            name_end = name + _length(data, at) if name <= end else end + 1
            value = name_end + 4
            fine = value <= end
            if not fine:
                break
            length = _length(data, name_end)
            at = value if length == NULL else value + length
            fine = at <= end
            if not fine:
                break
            if not _begins(data, name, name_end, ours):
                foreign_at = _copy(foreign, foreign_at, data, start, at)
            elif _is(data, name, name_end, prefix_name):
                fine = prefix < 0 and length != NULL
                prefix, prefix_end = value, at
            elif _is(data, name, name_end, origin_name):
                fine = origin < 0 and length != NULL
                origin, origin_end = value, at
            elif _is(data, name, name_end, only_name):
                fine = False
        is_place, timestamp = False, 0
        if fine and prefix >= 0 and origin >= 0:
            is_place, timestamp = _place(data, origin, origin_end)
        prefix_at, origin_at = prefix_first[row], origin_first[row]
        if is_place:
            timestamps[row] = timestamp
            prefix_at = _copy(prefixes, prefix_at, data, prefix, prefix_end)
            origin_at = _copy(origins, origin_at, data, origin, origin_end)
        else:
            foreign_at = foreign_first[row]
        prefix_first[row + 1], origin_first[row + 1] = prefix_at, origin_at
        foreign_first[row + 1] = foreign_at
    return (
        prefix_first,
        prefixes[: prefix_first[rows]],
        origin_first,
        origins[: origin_first[rows]],
        timestamps,
        foreign_first,
        foreign[: foreign_first[rows]],
    )


@inlined
def _copy(out: Bytes, at: int, data: Bytes, begin: int, end: int) -> int:
    """Copy these bytes; where the next ones go."""
    copy_bytes(out.ctypes.data + at, data.ctypes.data + begin, end - begin)
    return at + end - begin


@inlined
def _length(data: Bytes, at: int) -> int:
    return int(
        np.int64(data[at]) << 24
        | np.int64(data[at + 1]) << 16
        | np.int64(data[at + 2]) << 8
        | np.int64(data[at + 3])
    )


@inlined
def _begins(data: Bytes, start: int, end: int, name: Bytes) -> bool:
    if end - start < len(name):
        return False
    alike = True
    for place in range(len(name)):
        alike = alike and data[start + place] == name[place]
    return alike


@inlined
def _is(data: Bytes, start: int, end: int, name: Bytes) -> bool:
    return end - start == len(name) and _begins(data, start, end, name)


@kernel
def _place(data: Bytes, start: int, end: int) -> tuple[bool, int]:
    """Whether this is a place as `headers.read_place` takes it, and its timestamp."""
    at = start
    while at < end and data[at] != _COLON:
        byte = data[at]
        letter = 97 <= byte <= 122 or 65 <= byte <= 90
        if not (letter or _ZERO <= byte <= _NINE or byte == 46 or byte == 95 or byte == _MINUS):
            return False, 0
        at += 1
    if not 1 <= at - start <= _TOPIC_MAX:
        return False, 0
    number = np.int64(0)
    for field in range(3):
        at += 1
        negative = field == 2 and at < end and data[at] == _MINUS
        at += negative
        digits = at
        number = np.int64(0)
        while at < end and _ZERO <= data[at] <= _NINE:
            number = number * 10 + np.int64(data[at] - _ZERO)
            at += 1
        if not 1 <= at - digits <= _DIGITS_MAX or number < 0:
            return False, 0
        if data[digits] == _ZERO and (at - digits > 1 or negative):
            return False, 0
        if field < 2 and (at >= end or data[at] != _COLON):
            return False, 0
        if negative:
            number = -number
    return at == end, int(number)
