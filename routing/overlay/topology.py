"""The topology: one numbered, whole graph of brokers and links, and the routes that follow from it.

A topology is told as a whole. Of two, the one with the higher (number, digest) wins, so all brokers end with
the same one, in whatever order they hear of them. A broker's number is given once and stands for it in every
scope; neither it nor the name is ever used again, so those of retired brokers stay listed.

Links have costs of at least 1 and may form cycles. Every broker sends along shortest paths, so under one
topology the distance to a home falls with each hop, whoever else is on the way. A broker that is *leaving*
keeps its links, but no path runs through it.

Where not every broker knows every subscription, all of them go along one *spanning tree*: what was told on a
link then stands for all homes behind it, whoever asks. It has the least cost, ties by the brokers' numbers; a
broker that is leaving is at one of its ends.

Cost: routes of one broker are one search for shortest paths, or one spanning tree and a walk along it:
O(links * log brokers), once for each topology.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from heapq import heappop, heappush
from operator import attrgetter
from typing import NamedTuple

FIRST = 1
"""The number of the first topology; whoever is in it does not have to be told what came before."""


BROKER_NUMBER_MAX = 16_383
"""Brokers that there ever were: a scope has a bit for each."""
TOPOLOGY_NUMBER_MAX = 2**53
LINK_COST_MAX = 2**31
"""Topologies and costs: numbers that every reader of JSON keeps as they are."""


class Member(NamedTuple):
    """A broker in a topology."""

    name: str
    number: int
    """Its bit in every scope."""
    cluster: str = "main"
    since: int = FIRST
    """The number of the first topology that it was in."""
    leaving: bool = False


class Link(NamedTuple):
    """Two brokers that send each other what they know and what passes; the lesser name is first."""

    one: str
    other: str
    cost: int = 1


def link(one: str, other: str, cost: int = 1) -> Link:
    """The link between two brokers, whichever is named first."""
    return Link(min(one, other), max(one, other), cost)


@dataclass(frozen=True, slots=True)
class Topology:
    """All brokers and links at one time."""

    number: int
    members: tuple[Member, ...]
    """By their numbers."""
    links: tuple[Link, ...] = ()
    retired: tuple[tuple[str, int], ...] = ()
    """Names and numbers that were used and never will be again."""
    order: tuple[int, int] = field(init=False, repr=False, compare=False)
    """The number and a digest of the rest: of two topologies the one with the higher order wins."""

    def __post_init__(self) -> None:
        spelled = repr((self.members, self.links, self.retired)).encode()
        digest = int.from_bytes(hashlib.blake2b(spelled, digest_size=8).digest(), "big")
        object.__setattr__(self, "order", (self.number, digest))

    def __hash__(self) -> int:
        return hash(self.order)

    def member(self, name: str) -> Member | None:
        return next((member for member in self.members if member.name == name), None)

    def neighbours(self, name: str) -> tuple[str, ...]:
        """The brokers linked with this one, by their numbers."""
        linked = {each.other if each.one == name else each.one for each in self.links if name in each[:2]}
        return tuple(member.name for member in self.members if member.name in linked)

    # The topologies that may follow

    def joined(self, name: str, links: Mapping[str, int], cluster: str = "main") -> "Topology":
        """The next topology, with a new broker that is linked with these, at these costs."""
        used = [member.number for member in self.members] + [number for _, number in self.retired]
        newcomer = Member(name, max(used, default=-1) + 1, cluster, self.number + 1)
        made = [link(name, other, cost) for other, cost in links.items()]
        return self._next(members=(*self.members, newcomer), links=_sorted((*self.links, *made)))

    def left(self, name: str) -> "Topology":
        """The next topology, in which a broker is leaving."""
        members = tuple(
            member._replace(leaving=True) if member.name == name else member for member in self.members
        )
        return self._next(members=members)

    def without(self, name: str) -> "Topology":
        """The next topology, without a broker."""
        return self._next(
            members=tuple(member for member in self.members if member.name != name),
            links=tuple(each for each in self.links if name not in each[:2]),
            retired=(
                *self.retired,
                *((member.name, member.number) for member in self.members if member.name == name),
            ),
        )

    def linked(self, one: str, other: str, cost: int = 1) -> "Topology":
        """The next topology, with a link at this cost."""
        kept = self.unlinked(one, other).links
        return self._next(links=_sorted((*kept, link(one, other, cost))))

    def unlinked(self, one: str, other: str) -> "Topology":
        """The next topology, without a link."""
        ends = link(one, other)[:2]
        return self._next(links=tuple(each for each in self.links if each[:2] != ends))

    def _next(self, **changes: object) -> "Topology":
        return replace(self, number=self.number + 1, **changes)  # type: ignore[arg-type]

    def describe(self) -> str:
        """The topology for people: a line for each broker with its links."""
        lines = [f"topology {self.number}"]
        for member in self.members:
            costs = {
                each.other if each.one == member.name else each.one: each.cost
                for each in self.links
                if member.name in each[:2]
            }
            links = ", ".join(f"{name} ({cost})" for name, cost in sorted(costs.items())) or "nobody"
            leaving = ", leaving" if member.leaving else ""
            lines.append(f"  {member.number} {member.name} on {member.cluster}{leaving}: linked with {links}")
        if self.retired:
            lines.append(f"  retired: {', '.join(name for name, _ in self.retired)}")
        return "\n".join(lines)


def founded(names: Iterable[str], links: Iterable[Link] = (), cluster: str = "main") -> Topology:
    """The first topology, with numbers in the order of the names."""
    members = tuple(Member(name, number, cluster) for number, name in enumerate(names))
    return Topology(FIRST, members, _sorted(links))


def _sorted(links: Iterable[Link]) -> tuple[Link, ...]:
    return tuple(sorted(links))


def fault(topology: Topology, before: Topology | None = None) -> str | None:
    """Why this cannot be the topology, or cannot follow the one before; None if it can."""
    names = [member.name for member in topology.members]
    numbers = [member.number for member in topology.members]
    retired_names = {name for name, _ in topology.retired}
    retired_numbers = {number for _, number in topology.retired}
    if not names:
        return "it has no broker"
    if not FIRST <= topology.number <= TOPOLOGY_NUMBER_MAX:
        return f"its number is {topology.number}, and must be from {FIRST} to {TOPOLOGY_NUMBER_MAX}"
    if max(numbers) > BROKER_NUMBER_MAX:
        return f"a broker has the number {max(numbers)}; the highest is {BROKER_NUMBER_MAX}"
    if len(set(names)) < len(names) or retired_names & set(names):
        return "a name is used twice, or is that of a retired broker"
    if len(set(numbers)) < len(numbers) or retired_numbers & set(numbers) or min(numbers) < 0:
        return "a number is used twice, or is that of a retired broker"
    if numbers != sorted(numbers):
        return "its brokers are not in the order of their numbers"
    ends = [each[:2] for each in topology.links]
    if len(set(ends)) < len(ends) or list(topology.links) != sorted(topology.links):
        return "a link is there twice, or the links are not sorted"
    for one, other, cost in topology.links:
        if one not in names or other not in names or one >= other:
            return f"the link between {one!r} and {other!r} is not one of two of its brokers"
        if not 1 <= cost <= LINK_COST_MAX:
            return (
                f"the link between {one!r} and {other!r} costs {cost}; it must be from 1 to {LINK_COST_MAX}"
            )
    unreached = _unreached(topology)
    if unreached is not None:
        return unreached
    return None if before is None else _fault_after(topology, before)


def _unreached(topology: Topology) -> str | None:
    staying = [member.name for member in topology.members if not member.leaving]
    if not staying:
        return "all of its brokers are leaving"
    reached = set(routes(topology, staying[0]).hops) | {staying[0]}
    for member in topology.members:
        if member.name not in reached:
            return f"no path that avoids leaving brokers leads from {staying[0]!r} to {member.name!r}"
    return None


def _fault_after(topology: Topology, before: Topology) -> str | None:
    if topology.number <= before.number:
        return f"its number is {topology.number}, and {before.number} is known already"
    after = {member.name: member for member in topology.members}
    gone = set(topology.retired)
    if not set(before.retired) <= gone:
        return "a retired broker is no longer listed"
    for member in before.members:
        now = after.get(member.name)
        if now is None and (not member.leaving or (member.name, member.number) not in gone):
            return f"{member.name!r} may only go after it was leaving, and must then be listed as retired"
        if now is not None and now[:4] != member[:4]:
            return f"{member.name!r} cannot get another number, cluster or beginning"
        if now is not None and member.leaving and not now.leaving:
            return f"{member.name!r} is leaving and cannot stay"
    known = {member.name for member in before.members}
    taken = [member.number for member in before.members] + [number for _, number in before.retired]
    for member in topology.members:
        is_new = member.name not in known
        if is_new and not (before.number < member.since <= topology.number and member.number > max(taken)):
            return f"{member.name!r} is new: it needs a number above all others and since {topology.number}"
    return None


@dataclass(frozen=True, slots=True)
class Routes:
    """Where one broker sends what is for another, under one topology."""

    hops: Mapping[str, str]
    """For each other home, the neighbour on a shortest path to it."""
    numbers: Mapping[str, int]
    """All homes and their bits."""
    behind: Mapping[str, int]
    """For each neighbour that is a hop, the homes behind it as a bit set; by the neighbours' numbers."""
    everybody: int
    """All homes as a bit set."""


