"""A log in Spark's state store: packed entries, what they were shortened to, and a token.

Theory of operation. Python reaches the store through a socket at some 0.2 ms a call, so state is kept as few,
large cells: one entry per batch that changed something, and, when the entries have grown as large as the last
snapshot, a new snapshot in chunks. A token is the digest of all entries so far: equal tokens mean equal
state, whichever worker, attempt or run made it.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle
from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType

CHUNK_BYTES = 512 * 1024
"""A snapshot's chunk: large cells move at full speed, one of a hundred megabytes would take gigabytes."""

_META = StructType(
    [
        StructField("layout", IntegerType(), False),
        StructField("token", BinaryType(), False),
        StructField("log_bytes", LongType(), False),
        StructField("snapshot_bytes", LongType(), False),
    ]
)
_CELL = StructType([StructField("bytes", BinaryType(), False)])


class LayoutDiffers(Exception):
    """The state was written by a program with another layout. Its message is recognised by the driver."""

    MARK = "branchline-state-layout"

    def __init__(self, found: int, ours: int) -> None:
        super().__init__(f"{self.MARK}: the checkpoint has layout {found}, this program {ours}")


@dataclass(frozen=True, slots=True)
class Meta:
    """What is known of a log without reading it."""

    layout: int
    token: bytes = b""
    log_bytes: int = 0
    snapshot_bytes: int = 0


class StateLog:
    """The log of one key."""

    def __init__(self, handle: StatefulProcessorHandle, layout: int, min_bytes: int) -> None:
        self._layout = layout
        self._min_bytes = min_bytes
        self._meta = handle.getValueState("meta", _META)
        self._log = handle.getListState("log", _CELL)
        self._snapshot = handle.getListState("snapshot", _CELL)

    def meta(self) -> Meta:
        """What is known of the key's log; raises LayoutDiffers if somebody else wrote it."""
        stored = self._meta.get()
        if stored is None:
            return Meta(self._layout)
        layout, token, log_bytes, snapshot_bytes = stored
        if layout != self._layout:
            raise LayoutDiffers(layout, self._layout)
        return Meta(layout, bytes(token), log_bytes, snapshot_bytes)

    def entries(self) -> Iterator[bytes]:
        """The snapshot, if there is one, and all entries since."""
        snapshot = b"".join(bytes(chunk) for (chunk,) in self._snapshot.get())
        if snapshot:
            yield snapshot
        for (entry,) in self._log.get():
            yield bytes(entry)

    def is_long(self, meta: Meta, entry: bytes) -> bool:
        """Whether a snapshot is worth more than this entry at the end of the log."""
        return meta.log_bytes + len(entry) > max(self._min_bytes, meta.snapshot_bytes)

    def append(self, meta: Meta, entry: bytes) -> Meta:
        """Add an entry."""
        self._log.appendValue((entry,))
        return self._put(replace(_after(meta, entry), log_bytes=meta.log_bytes + len(entry)))

    def shorten(self, meta: Meta, entry: bytes, snapshot: bytes) -> Meta:
        """Put a snapshot in the place of all entries, this last one included."""
        chunks = range(0, len(snapshot), CHUNK_BYTES)
        self._snapshot.put([(snapshot[start : start + CHUNK_BYTES],) for start in chunks])
        self._log.clear()
        return self._put(replace(_after(meta, entry), log_bytes=0, snapshot_bytes=len(snapshot)))

    def _put(self, meta: Meta) -> Meta:
        self._meta.update((meta.layout, meta.token, meta.log_bytes, meta.snapshot_bytes))
        return meta


def _after(meta: Meta, entry: bytes) -> Meta:
    return replace(meta, token=hashlib.blake2b(meta.token + entry, digest_size=16).digest())
