"""Subscriptions as the history checker sees them: chains of versions, and what each of them wants.

A subscription or replacement is a version with a filter; an end, or a lease that may be over, is one that
wants nothing. `checking.py` says what follows from where in its chain a version stands.
"""

from bisect import bisect_left
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

from branchline.routing.codes import Rejection
from branchline.routing.control import Identity, Status
from branchline.routing.evaluate import Attributes, evaluate
from branchline.routing.expression import Expression, constraints, named_paths
from branchline.routing.spellings import read_filter

FILTERS_KEPT = 1024
VERDICTS_KEPT = 1024
"""Of each filter. What is remembered from one history for the next: many are made of the same few things."""


@dataclass(slots=True)
class Event:
    """An event, with when it was published and by when it was handled."""

    name: Hashable
    position: int
    attributes: Attributes
    shown: dict[str, str]
    """Each attribute as a text that tells all values apart."""
    stream: Hashable
    acknowledged: bool
    period: int | None
    """In which steady period it was published."""
    settled: int = 0
    """Where it was surely handled: the first `Settled` after it, or the end."""


class Filter:
    """One text, and what the oracle said of events.

    Verdicts are kept by what the events have where the filter looks: histories draw events from few values.
    """

    __slots__ = ("_expression", "_names", "_verdicts")

    def __init__(self, expression: Expression | None) -> None:
        self._expression = expression
        named = [] if expression is None else constraints(expression)
        self._names = sorted({path[0] for each in named for path in named_paths(each)})
        self._verdicts: dict[Hashable, bool | Rejection] = {}

    def wants(self, event: Event) -> bool | Rejection:
        if self._expression is None:
            return False
        looked_at = tuple([event.shown.get(name) for name in self._names])
        verdict = self._verdicts.get(looked_at)
        if verdict is None:
            if len(self._verdicts) >= VERDICTS_KEPT:
                self._verdicts.clear()
            verdict = self._verdicts[looked_at] = evaluate(self._expression, event.attributes)
        return verdict


@lru_cache(maxsize=FILTERS_KEPT)
def filter_of(spelling: str, text: str) -> Filter:
    """A filter that cannot be read is one that wants nothing: the home should have refused it."""
    expression = read_filter(spelling, text)
    return Filter(None if isinstance(expression, Rejection) else expression)


NOTHING = Filter(None)
"""What an end wants."""


@dataclass(slots=True, eq=False)
class Version:
    """What a subscription became, or may have become, by one request or by the end of its lease."""

    writes: list[int]
    """Where it was written, and written again."""
    filter: Filter
    text: str | None
    """None for an end."""
    request: str | None
    """None for a lease that may be over."""
    refused: int | None = None
    """The last refusal."""
    handled: int | None = None
    """The first ack that is no refusal: the home knows the request."""
    accepted: int | None = None
    in_force: int | None = None
    place: int = 0
    """Nobody had it before: the write that the home handled, as far as can be told, or something later."""

    @property
    def lapse(self) -> bool:
        return self.request is None

    @property
    def dropped(self) -> bool:
        """Whether the last word on it is a refusal. Written again after one, it may yet be handled."""
        return self.handled is None and self.refused is not None and self.refused > self.writes[-1]

    def may_be_told(self, status: Status) -> bool:
        """Whether an ack of this status that names no request can speak of it."""
        match status:
            case Status.REFUSED:
                return not self.lapse
            case Status.ENDED:
                return self.text is None
            case Status.EXPIRED:
                return False
            case _:
                return self.text is not None

    def order(self) -> tuple[int, bool, int]:
        """What a chain is sorted by: of two at one place, the one handled first is first."""
        return self.place, self.handled is None, self.handled or 0

    def describe(self) -> str:
        if self.text is None:
            return f"{'the end of its lease' if self.lapse else 'its end'} (#{self.place})"
        return f"{' '.join(self.text.split())!r} (#{self.place})"


_Steps: TypeAlias = tuple[list[int], list[int]]
"""Where versions were acknowledged, ascending, and the highest index acknowledged up to there."""


