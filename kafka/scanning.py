"""From a batch of records to rows of spans, without an object for each record; see `routing.compiled.spans`.

Records that the kernels leave go through `events.decode_parts`, one by one, which is some twenty times slower
and always right. So a batch of such records is slow, but none is read in another way. What they were decoded
to is written as JSON once more, now with nothing unusual, and the kernels make rows of that, which takes a
third of the time that Python would. What they leave even then, such as very long numbers, is for
`reading.rows_of`.

Cost: about a microsecond a record of 300 bytes; the slow way, tens of microseconds.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from branchline.kafka.events import Event, decode_parts
from branchline.kafka.header_cells import unpack_headers
from branchline.kafka.header_kernels import Table, header_columns, table
from branchline.kafka.record import Headers, Place, Record
from branchline.kafka.record_kernels import STAMP_BYTES, Batch, scan_records
from branchline.kafka.structured_kernels import CHOOSES, OPAQUE, SLOW
from branchline.routing.codes import Rejection
from branchline.routing.compiled.memory import PADDING, address
from branchline.routing.compiled.paths import Layout, Paths, Trie
from branchline.routing.compiled.reading import rows_of
from branchline.routing.compiled.scanning import work
from branchline.routing.compiled.spans import Scanned, joined
from branchline.routing.compiled.spreading import NONE, PLAIN, Entries, measure, spread
from branchline.routing.values import JsonValue

_ENTRY_MIN_BYTES = 4
"""Bytes for which there is at most one entry: a member has two quotes, a colon and a value. A header, which
may give two, has eight bytes of lengths."""
_ENTRIES_BESIDE = 8
"""Entries of an event that no member or header of its own stands for: `kafka` and what is in it, and what a
content type and a payload that is no object give."""


@dataclass(frozen=True, slots=True)
class Cells:
    """A column of bytes: cell i is `data[first[i]:first[i + 1]]`, and nothing at all where `null` is true."""

    data: NDArray[np.uint8]
    first: NDArray[np.int64]
    null: NDArray[np.bool_]

    def __post_init__(self) -> None:
        # The kernels go by addresses: what is not as they take it to be would be read as something else.
        assert self.data.dtype == np.uint8
        assert self.first.dtype == np.int64
        assert self.null.dtype == np.bool_
        assert len(self.first) == len(self.null) + 1
        assert 0 <= self.first[0] <= self.first[-1] <= len(self.data)

    def __len__(self) -> int:
        return len(self.null)

    def __getitem__(self, index: int) -> bytes | None:
        if self.null[index]:
            return None
        return self.data[self.first[index] : self.first[index + 1]].tobytes()

    @property
    def size(self) -> int:
        """How many bytes all cells have."""
        return int(self.first[-1] - self.first[0])

    @property
    def bytes(self) -> NDArray[np.uint8]:
        """The bytes of all cells."""
        return self.data[self.first[0] : self.first[-1]]


def cells(values: Sequence[bytes | None]) -> Cells:
    """A column of these."""
    if None not in values:
        lengths = np.fromiter(map(len, values), np.int64, len(values))  # type: ignore[arg-type]
        data = np.frombuffer(b"".join(values), np.uint8)  # type: ignore[arg-type]
        return Cells(data, np.append(0, np.cumsum(lengths)), np.zeros(len(values), np.bool_))
    first = np.fromiter(accumulate((len(value or b"") for value in values), initial=0), np.int64)
    null = np.fromiter((value is None for value in values), np.bool_, len(values))
    return Cells(np.frombuffer(b"".join(value or b"" for value in values), np.uint8), first, null)


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """A batch of records by columns. A cell of headers is as `header_cells` has it."""

    values: Cells
    keys: Cells
    headers: Cells
    timestamps: NDArray[np.int64]

    def __post_init__(self) -> None:
        assert self.timestamps.dtype == np.int64
        assert len(self.values) == len(self.keys) == len(self.headers) == len(self.timestamps)

    def __len__(self) -> int:
        return len(self.timestamps)

    def record(self, index: int) -> Record:
        """A record by itself; where it was read is not in the columns."""
        place = Place("", 0, 0, int(self.timestamps[index]))
        return Record(place, self.keys[index], self.values[index], self._headers(index))

    def event(self, index: int) -> Event | Rejection:
        """What `decode_event` makes of the record, which is not made."""
        timestamp_ms = int(self.timestamps[index])
        return decode_parts(self.keys[index], self.values[index], self._headers(index), timestamp_ms)

    def _headers(self, index: int) -> Headers:
        return unpack_headers(self.headers[index] or b"")


@dataclass(frozen=True, slots=True)
class Read:
    """What was read of a batch. An event is known by its index in the batch."""

    scanned: Scanned
    """The rows of all events that have rows, in the order of the events."""
    rejected: dict[int, Rejection]
    unrowed: list[int]
    """Events that were accepted but have no rows, because their arrays allow too many choices."""
    opaque: NDArray[np.bool_]
    arrays: NDArray[np.bool_]
    """For each event, whether a named path meets an array."""
    events: dict[int, Event]
    """The events that were decoded one by one."""

    @property
    def slow(self) -> int:
        """How many records the kernels left."""
        return len(self.events) + len(self.rejected)


class Scanner:
    """Reads batches for the paths that are registered when `scan` is called."""

    __slots__ = ("_paths",)

    def __init__(self, paths: Paths) -> None:
        self._paths = paths

    def scan(self, columns: RecordColumns) -> Read:
        """What is at the paths, in each record."""
        trie = self._paths.trie()
        layout = trie.layout()
        fast, arrays, outcome = _scanned(columns, trie, layout, len(self._paths))
        opaque = outcome == OPAQUE
        slow = np.flatnonzero(outcome == SLOW)
        if not slow.size:
            return Read(fast, {}, [], opaque, arrays, {})
        rejected: dict[int, Rejection] = {}
        events: dict[int, Event] = {}
        for index in slow.tolist():
            event = columns.event(index)
            if isinstance(event, Rejection):
                rejected[index] = event
            else:
                events[index] = event
        decoded = np.fromiter(events, np.int32)
        opaque[decoded] = [event.opaque for event in events.values()]
        # What is said of `kafka` is true, now that it was decoded.
        bare = layout._replace(kafka=-1, key=-1, timestamp=-1, header=-1)
        written, arrays[decoded], left = _scanned(self._again(events.values()), trie, bare, len(self._paths))
        rest = decoded[left == SLOW]
        rows = rows_of(self._paths, [events[index].attributes for index in rest.tolist()])
        arrays[rest] = rows.arrays
        parts = [fast, _of(written, decoded), *([_of(rows.scanned, rest)] if rest.size else ())]
        return Read(joined(parts), rejected, rest[rows.unrowed].tolist(), opaque, arrays, events)

    def _again(self, events: Iterable[Event]) -> RecordColumns:
        """What paths name of the events, as records with nothing but a value."""
        named = self._paths.root.below
        chosen = [
            {name: value for name, value in event.attributes.items() if name in named} for event in events
        ]
        # The name of a header may be half a surrogate pair. It is no JSON, and the kernels leave it.
        texts = [each.encode(errors="surrogatepass") for each in _documents(chosen)]
        none = cells([None] * len(texts))
        return RecordColumns(cells(texts), none, none, np.zeros(len(texts), np.int64))


_written = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":")).encode
_BETWEEN = "\0between"


def _documents(values: Sequence[JsonValue]) -> list[str]:
    """Each of the values as JSON. They are written together, which takes two thirds of the time."""
    marked: list[JsonValue] = [_BETWEEN] * (2 * len(values) - 1)
    marked[::2] = values
    texts = _written(marked)[1:-1].split(f",{_written(_BETWEEN)},")
    # An event may have the mark in an array of its own.
    return texts if len(texts) == len(values) else list(map(_written, values))


def _of(scanned: Scanned, events: NDArray[np.int32]) -> Scanned:
    """The rows of these events, which were numbered from 0."""
    return replace(scanned, event=events[scanned.event])


def _scanned(
    columns: RecordColumns, trie: Trie, layout: Layout, paths: int
) -> tuple[Scanned, NDArray[np.bool_], NDArray[np.uint8]]:
    """The rows that the kernels make, which records have arrays to choose from, and what became of each."""
    records, values, keys, headers = len(columns), columns.values, columns.keys, columns.headers
    header_place = values.size + records
    key_place = header_place + headers.size
    # Nobody looks at keys and timestamps that no path names.
    stamp_place = key_place + (keys.size if layout.key >= 0 else 0)
    size = stamp_place + (STAMP_BYTES * records if layout.timestamp >= 0 else 0)
    text = np.empty(size + PADDING, np.uint8)
    text[size:] = 0
    text[header_place:key_place] = headers.bytes
    if layout.key >= 0:
        text[key_place:stamp_place] = keys.bytes
    most = (values.size + headers.size) // _ENTRY_MIN_BYTES + _ENTRIES_BESIDE * records
    at_work = work(text, trie, min(most, records * paths))
    first, outcome = np.empty(records + 1, np.int64), np.empty(records, np.uint8)
    desk, table_columns = at_work.desk(), header_columns()
    batch = Batch(
        records,
        address(values.data),
        address(values.first),
        desk.text - int(values.first[0]),
        desk.text + header_place - int(headers.first[0]),
        address(headers.first),
        desk.text + key_place - int(keys.first[0]),
        address(keys.first),
        address(keys.null),
        address(columns.timestamps),
        desk.text + stamp_place,
        address(first),
        address(outcome),
    )
    header_table = table(table_columns)
    unread = scan_records(batch, layout, desk, header_table)
    if unread and (outcome == CHOOSES).any():
        plain = Entries(at_work, first)
        return *_chosen(columns, trie, layout, batch, header_table, plain, outcome), outcome
    event = np.arange(records, dtype=np.int32)
    if unread:
        event = event[outcome != SLOW]
        first = np.concatenate([first[:1], first[1:][event]])
    return at_work.rows(first, event), np.zeros(records, np.bool_), outcome


def _chosen(
    columns: RecordColumns,
    trie: Trie,
    layout: Layout,
    batch: Batch,
    header_table: Table,
    plain: Entries,
    outcome: NDArray[np.uint8],
) -> tuple[Scanned, NDArray[np.bool_]]:
    """All rows, those of records that choose among them, and which records have arrays to choose from."""
    chooses = np.flatnonzero(outcome == CHOOSES)
    # Each byte of a value stands for one entry or mark at most: a bracket, a comma, a value's first byte.
    most = sum(int(np.diff(each.first)[chooses].sum()) for each in (columns.values, columns.headers))
    choosing = work(plain.work.text, trie, most + _ENTRIES_BESIDE * chooses.size, chooses=True)
    marked = Entries(choosing, np.empty_like(plain.first))
    again = batch._replace(first=address(marked.first))
    scan_records(again, layout, choosing.desk(), header_table)
    measured = measure(marked, np.where(outcome < SLOW, PLAIN, NONE), chooses[outcome[chooses] < SLOW])
    outcome[measured.choices == NONE] = SLOW
    return spread(plain, marked, measured), measured.arrays
