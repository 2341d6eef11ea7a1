"""One part of the Routing Tree, with its recent versions.

Theory of operation. Each node but the root is one constraint; a path from the root is the conjunction of its
nodes, two paths are a disjunction. What changes over time are *edges*: an edge hangs a node below another one
under a child number, from the clock at which it was born to the clock at which it died. A node that moves
dies at its old edge and is born at a new one; what hangs below it stays as it is. The tree of version t has
the edges with born <= t < died. A child number is given once and never again under that parent, so a parent
and a number name one edge in all versions.

Edges are rows of flat columns and are only ever appended; a row is its edge's number in the arrays, and
death is a write in one cell. Beside them is an index of each node's living children by kin (dimension, and
whether they are ranges or words), sorted by their intervals. Invariant: living children of one node that are
ranges of one dimension are pairwise disjoint, so of those a value follows at most one.

A tree that was stored (`storing.py`) is read where it lies, and what changes is kept beside it: the columns
know which cells are new, and the index here has only the nodes whose children have changed since.

An earlier version is seen through a `View` (`views.py`).

Cost: an edge is five machine words; the index two list entries for each node and a dictionary for each node
with children. Finding the children that overlap a range is a bisection.
"""

from array import array
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from branchline.routing.filters import Constraint
from branchline.routing.prefix.edges import ALIVE, ROOT, Edge, edge_hash, plain, stable_hash
from branchline.routing.prefix.siblings import Children, Siblings, in_order, kin, start
from branchline.routing.prefix.stored import EDGE_COLUMNS, Column, Constraints, Stored
from branchline.routing.prefix.views import View, describe_tree

__all__ = [
    "ALIVE",
    "ROOT",
    "Children",
    "Edge",
    "Tree",
    "View",
    "describe_tree",
    "edge_hash",
    "kin",
    "plain",
    "stable_hash",
]

Cells: TypeAlias = "array[int] | Column"
"""A column of whole numbers: made here, or gone on from what was stored."""


_NO_CHILDREN: Children = {}


def _no_columns() -> "dict[str, array[int]]":
    """The columns of a tree that has only its root."""
    edges = {name: array("q") for name in EDGE_COLUMNS}
    return edges | {"edge_of": array("q", [-1]), "next_number": array("q", [0]), "changed": array("q", [0])}


