"""What a broker does for the subscriptions that have their home with it: answer, number, end.

Theory of operation. A request is checked and, if it changes anything, becomes a numbered change; the broker
floods that. The subscription is then pending (`pending.py`) until every broker has reported it, and its lease
is watched (`leases.py`). A request that was handled before, or asks for what stands already, is answered by
how the subscription stands, and changes nothing but which requests are remembered.

All shards of a job hold the same home and do the same; only the leading one's answers are written.
"""

from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, replace
from typing import Protocol

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
from branchline.routing.limits import REQUESTS_REMEMBERED, SUBSCRIPTIONS_PER_SUBSCRIBER
from branchline.routing.overlay.leases import Leases, check_lease, is_over, renewed
from branchline.routing.overlay.letters import Expire
from branchline.routing.overlay.limiting import Limit
from branchline.routing.overlay.pending import Awaited, Pending
from branchline.routing.overlay.position import Position
from branchline.routing.overlay.vacancies import Vacancies
from branchline.routing.stored_table import StoredTable
from branchline.routing.subscriptions import SubscriptionTable


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

    def __init__(
        self,
        position: Position,
        table: SubscriptionTable,
        max_subscriptions: int = SUBSCRIPTIONS_PER_SUBSCRIBER,
        stored: StoredTable | None = None,
    ) -> None:
        self.name = position.name
        self.number: Number | None = None
        self.pending = Pending(position)
        self.leases = Leases(table, stored)
        self.limit = Limit(max_subscriptions)
        self.vacancies = Vacancies()
        self._position = position
        self._table = table
        self.elsewhere: Callable[[str], Set[str]] = lambda subscriber: frozenset()
        """Homes that a subscriber has, as far as others than this one's table know."""

    # Requests

    def answer(self, now_ms: int, index: int, request: Request) -> Answer:
        """What becomes of a request."""
        identity = Identity(self.name, request.subscriber, request.id)
        known = self._table.find(identity)
        if known and request.request is not None and request.request in known.requests:
            renews = request.operation is Operation.RENEW
            # What was renewed and is over since is not renewed any more, whoever asks again.
            if not (renews and isinstance(known, Subscribed) and is_over(known, now_ms)):
                return self._standing(index, request, known)
        refusal = self._check(now_ms, identity, request, known)
        if refusal:
            return Answer(
                [self._ack(index, Status.REFUSED, identity, None, request.request, refusal, own=request.own)]
            )
        requests = with_request(known, request)
        if known is not None and self._asks_for_what_stands(now_ms, request, known):
            answer = self._standing(index, request, known)
            if request.request is None and request.own == known.own:
                return answer
            # Remembered, or a repeat of it could undo what is asked for in between.
            again = replace(known, requests=requests, revision=known.revision + 1, own=request.own)
            return replace(answer, change=again, tell=False)
        if request.operation is Operation.UNSUBSCRIBE:
            ended = Ended(identity, self.next_number(now_ms), now_ms, requests, own=request.own)
            return replace(self._standing(index, request, ended), change=ended)
        if isinstance(known, Subscribed) and self._renews(now_ms, request, known):
            anew = renewed(now_ms, request, known, requests)
            return replace(self._standing(index, request, anew), change=anew, tell=False)
        subscribed = Subscribed(
            identity,
            self.next_number(now_ms),
            request.spelling,
            request.filter,
            requests,
            lease_ms=request.lease_ms,
            until_ms=None if request.lease_ms is None else now_ms + request.lease_ms,
            own=request.own,
        )
        acks = []
        if isinstance(known, Subscribed):
            acks.append(
                self._ack(index, Status.REPLACED, identity, known.number, request.request, own=request.own)
            )
        acks.append(
            self._ack(
                index,
                Status.ACCEPTED,
                identity,
                subscribed.number,
                request.request,
                note=always_note(subscribed.spelling, subscribed.filter),
                own=request.own,
            )
        )
        return Answer(acks, subscribed, awaited=Awaited(identity, subscribed.number, (request.request,)))

    def of(self, subscriber: str) -> list[Subscribed | Ended]:
        """What is known here of a subscriber's subscriptions at this home, sorted by id."""
        return [change for change in self._table.of(subscriber) if change.identity.home == self.name]

    def in_force(self, awaited: Awaited, index: int | None = None) -> list[Ack]:
        """The acks that a subscription is in force, by where the last request for it came from."""
        known = self._table.find(awaited.identity)
        note = always_note(known.spelling, known.filter) if isinstance(known, Subscribed) else None
        own = known is not None and known.own
        return [
            self._ack(index, Status.IN_FORCE, awaited.identity, awaited.number, request, note=note, own=own)
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
            named = known.identity, known.number, request.request
            return self._ack(index, status, *named, note=note, own=request.own)

        if isinstance(known, Ended):
            asks_to_end = request.operation is Operation.UNSUBSCRIBE
            return Answer([ack(Status.EXPIRED if known.expired and not asks_to_end else Status.ENDED)])
        if request.operation is Operation.RENEW:
            return Answer([ack(Status.RENEWED)])
        accepted = ack(Status.ACCEPTED, always_note(known.spelling, known.filter))
        awaited = self.pending.find(known.identity)
        if awaited is None:
            return Answer([accepted, ack(Status.IN_FORCE, always_note(known.spelling, known.filter))])
        asking = dict.fromkeys((*awaited.requests, request.request))
        return Answer([accepted], awaited=replace(awaited, requests=tuple(asking)[-REQUESTS_REMEMBERED:]))

    def _check(
        self, now_ms: int, identity: Identity, request: Request, known: Subscribed | Ended | None
    ) -> Rejection | None:
        if request.operation is not Operation.SUBSCRIBE:
            return self._check_known(now_ms, identity, request, known)
        member = self._position.member
        if member is not None and member.leaving:
            return Rejection(Code.HOME_LEAVING, f"the broker {self.name!r} is leaving; name another home")
        homes = self._table.homes(identity.subscriber)
        others = sorted((homes.keys() | self.elsewhere(identity.subscriber)) - {self.name})
        if others:
            return Rejection(
                Code.HOME_DIFFERS,
                f"subscriber {identity.subscriber!r} has its home at {others[0]!r} and can have only one",
            )
        if not isinstance(known, Subscribed) and homes[self.name] >= self.limit.in_force:
            return Rejection(
                Code.SUBSCRIPTIONS_TOO_MANY,
                f"subscriber {identity.subscriber!r} has {homes[self.name]} subscriptions; "
                f"the limit is {self.limit.in_force}",
            )
        compiled = compile_filter(request.spelling, request.filter)
        return compiled if isinstance(compiled, Rejection) else check_lease(request)

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
        if isinstance(known, Ended) or is_over(known, now_ms):
            return Rejection(
                Code.LEASE_OVER, f"the subscription {identity.id!r} has ended; subscribe to it anew"
            )
        return check_lease(request)

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
        return not is_over(known, now_ms) and (same or request.operation is Operation.RENEW)

    # Ends

    def expire(self, now_ms: int, expire: Expire) -> tuple[Ended, Ack] | None:
        """End the lease, unless the subscription has since been ended, replaced or renewed."""
        known = self._table.find(expire.identity)
        stands = isinstance(known, Subscribed) and known.until_ms == expire.until_ms
        # Not by the clock: it may have been set back since, and nobody would say it a second time.
        if known is None or not stands or known.number != expire.number:
            return None
        number = self.next_number(now_ms)
        ended = Ended(known.identity, number, now_ms, known.requests, expired=True, own=known.own)
        return ended, self._ack(None, Status.EXPIRED, known.identity, number, own=known.own)

    def end_all(self, now_ms: int) -> Iterator[tuple[Ended, Ack]]:
        """End all subscriptions, because the broker is leaving."""
        note = f"the broker {self.name!r} is leaving; subscribe at another one"
        own = [
            change
            for change in self._table.changes()
            if isinstance(change, Subscribed) and change.identity.home == self.name
        ]
        for known in sorted(own, key=lambda change: change.identity):
            ended = Ended(known.identity, self.next_number(now_ms), now_ms, known.requests, own=known.own)
            yield ended, self._ack(None, Status.ENDED, known.identity, ended.number, note=note, own=known.own)

    def _ack(
        self,
        index: int | None,
        status: Status,
        identity: Identity,
        number: Number | None = None,
        request: str | None = None,
        rejection: Rejection | None = None,
        note: str | None = None,
        own: bool = False,
    ) -> Ack:
        return Ack(
            index, status, identity.subscriber, identity.id, self.name, number, request, rejection, note, own
        )


class _Remembering(Protocol):
    @property
    def requests(self) -> tuple[str, ...]: ...


def with_request(known: _Remembering | None, request: Request) -> tuple[str, ...]:
    """The requests to be remembered with a subscription or an advertisement after this one."""
    requests = known.requests if known else ()
    return requests if request.request is None else (*requests, request.request)[-REQUESTS_REMEMBERED:]


def always_note(spelling: str, filter_: str) -> str | None:
    """What whoever asks with this filter should know of it."""
    compiled = compile_filter(spelling, filter_)
    if isinstance(compiled, Compiled) and compiled.always:
        return "this filter matches every event"
    return None
