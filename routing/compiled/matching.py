"""Matching rows of cells against what is filed, in compiled loops.

A row is laid out in one array of slots (`held`), which is put back to what it was afterwards: no matter how
many dimensions there are, only those that the row has are visited, and those of presence under which
something is filed for what is missing. First the lists that the row meets are found, then all of them are
gone through: so the processor fetches several at a time. Filters that are found go to `out`; where there is
no more `room` they are counted only, and the event is matched again with more.

Cost: a few ns for each filter filed under what the row has; those without a rest are copied.
"""

from branchline.routing.compiled.blocks import Blocks, of_block
from branchline.routing.compiled.filing import ENTRY, Filing
from branchline.routing.compiled.freshness import fresh
from branchline.routing.compiled.kernels import kernel
from branchline.routing.compiled.meeting import ITEM, Rows, Scratch, meet
from branchline.routing.compiled.memory import copy_bytes, load_int, load_long, store_int, store_long


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
            items = meet(filing, rows, row, scratch)
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
