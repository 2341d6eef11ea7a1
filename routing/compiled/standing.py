"""Who stands where: a broker's places in the newest version of one part, findable in a kernel.

At each node, and at each overflow number, stands a *cell*: 0 for nobody; an item with its last bit set for
one owner; or where in the pool the run of several owners begins, its length first. An *item* is an owner's
code and, as its last bit, whether the owner stands there exactly. An owner stands at a place once, exactly
if one of its filters does.

What changes is followed place by place: `Places` notes what was touched, and of each such place the run is
asked for anew and put behind the others. What it leaves in the pool is swept out when it is more than what
is in use. So a subscription costs what it touches. Only where most places were touched, as by a snapshot of
the tree, all are read anew.

An owner has a code for as long as it stands anywhere; then somebody else may get it.

Cost: four bytes a node, a slot for each number with an owner, four bytes for each owner of a place with
several. A touched place takes some microseconds, reading all a part of that for each filter, and still less
where they are stored.
"""

import numpy as np

from branchline.routing.compiled.kernels import kernel
from branchline.routing.compiled.lookups import Lookup
from branchline.routing.compiled.names import grown
from branchline.routing.compiled.prefixes import Ints, Longs, runs
from branchline.routing.prefix.places import Owner, Places
from branchline.routing.prefix.stored_places import StoredPlaces
from branchline.routing.prefix.vocabulary import Vocabulary, Where

NOBODY = 0
_SWEPT_FROM = 4_096
"""A pool that is smaller is not worth sweeping."""
_FEW_TOUCHED = 1_000
_ANEW_FROM = 0.25
"""The part of all places from which on it is quicker to read all."""


class Owners:
    """The owners of one broker's places, by code."""

    def __init__(self) -> None:
        self.table: list[Owner | None] = []
        """By code; None where a code is free."""
        self.renewed: set[int] = set()
        """Codes that have got another owner; whoever reads it empties it."""
        self._codes: dict[Owner, int] = {}
        self._uses: list[int] = []
        self._free: list[int] = []

    def code(self, owner: Owner) -> int:
        """The owner's code, which whoever asks will use."""
        code = self._codes.get(owner)
        if code is None:
            if self._free:
                code = self._free.pop()
                self.table[code] = owner
            else:
                code = len(self.table)
                self.table.append(owner)
                self._uses.append(0)
            self._codes[owner] = code
            self.renewed.add(code)
        return code

    def find(self, owner: Owner) -> int | None:
        """The code of an owner that stands somewhere; None for anybody else."""
        return self._codes.get(owner)

    def use(self, code: int, uses: int) -> None:
        """The code is used so much more, or less; whoever is not used any more loses it."""
        self._uses[code] += uses
        if not self._uses[code]:
            del self._codes[self.table[code]]
            self.table[code] = None
            self._free.append(code)


