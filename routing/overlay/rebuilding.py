"""A job made anew from what `filters` recorded, after its state was lost or must be left behind.

Theory of operation. `filters` has the newest change of each subscription that a broker of the job knows, of
whatever home, and the newest topology. A change is recorded before anybody is told of it or answered. So
nothing is missing there that somebody else can know, but it does not say who has been told and answered.
Hence what is made of it:

- Every broker of the job knows all that is recorded, ends and leases as they stood. What one of them had yet
  to learn from the other it knows sooner: changes are ordered, so hearing of them again is harmless.
- What was said about a record may not have been said. So each broker tells neighbours outside of the job
  all that it knows, and reports to homes outside what it has: `Broker.resume`.
- Which subscriptions were pending is not recorded. So all at homes of the job are, but for those whose ack
  is known; they are told again under a higher revision, everybody reports, and all requests that are
  remembered are answered once more.
- A home numbers on in a new life, above all that is recorded.
- A broker has joined if one of its job had: their records are the same. If none had, none has.
- No lease was told to expire: those that are over will be.
- What is advertised lets events in at once, and is told and answered again as what is pending. What lingered
  is not recorded: so all subscriptions are pulled, for as long as anything lingers.
- The Routing Tree is not recorded: it is told anew by snapshots, and meanwhile every filter is asked.

Copies of events that were held are not recorded either; whoever calls this sees to them.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace

from branchline.routing.control import Ack, Ended, Forgotten, Identity, Number, Subscribed
from branchline.routing.dissemination.adverts import AdvertAwaited, Advertised, Unadvertised, Unremembered
from branchline.routing.overlay.facts import Fact
from branchline.routing.overlay.letters import Complete, Letter
from branchline.routing.overlay.pending import Awaited
from branchline.routing.overlay.recording import Recorded as Told
from branchline.routing.overlay.recording import to_record
from branchline.routing.overlay.topology import Topology
from branchline.routing.shard import Job, Shard, ShardState


@dataclass(slots=True)
class Recorded:
    """The records of `filters`, folded: what stands, what has ended lately, and the topology."""

    changes: dict[Identity, Subscribed | Ended] = field(default_factory=dict)
    topology: Topology | None = None
    adverts: dict[Identity, Advertised | Unadvertised] = field(default_factory=dict)

    def add(self, told: Told) -> None:
        """The next record. A batch that was run again wrote its own again: an older one means nothing."""
        if isinstance(told, Topology):
            if self.topology is None or told.order > self.topology.order:
                self.topology = told
        elif isinstance(told, Advertised | Unadvertised):
            advert = self.adverts.get(told.identity)
            if advert is None or told.order >= advert.order:
                self.adverts[told.identity] = told
        elif isinstance(told, Unremembered):
            self.forget_advert(told.identity)
        elif isinstance(told, Forgotten):
            self.changes.pop(told.identity, None)
        else:
            known = self.changes.get(told.identity)
            if known is None or told.order >= known.order:
                self.changes[told.identity] = told

    def forget(self, identity: Identity) -> None:
        """A tombstone: what ended was remembered long enough."""
        self.changes.pop(identity, None)

    def forget_advert(self, identity: Identity) -> None:
        """A tombstone of an advertisement."""
        self.adverts.pop(identity, None)

    @property
    def standing(self) -> list[Subscribed]:
        return [change for change in self.changes.values() if isinstance(change, Subscribed)]


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A job's state made anew, and what must be written before it goes on, in this order."""

    state: ShardState
    filters: list[Told]
    letters: list[Letter]
    acks: list[Ack]
    pending: int
    """How many subscriptions and advertisements wait for answers again."""
    joining: bool


def rebuild(
    job: Job,
    recorded: Recorded,
    *,
    joined: bool,
    in_force: Collection[tuple[Identity, Number]],
    now_ms: int,
) -> Rebuilt:
    """The state of every shard of the job, from what was recorded.

    `joined` says whether a broker of the job had joined, as far as they ever had to. `in_force` are the
    subscriptions, with the numbers under which, whose askers were told that they are in force.
    """
    facts = [
        (name, fact)
        for name in job.brokers
        for fact in _facts(name, job, recorded, joined=joined, in_force=in_force, now_ms=now_ms)
    ]
    shard = Shard(job, 0, [ShardState(facts=tuple(facts))])
    said: list[tuple[str, Fact]] = []
    letters: list[Letter] = []
    acks: list[Ack] = []
    for name, broker in shard.brokers.items():
        broker.resume(now_ms, job.brokers)
        spoken = broker.said()
        said += [(name, fact) for fact in spoken.facts]
        letters += spoken.letters
        acks += spoken.acks
    newest = _newest(job, recorded)
    filters = to_record(shard.brokers, said, None if newest is None else newest.order)
    if newest is not None and recorded.topology is None and len(newest.members) > 1:
        # A job does not record what it began with; the next rebuild need not be told of it.
        filters.append(newest)
    pending = sum(len(broker.home.pending) + len(broker.adverts.pending) for broker in shard.brokers.values())
    joining = any(broker.joining for broker in shard.brokers.values())
    return Rebuilt(shard.state(), filters, letters, acks, pending, joining)


def _newest(job: Job, recorded: Recorded) -> Topology | None:
    known = [each for each in (job.topology, recorded.topology) if each is not None]
    return max(known, key=lambda each: each.order, default=None)


def _facts(
    name: str,
    job: Job,
    recorded: Recorded,
    *,
    joined: bool,
    in_force: Collection[tuple[Identity, Number]],
    now_ms: int,
) -> Iterator[Fact]:
    topology = _newest(job, recorded)
    if topology is not None:
        yield topology
        if joined:
            yield Complete()
    own = [change for change in recorded.changes.values() if change.identity.home == name]
    adverts = [change for change in recorded.adverts.values() if change.identity.home == name]
    highest = max((change.number.incarnation for change in (*own, *adverts)), default=0)
    yield Number(max(now_ms, highest + 1), 0)
    yield from recorded.changes.values()
    yield from _advertised(adverts)
    if topology is None or [member.name for member in topology.members] == [name]:
        return
    for change in own:
        if isinstance(change, Subscribed) and (change.identity, change.number) not in in_force:
            yield Awaited(change.identity, change.number, change.requests or (None,))


def _advertised(adverts: Iterable[Advertised | Unadvertised]) -> Iterator[Fact]:
    for advert in adverts:
        yield advert
        if isinstance(advert, Advertised):
            # The same once more: it is in force while that is pending.
            yield replace(advert, revision=advert.revision + 1)
            yield AdvertAwaited(Awaited(advert.identity, advert.number, advert.requests or (None,)))
