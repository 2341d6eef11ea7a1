"""A modelled network that drives the real state machines: jobs, topics, links, and what goes wrong.

Theory of operation. Time is a whole number of milliseconds; what will happen stands in a heap, ordered by
time and then by when it was scheduled. A *job* runs shards as the router does: it reads its topics from where
it stopped, calls every shard that has input with one timestamp, and writes what they decided. Each topic is a
log that keeps the order of each of its writers. A *link* between jobs has a delay, and may lose a record and
send it again (which only delays it and what follows), or bring one twice.

A job that crashes in the middle of a batch has written some of its outputs. It comes back from its log, runs
the same batch again with the same timestamp, and writes everything, for some readers a second time; such
records are marked as possible repeats. What a subscriber does and sees is written down as a history.

Deterministic: everything that is drawn comes from one seed, and no order depends on hashing.
"""

import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any

from branchline.routing.control import Ack, Change, Identity, Operation, Request, Status
from branchline.routing.history import (
    Acked,
    Entry,
    Lapsing,
    Published,
    Read,
    Settled,
    Steady,
    Undecided,
    Unsteady,
    Wrote,
)
from branchline.routing.overlay.broker import Arrival
from branchline.routing.overlay.letters import Letter, Propose
from branchline.routing.overlay.methods import Methods
from branchline.routing.overlay.optimizing import TreeOptimizer
from branchline.routing.overlay.topology import Topology
from branchline.routing.prefix.header import Header, decode, encode
from branchline.routing.prefix.optimizer import Settings
from branchline.routing.prefix.updates import Snapshot, Update
from branchline.routing.shard import Control, EventBatch, Job, Outputs, Shard, ShardState
from branchline.routing.values import JsonValue

QUIET_WITHIN_MS = 3_600_000
"""A network that is not quiet after so long never will be."""
EVENTS_PER_BATCH = 500
"""Events that a job takes at once; control has no limit."""
NOISE: Mapping[str, JsonValue] = {"noise": True}


@dataclass(frozen=True, slots=True)
class Faults:
    """What goes wrong, and how often."""

    delay_ms: int = 20
    """The longest that a record is on its way."""
    lost: float = 0.0
    """Share of records that are lost, and sent again after a while."""
    doubled: float = 0.0
    """Share of records that arrive a second time, later."""
    crashes: float = 0.0
    """Share of batches that crash half-way and are run again."""
    restarts: float = 0.0
    """Share of batches after which a job starts anew from its state."""
    updates_lost: float = 0.0
    """Share of tree updates that a job never gets."""
    updates_delay_ms: int = 50
    exactly_once: bool = False
    """Of a batch that crashed nothing was written."""


@dataclass(frozen=True, slots=True)
class Setting:
    """How a world is set up."""

    topology: Topology
    jobs: tuple[tuple[str, ...], ...]
    """The brokers of each job; each job is on a cluster of its own if the topology says so."""
    shards: int = 1
    partitions: int = 1
    batch_ms: int = 10
    """The longest that a job lets its input wait."""
    methods: Methods = field(default_factory=Methods)
    trees: Settings = field(default_factory=Settings)
    faults: Faults = field(default_factory=Faults)
    noise: bool = False
    """Between brokers, the content of an event is noise."""
    as_bytes: bool = True
    """Headers travel as bytes, as on Kafka; else as they are, which is faster."""


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
        batch = self._batch or self._read()
        self._batch = batch
        batch.attempts += 1
        draw = self.world.random.random()
        faults = self.world.setting.faults
        results = [
            (index, outputs, records)
            for index in range(len(self.shards))
            if (outcome := self._call(index, batch)) is not None
            for outputs, records in [outcome]
        ]
        if draw < faults.crashes and batch.attempts < 4:
            self.world.counts["crashes"] += 1
            if not faults.exactly_once:
                self._write_some(results, batch)
            self.restore()
            self._woken = True
            self.world.later(self.world.random.randint(1, 200), self.run)
            return
        self._batch = None
        for index, outputs, records in results:
            if outputs.changed is not None:
                self._logs[index].append(outputs.changed)
            repeat = batch.attempts > 1 and not faults.exactly_once
            for act, arguments in self._writes(index, batch, outputs, records, repeat=repeat):
                act(*arguments)
            self.world.counts.update(outputs.counts)
        if draw > 1 - faults.restarts:
            self.world.counts["restarts"] += 1
            self.restore()
        if any(self._events.values()) or self._control or self._updates:
            self.wake()

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

    def _call(self, index: int, batch: _Batch) -> tuple[Outputs, list[Record]] | None:
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
        return outputs, records

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

    def _write_some(self, results: list[tuple[int, Outputs, list[Record]]], batch: _Batch) -> None:
        for index, outputs, records in results:
            writes = self._writes(index, batch, outputs, records, repeat=batch.attempts > 1)
            for act, arguments in writes[: self.world.random.randint(0, len(writes))]:
                act(*arguments)

    def _writes(
        self, index: int, batch: _Batch, outputs: Outputs, records: list[Record], *, repeat: bool
    ) -> list[tuple[Callable[..., None], tuple[Any, ...]]]:
        """What is to be written, in order: filters before letters and acks, acks last."""
        world = self.world
        writes: list[tuple[Callable[..., None], tuple[Any, ...]]] = [
            (world.record, (self, change)) for change in outputs.filters
        ]
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
        writes += [(world.fail, (f"an event was refused: {each}",)) for each in outputs.refused]
        writes += [(world.fail, (f"control was unusable: {each}",)) for each in outputs.unusable]
        writes += [(world.post, (self, letter)) for letter in outputs.letters]
        if index == 0:
            writes.append((self._tick_at, (outputs.due_ms,)))
        writes += [(world.ack, (ack, batch.now_ms)) for ack in outputs.acks]
        return writes

    def _tick_at(self, due_ms: int | None) -> None:
        """Call the shards when a lease may be over, though there may be nothing to handle."""
        if due_ms is not None and (self._tick_ms is None or due_ms < self._tick_ms):
            self._tick_ms = due_ms
            self.world.later(max(0, due_ms - self.world.now_ms), self._tick, background=True)

    def _tick(self) -> None:
        self._ticked, self._tick_ms = True, None
        self.wake()


