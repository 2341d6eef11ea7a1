"""Advertisements: what publishers say that they send, as the broker keeps them where their events enter.

Theory of operation. A publisher *advertises* a filter at the broker where it publishes. The advertisement is
told along the tree (`links.py`), and pulls the subscriptions that overlap it here; when all is settled that
was told of it, it is *in force*, and lets in the events that it holds for. A replaced one goes on letting
events in until the new one is in force: there is no gap.

*Lingering.* What was let in may be on its way for a while, and nothing orders events and letters. So what
ended or was replaced is told to nobody at once: it lets nothing in any more, but goes on pulling, until the
time for which stragglers are waited is over. Then it is *withdrawn*, and subscriptions are taken back. So
is the filter of everything, for which a broker lingers whenever its links have changed or its state was made
anew: where events of an older tree are on their way, nobody is left out.

An advertisement's cover is what counts. An event with arrays is let in if each of the single-valued events
that it stands for is: a subscription may match any of them, and must overlap what lets it in.

Invariants: facts alone change anything here. Cost: a change is O(cover); an event is asked against all covers
in force at this broker, O(filters), once where it enters.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from branchline.routing.choices import count_choices, each_choice
from branchline.routing.compiling import Compiled, compile_filter
from branchline.routing.control import Identity, Number
from branchline.routing.covers import Cover
from branchline.routing.event import Event
from branchline.routing.filters import EVERYTHING
from branchline.routing.limits import ENDED_REMEMBERED_MS, MAX_CHOICES
from branchline.routing.overlay.pending import Awaited, Pending


@dataclass(frozen=True, slots=True)
class Advertised:
    """From this number on, the advertisement of a publisher stands with this filter."""

    identity: Identity
    """The subscriber in it is the publisher."""
    number: Number
    spelling: str
    filter: str
    requests: tuple[str, ...] = ()
    revision: int = 0
    own: bool = False
    """The last request for it came by the publisher's own control topic: so do later answers go."""

    @property
    def order(self) -> tuple[Number, int]:
        """Of two changes of one advertisement, the one with the higher order stands."""
        return self.number, self.revision


@dataclass(frozen=True, slots=True)
class Unadvertised:
    """The advertisement has ended."""

    identity: Identity
    number: Number
    at_ms: int
    requests: tuple[str, ...] = ()
    revision: int = 0
    own: bool = False

    @property
    def order(self) -> tuple[Number, int]:
        """Of two changes of one advertisement, the one with the higher order stands."""
        return self.number, self.revision


@dataclass(frozen=True, slots=True)
class Unremembered:
    """An advertisement's end that was remembered long enough."""

    identity: Identity
    number: Number


@dataclass(frozen=True, slots=True)
class Lingering:
    """What lets nothing in goes on pulling subscriptions until then."""

    spelling: str
    filter: str
    until_ms: int


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """What lingered until then, or less long, does so no more."""

    until_ms: int


@dataclass(frozen=True, slots=True)
class AdvertAwaited:
    """An advertisement waits until all is settled that was told of it."""

    awaited: Awaited


@dataclass(frozen=True, slots=True)
class Gated:
    """Whether subscriptions go only where something is advertised, from the next call with control on."""

    gated: bool


AdvertChange: TypeAlias = Advertised | Unadvertised | Unremembered
AdvertFact: TypeAlias = AdvertChange | Lingering | Withdrawn | AdvertAwaited | Gated

EVERY_EVENT = ("sql", "TRUE")
"""The filter of everything, spelled."""


