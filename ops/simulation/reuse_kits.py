"""What the brokers of `reuse_model.py` match with, and what that takes.

A broker asks for all its own subscriptions that match (*here*); for all subscriptions elsewhere that match,
as lookup reuse does; and for the neighbours behind whom one matches (*hops*), as whoever matches everywhere
does.

A *live* kit has a matching as a broker makes it, asked event by event, and timed. The index of what is
elsewhere is over all homes, and each broker leaves out what is its own.

A *charged* kit (`reuse_charging.py`) has several indexes side by side, that have matched everything before.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import process_time_ns
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from branchline.ops.simulation.reuse_world import World
from branchline.routing.event import Event
from branchline.routing.methods.naming import Methods, make_matching
from branchline.routing.methods.protocols import Interest, Matching
from branchline.routing.prefix.forwarding import Found, Wanted
from branchline.routing.prefix.trees import Trees

ENTRY, HERE, ELSEWHERE, FORWARDING = "entry", "here", "elsewhere", "forwarding"

Costs: TypeAlias = NDArray[np.int64]
"""What a match takes, ns, for each index."""


@dataclass(slots=True)
class Watch:
    """Nanoseconds spent, by what they were spent on."""

    matchings: Sequence[str]
    live: Counter[str] = field(default_factory=Counter)
    charged: dict[str, Costs] = field(default_factory=dict)
    """For each matching."""
    aside: int = 0
    """What is nobody's work."""
    entering: bool = False
    """The event is where it enters: matchings are that of its entry."""

    def spent(self, on: str, since_ns: int) -> None:
        self.live[on] += process_time_ns() - since_ns

    def matched(self, on: str, since_ns: int) -> None:
        self.spent(ENTRY if self.entering else on, since_ns)

    def charge(self, on: str, costs: Costs) -> None:
        """A match took so much, which nobody has seen pass."""
        for name in (ENTRY if self.entering else on, FORWARDING):
            self.charged[name] = self.charged[name] + costs if name in self.charged else costs

    def ns(self, matching: str) -> Counter[str]:
        """All that was spent with a matching."""
        place = self.matchings.index(matching)
        made = Counter(self.live)
        made[FORWARDING] -= self.aside
        for name, costs in self.charged.items():
            made[name] += int(costs[place])
        return made


class Kit(Protocol):
    """The matchings of brokers."""

    matchings: Sequence[str]

    def here(self, name: str, watch: Watch) -> Matching: ...

    def elsewhere(self, name: str, watch: Watch) -> Matching: ...

    def hops(self, name: str, watch: Watch) -> Matching: ...


class Standing:
    """A matching whose interests do not change."""

    def add(self, interest: Interest) -> None:
        raise AssertionError("what is known was known before")

    remove = add


class Timed(Standing):
    """A matching that is timed."""

    def __init__(self, matching: Matching, watch: Watch, on: str) -> None:
        self._matching, self._watch, self._on = matching, watch, on

    def match(self, event: Event, wanted: Wanted | None = None) -> Found:
        started_ns = process_time_ns()
        found = self._matching.match(event, wanted)
        self._watch.matched(self._on, started_ns)
        return found


class LiveKit:
    """A matching as brokers make it."""

    def __init__(self, world: World, matching: str) -> None:
        self.matchings: Sequence[str] = (matching,)
        methods, trees = Methods("rematch", matching), Trees()
        self._here = {name: make_matching(methods, trees) for name in world.names}
        self._each = make_matching(methods, trees)
        self._homes = make_matching(methods, trees)
        for identity, compiled in zip(world.identities, world.compiled, strict=True):
            own = Interest(identity, compiled, identity)
            self._here[identity.home].add(own)
            self._each.add(own)
            self._homes.add(Interest(identity, compiled, identity.home))
        nothing = Event({})
        for ready in (*self._here.values(), self._each, self._homes):
            # What an index does when it is first asked is not part of any event.
            ready.match(nothing)

    def here(self, name: str, watch: Watch) -> Matching:
        return Timed(self._here[name], watch, HERE)

    def elsewhere(self, name: str, watch: Watch) -> Matching:
        return Timed(self._each, watch, ELSEWHERE)

    def hops(self, name: str, watch: Watch) -> Matching:
        return Timed(self._homes, watch, ELSEWHERE)
