"""Dividing: where a copy of an event goes from one broker.

Theory of operation. A copy of an event carries its *scope*: the homes that it still answers for. The broker
divides it: the copy to a neighbour gets all homes of the scope that are reached through it, matched or not,
and is sent if an address among them was found. So each home is answered for by exactly one copy, however
early somebody stops looking. A copy that was divided under a newer topology than the broker's own is *early*,
and must be held until the broker has that one.

A broker that *joins* does not know yet who is interested. Until a neighbour has told it everything, it hands
entering events unmatched to its sponsor, and passes other ones on in every direction that is in their scope.

Routing an event changes nothing, so anybody may ask what would become of one. Cost: what the forwarding
method takes, and O(neighbours); local subscribers that were found in doubt are evaluated one by one.
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Protocol

from branchline.routing.codes import Code, Rejection
from branchline.routing.compiling import Compiled
from branchline.routing.control import Identity
from branchline.routing.event import Event
from branchline.routing.filters import Filter
from branchline.routing.limits import HOPS_MAX
from branchline.routing.methods.protocols import Forwarding, Interest
from branchline.routing.optimise.entries import as_interest, plain
from branchline.routing.overlay.admission import NOT_ADVERTISED, Admission
from branchline.routing.overlay.position import Position
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
    outside: bool = False
    """No advertisement holds for it, where it entered."""


class _Unreadable(Exception):
    """The content had to be looked at, and could not be read."""

    def __init__(self, rejection: Rejection) -> None:
        super().__init__(rejection.reason)
        self.rejection = rejection


@dataclass(slots=True)
class _Sought:
    """Who is looked for: the addresses of a scope, and local subscriptions, of one subscriber or of all."""

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


class _Own:
    """The filters of the subscriptions that stand at one home."""

    def __init__(self, table: SubscriptionTable, home: str) -> None:
        self._table = table
        self._home = home

    def __bool__(self) -> bool:
        return self._table.standing_at(self._home) > 0

    def __getitem__(self, owner: Owner) -> Compiled:
        assert isinstance(owner, Identity)
        compiled = self._table.compiled(owner)
        assert compiled is not None, "whoever is found stands in the table"
        return compiled


class Divider:
    """What one broker does with events: which copies go on, and who gets them here."""

    def __init__(
        self,
        position: Position,
        forwarding: Forwarding,
        table: SubscriptionTable,
        *,
        paper_delivery: bool = False,
    ) -> None:
        self._position = position
        self.forwarding = forwarding
        self._paper_delivery = paper_delivery
        self._own = _Own(table, position.name)
        self.admission: Admission | None = None
        """Which events are let in, where publishers advertise."""
        self.renewed: set[Identity] | None = None
        """Subscriptions here whose filters have changed. Noted once somebody made it a set; whoever reads it
        empties it."""

    def exchange_at(self, address: str, before: Iterable[Filter], after: Iterable[Filter]) -> None:
        """On behalf of an address, those after are asked from now on, and those before no longer."""
        # First the new ones: what covers both must be found in between.
        for filter_ in after:
            self.forwarding.add(as_interest(plain(filter_), address))
        for filter_ in before:
            self.forwarding.remove(as_interest(plain(filter_), address))

    def exchange(self, identity: Identity, before: Compiled | None, after: Compiled | None) -> None:
        """The filter of a subscription is another one now, or the first (no before) or none (no after)."""
        owner = identity if identity.home == self._position.name else identity.home
        if self.renewed is not None and owner is identity:
            self.renewed.add(identity)
        # First the new one: an owner of both must not be forgotten in between.
        if after is not None:
            self.forwarding.add(Interest(identity, after, owner))
        if before is not None:
            self.forwarding.remove(Interest(identity, before, owner))

    def is_early(self, arrival: Arrival) -> bool:
        """Whether the arrival needs a newer topology than there is, or any."""
        position = self._position
        if position.topology is None or (position.member is None and not position.is_retired):
            return True
        return arrival.header is not None and arrival.header.topology > position.topology.number

    def route(self, arrival: Arrival) -> Routed:
        """Where an arrival goes from here. Changes nothing."""
        routed = Routed()
        if self.is_early(arrival):
            routed.held = True
            return routed
        name, routes = self._position.name, self._position.routes
        here, header = routes.numbers.get(name), arrival.header
        scope = routes.everybody if header is None else header.scope
        if arrival.only is not None:
            scope &= 0 if here is None else 1 << here
        routed.retired = (scope & ~routes.everybody).bit_count()
        routed.scope = scope = scope & routes.everybody
        if here is None:
            if scope:
                routed.refused = Rejection(Code.BROKER_RETIRED, f"the broker {name!r} is retired")
            return routed
        if header is not None and header.hops > HOPS_MAX:
            routed.refused = Rejection(
                Code.HOPS_TOO_MANY, f"this copy has crossed {header.hops} links; the limit is {HOPS_MAX}"
            )
            return routed
        event = Event(lambda: _readable(arrival.content))
        try:
            if not self._is_refused(arrival, event, routed):
                self._divide(arrival, event, bool(scope >> here & 1), routed)
        except _Unreadable as unreadable:
            routed.copies, routed.deliveries, routed.refused = [], [], unreadable.rejection
        return routed

    def _is_refused(self, arrival: Arrival, event: Event, routed: Routed) -> bool:
        """Whether the event must not enter; what has entered somewhere, or was owed to one, may go on."""
        admission = self.admission
        if admission is None or arrival.header is not None or arrival.only is not None:
            return False
        routed.outside = not admission.adverts.admits(event)
        if routed.outside and admission.required:
            routed.refused = NOT_ADVERTISED
        return routed.refused is not None

    # Many at once: see `entering.py` and `passing.py`

    @property
    def position(self) -> Position:
        return self._position

    def is_open(self) -> bool:
        """Whether events can be routed here by their content alone, or by what was found out about it."""
        position = self._position
        return position.member is not None and not position.joining and not self._paper_delivery

    def has_own(self) -> bool:
        """Whether any subscription stands here."""
        return bool(self._own)

    def is_exact(self, identity: Identity) -> bool:
        """Whether the cover of a subscription here says all that its filter does."""
        return self._own[identity].exact

    def decide(self, arrival: Arrival, found: Found) -> Routed:
        """To whom, of the subscriptions found here, the arrival is owed."""
        routed = Routed()
        self._deliver(Event(lambda: _readable(arrival.content)), found, routed)
        return routed

    def enter(self, arrival: Arrival) -> Prefix:
        """What travels with an event that enters, by itself."""
        return self.forwarding.enter(Event(lambda: _readable(arrival.content)))

    def copies_of(self, prefix: Prefix, hops: Set[str]) -> list[Copy]:
        """The copies of an entering event to these hops."""
        routed = Routed(prefix=prefix, scope=self._position.routes.everybody)
        return self._copies(hops, None, routed)

    def _divide(self, arrival: Arrival, event: Event, local: bool, routed: Routed) -> None:
        header, position = arrival.header, self._position
        if position.joining and header is None and arrival.only is None:
            sponsor = position.neighbours[0]
            routed.copies.append(self._copy(sponsor, UNMATCHED, routed.scope, header))
            return
        routed.prefix = UNMATCHED if header is None else header.prefix
        hops = position.hops_of(routed.scope)
        if position.joining:
            routed.copies = self._copies(set(hops.values()), header, routed)
            # It has gone to all other homes: of those who are left, only subscriptions here are looked for.
            hops = {}
        elif header is None or not header.prefix.matched:
            routed.prefix = self.forwarding.enter(event)
        entered = header is None or (not header.prefix.matched and routed.prefix.matched)
        routed.content_matches = int(entered)
        sought = _Sought(hops, local and bool(self._own), arrival.only, len(set(hops.values())))
        if not sought.local and not sought.hops:
            return
        found = routed.found = self.forwarding.find(routed.prefix, event, sought)
        routed.afresh_matches = int(bool(found.afresh) and not entered)
        needed = {hops[owner] for owner in (*found.certain, *found.doubtful) if isinstance(owner, str)}
        routed.copies += self._copies(needed, header, routed)
        if sought.local:
            self._deliver(event, found, routed)

    def _deliver(self, event: Event, found: Found, routed: Routed) -> None:
        certain: set[Owner] = {owner for owner in found.certain if isinstance(owner, Identity)}
        doubtful: set[Owner] = {owner for owner in found.doubtful if isinstance(owner, Identity)}
        local = Found(certain, doubtful)
        owed = decide(local, self._own, event, paper=self._paper_delivery, alike=_SUBSCRIBER)
        routed.exact_checks = owed.checks
        routed.deliveries = sorted(set(map(_SUBSCRIBER, owed.owners)))
        for owner, rejection in sorted(owed.undecided.items(), key=lambda item: str(item[0])):
            subscriber = _SUBSCRIBER(owner)
            if subscriber not in routed.deliveries:
                routed.undecided[subscriber] = rejection
        found_here = set(map(_SUBSCRIBER, certain | doubtful))
        routed.refuted = len(found_here) - len(routed.deliveries) - len(routed.undecided)

    def _copies(self, hops: Set[str], header: Header | None, routed: Routed) -> list[Copy]:
        """A copy to each of these hops, which answers for all homes of the scope behind it."""
        return [
            self._copy(hop, self._onward(routed, hop), routed.scope & homes, header)
            for hop, homes in self._position.routes.behind.items()
            if hop in hops
        ]

    def _onward(self, routed: Routed, to: str) -> Prefix:
        """What travels on: as it came, where nobody was looked for."""
        if routed.found is None:
            return routed.prefix
        return self.forwarding.onward(routed.prefix, routed.found, to)

    def _copy(self, to: str, prefix: Prefix, scope: int, header: Header | None) -> Copy:
        assert self._position.topology is not None
        hops = 1 if header is None else header.hops + 1
        return Copy(to, Header(prefix, scope, self._position.topology.number, hops))


_SUBSCRIBER = attrgetter("subscriber")


def _readable(content: Content) -> Mapping[str, JsonValue]:
    attributes = content.attributes()
    if isinstance(attributes, Rejection):
        raise _Unreadable(attributes)
    return attributes
