"""Subscriptions that are pending: accepted by their home, and not yet reported by every broker.

Theory of operation. A subscription is *pending* until every broker of the home's topology has reported that
it has it under that same topology: so nobody enters events who does not know of it, or who does not yet know
the home. Then it is in force. A report under another topology is remembered, but counts only once the home
has that one too; when the topology changes, the broker tells again what is pending, and it is reported anew.

Invariant: whatever is in here waits for somebody. Each method that may end the waiting returns what is in
force by it, and has forgotten that.

Cost: a report is O(what it reports * brokers).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from branchline.routing.control import Identity, Number
from branchline.routing.dissemination.telling import Marks
from branchline.routing.overlay.letters import Report
from branchline.routing.overlay.position import Position


@dataclass(frozen=True, slots=True)
class Awaited:
    """A subscription waits for the reports of all brokers; then these requests are answered."""

    identity: Identity
    number: Number
    requests: tuple[str | None, ...]
    marks: Marks | None = None
    """Where filters go along a tree: what neighbours must have settled; None as long as that is not known."""
    after: int = 0
    """The ordinal up to which filters must be placed before that is known."""


@dataclass(slots=True)
class _Waiting:
    awaited: Awaited
    reported: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Who has reported it, and under which topology."""


class Pending:
    """What a home waits for, in the order in which it was asked for."""

    def __init__(self, position: Position) -> None:
        self._position = position
        self._waiting: dict[Identity, _Waiting] = {}

    def await_(self, awaited: Awaited) -> list[Awaited]:
        """Wait for reports of this; it, if there is nobody to wait for."""
        waiting = self._waiting.get(awaited.identity)
        if waiting is None or waiting.awaited.number != awaited.number:
            self._waiting[awaited.identity] = _Waiting(awaited)
        else:
            waiting.awaited = awaited
        return self._complete([awaited.identity])

    def hear(self, report: Report) -> list[Awaited]:
        """Somebody has what it reports; what is in force by that."""
        heard = []
        for identity, number in report.has:
            waiting = self._waiting.get(identity)
            if waiting is not None and number >= waiting.awaited.number:
                # A report may be overtaken by a later one, along a shorter path.
                known = waiting.reported.get(report.reporter, report.topology)
                waiting.reported[report.reporter] = max(known, report.topology)
                heard.append(identity)
        return self._complete(heard)

    def reconsider(self) -> list[Awaited]:
        """The topology is another one now; what is in force by that."""
        return self._complete(list(self._waiting))

    def drop(self, identity: Identity) -> None:
        """It has ended: nobody waits for it any more."""
        self._waiting.pop(identity, None)

    def find(self, identity: Identity) -> Awaited | None:
        waiting = self._waiting.get(identity)
        return waiting.awaited if waiting is not None else None

    def __len__(self) -> int:
        return len(self._waiting)

    def first(self, most: int) -> list[Identity]:
        """Those that have waited longest, so many at most."""
        return list(islice(self._waiting, most))

    def awaited(self) -> list[Awaited]:
        """All that waits."""
        return [waiting.awaited for waiting in self._waiting.values()]

    def waits_for(self, identity: Identity) -> list[str]:
        """The brokers whose reports are missing."""
        waiting, topology = self._waiting.get(identity), self._position.topology
        if waiting is None or topology is None:
            return []
        others = (member.name for member in topology.members if member.name != self._position.name)
        return [name for name in others if waiting.reported.get(name) != topology.order]

    def reports(self) -> Iterator[Report]:
        """Reports that say what was reported so far: what a snapshot holds."""
        for identity, waiting in self._waiting.items():
            for reporter, topology in waiting.reported.items():
                has = ((identity, waiting.awaited.number),)
                yield Report(self._position.name, reporter, topology, has)

    def _complete(self, identities: Iterable[Identity]) -> list[Awaited]:
        done = [identity for identity in identities if not self.waits_for(identity)]
        return [self._waiting.pop(identity).awaited for identity in dict.fromkeys(done)]
