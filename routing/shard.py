"""The shard: the pure state machine that a router job runs S times side by side.

Theory of operation. Every shard gets every control message and every update of the Routing Tree, and so
holds all that the brokers of its job know; of the events it gets its share. One call of `handle` is one
micro-batch: updates, then control, one by one, then expiry, then the events as one batch. What it returns
depends on the arguments and on the state before, and on nothing else, so a replayed batch gives the same
outputs. All shards make the same changes from the same control messages; only the leading shard (number 0)
writes what they cause, or each letter and ack would be written S times.

The tree is there once, for all brokers; each broker sees it through its own places.

State that survives is `ShardState`; `changed` in the outputs says what to add to its log. Folding the log
gives the state again.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice, zip_longest
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from branchline.routing.batches import Batches
from branchline.routing.codes import Code, Rejection
from branchline.routing.control import ADVERTISING, Ack, Request, Status, Subscribed
from branchline.routing.deliveries import Deliveries, Gathering, Names, no_deliveries
from branchline.routing.dissemination.strategies import make_dissemination
from branchline.routing.forwarded import CopyGathering, ForwardedCopies, no_copies
from branchline.routing.limits import SUBSCRIPTIONS_PER_SUBSCRIBER
from branchline.routing.methods.naming import Methods, make_forwarding
from branchline.routing.offloading.assigner import Given
from branchline.routing.offloading.assisting import Answering, AskSet, Assist, Helping
from branchline.routing.offloading.offloader import Work
from branchline.routing.overlay.admission import NOT_ADVERTISED
from branchline.routing.overlay.along_tree import answered, unasked
from branchline.routing.overlay.broker import Broker
from branchline.routing.overlay.dividing import Arrival, Routed
from branchline.routing.overlay.explaining import Explain, Explained, explain
from branchline.routing.overlay.facts import OWN, Fact
from branchline.routing.overlay.letters import Letter, Propose, Refresh
from branchline.routing.overlay.recording import Recorded, to_record
from branchline.routing.overlay.speaking import Speaker
from branchline.routing.overlay.topology import Topology, founded
from branchline.routing.prefix.trees import Trees
from branchline.routing.prefix.updates import Snapshot, Update
from branchline.routing.prefix.vocabulary import Fit
from branchline.routing.removing import Remover
from branchline.routing.stored_table import StoredTable

if TYPE_CHECKING:  # compiled loops are imported when the first batch needs them
    from branchline.routing.compiled.paths import Paths
    from branchline.routing.overlay.entering import Entered
    from branchline.routing.overlay.passing import Passed
    from branchline.routing.overlay.scan import Scan
    from branchline.routing.overlay.sent import Sent

Control: TypeAlias = Request | Propose | Refresh | Letter | Explain | Helping


@dataclass(frozen=True, slots=True)
class Job:
    """Which brokers a router job serves, and how."""

    brokers: tuple[str, ...]
    topology: Topology | None = None
    """The one that its brokers begin with; None for brokers that have yet to be told of one."""
    cluster: str = "main"
    methods: Methods = field(default_factory=Methods)
    max_subscriptions: int = SUBSCRIPTIONS_PER_SUBSCRIBER
    """How many a subscriber may have."""
    remove_after_ms: int | None = None
    """How long after the end of its last subscription a subscriber's topic is removed; None for never."""


