"""A shard's state in Spark's state store: a log of packed changes, a snapshot, and a token.

Theory of operation. Python reaches the store through a socket at some 0.2 ms a call, so the state is kept as
few, large cells. What all shards of a job share and what is a shard's own are apart. Of the former there is
one *log entry* for each batch that changed something; entries are numbered, stand in the *tail* first and
move together into a *segment*; when the log has grown as large as the last snapshot, a new snapshot is
written, in chunks. Of the latter, which is little, there is a list.

The store is the truth. A worker also keeps the shards that it has built in memory, but uses one only if its
tokens equal the stored ones. A token is the digest of all entries so far: equal tokens mean equal state,
whichever worker, attempt or run made it; so nothing depends on which worker a shard lands on, and a replay
writes the same bytes. Spark gives a job's shards to its workers as it likes, another one every other batch.
So one whose token of what is shared is the stored one may become any shard of its job: only what is that
shard's own is read.

A worker that has not got the shard looks for an image on its host (`images.py`), and obeys the entries since.
That these entries lead from the image's token to the stored one shows that it is an image of this very state.
Without one it builds the shard from snapshot and log, and has an image written, as it has when the log since
the last one has grown to a share of the state. All that happens beside the batch, and no output depends on
it.

A job that was rebuilt begins with a *seed*: a packed state that every shard finds in place of nothing, and
takes for its first entry.
"""

import gc
import hashlib
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from pyspark.sql.streaming.stateful_processor import ListState, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType

from branchline.routing.prefix.layout import UnreadableTree
from branchline.routing.shard import Job, Shard, ShardState
from branchline.streaming.facts import pack, unpack
from branchline.streaming.images import Images
from branchline.streaming.log import LayoutDiffers

LAYOUT_VERSION = 4
"""Of everything below, and of what `facts.py` packs. Raise it with any change that an older or newer program
could not read."""

COUNTS = ("shards_opened", "shards_built", "images_written", "images_damaged", "images_unwritten")
"""What is counted here, for `stats`."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large things may grow, in bytes."""

    chunk: int = 512 * 1024
    """Of a snapshot: large cells move at full speed, one of a hundred megabytes would take gigabytes."""
    log_min: int = 256 * 1024
    """A log shorter than this is never worth a snapshot."""
    segment: int = 32 * 1024
    segments_kept: int = 64
    """Segments that are kept when a snapshot makes them dispensable: the image of it is yet to be written."""
    image_min: int = 16 * 1024
    """A state smaller than this is built as fast as an image is opened."""
    image_share: int = 128
    """An image is written anew when the log since the last one is this part of the state: a worker obeys that
    much in some 0.2 s at 100,000 filters, and writing one takes seconds, if beside the batch."""


SIZES = Sizes()

_TOKEN_BYTES = 16
_NO_TOKEN = bytes(_TOKEN_BYTES)
_LENGTH = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class _Meta:
    layout: int
    token: bytes = _NO_TOKEN
    own_token: bytes = _NO_TOKEN
    sequence: int = 0
    """How many entries there were."""
    base: int = 0
    """How many of them the snapshot holds."""
    log_bytes: int = 0
    snapshot_bytes: int = 0
    tail_bytes: int = 0
    tail_first: int = 1
    """The number of the first entry in the tail, or of the next one."""
    segment_first: int = 0
    segment_next: int = 0
    own_bytes: int = 0
    own_kept: int = 0
    """What the own list had when it was last made short."""


_META = StructType(
    [
        StructField("layout", IntegerType(), False),
        StructField("token", BinaryType(), False),
        StructField("own_token", BinaryType(), False),
        *(StructField(name, LongType(), False) for name in tuple(_Meta.__slots__)[3:]),
    ]
)
_CELL = StructType([StructField("bytes", BinaryType(), False)])
_SEGMENT_KEY = StructType([StructField("number", LongType(), False)])
_SEGMENT = StructType([StructField("first", LongType(), False), StructField("bytes", BinaryType(), False)])


@dataclass(slots=True)
class _Warm:
    """A shard in memory, the tokens of its state, and how many bytes of log there are since its image."""

    tokens: tuple[bytes, bytes]
    shard: Shard
    since_image: int


_warm: dict[tuple[Job, int], _Warm] = {}
"""Shards that this worker has built, with the tokens of their state."""