class World:
    """Everything that is simulated, and the history of it."""

    def __init__(self, setting: Setting, seed: int) -> None:
        self.setting = setting
        self.random = Random(seed)
        self.now_ms = 1_000_000
        self.topology = setting.topology
        """The newest one that an operator has asked for."""
        self._accepted = setting.topology
        self._proposals: list[Topology] = []
        self.history: list[Entry] = []
        self.failures: list[str] = []
        self.counts: Counter[str] = Counter()
        self.copies: list[tuple[int, str, str, Header | bytes]] = []
        """Every copy that was sent: the event, from where, to whom, and the header."""
        self.tree_clocks: list[tuple[int, int]] = []
        """When the Tree Optimizer told an update, and which."""
        self._heap: list[tuple[int, int, bool, Callable[..., None], tuple[Any, ...]]] = []
        self._sequence = count()
        self._foreground = 0
        self._arrives_ms: dict[tuple[str, ...], int] = {}
        self._flying: Counter[str] = Counter()
        self.runners: list[Runner] = []
        self.at: dict[str, Runner] = {}
        for names in setting.jobs:
            self._add_job(names, setting.topology)
        self._incarnation = 1
        self.optimizer = TreeOptimizer(self._incarnation, setting.trees)
        self._filters: dict[Identity, Change] = {}
        self._unread: list[Change] = []
        self._is_optimizing = False
        self._asked: dict[Identity, None] = {}
        self._leases: dict[str, int] = {}
        """What requests have asked for."""

    def _add_job(self, names: tuple[str, ...], topology: Topology | None, cluster: str = "main") -> None:
        member = None if topology is None else topology.member(names[0])
        job = Job(names, topology, member.cluster if member else cluster, self.setting.methods)
        runner = Runner(self, f"job{len(self.runners)}", job)
        self.runners.append(runner)
        self.at |= dict.fromkeys(names, runner)

    # Time

    def later(
        self, delay_ms: int, act: Callable[..., None], *arguments: Any, background: bool = False
    ) -> None:
        """Something will happen. What is in the background does not keep the world from being quiet."""
        self._foreground += not background
        heappush(self._heap, (self.now_ms + delay_ms, next(self._sequence), background, act, arguments))

    def advance(self, to_ms: int) -> None:
        """Let happen what happens until then."""
        while self._heap and self._heap[0][0] <= to_ms:
            self._happen()
        self.now_ms = max(self.now_ms, to_ms)

    def settle(self) -> None:
        """Let happen what happens until all is quiet."""
        deadline_ms = self.now_ms + QUIET_WITHIN_MS
        while self._foreground and self.now_ms < deadline_ms:
            self._happen()
        if self._foreground:
            self.fail(f"the network is not quiet after {QUIET_WITHIN_MS} ms")
        self.note(Settled())
        brokers = [self.at[member.name] for member in self.topology.members]
        steady = all(
            broker.topology == self.topology and not broker.joining and not broker.held
            for member, runner in zip(self.topology.members, brokers, strict=True)
            for shard in runner.shards
            for broker in [shard.brokers[member.name]]
        )
        if steady:
            self.note(Steady())
        else:
            self.fail("the network is quiet, and a broker joins, holds events or has an old topology")

    def _happen(self) -> None:
        at_ms, _, background, act, arguments = heappop(self._heap)
        self.now_ms = max(self.now_ms, at_ms)
        self._foreground -= not background
        act(*arguments)

    def note(self, entry: Entry) -> None:
        """Write something down in the history."""
        self.history.append(entry)

    def fail(self, reason: str) -> None:
        """Something happened that never should."""
        self.failures.append(reason)

    # Records on their way

    def _carry(self, channel: tuple[str, ...], act: Callable[[bool], None], to: str | None = None) -> None:
        """Bring a record to where it goes, after all that went there before it from the same writer.

        What comes from a client and is doubled comes twice in a row, as a producer does it that tries again;
        between brokers the second may come much later.
        """

        def arrive(again: bool) -> None:
            if to is not None:
                self._flying[to] -= 1
            act(again)

        faults = self.setting.faults
        delay_ms = self.random.randint(0, faults.delay_ms)
        if faults.lost and self.random.random() < faults.lost:
            self.counts["lost_and_resent"] += 1
            delay_ms += self.random.randint(20, 300)
        arrives_ms = max(self._arrives_ms.get(channel, 0), self.now_ms + delay_ms)
        self._arrives_ms[channel] = arrives_ms
        if to is not None:
            self._flying[to] += 1
        self.later(arrives_ms - self.now_ms, arrive, False)
        if faults.doubled and self.random.random() < faults.doubled:
            self.counts["doubled"] += 1
            if to is not None:
                self._flying[to] += 1
            later_ms = 0 if to is None else self.random.randint(0, 100)
            self.later(arrives_ms - self.now_ms + later_ms, arrive, True)

    def post(self, sender: Runner, letter: Letter) -> None:
        """A letter for a broker."""
        self.counts["letters"] += 1
        topic = f"link.{letter.to}"

        def arrive(again: bool) -> None:
            self.at[letter.to].control(topic, letter)

        self._carry((sender.name, topic), arrive, letter.to)

    def forward(self, at: str, to: str, record: Record) -> None:
        """A copy of an event for a neighbour."""
        assert record.header is not None
        self.counts["copies"] += 1
        self.copies.append((record.event, at, to, record.header))

        def arrive(again: bool) -> None:
            self.at[to].event("broker", to, replace(record, repeat=record.repeat or again))

        self._carry((self.at[at].name, f"broker.{to}"), arrive, to)

    def ack(self, ack: Ack, handled_ms: int) -> None:
        """An answer of a home, to what it handled then."""
        if ack.subscriber is None or ack.id is None:
            self._answered(ack)
            return
        self.counts[f"acks_{ack.status}"] += 1
        identity = Identity(ack.home, ack.subscriber, ack.id)
        self.note(Acked(identity, ack.status, ack.request))
        if ack.status in (Status.ACCEPTED, Status.RENEWED) and ack.request is not None:
            lease_ms = self._leases.get(ack.request)
            if lease_ms is not None:
                over_ms = max(0, handled_ms + lease_ms - self.now_ms)
                self.later(over_ms, self.note, Lapsing(identity), background=True)
            if not self._stays(ack.home):
                # A renewal that was handled before the broker left saves nothing.
                self.note(Lapsing(identity))

    # What clients do

    def ask(self, request: Request) -> None:
        """A subscriber writes a request to the cluster of its home."""
        assert request.home is not None and request.request is not None
        identity = Identity(request.home, request.subscriber, request.id)
        if request.operation is not Operation.RENEW:
            filter_ = request.filter if request.operation is Operation.SUBSCRIBE else None
            self.note(Wrote(identity, request.spelling, filter_, request.request))
        self._asked[identity] = None
        if not self._stays(request.home):
            self.note(Lapsing(identity))
        if request.lease_ms is not None:
            self._leases[request.request] = request.lease_ms
        cluster = self.at[request.home].job.cluster
        for runner in self.runners:
            if runner.job.cluster == cluster:
                self._carry(("clients", runner.name), partial(_hand, runner, request))

    def _stays(self, broker: str) -> bool:
        member = self.topology.member(broker)
        return member is not None and not member.leaving

    def publish(self, broker: str, attributes: Mapping[str, JsonValue], key: str | None = None) -> int:
        """A publisher writes an event to a broker's entry topic."""
        event = self.counts["published"]
        self.counts["published"] += 1
        self.note(Published(event, attributes, None if key is None else (broker, key)))
        self.at[broker].event("in", broker, Record(event, key, attributes))
        return event

    # What operators do

    def propose(self, topology: Topology) -> None:
        """Ask for a topology, once the one before it was accepted."""
        self.topology = topology
        self.counts["topologies"] += 1
        self.note(Unsteady())
        self._proposals.append(topology)
        if len(self._proposals) == 1:
            self._ask_for(topology)

    def _ask_for(self, topology: Topology) -> None:
        """Ask the cluster of a broker that stays, and again for as long as nobody answers."""
        if not self._proposals or self._proposals[0] is not topology:
            return
        before = self._accepted
        asked = next(member for member in before.members if not member.leaving)
        for runner in self.runners:
            if runner.job.cluster == asked.cluster:
                propose = Propose(topology, f"t{topology.number}")
                self._carry(("operator", runner.name), partial(_hand, runner, propose))
        self.later(1_000, self._ask_for, topology)

    def _answered(self, ack: Ack) -> None:
        """A proposal was accepted, or was before."""
        if self._proposals and ack.request == f"t{self._proposals[0].number}":
            self._accepted = self._proposals.pop(0)
            if self._proposals:
                self._ask_for(self._proposals[0])

    def join(self, name: str, links: Mapping[str, int], cluster: str) -> None:
        """Start a job for a new broker, and put it into the topology."""
        self._add_job((name,), None, cluster)
        self.propose(self.topology.joined(name, links, cluster))

    def leave(self, name: str) -> None:
        """Let a broker leave: first it is marked, and gone when everybody knows and nothing is on its way."""
        leaving = self.topology.left(name)
        for identity in self._asked:
            if identity.home == name:
                self.note(Lapsing(identity))
        self.propose(leaving)
        self.later(50, self._leave, name, leaving.number)

    def _leave(self, name: str, number: int) -> None:
        leaver = self.at[name]
        known = all(
            broker.topology is not None and broker.topology.number >= number
            for member in self.topology.members
            for shard in self.at[member.name].shards
            for broker in [shard.brokers[member.name]]
        )
        held = any(shard.brokers[name].held for shard in leaver.shards)
        if known and leaver.is_idle() and not held and not self._flying[name]:
            self.propose(self.topology.without(name))
        else:
            self.later(50, self._leave, name, number)

    # The Tree Optimizer

    def record(self, runner: Runner, change: Change | Topology) -> None:
        """A job has written to `filters`; the Tree Optimizer reads those of the first job."""
        if runner is not self.runners[0] or isinstance(change, Topology):
            return
        self._filters[change.identity] = change
        self._unread.append(change)
        self._optimize_in(self.random.randint(1, self.setting.batch_ms))

    def _optimize_in(self, delay_ms: int, *, background: bool = False) -> None:
        if not self._is_optimizing:
            self._is_optimizing = True
            self.later(delay_ms, self._optimize, background=background)

    def _optimize(self) -> None:
        self._is_optimizing = False
        unread, self._unread = self._unread, []
        self._tell(self.optimizer.handle(self.now_ms, unread))
        if any(self.optimizer.optimizer.differences()) and self.setting.trees.limit_ms is not None:
            self._optimize_in(self.setting.trees.limit_ms, background=True)

    def tell_snapshot(self) -> None:
        """The Tree Optimizer tells everything that it has told."""
        self._tell(list(self.optimizer.optimizer.snapshots()))

    def restart_optimizer(self) -> None:
        """The Tree Optimizer begins a new life, with what `filters` has."""
        self._incarnation += 1
        self._unread = []
        self.optimizer = TreeOptimizer(self._incarnation, self.setting.trees)
        self._tell(self.optimizer.handle(self.now_ms, list(self._filters.values())))
        self.tell_snapshot()

    def _tell(self, told: Sequence[Update | Snapshot]) -> None:
        faults = self.setting.faults
        for each in told:
            if isinstance(each, Update):
                self.counts["updates"] += 1
                self.tree_clocks.append((self.now_ms, each.version.clock))
            for runner in self.runners:
                if faults.updates_lost and self.random.random() < faults.updates_lost:
                    self.counts["updates_lost"] += 1
                    continue
                channel = ("optimizer", runner.name)
                delay_ms = self.random.randint(0, faults.updates_delay_ms)
                arrives_ms = max(self._arrives_ms.get(channel, 0), self.now_ms + delay_ms)
                self._arrives_ms[channel] = arrives_ms
                self.later(arrives_ms - self.now_ms, runner.update, each)


def _hand(runner: Runner, message: Control, again: bool) -> None:
    runner.control("control", message)


def _stable(text: str) -> int:
    return zlib.crc32(text.encode())
