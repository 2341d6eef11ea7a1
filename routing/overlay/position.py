"""Where a broker stands in the overlay: its topology, its neighbours and routes, and whether it is joining.

A broker, its home and its divider share one position, so that they never go by different topologies. Facts
alone change it.

Cost: a new topology is one search for shortest paths; the hops of a scope are found once, O(brokers), and
remembered until the topology changes.
"""

from collections.abc import Mapping

from branchline.routing.overlay.topology import FIRST, Member, Routes, Topology, routes

_SCOPES_REMEMBERED = 1024


class Position:
    """One broker's place in the newest topology that it has."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.topology: Topology | None = None
        self.routes = Routes({}, {}, {}, 0)
        self.joining = False
        self._hops: dict[int, Mapping[str, str]] = {}

    def take(self, topology: Topology) -> None:
        """The topology is this one now. Who was not in the one before and is in this one joins by it."""
        member = topology.member(self.name)
        if member is not None and self.member is None:
            self.joining = member.since > FIRST
        self.topology = topology
        self.routes = routes(topology, self.name)
        self._hops = {self.routes.everybody: self.routes.hops}

    @property
    def member(self) -> Member | None:
        """The broker as the topology has it; None if it is not in there, or there is none."""
        return self.topology.member(self.name) if self.topology is not None else None

    @property
    def neighbours(self) -> tuple[str, ...]:
        return self.topology.neighbours(self.name) if self.topology is not None else ()

    @property
    def is_retired(self) -> bool:
        return self.topology is not None and any(name == self.name for name, _ in self.topology.retired)

    def hops_of(self, scope: int) -> Mapping[str, str]:
        """The homes of a scope and their hops."""
        known = self._hops.get(scope)
        if known is None:
            numbers = self.routes.numbers
            known = {home: hop for home, hop in self.routes.hops.items() if scope >> numbers[home] & 1}
            if len(self._hops) >= _SCOPES_REMEMBERED:
                self._hops = {}
            self._hops[scope] = known
        return known
