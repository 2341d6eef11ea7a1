"""A shard's state in Spark's state store: a log of packed changes, a snapshot, and a token.

Theory of operation. Python reaches the store through a socket at some 0.2 ms a call, so the state is kept
as few, large cells: one log entry per batch that changed something, and, when the log has grown as large as
the last snapshot, a new snapshot in chunks. The store is the truth. A worker also keeps the shards it has
built in memory, but uses one only if its token equals the stored one. A token is the digest of all entries
so far: equal tokens mean equal state, whichever worker, attempt or run made it; so nothing depends on
which worker a shard lands on, and a replay writes the same bytes.

A job that was rebuilt begins with a *seed*: a packed state that every shard finds in place of nothing, and
takes for its first snapshot.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle
from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType

from branchline.routing.shard import Job, Shard, ShardState
from branchline.streaming.facts import pack, unpack

LAYOUT_VERSION = 2
"""Of everything below, and of what `facts.py` packs. Raise it with any change that an older or newer program
could not read."""

CHUNK_BYTES = 512 * 1024
"""A snapshot's chunk: large cells move at full speed, one of a hundred megabytes would take gigabytes."""

LOG_MIN_BYTES = 256 * 1024
"""A log shorter than this is never worth a snapshot."""

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
class _Meta:
    layout: int
    token: bytes
    log_bytes: int
    snapshot_bytes: int


_warm: dict[tuple[Job, int], tuple[bytes, Shard]] = {}
"""Shards built by this worker process, by job and index, with the token of their state."""


class ShardStore:
    """Loads and saves one shard."""

    def __init__(
        self,
        handle: StatefulProcessorHandle,
        layout: int = LAYOUT_VERSION,
        seed: Callable[[], bytes] | None = None,
    ) -> None:
        self._layout = layout
        self._seed = seed
        self._meta = handle.getValueState("meta", _META)
        self._log = handle.getListState("log", _CELL)
        self._snapshot = handle.getListState("snapshot", _CELL)

    def take(self, job: Job, index: int) -> Shard:
        """The shard as the store has it.

        It is taken out of this worker's memory: if handling the batch fails half-way, the half-changed
        shard is lost with it, and the next attempt builds it afresh.
        """
        warm = _warm.pop((job, index), None)
        self._taken = self._read_meta()
        if warm is not None and warm[0] == self._taken.token:
            return warm[1]
        return Shard(job, index, list(self._parts()))

    def save(self, job: Job, index: int, shard: Shard, changed: ShardState | None) -> None:
        """Append what a batch changed since the shard was taken, and keep it warm."""
        meta = self._taken
        if changed is not None:
            meta = self._append(meta, pack(changed), shard)
        _warm[job, index] = (meta.token, shard)

    def _append(self, meta: _Meta, entry: bytes, shard: Shard) -> _Meta:
        token = hashlib.blake2b(meta.token + entry, digest_size=16).digest()
        log_bytes, snapshot_bytes = meta.log_bytes + len(entry), meta.snapshot_bytes
        if log_bytes > max(LOG_MIN_BYTES, snapshot_bytes):
            snapshot = pack(shard.state())
            self._put_snapshot(snapshot)
            self._log.clear()
            log_bytes, snapshot_bytes = 0, len(snapshot)
        else:
            self._log.appendValue((entry,))
        return self._put_meta(_Meta(self._layout, token, log_bytes, snapshot_bytes))

    def _put_meta(self, meta: _Meta) -> _Meta:
        self._meta.update((meta.layout, meta.token, meta.log_bytes, meta.snapshot_bytes))
        return meta

    def _put_snapshot(self, snapshot: bytes) -> None:
        chunks = range(0, len(snapshot), CHUNK_BYTES)
        self._snapshot.put([(snapshot[start : start + CHUNK_BYTES],) for start in chunks])

    def _plant(self, seed: bytes) -> _Meta:
        """Begin with the seed as if it had been the last snapshot."""
        self._put_snapshot(seed)
        token = hashlib.blake2b(seed, digest_size=16).digest()
        return self._put_meta(_Meta(self._layout, token, 0, len(seed)))

    def _read_meta(self) -> _Meta:
        stored = self._meta.get()
        if stored is None:
            if self._seed is not None:
                return self._plant(self._seed())
            return _Meta(self._layout, b"", 0, 0)
        layout, token, log_bytes, snapshot_bytes = stored
        if layout != self._layout:
            raise LayoutDiffers(layout, self._layout)
        return _Meta(layout, bytes(token), log_bytes, snapshot_bytes)

    def _parts(self) -> Iterator[ShardState]:
        snapshot = b"".join(bytes(chunk) for (chunk,) in self._snapshot.get())
        if snapshot:
            yield unpack(snapshot)
        for (entry,) in self._log.get():
            yield unpack(bytes(entry))