class Adverts:
    """The advertisements of one broker."""

    def __init__(self, exchange: Callable[[Cover, Cover], None], pending: Pending) -> None:
        """With whoever is told what is advertised no longer, and what from now on."""
        self.pending = pending
        self.gated: bool | None = None
        self.version = 0
        """Raised whenever other events may be let in."""
        self._exchange = exchange
        self._changes: dict[Identity, Advertised | Unadvertised] = {}
        self._before: dict[Identity, Advertised] = {}
        """Those that are in force until what has replaced them is."""
        self._lingering: dict[tuple[str, str], int] = {}
        self._admitting: tuple[int, Cover] = (-1, ())

    def __len__(self) -> int:
        """How many stand."""
        return sum(isinstance(each, Advertised) for each in self._changes.values())

    def find(self, identity: Identity) -> Advertised | Unadvertised | None:
        return self._changes.get(identity)

    def standing(self) -> list[Advertised]:
        """Those that stand, in an order that does not hang on how they came."""
        return [each for _, each in sorted(self._changes.items()) if isinstance(each, Advertised)]

    def count(self, publisher: str) -> int:
        """How many of a publisher stand."""
        return Counter(each.identity.subscriber for each in self.standing())[publisher]

    # Facts

    def obey(self, fact: AdvertFact) -> list[Awaited] | None:
        """Make the fact so; what is in force by it. None if it changes nothing."""
        self.version += 1
        match fact:
            case Advertised() | Unadvertised():
                return self._change(fact)
            case Unremembered():
                known = self._changes.get(fact.identity)
                if known is None or known.number != fact.number:
                    return None
                del self._changes[fact.identity]
            case Lingering():
                key = fact.spelling, fact.filter
                if key not in self._lingering:
                    self._exchange((), _cover(*key))
                self._lingering[key] = max(fact.until_ms, self._lingering.get(key, 0))
            case Withdrawn():
                for key in [key for key, until in self._lingering.items() if until <= fact.until_ms]:
                    del self._lingering[key]
                    self._exchange(_cover(*key), ())
            case AdvertAwaited():
                return self.came(self.pending.await_(fact.awaited))
            case Gated():
                self.gated = fact.gated
        return []

    def _change(self, change: Advertised | Unadvertised) -> list[Awaited] | None:
        identity = change.identity
        known = self._changes.get(identity)
        if known is not None and known.order >= change.order:
            return None
        stood = known if isinstance(known, Advertised) else None
        if isinstance(change, Unadvertised):
            self._before.pop(identity, None)
            self.pending.drop(identity)
        elif stood is not None and self.pending.find(identity) is None:
            self._before[identity] = stood
        self._changes[identity] = change
        before = () if stood is None else _cover(stood.spelling, stood.filter)
        after = _cover(change.spelling, change.filter) if isinstance(change, Advertised) else ()
        if before != after:
            self._exchange(before, after)
        return []

    def came(self, completed: list[Awaited]) -> list[Awaited]:
        """These wait for nobody any more: they are in force."""
        for awaited in completed:
            self._before.pop(awaited.identity, None)
            self.version += 1
        return completed

    def facts(self) -> Iterator[AdvertFact]:
        """Facts that make equal advertisements: what a snapshot holds."""
        if self.gated is not None:
            yield Gated(self.gated)
        for (spelling, filter_), until_ms in self._lingering.items():
            yield Lingering(spelling, filter_, until_ms)
        for identity, change in sorted(self._changes.items()):
            if identity in self._before and self.pending.find(identity) is not None:
                yield self._before[identity]
            yield change
        yield from map(AdvertAwaited, self.pending.awaited())

    def over(self, now_ms: int) -> Iterator[AdvertFact]:
        """What was remembered, or has lingered, long enough."""
        if any(until <= now_ms for until in self._lingering.values()):
            yield Withdrawn(now_ms)
        for identity, change in sorted(self._changes.items()):
            if isinstance(change, Unadvertised) and change.at_ms + ENDED_REMEMBERED_MS <= now_ms:
                yield Unremembered(identity, change.number)

    # Events

    def admitting(self) -> Cover:
        """All that lets events in: the covers of what is in force."""
        version, cover = self._admitting
        if version != self.version:
            found = dict.fromkeys(filter_ for each in self._in_force() for filter_ in _filters(each))
            cover = tuple(found)
            self._admitting = self.version, cover
        return cover

    def admits(self, event: Event) -> bool:
        """Whether something in force holds for the event, whatever is chosen of its arrays."""
        cover = self.admitting()
        if EVERYTHING in cover:
            return True
        paths = {constraint.path for filter_ in cover for constraint in filter_}
        if not event.has_array(paths):
            return event.may_match(cover)
        if count_choices(paths, event.attributes) > MAX_CHOICES:
            return False
        choices = each_choice(paths, event.attributes)
        return all(Event(each).may_match(cover) for each in choices)  # type: ignore[arg-type]

    def _in_force(self) -> Iterator[Advertised]:
        for identity, change in self._changes.items():
            if isinstance(change, Advertised):
                pending = self.pending.find(identity) is not None
                stands = self._before.get(identity) if pending else change
                if stands is not None:
                    yield stands


def _filters(advertised: Advertised) -> Cover:
    return _cover(advertised.spelling, advertised.filter)


def _cover(spelling: str, filter_: str) -> Cover:
    compiled = compile_filter(spelling, filter_)
    assert isinstance(compiled, Compiled), "it was checked before"
    return compiled.cover