@lru_cache(maxsize=1_000)
def routes(topology: Topology, name: str) -> Routes:
    """The routes of a broker."""
    linked: dict[str, list[tuple[str, int]]] = {}
    for one, other, cost in topology.links:
        linked.setdefault(one, []).append((other, cost))
        linked.setdefault(other, []).append((one, cost))
    members = {member.name: member for member in topology.members}
    hops: dict[str, str] = {}
    pending: list[tuple[int, int, str, str]] = []
    for other, cost in linked.get(name, ()):
        heappush(pending, (cost, members[other].number, other, other))
    while pending:
        distance, hop_number, hop, there = heappop(pending)
        if there in hops or there == name:
            continue
        hops[there] = hop
        if not members[there].leaving:
            for other, cost in linked[there]:
                heappush(pending, (distance + cost, hop_number, hop, other))
    return _routes(topology, hops)


@lru_cache(maxsize=1_000)
def tree_routes(topology: Topology, name: str) -> Routes:
    """The routes of a broker along the spanning tree."""
    linked = spanning_tree(topology)
    hops: dict[str, str] = {}
    pending = [(other, other) for other in linked.get(name, ())]
    while pending:
        there, hop = pending.pop()
        hops[there] = hop
        pending += [(other, hop) for other in linked[there] if other != name and other not in hops]
    return _routes(topology, hops)