class Chain:
    """One subscription, from its first version to its last.

    Which order they have is found as the acks come. The home reads writes in order, some of which may not
    have reached it, and answers in the order in which it handles. So a request answered after another was
    handled from a later write than that one, if there is such a write; and an expiry comes before every
    request that is answered after it, though that may have been written earlier. A request that was answered
    too late and not written again is left where it was written: a home that takes requests in another order
    is not excused.
    """

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self.versions: list[Version] = []
        self.requests: dict[str, Version] = {}
        self._write = -1
        """The last write that the home has handled, as far as can be told."""
        self._since = -1
        """Before this place, the last version handled was not."""
        self._places: list[int] = []
        self._in_force: _Steps = [], []
        self._handled: _Steps = [], []

    def write(self, position: int, request: str, text: str | None, filter_: Filter) -> None:
        known = self.requests.get(request)
        if known is not None:
            known.writes.append(position)
            return
        version = Version([position], filter_, text, request)
        self.requests[request] = version
        self.versions.append(version)

    def lapse(self, position: int) -> None:
        self.versions.append(Version([position], NOTHING, None, None))

    def acked(self, position: int, status: Status, request: str | None) -> bool:
        """Note the ack; False if there is nothing that it could answer."""
        if status is Status.RENEWED:
            # Had the lease been over, the home would have refused: so these were not obeyed.
            self.versions = [each for each in self.versions if not each.lapse or each.handled is not None]
            return True
        # Whichever request it names, an expiry tells that a lease is over.
        expired = status is Status.EXPIRED and self._expired(position)
        if request is not None:
            version = self.requests.get(request)
        else:
            version = next((each for each in reversed(self.versions) if each.may_be_told(status)), None)
        if version is None:
            return expired
        if status is Status.REFUSED:
            version.refused = position
            return True
        # Whatever else the ack says, the home knows the request: after a retry it tells how the
        # subscription stands now, be it by a later one. The first ack of each status counts.
        if version.handled is None:
            self._handle(version, position)
        if status is Status.ACCEPTED and version.accepted is None:
            version.accepted = position
        if status is Status.IN_FORCE and version.in_force is None:
            version.in_force = position
        return True

    def _expired(self, position: int) -> bool:
        """The first lapse of what stood may be the reason, so the subscription may have ended there."""
        lapses = [each for each in self.versions if each.lapse and each.writes[0] > self._write]
        waiting = next((each for each in lapses if each.handled is None), None)
        if waiting is not None:
            self._handle(waiting, position)
        return bool(lapses)

    def _handle(self, version: Version, position: int) -> None:
        version.handled = position
        write = self._next_write(version)
        if write is None:
            version.place = version.writes[0]
            return
        if not version.lapse:
            self._write = write
        version.place = self._since = max(self._since, write)

    def _next_write(self, version: Version) -> int | None:
        """The first write of it that the home can still come to."""
        return next((write for write in version.writes if version.lapse or write > self._write), None)

    def close(self) -> None:
        """All acks are known: bring the versions into their order, and make the bounds quick to find."""
        self.versions = [version for version in self.versions if not version.dropped]
        for version in [each for each in self.versions if each.handled is None]:
            version.place = version.writes[0]
            write = self._next_write(version)
            if not version.lapse and write is not None and max(write, self._since) > version.place:
                # Nothing tells which write was handled, if any was: it may be the first or a later one.
                self.versions.append(replace(version, place=max(write, self._since)))
        self.versions.sort(key=Version.order)
        self._places = [version.place for version in self.versions]
        self._in_force = _highest([version.in_force for version in self.versions])
        self._handled = _highest([version.handled for version in self.versions])

    def in_force(self, position: int) -> int | None:
        """i: the last version that was in force before the position."""
        index = bisect_left(self._in_force[0], position)
        return self._in_force[1][index - 1] if index else None

    def in_force_since(self) -> int | None:
        """Where the first version came into force."""
        return self._in_force[0][0] if self._in_force[0] else None

    def handled(self, position: int) -> int:
        """h: the last version that the home had before the position."""
        index = bisect_left(self._handled[0], position)
        return self._handled[1][index - 1] if index else 0

    def written(self, position: int) -> int:
        """n: the number of versions that were written before the position."""
        return bisect_left(self._places, position)

    def surely(self, first: int, event: Event) -> bool | Rejection:
        """Whether every version wants it that a broker can have had; a rejection if that is unclear."""
        verdict: bool | Rejection = True
        for index in range(first, self.written(event.settled)):
            wants = self.versions[index].filter.wants(event)
            if wants is False:
                return False
            if wants is not True:
                verdict = wants
        return verdict

    def possible(self, event: Event, seen: int) -> Iterator[Version]:
        """The versions by which the home can have decided on the event, if the outcome was seen there."""
        last = self.written(min(event.settled, seen))
        return iter(self.versions[self.handled(event.position) : last])


def _highest(acks: Sequence[int | None]) -> _Steps:
    steps = sorted((position, index) for index, position in enumerate(acks) if position is not None)
    highest: list[int] = []
    for _, index in steps:
        highest.append(max(index, highest[-1]) if highest else index)
    return [position for position, _ in steps], highest
