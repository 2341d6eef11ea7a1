"""What a broker does for the subscriptions that have their home with it: answer, number, wait, expire.

Theory of operation. A request is checked and, if it changes anything, becomes a numbered change; the broker
floods that. A subscription is *pending* until every broker of the home's topology has reported that it has it
under that same topology: so nobody enters events who does not know of it, or who does not yet know the home.
Then it is in force. When the topology changes, what is pending is told again under a higher revision and
reported anew.

A lease ends by the home's clock alone, and at the same point for all its shards: the leading shard tells the
broker to expire it, through its own link; until that is read, a renewal is refused, because the batch's time,
which all shards share, is past the lease.

All shards of a job hold the same home and do the same; only the leading one's answers are written.
Cost: a report is O(what it reports * brokers); a lease is a push and a pop on a heap.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush

from branchline.routing.codes import Code, Rejection
from branchline.routing.compiling import Compiled, compile_filter
from branchline.routing.control import (
    Ack,
    Ended,
    Identity,
    Number,
    Operation,
    Request,
    Status,
    Subscribed,
)
from branchline.routing.limits import (
    LEASE_MAX_MS,
    LEASE_MIN_MS,
    REQUESTS_REMEMBERED,
    SUBSCRIPTIONS_PER_SUBSCRIBER,
)
from branchline.routing.overlay.letters import Expire, Report
from branchline.routing.overlay.topology import Topology
from branchline.routing.subscriptions import SubscriptionTable


@dataclass(frozen=True, slots=True)
class Awaited:
    """A subscription waits for the reports of all brokers; then these requests are answered."""

    identity: Identity
    number: Number
    requests: tuple[str | None, ...]


@dataclass(slots=True)
class _Pending:
    awaited: Awaited
    reported: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Who has reported it, and under which topology."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the home makes of a request."""

    acks: list[Ack]
    change: Subscribed | Ended | None = None
    tell: bool = True
    """Whether others are to hear of the change."""
    awaited: Awaited | None = None
    """What is then waited for, to give further acks."""