class ShardStore:
    """Loads and saves one shard."""

    def __init__(
        self,
        handle: StatefulProcessorHandle,
        images: Images,
        layout: int = LAYOUT_VERSION,
        sizes: Sizes = SIZES,
        seed: Callable[[], bytes] | None = None,
    ) -> None:
        self._layout = layout
        self._seed = seed
        self._sizes = sizes
        self._images = images
        self._counts: Counter[str] = Counter()
        self._meta = handle.getValueState("meta", _META)
        self._tail = handle.getListState("tail", _CELL)
        self._segments = handle.getMapState("segments", _SEGMENT_KEY, _SEGMENT)
        self._snapshot = handle.getListState("snapshot", _CELL)
        self._own = handle.getListState("own", _CELL)

    def take(self, job: Job, index: int) -> Shard:
        """The shard as the store has it.

        It is taken out of this worker's memory: if handling the batch fails half-way, the half-changed
        shard is lost with it, and the next attempt builds it afresh.
        """
        meta = self._taken = self._read_meta()
        warm = self._warm_one(job, index, meta)
        if warm is None:
            warm = self._open(job, index, meta) or self._build(job, index, meta)
        self._since_image = warm.since_image
        return warm.shard

    def save(self, job: Job, index: int, shard: Shard, changed: ShardState | None) -> None:
        """Append what a batch changed since the shard was taken, and keep it warm."""
        meta = self._taken
        if changed is not None:
            shared, own = changed.divided()
            if shared:
                meta = self._append(meta, pack(shared), shard)
            if own:
                meta = self._append_own(meta, pack(own), shard)
            self._put_meta(meta)
        state_bytes = meta.snapshot_bytes + meta.log_bytes
        due = self._since_image > max(self._sizes.image_min, state_bytes // self._sizes.image_share)
        if due and self._images.write_aside(meta.sequence, meta.token, shard.image):
            self._since_image = 0
        _warm[job, index] = _Warm((meta.token, meta.own_token), shard, self._since_image)

    def counts(self) -> dict[str, int]:
        """What happened since this was last asked."""
        counts = self._counts + self._images.counts
        self._counts, self._images.counts = Counter(), Counter()
        return {name: counts[name] for name in COUNTS}

    # Writing

    def _append(self, meta: _Meta, entry: bytes, shard: Shard) -> _Meta:
        sizes = self._sizes
        self._since_image += len(entry)
        meta = replace(
            meta,
            token=_digest(meta.token, entry),
            sequence=meta.sequence + 1,
            log_bytes=meta.log_bytes + len(entry),
            tail_bytes=meta.tail_bytes + len(entry),
        )
        if meta.tail_bytes <= sizes.segment:
            self._tail.appendValue((entry,))
        else:
            entries = [*_cells(self._tail), entry] if meta.tail_first < meta.sequence else [entry]
            cell = b"".join(_LENGTH.pack(len(each)) + each for each in entries)
            self._segments.updateValue((meta.segment_next,), (meta.tail_first, cell))
            self._tail.clear()
            segment_next = meta.segment_next + 1
            meta = replace(meta, tail_bytes=0, tail_first=meta.sequence + 1, segment_next=segment_next)
        if meta.log_bytes > max(sizes.log_min, meta.snapshot_bytes):
            meta = self._write_snapshot(meta, shard)
        return meta

    def _write_snapshot(self, meta: _Meta, shard: Shard) -> _Meta:
        snapshot = pack(shard.state().divided()[0])
        self._put_snapshot(snapshot)
        kept = max(meta.segment_first, meta.segment_next - self._sizes.segments_kept)
        for number in range(meta.segment_first, kept):
            self._segments.removeKey((number,))
        return replace(
            meta, base=meta.sequence, log_bytes=0, snapshot_bytes=len(snapshot), segment_first=kept
        )

    def _append_own(self, meta: _Meta, entry: bytes, shard: Shard) -> _Meta:
        own_bytes, own_kept = meta.own_bytes + len(entry), meta.own_kept
        if own_bytes > max(self._sizes.log_min, 2 * own_kept):
            facts = [pack(ShardState(facts=(each,))) for each in shard.own_state().facts]
            own_bytes = own_kept = sum(map(len, facts))
            self._own.put([(each,) for each in facts])
        else:
            self._own.appendValue((entry,))
        return replace(meta, own_token=_digest(meta.own_token, entry), own_bytes=own_bytes, own_kept=own_kept)

    def _plant(self, seed: bytes) -> _Meta:
        """Begin with the seed as if it had been the only entry, and were in the snapshot."""
        shared, own = unpack(seed).divided()
        snapshot, own_entry = pack(shared), pack(own)
        self._put_snapshot(snapshot)
        self._own.put([(own_entry,)])
        meta = _Meta(
            self._layout,
            _digest(_NO_TOKEN, seed),
            _digest(_NO_TOKEN, own_entry),
            sequence=1,
            base=1,
            tail_first=2,
            snapshot_bytes=len(snapshot),
            own_bytes=len(own_entry),
        )
        self._put_meta(meta)
        return meta

    def _put_meta(self, meta: _Meta) -> None:
        self._meta.update(tuple(getattr(meta, name) for name in _Meta.__slots__))

    def _put_snapshot(self, snapshot: bytes) -> None:
        chunks = range(0, len(snapshot), self._sizes.chunk)
        self._snapshot.put([(snapshot[start : start + self._sizes.chunk],) for start in chunks])

    # Reading

    def _read_meta(self) -> _Meta:
        stored = self._meta.get()
        if stored is None:
            return _Meta(self._layout) if self._seed is None else self._plant(self._seed())
        layout, token, own_token, *numbers = stored
        if layout != self._layout:
            raise LayoutDiffers(layout, self._layout)
        return _Meta(layout, bytes(token), bytes(own_token), *numbers)

    def _warm_one(self, job: Job, index: int, meta: _Meta) -> _Warm | None:
        """The shard from this worker's memory; also one that was another of the job's, in the same state."""
        warm = _warm.pop((job, index), None)
        if warm is not None and warm.tokens == (meta.token, meta.own_token):
            return warm
        if warm is None or warm.tokens[0] != meta.token:
            del warm  # its memory is free before another one is built
            alike = (key for key, each in _warm.items() if key[0] == job and each.tokens[0] == meta.token)
            key = next(alike, None)
            if key is None:
                return None
            warm = _warm.pop(key)
        warm.shard.become(index, map(unpack, _cells(self._own)))
        return warm

    def _open(self, job: Job, index: int, meta: _Meta) -> _Warm | None:
        """The shard from an image on this host, None if there is none to go on from."""
        for sequence, token, path in self._images.find(meta.sequence):
            entries = self._since(meta, sequence)
            if entries is None:
                break
            if _digest(token, *entries) != meta.token:
                continue
            image = self._images.open(sequence, token, path)
            if image is None:
                continue
            try:
                shard = Shard(job, index, map(unpack, [*entries, *_cells(self._own)]), image)
            except UnreadableTree:
                self._images.damaged(path)
                continue
            self._counts["shards_opened"] += 1
            return _Warm((meta.token, meta.own_token), shard, sum(map(len, entries)))
        return None

    def _build(self, job: Job, index: int, meta: _Meta) -> _Warm:
        """The shard from its state alone."""
        state_bytes = meta.snapshot_bytes + meta.log_bytes
        large = state_bytes > self._sizes.image_min
        if large:
            # What is built stays: collecting it again and again would take longer than to build it.
            gc.unfreeze()
            gc.collect()
            gc.disable()
        try:
            shard = Shard(job, index, self._parts(meta))
        finally:
            if large:
                gc.freeze()
                gc.enable()
        if meta.sequence:
            self._counts["shards_built"] += 1
        written = large and self._images.write_aside(meta.sequence, meta.token, shard.image)
        return _Warm((meta.token, meta.own_token), shard, 0 if written else state_bytes)

    def _parts(self, meta: _Meta) -> Iterator[ShardState]:
        snapshot = b"".join(_cells(self._snapshot))
        if snapshot:
            yield unpack(snapshot)
        entries = self._since(meta, meta.base)
        assert entries is not None, "the log goes back to the snapshot"
        yield from map(unpack, entries)
        yield from map(unpack, _cells(self._own))

    def _since(self, meta: _Meta, sequence: int) -> list[bytes] | None:
        """The entries after the one of this number, None if the log does not go back that far."""
        if sequence >= meta.sequence:
            return []
        parts = [list(_cells(self._tail)) if meta.tail_first <= meta.sequence else []]
        first, number = meta.tail_first, meta.segment_next
        while first > sequence + 1:
            number -= 1
            cell = self._segments.getValue((number,)) if number >= meta.segment_first else None
            if cell is None:
                return None
            first = cell[0]
            parts.append(list(_entries(bytes(cell[1]))))
        entries = [entry for part in reversed(parts) for entry in part]
        return entries[sequence + 1 - first :]


def stored_state(
    snapshot: bytes, segments: list[tuple[int, bytes]], tail: list[bytes], own: list[bytes], base: int
) -> Iterator[ShardState]:
    """The parts of a state, from what its variables hold; a segment has the number of its first entry."""
    if snapshot:
        yield unpack(snapshot)
    for first, cell in sorted(segments):
        yield from (unpack(entry) for number, entry in enumerate(_entries(cell), first) if number > base)
    yield from map(unpack, [*tail, *own])


def _cells(state: ListState) -> Iterator[bytes]:
    return (bytes(cell) for (cell,) in state.get())


def _entries(cell: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(cell):
        (length,) = _LENGTH.unpack_from(cell, at)
        at += _LENGTH.size + length
        yield cell[at - length : at]


def _digest(token: bytes, *entries: bytes) -> bytes:
    """The token after these entries."""
    for entry in entries:
        token = hashlib.blake2b(token + entry, digest_size=_TOKEN_BYTES).digest()
    return token
