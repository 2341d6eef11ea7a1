"""A stored tree that is read where it lies: no Python object is made for a node before somebody asks for it.

Cells of the columns are read from the buffer; those written since loading stand in a dictionary, those added
in an array (`Column`). Constraints are decoded when they are asked for, and the last ones kept. The children
of a node are a run of groups, one for each kin, and a group is a run of edges sorted by where they start;
all edges below a node that a kept version has, living or dead, are a run sorted by child number.

Invariant: the buffer never changes. Whoever changes the tree has what is new beside it (`tree.py`).
Cost: loading is one pass for the checksum. Reading a cell is a look into a dictionary and one into the
buffer; a constraint that is not among the last is a few microseconds.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import Any

from branchline.routing.filters import Constraint
from branchline.routing.prefix.encoding import decode_constraint, decode_kin
from branchline.routing.prefix.layout import Facts, read
from branchline.routing.prefix.siblings import Children, Kin, Siblings, Start, start

EDGE_COLUMNS = ("parent", "number", "child", "born", "died")
NODE_COLUMNS = ("edge_of", "next_number", "changed")
SECTIONS = (
    *EDGE_COLUMNS,
    *NODE_COLUMNS,
    "constraint_at",
    "first_group",
    "group_kin",
    "group_start",
    "sorted_edges",
    "first_numbered",
    "numbered_edges",
    "kins",
    "constraints",
)
"""The sections of a stored tree, in order. `first_...` and `group_start` have one cell more than there are
nodes or groups, so that each run ends where the next one begins.
"""

DECODED_MAX = 524_288
"""Constraints that are kept decoded; of those that a bisection meets most are met again."""
LOOK_UPS = 4
"""How often each start is looked up, on average, before they are all kept."""
CHILDREN_MAX = 262_144
"""Nodes whose children are kept as they were last asked for."""


class Column:
    """A column of whole numbers that goes on from what was stored."""

    __slots__ = ("_added", "_size", "_stored", "_written")

    def __init__(self, stored: memoryview) -> None:
        self._stored = stored
        self._size = len(stored)
        self._written: dict[int, int] = {}
        self._added = array("q")

    def __len__(self) -> int:
        return self._size + len(self._added)

    def __getitem__(self, row: int) -> int:
        if row >= self._size:
            return self._added[row - self._size]
        written = self._written.get(row)
        return self._stored[row] if written is None else written

    def __setitem__(self, row: int, value: int) -> None:
        if row >= self._size:
            self._added[row - self._size] = value
        else:
            self._written[row] = value

    def __iter__(self) -> Iterator[int]:
        return (self[row] for row in range(len(self)))

    def append(self, value: int) -> None:
        self._added.append(value)

    def pieces(self) -> tuple[memoryview, Mapping[int, int], "array[int]"]:
        """What was stored, what was written over it, and what was added: to be read all at once."""
        return self._stored, self._written, self._added


class Constraints:
    """The constraints of nodes, decoded when asked for, and those that came since."""

    __slots__ = ("_added", "_at", "_data", "_decoded", "_kins", "_written")

    def __init__(self, at: memoryview, data: memoryview, kins: list[Kin]) -> None:
        self._at = at
        self._data = data
        self._kins = kins
        self._decoded: dict[int, Constraint] = {}
        self._written: dict[int, Constraint | None] = {}
        self._added: list[Constraint | None] = []

    def __len__(self) -> int:
        return len(self._at) + len(self._added)

    def __getitem__(self, node: int) -> Constraint | None:
        if node >= len(self._at):
            return self._added[node - len(self._at)]
        at = self._at[node]
        found = self._decoded.get(at)
        # Equal constraints are stored once, so where it is stored names it.
        if found is not None and not self._written:
            return found
        if node in self._written or at < 0:
            return self._written.get(node)
        if found is None:
            if len(self._decoded) >= DECODED_MAX:
                self._decoded.clear()
            found = self._decoded[at] = decode_constraint(self._data, at, self._kins)
        return found

    def __setitem__(self, node: int, constraint: Constraint | None) -> None:
        if node >= len(self._at):
            self._added[node - len(self._at)] = constraint
        else:
            self._written[node] = constraint

    def __iter__(self) -> Iterator[Constraint | None]:
        return (self[node] for node in range(len(self)))

    def append(self, constraint: Constraint | None) -> None:
        self._added.append(constraint)


class LookedUp:
    """The starts of siblings, each looked up when it is asked for, so that there is nothing to keep.

    Siblings that are asked often get a list of them instead, unless they may change.
    """

    __slots__ = ("_asked", "_children", "_constraints", "_edges", "siblings")

    def __init__(self, edges: list[int] | memoryview, children: Column, constraints: Constraints) -> None:
        self._edges = edges
        self._children = children
        self._constraints = constraints
        self._asked = 0 if isinstance(edges, list) else LOOK_UPS * len(edges)
        """How often they may be asked before."""
        self.siblings: Siblings | None = None

    def __len__(self) -> int:
        return len(self._edges)

    def __getitem__(self, place: int) -> Any:
        self._asked -= 1
        if not self._asked and self.siblings is not None:
            self.siblings.starts = list(self)
        constraint = self._constraints[self._children[self._edges[place]]]
        assert constraint is not None
        return start(constraint)

    def __iter__(self) -> Iterator[Any]:
        return (self[place] for place in range(len(self._edges)))

    def __delitem__(self, place: int) -> None: ...

    def insert(self, place: int, start: Start) -> None: ...


class Stored:
    """A stored tree, as it was stored."""

    def __init__(self, buffer: memoryview) -> None:
        self.facts, self._sections = read(buffer, SECTIONS)
        section = self._sections
        self.columns = {name: Column(section[name]) for name in (*EDGE_COLUMNS, *NODE_COLUMNS)}
        self.edges = len(section["parent"])
        self.nodes = len(section["edge_of"])
        self._kins = _read_kins(section["kins"])
        self.constraints = Constraints(section["constraint_at"], section["constraints"], self._kins)
        self._numbers = section["number"]
        self._first_group, self._group_kin = section["first_group"], section["group_kin"]
        self._group_start, self._sorted = section["group_start"], section["sorted_edges"]
        self._first_numbered, self._numbered = section["first_numbered"], section["numbered_edges"]
        self._asked: dict[int, Children] = {}

    def children(self, node: int) -> Children:
        """The node's children as they were stored, by kin."""
        found = self._asked.get(node)
        if found is None:
            if len(self._asked) >= CHILDREN_MAX:
                self._asked.clear()
            found = self._asked[node] = {}
            if node < self.nodes:
                for group in range(self._first_group[node], self._first_group[node + 1]):
                    edges = self._sorted[self._group_start[group] : self._group_start[group + 1]]
                    found[self._kins[self._group_kin[group]]] = self._siblings(edges)
        return found

    def own(self, siblings: Siblings) -> Siblings:
        """Siblings that may be changed, in place of stored ones."""
        edges = list(siblings.edges)
        return self._siblings(edges)

    def below(self, node: int) -> memoryview:
        """The edges below the node that were stored, living or dead, by number."""
        if node >= self.nodes:
            return self._numbered[:0]
        return self._numbered[self._first_numbered[node] : self._first_numbered[node + 1]]

    def find(self, parent: int, number: int) -> int | None:
        """The edge below a node under a child number, living or dead."""
        edges = self.below(parent)
        place = bisect_left(edges, number, key=self._numbers.__getitem__)
        return edges[place] if place < len(edges) and self._numbers[edges[place]] == number else None

    def _siblings(self, edges: list[int] | memoryview) -> Siblings:
        starts = LookedUp(edges, self.columns["child"], self.constraints)
        siblings = Siblings(edges, starts)
        starts.siblings = siblings
        return siblings


def _read_kins(data: memoryview) -> list[Kin]:
    kins: list[Kin] = []
    at = 0
    while at < len(data):
        kin, at = decode_kin(data, at)
        kins.append(kin)
    return kins


__all__ = ["EDGE_COLUMNS", "NODE_COLUMNS", "SECTIONS", "Column", "Constraints", "Facts", "Stored"]
