"""Many filters that are met together, checked 64 at a time: a bit for each filter and each part of a
dimension.

Theory of operation. A long list of filters that have a rest becomes a *block*. Of the slots that its
filters speak of, the frequent ones are its *sides*. A side's ranks are cut into buckets where its filters'
ranges begin and end, at most BUCKETS of them; for each bucket two rows of bits say which filters may hold
there (their range meets the bucket, or they say nothing of the slot) and which surely do (it covers the
bucket). One more row says which say nothing of the slot: that is what holds where a row of the batch has
nothing there. A side that few filters speak of has that row alone. The rows of bits of all sides are
intersected: what surely holds is found, what may hold is checked.

Where a block's filters have few different ends, each end is one of a bucket's, and nothing needs to be
checked.

Cost: for 64 filters a few ns, and a few for each that is found; some bytes for each filter and side.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from branchline.routing.compiled.kernels import kernel
from branchline.routing.compiled.memory import Ints, behind, load_int, load_long, store_int, store_long
from branchline.routing.compiled.texts import Longs

BLOCK_MIN = 256
"""Filters from which on a list is made a block: going through fewer costs no more than looking up the
sides.
"""
BUCKETS = 64
"""Parts of a side: with twice as many, few filters less are to be checked."""
SIDES = 32
"""Sides of a block, the most frequent ones."""
BUCKETED_PART, SIDE_PART = 8, 64
"""A side has buckets if an eighth of the filters speak of it, and is none if less than one in 64 do."""

BLOCK = 8
"""Numbers in a block: where its filters begin, how many words of bits they are, where its sides begin, how
many they are, and where the row of all its filters begins, behind which is that of those that speak of
sides only.
"""
SIDE = 8
"""Numbers in a side: its slot, where its cuts begin, how many they are, and where its rows begin: of the
filters that say nothing of it, of those that may hold, of those that surely do.
"""


class Blocks(NamedTuple):
    """All blocks as kernels see them, by addresses."""

    blocks: int
    sides: int
    cuts: int
    bits: int
    rows: int
    checks: int
    first: int


class Building:
    """Blocks, as they are made."""

    def __init__(self, first: Ints, checks: Ints) -> None:
        self._first, self._checks = first, checks
        self._blocks: list[list[int]] = []
        self._sides: list[list[int]] = []
        self._cuts: list[Ints] = [np.empty(0, np.int32)]
        self._bits: list[Longs] = [np.empty(0, np.int64)]
        self._rows: list[Ints] = [np.empty(0, np.int32)]
        self._cut_count = self._bit_count = self._row_count = 0

    def add(self, rows: Ints, known: int) -> int:
        """Make a block of these filters, of which the last so many constraints are known to hold; its
        number.
        """
        counts = self._first[rows + 1] - self._first[rows] - known
        starts = np.concatenate([[0], np.cumsum(counts)])
        place = np.repeat(self._first[rows] - starts[:-1], counts) + np.arange(starts[-1])
        slot, low, high = self._checks[place].T
        slots, frequency = np.unique(slot, return_counts=True)
        order = np.lexsort((slots, -frequency))[:SIDES]
        order = order[frequency[order] * SIDE_PART >= rows.size]
        owner = np.repeat(np.arange(rows.size), counts)
        if order.size:
            # Filters that begin together stand together: then most words of bits are empty.
            key = np.zeros(rows.size, np.int64)
            is_main = slot == slots[order[0]]
            key[owner[is_main]] = (low[is_main].astype(np.int64) << 32) + high[is_main]
            by_key = np.argsort(key, kind="stable")
            moved = np.empty(rows.size, np.int64)
            moved[by_key] = np.arange(rows.size)
            owner, rows = moved[owner], rows[by_key]
        block = [self._row_count, (rows.size + 63) >> 6, len(self._sides), order.size]
        self._blocks.append([*block, self._bit_count, 0, 0, 0])
        self._put(_bits(rows.size, owner[:0]))
        self._put(_bits(rows.size, owner[~np.isin(slot, slots[order])]))
        for each in slots[order].tolist():
            mine = slot == each
            self._side(each, owner[mine], low[mine], high[mine], rows.size)
        self._rows.append(rows)
        self._row_count += rows.size
        return len(self._blocks) - 1

    def _put(self, bits: Longs) -> int:
        """Append rows of bits; where they begin."""
        at = self._bit_count
        self._bits.append(bits)
        self._bit_count += bits.size
        return at

    def _side(self, slot: int, owner: Longs, low: Ints, high: Ints, size: int) -> None:
        free = _bits(size, owner)
        side = [slot, self._cut_count, 0, self._put(free), 0, 0, 0, 0]
        self._sides.append(side)
        if owner.size * BUCKETED_PART < size:
            return
        ends = np.sort(np.concatenate([low, high + 1]))
        cuts = np.unique(ends)
        is_exact = cuts.size < BUCKETS
        if not is_exact:
            cuts = np.unique(ends[np.linspace(0, ends.size - 1, BUCKETS - 1).astype(np.int64)])
        begin = np.searchsorted(cuts, low, side="right")
        end = np.searchsorted(cuts, high, side="right")
        rows = np.tile(free, cuts.size + 1)
        _set(rows, free.size, owner, begin, end)
        side[2], side[4] = cuts.size, self._put(rows)
        side[5] = side[4]
        if not is_exact:
            # All ranges lie between the first cut and the last, so each of their buckets has two ends.
            rows = np.tile(free, cuts.size + 1)
            _set(rows, free.size, owner, begin + (cuts[begin - 1] < low), end - (cuts[end] > high + 1))
            side[5] = self._put(rows)
        self._cuts.append(cuts.astype(np.int32))
        self._cut_count += cuts.size

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of all blocks."""
        return {
            "blocks": np.array(self._blocks, np.int64).reshape(-1, BLOCK),
            "sides": np.array(self._sides, np.int64).reshape(-1, SIDE),
            "cuts": np.concatenate(self._cuts),
            "block_bits": np.concatenate(self._bits),
            "block_rows": np.concatenate(self._rows),
        }


