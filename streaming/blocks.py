"""What a shard's batch has to be written, packed into few large cells.

Spark moves a row at a price, whatever its size, so many records travel in one cell: a *block*. There are
three kinds. A block of records has what `dispatch` gives out one by one, in order. A block of deliveries has
the events of an `Owed`, each once, and to whom they are owed; a block of copies those of an `Onward`, with
the header of each copy. An event is never divided: all its deliveries, or copies, stand in one block, and one
that is larger than a block may be is a block of its own.

A block is a number of parts, each the bytes of one column, after a table of their lengths. A column of cells
is two parts: the lengths (`NULL` for none) as little-endian numbers of four bytes, and all bytes together. A
column of names is their UTF-8, each ended by a line break, which no name has. Packing and unpacking are
linear, and make no object but the cells themselves.
"""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from branchline.kafka.dispatch import Dispatch
from branchline.kafka.header_cells import pack_headers
from branchline.kafka.owed import Onward, Owed
from branchline.kafka.record import Headers
from branchline.routing.slices import Slices

BLOCK_MAX_ROWS = 20_000
"""Records of a block: so many that what a block costs by itself is nothing to each of them."""

BLOCK_MAX_BYTES = 4 * 1024 * 1024
"""Bytes of a block: large enough to move fast, small enough for several copies on their way."""

NULL = -1
"""Stands where the length of a cell would, for one that is not there."""

_ROW_BYTES = 32
"""What a record takes in a block beside its cells, more or less."""

_LENGTHS = np.dtype("<i4")
_SIZES = np.dtype("<i8")


class BlockKind(IntEnum):
    """What a row of the operator holds."""

    COUNTS = -1
    """Not for Kafka: tells the driver what was counted."""
    RECORDS = 0
    DELIVERIES = 1
    COPIES = 2


@dataclass(frozen=True, slots=True)
class Block:
    """One packed cell; `data` is anything with the bytes in it."""

    kind: BlockKind
    data: bytes


@dataclass(frozen=True, slots=True)
class Records:
    """What `dispatch` gave out one by one, as columns."""

    steps: Sequence[int]
    topics: Sequence[str]
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    headers: Sequence[bytes]
    ids: Sequence[bytes | None]

    def __len__(self) -> int:
        return len(self.steps)


def pack(items: Iterable[Dispatch | Owed]) -> Iterator[Block]:
    """Blocks of all that a batch has to be written; neither kind overtakes the other."""
    waiting = _Waiting()
    for item in items:
        if isinstance(item, Owed):
            yield from waiting.take()
            yield from _divided(item)
        else:
            waiting.add(item)
            if waiting.is_full():
                yield from waiting.take()
    yield from waiting.take()


def unpack(block: Block) -> Records | Owed:
    """What the block was packed from; the subscribers of an `Owed` may be numbered otherwise."""
    parts = _split(block.data)
    if block.kind is BlockKind.RECORDS:
        steps, topics, *cells = parts
        keys, values, headers, ids = (_cells(*each) for each in zip(cells[::2], cells[1::2], strict=True))
        return Records(bytes(steps), _names(topics), keys, values, _all(headers), ids)
    *cells, origins, first, subscriber, names = parts
    keys, values, headers, *prefixes = (_cells(*each) for each in zip(cells[::2], cells[1::2], strict=True))
    events = (keys, values, _all(headers), _names(origins))
    to = (np.frombuffer(first, _SIZES), np.frombuffer(subscriber, _LENGTHS), _names(names))
    return Onward(*events, *to, *map(_all, prefixes)) if prefixes else Owed(*events, *to)


class Checksum:
    """Of all records of a batch, column by column: the same however they were divided into blocks."""

    def __init__(self) -> None:
        self._sums: dict[tuple[BlockKind, int], int] = {}

    def add(self, block: Block) -> None:
        """The next block."""
        parts = _split(block.data)
        if block.kind is not BlockKind.RECORDS:
            *parts, first, subscriber, names = parts
            # Numbers are a block's own: in their place stand digests of what they mean.
            digests = np.array([zlib.crc32(name) for name in bytes(names).split(b"\n")[:-1]], np.uint32)
            owed = digests[np.frombuffer(subscriber, _LENGTHS)]
            counts = np.diff(np.frombuffer(first, _SIZES))
            parts += [memoryview(counts.tobytes()), memoryview(owed.tobytes())]
        for index, part in enumerate(parts):
            self._sums[block.kind, index] = zlib.crc32(part, self._sums.get((block.kind, index), 0))

    def value(self) -> int:
        """The sum so far; 0 if there were no blocks."""
        whole = 0
        for _, part in sorted(self._sums.items()):
            whole = zlib.crc32(part.to_bytes(4, "little"), whole)
        return whole