class Tree:
    """The nodes and edges of one part."""

    def __init__(self, stored: Stored | None = None) -> None:
        columns = _no_columns() if stored is None else stored.columns
        self._parents = columns["parent"]
        self._numbers = columns["number"]
        self._children = columns["child"]
        self._born = columns["born"]
        self._died = columns["died"]
        self._edge_of = columns["edge_of"]
        """The living edge above each node, -1 if it has none."""
        self._next_number = columns["next_number"]
        self._changed = columns["changed"]
        """The clock at which each node's children last changed."""
        self._constraints: list[Constraint | None] | Constraints = (
            [None] if stored is None else stored.constraints
        )
        self._stored = stored
        self._index: dict[int, Children] = {}
        """The living children of nodes; of a stored tree, of those whose children have changed since."""
        self._dead: dict[int, list[int]] = {}
        """The edges below a node that have died but are of a version that may still be asked for."""
        self._by_number: dict[int, dict[int, int]] = {}
        """The edges below a node by child number, for the nodes that were asked for."""
        self._digest = 0 if stored is None else stored.facts.digest
        self.nodes = 0 if stored is None else stored.facts.nodes
        """Living nodes, the root not counted."""
        self.oldest = 0 if stored is None else stored.facts.oldest
        """The oldest version that may still be asked for."""

    # Reading

    def constraint(self, node: int) -> Constraint:
        """The node's constraint; the root has none."""
        found = self._constraints[node]
        assert found is not None, "the root has no constraint"
        return found

    def known(self, node: int) -> Constraint | None:
        """The constraint of a node that may not be there."""
        return self._constraints[node] if node < len(self._constraints) else None

    def size(self) -> int:
        """One more than the highest number of a node."""
        return len(self._constraints)

    def child(self, edge: int) -> int:
        return self._children[edge]

    def number(self, edge: int) -> int:
        return self._numbers[edge]

    def edge(self, edge: int) -> Edge:
        """The edge as it would be told to somebody who does not know its node."""
        child = self._children[edge]
        return Edge(self._parents[edge], self._numbers[edge], child, self._constraints[child])

    def is_alive(self, node: int) -> bool:
        return node == ROOT or self._edge_of[node] >= 0

    def parent(self, node: int) -> int:
        """The node above a living node that is not the root."""
        assert node != ROOT and self.is_alive(node), "only a node that hangs somewhere has one above it"
        return self._parents[self._edge_of[node]]

    def edge_above(self, node: int) -> int:
        return self._edge_of[node]

    def born(self, edge: int) -> int:
        return self._born[edge]

    def is_alive_edge(self, edge: int) -> bool:
        return self._died[edge] == ALIVE

    def children(self, node: int) -> Children:
        """The living children, by kin."""
        found = self._index.get(node)
        if found is not None:
            return found
        return _NO_CHILDREN if self._stored is None else self._stored.children(node)

    def find(self, parent: int, number: int, clock: int) -> int | None:
        """The edge below a node under a child number, if it lived at the clock."""
        known = self._by_number.get(parent)
        if known is None and (parent in self._index or parent in self._dead):
            known = self._by_number[parent] = {self._numbers[edge]: edge for edge in self._new_below(parent)}
        edge = None if known is None else known.get(number)
        if edge is None and self._stored is not None:
            edge = self._stored.find(parent, number)
        return edge if edge is not None and self._born[edge] <= clock < self._died[edge] else None

    def level(self, node: int) -> int:
        """How many edges are above a living node."""
        level = 0
        while node != ROOT:
            node = self.parent(node)
            level += 1
        return level

    def below(self, node: int) -> Iterator[int]:
        """The living nodes below a node, each after its parent, in the order of kin and interval."""
        pending = [node]
        while pending:
            nodes = [self._children[edge] for edge in in_order(self.children(pending.pop()))]
            pending += reversed(nodes)
            yield from nodes

    def at(self, version: int) -> "View":
        """The tree as it was at a version that is still kept."""
        return View(self, version)

    @property
    def digest(self) -> int:
        """A number of 128 bits that two trees share if and only if they have the same living edges."""
        return self._digest

    # Changing

    def new_node(self, constraint: Constraint, node: int | None = None) -> int:
        """A node that hangs nowhere yet, under the next number, or under one that somebody else gave it."""
        if node is None:
            node = len(self._constraints)
        while len(self._constraints) <= node:
            self._constraints.append(None)
            self._edge_of.append(-1)
            self._next_number.append(0)
            self._changed.append(0)
        self._constraints[node] = constraint
        return node

    def attach(self, parent: int, node: int, clock: int, number: int | None = None) -> int:
        """Hang a node below another one; the edge. Without a number it gets the next that was never given."""
        if number is None:
            number = self._next_number[parent]
        self._next_number[parent] = max(self._next_number[parent], number + 1)
        edge = len(self._parents)
        for column, value in (
            (self._parents, parent),
            (self._numbers, number),
            (self._children, node),
            (self._born, clock),
            (self._died, ALIVE),
        ):
            column.append(value)
        self._edge_of[node] = edge
        self._changed[parent] = clock
        self._digest ^= self._hash(edge)
        self.nodes += 1
        constraint = self.constraint(node)
        self._siblings(parent, constraint).add(edge, start(constraint))
        if parent in self._by_number:
            self._by_number[parent][number] = edge
        return edge

    def detach(self, node: int, clock: int) -> int:
        """Take a living node off its parent; the edge that died."""
        edge = self._edge_of[node]
        parent = self._parents[edge]
        self._digest ^= self._hash(edge)
        self._died[edge] = clock
        self._edge_of[node] = -1
        self._changed[parent] = clock
        self.nodes -= 1
        constraint = self.constraint(node)
        siblings = self._siblings(parent, constraint)
        siblings.remove(edge, start(constraint))
        if not siblings.edges:
            del self._index[parent][kin(constraint)]
            # Of a stored tree, that there are no children any more must be said.
            if self._stored is None and not self._index[parent]:
                del self._index[parent]
        if self._born[edge] < clock:
            self._dead.setdefault(parent, []).append(edge)
        elif parent in self._by_number:
            self._by_number[parent].pop(self._numbers[edge], None)
        return edge

    def forget(self, oldest: int) -> None:
        """Let go of what no version from `oldest` on can show."""
        self.oldest = max(self.oldest, oldest)
        for parent, edges in list(self._dead.items()):
            kept = [edge for edge in edges if self._died[edge] > oldest]
            if kept:
                self._dead[parent] = kept
            else:
                del self._dead[parent]
            known = self._by_number.get(parent)
            if known is not None:
                for edge in edges if len(kept) < len(edges) else ():
                    if self._died[edge] <= oldest:
                        known.pop(self._numbers[edge], None)

    # For views and for the two above

    def changed_since(self, node: int, version: int) -> bool:
        return self._changed[node] > version

    def lived(self, node: int, version: int) -> list[int]:
        """The edges below the node that lived at the version, in no order."""
        stored = () if self._stored is None else self._stored.below(node)
        return [
            edge
            for edges in (stored, self._new_below(node))
            for edge in edges
            if self._born[edge] <= version < self._died[edge]
        ]

    def sort(self, edges: Iterable[int]) -> Children:
        """The edges by kin, sorted."""
        made: Children = {}
        for edge in edges:
            constraint = self.constraint(self._children[edge])
            siblings = made.setdefault(kin(constraint), Siblings([], []))
            siblings.add(edge, start(constraint))
        return made

    def columns(self) -> dict[str, Cells]:
        """The columns of edges and of nodes, for storing."""
        return {
            "parent": self._parents,
            "number": self._numbers,
            "child": self._children,
            "born": self._born,
            "died": self._died,
            "edge_of": self._edge_of,
            "next_number": self._next_number,
            "changed": self._changed,
        }

    def _new_below(self, node: int) -> list[int]:
        """The edges below a node that were not stored, living or dead, in no order."""
        found = [edge for siblings in self._index.get(node, _NO_CHILDREN).values() for edge in siblings.edges]
        found += self._dead.get(node, ())
        return found if self._stored is None else [edge for edge in found if edge >= self._stored.edges]

    def _siblings(self, parent: int, constraint: Constraint) -> Siblings:
        """The children of the constraint's kin, to be changed."""
        mine = kin(constraint)
        children = self._index.get(parent)
        if children is None:
            # Groups of kin are shared with what was stored until they change.
            children = {} if self._stored is None else dict(self._stored.children(parent))
            self._index[parent] = children
        siblings = children.get(mine)
        if siblings is None:
            siblings = children[mine] = Siblings([], [])
        elif not isinstance(siblings.edges, list):
            assert self._stored is not None
            siblings = children[mine] = self._stored.own(siblings)
        return siblings

    def _hash(self, edge: int) -> int:
        return edge_hash(self.edge(edge))
