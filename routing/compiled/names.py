"""What prefixes call the places of one part: the living edges and overflow numbers, findable in a kernel.

An edge is named by its parent and child number, and leads to a node. Most are found without searching: a node
has a *block*, which is the highest number that it holds, plus one, and then a slot for each number below
that. In a slot stand the child and where the child's own block begins, so that going down is one look a
level, and siblings lie side by side. A node without children has the empty block at 0.

Numbers are never given twice, so where children come and go the living ones lie ever farther apart. A block
only grows for as long as enough of its slots are used; an edge beyond it is put into a `Lookup`, and so found
by a slower way. Overflow numbers only have to be known, and stand in the same `Lookup` under keys below 0.
Whoever names what is found nowhere names what is not in the newest version.

All brokers of a shard share these names, as they share the tree. An update of the tree is followed when
somebody next asks: edges are only ever appended, so the new ones are those behind the last that was seen,
and of the nodes that left an edge the key of that edge is remembered. A block that has to grow is laid out
anew behind all others; once what that leaves behind is more than all blocks were, everything is read anew.

Cost: 8 bytes for each slot, of which there are a few for each edge at most, and 20 for each node. Following
an update takes what it changed, and a look at each number if it changed any; a snapshot is read anew.
"""

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from branchline.routing.compiled.kernels import inlined, kernel
from branchline.routing.compiled.lookups import NOTHING, Lookup, find
from branchline.routing.compiled.prefixes import CHILD_NUMBER_MAX, Ints, Longs
from branchline.routing.prefix.edges import ALIVE, ROOT
from branchline.routing.prefix.stored import Column
from branchline.routing.prefix.tree import Cells
from branchline.routing.prefix.trees import Trees
from branchline.routing.prefix.updates import Version
from branchline.routing.prefix.vocabulary import Changes

CHILD_BITS = 31
_NO_EDGE = -1
_FREE = -1
"""In a slot: nothing has this number, or it is in the `Lookup`."""
_SPARE, _SLOTS_PER_CHILD = 8, 4
"""A block may have so many slots, and so many more for each child."""
_SPARE_USED = 4_096
"""Slots that are left behind and not worth reading anew for."""
Cell = TypeVar("Cell", np.int32, np.int64)


class Slots(NamedTuple):
    """Names as kernels see them."""

    blocks: Longs
    block_of: Longs
    """For each node where its block begins."""
    others: Longs
    """The slots of a `Lookup`: of an edge that is in no block the child, of an overflow number 0."""


class Names:
    """The names of the newest version of a part."""

    def __init__(self, trees: Trees, part: int) -> None:
        self._vocabulary = trees.vocabularies[part]
        self._part = part
        self._anew = self._is_behind = False
        self._read_anew()
        trees.listen(self._changed)

    @property
    def version(self) -> Version:
        return self._vocabulary.version

    @property
    def nodes(self) -> int:
        """One more than the highest number of a node."""
        return self._vocabulary.tree.size()

    def slots(self) -> Slots:
        """The names as they are now."""
        if self._anew:
            self._read_anew()
        elif self._is_behind:
            self._catch_up()
            self._anew = self._used > self._used_max
        return Slots(self._blocks, self._block_of, self._lookup.slots)

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
        self._blocks = np.zeros(1, np.int64)
        self._used = 1
        self._block_of = np.zeros(0, np.int64)
        self._living = np.zeros(0, np.int32)
        """For each node how many children it has."""
        self._numbers: set[int] = set()
        self._left: set[int] = set()
        self._renumbered = True
        self._catch_up()
        self._used_max = 2 * self._used + _SPARE_USED
        self._anew = False

    def _catch_up(self) -> None:
        self._key_of = grown(self._key_of, self.nodes, _NO_EDGE)
        self._block_of = grown(self._block_of, self.nodes, 0)
        self._living = grown(self._living, self.nodes, 0)
        left = np.array(list(self._left), np.int64)
        gone = self._key_of[left]
        self._lookup.drop(_drop(gone[gone != _NO_EDGE], self._blocks, self._block_of, self._living))
        self._key_of[left] = _NO_EDGE
        columns = self._vocabulary.tree.columns()
        new = (cells_from(columns[name], self._seen_edges) for name in ("parent", "number", "child", "died"))
        parents, numbers, children, died = new
        # A number that is too large is never read from a header either.
        lives = (died == ALIVE) & (numbers <= CHILD_NUMBER_MAX)
        self._put(parents[lives], numbers[lives], children[lives])
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

    def _put(self, parents: Longs, numbers: Longs, children: Longs) -> None:
        """These edges live from now on."""
        keys = parents << CHILD_BITS | numbers
        order = np.argsort(keys)
        keys, children = keys[order], children[order]
        self._key_of[children] = keys
        those, first, counts = np.unique(keys >> CHILD_BITS, return_index=True, return_counts=True)
        self._living[those] += counts.astype(np.int32)
        highest = keys[first + counts - 1] & CHILD_NUMBER_MAX
        if self._used == 1:
            order = _depth_first(those, np.append(first, len(keys)), children, self.nodes)
            those, highest = those[order], highest[order]
        sizes = _sizes(those, highest, self._blocks, self._block_of, self._living)
        self._blocks = grown(self._blocks, self._used + int((sizes + (sizes > 0)).sum()), _FREE)
        self._used = _move(those, sizes, self._blocks, self._used, self._block_of, self._key_of)
        beyond = _fill(keys, children, self._blocks, self._block_of)
        self._lookup.put(keys[beyond], children[beyond])


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


