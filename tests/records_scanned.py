"""Records for the scanner, and whether it reads each as the reference reader does."""

from collections.abc import Iterable

import numpy as np
from spans_read import expected_rows, read_rows

from branchline.kafka.events import decode_event
from branchline.kafka.header_cells import pack_headers
from branchline.kafka.record import Headers, Place, Record
from branchline.kafka.scanning import Read, RecordColumns, Scanner, cells
from branchline.routing.codes import Rejection
from branchline.routing.compiled.paths import Paths
from branchline.routing.event import Event as Matched
from branchline.routing.expression import Path


def registered(paths: Iterable[Path]) -> Paths:
    """These paths, numbered."""
    made = Paths()
    for path in paths:
        made.add(path)
    return made


def columns(records: list[Record]) -> RecordColumns:
    """The records, side by side."""
    return RecordColumns(
        cells([record.value for record in records]),
        cells([record.key for record in records]),
        cells([pack_headers(record.headers) for record in records]),
        np.array([record.place.timestamp_ms for record in records], np.int64),
    )


def record(
    value: bytes | None, headers: Headers = (), key: bytes | None = b"k", timestamp_ms: int = 7
) -> Record:
    """A record by itself."""
    return Record(Place("in", 0, 0, timestamp_ms), key, value, headers)


def agrees(paths: Paths, records: list[Record]) -> Read:
    """Scan the records, and check each against the reference."""
    read = Scanner(paths).scan(columns(records))
    rows = read_rows(read.scanned, len(records))
    for index, each in enumerate(records):
        event = decode_event(each)
        if isinstance(event, Rejection):
            assert read.rejected.get(index) == event
            assert not rows[index]
            continue
        assert index not in read.rejected
        assert bool(read.opaque[index]) is event.opaque
        assert bool(read.arrays[index]) is Matched(event.attributes).has_array(paths)
        expected = expected_rows(paths, event.attributes)
        assert (index in read.unrowed) is (expected is None)
        assert sorted(rows[index], key=repr) == sorted(expected or [], key=repr)
        assert index not in read.events or read.events[index] == event
    return read
