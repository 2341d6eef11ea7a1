"""Where a broker stands in the overlay: its topology, its neighbours and routes, and whether it is joining.

A broker, its home and its divider share one position, so that they never go by different topologies. Facts
alone change it.

An *address* is whom an interest is kept for elsewhere: a home, reached on a shortest path; or, where events
go along the spanning tree, the neighbour that told of it, who answers for all homes behind it.

Cost: a new topology is one search for shortest paths; the hops of a scope are found once, O(brokers), and
remembered until the topology changes.
"""

from collections.abc import Mapping

from branchline.routing.overlay.topology import FIRST, Member, Routes, Topology, routes, tree_routes

_SCOPES_REMEMBERED = 1024


class Position:
    """One broker's place in the newest topology that it has."""

    def __init__(self, name: str, *, on_tree: bool = False) -> None:
        """With `on_tree`, events and filters go along the spanning tree."""
        self.name = name
        self.on_tree = on_tree
        self.topology: Topology | None = None
        self.routes = Routes({}, {}, {}, 0)
        self.joining = False
        self.addresses: Mapping[str, str] = {}
        """All addresses, and the neighbours through which they are reached."""
        self._hops: dict[int, Mapping[str, str]] = {}

    def take(self, topology: Topology) -> None:
        """The topology is this one now. Who was not in the one before and is in this one joins by it."""
        member = topology.member(self.name)
        if member is not None and self.member is None:
            # On the tree, a neighbour that has told nothing yet is sent everything: nobody need wait.
            self.joining = member.since > FIRST and not self.on_tree
        self.topology = topology
        self.routes = (tree_routes if self.on_tree else routes)(topology, self.name)
        self.addresses = {hop: hop for hop in self.routes.behind} if self.on_tree else self.routes.hops
        self._hops = {self.routes.everybody: self.addresses}

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

    def homes_of(self, address: str) -> int:
        """The homes that an address stands for, as a bit set."""
        return self.routes.behind[address] if self.on_tree else 1 << self.routes.numbers[address]

    def hops_of(self, scope: int) -> Mapping[str, str]:
        """The addresses of a scope and their hops."""
        known = self._hops.get(scope)
        if known is None:
            known = {each: hop for each, hop in self.addresses.items() if scope & self.homes_of(each)}
            if len(self._hops) >= _SCOPES_REMEMBERED:
                self._hops = {}
            self._hops[scope] = known
        return known
