"""The living edges of one part's tree over ranks, laid out for the walk.

An edge leads on if its child's constraint holds. Most constraints are *points*: a value that must be met, or
a word that must be found. All values and words that filters name are numbered in one row, their cells, so an
edge to a point is found by its parent and the cell. Beside each node stand 64 bits, one for each rest of a
cell modulo 64, set if an edge to such a cell is there: nearly all nodes have few children, and nearly all
cells that are not there are seen without looking. At nodes with many, a Bloom filter of all edges says no: it
stays in the cache, where the edges of a large tree do not.

All other constraints are ranges of ranks. Those below one node on one dimension make a *group*: they are
disjoint and sorted, so a rank is found by bisection.

What an edge leads to is one number: its child number, then the child, then whether anything is below it. So
edges sort as their numbers do, and of a leaf nothing is read.

Cost: a slot for each point, 16 bytes for each range, 8 bytes for each group and 16 for each node. Laying out
sorts the ranges; nothing is done in Python for each edge.
"""

from typing import NamedTuple

import numpy as np

from branchline.routing.compiled.bounds import Bounds
from branchline.routing.compiled.kernels import kernel
from branchline.routing.compiled.lookups import Lookup, mixed
from branchline.routing.compiled.names import CHILD_BITS, cells_from
from branchline.routing.compiled.prefixes import CHILD_NUMBER_MAX, Ints, Longs, Words
from branchline.routing.prefix.edges import ALIVE
from branchline.routing.prefix.tree import Tree

_BLOOM_BITS = 8
"""For each edge: one in eight looks is in vain, and the filter of a million edges is a megabyte."""


class Edges(NamedTuple):
    """The living edges of a tree."""

    parent: Longs
    child: Longs
    leads: Longs
    """Child number, child, and whether anything is below it, in one."""


class Branches(NamedTuple):
    """A tree as the walk sees it."""

    nodes: Words
    """Two for each node: the rests of the cells that edges below it ask for, and its first group; the first
    group of one node more at the end."""
    bloom: Words
    """A bit for each hash of a parent and a cell, so many that few edges share one."""
    points: Longs
    """The slots of a `Lookup`: by parent and cell, what the edge leads to."""
    dimension: Ints
    """For each group."""
    range_first: Ints
    """For each group its first range; one more at the end."""
    low: Ints
    high: Ints
    leads: Longs
    """For each range."""
    goes_on: bool
    """Whether anything is below the root."""


def edges_of(tree: Tree) -> Edges:
    columns = tree.columns()
    cells = (cells_from(columns[name], 0) for name in ("parent", "number", "child", "died"))
    parents, numbers, children, died = cells
    lives = died == ALIVE
    assert numbers[lives].max(initial=0) <= CHILD_NUMBER_MAX, "child numbers are given one by one"
    parents, numbers, children = parents[lives], numbers[lives], children[lives]
    goes_on = np.bincount(parents, minlength=tree.size()) > 0
    return Edges(parents, children, (numbers << CHILD_BITS | children) << 1 | goes_on[children])


def branches(edges: Edges, nodes: int, bounds: Bounds, slot: Ints, low: Ints, high: Ints) -> Branches:
    """The edges by what their children's constraints are in ranks: slot, lowest and highest for each edge."""
    is_word = slot >= bounds.dimensions
    is_point = is_word | ((low == high) & (low & 1 == 1))
    first = np.append(bounds.value_first[: bounds.dimensions], bounds.marks.words)
    cell = first[np.minimum(slot, bounds.dimensions)] + np.where(is_word, slot - bounds.dimensions, low >> 1)
    points = Lookup()
    keys = edges.parent[is_point] << CHILD_BITS | cell[is_point]
    points.put(keys, edges.leads[is_point])
    others = np.flatnonzero(~is_point)
    others = others[np.lexsort((low[others], slot[others], edges.parent[others]))]
    parent, dimension = edges.parent[others], slot[others]
    begins = np.ones(len(others), np.bool_)
    begins[1:] = (parent[1:] != parent[:-1]) | (dimension[1:] != dimension[:-1])
    groups = np.flatnonzero(begins)
    of_nodes = np.zeros(2 * nodes + 2, np.uint64)
    of_nodes[::2], bloom = _bits(keys, nodes + 1)
    of_nodes[1::2] = np.searchsorted(parent[groups], np.arange(nodes + 1))
    return Branches(
        of_nodes,
        bloom,
        points.slots,
        dimension[groups].astype(np.int32),
        np.append(groups, len(others)).astype(np.int32),
        low[others].astype(np.int32),
        high[others].astype(np.int32),
        edges.leads[others],
        len(edges.parent) > 0,
    )


@kernel
def _bits(keys: Longs, nodes: int) -> tuple[Words, Words]:
    """The bits beside each node, and the Bloom filter, of edges to points."""
    size = 1
    while 64 * size < _BLOOM_BITS * len(keys):
        size *= 2
    bits, bloom = np.zeros(nodes, np.uint64), np.zeros(size, np.uint64)
    for key in keys:
        bits[key >> CHILD_BITS] |= np.uint64(1) << np.uint64(key & 63)
        place = mixed(key)
        bloom[place >> 6 & size - 1] |= np.uint64(1) << np.uint64(place & 63)
    return bits, bloom
