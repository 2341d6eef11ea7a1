"""A broker: what it knows of all subscriptions, whom it tells, and where it sends an event.

Theory of operation. All that a broker remembers is made of *facts*. Handling a message decides on facts, each
of which is obeyed at once and written down; obeying them again, in order, gives the same broker. Letters,
acks and copies of events are what it says meanwhile; they leave no trace but the facts.

A copy of an event carries its *scope*: the homes that it still answers for. The broker divides it: the copy
to a neighbour gets all homes of the scope that are reached through it, matched or not, and is sent if an
address among them was found. So each home is answered for by exactly one copy. A copy that was divided under
a newer topology than the broker's own is held until the broker has that one.

A broker that *joins* does not know yet who is interested. Until a neighbour has told it everything, it hands
entering events unmatched to its sponsor, and passes other ones on in every direction that is in their scope.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Protocol, TypeAlias

from branchline.routing.codes import Code, Rejection
from branchline.routing.compiling import Compiled
from branchline.routing.control import Ack, Change, Ended, Forgotten, Identity, Number, Request, Subscribed
from branchline.routing.event import Event
from branchline.routing.limits import ENDED_REMEMBERED_MS, HOPS_MAX
from branchline.routing.overlay.home import Awaited, Home
from branchline.routing.overlay.letters import Body, Complete, Expire, Letter, Report
from branchline.routing.overlay.methods import Dissemination, Forwarding
from branchline.routing.overlay.topology import FIRST, Routes, Topology, fault, routes
from branchline.routing.prefix.delivering import decide
from branchline.routing.prefix.forwarding import Found
from branchline.routing.prefix.header import Header
from branchline.routing.prefix.places import Owner
from branchline.routing.prefix.trees import UNMATCHED, Prefix
from branchline.routing.subscriptions import SubscriptionTable
from branchline.routing.values import JsonValue


class Content(Protocol):
    """An event as it arrived, opaque but for this."""

    def attributes(self) -> Mapping[str, JsonValue] | Rejection:
        """What filters see, or why it cannot be read."""
        ...


@dataclass(frozen=True, slots=True)
class Arrival:
    """A copy of an event at a broker."""

    content: Content
    header: Header | None = None
    """What the broker before told; None for one that enters here."""
    only: str | None = None
    """The one subscriber it is for; None for all."""


@dataclass(frozen=True, slots=True)
class Held:
    """An arrival that waits for a newer topology."""

    arrival: Arrival


@dataclass(frozen=True, slots=True)
class Released:
    """What was held and need not be any more has gone its way."""


@dataclass(frozen=True, slots=True)
class Lapsed:
    """All leases that end at or before this have been told to expire."""

    until_ms: int


@dataclass(frozen=True, slots=True)
class Kept:
    """A report that waits for a newer topology, which its home is in."""

    report: Report


Fact: TypeAlias = Change | Number | Topology | Awaited | Report | Kept | Complete | Lapsed | Held | Released


@dataclass(slots=True)
class Said:
    """What a broker says to control messages, in the order in which it must be written."""

    facts: list[Fact] = field(default_factory=list)
    letters: list[Letter] = field(default_factory=list)
    acks: list[Ack] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of an event for a neighbour."""

    to: str
    header: Header


@dataclass(slots=True)
class Routed:
    """What became of one arrival."""

    held: bool = False
    copies: list[Copy] = field(default_factory=list)
    deliveries: list[str] = field(default_factory=list)
    """Subscribers, sorted."""
    undecided: dict[str, Rejection] = field(default_factory=dict)
    refused: Rejection | None = None
    """Why it could not go on; it is still owed to the scope."""
    scope: int = 0
    prefix: Prefix = UNMATCHED
    found: Found | None = None
    content_matches: int = 0
    afresh_matches: int = 0
    exact_checks: int = 0
    refuted: int = 0
    """Subscribers that were found and do not get it: false positives, had nobody checked."""
    retired: int = 0
    """Homes in the scope that are no more."""


class _Unreadable(Exception):
    """The content had to be looked at, and could not be read."""

    def __init__(self, rejection: Rejection) -> None:
        super().__init__(rejection.reason)
        self.rejection = rejection