@lru_cache(maxsize=100)
def spanning_tree(topology: Topology) -> Mapping[str, tuple[str, ...]]:
    """For each broker its neighbours in the spanning tree of least cost."""
    numbers = {member.name: member.number for member in topology.members}
    leaving = {member.name for member in topology.members if member.leaving}

    def order(each: Link) -> tuple[bool, int, list[int]]:
        # Who is leaving comes last, when all who stay are linked.
        return bool(leaving & set(each[:2])), each.cost, sorted((numbers[each.one], numbers[each.other]))

    group = {name: name for name in numbers}

    def root(name: str) -> str:
        while group[name] != name:
            name = group[name]
        return name

    chosen: dict[str, list[str]] = {name: [] for name in numbers}
    for each in sorted(topology.links, key=order):
        one, other = each[:2]
        passes = (one in leaving and bool(chosen[one])) or (other in leaving and bool(chosen[other]))
        if root(one) != root(other) and not passes and not {one, other} <= leaving:
            group[root(one)] = root(other)
            chosen[one].append(other)
            chosen[other].append(one)
    return {name: tuple(sorted(others, key=numbers.__getitem__)) for name, others in chosen.items()}


def _routes(topology: Topology, hops: Mapping[str, str]) -> Routes:
    members = sorted(topology.members, key=attrgetter("number"))
    numbers = {member.name: member.number for member in members}
    behind = {
        hop: sum(1 << numbers[home] for home, via in hops.items() if via == hop)
        for hop in sorted(set(hops.values()), key=numbers.__getitem__)
    }
    return Routes(hops, numbers, behind, sum(1 << number for number in numbers.values()))