@inlined
def slot_of(child: int, block: int) -> int:
    """What stands in the slot of a child whose block begins there."""
    return block << CHILD_BITS | child


@inlined
def child_in(slot: int) -> int:
    """The child that a slot names."""
    return slot & CHILD_NUMBER_MAX


@inlined
def block_in(slot: int) -> int:
    """Where the block of that child begins."""
    return slot >> CHILD_BITS


@kernel
def slot_beyond(slots: Slots, parent: int, number: int) -> int:
    """The slot of an edge that is in no block, below 0 if there is none."""
    child = find(slots.others, edge_key(parent, number))
    return NOTHING if child == NOTHING else slot_of(child, slots.block_of[child])


@inlined
def _place(key: int, blocks: Longs, block_of: Longs) -> int:
    """Where in the blocks an edge of this key would stand; 0 if beyond."""
    block, number = block_of[key >> CHILD_BITS], key & CHILD_NUMBER_MAX
    return block + 1 + number if number < blocks[block] else 0


@kernel
def _drop(keys: Longs, blocks: Longs, block_of: Longs, living: Ints) -> Longs:
    """Empty the slots of these edges, and give the keys of those that are in none."""
    beyond = np.empty(len(keys), np.int64)
    count = 0
    for key in keys:
        living[key >> CHILD_BITS] -= 1
        place = _place(key, blocks, block_of)
        if place and blocks[place] != _FREE:
            blocks[place] = _FREE
        else:
            beyond[count] = key
            count += 1
    return beyond[:count]


@kernel
def _depth_first(parents: Longs, first: Longs, children: Longs, nodes: int) -> Longs:
    """In which order to lay out the blocks of all nodes, so that what is met together lies together."""
    place_of = np.full(nodes, -1, np.int64)
    for place in range(len(parents)):
        place_of[parents[place]] = place
    order, stack = np.empty(len(parents), np.int64), np.empty(len(children) + 1, np.int64)
    count, top = 0, 1
    stack[0] = ROOT
    while top:
        top -= 1
        place = place_of[stack[top]]
        if place >= 0:
            order[count] = place
            count += 1
            for child in range(first[place + 1] - 1, first[place] - 1, -1):
                stack[top] = children[child]
                top += 1
    assert count == len(parents), "every living node hangs on the root"
    return order


@kernel
def _sizes(parents: Longs, highest: Longs, blocks: Longs, block_of: Longs, living: Ints) -> Longs:
    """How large these nodes' blocks have to be made for such numbers; 0 where a block stays as it is."""
    sizes = np.zeros(len(parents), np.int64)
    for place in range(len(parents)):
        parent = parents[place]
        size = blocks[block_of[parent]]
        if highest[place] >= size:
            # At least twice as large, not to move often.
            size = max(highest[place] + 1, 2 * size)
            if size <= _SPARE + _SLOTS_PER_CHILD * living[parent]:
                sizes[place] = size
    return sizes


@kernel
def _move(parents: Longs, sizes: Longs, blocks: Longs, used: int, block_of: Longs, key_of: Longs) -> int:
    """Lay out blocks of these sizes behind those that there are; how much is used then."""
    for place in range(len(parents)):
        if not sizes[place]:
            continue
        parent = parents[place]
        block = block_of[parent]
        size = blocks[block]
        blocks[used] = sizes[place]
        blocks[used + 1 : used + 1 + size] = blocks[block + 1 : block + 1 + size]
        block_of[parent] = used
        if parent != ROOT and key_of[parent] != _NO_EDGE:
            above = _place(key_of[parent], blocks, block_of)
            if above and blocks[above] != _FREE:
                blocks[above] = slot_of(parent, used)
        used += 1 + sizes[place]
    return used


@kernel
def _fill(keys: Longs, children: Longs, blocks: Longs, block_of: Longs) -> NDArray[np.bool_]:
    """Put the edges into their slots; which of them have none."""
    beyond = np.zeros(len(keys), np.bool_)
    for edge in range(len(keys)):
        place = _place(keys[edge], blocks, block_of)
        if place:
            blocks[place] = slot_of(children[edge], block_of[children[edge]])
        else:
            beyond[edge] = True
    return beyond


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