def alone(name: str) -> Job:
    """A job with one broker, which is all there is."""
    return Job((name,), founded([name]))


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Events as columns: the brokers that they are at, and the arrivals."""

    at: Sequence[str] = ()
    arrivals: Sequence[Arrival] = ()
    entering: Mapping[str, Sequence[int]] | None = None
    """For each broker the indexes of the events that enter there, for all its subscribers."""
    scan: "Callable[[Paths, Sequence[int]], Scan] | None" = None
    """Scans the events at these indexes from their bytes."""
    sent: "Sequence[Sent] | None" = None
    """Copies from other brokers, for all subscribers, whose headers were read as columns."""

    def entering_at(self) -> Mapping[str, Sequence[int]]:
        """For each broker the indexes of the events that enter there, told or looked for."""
        if self.entering is not None:
            return self.entering
        found: dict[str, list[int]] = {}
        for index, (name, arrival) in enumerate(zip(self.at, self.arrivals, strict=True)):
            if arrival.header is None and arrival.only is None:
                found.setdefault(name, []).append(index)
        return found

    def sent_to(self) -> "Iterable[Sent]":
        """Copies from other brokers as columns, told or looked for."""
        from branchline.routing.overlay.sent import sent_to

        return sent_to(self.at, self.arrivals) if self.sent is None else self.sent

    def scanned(self, paths: "Paths", indexes: Sequence[int]) -> "Scan":
        """The events at these indexes, from their bytes or else from their attributes."""
        from branchline.routing.overlay.entering import scan_attributes

        if self.scan is not None:
            return self.scan(paths, indexes)
        return scan_attributes(paths, [self.arrivals[each].content.attributes() for each in indexes])


@dataclass(frozen=True, slots=True)
class Undecided:
    """Whether the event at this index is owed to the subscriber could not be decided."""

    event: int
    subscriber: str
    rejection: Rejection


@dataclass(frozen=True, slots=True)
class Refused:
    """The event at this index could not go on; it is still owed to the scope."""

    event: int
    at: str
    scope: int
    rejection: Rejection
    unread: bool = False
    """It has just come in and is none that can be read."""
    outside: bool = False
    """It has just come in, and no advertisement lets it."""


@dataclass(frozen=True, slots=True)
class ShardState:
    """What a shard must remember: what it was told of the tree, and the facts of its brokers, in order."""

    told: tuple[Update | Snapshot, ...] = ()
    facts: tuple[tuple[str, Fact], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.told or self.facts)

    def divided(self) -> "tuple[ShardState, ShardState]":
        """What all shards of the job remember alike, and what is this one's own.

        They may be obeyed one after the other, the own ones last: an event that is held hangs on no
        subscription, and what one topology has released no later one holds.
        """
        own = [each for each in self.facts if isinstance(each[1], OWN)]
        shared = [each for each in self.facts if not isinstance(each[1], OWN)]
        return ShardState(self.told, tuple(shared)), ShardState(facts=tuple(own))


@dataclass(slots=True)
class Outputs:
    """What one call decided, in the order in which it must be written."""

    changed: ShardState | None = None
    """To be added to the state's log; None if nothing changed."""
    subscribers: list[str] = field(default_factory=list)
    """Their topics must exist before anything else is written."""
    removed: list[str] = field(default_factory=list)
    """Subscribers whose topics are removed: nothing is for them in this call. Leading shard only."""
    filters: list[Recorded] = field(default_factory=list)
    """To be recorded on `filters` before letters and acks. Leading shard only."""
    letters: list[Letter] = field(default_factory=list)
    """Leading shard only."""
    released: list[Arrival] = field(default_factory=list)
    """Events that were held, and have gone on; their indexes follow those of the batch."""
    forwarded: ForwardedCopies = field(default_factory=no_copies)
    deliveries: Deliveries = field(default_factory=no_deliveries)
    undecided: list[Undecided] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    acks: list[Ack] = field(default_factory=list)
    """Leading shard only."""
    work: list[Work | Given] = field(default_factory=list)
    """Tasks for subscribers that have volunteered. Leading shard only."""
    unusable: list[tuple[int, Rejection]] = field(default_factory=list)
    """Control that cannot be read or is for nobody here, by index. Leading shard only."""
    explanations: list[Explained] = field(default_factory=list)
    """Answers to those who ask about events. Leading shard only."""
    counts: Counter[str] = field(default_factory=Counter)
    due_ms: int | None = None
    """When a lease or a topic's time may be over next: somebody should call then, even if there is nothing to
    handle."""


