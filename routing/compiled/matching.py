"""Matching rows of cells against what is filed, in compiled loops.

A row is laid out in one array of slots (`held`), which is put back to what it was afterwards: no matter how
many dimensions there are, only those that the row has are visited, and those of presence under which
something is filed for what is missing. Filters that are found go to `out`; where there is no more `room`
they are counted only, and the event is matched again with more.

Cost: a few ns for each filter filed under what the row has; those without a rest are copied.
"""

from typing import NamedTuple

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
    Filing,
    pair_hash,
)
from branchline.routing.compiled.kernels import kernel
from branchline.routing.compiled.memory import (
    copy_bytes,
    load_byte,
    load_int,
    load_long,
    store_int,
    store_long,
)


class Rows(NamedTuple):
    """Cells as kernels see them, by addresses."""

    size: int
    first: int
    dimension: int
    rank: int
    word_first: int
    word: int
    event: int


@kernel
def match_rows(
    filing: Filing,
    rows: Rows,
    events: int,
    held: int,
    seen: int,
    marked: int,
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
            count = _match_row(filing, rows, row, held, marked, out, room, count)
            row += 1
        if count > room:
            return begun, event, count
        if row - begun > 1:
            kept = start
            for place in range(start, count):
                found = load_int(out, place)
                if load_int(seen, found) != event:
                    store_int(seen, found, event)
                    store_int(out, kept, found)
                    kept += 1
            count = kept
        event += 1
        store_long(first, event, count)
    return row, event, 0


@kernel
def _match_row(
    filing: Filing, rows: Rows, row: int, held: int, marked: int, out: int, room: int, count: int
) -> int:
    """Add what the row matches from `count` on; how many there are then, room or not."""
    begin, end = load_long(rows.first, row), load_long(rows.first, row + 1)
    begin_words, end_words = load_long(rows.word_first, row), load_long(rows.word_first, row + 1)
    for place in range(begin, end):
        rank = load_int(rows.rank, place)
        if rank >= 0:
            store_int(held, load_int(rows.dimension, place), rank)
    for place in range(begin_words, end_words):
        store_int(held, filing.dimensions + load_int(rows.word, place), 1)

    count = _take(filing.everything, 0, filing.everything_count, out, room, count)
    pairs = 0
    for place in range(begin, end):
        dimension, rank = load_int(rows.dimension, place), load_int(rows.rank, place)
        if rank < 0:
            continue
        what = load_byte(filing.filed, dimension)
        if what & ~PAIR:
            count = _filed(filing, dimension, rank, what, held, out, room, count)
        if what & PAIR and rank & 1:
            cell = load_int(filing.value_first, dimension) + (rank >> 1)
            if load_byte(filing.roles, cell):
                store_long(marked, pairs, cell)
                pairs += 1
    if pairs > 1:
        count = _of_pairs(filing, marked, pairs, held, out, room, count)
    for place in range(begin_words, end_words):
        node = load_int(filing.value_first, filing.dimensions + load_int(rows.word, place))
        count = _at_node(filing, node, held, out, room, count)
    for place in range(filing.default_count):
        dimension = load_int(filing.defaults, place)
        # A path that is there has another rank than this one.
        if load_int(held, dimension) == 1:
            count = _filed(filing, dimension, 1, load_byte(filing.filed, dimension), held, out, room, count)

    for place in range(begin, end):
        dimension = load_int(rows.dimension, place)
        store_int(held, dimension, load_int(filing.blank, dimension))
    for place in range(begin_words, end_words):
        store_int(held, filing.dimensions + load_int(rows.word, place), -1)
    return count


@kernel
def _filed(
    filing: Filing, dimension: int, rank: int, what: int, held: int, out: int, room: int, count: int
) -> int:
    """Add what is filed under a dimension and holds at the rank."""
    first = load_int(filing.value_first, dimension)
    if what & POINT and rank & 1:
        count = _at_node(filing, first + (rank >> 1), held, out, room, count)
    if what & TREE:
        node = rank + 2 * (load_int(filing.value_first, dimension + 1) - first) + 1
        levels, tree = load_long(filing.levels, dimension), load_long(filing.tree, dimension)
        while levels:
            if levels & 1:
                count = _at_node(filing, tree + node, held, out, room, count)
            node >>= 1
            levels >>= 1
    if what & UP:
        count = _of_side(filing, 2 * dimension, rank, held, out, room, count)
    if what & DOWN:
        count = _of_side(filing, 2 * dimension + 1, -rank, held, out, room, count)
    return count


@kernel
def _at_node(filing: Filing, node: int, held: int, out: int, room: int, count: int) -> int:
    """Add what is in the list of a cell or a segment, if it has one."""
    bits = load_long(filing.bits, node >> 6)
    if not (bits >> (node & 63)) & 1:
        return count
    which = load_int(filing.before, node >> 6) + _ones(bits & ((1 << (node & 63)) - 1))
    return _of_list(filing, which, held, out, room, count)


@kernel
def _ones(bits: int) -> int:
    """How many bits are set; the highest is not."""
    bits -= (bits >> 1) & 0x5555555555555555
    bits = (bits & 0x3333333333333333) + ((bits >> 2) & 0x3333333333333333)
    bits = (bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0F
    return (bits * 0x0101010101010101) >> 56


@kernel
def _take(rows: int, begin: int, end: int, out: int, room: int, count: int) -> int:
    """Add filters that need no check."""
    if end > begin and count + end - begin <= room:
        copy_bytes(out + 4 * count, rows + 4 * begin, 4 * (end - begin))
    return count + end - begin


@kernel
def _of_list(filing: Filing, which: int, held: int, out: int, room: int, count: int) -> int:
    begin, end = load_int(filing.sure_at, which), load_int(filing.sure_at, which + 1)
    count = _take(filing.sure, begin, end, out, room, count)
    begin, end = load_int(filing.entry_at, which), load_int(filing.entry_at, which + 1)
    return _checked(filing, filing.entries, begin, end, held, out, room, count)


@kernel
def _of_side(filing: Filing, side: int, key: int, held: int, out: int, room: int, count: int) -> int:
    begin, end = load_int(filing.side_sure_at, side), load_int(filing.side_sure_at, side + 1)
    end = _behind(filing.side_sure_bound, begin, end, key)
    count = _take(filing.side_sure, begin, end, out, room, count)
    begin, end = load_int(filing.side_entry_at, side), load_int(filing.side_entry_at, side + 1)
    end = _behind(filing.side_entry_bound, begin, end, key)
    return _checked(filing, filing.side_entries, begin, end, held, out, room, count)


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
def _checked(
    filing: Filing, entries: int, begin: int, end: int, held: int, out: int, room: int, count: int
) -> int:
    """Add the filters of entries whose rest holds."""
    for place in range(begin, end):
        entry = entries + 4 * ENTRY * place
        rank = load_int(held, load_int(entry, 1))
        if rank < load_int(entry, 2) or rank > load_int(entry, 3):
            continue
        check = filing.checks + 12 * load_int(entry, 4)
        left = load_int(entry, 5)
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
    return count


@kernel
def _of_pairs(filing: Filing, marked: int, pairs: int, held: int, out: int, room: int, count: int) -> int:
    """Add what is filed under two of the marked cells."""
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
                count = _of_list(filing, filing.pair_lists + at, held, out, room, count)
    return count
