"""What a broker does for the publishers that advertise with it: answer, number, end.

Theory of operation. As for subscriptions (`home.py`): a request is checked and, if it changes anything,
becomes a numbered change; one that was handled before, or asks for what stands, is answered by how that
stands. The home of an advertisement is the broker where its events enter, so a publisher may have several.
Nobody else keeps it: others are told what is advertised, and not by whom (`dissemination/links.py`).

An advertisement is in force when all is settled that was told of it. Whoever answers has told what it pulls
before (`Broker.finish`): so by then every subscription that overlaps it, and was in force, is known here.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from branchline.routing.codes import Code, Rejection
from branchline.routing.compiling import compile_filter
from branchline.routing.control import Ack, Identity, Number, Operation, Request, Status
from branchline.routing.dissemination.adverts import (
    AdvertFact,
    Advertised,
    Adverts,
    Lingering,
    Unadvertised,
)
from branchline.routing.limits import ADVERTISEMENTS_PER_PUBLISHER, REQUESTS_REMEMBERED
from branchline.routing.overlay.home import Home, always_note, with_request
from branchline.routing.overlay.pending import Awaited
from branchline.routing.overlay.position import Position


@dataclass(frozen=True, slots=True)
class Advertising:
    """What the home makes of a publisher's request."""

    acks: list[Ack]
    facts: list[AdvertFact] = field(default_factory=list)
    """To be obeyed in this order, after the home's number if they have a new one."""
    awaited: Awaited | None = None


class Publishers:
    """The advertisements that have their home with a broker."""

    def __init__(
        self, position: Position, home: Home, adverts: Adverts, unused: str | None, linger_ms: int
    ) -> None:
        """With the reason why there are no advertisements here, if there are none."""
        self._name, self._position = position.name, position
        self._home, self._adverts = home, adverts
        self._unused, self._linger_ms = unused, linger_ms

    def answer(self, now_ms: int, index: int, request: Request) -> Advertising:
        """What becomes of a request."""
        identity = Identity(self._name, request.subscriber, request.id)
        known = self._adverts.find(identity)
        if known is not None and request.request is not None and request.request in known.requests:
            return self._standing(index, request, known)
        refusal = self._check(identity, request, known)
        if refusal is not None:
            ack = self._ack(index, Status.REFUSED, identity, None, request.request, request.own)
            return Advertising([replace(ack, rejection=refusal)])
        requests = with_request(known, request)
        if known is not None and _asks_for_what_stands(request, known):
            answer = self._standing(index, request, known)
            # Remembered, or a repeat of it could undo what is asked for in between.
            again = replace(known, requests=requests, revision=known.revision + 1, own=request.own)
            return replace(answer, facts=[again])
        lingering = self._lingering(now_ms, known)
        number = self._home.next_number(now_ms)
        if request.operation is Operation.UNADVERTISE:
            ended = Unadvertised(identity, number, now_ms, requests, own=request.own)
            return replace(self._standing(index, request, ended), facts=[*lingering, ended])
        advertised = Advertised(identity, number, request.spelling, request.filter, requests, own=request.own)
        acks = [self._ack(index, Status.ACCEPTED, identity, number, request.request, request.own)]
        acks[0] = replace(acks[0], note=always_note(request.spelling, request.filter))
        if isinstance(known, Advertised):
            told = (identity, known.number, request.request, request.own)
            acks.insert(0, self._ack(index, Status.REPLACED, *told))
        awaited = Awaited(identity, number, (request.request,))
        return Advertising(acks, [*lingering, advertised], awaited)

    def in_force(self, awaited: Awaited, index: int | None = None) -> list[Ack]:
        """The acks that an advertisement is in force."""
        known = self._adverts.find(awaited.identity)
        own = known is not None and known.own
        return [
            self._ack(index, Status.IN_FORCE, awaited.identity, awaited.number, request, own)
            for request in awaited.requests
        ]

    def end_all(self, now_ms: int) -> Iterator[Advertising]:
        """End all advertisements, because the broker is leaving; each is to be obeyed before the next."""
        note = f"the broker {self._name!r} is leaving; publish at another one"
        for known in self._adverts.standing():
            lingering, number = self._lingering(now_ms, known), self._home.next_number(now_ms)
            ended = Unadvertised(known.identity, number, now_ms, known.requests, own=known.own)
            ack = self._ack(None, Status.ENDED, known.identity, number, None, known.own)
            yield Advertising([replace(ack, note=note)], [*lingering, ended])

    def _lingering(self, now_ms: int, known: Advertised | Unadvertised | None) -> list[AdvertFact]:
        if not isinstance(known, Advertised):
            return []
        return [Lingering(known.spelling, known.filter, now_ms + self._linger_ms)]

    def _standing(self, index: int, request: Request, known: Advertised | Unadvertised) -> Advertising:
        """How the advertisement stands, as the answer to a request that is not the first to say so."""
        named = known.identity, known.number, request.request, request.own
        if isinstance(known, Unadvertised):
            return Advertising([self._ack(index, Status.ENDED, *named)])
        accepted = self._ack(index, Status.ACCEPTED, *named)
        awaited = self._adverts.pending.find(known.identity)
        if awaited is None:
            return Advertising([accepted, self._ack(index, Status.IN_FORCE, *named)])
        asking = tuple(dict.fromkeys((*awaited.requests, request.request)))[-REQUESTS_REMEMBERED:]
        return Advertising([accepted], awaited=replace(awaited, requests=asking))

    def _check(
        self, identity: Identity, request: Request, known: Advertised | Unadvertised | None
    ) -> Rejection | None:
        if request.operation is Operation.UNADVERTISE:
            if known is not None:
                return None
            reason = (
                f"publisher {identity.subscriber!r} has no advertisement {identity.id!r} at {self._name!r}"
            )
            return Rejection(Code.ADVERTISEMENT_UNKNOWN, reason)
        if self._unused is not None:
            return Rejection(Code.ADVERTISEMENTS_UNUSED, self._unused)
        member = self._position.member
        if member is not None and member.leaving:
            return Rejection(
                Code.HOME_LEAVING, f"the broker {self._name!r} is leaving; publish at another one"
            )
        count = self._adverts.count(identity.subscriber)
        if not isinstance(known, Advertised) and count >= ADVERTISEMENTS_PER_PUBLISHER:
            return Rejection(
                Code.ADVERTISEMENTS_TOO_MANY,
                f"publisher {identity.subscriber!r} has {count} advertisements at {self._name!r}; "
                f"the limit is {ADVERTISEMENTS_PER_PUBLISHER}",
            )
        compiled = compile_filter(request.spelling, request.filter)
        return compiled if isinstance(compiled, Rejection) else None

    def _ack(
        self,
        index: int | None,
        status: Status,
        identity: Identity,
        number: Number | None,
        request: str | None,
        own: bool,
    ) -> Ack:
        named = identity.subscriber, identity.id, self._name
        return Ack(index, status, *named, number, request, own=own, advert=True)


def _asks_for_what_stands(request: Request, known: Advertised | Unadvertised) -> bool:
    if isinstance(known, Unadvertised):
        return request.operation is Operation.UNADVERTISE
    same = (known.spelling, known.filter) == (request.spelling, request.filter)
    return request.operation is Operation.ADVERTISE and same
