"""What a row meets: the lists and blocks that are filed under what it has.

They are found first and gone through after (`matching`), so that the processor fetches several at a time.

Cost: a few ns for each cell and each two cells of the row.
"""

from typing import NamedTuple

from branchline.routing.compiled.blocks import ones
from branchline.routing.compiled.choosing import DOWN, PAIR, POINT, TREE, UP, WIDE
from branchline.routing.compiled.filing import Filing
from branchline.routing.compiled.kernels import kernel
from branchline.routing.compiled.memory import (
    behind,
    copy_bytes,
    load_byte,
    load_int,
    load_long,
    store_int,
    store_long,
)
from branchline.routing.compiled.pairing import BLOOM_BITS, FIRST, SECOND, pair_hash

ITEM = 4
"""Numbers in an item, as in a list: filters without a rest from one to before another, and entries; or a
block.
"""
ITEMS_OF_CELL = 36
"""Items that a cell can give: its list, one for each level of segments, two for ranges with one end, a
block.
"""


LIKELY = 512
"""Pairs that are looked up at once."""


class Rows(NamedTuple):
    """Cells as kernels see them, by addresses."""

    size: int
    first: int
    dimension: int
    rank: int
    word_first: int
    word: int
    event: int


class Scratch(NamedTuple):
    """What is used for one row after the other, by addresses."""

    held: int
    """For each slot the rank that the row has there."""
    seen: int
    """For each filter the last event of several rows that it was found for."""
    marked: int
    """The row's cells that are in pairs."""
    likely: int
    """Pairs of these that may be filed under."""
    items: int
    """What the row meets."""
    chosen: int
    """The rows of bits that are intersected in a block."""


@kernel
def _meet_list(filing: Filing, which: int, items: int, count: int) -> int:
    """Add a list."""
    copy_bytes(items + 4 * ITEM * count, filing.lists + 4 * ITEM * which, 4 * ITEM)
    return count + 1


@kernel
def _meet_likely(filing: Filing, likely: int, size: int, items: int, count: int) -> int:
    """Add the lists of those pairs that are filed under."""
    for place in range(size):
        pair = load_long(likely, place)
        bucket = pair_hash(pair) & (filing.bucket_count - 1)
        at, end = load_int(filing.bucket, bucket), load_int(filing.bucket, bucket + 1)
        last = end
        while at < end:
            middle = (at + end) >> 1
            if load_long(filing.pair, middle) < pair:
                at = middle + 1
            else:
                end = middle
        if at < last and load_long(filing.pair, at) == pair:
            count = _meet_list(filing, filing.pair_lists + at, items, count)
    return count


@kernel
def _meet_pairs(filing: Filing, marked: int, pairs: int, likely: int, items: int, count: int) -> int:
    """Add the lists of pairs of the marked cells."""
    bits = filing.bucket_count * BLOOM_BITS - 1
    found = pairs - pairs
    for one in range(pairs):
        for other in range(one + 1, pairs):
            low, high = load_long(marked, one), load_long(marked, other)
            low, high = min(low, high), max(low, high)
            if load_byte(filing.roles, low) & FIRST and load_byte(filing.roles, high) & SECOND:
                pair = low * filing.cells + high
                bit = pair_hash(pair) & bits
                if (load_long(filing.bloom, bit >> 6) >> (bit & 63)) & 1:
                    store_long(likely, found, pair)
                    found += 1
        # What is likely is looked up all at once: one look-up need not wait for another.
        if found + pairs > LIKELY:
            count = _meet_likely(filing, likely, found, items, count)
            found = 0
    return _meet_likely(filing, likely, found, items, count)


@kernel
def _meet_node(filing: Filing, node: int, items: int, count: int) -> int:
    """Add the list of a cell or a segment, if it has one."""
    bits = load_long(filing.bits, node >> 6)
    if (bits >> (node & 63)) & 1:
        which = load_int(filing.before, node >> 6) + ones(bits & ((1 << (node & 63)) - 1))
        return _meet_list(filing, which, items, count)
    return count


@kernel
def _meet_segments(filing: Filing, dimension: int, rank: int, items: int, count: int) -> int:
    """Add the lists of the segments that a rank is in."""
    width = load_int(filing.value_first, dimension + 1) - load_int(filing.value_first, dimension)
    node, levels = rank + 2 * width + 1, load_long(filing.levels, dimension)
    tree = load_long(filing.tree, dimension)
    while levels:
        if levels & 1:
            count = _meet_node(filing, tree + node, items, count)
        node >>= 1
        levels >>= 1
    return count


@kernel
def _meet_sides(filing: Filing, dimension: int, rank: int, what: int, items: int, count: int) -> int:
    """Add the ranges with one end that a rank is in: the first so many, in the order of their ends."""
    for is_down in range(2):
        if what & (DOWN if is_down else UP):
            side, key = 2 * dimension + is_down, -rank if is_down else rank
            begin, end = load_int(filing.side_sure, side), load_int(filing.side_sure, side + 1)
            start, stop = load_int(filing.side_entry, side), load_int(filing.side_entry, side + 1)
            item = items + 4 * ITEM * count
            store_int(item, 0, filing.side_sure_from + begin)
            store_int(item, 1, filing.side_sure_from + behind(filing.side_sure_bound, begin, end, key))
            store_int(item, 2, filing.side_entry_from + start)
            store_int(item, 3, filing.side_entry_from + behind(filing.side_entry_bound, start, stop, key))
            count += 1
    return count


@kernel
def meet(filing: Filing, rows: Rows, row: int, scratch: Scratch) -> int:
    """Find what the row meets; how many items."""
    begin, end = load_long(rows.first, row), load_long(rows.first, row + 1)
    items, pairs = 0, 0
    # Behind the row's own cells come the paths that are missing and that something is filed for.
    for place in range(begin, end + filing.default_count):
        if place < end:
            dimension, rank = load_int(rows.dimension, place), load_int(rows.rank, place)
            if rank < 0:
                continue
        else:
            dimension, rank = load_int(filing.defaults, place - end), 1
            if load_int(scratch.held, dimension) != 1:
                continue
        what = load_byte(filing.filed, dimension)
        if not what:
            continue
        cell = load_int(filing.value_first, dimension) + (rank >> 1)
        if what & PAIR and rank & 1 and load_byte(filing.roles, cell):
            store_long(scratch.marked, pairs, cell)
            pairs += 1
        if what & POINT and rank & 1:
            items = _meet_node(filing, cell, scratch.items, items)
        if what & TREE:
            items = _meet_segments(filing, dimension, rank, scratch.items, items)
        if what & (UP | DOWN):
            items = _meet_sides(filing, dimension, rank, what, scratch.items, items)
        if what & WIDE:
            item = scratch.items + 4 * ITEM * items
            for number in range(ITEM - 1):
                store_int(item, number, 0)
            store_int(item, ITEM - 1, load_int(filing.dimension_block, dimension))
            items += 1
    for place in range(load_long(rows.word_first, row), load_long(rows.word_first, row + 1)):
        cell = load_int(filing.value_first, filing.dimensions + load_int(rows.word, place))
        items = _meet_node(filing, cell, scratch.items, items)
    return _meet_pairs(filing, scratch.marked, pairs, scratch.likely, scratch.items, items)
