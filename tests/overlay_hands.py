"""A few brokers whose mail is carried by hand: what is written lies there until a test delivers it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from branchline.routing.codes import Rejection
from branchline.routing.control import Ack, Identity, Number, Operation, Request, Status, Subscribed
from branchline.routing.methods.naming import Methods
from branchline.routing.overlay.broker import Broker
from branchline.routing.overlay.dividing import Arrival
from branchline.routing.overlay.letters import Body, Letter
from branchline.routing.overlay.topology import Topology, founded, link
from branchline.routing.prefix.header import Header
from branchline.routing.prefix.optimizer import Optimizer, Settings
from branchline.routing.prefix.updates import Snapshot, Update
from branchline.routing.shard import Control, EventBatch, Job, Outputs, Shard
from branchline.routing.values import JsonValue

NOW_MS = 1_700_000_000_000


@dataclass(frozen=True, slots=True)
class Plain:
    """An event that is just its attributes, or cannot be read."""

    value: Mapping[str, JsonValue] | Rejection

    def attributes(self) -> Mapping[str, JsonValue] | Rejection:
        return self.value


def subscribe(
    filter_: str = "TRUE",
    request: str | None = "r1",
    *,
    home: str | None = "a",
    subscriber: str = "ann",
    id_: str = "one",
    lease_ms: int | None = None,
) -> Request:
    operation = Operation.SUBSCRIBE
    return Request(operation, subscriber, id_, home, filter=filter_, request=request, lease_ms=lease_ms)


def unsubscribe(request: str | None = "r2", *, home: str = "a", subscriber: str = "ann") -> Request:
    return Request(Operation.UNSUBSCRIBE, subscriber, "one", home, request=request)


def renew(request: str | None = "r2", *, lease_ms: int | None = None) -> Request:
    return Request(Operation.RENEW, "ann", "one", "a", request=request, lease_ms=lease_ms)


def line(names: str) -> Topology:
    """Brokers in a row."""
    return founded(names, [link(one, other) for one, other in pairwise(names)])


def ring(names: str) -> Topology:
    """Brokers in a circle."""
    return founded(names, [link(one, other) for one, other in zip(names, names[1:] + names[0], strict=True)])


def statuses(outputs: Outputs) -> list[Status]:
    return [ack.status for ack in outputs.acks]


def refusal(outputs: Outputs) -> Rejection:
    """Why the one request of a call was refused."""
    (ack,) = outputs.acks
    assert ack.status is Status.REFUSED
    assert ack.rejection is not None
    return ack.rejection


def told(number: int, filter_: str = "TRUE", home: str = "a", revision: int = 0) -> Subscribed:
    """A change as another broker tells it."""
    identity = Identity(home, "ann", "one")
    return Subscribed(identity, Number(1, number), "sql", filter_, revision=revision)


@dataclass(slots=True)
class Hands:
    """Jobs with one broker each, unless more are named together, and what they have written."""

    topology: Topology
    jobs: Sequence[tuple[str, ...]] = ()
    shards: int = 1
    methods: Methods = field(default_factory=Methods)
    now_ms: int = NOW_MS
    mail: list[Letter] = field(default_factory=list)
    acks: list[Ack] = field(default_factory=list)
    at: dict[str, list[Shard]] = field(default_factory=dict)
    """The shards of the job that serves a broker."""

    def __post_init__(self) -> None:
        for names in self.jobs or [(member.name,) for member in self.topology.members]:
            self.start(*names, topology=self.topology)

    def start(self, *names: str, topology: Topology | None = None, cluster: str = "main") -> None:
        """Start a job; without a topology it has yet to be told of one."""
        member = None if topology is None else topology.member(names[0])
        job = Job(names, topology, member.cluster if member else cluster, self.methods)
        shards = [Shard(job, index) for index in range(self.shards)]
        self.at |= dict.fromkeys(names, shards)

    def broker(self, name: str, shard: int = 0) -> Broker:
        return self.at[name][shard].brokers[name]

    def call(
        self,
        name: str,
        *control: Control,
        events: EventBatch | None = None,
        updates: Sequence[Update | Snapshot] = (),
    ) -> Outputs:
        """One batch of a broker's job: all its shards, of which the leading one's outputs count."""
        made = [
            shard.handle(self.now_ms, updates, control, events if index == 0 and events else EventBatch())
            for index, shard in enumerate(self.at[name])
        ]
        self.mail += made[0].letters
        self.acks += made[0].acks
        return made[0]

    def take(self, topology: Topology, at: str) -> Outputs:
        """A broker is the first to hear of a topology."""
        self.topology = topology
        return self.call(at, Letter(at, "", topology))

    def deliver(
        self, *, to: str | None = None, sender: str | None = None, body: type | None = None
    ) -> list[Outputs]:
        """Deliver the letters that fit and lie there now, one by one; what they cause is only written."""
        fit = [
            letter
            for letter in self.mail
            if to in (None, letter.to)
            if sender in (None, letter.sender)
            if body is None or isinstance(letter.body, body)
        ]
        for letter in fit:
            self.mail.remove(letter)
        return [self.call(letter.to, letter) for letter in fit]

    def settle(self) -> int:
        """Deliver until nothing lies there; how many letters that took."""
        count = 0
        while self.mail:
            letter = self.mail.pop(0)
            self.call(letter.to, letter)
            count += 1
            assert count < 10_000, "this never ends"
        return count

    def bodies(self, *, to: str | None = None, sender: str | None = None) -> list[Body]:
        """What lies there."""
        return [
            letter.body for letter in self.mail if to in (None, letter.to) if sender in (None, letter.sender)
        ]

    def grow(self) -> None:
        """Tell all jobs a tree of the filters that stand, so that what is found is found for certain."""
        optimizer = Optimizer(1, Settings(threshold=0.0))
        table = self.broker(next(iter(self.at))).table
        for change in table.changes():
            compiled = table.compiled(change.identity)
            if compiled is not None:
                optimizer.subscribe(compiled.cover)
        updates = optimizer.updates(self.now_ms)
        for name in self.at:
            self.call(name, updates=updates)

    def event(
        self,
        name: str,
        attributes: Mapping[str, JsonValue] | Rejection,
        header: Header | None = None,
        only: str | None = None,
    ) -> Outputs:
        """An event enters at a broker, or comes to it."""
        arrival = Arrival(Plain(attributes), header, only)
        return self.call(name, events=EventBatch([name], [arrival]))

    def publish(self, name: str, attributes: Mapping[str, JsonValue]) -> list[str]:
        """An event enters at a broker and goes wherever it goes; to whom it is delivered."""
        pending: list[tuple[str, Header | None]] = [(name, None)]
        delivered: list[str] = []
        while pending:
            at, header = pending.pop(0)
            outputs = self.event(at, attributes, header)
            assert not outputs.refused
            delivered += [each.subscriber for each in outputs.deliveries]
            pending += [(each.copy.to, each.copy.header) for each in outputs.forwarded]
        return sorted(delivered)


def numbers(topology: Topology, names: Iterable[str]) -> int:
    """The scope of these homes."""
    return sum(1 << member.number for member in topology.members if member.name in set(names))
