"""The event records of one batch as columns: a record is made of them only when somebody wants one."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from branchline.kafka.header_cells import pack_headers, unpack_headers
from branchline.kafka.record import Place, Record

if TYPE_CHECKING:  # compiled loops are imported when the first batch needs them
    from branchline.kafka.scanning import RecordColumns


@dataclass(frozen=True, slots=True)
class EventColumns:
    """Records, side by side; headers are packed (`header_cells.py`)."""

    topics: Sequence[str] = ()
    partitions: Sequence[int] = ()
    offsets: Sequence[int] = ()
    timestamps_ms: Sequence[int] = ()
    keys: Sequence[bytes | None] = ()
    values: Sequence[bytes | None] = ()
    headers: Sequence[bytes] = ()

    @classmethod
    def of(cls, records: Iterable[Record]) -> "EventColumns":
        """The columns of records that are there already."""
        rows = [
            (
                each.place.topic,
                each.place.partition,
                each.place.offset,
                each.place.timestamp_ms,
                each.key,
                each.value,
                pack_headers(each.headers),
            )
            for each in records
        ]
        return cls(*zip(*rows, strict=True)) if rows else cls()

    def __len__(self) -> int:
        return len(self.topics)

    def chosen(self, rows: Sequence[int]) -> "RecordColumns":
        """The contents of the records in these rows."""
        from branchline.kafka.scanning import RecordColumns, cells

        return RecordColumns(
            cells([self.values[row] for row in rows]),
            cells([self.keys[row] for row in rows]),
            cells([self.headers[row] for row in rows]),
            np.array([self.timestamps_ms[row] for row in rows], np.int64),
        )

    def place(self, row: int) -> Place:
        """Where a record was published."""
        return Place(self.topics[row], self.partitions[row], self.offsets[row], self.timestamps_ms[row])

    def record(self, row: int) -> Record:
        """The record in this row."""
        headers = unpack_headers(self.headers[row])
        return Record(self.place(row), self.keys[row], self.values[row], headers)
