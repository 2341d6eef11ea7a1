"""Matching rows of cells against what is filed, in compiled loops.

A row is laid out in one array of slots (`held`), which is put back to what it was afterwards: no matter how
many dimensions there are, only those that the row has are visited, and those of presence under which
something is filed for what is missing. First the lists that the row meets are found, then all of them are
gone through: so the processor fetches several at a time. Filters that are found go to `out`; where there is
no more `room` they are counted only, and the event is matched again with more.

Cost: a few ns for each filter filed under what the row has; those without a rest are copied.
"""

from typing import NamedTuple

from branchline.routing.compiled.blocks import Blocks, of_block, ones
from branchline.routing.compiled.filing import (
    BLOOM_BITS,
    DOWN,
    ENTRY,
    FIRST,
    PAIR,
    POINT,
    SECOND,
    TREE,
    UP,
    WIDE,
    Filing,
    pair_hash,
)
from branchline.routing.compiled.freshness import fresh
from branchline.routing.compiled.kernels import kernel
from branchline.routing.compiled.memory import (
    copy_bytes,
    load_byte,
    load_int,
    load_long,
    store_int,
    store_long,
)

ITEM = 4
"""Numbers in an item, as in a list: filters without a rest from one to before another, and entries; or a
block.
"""
ITEMS_OF_CELL = 36
"""Items that a cell can give: its list, one for each level of segments, two for ranges with one end, a
block.
"""


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
    items: int
    """What the row meets."""
    chosen: int
    """The rows of bits that are intersected in a block."""


@kernel
def _hold(filing: Filing, rows: Rows, row: int, held: int) -> None:
    """Lay out the row."""
    for place in range(load_long(rows.first, row), load_long(rows.first, row + 1)):
        rank = load_int(rows.rank, place)
        if rank >= 0:
            store_int(held, load_int(rows.dimension, place), rank)
    for place in range(load_long(rows.word_first, row), load_long(rows.word_first, row + 1)):
        store_int(held, filing.dimensions + load_int(rows.word, place), 1)


@kernel
def _meet_list(filing: Filing, which: int, items: int, count: int) -> int:
    """Add a list."""
    copy_bytes(items + 4 * ITEM * count, filing.lists + 4 * ITEM * which, 4 * ITEM)
    return count + 1


@kernel
def _meet_pairs(filing: Filing, marked: int, pairs: int, items: int, count: int) -> int:
    """Add the lists of pairs of the marked cells."""
    buckets = filing.bucket_count
    for one in range(pairs):
        for other in range(one + 1, pairs):
            low, high = load_long(marked, one), load_long(marked, other)
            low, high = min(low, high), max(low, high)
            if not (load_byte(filing.roles, low) & FIRST and load_byte(filing.roles, high) & SECOND):
                continue
            pair = low * filing.cells + high
            hashed = pair_hash(pair)
            bit = hashed & (buckets * BLOOM_BITS - 1)
            if not (load_long(filing.bloom, bit >> 6) >> (bit & 63)) & 1:
                continue
            bucket = hashed & (buckets - 1)
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
def _behind(bound: int, low: int, high: int, key: int) -> int:
    """The first place whose bound is above the key."""
    while low < high:
        middle = (low + high) >> 1
        if load_int(bound, middle) <= key:
            low = middle + 1
        else:
            high = middle
    return low


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
            store_int(item, 1, filing.side_sure_from + _behind(filing.side_sure_bound, begin, end, key))
            store_int(item, 2, filing.side_entry_from + start)
            store_int(item, 3, filing.side_entry_from + _behind(filing.side_entry_bound, start, stop, key))
            count += 1
    return count


@kernel
def _meet(filing: Filing, rows: Rows, row: int, scratch: Scratch) -> int:
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
    return _meet_pairs(filing, scratch.marked, pairs, scratch.items, items)


@kernel
def _copy(rows: int, size: int, out: int, room: int, count: int) -> int:
    """Add filters that need no check."""
    if count + size <= room:
        copy_bytes(out + 4 * count, rows, 4 * size)
    return count + size


@kernel
def _go_through(
    filing: Filing, blocks: Blocks, scratch: Scratch, items: int, out: int, room: int, count: int
) -> int:
    """Add the filters of the items from `count` on; how many there are then, room or not."""
    if filing.everything_count:
        count = _copy(filing.everything, filing.everything_count, out, room, count)
    held = scratch.held
    for place in range(items):
        item = scratch.items + 4 * ITEM * place
        begin, end = load_int(item, 0), load_int(item, 1)
        if end > begin:
            count = _copy(filing.sure + 4 * begin, end - begin, out, room, count)
        if load_int(item, 3) < 0:
            count = of_block(blocks, ~load_int(item, 3), held, scratch.chosen, out, room, count)
            continue
        entry = filing.entries + 4 * ENTRY * load_int(item, 2)
        for _ in range(load_int(item, 3) - load_int(item, 2)):
            rank = load_int(held, load_int(entry, 1))
            if load_int(entry, 2) <= rank <= load_int(entry, 3):
                check, left = filing.checks + 12 * load_int(entry, 4), load_int(entry, 5)
                while left:
                    rank = load_int(held, load_int(check, 0))
                    if rank < load_int(check, 1) or rank > load_int(check, 2):
                        break
                    check += 12
                    left -= 1
                if not left:
                    if count < room:
                        store_int(out, count, load_int(entry, 0))
                    count += 1
            entry += 4 * ENTRY
    return count


@kernel
def _let_go(filing: Filing, rows: Rows, row: int, held: int) -> None:
    """Put back what the row laid out."""
    for place in range(load_long(rows.first, row), load_long(rows.first, row + 1)):
        dimension = load_int(rows.dimension, place)
        store_int(held, dimension, load_int(filing.blank, dimension))
    for place in range(load_long(rows.word_first, row), load_long(rows.word_first, row + 1)):
        store_int(held, filing.dimensions + load_int(rows.word, place), -1)


@kernel
def _once(seen: int, event: int, out: int, start: int, end: int) -> int:
    """Leave each filter that was found there once; where they end then."""
    kept = start
    for place in range(start, end):
        found = load_int(out, place)
        if load_int(seen, found) != event:
            store_int(seen, found, event)
            store_int(out, kept, found)
            kept += 1
    return kept


@fresh
@kernel
def match_rows(
    filing: Filing,
    blocks: Blocks,
    rows: Rows,
    scratch: Scratch,
    events: int,
    row: int,
    event: int,
    first: int,
    out: int,
    room: int,
) -> tuple[int, int, int]:
    """Match from this event on until filters find no room: the next row and event, and the room wanted."""
    while event < events:
        begun, start = row, load_long(first, event)
        count = start
        while row < rows.size and load_int(rows.event, row) <= event:
            _hold(filing, rows, row, scratch.held)
            items = _meet(filing, rows, row, scratch)
            count = _go_through(filing, blocks, scratch, items, out, room, count)
            _let_go(filing, rows, row, scratch.held)
            row += 1
        if count > room:
            return begun, event, count
        if row - begun > 1:
            count = _once(scratch.seen, event, out, start, count)
        event += 1
        store_long(first, event, count)
    return row, event, 0
