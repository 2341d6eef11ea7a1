"""What publishers of a simulated world have advertised, and which events may be refused for want of it.

An event that is refused is in dead letters, and owed once it is advertised; so it is taken out of the
history, as if it had not been published. But whatever is published under one that is surely in force must
be let in: one whose publisher was told so and has asked for nothing else since, at a broker that stays. While
it is being replaced, what both hold for is let in too. And what nobody has ever advertised must be refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from branchline.routing.compiling import Compiled, compile_filter
from branchline.routing.control import Ack, Identity, Operation, Request, Status
from branchline.routing.event import Event
from branchline.routing.values import JsonValue


@dataclass(slots=True)
class _Asked:
    """What was asked for one advertisement."""

    requests: list[Request] = field(default_factory=list)
    since: int | None = None
    """The request from which on one of them is in force; None if none is."""


@dataclass(frozen=True, slots=True)
class _Sent:
    broker: str
    attributes: Mapping[str, JsonValue]
    sure: tuple[tuple[Identity, int], ...]
    """The advertisements that surely let it in, and how many requests there were for each."""


class Advertisers:
    """All publishers, and the events that they have sent."""

    def __init__(self) -> None:
        self._asked: dict[Identity, _Asked] = {}
        self._sent: dict[int, _Sent] = {}
        self._refused: set[int] = set()

    def ask(self, request: Request) -> None:
        """A publisher writes a request, perhaps once more."""
        assert request.home is not None
        asked = self._asked.setdefault(Identity(request.home, request.subscriber, request.id), _Asked())
        if request not in asked.requests:
            asked.requests.append(request)

    def hear(self, ack: Ack) -> None:
        """A publisher is answered."""
        asked = self._asked.get(Identity(ack.home, ack.subscriber or "", ack.id or ""))
        if asked is not None and ack.status is Status.IN_FORCE:
            for place, request in enumerate(asked.requests):
                if request.request == ack.request:
                    asked.since = max(place, asked.since or 0)

    def standing(self, home: str) -> list[Identity]:
        """What stands there if nothing was refused."""
        return [
            identity
            for identity, asked in self._asked.items()
            if identity.home == home and asked.requests[-1].operation is Operation.ADVERTISE
        ]

    def sure(self, broker: str, attributes: Mapping[str, JsonValue]) -> list[Identity]:
        """The advertisements at the broker that surely let an event in."""
        return [
            identity
            for identity, asked in self._asked.items()
            if identity.home == broker and _is_sure(asked, attributes)
        ]

    def publish(self, event: int, broker: str, attributes: Mapping[str, JsonValue]) -> None:
        """An event is sent."""
        sure = self.sure(broker, attributes)
        counts = tuple((identity, len(self._asked[identity].requests)) for identity in sure)
        self._sent[event] = _Sent(broker, attributes, counts)

    def refuse(self, event: int, stays: bool) -> str | None:
        """An event is refused; why it must not be, if so."""
        self._refused.add(event)
        sure = [
            identity
            for identity, count in self._sent[event].sure
            if len(self._asked[identity].requests) == count
        ]
        if sure and stays:
            return f"event {event} was refused, though {sure[0]} is in force"
        return None

    def wrongly_let_in(self) -> list[int]:
        """Events that nobody has ever advertised where they were sent, and that were not refused."""
        return [
            event
            for event, sent in self._sent.items()
            if event not in self._refused and not self._may_enter(sent)
        ]

    def _may_enter(self, sent: _Sent) -> bool:
        asked = (each for identity, each in self._asked.items() if identity.home == sent.broker)
        return any(_may_hold(request, sent.attributes) for each in asked for request in each.requests)


def _is_sure(asked: _Asked, attributes: Mapping[str, JsonValue]) -> bool:
    """Whether all that may be in force hold; never for arrays, of which each choice would have to be seen."""
    if asked.since is None or any(isinstance(value, list) for value in attributes.values()):
        return False
    return all(_may_hold(request, attributes) for request in asked.requests[asked.since :])


def _may_hold(request: Request, attributes: Mapping[str, JsonValue]) -> bool:
    if request.operation is not Operation.ADVERTISE:
        return False
    compiled = compile_filter(request.spelling, request.filter)
    return isinstance(compiled, Compiled) and Event(attributes).may_match(compiled.cover)
