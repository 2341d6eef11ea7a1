"""What a later broker does with the prefixes of a batch: follow them, and find who is interested.

The same as `Forwarder.find` does, for prefixes of the newest version in every part that no limit has cut.
Every other row is not *handled*, and the reference finds for it: an older version, one that is not known
here, a prefix that names what is not there, one that was cut, and one with more numbers than travel.

Parts are followed one after the other, and what they find is joined: an owner stands once in a row, and is
certain if it is in one part.

Cost: for each entry a look into the names and one at the node's cell; for each owner found a look at where it
already stands in the row, which is the only memory that grows with the owners.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from branchline.routing.compiled.kernels import kernel
from branchline.routing.compiled.lookups import find
from branchline.routing.compiled.names import Names, edge_key, number_key
from branchline.routing.compiled.prefixes import Flags, Ints, Longs, Prefixes
from branchline.routing.compiled.standing import NOBODY, Owners, Standing
from branchline.routing.prefix.edges import ROOT
from branchline.routing.prefix.forwarding import Forwarder


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

    def find(self, prefixes: Prefixes, rows: Flags) -> Followed:
        """Who is interested in these rows, as of now; other rows are not handled."""
        self.catch_up()
        handled = rows.copy()
        count = len(self.owners.table)
        first, items = np.zeros(prefixes.rows + 1, np.int64), np.zeros(0, np.int32)
        for part, (names, standing) in enumerate(zip(self._names, self._standing, strict=True)):
            found = _follow(
                prefixes,
                _Version(part, *names.version),
                names.slots(),
                standing.at_node,
                standing.beside.slots,
                standing.pool,
                count,
                handled,
            )
            first, items = _join(first, items, *found, count, handled) if part else found
        return Followed(handled, first, items >> 1, (items & 1).astype(np.bool_))


@kernel
def _follow(
    prefixes: Prefixes,
    version: _Version,
    slots: Longs,
    at_node: Ints,
    beside: Longs,
    pool: Ints,
    owners: int,
    handled: Flags,
) -> tuple[Longs, Ints]:
    """Follow one part of each row that is handled so far; rows that cannot be followed are not any more."""
    rows = len(handled)
    first, items = np.zeros(rows + 1, np.int64), np.empty(2 * rows + 64, np.int32)
    place_of = np.full(owners, -1, np.int64)
    most = 0
    for part in range(len(prefixes.clock)):
        entries = prefixes.entry_first[part + 1] - prefixes.entry_first[part]
        most = max(most, entries + prefixes.beside_first[part + 1] - prefixes.beside_first[part])
    path, cells = np.empty(most + 2, np.int64), np.empty(most + 1, np.int32)
    for row in range(rows):
        start = count = first[row]
        if handled[row]:
            found = _cells(prefixes, row, version, slots, at_node, beside, path, cells)
            handled[row] = found >= 0
            for place in range(found):
                cell = cells[place]
                size = 1 if cell & 1 else pool[cell >> 1]
                if count + size > len(items):
                    more = np.empty(2 * (count + size), np.int32)
                    more[:count] = items[:count]
                    items = more
                if cell & 1:
                    count = _add(items, count, start, cell >> 1, prefixes.arrays[row], place_of)
                    continue
                for place_in_pool in range((cell >> 1) + 1, (cell >> 1) + 1 + size):
                    count = _add(items, count, start, pool[place_in_pool], prefixes.arrays[row], place_of)
        first[row + 1] = count
    return first, items[: first[rows]]


@kernel
def _cells(
    prefixes: Prefixes,
    row: int,
    version: _Version,
    slots: Longs,
    at_node: Ints,
    beside: Longs,
    path: Longs,
    cells: Ints,
) -> int:
    """How many places with somebody the prefix leads by, -1 if it cannot be followed."""
    part = prefixes.part_first[row] + version.part
    if (
        part >= prefixes.part_first[row + 1]
        or prefixes.clock[part] != version.clock
        or prefixes.incarnation[part] != version.incarnation
        or prefixes.cut[part]
        or prefixes.many[part]
    ):
        return -1
    found = depth = 0
    path[0] = ROOT
    if at_node[ROOT] != NOBODY:
        cells[0] = at_node[ROOT]
        found = 1
    for place in range(prefixes.entry_first[part], prefixes.entry_first[part + 1]):
        level = prefixes.level[place]
        if level > depth + 1:
            return -1
        node = find(slots, edge_key(path[level - 1], prefixes.number[place]))
        if node < 0:
            return -1
        path[level] = node
        depth = level
        if at_node[node] != NOBODY:
            cells[found] = at_node[node]
            found += 1
    for place in range(prefixes.beside_first[part], prefixes.beside_first[part + 1]):
        number = prefixes.beside[place]
        if find(slots, number_key(number)) < 0:
            return -1
        cell = find(beside, number)
        if cell > NOBODY:
            cells[found] = cell
            found += 1
    return found


@kernel
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