class _Waiting:
    """Records that are to be in one block."""

    def __init__(self) -> None:
        self._items: list[Dispatch] = []
        self._headers: list[bytes] = []
        self._bytes = 0
        self._last: tuple[Headers, bytes] = ((), b"")

    def add(self, item: Dispatch) -> None:
        if item.headers is not self._last[0]:
            # Records that are about one event share one tuple of headers.
            self._last = (item.headers, pack_headers(item.headers))
        self._items.append(item)
        self._headers.append(self._last[1])
        self._bytes += _ROW_BYTES + len(item.key or b"") + len(item.value or b"") + len(self._last[1])

    def is_full(self) -> bool:
        return len(self._items) >= BLOCK_MAX_ROWS or self._bytes >= BLOCK_MAX_BYTES

    def take(self) -> Iterator[Block]:
        if not self._items:
            return
        items, headers = self._items, self._headers
        self._items, self._headers, self._bytes = [], [], 0
        yield Block(
            BlockKind.RECORDS,
            _joined(
                bytes(item.step for item in items),
                _lines(item.topic for item in items),
                *_column([item.key for item in items]),
                *_column([item.value for item in items]),
                *_column(headers),
                *_column([None if item.id is None else item.id.encode() for item in items]),
            ),
        )


def _divided(owed: Owed) -> Iterator[Block]:
    """Blocks of as many events as each may have, but at least one."""
    events = len(owed.keys)
    ends = np.zeros(events + 1, np.int64)
    columns = (owed.keys, owed.values, owed.headers, owed.origins)
    ends[1:] = _ROW_BYTES + sum(_sizes(column).clip(min=0) for column in columns)
    np.cumsum(ends, out=ends)
    if isinstance(owed, Onward):
        ends += np.append(0, np.cumsum(_sizes(owed.prefixes)))[owed.first]
    start = 0
    while start < events:
        in_bytes = np.searchsorted(ends, ends[start] + BLOCK_MAX_BYTES, "right") - 1
        in_rows = np.searchsorted(owed.first, owed.first[start] + BLOCK_MAX_ROWS, "right") - 1
        stop = max(int(min(in_bytes, in_rows, events)), start + 1)
        yield _deliveries(owed, start, stop)
        start = stop


def _deliveries(owed: Owed, start: int, stop: int) -> Block:
    first = owed.first[start : stop + 1]
    # Only the names that are needed: of all subscribers there may be very many.
    used, subscriber = np.unique(owed.subscriber[first[0] : first[-1]], return_inverse=True)
    return Block(
        BlockKind.COPIES if isinstance(owed, Onward) else BlockKind.DELIVERIES,
        _joined(
            *_column(owed.keys[start:stop]),
            *_column(owed.values[start:stop]),
            *_column(owed.headers[start:stop]),
            *(_column(owed.prefixes[first[0] : first[-1]]) if isinstance(owed, Onward) else ()),
            _lines(owed.origins[start:stop]),
            (first - first[0]).astype(_SIZES).tobytes(),
            subscriber.astype(_LENGTHS).tobytes(),
            _lines(owed.names[number] for number in used.tolist()),
        ),
    )


def _sizes(cells: Sequence[bytes | str | None]) -> NDArray[np.int64]:
    if isinstance(cells, Slices):
        return cells.lengths()
    return np.fromiter((NULL if cell is None else len(cell) for cell in cells), np.int64, len(cells))


def _column(cells: Sequence[bytes | None]) -> tuple[bytes, bytes]:
    data = cells.whole() if isinstance(cells, Slices) else b"".join(filter(None, cells))
    return _sizes(cells).astype(_LENGTHS).tobytes(), data


def _cells(lengths: memoryview, data: memoryview) -> list[bytes | None]:
    sizes = np.frombuffer(lengths, _LENGTHS)
    ends = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(np.maximum(sizes, 0), out=ends[1:])
    whole = bytes(data)
    cells: list[bytes | None] = [whole[start:end] for start, end in pairwise(ends.tolist())]
    for index in np.flatnonzero(sizes == NULL).tolist():
        cells[index] = None
    return cells


def _all(cells: list[bytes | None]) -> list[bytes]:
    return [cell or b"" for cell in cells] if None in cells else cells  # type: ignore[return-value]


def _lines(names: Iterable[str]) -> bytes:
    return "".join([f"{name}\n" for name in names]).encode()


def _names(lines: memoryview) -> list[str]:
    return bytes(lines).decode().split("\n")[:-1]


def _joined(*parts: bytes) -> bytes:
    table = np.array([len(parts), *map(len, parts)], _SIZES)
    return b"".join((table.tobytes(), *parts))


def _split(data: bytes) -> list[memoryview]:
    whole = memoryview(data)
    (count,) = np.frombuffer(whole[: _SIZES.itemsize], _SIZES).tolist()
    start = (count + 1) * _SIZES.itemsize
    lengths = np.frombuffer(whole[_SIZES.itemsize : start], _SIZES)
    bounds = (start + np.concatenate(([0], np.cumsum(lengths)))).tolist()
    return [whole[first:end] for first, end in pairwise(bounds)]
