"""The living edges of one part's tree over ranks, laid out for the walk.

An edge leads on if its child's constraint holds. Most constraints are *points*: a value that must be met, or
a word that must be found. All values and words that filters name are numbered in one row, their cells, so an
edge to a point is found by its parent and the cell. Beside each node stand 64 bits, one for each rest of a
cell modulo 64, set if an edge to such a cell is there: nearly all nodes have few children, and nearly all
cells that are not there are seen without looking.

All other constraints are ranges of ranks. Those below one node on one dimension make a *group*: they are
disjoint and sorted, so a rank is found by bisection.

What an edge leads to is one number: its child number, then the child. So edges sort as their numbers do.

Cost: a slot for each point, 16 bytes for each range, 12 bytes for each group and 14 for each node. Laying out
sorts the ranges; nothing is done in Python for each edge.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from branchline.routing.compiled.bounds import Bounds
from branchline.routing.compiled.kernels import kernel
from branchline.routing.compiled.lookups import Lookup
from branchline.routing.compiled.names import CHILD_BITS, cells_from
from branchline.routing.compiled.prefixes import CHILD_NUMBER_MAX, Flags, Ints, Longs, Words
from branchline.routing.prefix.edges import ALIVE
from branchline.routing.prefix.tree import Tree


class Edges(NamedTuple):
    """The living edges of a tree."""

    parent: Longs
    child: Longs
    leads: Longs
    """Child number and child in one."""


class Branches(NamedTuple):
    """A tree as the walk sees it."""

    bits: Words
    """For each node the rests of the cells that edges below it ask for."""
    points: Longs
    """The slots of a `Lookup`: by parent and cell, what the edge leads to."""
    group_first: Ints
    """For each node its first group; one more at the end."""
    dimension: Ints
    """For each group."""
    range_first: Ints
    """For each group its first range; one more at the end."""
    low: Ints
    high: Ints
    leads: Longs
    """For each range."""
    goes_on: Flags
    """For each node whether anything is below it."""


def edges_of(tree: Tree) -> Edges:
    columns = tree.columns()
    cells = (cells_from(columns[name], 0) for name in ("parent", "number", "child", "died"))
    parents, numbers, children, died = cells
    lives = died == ALIVE
    assert numbers[lives].max(initial=0) <= CHILD_NUMBER_MAX, "child numbers are given one by one"
    return Edges(parents[lives], children[lives], numbers[lives] << CHILD_BITS | children[lives])


def branches(edges: Edges, nodes: int, bounds: Bounds, slot: Ints, low: Ints, high: Ints) -> Branches:
    """The edges by what their children's constraints are in ranks: slot, lowest and highest for each edge."""
    is_word = slot >= bounds.dimensions
    is_point = is_word | ((low == high) & (low & 1 == 1))
    first = np.append(bounds.value_first[: bounds.dimensions], bounds.marks.words)
    cell = first[np.minimum(slot, bounds.dimensions)] + np.where(is_word, slot - bounds.dimensions, low >> 1)
    points = Lookup()
    points.put(edges.parent[is_point] << CHILD_BITS | cell[is_point], edges.leads[is_point])
    bits = _bits(edges.parent[is_point], cell[is_point], nodes)
    others = np.flatnonzero(~is_point)
    others = others[np.lexsort((low[others], slot[others], edges.parent[others]))]
    parent, dimension = edges.parent[others], slot[others]
    begins = np.ones(len(others), np.bool_)
    begins[1:] = (parent[1:] != parent[:-1]) | (dimension[1:] != dimension[:-1])
    groups = np.flatnonzero(begins)
    return Branches(
        bits,
        points.slots,
        np.searchsorted(parent[groups], np.arange(nodes + 1)).astype(np.int32),
        dimension[groups].astype(np.int32),
        np.append(groups, len(others)).astype(np.int32),
        low[others].astype(np.int32),
        high[others].astype(np.int32),
        edges.leads[others],
        np.bincount(edges.parent, minlength=nodes).astype(np.bool_),
    )


@kernel
def _bits(parents: Longs, cells: NDArray[np.int32], nodes: int) -> Words:
    made = np.zeros(nodes, np.uint64)
    for place in range(len(parents)):
        made[parents[place]] |= np.uint64(1) << np.uint64(cells[place] & 63)
    return made
