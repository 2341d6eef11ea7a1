"""What a later broker does with the prefixes of a batch: follow them, and find who is interested.

The same as `Forwarder.find` does, for prefixes of the newest version in every part that no limit has cut.
Every other row is not *handled*, and the reference finds for it: an older version, one that is not known
here, a prefix that names what is not there, one that was cut, and one with more numbers than travel.

Parts are followed one after the other, and what they find is joined: an owner stands once in a row, and is
certain if it is in one part.

Theory of operation. Entries are bytes (`prefixes.py`), and are followed as they are read. A stack has the
runs of siblings that are open, each by the slot of the one that was met last (`names.py`): the next entry is
one of the run on top, as many slots further as it says. What an entry does to the stack is reckoned from its
two bits instead of asked, since no processor could guess the answer.

Cost: for each entry a look into the names and one at the node's cell; for each owner found a look at where it
already stands in the row, which is the only memory that grows with the owners.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from branchline.routing.compiled.kernels import inlined, kernel
from branchline.routing.compiled.lookups import NOTHING, find
from branchline.routing.compiled.memory import byte_at, load_int, load_long, store_int, store_long
from branchline.routing.compiled.names import Names, Slots, block_in, child_in, number_key, slot_beyond
from branchline.routing.compiled.prefixes import Flags, Ints, Longs, Prefixes
from branchline.routing.compiled.standing import NOBODY, Owners, Standing
from branchline.routing.prefix.edges import ROOT
from branchline.routing.prefix.forwarding import Forwarder

_FRAME = 8
"""Bytes of a number on the stack."""


class Followed(NamedTuple):
    """Who is interested in each row, each owner once."""

    handled: Flags
    """Rows of which this says all; of others it says nothing."""
    first: Longs
    owner: Ints
    """Codes, for `Owners.table`."""
    certain: Flags


class _Version(NamedTuple):
    """A part, and its newest version."""

    part: int
    incarnation: int
    clock: int


class Follower:
    """One broker's places in all parts, compiled."""

    def __init__(self, forwarder: Forwarder, names: Sequence[Names]) -> None:
        """The names are those of the forwarder's trees, one for each part; brokers share both."""
        self.owners = Owners()
        self._names = names
        self._standing = [
            Standing(places, vocabulary, self.owners)
            for places, vocabulary in zip(forwarder.places, forwarder.trees.vocabularies, strict=True)
        ]

    def catch_up(self) -> None:
        """Follow what has changed. Codes of before mean nothing after it."""
        for standing in self._standing:
            standing.catch_up()

    def everywhere(self) -> int:
        """How many stand at the roots, as of the last time: so many are found in every row."""
        return sum(standing.count(ROOT) for standing in self._standing)

    def find(self, prefixes: Prefixes, rows: Flags) -> Followed:
        """Who is interested in these rows, as of now; other rows are not handled."""
        self.catch_up()
        handled = rows.copy()
        count = len(self.owners.table)
        told = prefixes.frozen()
        numbers = np.diff(prefixes.beside_first).max(initial=0)
        work = np.empty(3 * (int(prefixes.entries.max(initial=0)) + 1) + int(numbers), np.int64)
        first, items = np.zeros(prefixes.rows + 1, np.int64), np.zeros(0, np.int32)
        for part, (names, standing) in enumerate(zip(self._names, self._standing, strict=True)):
            found = _follow(
                told,
                _Version(part, *names.version),
                names.slots(),
                standing.at_node,
                standing.beside.slots,
                standing.pool,
                count,
                handled,
                work,
            )
            first, items = _join(first, items, *found, count, handled) if part else found
        return Followed(handled, first, items >> 1, (items & 1).astype(np.bool_))


