"""A topology as a picture in the terminal: a tree of its links, and the further links by name.

    main
    ├─1─ b2
    │  ├─1─ b4  leaving
    │  └─5─ b5  on virginia
    └─1─ b3
    further links:
      b4 ─2─ b5

The tree has the shortest paths from the broker in the middle, the one for which it is lowest; as no path runs
through a broker that is leaving, such a broker has nothing below it. Numbers on branches are costs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush

from branchline.routing.overlay.topology import Link, Topology, link

MIDDLE_SOUGHT_MOST = 100
"""Brokers up to which the middle is looked for, by a search from each; beyond, the first one is taken."""


@dataclass(slots=True)
class Spanning:
    """A tree of shortest paths over all brokers, and the links that are not in it."""

    root: str
    parents: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Of each broker but the root: its parent, and what the link with it costs."""
    depths: dict[str, int] = field(default_factory=dict)
    """How many links each broker is away from the root."""
    further: list[Link] = field(default_factory=list)

    def children(self, topology: Topology) -> dict[str, list[str]]:
        """What hangs below each broker, by their numbers."""
        below: dict[str, list[str]] = {member.name: [] for member in topology.members}
        for member in topology.members:
            if member.name in self.parents:
                below[self.parents[member.name][0]].append(member.name)
        return below


def spanning(topology: Topology) -> Spanning:
    """The lowest tree of shortest paths; of several, that of the lowest number."""
    staying = [member.name for member in topology.members if not member.leaving]
    if len(staying) > MIDDLE_SOUGHT_MOST:
        return _from(topology, staying[0])
    return min((_from(topology, name) for name in staying), key=lambda tree: max(tree.depths.values()))


def _from(topology: Topology, root: str) -> Spanning:
    members = {member.name: member for member in topology.members}
    linked: dict[str, list[tuple[str, int]]] = {name: [] for name in members}
    for one, other, cost in topology.links:
        linked[one].append((other, cost))
        linked[other].append((one, cost))
    tree = Spanning(root)
    # By distance, then by the fewest links, then by numbers: the same topology is always drawn alike.
    pending: list[tuple[int, int, int, int, str, str, int]] = [(0, 0, -1, 0, "", root, 0)]
    while pending:
        distance, depth, _, _, parent, there, cost = heappop(pending)
        if there in tree.depths:
            continue
        tree.depths[there] = depth
        if parent:
            tree.parents[there] = (parent, cost)
        if members[there].leaving:
            continue
        for other, more in linked[there]:
            numbers = (members[there].number, members[other].number)
            heappush(pending, (distance + more, depth + 1, *numbers, there, other, more))
    used = {link(child, parent)[:2] for child, (parent, _) in tree.parents.items()}
    tree.further = [each for each in topology.links if each[:2] not in used]
    return tree


def draw(topology: Topology, notes: Mapping[str, str] | None = None) -> str:
    """The picture; `notes` say more of some brokers. The topology must be one that can stand."""
    tree = spanning(topology)
    below = tree.children(topology)
    members = {member.name: member for member in topology.members}
    several = len({member.cluster for member in topology.members}) > 1
    lines: list[str] = []
    pending = [(tree.root, "", "")]
    while pending:
        name, branch, indent = pending.pop()
        member = members[name]
        said = [
            f"on {member.cluster}" if several else "",
            "leaving" if member.leaving else "",
            (notes or {}).get(name, ""),
        ]
        told = ", ".join(each for each in said if each)
        lines.append(f"{branch}{name}{f'  {told}' if told else ''}")
        children = below[name]
        for child in reversed(children):
            corner, under = ("└", "   ") if child == children[-1] else ("├", "│  ")
            cost = tree.parents[child][1]
            pending.append((child, f"{indent}{corner}─{cost}─ ", indent + under))
    if tree.further:
        lines.append("further links:")
        lines += [f"  {one} ─{cost}─ {other}" for one, other, cost in tree.further]
    return "\n".join(lines)