class Standing:
    """The places of one broker in one part, compiled."""

    def __init__(self, places: Places, vocabulary: Vocabulary, owners: Owners) -> None:
        self._places = places
        self._vocabulary = vocabulary
        self._owners = owners
        self.at_node: Ints = np.zeros(0, np.int32)
        """For each node its cell."""
        self.beside = Lookup()
        """For each overflow number its cell."""
        self.pool: Ints = np.zeros(1, np.int32)
        self._used = 1
        """How much of the pool is written. Nothing begins in its first cell: that would mean nobody."""
        self._in_use = 1
        self._read_all()

    def catch_up(self) -> None:
        """Follow what has changed."""
        touched = self._places.touched
        assert touched is not None, "it is noted from the beginning"
        if len(touched) > max(_FEW_TOUCHED, _ANEW_FROM * np.count_nonzero(self.at_node)):
            self._read_all()
            return
        # A node may have come and gone with a tree since, and be beyond those of the tree that there is now.
        self.at_node = grown(
            self.at_node, max(self._vocabulary.tree.size(), 1 + max(touched, default=0)), NOBODY
        )
        clock = self._vocabulary.version.clock
        for where in touched:
            stands: dict[Owner, bool] = {}
            for owners, exact in self._places.interested(where, clock):
                for owner in owners:
                    stands[owner] = exact or stands.get(owner, False)
            self._put(where, [self._owners.code(owner) << 1 | exact for owner, exact in stands.items()])
        touched.clear()
        if self._used > max(2 * self._in_use, _SWEPT_FROM):
            self._sweep()

    def count(self, node: int) -> int:
        """How many stand at a node."""
        cell = int(self.at_node[node])
        return 1 if cell & 1 else int(self.pool[cell >> 1])

    def _put(self, where: Where, items: list[int]) -> None:
        """From now on these stand there."""
        for item in items:
            self._owners.use(item >> 1, 1)
        before = int(self.at_node[where]) if where >= 0 else max(self.beside.get(~where), NOBODY)
        if before & 1:
            self._owners.use(before >> 2, -1)
        elif before != NOBODY:
            begin, end = before >> 1, (before >> 1) + 1 + int(self.pool[before >> 1])
            for item in self.pool[begin + 1 : end].tolist():
                self._owners.use(item >> 1, -1)
            self._in_use -= end - begin
        cell = items[0] << 1 | 1 if items else NOBODY
        if len(items) > 1:
            cell = self._used << 1
            end = self._used + 1 + len(items)
            self.pool = grown(self.pool, end, 0)
            self.pool[self._used : end] = [len(items), *items]
            self._in_use += end - self._used
            self._used = end
        if where >= 0:
            self.at_node[where] = cell
        else:
            self.beside.put(np.array([~where]), np.array([cell]))

    def _sweep(self) -> None:
        """Leave in the pool only what a cell leads to."""
        pool = np.zeros(self._in_use, np.int32)
        self._used = _move(self.at_node, self.pool, pool, 1)
        numbers, cells = self.beside.items()
        small = cells.astype(np.int32)
        self._used = _move(small, self.pool, pool, self._used)
        self.beside.put(numbers, small.astype(np.int64))
        self.pool = pool

    def _read_all(self) -> None:
        cells = np.append(self.at_node, self.beside.items()[1].astype(np.int32))
        before = _items(cells, self.pool)
        wheres, items = _distinct(*self._read())
        for codes, sign in ((items >> 1, 1), (before >> 1, -1)):
            uses = np.bincount(codes)
            for code in np.flatnonzero(uses).tolist():
                self._owners.use(code, sign * int(uses[code]))
        self._lay(wheres, items)
        self._places.touched = set()

    def _read(self) -> tuple[Longs, Longs]:
        """Who stands where, in no order: a where and an item for each filter and owner."""
        wheres: list[int] = []
        items: list[int] = []
        code = self._owners.code
        for where, owners, exact in self._places.now():
            for owner in owners:
                wheres.append(where)
                items.append(code(owner) << 1 | exact)
        made = np.array(wheres, np.int64), np.array(items, np.int64)
        if self._places.stored is None:
            return made
        stored = self._read_stored(self._places.stored)
        return np.append(made[0], stored[0]), np.append(made[1], stored[1])

    def _read_stored(self, stored: StoredPlaces) -> tuple[Longs, Longs]:
        columns, taken = stored.now()
        names = ("stand_row", "stand_where", "stand_exact", "stand_until", "owner_first", "owner_number")
        row, where, exact, until, first, number = (
            np.asarray(columns[name]).astype(np.int64) for name in names
        )
        holds = (until < 0) & ~np.isin(row, list(taken))
        row, where, exact = row[holds], where[holds], exact[holds]
        counts = first[row + 1] - first[row]
        numbers = number[runs(first[row], counts)]
        code_of = np.zeros(int(numbers.max(initial=-1)) + 1, np.int64)
        for each in np.unique(numbers).tolist():
            code_of[each] = self._owners.code(stored.owner(each))
        return np.repeat(where, counts), code_of[numbers] << 1 | np.repeat(exact, counts)

    def _lay(self, wheres: Longs, items: Longs) -> None:
        """Lay out all of it; the items of one place stand side by side."""
        places, start, counts = np.unique(wheres, return_index=True, return_counts=True)
        several = counts > 1
        room = np.where(several, counts + 1, 0)
        begin = 1 + np.cumsum(room) - room
        self._used = self._in_use = 1 + int(room.sum())
        self.pool = np.zeros(self._used, np.int32)
        self.pool[begin[several]] = counts[several]
        self.pool[runs(begin[several] + 1, counts[several])] = items[runs(start[several], counts[several])]
        cells = np.where(several, begin << 1, items[start] << 1 | 1)
        self.at_node = np.zeros(self._vocabulary.tree.size(), np.int32)
        self.at_node[places[places >= 0]] = cells[places >= 0]
        self.beside = Lookup()
        self.beside.put(~places[places < 0], cells[places < 0])


def _distinct(wheres: Longs, items: Longs) -> tuple[Longs, Longs]:
    """Each owner once at each place, exactly if it ever is, and the places side by side."""
    order = np.lexsort((items, wheres))
    wheres, items = wheres[order], items[order]
    # An owner's exact item comes after the other one.
    is_last = np.ones(len(wheres), np.bool_)
    is_last[:-1] = (wheres[1:] != wheres[:-1]) | (items[1:] >> 1 != items[:-1] >> 1)
    return wheres[is_last], items[is_last]


@kernel
def _items(cells: Ints, pool: Ints) -> Ints:
    """All items that the cells lead to."""
    found = np.empty(len(cells) + len(pool), np.int32)
    count = 0
    for cell in cells:
        if cell & 1:
            found[count] = cell >> 1
            count += 1
        elif cell > NOBODY:
            for place in range(cell >> 1, (cell >> 1) + pool[cell >> 1]):
                found[count] = pool[place + 1]
                count += 1
    return found[:count]


@kernel
def _move(cells: Ints, pool: Ints, into: Ints, used: int) -> int:
    """Copy the runs that the cells lead to, and have them lead there; how much is used then."""
    for place in range(len(cells)):
        cell = cells[place]
        if cell > NOBODY and not cell & 1:
            begin = cell >> 1
            size = pool[begin] + 1
            into[used : used + size] = pool[begin : begin + size]
            cells[place] = used << 1
            used += size
    return used
