"""A router job as it is simulated: it reads its topics in batches, runs its shards, and writes what they say.

Theory of operation. A job reads its topics from where it stopped, calls every shard that has input with one
timestamp, and writes what they decided. A job that crashes in the middle of a batch has written some of its
outputs. It comes back from its log, runs the same batch again with the same timestamp, and writes everything,
for some readers a second time; such records are marked as possible repeats.
"""

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from branchline.routing.history import Read, Undecided
from branchline.routing.overlay.dividing import Arrival
from branchline.routing.prefix.header import Header, decode, encode
from branchline.routing.prefix.updates import Snapshot, Update
from branchline.routing.shard import Control, EventBatch, Job, Outputs, Shard, ShardState
from branchline.routing.values import JsonValue

if TYPE_CHECKING:
    from branchline.ops.simulation.world import World

EVENTS_PER_BATCH = 500
"""Events that a job takes at once; control has no limit."""
ATTEMPTS_MAX = 4
"""Of a batch: the last one does not crash, so every batch is done at some time."""
NOISE: Mapping[str, JsonValue] = {"noise": True}

_Write: TypeAlias = tuple[Callable[..., None], tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Record:
    """An event in a topic: what an arrival's content is here."""

    event: int
    key: str | None
    content: Mapping[str, JsonValue]
    header: Header | bytes | None = None
    repeat: bool = False
    noisy: bool = False

    def attributes(self) -> Mapping[str, JsonValue]:
        return NOISE if self.noisy else self.content


@dataclass(slots=True)
class _Batch:
    """What a job reads at once: fixed before it is run, so that it can be run again."""

    now_ms: int
    updates: list[Update | Snapshot]
    control: list[Control]
    events: list[tuple[str, int, Record]]
    """The broker, the partition, the record."""
    ticked: bool = False
    attempts: int = 0


class _Result(NamedTuple):
    """What a shard has decided, and the records that this is about, by their indexes in the outputs."""

    shard: int
    outputs: Outputs
    records: list[Record]


class Runner:
    """A router job: its shards, their logs, and what it has not read yet."""

    def __init__(self, world: "World", name: str, job: Job) -> None:
        self.world, self.name, self.job = world, name, job
        self.shards = [Shard(job, index) for index in range(world.setting.shards)]
        self._logs: list[list[ShardState]] = [[] for _ in self.shards]
        self._control: dict[str, list[Control]] = {}
        self._updates: list[Update | Snapshot] = []
        self._events: dict[tuple[str, str, int], list[Record]] = {}
        self._batch: _Batch | None = None
        self._woken = False
        self._ticked = False
        self._tick_ms: int | None = None
        self._round_ms: int | None = None

    def control(self, topic: str, message: Control) -> None:
        self._control.setdefault(topic, []).append(message)
        self.wake()

    def update(self, told: Update | Snapshot) -> None:
        self._updates.append(told)
        self.wake()

    def event(self, topic: str, broker: str, record: Record) -> None:
        partitions = self.world.setting.partitions
        partition = record.event % partitions if record.key is None else _stable(record.key) % partitions
        self._events.setdefault((topic, broker, partition), []).append(record)
        self.wake()

    def wake(self) -> None:
        """There is input: run a batch soon."""
        if not self._woken:
            self._woken = True
            self.world.later(self.world.random.randint(1, self.world.setting.batch_ms), self.run)

    def is_idle(self) -> bool:
        return not self._woken

    def run(self) -> None:
        """Run a batch, or the one that crashed once more."""
        self._woken = False
        batch = self._batch = self._batch or self._read()
        batch.attempts += 1
        draw = self.world.random.random()
        faults = self.world.setting.faults
        called = [self._call(index, batch) for index in range(len(self.shards))]
        results = [result for result in called if result is not None]
        if draw < faults.crashes and batch.attempts < ATTEMPTS_MAX:
            self._crash(batch, results)
            return
        self._batch = None
        self._commit(batch, results)
        if draw > 1 - faults.restarts:
            self.world.counts["restarts"] += 1
            self.restore()
        if any(self._events.values()) or self._control or self._updates or self._ticked:
            self.wake()

    def _crash(self, batch: _Batch, results: list[_Result]) -> None:
        """Write only some of it, or nothing, and come back after a while."""
        self.world.counts["crashes"] += 1
        if not self.world.setting.faults.exactly_once:
            for result in results:
                writes = self._writes(batch, result, repeat=batch.attempts > 1)
                for act, arguments in writes[: self.world.random.randint(0, len(writes))]:
                    act(*arguments)
        self.restore()
        self._woken = True
        self.world.later(self.world.random.randint(1, 200), self.run)

    def _commit(self, batch: _Batch, results: list[_Result]) -> None:
        """Remember and write all of it."""
        repeat = batch.attempts > 1 and not self.world.setting.faults.exactly_once
        for result in results:
            if result.outputs.changed is not None:
                self._logs[result.shard].append(result.outputs.changed)
            for act, arguments in self._writes(batch, result, repeat=repeat):
                act(*arguments)
            self.world.counts.update(result.outputs.counts)

    def restore(self) -> None:
        """Come back from the log, which is now and then made one snapshot."""
        for index, log in enumerate(self._logs):
            self.shards[index] = Shard(self.job, index, log)
            if self.world.random.random() < 0.5:
                self._logs[index] = [self.shards[index].state()]

    def _read(self) -> _Batch:
        # As the router sorts its rows: by topic, then by offset.
        control = [message for _, topic in sorted(self._control.items()) for message in topic]
        updates, self._control, self._updates = self._updates, {}, []
        events: list[tuple[str, int, Record]] = []
        for place in sorted(self._events):
            records = self._events[place]
            taken = records[: EVENTS_PER_BATCH - len(events)]
            del records[: len(taken)]
            events += [(place[1], place[2], record) for record in taken]
        ticked, self._ticked = self._ticked, False
        return _Batch(self.world.now_ms, updates, control, events, ticked)

    def _call(self, index: int, batch: _Batch) -> _Result | None:
        """What a shard makes of its share of the batch; None if it has none."""
        mine = [
            (broker, record)
            for broker, partition, record in batch.events
            if self._shard_of(record, partition) == index
        ]
        if not (batch.updates or batch.control or batch.ticked or mine):
            return None
        records = [record for _, record in mine]
        arrivals = [self._arrival(record) for record in records]
        events = EventBatch([broker for broker, _ in mine], arrivals)
        outputs = self.shards[index].handle(
            batch.now_ms, batch.updates, self.control_for(index, batch), events
        )
        records += [arrival.content for arrival in outputs.released if isinstance(arrival.content, Record)]
        return _Result(index, outputs, records)

    def control_for(self, index: int, batch: _Batch) -> list[Control]:
        """What of the control a shard gets: all of it."""
        return batch.control

    def _shard_of(self, record: Record, partition: int) -> int:
        return (partition if record.key is None else _stable(record.key)) % len(self.shards)

    def _arrival(self, record: Record) -> Arrival:
        header = record.header
        if isinstance(header, bytes):
            header = decode(header)
            assert header is not None, "what was encoded can be decoded"
        return Arrival(record, header)

    def _writes(self, batch: _Batch, result: _Result, *, repeat: bool) -> list[_Write]:
        """What is to be written, in order: filters before letters and acks, acks last."""
        world = self.world
        shard, outputs, records = result
        writes: list[_Write] = [(world.record, (self, change)) for change in outputs.filters]
        for forwarded in outputs.forwarded:
            record, copy = records[forwarded.event], forwarded.copy
            sent = replace(
                record,
                header=encode(copy.header) if world.setting.as_bytes else copy.header,
                repeat=repeat or record.repeat,
                noisy=world.setting.noise,
            )
            writes.append((world.forward, (forwarded.at, copy.to, sent)))
        for delivery in outputs.deliveries:
            record = records[delivery.event]
            entry = Read(delivery.subscriber, record.event, repeat or record.repeat)
            writes.append((world.note, (entry,)))
        writes += [
            (world.note, (Undecided(each.subscriber, records[each.event].event),))
            for each in outputs.undecided
        ]
        writes += [(world.refuse, (records[each.event].event, each)) for each in outputs.refused]
        writes += [(world.fail, (f"control was unusable: {each}",)) for each in outputs.unusable]
        writes += [(world.post, (self, letter)) for letter in outputs.letters]
        writes += [(world.give, (self, work)) for work in outputs.work]
        if shard == 0:
            writes.append((self._tick_at, (outputs.due_ms,)))
            if self._has_rounds():
                # Nowhere else: a write more or less is another crash from the same seed.
                writes.append((self._round_at, ()))
        writes += [(world.ack, (ack, batch.now_ms)) for ack in outputs.acks]
        return writes

    def _tick_at(self, due_ms: int | None) -> None:
        """Call the shards when a lease may be over, though there may be nothing to handle."""
        if due_ms is not None and (self._tick_ms is None or due_ms < self._tick_ms):
            self._tick_ms = due_ms
            self.world.later(max(0, due_ms - self.world.now_ms), self._tick, background=True)

    def _has_rounds(self) -> bool:
        """Whether subscribers may work for brokers here."""
        trees = (broker.tree for broker in self.shards[0].brokers.values())
        return any(tree is not None and tree.offloader is not None for tree in trees)

    def _round_at(self) -> None:
        """The same when a round is to begin or to end, for which the world waits before it is quiet."""
        due_ms = self.shards[0].round_ms()
        if due_ms is not None and due_ms != self._round_ms:
            self._round_ms = due_ms
            self.world.later(max(0, due_ms - self.world.now_ms), self._tick)

    def _tick(self) -> None:
        self._ticked, self._tick_ms = True, None
        self.wake()


def _stable(text: str) -> int:
    return zlib.crc32(text.encode())
