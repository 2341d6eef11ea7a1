"""Subscription tree pruning: trees made simpler, so that they hold for more events and never for fewer.

Theory of operation. A *pruning* takes one child of an AND away, a predicate or all that stands below. The
tree then holds wherever it did before. A child of an OR is never taken: it would hold for less. A tree in
which no AND has two children left cannot be pruned any more.

Of all prunings of all trees the one with the smallest degradation (`selectivity.py`) comes first, of several
the one of the first tree, and of its prunings the one furthest left. Trees have nothing to do with each
other, so each has its best pruning in a heap, by degradation; when one has come up and was done, the next
best of the same tree takes its place. Shares do not change meanwhile, so nothing in the heap is ever stale:
whoever has other shares begins anew with whole trees.

How far it goes is the *target*: as many leaves as should go (memory: each is an association), as much as
should be saved of the leaves that an event fulfils (time: that is what matching counts), and the largest
degradation that is accepted (precision). What comes first ends it.

All of it is done on flat arrays (`forest.py`). A tree's selectivity is worked out in one pass from its last
node to its first. Whoever has a forest goes on with flags of what is gone (`gone`), and makes no trees again;
`apply` makes them.

Cost: of a pruning O(log trees), and for each child of an AND in the tree one pass over its nodes: about a
microsecond for a tree of ten leaves.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from branchline.routing.boolean.forest import AND, LEAF, OR, Flags, Forest, Ints, Longs, Nodes, forest_of
from branchline.routing.boolean.selectivity import Share
from branchline.routing.boolean.trees import AllOf, Node, OneOf, conjunction, disjunction
from branchline.routing.compiled.freshness import fresh
from branchline.routing.compiled.kernels import kernel

Floats = NDArray[np.float64]


class Target(NamedTuple):
    """How far trees are pruned; each is a share, and that nothing is said is 1."""

    memory: float = 1.0
    """Of all leaves those that should go."""
    time: float = 1.0
    """Of all leaves that events are expected to fulfil those that should go."""
    precision: float = 1.0
    """The largest degradation of a pruning that is done."""


class _Nodes(NamedTuple):
    """A forest while it is pruned; nodes are numbered through all trees."""

    first: Longs
    kind: NDArray[np.int8]
    parent: Ints
    end: Ints
    share: Floats
    """Of leaves."""
    gone: Flags
    children: Ints
    """How many of its children each node still has."""
    least: Floats
    likely: Floats
    largest: Floats
    """While a selectivity is worked out."""


@dataclass(frozen=True, slots=True)
class Prunings:
    """What was pruned, in order."""

    tree: Ints
    node: Ints
    """The node that is taken away, by its number in its tree."""
    degradation: Floats
    leaves: Ints
    """How many leaves go with it."""

    def __len__(self) -> int:
        return len(self.tree)


EVERYTHING = Target()
"""All prunings that there are."""


def prunings(trees: Sequence[Node], share: Share, target: Target = EVERYTHING) -> Prunings:
    """The prunings of these trees up to the target, smallest degradation first."""
    forest = forest_of(trees)
    return prunings_of(forest, np.array([share(each) for each in forest.predicates], np.float64), target)


def prunings_of(forest: Forest, shares: Floats, target: Target = EVERYTHING) -> Prunings:
    """The same of a forest, of which each predicate has this share."""
    nodes = _begun(forest.nodes, shares)
    most = len(nodes.kind)
    tree, node, leaves = np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.int32)
    by = np.empty(most, np.float64)
    count = _prune(nodes, target.memory, target.time, target.precision, tree, node, by, leaves)
    return Prunings(tree[:count], node[:count], by[:count], leaves[:count])


def gone(forest: Forest, done: Prunings, count: int | None = None) -> Flags:
    """For each node whether it is gone after all of these prunings, or after the first ones."""
    flags = np.zeros(len(forest.nodes.kind), np.bool_)
    _flag(forest.nodes, done.tree[:count], done.node[:count], flags)
    return flags


def pruned(tree: Node, nodes: Iterable[int]) -> Node:
    """The tree without these nodes, each a child of an AND that keeps another one."""
    gone = set(nodes)
    if not gone:
        return tree
    place = -1

    def kept(node: Node) -> Node:
        # Bounded by the depth of filters, as wherever trees are walked.
        nonlocal place
        place += 1
        if not isinstance(node, AllOf | OneOf):
            return node
        parts = []
        for part in node.parts:
            goes = place + 1 in gone
            made = kept(part)
            if not goes:
                parts.append(made)
        assert parts, "an AND keeps a child"
        return (conjunction if isinstance(node, AllOf) else disjunction)(parts)

    return kept(tree)


def apply(trees: Sequence[Node], done: Prunings, count: int | None = None) -> list[Node]:
    """The trees after all of these prunings, or after the first ones."""
    gone: dict[int, list[int]] = {}
    for tree, node in zip(done.tree[:count].tolist(), done.node[:count].tolist(), strict=True):
        gone.setdefault(tree, []).append(node)
    made = list(trees)
    for tree, nodes in gone.items():
        made[tree] = pruned(made[tree], nodes)
    return made


def _begun(nodes: Nodes, shares: Floats) -> _Nodes:
    """The forest with everything in it."""
    size, start = len(nodes.kind), nodes.start
    parent = np.where(nodes.parent < 0, -1, nodes.parent + start).astype(np.int32)
    # Where a node has no predicate, the share that stands at the end is taken.
    return _Nodes(
        nodes.first,
        nodes.kind,
        parent,
        (nodes.end + start).astype(np.int32),
        np.append(shares, 0.0)[nodes.predicate],
        np.zeros(size, np.bool_),
        np.bincount(parent[parent >= 0], minlength=size).astype(np.int32),
        *(np.zeros(size, np.float64) for _ in range(3)),
    )


@fresh
@kernel
def _flag(nodes: Nodes, trees: Ints, taken: Ints, flags: Flags) -> None:
    """Flag all that stands at and below the nodes that were taken."""
    for place in range(trees.size):
        start = nodes.first[trees[place]]
        for node in range(taken[place], nodes.end[start + taken[place]]):
            flags[start + node] = True


@kernel
def _estimate(nodes: _Nodes, tree: int, without: int) -> None:
    """Work out the selectivity of a tree as if a node were gone; it stands at the root then."""
    first, end = nodes.first[tree], nodes.first[tree + 1]
    for node in range(first, end):
        start = 1.0 if nodes.kind[node] == AND else nodes.share[node]
        nodes.least[node] = nodes.likely[node] = nodes.largest[node] = start
    for node in range(end - 1, first - 1, -1):
        if nodes.kind[node] == AND:
            nodes.least[node] = max(0.0, nodes.least[node])
        elif nodes.kind[node] == OR:
            nodes.largest[node] = min(1.0, nodes.largest[node])
        above = nodes.parent[node]
        if above < 0 or node == without or nodes.gone[node]:
            continue
        least, likely, largest = nodes.least[node], nodes.likely[node], nodes.largest[node]
        if nodes.kind[above] == AND:
            nodes.least[above] += least - 1.0
            nodes.likely[above] *= likely
            nodes.largest[above] = min(nodes.largest[above], largest)
        else:
            nodes.least[above] = max(nodes.least[above], least)
            nodes.likely[above] = nodes.likely[above] + likely - nodes.likely[above] * likely
            nodes.largest[above] += largest


@kernel
def _best(nodes: _Nodes, tree: int) -> tuple[float, int]:
    """The smallest degradation of a pruning of the tree, and which node that is; -1 if there is none."""
    first, end = nodes.first[tree], nodes.first[tree + 1]
    _estimate(nodes, tree, -1)
    least, likely, largest = nodes.least[first], nodes.likely[first], nodes.largest[first]
    smallest, best = np.inf, -1
    for node in range(first + 1, end):
        above = nodes.parent[node]
        if nodes.gone[node] or nodes.kind[above] != AND or nodes.children[above] < 2:
            continue
        _estimate(nodes, tree, node)
        by = max(nodes.least[first] - least, nodes.likely[first] - likely)
        by = max(by, nodes.largest[first] - largest)
        if by < smallest:
            smallest, best = by, node
    return smallest, best


@kernel
def _sift(by: Floats, trees: Ints, size: int, at: int) -> None:
    """Let what stands at a place of the heap sink to where it belongs."""
    mine, tree = by[at], trees[at]
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        other = below + 1
        if other < size and (by[other], trees[other]) < (by[below], trees[below]):
            below = other
        if (mine, tree) <= (by[below], trees[below]):
            break
        by[at], trees[at] = by[below], trees[below]
        at = below
    by[at], trees[at] = mine, tree


@fresh
@kernel
def _prune(
    nodes: _Nodes,
    memory: float,
    time: float,
    precision: float,
    out_tree: Ints,
    out_node: Ints,
    out_by: Floats,
    out_leaves: Ints,
) -> int:
    """Prune until the target is reached or nothing is left to prune; how many prunings that were."""
    count = nodes.first.size - 1
    by, trees = np.empty(count, np.float64), np.empty(count, np.int32)
    best = np.empty(count, np.int32)
    size, leaves, work = 0, 0, 0.0
    for tree in range(count):
        smallest, node = _best(nodes, tree)
        best[tree] = node
        if node >= 0:
            by[size], trees[size] = smallest, tree
            size += 1
        for each in range(nodes.first[tree], nodes.first[tree + 1]):
            if nodes.kind[each] == LEAF:
                leaves += 1
                work += nodes.share[each]
    for at in range(size // 2, -1, -1):
        if at < size:
            _sift(by, trees, size, at)
    done, gone_leaves, gone_work = 0, 0, 0.0
    # That all work should go says nothing: sums of shares are rounded.
    while size and by[0] <= precision and gone_leaves < memory * leaves:
        if time < 1.0 and gone_work >= time * work:
            break
        tree = trees[0]
        node = best[tree]
        taken = 0
        for each in range(node, nodes.end[node]):
            if nodes.kind[each] == LEAF and not nodes.gone[each]:
                taken += 1
                gone_work += nodes.share[each]
            nodes.gone[each] = True
        nodes.children[nodes.parent[node]] -= 1
        gone_leaves += taken
        out_tree[done], out_node[done] = tree, node - nodes.first[tree]
        out_by[done], out_leaves[done] = by[0], taken
        done += 1
        by[0], best[tree] = _best(nodes, tree)
        if best[tree] < 0:
            size -= 1
            by[0], trees[0] = by[size], trees[size]
        _sift(by, trees, size, 0)
    return done