@kernel
def _follow(
    prefixes: Prefixes,
    version: _Version,
    slots: Slots,
    at_node: Ints,
    beside: Longs,
    pool: Ints,
    owners: int,
    handled: Flags,
    work: Longs,
) -> tuple[Longs, Ints]:
    """Follow one part of each row that is handled so far; rows that cannot be followed are not any more."""
    # Asking a tuple for an array counts the array's owners up and down: not for every row.
    arrays, part_first, cut, many = prefixes.arrays, prefixes.part_first, prefixes.cut, prefixes.many
    incarnation, clock, data = prefixes.incarnation, prefixes.clock, prefixes.data.ctypes.data
    entries, entries_at = prefixes.entries, prefixes.entries_at
    beside_first, overflow, others = prefixes.beside_first, prefixes.beside, slots.others

    rows = len(handled)
    first, items = np.zeros(rows + 1, np.int64), np.empty(2 * rows + 64, np.int32)
    place_of = np.full(owners, -1, np.int64)
    cells = np.empty(len(work), np.int32)
    for row in range(rows):
        start = count = first[row]
        part = part_first[row] + version.part
        follows = (
            handled[row]
            and part < part_first[row + 1]
            and clock[part] == version.clock
            and incarnation[part] == version.incarnation
            and not (cut[part] or many[part])
        )
        found = 0
        if follows:
            found = _met(data + entries_at[part], entries[part], slots, at_node, cells, work)
            follows = found >= 0
        if follows:
            for place in range(beside_first[part], beside_first[part + 1]):
                if find(others, number_key(overflow[place])) == NOTHING:
                    follows = False
                    break
                cell = find(beside, overflow[place])
                if cell > NOBODY:
                    cells[found] = cell
                    found += 1
        handled[row] = follows
        for place in range(found if follows else 0):
            cell = cells[place]
            if cell & 1:
                if count == len(items):
                    items = _wider(items, 2 * count)
                count = _add(items, count, start, cell >> 1, arrays[row], place_of)
                continue
            begin, size = (cell >> 1) + 1, pool[cell >> 1]
            if count + size > len(items):
                items = _wider(items, 2 * (count + size))
            for each in range(begin, begin + size):
                count = _add(items, count, start, pool[each], arrays[row], place_of)
        first[row + 1] = count
    return first, items[: first[rows]]


@inlined
def _met(at: int, count: int, slots: Slots, at_node: Ints, cells: Ints, work: Longs) -> int:
    """Write down the cells of somebody that so many entries lead to; how many, -1 if one leads nowhere."""
    blocks, block_of = slots.blocks.ctypes.data, slots.block_of.ctypes.data
    at_nodes, out, met = at_node.ctypes.data, cells.ctypes.data, work.ctypes.data
    end = met + _FRAME * count + _FRAME
    parent = end + _FRAME * count + _FRAME
    cell = load_int(at_nodes, ROOT)
    store_int(out, 0, cell)
    found = int(cell != NOBODY)
    top, block = 0, load_long(block_of, ROOT)
    store_long(met, 0, block)
    store_long(end, 0, block + load_long(blocks, block))
    store_long(parent, 0, ROOT)
    for _ in range(count):
        packed = byte_at(at)
        at += 1
        if packed >= 0x80:
            # That this ends was checked when the header was read.
            packed, shift, more = packed & 0x7F, 7, 0x80
            while more >= 0x80:
                more = byte_at(at)
                packed |= (more & 0x7F) << shift
                shift += 7
                at += 1
        place = load_long(met, top) + (packed >> 2) + 1
        store_long(met, top, place)
        slot = NOTHING
        if place <= load_long(end, top):
            slot = load_long(blocks, place)
        if slot < 0:
            above = load_long(parent, top)
            slot = slot_beyond(slots, above, place - load_long(block_of, above) - 1)
            if slot < 0:
                return -1
        node, block = child_in(slot), block_in(slot)
        cell = load_int(at_nodes, node)
        store_int(out, found, cell)
        found += cell != NOBODY
        # The last of its siblings closes their run; below it, a run may be opened.
        top += 1 - (packed & 1)
        store_long(met, top, block)
        store_long(end, top, block + load_long(blocks, block))
        store_long(parent, top, node)
        top -= 1 - (packed >> 1 & 1)
    return found


@kernel
def _wider(items: Ints, size: int) -> Ints:
    made = np.empty(size, np.int32)
    made[: len(items)] = items
    return made


@inlined
def _add(items: Ints, count: int, start: int, item: int, in_doubt: bool, place_of: Longs) -> int:
    """Add an owner to the row that begins at the start, unless it stands there; how many items there are."""
    owner = item >> 1
    certain = item & 1 if not in_doubt else 0
    if place_of[owner] >= start:
        items[place_of[owner]] |= certain
        return count
    place_of[owner] = count
    items[count] = owner << 1 | certain
    return count + 1


@kernel
def _join(
    first: Longs, items: Ints, other_first: Longs, other: Ints, owners: int, handled: Flags
) -> tuple[Longs, Ints]:
    """What one and the other found, of the rows that are handled."""
    rows = len(handled)
    made, joined = np.zeros(rows + 1, np.int64), np.empty(len(items) + len(other), np.int32)
    place_of = np.full(owners, -1, np.int64)
    for row in range(rows):
        start = count = made[row]
        if handled[row]:
            for place in range(first[row], first[row + 1]):
                count = _add(joined, count, start, items[place], False, place_of)
            for place in range(other_first[row], other_first[row + 1]):
                count = _add(joined, count, start, other[place], False, place_of)
        made[row + 1] = count
    return made, joined[: made[rows]]