class Home:
    """The subscriptions of one home, in the table that its broker keeps of all."""

    def __init__(self, name: str, table: SubscriptionTable) -> None:
        self.name = name
        self.number: Number | None = None
        self.lapsed_ms = -1
        """All leases that end at or before this have been told to expire."""
        self._table = table
        self._pending: dict[Identity, _Pending] = {}
        self._leases: list[tuple[int, Identity]] = []
        self._topology: Topology | None = None

    # Waiting for reports

    def take(self, topology: Topology) -> list[Awaited]:
        """The topology is this one now; what is in force by that."""
        self._topology = topology
        return self._complete(list(self._pending))

    def await_(self, awaited: Awaited) -> list[Awaited]:
        """Wait for reports of this; it, if there is nobody to wait for."""
        pending = self._pending.get(awaited.identity)
        if pending is None or pending.awaited.number != awaited.number:
            self._pending[awaited.identity] = _Pending(awaited)
        else:
            pending.awaited = awaited
        return self._complete([awaited.identity])

    def hear(self, report: Report) -> list[Awaited]:
        """Somebody has what it reports; what is in force by that."""
        heard = []
        for identity, number in report.has:
            pending = self._pending.get(identity)
            if pending is not None and number >= pending.awaited.number:
                # A report may be overtaken by a later one, along a shorter path.
                known = pending.reported.get(report.reporter, report.topology)
                pending.reported[report.reporter] = max(known, report.topology)
                heard.append(identity)
        return self._complete(heard)

    def is_pending(self, identity: Identity) -> bool:
        return identity in self._pending

    def drop(self, identity: Identity) -> None:
        """It has ended or was replaced: nobody waits for it any more."""
        self._pending.pop(identity, None)

    def pending(self) -> list[Awaited]:
        """What waits, in the order in which it was asked for."""
        return [pending.awaited for pending in self._pending.values()]

    def waits_for(self, identity: Identity) -> list[str]:
        """The brokers whose reports are missing."""
        pending = self._pending.get(identity)
        if pending is None or self._topology is None:
            return []
        order = self._topology.order
        others = (member.name for member in self._topology.members if member.name != self.name)
        return [name for name in others if pending.reported.get(name) != order]

    def reports(self) -> Iterator[Report]:
        """Reports that say what was reported so far: what a snapshot holds."""
        for identity, pending in self._pending.items():
            for reporter, topology in pending.reported.items():
                has = ((identity, pending.awaited.number),)
                yield Report(self.name, reporter, topology, has)

    def _complete(self, identities: Iterable[Identity]) -> list[Awaited]:
        done = [identity for identity in identities if not self.waits_for(identity)]
        return [self._pending.pop(identity).awaited for identity in dict.fromkeys(done)]

    # Leases

    def lease(self, change: Subscribed) -> None:
        """Watch the lease of a change."""
        if change.until_ms is not None:
            heappush(self._leases, (change.until_ms, change.identity))

    def due_ms(self) -> int | None:
        """When a lease is over next; None if there is none."""
        while self._leases and not self._stands(*self._leases[0]):
            heappop(self._leases)
        return self._leases[0][0] if self._leases else None

    def _stands(self, until_ms: int, identity: Identity) -> bool:
        """Whether that is when the lease is over now, and nobody was told so yet."""
        known = self._table.find(identity)
        return isinstance(known, Subscribed) and known.until_ms == until_ms > self.lapsed_ms

    def overdue(self, now_ms: int) -> list[Expire]:
        """The leases that are over and have not been told to expire."""
        due: dict[Expire, None] = {}
        while self._leases and self._leases[0][0] <= now_ms:
            until_ms, identity = heappop(self._leases)
            if self._stands(until_ms, identity):
                known = self._table.find(identity)
                assert known is not None
                due[Expire(identity, known.number, until_ms)] = None
        return list(due)

    def expire(self, now_ms: int, expire: Expire) -> tuple[Ended, Ack] | None:
        """End the lease, unless the subscription has since been ended, replaced or renewed."""
        known = self._table.find(expire.identity)
        stands = isinstance(known, Subscribed) and known.until_ms == expire.until_ms
        # Not by the clock: it may have been set back since, and nobody would say it a second time.
        if known is None or not stands or known.number != expire.number:
            return None
        ended = Ended(known.identity, self.next_number(now_ms), now_ms, known.requests, expired=True)
        return ended, self._ack(None, Status.EXPIRED, known.identity, ended.number)

    def end_all(self, now_ms: int) -> Iterator[tuple[Ended, Ack]]:
        """End all subscriptions, because the broker is leaving."""
        note = f"the broker {self.name!r} is leaving; subscribe at another one"
        own = [
            change
            for change in self._table.changes()
            if isinstance(change, Subscribed) and change.identity.home == self.name
        ]
        for known in sorted(own, key=lambda change: change.identity):
            ended = Ended(known.identity, self.next_number(now_ms), now_ms, known.requests)
            yield ended, self._ack(None, Status.ENDED, known.identity, ended.number, note=note)

    # Requests

    def answer(self, now_ms: int, index: int, request: Request) -> Answer:
        """What becomes of a request."""
        identity = Identity(self.name, request.subscriber, request.id)
        known = self._table.find(identity)
        if known and request.request is not None and request.request in known.requests:
            return self._standing(index, request, known)
        refusal = self._check(now_ms, identity, request, known)
        if refusal:
            ack = self._ack(index, Status.REFUSED, identity, request=request.request, rejection=refusal)
            return Answer([ack])
        requests = known.requests if known else ()
        if request.request is not None:
            requests = (*requests, request.request)[-REQUESTS_REMEMBERED:]
        if known is not None and self._asks_for_what_stands(now_ms, request, known):
            answer = self._standing(index, request, known)
            if request.request is None:
                return answer
            # Remembered, or a repeat of it could undo what is asked for in between.
            again = replace(known, requests=requests, revision=known.revision + 1)
            return replace(answer, change=again, tell=False)
        if request.operation is Operation.UNSUBSCRIBE:
            ended = Ended(identity, self.next_number(now_ms), now_ms, requests)
            return replace(self._standing(index, request, ended), change=ended)
        if isinstance(known, Subscribed) and self._renews(now_ms, request, known):
            renewed = _renewed(now_ms, request, known, requests)
            return replace(self._standing(index, request, renewed), change=renewed, tell=False)
        subscribed = Subscribed(
            identity,
            self.next_number(now_ms),
            request.spelling,
            request.filter,
            requests,
            lease_ms=request.lease_ms,
            until_ms=None if request.lease_ms is None else now_ms + request.lease_ms,
        )
        acks = [
            self._ack(
                index, Status.ACCEPTED, identity, subscribed.number, request.request, note=_note(subscribed)
            )
        ]
        if isinstance(known, Subscribed):
            acks.insert(0, self._ack(index, Status.REPLACED, identity, known.number, request.request))
        return Answer(acks, subscribed, awaited=Awaited(identity, subscribed.number, (request.request,)))

    def in_force(self, awaited: Awaited, index: int | None = None) -> list[Ack]:
        """The acks that a subscription is in force."""
        known = self._table.find(awaited.identity)
        note = _note(known) if isinstance(known, Subscribed) else None
        return [
            self._ack(index, Status.IN_FORCE, awaited.identity, awaited.number, request, note=note)
            for request in awaited.requests
        ]

    def again(self, awaited: Awaited) -> Subscribed:
        """What is pending, to be told again."""
        known = self._table.find(awaited.identity)
        assert isinstance(known, Subscribed), "what is pending stands"
        return replace(known, revision=known.revision + 1)

    def next_number(self, now_ms: int) -> Number:
        if self.number is None:
            # A new life of this home starts above whatever an earlier one may have left in the table.
            highest = self._table.highest_number(self.name)
            self.number = Number(max(now_ms, highest.incarnation + 1 if highest else 0), 0)
        self.number = Number(self.number.incarnation, self.number.counter + 1)
        return self.number

    def _standing(self, index: int, request: Request, known: Subscribed | Ended) -> Answer:
        """How the subscription stands, as the answer to a request that is not the first to say so."""

        def ack(status: Status, note: str | None = None) -> Ack:
            return self._ack(index, status, known.identity, known.number, request.request, note=note)

        if isinstance(known, Ended):
            asks_to_end = request.operation is Operation.UNSUBSCRIBE
            return Answer([ack(Status.EXPIRED if known.expired and not asks_to_end else Status.ENDED)])
        if request.operation is Operation.RENEW:
            return Answer([ack(Status.RENEWED)])
        accepted = ack(Status.ACCEPTED, _note(known))
        pending = self._pending.get(known.identity)
        if pending is None:
            return Answer([accepted, ack(Status.IN_FORCE, _note(known))])
        asking = dict.fromkeys((*pending.awaited.requests, request.request))
        awaited = replace(pending.awaited, requests=tuple(asking)[-REQUESTS_REMEMBERED:])
        return Answer([accepted], awaited=awaited)

    def _check(
        self, now_ms: int, identity: Identity, request: Request, known: Subscribed | Ended | None
    ) -> Rejection | None:
        if request.operation is not Operation.SUBSCRIBE:
            return self._check_known(now_ms, identity, request, known)
        member = self._topology.member(self.name) if self._topology else None
        if member is not None and member.leaving:
            return Rejection(Code.HOME_LEAVING, f"the broker {self.name!r} is leaving; name another home")
        homes = self._table.homes(identity.subscriber)
        others = sorted(homes.keys() - {self.name})
        if others:
            return Rejection(
                Code.HOME_DIFFERS,
                f"subscriber {identity.subscriber!r} has its home at {others[0]!r} and can have only one",
            )
        if not isinstance(known, Subscribed) and homes[self.name] >= SUBSCRIPTIONS_PER_SUBSCRIBER:
            return Rejection(
                Code.SUBSCRIPTIONS_TOO_MANY,
                f"subscriber {identity.subscriber!r} has {homes[self.name]} subscriptions; "
                f"the limit is {SUBSCRIPTIONS_PER_SUBSCRIBER}",
            )
        compiled = compile_filter(request.spelling, request.filter)
        return compiled if isinstance(compiled, Rejection) else _check_lease(request)

    def _check_known(
        self, now_ms: int, identity: Identity, request: Request, known: Subscribed | Ended | None
    ) -> Rejection | None:
        if known is None:
            return Rejection(
                Code.SUBSCRIPTION_UNKNOWN,
                f"subscriber {identity.subscriber!r} has no subscription {identity.id!r}",
            )
        if request.operation is Operation.UNSUBSCRIBE:
            return None
        if isinstance(known, Ended) or _lapsed(known, now_ms):
            return Rejection(
                Code.LEASE_OVER, f"the subscription {identity.id!r} has ended; subscribe to it anew"
            )
        return _check_lease(request)

    def _asks_for_what_stands(self, now_ms: int, request: Request, known: Subscribed | Ended) -> bool:
        if request.operation is Operation.UNSUBSCRIBE:
            return isinstance(known, Ended)
        if isinstance(known, Ended):
            return False
        endless = request.lease_ms is None and known.lease_ms is None
        return endless and self._renews(now_ms, request, known)

    def _renews(self, now_ms: int, request: Request, known: Subscribed) -> bool:
        """Whether the filter stays as it is; one whose lease is over cannot be saved, it is to expire."""
        same = (known.spelling, known.filter) == (request.spelling, request.filter)
        return not _lapsed(known, now_ms) and (same or request.operation is Operation.RENEW)

    def _ack(
        self,
        index: int | None,
        status: Status,
        identity: Identity,
        number: Number | None = None,
        request: str | None = None,
        rejection: Rejection | None = None,
        note: str | None = None,
    ) -> Ack:
        return Ack(
            index, status, identity.subscriber, identity.id, self.name, number, request, rejection, note
        )


