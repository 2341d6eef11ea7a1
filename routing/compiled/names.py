"""What prefixes call the places of one part: the living edges and overflow numbers, findable in a kernel.

An edge is named by its parent and child number, and leads to a node. An overflow number only has to be
known: whoever names one that does not live names what is not in the newest version. Both stand in one
`Lookup`, numbers under the keys below 0.

All brokers of a shard share these names, as they share the tree. An update of the tree is followed when
somebody next asks: edges are only ever appended, so the new ones are those behind the last that was seen,
and of the nodes that left an edge the key of that edge is remembered.

Cost: a slot for each edge and number that lives, and a word for each node. Following an update takes what
it changed, and a look at each number if it changed any; a snapshot is read anew.
"""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from branchline.routing.compiled.kernels import inlined
from branchline.routing.compiled.lookups import Lookup
from branchline.routing.compiled.prefixes import CHILD_NUMBER_MAX, Longs
from branchline.routing.prefix.edges import ALIVE
from branchline.routing.prefix.stored import Column
from branchline.routing.prefix.tree import Cells
from branchline.routing.prefix.trees import Trees
from branchline.routing.prefix.updates import Version
from branchline.routing.prefix.vocabulary import Changes

CHILD_BITS = 31
_NO_EDGE = -1
Cell = TypeVar("Cell", np.int32, np.int64)


class Names:
    """The names of the newest version of a part."""

    def __init__(self, trees: Trees, part: int) -> None:
        self._vocabulary = trees.vocabularies[part]
        self._part = part
        self._read_anew()
        trees.listen(self._changed)

    @property
    def version(self) -> Version:
        return self._vocabulary.version

    @property
    def nodes(self) -> int:
        """One more than the highest number of a node."""
        return self._vocabulary.tree.size()

    def slots(self) -> Longs:
        """The names as they are now, for `find`: of an edge the child, of a number 0."""
        if self._anew:
            self._read_anew()
        elif self._is_behind:
            self._catch_up()
        return self._lookup.slots

    def _changed(self, part: int, changes: Changes) -> None:
        if part == self._part:
            self._is_behind = True
            self._anew |= changes.everything
            self._left |= changes.nodes
            self._renumbered |= bool(changes.filters)

    def _read_anew(self) -> None:
        self._lookup = Lookup()
        self._seen_edges = 0
        self._key_of = np.zeros(0, np.int64)
        """For each node the key of the edge above it."""
        self._numbers: set[int] = set()
        self._left: set[int] = set()
        self._anew = False
        self._renumbered = True
        self._catch_up()

    def _catch_up(self) -> None:
        tree = self._vocabulary.tree
        self._key_of = grown(self._key_of, self.nodes, _NO_EDGE)
        left = np.array(list(self._left), np.int64)
        gone = self._key_of[left]
        self._lookup.drop(gone[gone != _NO_EDGE])
        self._key_of[left] = _NO_EDGE
        columns = tree.columns()
        new = (cells_from(columns[name], self._seen_edges) for name in ("parent", "number", "child", "died"))
        parents, numbers, children, died = new
        # A number that is too large is never read from a header either.
        lives = (died == ALIVE) & (numbers <= CHILD_NUMBER_MAX)
        parents, numbers, children = parents[lives], numbers[lives], children[lives]
        keys = parents << CHILD_BITS | numbers
        self._lookup.put(keys, children)
        self._key_of[children] = keys
        self._seen_edges += len(lives)
        if self._renumbered:
            living = {number for number, each in self._vocabulary.numbered.items() if each.died == ALIVE}
            self._lookup.drop(_keys(self._numbers - living))
            came = _keys(living - self._numbers)
            self._lookup.put(came, np.zeros(len(came), np.int64))
            self._numbers = living
        self._left = set()
        self._renumbered = False
        self._is_behind = False


def grown(cells: NDArray[Cell], size: int, value: int) -> NDArray[Cell]:
    """The cells, and behind them as many of the value as are missing; twice as many, not to copy often."""
    if size <= len(cells):
        return cells
    return np.concatenate([cells, np.full(2 * size - len(cells), value, cells.dtype)])


def _keys(numbers: set[int]) -> Longs:
    return ~np.array(list(numbers), np.int64)


@inlined
def edge_key(parent: int, number: int) -> int:
    """What the edge below a node under a child number is found by."""
    return parent << CHILD_BITS | number


@inlined
def number_key(number: int) -> int:
    """What an overflow number is found by."""
    return ~number


def cells_from(column: Cells, start: int) -> Longs:
    """The cells of a column from a row on."""
    if not isinstance(column, Column):
        # A view of the array would keep it from growing.
        return np.array(np.asarray(memoryview(column)[start:]), np.int64)
    stored, written, added = column.pieces()
    if start >= len(stored):
        return np.array(np.asarray(memoryview(added)[start - len(stored) :]), np.int64)
    made = np.concatenate([np.asarray(stored[start:]).astype(np.int64), np.array(added, np.int64)])
    for row, value in written.items():
        if row >= start:
            made[row - start] = value
    return made
