"""Where a filter goes in a Routing Tree: one descent for those who make nodes and those who must not.

Going down, a filter's first constraint `a` is compared with the node's children of the same kin:

- one equals it: `a` is done with, on below it with the rest;
- one covers it: on below it, `a` kept;
- some partly overlap it, at most one at either end: what they share with `a` goes on below them, clipped to
  them, and what is left of `a` stays beside them. This is a *split*;
- what is then left of `a`, with the rest of the filter, stops here. The children that it covers would move
  below a new node for it.

A filter stops at several nodes because of splits. Where nothing of it is left it has *ended* there: the path
says exactly what that piece of the filter says. Where something is left, the Tree Optimizer makes nodes for
it; a broker, which may not, lets the filter stand there, where it matches more than it should.

Words (`contains`) are never split: a child covers a word if its own is part of it. Of several that do, the
one with the oldest node that does, itself or below it, is taken: so neither a later sibling nor a node that
is put above others changes where a filter goes.

Cost: a bisection a level, times the pieces; `most` bounds the pieces.
"""

from bisect import bisect_left, bisect_right
from typing import NamedTuple, Protocol

from branchline.routing.filters import Contains, Filter, Range
from branchline.routing.intervals import Interval
from branchline.routing.prefix.siblings import Children, Siblings, kin
from branchline.routing.prefix.tree import ROOT, Tree


class Shape(Protocol):
    """A tree as it is now, or as it was at a version."""

    def children(self, node: int) -> Children: ...


class Stop(NamedTuple):
    """Where a piece of a filter stops, what is left of it, and the edges that its next node would adopt."""

    node: int
    left: Filter
    adopted: tuple[int, ...] = ()


def descend(tree: Tree, shape: Shape, filter_: Filter, most: int | None = None) -> list[Stop] | None:
    """Where the filter's pieces stop, in order; None if there are more than `most`."""
    stops: list[Stop] = []
    pending = [(ROOT, filter_)]
    while pending:
        if most is not None and len(stops) + len(pending) > most:
            return None
        node, left = pending.pop()
        siblings = shape.children(node).get(kin(left[0])) if left else None
        if not siblings:
            stops.append(Stop(node, left))
        elif isinstance(left[0], Contains):
            _meet_words(tree, shape, siblings, node, left, stops, pending)
        else:
            _meet_ranges(tree, siblings, node, left, stops, pending)
    return stops


_Pending = list[tuple[int, Filter]]


def _meet_ranges(
    tree: Tree, siblings: Siblings, node: int, left: Filter, stops: list[Stop], pending: _Pending
) -> None:
    first, *others = left
    assert isinstance(first, Range)
    rest = tuple(others)
    low, high = first.interval

    def interval(edge: int) -> Interval:
        return tree.constraint(tree.child(edge))[2]  # type: ignore[return-value]

    # Siblings are disjoint, so of those that start before `low` only the last one may reach beyond it.
    start = bisect_right(siblings.starts, low)
    if start and interval(siblings.edges[start - 1])[1] > low:
        start -= 1
    met = siblings.edges[start : bisect_left(siblings.starts, high, start)]
    if met:
        edge = met[0]
        its_low, its_high = interval(edge)
        if its_low <= low and high <= its_high:
            same = (its_low, its_high) == (low, high)
            pending.append((tree.child(edge), rest if same else left))
            return
        if its_low < low:
            pending.append((tree.child(edge), (first._replace(interval=Interval(low, its_high)), *rest)))
            low = its_high
            met = met[1:]
    if met:
        edge = met[-1]
        its_low, its_high = interval(edge)
        if its_high > high:
            pending.append((tree.child(edge), (first._replace(interval=Interval(its_low, high)), *rest)))
            high = its_low
            met = met[:-1]
    if met and interval(met[0]) == (low, high):
        pending.append((tree.child(met[0]), rest))
    elif low < high:
        stops.append(Stop(node, (first._replace(interval=Interval(low, high)), *rest), tuple(met)))


def _meet_words(
    tree: Tree,
    shape: Shape,
    siblings: Siblings,
    node: int,
    left: Filter,
    stops: list[Stop],
    pending: _Pending,
) -> None:
    first = left[0]
    assert isinstance(first, Contains)
    word = first.word
    place = siblings.place(word)
    if place is not None:
        pending.append((tree.child(siblings.edges[place]), left[1:]))
        return
    covering = [siblings.edges[place] for place in siblings.parts_of(word)]
    if covering:
        taken = min(covering, key=lambda edge: _oldest_covering(tree, shape, edge, first))
        pending.append((tree.child(taken), left))
        return
    words = zip(siblings.edges, siblings.starts, strict=True)
    covered = tuple(edge for edge, its in words if word in its)
    stops.append(Stop(node, left, covered))


def _oldest_covering(tree: Tree, shape: Shape, edge: int, first: Contains) -> int:
    """The lowest of the nodes, from the edge's on down, whose words are part of the word.

    A filter's path runs through that node, so it lives for as long as the filter is in the tree; whatever is
    put above it or beside it later has a higher number.
    """
    oldest = tree.child(edge)
    pending = [oldest]
    while pending:
        below = shape.children(pending.pop()).get(kin(first))
        if below is None:
            continue
        covering = [tree.child(below.edges[place]) for place in below.parts_of(first.word)]
        oldest = min([oldest, *covering])
        pending += covering
    return oldest
