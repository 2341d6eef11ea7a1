"""A broker: what it knows of all subscriptions, whom it tells, and what it does for those at home here.

Theory of operation. Handling a message decides on facts (`facts.py`), each of which is obeyed at once and
written down. A request becomes a change by the home (`home.py`). A change that is learned is told on to all
neighbours but the teller, and each call ends with one report to each home of what was heard of it. A topology
is told on first, and only then is a new neighbour told everything, so nobody hears of a subscription before
the topology that its home is in. What becomes of an event is the divider's matter (`dividing.py`); the broker
holds those that come too early.

Where filters go along a tree (`along_tree.py`), a broker knows the subscriptions of its own home,
and of others what neighbours tell it is wanted behind them.

Cost: a change is O(neighbours) letters; a topology is O(subscriptions) letters to each new neighbour.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter

from branchline.routing.codes import Code, Rejection
from branchline.routing.control import (
    ADVERTISING,
    Ack,
    Change,
    Ended,
    Forgotten,
    Identity,
    Number,
    Request,
    Subscribed,
)
from branchline.routing.dissemination.adverts import (
    EVERY_EVENT,
    AdvertAwaited,
    Advertised,
    Adverts,
    Gated,
    Lingering,
    Unadvertised,
    Unremembered,
    Withdrawn,
)
from branchline.routing.dissemination.links import Links
from branchline.routing.dissemination.pulling import Pull, Reply
from branchline.routing.dissemination.telling import Ask, Settled, Told
from branchline.routing.event import Event
from branchline.routing.limits import ENDED_REMEMBERED_MS, SUBSCRIPTIONS_PER_SUBSCRIBER
from branchline.routing.methods.protocols import Dissemination, Forwarding, Learning, OnTree
from branchline.routing.offloading.assigner import Given
from branchline.routing.offloading.assisting import NO_FIXED_SET, Answering, AskSet, Assist
from branchline.routing.offloading.assisting import UNUSED as UNUSED_CLIENTS
from branchline.routing.offloading.offloader import Work
from branchline.routing.optimise.learned import Learned, sample
from branchline.routing.overlay.admission import Admission
from branchline.routing.overlay.along_tree import (
    UNUSED,
    AlongTree,
    At,
    Step,
    TreeFact,
    answered,
    not_inflated,
    unasked,
)
from branchline.routing.overlay.dividing import Arrival, Divider, Routed
from branchline.routing.overlay.ending import end_all_of
from branchline.routing.overlay.facts import Fact, Held, Kept, Lapsed, Limited, Released, Removed, Vacant
from branchline.routing.overlay.home import Answer, Home
from branchline.routing.overlay.letters import Body, Complete, Due, Expire, Letter, Refresh, Report
from branchline.routing.overlay.pending import Awaited, Pending
from branchline.routing.overlay.position import Position
from branchline.routing.overlay.publishing import Advertising, Publishers
from branchline.routing.overlay.topology import Topology, fault
from branchline.routing.stored_table import StoredTable
from branchline.routing.subscriptions import SubscriptionTable


@dataclass(slots=True)
class Said:
    """What a broker says to control messages, in the order in which it must be written."""

    facts: list[Fact] = field(default_factory=list)
    letters: list[Letter] = field(default_factory=list)
    acks: list[Ack] = field(default_factory=list)
    work: list[Work | Given] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


class Broker:
    """One broker of the overlay."""

    def __init__(
        self,
        name: str,
        forwarding: Forwarding,
        dissemination: Dissemination | OnTree,
        *,
        paper_delivery: bool = False,
        stored: StoredTable | None = None,
        max_subscriptions: int = SUBSCRIPTIONS_PER_SUBSCRIBER,
    ) -> None:
        self.name = name
        self.table = SubscriptionTable(stored=stored)
        self.position = Position(name, on_tree=isinstance(dissemination, OnTree))
        self.home = Home(self.position, self.table, max_subscriptions, stored)
        self.forwarding = forwarding
        self.held: list[Arrival] = []
        self.divider = Divider(self.position, forwarding, self.table, paper_delivery=paper_delivery)
        self._dissemination = dissemination
        self.tree: AlongTree | None = None
        """Where filters go along a tree."""
        if isinstance(dissemination, OnTree):
            self.tree = AlongTree(self.home, self.position, dissemination, self.divider.exchange_at)
            self.adverts, self.publishers = self.tree.adverts, self.tree.publishers
            if dissemination.takes_adverts:
                self.divider.admission = Admission(self.adverts, dissemination.advertising)
        else:
            self.adverts = Adverts(lambda before, after: None, Pending(self.position))
            self.publishers = Publishers(self.position, self.home, self.adverts, UNUSED, 0)
        self._handles_control = False
        self.learned: Learned | None = None
        self._kept: list[Report] = []
        self._said = Said()
        self._heard: dict[str, set[Identity]] = {}
        """For each home, the subscriptions that this call's letters told about."""

    def __len__(self) -> int:
        """How many filters events are asked for, as far as that is known without looking at them."""
        return len(self.table) + (len(self.tree.links) if self.tree is not None else 0)

    @property
    def links(self) -> Links | None:
        """What neighbours and this broker have told each other, where filters go along a tree."""
        return None if self.tree is None else self.tree.links

    @property
    def topology(self) -> Topology | None:
        return self.position.topology

    @property
    def joining(self) -> bool:
        return self.position.joining

    # Facts

    def obey(self, fact: Fact, index: int | None = None) -> Rejection | bool:
        """Make the fact so; False if it changes nothing, a rejection if it cannot be read.

        The index is that of the request that is being answered, for acks that come at once.
        """
        match fact:
            case Subscribed() | Ended() | Forgotten():
                return self._change(fact)
            case Number():
                self.home.number = fact
            case Topology():
                before = self.position.topology
                self.position.take(fact)
                if self.tree is not None:
                    self.tree.rebase(before)
                self._kept = []
                self._in_force(self.home.pending.reconsider())
                self.adverts.pending.reconsider()
            case Awaited():
                self._in_force(self.home.pending.await_(fact), index)
            case Report():
                self._in_force(self.home.pending.hear(fact))
            case Kept():
                self._kept.append(fact.report)
            case Complete():
                self.position.joining = False
            case Lapsed():
                self.home.leases.lapsed_ms = fact.until_ms
            case Limited():
                self.home.limit.noted = fact.subscriptions
            case Vacant():
                self.home.vacancies.begin(fact)
            case Removed():
                self.home.vacancies.end(fact.subscriber)
            case Held():
                self.held.append(fact.arrival)
            case Learned():
                return self._learn_of_events(fact)
            case Advertised() | Unadvertised() | Unremembered() | Lingering() | Withdrawn() | Gated():
                return self.adverts.obey(fact) is not None
            case Released():
                self.held = [arrival for arrival in self.held if self.divider.is_early(arrival)]
            case _:
                return self._obey_on_tree(fact, index)
        return True

    def facts(self) -> Iterator[Fact]:
        """Facts that make an equal broker: what a snapshot holds."""
        yield from self._standing()
        yield from self._known()
        yield from self._waiting()
        yield from self.own_facts()

    def unstored(self) -> Iterator[Fact]:
        """Those of them that are not in the stored table, and that all shards share."""
        yield from self._standing()
        yield from self._waiting()

    def own_facts(self) -> Iterator[Fact]:
        """Those of them that are this shard's own."""
        yield Lapsed(self.home.leases.lapsed_ms)
        yield from map(Held, self.held)

    def disown(self) -> None:
        """Be as a broker of the same job in a shard that has nothing of its own yet."""
        self.held = []
        self.home.leases.untell()

    def _standing(self) -> Iterator[Fact]:
        if self.topology is not None:
            yield self.topology
            if not self.joining:
                yield Complete()
        if self.home.number is not None:
            yield self.home.number
        if self.home.limit.noted is not None:
            yield Limited(self.home.limit.noted)
        if self.learned is not None:
            yield self.learned
        if self.tree is None:
            yield from self.adverts.facts()
        else:
            yield from self.tree.facts()

    def _waiting(self) -> Iterator[Fact]:
        yield from self.home.vacancies.facts()
        yield from self.home.pending.awaited()
        yield from self.home.pending.reports()
        yield from map(Kept, self._kept)
        if self.tree is not None:
            yield from self.tree.late_facts()

    def _known(self) -> list[Subscribed | Ended]:
        """All changes that stand, in an order that does not hang on how they came."""
        return sorted(self.table.changes(), key=attrgetter("identity"))

    def restore(self, facts: Iterable[Fact]) -> None:
        """Obey what was written down; what was said at the time is said."""
        for fact in facts:
            self.obey(fact)
        self._said = Said()

    def _do(self, fact: Fact, index: int | None = None) -> Rejection | bool:
        done = self.obey(fact, index)
        if done is True:
            self._said.facts.append(fact)
        return done

    def _change(self, change: Change) -> Rejection | bool:
        """Obey a change, and go by the filter that stands now."""
        identity = change.identity
        if self.tree is not None and identity.home != self.name:
            return False
        before = self.table.compiled(identity)
        applied = self.table.apply(change)
        if applied is not True:
            return applied
        if identity.home == self.name:
            if isinstance(change, Subscribed):
                self.home.leases.watch(change)
                self.home.vacancies.end(identity.subscriber)
            else:
                self.home.pending.drop(identity)
            stands = self.table.homes(identity.subscriber)[self.name]
            if isinstance(change, Ended) and before is not None and not stands:
                self.home.vacancies.begin(Vacant(identity.subscriber, change.at_ms, change.own))
        after = self.table.compiled(identity)
        if before is not after:
            self.divider.exchange(identity, before, after)
            if self.tree is not None:
                self.tree.links.own(before.cover if before else (), after.cover if after else ())
        return True

    def _obey_on_tree(self, fact: TreeFact, index: int | None) -> bool:
        if self.tree is None:
            return False
        self._said.acks += self.tree.obey(fact, index)
        return True

    def _in_force(self, completed: Iterable[Awaited], index: int | None = None) -> None:
        for awaited in completed:
            self._said.acks += self.home.in_force(awaited, index)

    # Control

    def begin(self, now_ms: int) -> None:
        """A call with control begins: forget what was remembered long enough, and see what the limit is.

        Only then, since all shards get all control: so they all forget in the same call.
        """
        self._handles_control = True
        self.home.limit.begin(fresh=self.home.number is None)
        for forgotten in self.table.forgettable(now_ms):
            self._do(forgotten)
        for over in list(self.adverts.over(now_ms)):
            self._do(over)
        self._gate(now_ms)

    def _gate(self, now_ms: int) -> None:
        """Note whether subscriptions go only where something is advertised; if not so before, by and by."""
        gated = self.tree is not None and self.tree.links.advertising
        if self.tree is None or gated == bool(self.adverts.gated):
            return
        if gated and self.tree.links.has_told():
            # What has entered so far was let in whatever it was, and is on its way.
            self._linger(now_ms)
        self._do(Gated(gated))

    def _linger(self, now_ms: int) -> None:
        """Go on pulling all subscriptions, for events on their way that entered under other terms."""
        if isinstance(self._dissemination, OnTree) and self._dissemination.advertising:
            self._do(Lingering(*EVERY_EVENT, now_ms + self._dissemination.linger_ms))

    def ask(self, now_ms: int, index: int, request: Request) -> None:
        """A request of a subscriber whose home this is, or of a publisher that publishes here."""
        if request.operation in ADVERTISING:
            self._advertise(index, self.publishers.answer(now_ms, index, request))
        elif request.all:
            for answer in end_all_of(self.home, now_ms, index, request):
                self._answer(index, answer)
        else:
            self._answer(index, self.home.answer(now_ms, index, request))
            if self.tree is not None:
                self.tree.hear(request)

    def _answer(self, index: int, answer: Answer) -> None:
        self._said.acks += answer.acks
        if answer.change is not None:
            self._number_and_learn(answer.change, tell=answer.tell)
        if answer.awaited is not None:
            self._do(answer.awaited, index)
            if self.tree is not None:
                self.tree.asked_at(answer.awaited, index)

    def _advertise(self, index: int | None, answer: Advertising) -> None:
        self._said.acks += answer.acks
        if answer.facts:
            assert self.home.number is not None, "what is advertised has a number"
            self._do(self.home.number)
        for fact in answer.facts:
            self._do(fact)
        if answer.awaited is not None:
            self._do(AdvertAwaited(answer.awaited), index)
            if self.tree is not None and index is not None:
                self.tree.advertised_at(answer.awaited, index)

    def propose(self, now_ms: int, topology: Topology, newest: Topology | None) -> Rejection | None:
        """A topology that an operator asks for, to follow the newest that is known here."""
        wrong = fault(topology, newest)
        if wrong is not None:
            return Rejection(Code.TOPOLOGY_INVALID, f"this cannot be the next topology: {wrong}")
        self._take(now_ms, topology, None)
        return None

    def read(self, now_ms: int, sender: str, body: Body) -> Rejection | None:
        """A letter from a neighbour, or from this broker itself."""
        match body:
            case Told() | Settled() | Ask() | Pull() | Reply():
                if self.tree is not None:
                    self._take_steps(self.tree.read(sender, body))
            case Subscribed() | Ended() | Report() | Complete() if self.tree is not None:
                pass
            case Ended() if self._is_old_news(now_ms, body):
                pass
            case Subscribed() | Ended():
                return self._learn(body, sender)
            case Report() if body.home == self.name:
                self._do(body)
            case Report():
                self._send_on(body)
            case Topology() if self.topology is None or body.order > self.topology.order:
                wrong = fault(body)
                if wrong is not None:
                    return Rejection(Code.TOPOLOGY_INVALID, f"this cannot be a topology: {wrong}")
                self._take(now_ms, body, sender)
            case Complete() if self.joining:
                self._do(body)
                self._tell_all(self.position.neighbours, (), body)
            case Learned() if sender == self.name:
                self._do(body)
            case Expire():
                over = self.home.expire(now_ms, body)
                if over is not None:
                    self._said.acks.append(over[1])
                    self._number_and_learn(over[0])
            case _:
                pass
        return None

    def finish(self, now_ms: int, *, leads: bool) -> None:
        """All control of the call is handled: report it; the leading shard looks after leases."""
        if self.topology is not None:
            for home, heard in sorted(self._heard.items()):
                known = [(identity, self.table.find(identity)) for identity in sorted(heard)]
                has = tuple((identity, change.number) for identity, change in known if change is not None)
                self._send_on(Report(home, self.name, self.topology.order, has))
        self._heard = {}
        if self.tree is not None and self._handles_control:
            self._take_steps(self.tree.finish(now_ms))
            self._said.counts += self.tree.counted(leads=leads)
        self._handles_control = False
        limited = self.home.limit.finish()
        if limited is not None:
            self._do(limited)
        if leads:
            due = self.home.leases.overdue(now_ms)
            if due:
                self._do(Lapsed(now_ms))
                self._said.letters += [Letter(self.name, self.name, each) for each in due]
            due_ms = None if self.tree is None else self.tree.due_ms()
            if due_ms is not None and due_ms <= now_ms:
                self._said.letters.append(Letter(self.name, self.name, Due()))

    def due_ms(self) -> int | None:
        """When there is something to do, though nobody asks for anything."""
        lease_ms, round_ms = self.home.leases.due_ms(), None if self.tree is None else self.tree.due_ms()
        return min((each for each in (lease_ms, round_ms) if each is not None), default=None)

    def refresh(self, now_ms: int, index: int, asked: Refresh) -> None:
        """An operator asks what is still wanted behind the links; or to wait for it no longer."""
        if self.tree is None:
            self._said.acks.append(not_inflated(self.name, index, asked))
        else:
            self._take_steps(self.tree.refresh(now_ms, index, asked))

    def assist(self, now_ms: int, index: int, asked: Assist) -> None:
        """A subscriber is ready to work for this broker, or is no longer."""
        if self.tree is None:
            self._said.acks.append(answered(self.name, index, asked, UNUSED_CLIENTS))
        else:
            self._take_steps(self.tree.assist(now_ms, index, asked))

    def give(self, index: int, asked: AskSet) -> None:
        """A subscriber asks for the fixed set of this broker."""
        if self.tree is None:
            self._said.acks.append(answered(self.name, index, asked, NO_FIXED_SET))
        else:
            self._take_steps(self.tree.give(index, asked))

    def work(self, index: int, done: Answering) -> None:
        """A subscriber has done a task."""
        if self.tree is None:
            self._said.acks.append(unasked(self.name, index, done))
        else:
            self._take_steps(self.tree.work(index, done))

    def _take_steps(self, steps: Iterable[Step]) -> None:
        for step in steps:
            match step:
                case Letter():
                    self._said.letters.append(step)
                case Ack():
                    self._said.acks.append(step)
                case Work() | Given():
                    self._said.work.append(step)
                case At():
                    self._do(step.fact, step.index)
                case _:
                    self._do(step)

    def remove(self, subscriber: str) -> None:
        """The subscriber's topic is not its home's concern any more."""
        self._do(Removed(subscriber))

    def said(self) -> Said:
        """What was said since this was last asked."""
        said, self._said = self._said, Said()
        return said

    def _number_and_learn(self, change: Subscribed | Ended, *, tell: bool = True) -> None:
        if tell:
            assert self.home.number is not None
            self._do(self.home.number)
        done = self._do(change)
        assert done is True, "a home's own change is new and can be read"
        if tell:
            self._tell(change, None)

    def _learn(self, change: Subscribed | Ended, teller: str) -> Rejection | None:
        """A change told by somebody: obey it and tell it on if it is new, and report it in any case."""
        home = change.identity.home
        done = self._do(change)
        if isinstance(done, Rejection):
            return done
        if home == self.name:
            if done and (self.home.number is None or self.home.number < change.number):
                # Told of an own subscription by others: our next number must be above it.
                self._do(change.number)
        elif isinstance(change, Subscribed):
            self._heard.setdefault(home, set()).add(change.identity)
        if done:
            self._tell(change, teller)
        return None

    def _is_old_news(self, now_ms: int, ended: Ended) -> bool:
        """Whether this broker may have known and forgotten the end: told on, it would go round for ever."""
        forgotten = ended.at_ms + ENDED_REMEMBERED_MS <= now_ms
        return forgotten and self.table.find(ended.identity) is None

    def _tell(self, change: Subscribed | Ended, teller: str | None) -> None:
        if isinstance(self._dissemination, OnTree):
            return
        for to, told in self._dissemination.tell(change, teller, self.position.neighbours):
            self._said.letters.append(Letter(to, self.name, told))

    def _tell_all(self, to: Iterable[str], known: Iterable[Body], complete: Complete | None) -> None:
        told = [*known, *([complete] if complete is not None else [])]
        self._said.letters += [Letter(each, self.name, body) for each in to for body in told]

    def _send_on(self, report: Report) -> None:
        hop = self.position.routes.hops.get(report.home)
        if hop is not None:
            self._said.letters.append(Letter(hop, self.name, report))
        elif self.topology is None or report.topology > self.topology.order:
            self._do(Kept(report))

    def _take(self, now_ms: int, topology: Topology, teller: str | None) -> None:
        before, kept = self.position.neighbours, self._kept
        unanswered = None if self.tree is None else self.tree.unanswered()
        self._do(topology)
        self._linger(now_ms)
        now = self.position.neighbours
        self._said.letters += [
            Letter(each, self.name, topology) for each in dict.fromkeys((*before, *now)) if each != teller
        ]
        fresh = [each for each in now if each not in before]
        if fresh and not isinstance(self._dissemination, OnTree):
            told = self._dissemination.tell_all(self._known())
            self._tell_all(fresh, told, None if self.joining else Complete())
        self._end_if_leaving(now_ms)
        self._tell_pending_again()
        for report in kept:
            self._send_on(report)
        if self.tree is not None:
            self._take_steps(self.tree.issue_again(now_ms, unanswered))

    def _end_if_leaving(self, now_ms: int) -> None:
        member = self.position.member
        if member is not None and member.leaving:
            for ended, ack in list(self.home.end_all(now_ms)):
                self._said.acks.append(ack)
                self._number_and_learn(ended)
            for answer in self.publishers.end_all(now_ms):
                self._advertise(None, answer)

    def _tell_pending_again(self) -> None:
        for awaited in self.home.pending.awaited():
            again = self.home.again(awaited)
            self._do(again)
            self._tell(again, None)

    def resume(self, now_ms: int, within: Collection[str]) -> None:
        """Say again what may never have been said: this broker was made anew from what was recorded.

        Recorded is not yet told: what was between the two when the old state was lost, nobody would say.
        `within` are the brokers that were made anew from the same records; they need not be told.
        """
        self._end_if_leaving(now_ms)
        self._linger(now_ms)
        outside = [each for each in self.position.neighbours if each not in within]
        if isinstance(self._dissemination, OnTree):
            self._handles_control = True
            if self.topology is not None:
                self._tell_all(outside, (self.topology, Ask(self.topology.order)), None)
        else:
            if self.topology is not None:
                self._tell_all(outside, (self.topology, *self._dissemination.tell_all(self._known())), None)
            self._tell_all(outside, (), None if self.joining else Complete())
        self._tell_pending_again()
        for change in self._known():
            home = change.identity.home
            if isinstance(change, Subscribed) and home not in within:
                self._heard.setdefault(home, set()).add(change.identity)
        self.finish(now_ms, leads=False)

    # Events

    def release(self) -> list[Arrival]:
        """What was held and need not be any more, in the order in which it came."""
        ready = [arrival for arrival in self.held if not self.divider.is_early(arrival)]
        if ready:
            self._do(Released())
        return ready

    def hold(self, arrival: Arrival) -> None:
        """Keep an arrival until the topology that it needs is there."""
        self._do(Held(arrival))

    def route(self, arrival: Arrival) -> Routed:
        """Where an arrival goes from here. Changes nothing."""
        return self.divider.route(arrival)

    def observe(self, arrivals: Iterable[Arrival]) -> None:
        """Tell this broker, in all shards, what these events teach, if it is time to learn."""
        learner = self.forwarding.learner() if isinstance(self.forwarding, Learning) else None
        if learner is None or not learner.is_due():
            return
        read = [arrival.content.attributes() for arrival in sample(list(arrivals))]
        events = [Event(each) for each in read if not isinstance(each, Rejection)]
        if events:
            self._said.letters.append(Letter(self.name, self.name, learner.sampled(events)))

    def _learn_of_events(self, learned: Learned) -> bool:
        learner = self.forwarding.learner() if isinstance(self.forwarding, Learning) else None
        if learner is None or (self.learned is not None and learned.number <= self.learned.number):
            return False
        self.learned = learned
        learner.learn(learned)
        return True

    def describe(self) -> str:
        """The broker for people."""
        topology = "no topology" if self.topology is None else f"topology {self.topology.number}"
        joining = ", joining" if self.joining else ""
        held = f", {len(self.held)} events held" if self.held else ""
        lines = [f"broker {self.name}, {topology}{joining}{held}", self.table.describe()]
        for awaited in self.home.pending.awaited():
            missing = ", ".join(self.home.pending.waits_for(awaited.identity))
            lines.append(f"{awaited.identity} waits for {missing}")
        return "\n".join(line for line in lines if line)
