"""One content match gives the Forwarding Prefix Tree; all further brokers only follow it.

The match starts at the root and follows every child whose constraint the event satisfies. What it followed,
as child numbers, is the FPT: interest in a path is implied by what lies below it. It is kept as a list in
depth-first order, each entry a level (from 1) and a child number, children in the order of their numbers.

A height limit cuts it: below that level nothing is matched, and where the tree goes on there, all that stands
below may be meant. That finds more, never less.

An event with arrays is matched with each element at each node. That finds all that should be found and
perhaps more, so whoever uses the FPT of such an event checks what it found.

Cost: at each node that is followed, a bisection for each kin of its children that the event has a value for,
and one look at each child that is a word.
"""

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from branchline.routing.event import Event
from branchline.routing.filters import Contains
from branchline.routing.intervals import holds
from branchline.routing.prefix.siblings import Children, Siblings
from branchline.routing.prefix.tree import ROOT, Tree

Entries: TypeAlias = tuple[tuple[int, int], ...]
"""(level, child number), in depth-first order."""


class Matched(NamedTuple):
    """What a content match followed, and whether a height limit kept it from going on."""

    entries: Entries
    cut: bool


def match(tree: Tree, event: Event, height: int | None = None) -> Matched:
    """The FPT of an event in the tree as it is now."""
    entries: list[tuple[int, int]] = []
    cut = False
    pending = [(ROOT, 0)]
    while pending:
        node, level = pending.pop()
        if node != ROOT:
            entries.append((level, tree.number(tree.edge_above(node))))
        children = tree.children(node)
        if not children:
            continue
        if level == height:
            cut = True
            continue
        followed = sorted(satisfied(tree, children, event), key=tree.number, reverse=True)
        pending += [(tree.child(edge), level + 1) for edge in followed]
    return Matched(tuple(entries), cut)


def satisfied(tree: Tree, children: Children, event: Event) -> Iterator[int]:
    """The edges to the children whose constraints the event satisfies, each once."""
    for (path, axis, are_words), siblings in children.items():
        positions = event.positions(path, axis)
        if not positions:
            continue
        if are_words:
            first, *others = positions
            for edge, word in zip(siblings.edges, siblings.starts, strict=True):
                if word in first or (others and any(word in text for text in others)):
                    yield edge
        elif len(positions) == 1:
            yield from _holding(tree, siblings, positions[0])
        else:
            # Several elements may lie in one range.
            yield from {edge for each in positions for edge in _holding(tree, siblings, each)}


def _holding(tree: Tree, siblings: Siblings, position: object) -> list[int]:
    """The one range among siblings, which are disjoint, that holds the position, if one does."""
    place = bisect_right(siblings.starts, (0, position, 0))
    if not place:
        return []
    edge = siblings.edges[place - 1]
    constraint = tree.constraint(tree.child(edge))
    assert not isinstance(constraint, Contains)
    return [edge] if holds(constraint.interval, position) else []


def follow(tree: Tree, entries: Entries, clock: int) -> list[tuple[int, int]] | None:
    """The nodes that an FPT of a version leads to, from the root on, and their levels.

    None if the tree of that version did not have what the FPT names: then it is not an FPT of that version.
    """
    found = [(ROOT, 0)]
    path = [ROOT]
    for level, number in entries:
        del path[level:]
        edge = tree.find(path[-1], number, clock) if len(path) == level else None
        if edge is None:
            return None
        path.append(tree.child(edge))
        found.append((path[-1], level))
    return found