@dataclass(slots=True)
class _Sought:
    """Who is looked for: the homes of a scope, and local subscriptions, of one subscriber or of all."""

    hops: Mapping[str, str]
    local: bool
    only: str | None
    enough_hops: int

    def __contains__(self, owner: object) -> bool:
        if isinstance(owner, Identity):
            return self.local and self.only in (None, owner.subscriber)
        return owner in self.hops

    def enough(self, found: Found) -> bool:
        """All next hops are found, and nobody here is looked for."""
        if self.local:
            return False
        hops = {self.hops[home] for home in (*found.certain, *found.doubtful)}  # type: ignore[index]
        return len(hops) == self.enough_hops


class Broker:
    """One broker of the overlay."""

    def __init__(
        self, name: str, forwarding: Forwarding, dissemination: Dissemination, *, paper_delivery: bool = False
    ) -> None:
        self.name = name
        self.table = SubscriptionTable()
        self.topology: Topology | None = None
        self.joining = False
        self.held: list[Arrival] = []
        self.home = Home(name, self.table)
        self.forwarding = forwarding
        self._dissemination = dissemination
        self._paper_delivery = paper_delivery
        self._own: dict[Owner, Compiled] = {}
        self._routes = Routes({}, {}, {}, 0)
        self._hops: dict[int, Mapping[str, str]] = {}
        self._kept: list[Report] = []
        self._said = Said()
        self._heard: dict[str, set[Identity]] = {}
        """For each home, the subscriptions that this call's letters told about."""

    # Facts

    def obey(self, fact: Fact) -> Rejection | bool:
        """Make the fact so; False if it changes nothing, a rejection if it cannot be read."""
        match fact:
            case Subscribed() | Ended() | Forgotten():
                return self._change(fact)
            case Number():
                self.home.number = fact
            case Topology():
                member = fact.member(self.name)
                if member is not None and not self._is_member():
                    self.joining = member.since > FIRST
                self.topology, self._kept = fact, []
                self._routes = routes(fact, self.name)
                self._hops = {self._routes.everybody: self._routes.hops}
                self._in_force(self.home.take(fact))
            case Awaited():
                self._in_force(self.home.await_(fact))
            case Report():
                self._in_force(self.home.hear(fact))
            case Kept():
                self._kept.append(fact.report)
            case Complete():
                self.joining = False
            case Lapsed():
                self.home.lapsed_ms = fact.until_ms
            case Held():
                self.held.append(fact.arrival)
            case Released():
                self.held = [arrival for arrival in self.held if self._is_early(arrival)]
        return True

    def facts(self) -> Iterator[Fact]:
        """Facts that make an equal broker: what a snapshot holds."""
        if self.topology is not None:
            yield self.topology
            if not self.joining:
                yield Complete()
        if self.home.number is not None:
            yield self.home.number
        yield Lapsed(self.home.lapsed_ms)
        yield from sorted(self.table.changes(), key=lambda change: change.identity)
        yield from self.home.pending()
        yield from self.home.reports()
        yield from map(Kept, self._kept)
        yield from map(Held, self.held)

    def restore(self, facts: Iterable[Fact]) -> None:
        """Obey what was written down; what was said at the time is said."""
        for fact in facts:
            self.obey(fact)
        self._said = Said()

    def _do(self, fact: Fact) -> Rejection | bool:
        done = self.obey(fact)
        if done is True:
            self._said.facts.append(fact)
        return done

    def _change(self, change: Change) -> Rejection | bool:
        """Obey a change, and tell the forwarding method who is interested in what now."""
        identity = change.identity
        before = self.table.compiled(identity)
        applied = self.table.apply(change)
        if applied is not True:
            return applied
        after = self.table.compiled(identity)
        is_local = identity.home == self.name
        if is_local:
            if isinstance(change, Subscribed):
                self.home.lease(change)
            else:
                self.home.drop(identity)
        if before is after:
            return True
        owner = identity if is_local else identity.home
        # First the new one: an owner of both must not be forgotten in between.
        if after is not None:
            self.forwarding.subscribe(after.cover, owner)
        if before is not None:
            self.forwarding.unsubscribe(before.cover, owner)
        if is_local and after is not None:
            self._own[identity] = after
        else:
            self._own.pop(identity, None)
        return True

    # Control

    def begin(self, now_ms: int) -> None:
        """A call with control begins: forget what was remembered long enough.

        Only then, since all shards get all control: so they all forget in the same call.
        """
        for forgotten in self.table.forgettable(now_ms):
            self._do(forgotten)

    def ask(self, now_ms: int, index: int, request: Request) -> None:
        """A request of a subscriber whose home this is."""
        answer = self.home.answer(now_ms, index, request)
        self._said.acks += answer.acks
        if answer.change is not None:
            self._number_and_learn(answer.change, tell=answer.tell)
        if answer.awaited is not None:
            self._index = index
            self._do(answer.awaited)
            self._index = None

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
                self._tell_all(self._neighbours(), (), body)
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
        if leads:
            due = self.home.overdue(now_ms)
            if due:
                self._do(Lapsed(now_ms))
                self._said.letters += [Letter(self.name, self.name, each) for each in due]

    def said(self) -> Said:
        """What was said since this was last asked."""
        said, self._said = self._said, Said()
        return said

    _index: int | None = None
    """Of the request that is being answered, for acks that come at once."""

    def _in_force(self, completed: Iterable[Awaited]) -> None:
        for awaited in completed:
            self._said.acks += self.home.in_force(awaited, self._index)

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
        for to, told in self._dissemination.tell(change, teller, self._neighbours()):
            self._said.letters.append(Letter(to, self.name, told))

    def _tell_all(self, to: Iterable[str], known: Iterable[Body], complete: Complete | None) -> None:
        told = [*known, *([complete] if complete is not None else [])]
        self._said.letters += [Letter(each, self.name, body) for each in to for body in told]

    def _send_on(self, report: Report) -> None:
        hop = self._routes.hops.get(report.home)
        if hop is not None:
            self._said.letters.append(Letter(hop, self.name, report))
        elif self.topology is None or report.topology > self.topology.order:
            self._do(Kept(report))

    def _take(self, now_ms: int, topology: Topology, teller: str | None) -> None:
        before, kept = self._neighbours(), self._kept
        self._do(topology)
        now = self._neighbours()
        self._said.letters += [
            Letter(each, self.name, topology) for each in dict.fromkeys((*before, *now)) if each != teller
        ]
        known = sorted(self.table.changes(), key=lambda change: change.identity)
        fresh = [each for each in now if each not in before]
        self._tell_all(fresh, self._dissemination.tell_all(known), None if self.joining else Complete())
        member = topology.member(self.name)
        if member is not None and member.leaving:
            for ended, ack in list(self.home.end_all(now_ms)):
                self._said.acks.append(ack)
                self._number_and_learn(ended)
        for awaited in self.home.pending():
            again = self.home.again(awaited)
            self._do(again)
            self._tell(again, None)
        for report in kept:
            self._send_on(report)

    def _neighbours(self) -> tuple[str, ...]:
        return self.topology.neighbours(self.name) if self.topology is not None else ()

    # Events

    def release(self) -> list[Arrival]:
        """What was held and need not be any more, in the order in which it came."""
        ready = [arrival for arrival in self.held if not self._is_early(arrival)]
        if ready:
            self._do(Released())
        return ready

    def hold(self, arrival: Arrival) -> None:
        """Keep an arrival until the topology that it needs is there."""
        self._do(Held(arrival))

    def _is_early(self, arrival: Arrival) -> bool:
        if self.topology is None or not (self._is_member() or self._is_retired()):
            return True
        return arrival.header is not None and arrival.header.topology > self.topology.number

    def _is_member(self) -> bool:
        return self.topology is not None and self.topology.member(self.name) is not None

    def _is_retired(self) -> bool:
        return self.topology is not None and any(name == self.name for name, _ in self.topology.retired)

    def route(self, arrival: Arrival) -> Routed:
        """Where an arrival goes from here. Changes nothing."""
        routed = Routed()
        if self._is_early(arrival):
            routed.held = True
            return routed
        assert self.topology is not None
        here, header = self._routes.numbers.get(self.name), arrival.header
        scope = self._routes.everybody if header is None else header.scope
        if arrival.only is not None:
            scope &= 0 if here is None else 1 << here
        routed.retired = (scope & ~self._routes.everybody).bit_count()
        routed.scope = scope = scope & self._routes.everybody
        if here is None:
            if scope:
                routed.refused = Rejection(Code.BROKER_RETIRED, f"the broker {self.name!r} is retired")
            return routed
        if header is not None and header.hops > HOPS_MAX:
            routed.refused = Rejection(
                Code.HOPS_TOO_MANY, f"this copy has crossed {header.hops} links; the limit is {HOPS_MAX}"
            )
            return routed
        try:
            self._divide(arrival, bool(scope >> here & 1), routed)
        except _Unreadable as unreadable:
            routed.copies, routed.deliveries, routed.refused = [], [], unreadable.rejection
        return routed

    def _divide(self, arrival: Arrival, local: bool, routed: Routed) -> None:
        header, scope, behind = arrival.header, routed.scope, self._routes.behind
        event = Event(lambda: _readable(arrival.content))
        if self.joining and header is None and arrival.only is None:
            sponsor = self._neighbours()[0]
            routed.copies.append(self._copy(sponsor, UNMATCHED, scope, header))
            return
        routed.prefix = UNMATCHED if header is None else header.prefix
        if self.joining:
            routed.copies = [
                self._copy(hop, routed.prefix, scope & homes, header)
                for hop, homes in behind.items()
                if scope & homes
            ]
            hops: Mapping[str, str] = {}
        else:
            if header is None or not header.prefix.parts:
                routed.prefix = self.forwarding.enter(event)
            hops = self._hops_of(scope)
        entered = header is None or (not header.prefix.parts and bool(routed.prefix.parts))
        routed.content_matches = int(entered)
        sought = _Sought(hops, local and bool(self._own), arrival.only, len(set(hops.values())))
        if not sought.local and not sought.hops:
            return
        found = routed.found = self.forwarding.find(routed.prefix, event, sought)
        routed.afresh_matches = int(bool(found.afresh) and not entered)
        needed = {hops[owner] for owner in (*found.certain, *found.doubtful) if isinstance(owner, str)}
        routed.copies += [
            self._copy(hop, routed.prefix, scope & homes, header)
            for hop, homes in behind.items()
            if hop in needed
        ]
        if sought.local:
            self._deliver(event, found, routed)

    def _deliver(self, event: Event, found: Found, routed: Routed) -> None:
        certain = {owner for owner in found.certain if isinstance(owner, Identity)}
        doubtful = {owner for owner in found.doubtful if isinstance(owner, Identity)}
        local = Found({*certain}, {*doubtful})
        owed = decide(local, self._own, event, paper=self._paper_delivery, alike=_SUBSCRIBER)
        routed.exact_checks = owed.checks
        routed.deliveries = sorted(set(map(_SUBSCRIBER, owed.owners)))
        for owner, rejection in sorted(owed.undecided.items(), key=lambda item: str(item[0])):
            subscriber = _SUBSCRIBER(owner)
            if subscriber not in routed.deliveries:
                routed.undecided[subscriber] = rejection
        found_here = {owner.subscriber for owner in certain | doubtful}
        routed.refuted = len(found_here) - len(routed.deliveries) - len(routed.undecided)

    def _copy(self, to: str, prefix: Prefix, scope: int, header: Header | None) -> Copy:
        assert self.topology is not None
        hops = 1 if header is None else header.hops + 1
        return Copy(to, Header(prefix, scope, self.topology.number, hops))

    def _hops_of(self, scope: int) -> Mapping[str, str]:
        """The homes of a scope and their hops."""
        known = self._hops.get(scope)
        if known is None:
            numbers = self._routes.numbers
            known = {home: hop for home, hop in self._routes.hops.items() if scope >> numbers[home] & 1}
            if len(self._hops) >= _SCOPES_REMEMBERED:
                self._hops = {}
            self._hops[scope] = known
        return known

    def describe(self) -> str:
        """The broker for people."""
        topology = "no topology" if self.topology is None else f"topology {self.topology.number}"
        joining = ", joining" if self.joining else ""
        held = f", {len(self.held)} events held" if self.held else ""
        lines = [f"broker {self.name}, {topology}{joining}{held}", self.table.describe()]
        for awaited in self.home.pending():
            missing = ", ".join(self.home.waits_for(awaited.identity))
            lines.append(f"{awaited.identity} waits for {missing}")
        return "\n".join(line for line in lines if line)


_SCOPES_REMEMBERED = 1024
_SUBSCRIBER = attrgetter("subscriber")


def _readable(content: Content) -> Mapping[str, JsonValue]:
    attributes = content.attributes()
    if isinstance(attributes, Rejection):
        raise _Unreadable(attributes)
    return attributes
