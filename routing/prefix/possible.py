"""Whether what is told of a tree can have been told: bytes may be whole, and yet make no tree.

A checksum and a digest say that nothing was damaged on the way, and anybody can work them out. What they do
not say is that a constraint compares with values of its dimension, that what hangs in a tree hangs together,
or that siblings are disjoint. A tree in which that is not so would fail whoever matches an event with it, or
miss one. So constraints are looked at when they are read (`telling.py`), and edges before they are hung
(`vocabulary.py`).

Cost: a few comparisons for each constraint; for each edge a bisection among its siblings, and the way up to
what was known before.
"""

import itertools
import math
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from branchline.routing.addresses import Address
from branchline.routing.dimensions import NONE, Axis
from branchline.routing.filters import Constraint, Contains, Filter
from branchline.routing.instants import Instant
from branchline.routing.intervals import Cut
from branchline.routing.limits import NUMBER_MAX_CHARS
from branchline.routing.prefix.edges import ROOT, Edge
from branchline.routing.prefix.siblings import Kin, Siblings, kin, start
from branchline.routing.prefix.tree import Tree
from branchline.routing.values import Kind

NODES_BEYOND = 1_000_000
"""Numbers of nodes that were made and never told. Each takes room, since nodes are columns of an array; a
life of the Tree Optimizer ends long before."""

_RANKS = {Axis.PRESENCE: int(Kind.OBJECT), Axis.BOOLEAN: 1}
_TEXTS = frozenset({Axis.TEXT, Axis.REVERSED, Axis.FOLDED, Axis.FOLDED_REVERSED})
_WORDS = frozenset({Axis.TEXT, Axis.FOLDED})
_NUMBERS_END = 10**NUMBER_MAX_CHARS


def is_constraint(constraint: Constraint) -> bool:
    """Whether a filter can have the constraint: its values are of its axis, and some value satisfies it."""
    path, axis, _ = constraint
    if not path or not all(map(_is_text, path)):
        return False
    if isinstance(constraint, Contains):
        return axis in _WORDS and bool(constraint.word) and _is_text(constraint.word)
    low, high = constraint.interval
    return _is_cut(axis, low) and _is_cut(axis, high) and low < high


def is_filter(filter_: Filter) -> bool:
    """Whether the constraints can be a filter beside the tree, which says something of each dimension
    once.
    """
    kins = [(kin(each), start(each)) if type(each) is Contains else (kin(each), None) for each in filter_]
    return bool(filter_) and len(set(kins)) == len(kins)


def _is_cut(axis: Axis, cut: Cut) -> bool:
    return len(cut) == 1 or _is_value(axis, cut[1])


def _is_value(axis: Axis, value: Any) -> bool:
    if axis in _TEXTS:
        return type(value) is str and _is_text(value)
    if axis in _RANKS:
        return type(value) is int and 0 <= value <= _RANKS[axis] + 1
    if axis is Axis.NUMBER:
        if type(value) is float:
            return math.isfinite(value)
        return isinstance(value, int) and -_NUMBERS_END < value < _NUMBERS_END
    if value == NONE:
        return True
    if axis is Axis.INSTANT:
        return type(value) is Instant and abs(value.seconds) < 2**53 and _is_fraction(value.fraction)
    bits = {4: 32, 6: 128}
    return type(value) is Address and 0 <= value.number < 1 << bits.get(value.version, 0)


def _is_fraction(digits: str) -> bool:
    return not digits or (digits.isascii() and digits.isdecimal())


def _is_text(text: str) -> bool:
    """Whether it has no half of a surrogate pair, which no text that we read has."""
    return text.isascii() or not any("\ud800" <= each <= "\udfff" for each in text)


def can_hang(tree: Tree, born: Collection[Edge], gone: Collection[int]) -> bool:
    """Whether these edges can be hung into the tree once those, given by their rows, are taken away."""
    leaving = set(gone)
    moved = {tree.child(edge) for edge in leaving}
    above = {edge.child: edge.parent for edge in born}
    if len(above) < len(born) or ROOT in above:
        return False
    end = tree.size() + len(born) + NODES_BEYOND
    if any(not _is_node(tree, edge, moved, end) for edge in born):
        return False
    if not _all_reach_root(tree, above, moved):
        return False
    # What hung below a node that goes for good must go too, or hang elsewhere.
    for node in moved - above.keys():
        below = (edge for siblings in tree.children(node).values() for edge in siblings)
        if any(edge not in leaving for edge in below):
            return False
    return _are_disjoint(tree, born, leaving)


def _is_node(tree: Tree, edge: Edge, moved: Collection[int], end: int) -> bool:
    known = tree.known(edge.child)
    if edge.constraint is not None:
        return known is None and edge.child < end
    return known is not None and (edge.child in moved or not tree.is_alive(edge.child))


def _all_reach_root(tree: Tree, above: Mapping[int, int], moved: Collection[int]) -> bool:
    """Whether the way up from every node that is hung ends at the root."""
    sure = {ROOT}
    for node in above:
        way: dict[int, None] = {}
        while node not in sure:
            if node in way:
                return False
            way[node] = None
            if node in above:
                node = above[node]
            elif tree.known(node) is not None and tree.is_alive(node) and node not in moved:
                node = tree.parent(node)
            else:
                return False
        sure.update(way)
    return True


def _are_disjoint(tree: Tree, born: Iterable[Edge], leaving: Collection[int]) -> bool:
    """Whether of all children of a node that are compared with each other, a value satisfies one at most."""
    left = {tree.edge(edge).parent for edge in leaving}
    made: dict[tuple[int, Kin], list[Constraint]] = {}
    for edge in born:
        constraint = tree.known(edge.child) if edge.constraint is None else edge.constraint
        assert constraint is not None, "whose constraint is not known was refused"
        made.setdefault((edge.parent, kin(constraint)), []).append(constraint)
    for (parent, mine), constraints in made.items():
        in_order = sorted(constraints, key=start)
        if any(_meet(one, other) for one, other in itertools.pairwise(in_order)):
            return False
        edges, starts = _staying(tree.children(parent).get(mine), leaving, parent in left)
        for constraint in in_order:
            place = bisect_left(starts, start(constraint))
            for near in edges[max(place - 1, 0) : place + 1]:
                if _meet(tree.constraint(tree.child(near)), constraint):
                    return False
    return True


def _staying(
    siblings: Siblings | None, leaving: Collection[int], some_leave: bool
) -> tuple[Sequence[int], Sequence[Any]]:
    """The edges that stay, and where they start."""
    if siblings is None or not some_leave:
        return ((), ()) if siblings is None else (siblings.edges, siblings.starts)  # type: ignore[return-value]
    both = [each for each in zip(siblings.edges, siblings.starts, strict=True) if each[0] not in leaving]
    return [edge for edge, _ in both], [start for _, start in both]


def _meet(one: Constraint, other: Constraint) -> bool:
    if isinstance(one, Contains) or isinstance(other, Contains):
        return one == other
    return one.interval.low < other.interval.high and other.interval.low < one.interval.high