def _lapsed(known: Subscribed, now_ms: int) -> bool:
    return known.until_ms is not None and known.until_ms <= now_ms


def _check_lease(request: Request) -> Rejection | None:
    lease_ms = request.lease_ms
    if lease_ms is None or LEASE_MIN_MS <= lease_ms <= LEASE_MAX_MS:
        return None
    return Rejection(
        Code.LEASE_INVALID,
        f"a lease of {lease_ms} ms; it must be from {LEASE_MIN_MS} to {LEASE_MAX_MS} ms",
    )


def _renewed(now_ms: int, request: Request, known: Subscribed, requests: tuple[str, ...]) -> Subscribed:
    """The same subscription with its lease begun anew. Subscribing anew may also take the lease away."""
    lease_ms = request.lease_ms
    if lease_ms is None and request.operation is Operation.RENEW:
        lease_ms = known.lease_ms
    return replace(
        known,
        revision=known.revision + 1,
        requests=requests,
        lease_ms=lease_ms,
        until_ms=None if lease_ms is None else now_ms + lease_ms,
    )


def _note(subscribed: Subscribed) -> str | None:
    compiled = compile_filter(subscribed.spelling, subscribed.filter)
    if isinstance(compiled, Compiled) and compiled.always:
        return "this filter matches every event"
    return None