@dataclass(frozen=True, slots=True)
class Image:
    """What all shards of a job share, in a form that is read where it lies."""

    buffers: Sequence[bytes | memoryview]
    """Of the trees, two for each part; then of each broker its table, and its places in each part."""
    rest: ShardState
    """What is not in the buffers, which is little."""


class Shard:
    """The brokers of a job, and its share of their events."""

    def __init__(
        self, job: Job, index: int, state: Iterable[ShardState] = (), image: Image | None = None
    ) -> None:
        """A shard in this state; with an image, one that goes on from there. May raise UnreadableTree."""
        self._leads = index == 0
        self._names = Names()
        self._cluster = job.cluster
        methods = job.methods
        buffers = iter([memoryview(each) for each in image.buffers] if image is not None else [])
        trees = list(islice(buffers, 2 * methods.parts))
        self.trees = Trees(methods.parts, methods.height, methods.kept_versions, trees)
        self.brokers: dict[str, Broker] = {}
        for name in sorted(job.brokers):
            table = next(buffers, None)
            places = list(islice(buffers, methods.parts))
            self.brokers[name] = Broker(
                name,
                make_forwarding(methods, self.trees, places),
                make_dissemination(methods.dissemination),
                paper_delivery=methods.paper_delivery,
                stored=None if table is None else StoredTable(table),
                max_subscriptions=job.max_subscriptions,
            )
        if methods.on_tree:
            # A broker's own table has no homes but its own.
            for broker in self.brokers.values():
                broker.home.elsewhere = self._homes_of
        self._batches = Batches(self.brokers, self.trees, self._names, methods.batches_from)
        self._speaker = Speaker(self.brokers, job.cluster)
        self._remover = Remover(self.brokers, self._speaker, job.remove_after_ms)
        if job.topology is not None:
            for broker in self.brokers.values():
                broker.restore([job.topology])
        for part in state if image is None else chain([image.rest], state):
            self._restore(part)

    def _homes_of(self, subscriber: str) -> frozenset[str]:
        """The homes of a subscriber that the brokers here know of."""
        return frozenset(home for each in self.brokers.values() for home in each.table.homes(subscriber))

    def become(self, index: int, own: Iterable[ShardState]) -> None:
        """Be the shard of this number from now on, with what is its own: all the rest they have in common."""
        self._leads = index == 0
        for broker in self.brokers.values():
            broker.disown()
        for part in own:
            self._restore(part)

    def _restore(self, part: ShardState) -> None:
        for told in part.told:
            self.trees.apply(told)
        for name, fact in _side_by_side(part.facts):
            self.brokers[name].restore([fact])

    def state(self) -> ShardState:
        """The whole state as one value: what a snapshot holds."""
        facts = [(name, fact) for name, broker in self.brokers.items() for fact in broker.facts()]
        return ShardState(tuple(self.trees.told()), tuple(facts))

    def image(self) -> Image | None:
        """What is not this shard's own, for any shard of the job to open; None if a method forbids it."""
        buffers = self.trees.stored()
        for broker in self.brokers.values():
            places = broker.forwarding.stored()
            if places is None or broker.links is not None:
                return None
            buffers += [broker.table.stored(broker.name), *places]
        facts = [(name, fact) for name, broker in self.brokers.items() for fact in broker.unstored()]
        return Image(buffers, ShardState(facts=tuple(facts)))

    def own_state(self) -> ShardState:
        """What is this shard's own."""
        facts = [(name, fact) for name, broker in self.brokers.items() for fact in broker.own_facts()]
        return ShardState(facts=tuple(facts))

    def handle(
        self,
        now_ms: int,
        updates: Sequence[Update | Snapshot],
        control: Sequence[Control],
        events: EventBatch,
    ) -> Outputs:
        """Handle one micro-batch."""
        outputs = Outputs()
        told = [each for each in updates if self._apply(each, outputs)]
        facts = self._control(now_ms, control, outputs)
        facts += self._route(events, outputs)
        changed = ShardState(tuple(told), tuple(facts))
        outputs.changed = changed or None
        if not self._leads:
            outputs.filters, outputs.letters, outputs.acks, outputs.unusable = [], [], [], []
            outputs.removed, outputs.work = [], []
        due = [broker.due_ms() for broker in self.brokers.values()]
        due.append(self._remover.due_ms())
        outputs.due_ms = min((each for each in due if each is not None), default=None)
        return outputs

    def round_ms(self) -> int | None:
        """Of what is due, when it is a round of offloading's turn: subscriptions may wait for that."""
        trees = [broker.tree for broker in self.brokers.values()]
        due = [each.due_ms() for each in trees if each is not None]
        return min((each for each in due if each is not None), default=None)

    def describe(self) -> str:
        """The shard's brokers, for people."""
        return "\n".join(broker.describe() for broker in self.brokers.values())

    def _apply(self, told: Update | Snapshot, outputs: Outputs) -> bool:
        fit = self.trees.apply(told)
        outputs.counts[f"updates_{fit.name.lower()}"] += 1
        return fit in (Fit.APPLIED, Fit.INCOMPLETE)

    # Control

    def _control(self, now_ms: int, control: Sequence[Control], outputs: Outputs) -> list[tuple[str, Fact]]:
        before = self._speaker.newest()
        # Asking about an event changes nothing, not even what is remembered.
        if any(not isinstance(message, Explain) for message in control):
            for broker in self.brokers.values():
                broker.begin(now_ms)
        for index, message in enumerate(control):
            match message:
                case Request():
                    self._ask(now_ms, index, message, outputs)
                case Propose():
                    self._propose(now_ms, index, message, outputs)
                case Refresh():
                    self._refresh(now_ms, index, message, outputs)
                case Assist() | AskSet() | Answering():
                    self._assist(now_ms, index, message, outputs)
                case Letter():
                    wrong = self._read(now_ms, message)
                    if wrong is not None:
                        outputs.unusable.append((index, wrong))
                case Explain():
                    self._explain(index, message, outputs)
        facts: list[tuple[str, Fact]] = []
        removals = self._remover.remove(now_ms)
        for name, broker in self.brokers.items():
            broker.finish(now_ms, leads=self._leads)
            said = broker.said()
            facts += [(name, fact) for fact in said.facts]
            outputs.letters += said.letters
            outputs.acks += said.acks
            outputs.work += said.work
            outputs.counts.update(said.counts)
        outputs.removed = sorted({ack.subscriber for ack in removals if ack.subscriber is not None})
        outputs.acks += removals
        outputs.filters = to_record(self.brokers, facts, before.order if before else None)
        outputs.subscribers = sorted(
            {
                change.identity.subscriber
                for change in outputs.filters
                if isinstance(change, Subscribed) and change.identity.home in self.brokers
            }
        )
        return facts

    def _ask(self, now_ms: int, index: int, request: Request, outputs: Outputs) -> None:
        home = self._speaker.home_of(request)
        if isinstance(home, Broker):
            home.ask(now_ms, index, request)
        elif home is not None:
            name = request.home or min(self.brokers)
            named = (request.subscriber, request.id or None, name)
            refused = Ack(index, Status.REFUSED, *named, None, request.request, home, own=request.own)
            outputs.acks.append(replace(refused, advert=request.operation in ADVERTISING))

    def _propose(self, now_ms: int, index: int, propose: Propose, outputs: Outputs) -> None:
        broker = self._speaker.proposer(propose.topology)
        if broker is None:
            return
        wrong = broker.propose(now_ms, propose.topology, self._speaker.newest())
        status = Status.REFUSED if wrong else Status.ACCEPTED
        outputs.acks.append(Ack(index, status, None, None, broker.name, None, propose.request, wrong))

    def _refresh(self, now_ms: int, index: int, asked: Refresh, outputs: Outputs) -> None:
        broker = self._speaker.explains(asked.broker)
        if isinstance(broker, Broker):
            broker.refresh(now_ms, index, asked)
        elif broker is not None:
            named = (None, None, asked.broker, None, asked.request)
            outputs.acks.append(Ack(index, Status.REFUSED, *named, broker))

    def _assist(self, now_ms: int, index: int, message: Helping, outputs: Outputs) -> None:
        broker = self._speaker.explains(message.home)
        if isinstance(broker, Broker):
            match message:
                case Assist():
                    broker.assist(now_ms, index, message)
                case AskSet():
                    broker.give(index, message)
                case Answering():
                    broker.work(index, message)
        elif broker is not None and isinstance(message, Answering):
            outputs.acks.append(unasked(message.home, index, message, broker))
        elif broker is not None and not isinstance(message, Answering):
            outputs.acks.append(answered(message.home, index, message, broker))

    def _read(self, now_ms: int, letter: Letter) -> Rejection | None:
        broker = self.brokers.get(letter.to)
        if broker is None:
            return Rejection(Code.HOME_UNKNOWN, f"no broker {letter.to!r} here")
        return broker.read(now_ms, letter.sender, letter.body)

    def _explain(self, index: int, asked: Explain, outputs: Outputs) -> None:
        broker = self._speaker.explains(asked.broker) if self._leads else None
        if isinstance(broker, Broker):
            answer = explain(self.brokers, self._cluster, asked)
            outputs.explanations.append(replace(answer, index=index))
        elif broker is not None:
            named = (asked.broker, self._cluster, asked.request, asked.subscriber)
            outputs.explanations.append(Explained(*named, refused=broker, index=index))

    # Events

    def _route(self, events: EventBatch, outputs: Outputs) -> list[tuple[str, Fact]]:
        found = _Found(outputs, Gathering(self._names), CopyGathering(self._names))
        for name, broker in self.brokers.items():
            for arrival in broker.release():
                outputs.released.append(arrival)
                self._routed(len(events.at) + len(outputs.released) - 1, name, arrival, found)
        done = self._route_together(events, found)
        for index in np.flatnonzero(~done).tolist():
            self._routed(index, events.at[index], events.arrivals[index], found)
        batch = len(events.at)
        outputs.deliveries = found.owed.deliveries(batch)
        outputs.forwarded = found.copies.copies(batch)
        for listed in (outputs.refused, outputs.undecided):
            # As the events came, what was held first; of one event, as it was found.
            listed.sort(key=lambda each: (each.event < batch, each.event))
        if self._leads and events.at:
            self._observe(events)
        facts: list[tuple[str, Fact]] = []
        for name, broker in self.brokers.items():
            said = broker.said()
            facts += [(name, fact) for fact in said.facts]
            outputs.letters += said.letters
        return facts

    def _observe(self, events: EventBatch) -> None:
        """Let brokers learn from the events that came by; asked for each only if somebody learns."""
        for name, broker in self.brokers.items():
            at = (each for here, each in zip(events.at, events.arrivals, strict=True) if here == name)
            broker.observe(at)

    def _route_together(self, events: EventBatch, found: "_Found") -> NDArray[np.bool_]:
        """Route as batches what is worth it, and say of which events."""
        done = np.zeros(len(events.at), np.bool_)
        if not len(done):
            return done
        self._batches.begin()
        for name, indexes, scan, entered in self._batches.entering(events):
            done[indexes] = True
            done[[indexes[each] for each in scan.unrowed]] = False
            self._entered(name, indexes, scan, entered, found)
        for name, passed in self._batches.passed(events):
            done[passed.done] = True
            self._passed(name, passed, found)
        self._batches.end()
        return done

    def _entered(
        self, name: str, indexes: Sequence[int], scan: "Scan", entered: "Entered", found: "_Found"
    ) -> None:
        everybody, outputs = self.brokers[name].position.routes.everybody, found.outputs
        of_batch = np.asarray(indexes, np.int64)
        found.owed.extend(of_batch[entered.events], entered.subscribers)
        copied = entered.copied
        found.copies.extend(of_batch[copied.events], name, copied.to, copied.headers)
        for each, rejection in scan.rejected.items():
            outputs.refused.append(Refused(indexes[each], name, everybody, rejection, unread=True))
        for each in entered.refused:
            refused = Refused(indexes[each], name, everybody, NOT_ADVERTISED, outside=True)
            outputs.refused.append(refused)
        for each, routed in entered.decided.items():
            found.deliver(indexes[each], routed)
        for each, copy in copied.single:
            found.copies.add(indexes[each], name, [copy])
        accepted = len(indexes) - len(scan.rejected) - len(scan.unrowed)
        outputs.counts["visits"] += accepted
        outputs.counts["events_unadvertised"] += entered.unadvertised
        outputs.counts["content_matches"] += accepted - len(entered.refused)
        outputs.counts["exact_checks"] += entered.exact_checks
        outputs.counts["refuted"] += entered.refuted
        outputs.counts.update(entered.taken)

    def _passed(self, name: str, passed: "Passed", found: "_Found") -> None:
        found.owed.extend(passed.events, passed.subscribers)
        found.copies.extend(passed.copied, name, passed.to, passed.headers)
        counts = found.outputs.counts
        counts["visits"] += len(passed.done)
        counts["retired_homes"] += passed.retired
        counts["exact_checks"] += passed.exact_checks
        counts["refuted"] += passed.refuted
        counts["afresh_matches"] += passed.afresh
        counts.update(passed.taken)

    def _routed(self, index: int, name: str, arrival: Arrival, found: "_Found") -> None:
        broker, outputs = self.brokers[name], found.outputs
        read = arrival.content.attributes() if arrival.header is None else None
        if isinstance(read, Rejection):
            everybody = broker.position.routes.everybody
            outputs.refused.append(Refused(index, name, everybody, read, unread=True))
            return
        routed = broker.route(arrival)
        if routed.held:
            broker.hold(arrival)
        if routed.refused is not None:
            refused = Refused(index, name, routed.scope, routed.refused)
            outputs.refused.append(replace(refused, outside=routed.outside))
        found.copies.add(index, name, routed.copies)
        found.deliver(index, routed)
        _count(routed, outputs.counts)


