"""Pulling: a broker has all others say what is still wanted behind its links, and its table shrinks (CBCB).

Theory of operation. Where tables only grow (`Links.inflating`), a broker that is asked to refresh *issues* a
request, a `Pull`, to all its neighbours on the tree. Whoever hears it asks its other neighbours in turn. One
that has heard the replies of all of them, or has none, takes back what it has told the asker and what is not
wanted any more, and then replies. So what is gone is taken back from the ends of the tree inwards. On a tree
what is behind a link is the same whoever asks: each broker on the way takes the replies for its own table.

A reply only follows what was told before it on the same link. Tables are right without any of it: whatever
comes late, twice or never changes how much of them is left over, and nothing else. So there is no clock here:
whoever watches from outside says that a broker is to wait no longer.

Invariants: of each issuer the newest request is known, which has the highest number, and each neighbour is
asked once for it. A topology ends all requests; their issuers begin anew. Cost: a request is a letter over
each link, a reply is what is taken back, and one letter.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from branchline.routing.overlay.position import Position


@dataclass(frozen=True, slots=True)
class Pull:
    """The issuer asks everybody, under the topology of this order, what is wanted."""

    topology: tuple[int, int]
    issuer: str
    number: int
    timeout_ms: int
    """How long whoever has asked the issuer is going to wait. Nobody here does anything by it."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the issuer has asked of the sender, and of all behind it, was told."""

    topology: tuple[int, int]
    issuer: str
    number: int


@dataclass(frozen=True, slots=True)
class Pulled:
    """There is a request of this issuer, heard from this neighbour; None for the issuer itself."""

    issuer: str
    number: int
    timeout_ms: int
    asker: str | None = None
    requests: tuple[str, ...] = ()
    """Those who wait for it at the issuer, and how many filters its table had when it was asked."""
    filters: int = 0


@dataclass(frozen=True, slots=True)
class Replied:
    """A neighbour has replied to the request of this issuer, or is waited for no longer."""

    issuer: str
    sender: str
    given_up: bool = False


@dataclass(frozen=True, slots=True)
class Concluded:
    """The request of this issuer was replied to; the issuer itself has told those who wait."""

    issuer: str


PullFact: TypeAlias = Pulled | Replied | Concluded


@dataclass(slots=True)
class _UnderWay:
    """The newest request of one issuer."""

    pulled: Pulled
    waiting: set[str]
    replied: list[Replied] = field(default_factory=list)
    concluded: bool = False


@dataclass(slots=True)
class Pulls:
    """The requests that one broker knows of."""

    position: Position
    _of: dict[str, _UnderWay] = field(default_factory=dict)

    def others(self, asker: str | None) -> list[str]:
        """Whom a request goes to that came from the asker."""
        return sorted(each for each in self.position.routes.behind if each != asker)

    # Deciding

    def issue(self, now_ms: int, timeout_ms: int, requests: Iterable[str], filters: int) -> Pulled:
        """A request of this broker's own; those who wait for the one before wait for this one."""
        before = self._of.get(self.position.name)
        number = now_ms if before is None else max(now_ms, before.pulled.number + 1)
        waiting = before.pulled.requests if before is not None and not before.concluded else ()
        everybody = tuple(dict.fromkeys((*waiting, *requests)))
        return Pulled(self.position.name, number, timeout_ms, None, everybody, filters)

    def hear(self, sender: str, pull: Pull) -> Pulled | None:
        """What to obey of a request that has come from a neighbour; None if it is nothing new."""
        known = self._of.get(pull.issuer)
        if not self._is_of_now(sender, pull) or pull.issuer == self.position.name:
            return None
        if known is not None and pull.number <= known.pulled.number:
            return None
        return Pulled(pull.issuer, pull.number, pull.timeout_ms, sender)

    def hear_reply(self, sender: str, reply: Reply) -> Replied | None:
        """Likewise of a reply."""
        known = self._of.get(reply.issuer)
        if known is None or known.pulled.number != reply.number or sender not in known.waiting:
            return None
        return Replied(reply.issuer, sender) if self._is_of_now(sender, reply) else None

    def _is_of_now(self, sender: str, body: Pull | Reply) -> bool:
        topology = self.position.topology
        is_of_now = topology is not None and body.topology == topology.order
        return is_of_now and sender in self.position.routes.behind

    def give_up(self) -> list[Replied]:
        """What to obey if nobody is to be waited for any longer, whoever has issued it."""
        return [
            Replied(issuer, each, given_up=True)
            for issuer, under_way in sorted(self._of.items())
            for each in sorted(under_way.waiting)
        ]

    def due(self) -> list[Pulled]:
        """The requests whose replies are all there, and that are not concluded yet."""
        under_way = [each for _, each in sorted(self._of.items())]
        return [each.pulled for each in under_way if not each.waiting and not each.concluded]

    @property
    def own(self) -> Pulled | None:
        """The newest request of this broker's own."""
        own = self._of.get(self.position.name)
        return own.pulled if own is not None else None

    def unanswered(self) -> Pulled | None:
        """The same, if somebody still waits for it."""
        own = self._of.get(self.position.name)
        return own.pulled if own is not None and not own.concluded else None

    def given_up(self, pulled: Pulled) -> list[str]:
        """The neighbours that have not replied to it, and are waited for no longer."""
        return [each.sender for each in self._of[pulled.issuer].replied if each.given_up]

    # Facts

    def obey(self, fact: PullFact) -> None:
        """Make the fact so."""
        match fact:
            case Pulled():
                self._of[fact.issuer] = _UnderWay(fact, set(self.others(fact.asker)))
            case Replied():
                self._of[fact.issuer].waiting.discard(fact.sender)
                self._of[fact.issuer].replied.append(fact)
            case Concluded():
                self._of[fact.issuer].concluded = True

    def forget(self) -> None:
        """There is another topology."""
        self._of = {}

    def facts(self) -> Iterator[PullFact]:
        """Facts that make equal ones, once the topology is taken: what a snapshot holds."""
        for issuer, under_way in sorted(self._of.items()):
            yield under_way.pulled
            yield from under_way.replied
            if under_way.concluded:
                yield Concluded(issuer)