STORED: dict[str, type[np.generic]] = {
    "blocks": np.int64,
    "sides": np.int64,
    "cuts": np.int32,
    "block_bits": np.int64,
    "block_rows": np.int32,
}


def _bits(size: int, cleared: Longs) -> Longs:
    """A row of bits for so many filters, of which some are cleared, and those behind the last."""
    bits = np.zeros(-(-size // 64) * 64, np.bool_)
    bits[:size] = True
    bits[cleared] = False
    return np.packbits(bits, bitorder="little").view(np.int64)


@kernel
def _set(rows: Longs, words: int, owner: Longs, begin: Longs, end: Longs) -> None:
    """Set the bit of each owner in its rows, from one to another inclusive."""
    for place in range(owner.size):
        word, bit = owner[place] >> 6, 1 << (owner[place] & 63)
        for row in range(begin[place], end[place] + 1):
            rows[row * words + word] |= bit


@kernel
def _choose_rows(made: Blocks, at: int, sides: int, words: int, held: int, chosen: int) -> int:
    """Put down the rows of bits to be intersected: those of what may hold, how many; behind, of what surely
    does.
    """
    maybe = 0
    for place in range(sides):
        side = made.sides + 8 * SIDE * (at + place)
        rank, cuts = load_int(held, load_long(side, 0)), load_long(side, 2)
        free = made.bits + 8 * load_long(side, 3)
        sure = free
        if rank < 0:
            store_long(chosen, maybe, free)
            maybe += 1
        elif cuts:
            low = behind(made.cuts + 4 * load_long(side, 1), 0, cuts, rank)
            store_long(chosen, maybe, made.bits + 8 * (load_long(side, 4) + low * words))
            maybe += 1
            sure = made.bits + 8 * (load_long(side, 5) + low * words)
        store_long(chosen, SIDES + place, sure)
    return maybe


@kernel
def _holds(made: Blocks, row: int, held: int) -> bool:
    """Whether all constraints of a filter hold."""
    check = made.checks + 12 * load_int(made.first, row)
    for _ in range(load_int(made.first, row + 1) - load_int(made.first, row)):
        rank = load_int(held, load_int(check, 0))
        if rank < load_int(check, 1) or rank > load_int(check, 2):
            return False
        check += 12
    return True


@kernel
def ones(bits: int) -> int:
    """How many bits are set; the highest is not."""
    bits -= (bits >> 1) & 0x5555555555555555
    bits = (bits & 0x3333333333333333) + ((bits >> 2) & 0x3333333333333333)
    bits = (bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0F
    return (bits * 0x0101010101010101) >> 56


@kernel
def of_block(made: Blocks, which: int, held: int, chosen: int, out: int, room: int, count: int) -> int:
    """Add the filters of a block that hold from `count` on; how many there are then, room or not."""
    block = made.blocks + 8 * BLOCK * which
    rows, words = made.rows + 4 * load_long(block, 0), load_long(block, 1)
    sides = load_long(block, 3)
    maybe = _choose_rows(made, load_long(block, 2), sides, words, held, chosen)
    every = made.bits + 8 * load_long(block, 4)
    exact = every + 8 * words
    for word in range(words):
        found = load_long(every, word)
        for place in range(maybe):
            found &= load_long(load_long(chosen, place), word)
            if found == 0:
                break
        if found == 0:
            continue
        sure = found & load_long(exact, word)
        for place in range(SIDES, SIDES + sides):
            sure &= load_long(load_long(chosen, place), word)
        while found:
            lowest = found & -found
            row = load_int(rows, 64 * word + ones(lowest - 1))
            if sure & lowest or _holds(made, row, held):
                if count < room:
                    store_int(out, count, row)
                count += 1
            found ^= lowest
    return count