@dataclass(frozen=True, slots=True)
class _Found:
    """What becomes of the events of one call, as it is found."""

    outputs: Outputs
    owed: Gathering
    copies: CopyGathering

    def deliver(self, index: int, routed: Routed) -> None:
        """Deliver an event to whom it is owed here."""
        self.owed.add(index, routed.deliveries)
        self.outputs.undecided += [
            Undecided(index, subscriber, why) for subscriber, why in routed.undecided.items()
        ]


def _side_by_side(facts: Sequence[tuple[str, Fact]]) -> Iterator[tuple[str, Fact]]:
    """The facts of each broker in their order, those of all brokers side by side.

    In a snapshot all brokers know the same subscriptions: so each filter is compiled once, and not once for
    each broker when those before have long been forgotten.
    """
    of_broker: dict[str, list[tuple[str, Fact]]] = {}
    for each in facts:
        of_broker.setdefault(each[0], []).append(each)
    for together in zip_longest(*of_broker.values()):
        yield from (each for each in together if each is not None)


def _count(routed: Routed, counts: Counter[str]) -> None:
    counts["visits"] += not routed.held
    counts["held"] += routed.held
    counts["content_matches"] += routed.content_matches
    counts["afresh_matches"] += routed.afresh_matches
    counts["exact_checks"] += routed.exact_checks
    counts["refuted"] += routed.refuted
    counts["retired_homes"] += routed.retired
    counts["events_unadvertised"] += routed.outside
    if routed.found is not None:
        counts["older_walks"] += routed.found.older > 0
        counts.update(routed.found.counts)
