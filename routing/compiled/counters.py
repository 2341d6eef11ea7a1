"""Counting in compiled loops: from rows of cells to the filters that satisfied their interfaces.

A row's cells lead to runs of filters, one for each constraint that is satisfied, or for several that are
next to each other. Each filter in a run whose interface is not done is counted. A run is taken in blocks: who
is open in a block is found first, without branches, and then counted; so filters of an interface that is
found within the block may still be counted in it. A counter holds, beside the count, the row that it is of:
one of another row is begun anew, so nothing has to be cleared. The interfaces that are done are a bit set,
which begins with those that are closed and those that the selectivity table rules out. When all are done,
the rest of the row is not looked at.

Filters that are found go to `out`; where there is no more `room` they are counted only, and the row is done
again with more.

Cost: some ns for each filter in a run; for each row, interfaces / 8 bytes for the bit set, and as much again
for each name that it lacks.
"""

from typing import NamedTuple

from branchline.routing.compiled.blocks import ones
from branchline.routing.compiled.freshness import fresh
from branchline.routing.compiled.kernels import kernel
from branchline.routing.compiled.memory import (
    behind,
    load_byte,
    load_int,
    load_long,
    store_byte,
    store_int,
    store_long,
)


class Runs(NamedTuple):
    """Which filters each cell leads to, by addresses."""

    filters: int
    """The filters without constraints, then those of all constraints, run by run."""
    value_first: int
    """For each dimension its first cell."""
    point_at: int
    """For each cell where the filters are that ask for the value; one more at the end."""
    word_at: int
    """The same for each word."""
    side_first: int
    """Twice a dimension ranges that go up, and plus one those that go down: where their ends begin."""
    side_bound: int
    side_at: int
    """The ends of such ranges, in order, and where the filters of each are; one more at the end."""
    tree: int
    levels: int
    bits: int
    before: int
    """The segments of each dimension, as `segments.in_nodes` makes them."""
    list_at: int
    """For each segment that has ranges, where these are; one more at the end."""
    listed: int
    range_at: int
    """Ranges by number, and where the filters of each are; one more at the end."""
    defaults: int
    default_count: int
    """Dimensions of presence of which something holds where the path is missing."""
    everything_count: int


class Interfaces(NamedTuple):
    """Whose filters they are, and what rules them out; by addresses."""

    size: int
    words: int
    """Numbers of 64 bits in a bit set of interfaces."""
    of_filter: int
    """For each filter two numbers: its interface, and how many constraints it has."""
    closed: int
    """The interfaces that are not wanted, as a bit set; 0 for none."""
    rounds: int
    round_path: int
    round_bits: int
    """For each round of the selectivity table a path, and the interfaces that need it."""


class Met(NamedTuple):
    """What rows have, by addresses."""

    size: int
    first: int
    dimension: int
    rank: int
    word_first: int
    word: int
    path_first: int
    path: int
    """The paths of each row's entries."""


class Work(NamedTuple):
    """What is used for one row after the other, by addresses."""

    done: int
    counter: int
    has_path: int
    """For each path the last row that has it."""
    has_dimension: int
    block: int
    """The filters of a block that are counted."""
    tally: int
    """What is known of the row that is being done: interfaces left, filters found, counted, found early."""


BLOCK = 128
"""Filters of a run that are looked at together."""

LEFT, FOUND, COUNTED, EARLY, TALLIES = range(5)
EXCLUDED = LEFT
"""For each row, what it took: interfaces excluded in place of those left; and the others."""


@kernel
def _found(of: Interfaces, work: Work, filter_: int, more: bool, out: int, room: int) -> bool:
    """Note that a filter matches, unless its interface was found just before; whether one is left."""
    interface = load_int(of.of_filter, 2 * filter_)
    bits = load_byte(work.done, interface >> 3)
    left = load_long(work.tally, LEFT)
    if not (bits >> (interface & 7)) & 1:
        store_byte(work.done, interface >> 3, bits | 1 << (interface & 7))
        found = load_long(work.tally, FOUND)
        if found < room:
            store_int(out, found, filter_)
        store_long(work.tally, FOUND, found + 1)
        if more:
            store_long(work.tally, EARLY, load_long(work.tally, EARLY) + 1)
        left -= 1
        store_long(work.tally, LEFT, left)
    return left > 0


@kernel
def _count_run(
    runs: Runs, of: Interfaces, work: Work, begin: int, end: int, base: int, more: bool, out: int, room: int
) -> bool:
    """Count the filters of a run; whether an interface is left."""
    while begin < end:
        last = min(end, begin + BLOCK)
        size = begin - begin
        # First those whose interfaces are open, without a branch: which they are nobody could foretell.
        for place in range(begin, last):
            filter_ = load_int(runs.filters, place)
            interface = load_int(of.of_filter, 2 * filter_)
            store_int(work.block, size, filter_)
            size += 1 - ((load_byte(work.done, interface >> 3) >> (interface & 7)) & 1)
        store_long(work.tally, COUNTED, load_long(work.tally, COUNTED) + size)
        for place in range(size):
            filter_ = load_int(work.block, place)
            count = max(load_int(work.counter, filter_), base) + 1
            store_int(work.counter, filter_, count)
            if count - base == load_int(of.of_filter, 2 * filter_ + 1) and not _found(
                of, work, filter_, more, out, room
            ):
                return False
        begin = last
    return True


@kernel
def _count_cell(
    runs: Runs,
    of: Interfaces,
    work: Work,
    dimension: int,
    rank: int,
    base: int,
    more: bool,
    out: int,
    room: int,
) -> bool:
    """Count the filters of all constraints that hold at a rank; whether an interface is left."""
    first = load_int(runs.value_first, dimension)
    if rank & 1:
        cell = first + (rank >> 1)
        begin, end = load_int(runs.point_at, cell), load_int(runs.point_at, cell + 1)
        if begin < end and not _count_run(runs, of, work, begin, end, base, more, out, room):
            return False
    for is_down in range(2):
        side, key = 2 * dimension + is_down, -rank if is_down else rank
        low, high = load_int(runs.side_first, side), load_int(runs.side_first, side + 1)
        if low < high:
            begin, end = (
                load_int(runs.side_at, low),
                load_int(runs.side_at, behind(runs.side_bound, low, high, key)),
            )
            if begin < end and not _count_run(runs, of, work, begin, end, base, more, out, room):
                return False
    levels, tree = load_long(runs.levels, dimension), load_long(runs.tree, dimension)
    node = rank + 2 * (load_int(runs.value_first, dimension + 1) - first) + 1
    while levels:
        if levels & 1:
            at = tree + node
            bits = load_long(runs.bits, at >> 6)
            if (bits >> (at & 63)) & 1:
                which = load_int(runs.before, at >> 6) + ones(bits & ((1 << (at & 63)) - 1))
                for place in range(load_int(runs.list_at, which), load_int(runs.list_at, which + 1)):
                    each = load_int(runs.listed, place)
                    begin, end = load_int(runs.range_at, each), load_int(runs.range_at, each + 1)
                    if not _count_run(runs, of, work, begin, end, base, more, out, room):
                        return False
        node >>= 1
        levels >>= 1
    return True


@kernel
def _begin(of: Interfaces, met: Met, row: int, serial: int, work: Work) -> None:
    """Rule out what can be, and see how many interfaces are left."""
    for word in range(of.words):
        store_long(work.done, word, load_long(of.closed, word) if of.closed else 0)
    if of.rounds:
        for place in range(load_long(met.path_first, row), load_long(met.path_first, row + 1)):
            store_int(work.has_path, load_int(met.path, place), serial)
        for each in range(of.rounds):
            if load_int(work.has_path, load_int(of.round_path, each)) != serial:
                needing = of.round_bits + 8 * of.words * each
                for word in range(of.words):
                    store_long(work.done, word, load_long(work.done, word) | load_long(needing, word))
    left = of.size
    if of.closed or of.rounds:
        for word in range(of.words):
            bits = load_long(work.done, word)
            left -= ones(bits & 0x7FFFFFFFFFFFFFFF) + (bits < 0)
    for place in range(TALLIES):
        store_long(work.tally, place, 0)
    store_long(work.tally, LEFT, left)


@kernel
def _count_row(
    runs: Runs, of: Interfaces, met: Met, row: int, serial: int, base: int, work: Work, out: int, room: int
) -> bool:
    """Count all that a row satisfies, until nobody is left; whether somebody is."""
    begin, end = load_long(met.first, row), load_long(met.first, row + 1)
    words, words_end = load_long(met.word_first, row), load_long(met.word_first, row + 1)
    # A filter without constraints has the size 1, for this look at it.
    more = begin < end or words < words_end
    is_left = _count_run(runs, of, work, 0, runs.everything_count, base, more, out, room)
    store_long(work.tally, COUNTED, 0)
    if not is_left:
        return False
    for place in range(begin, end):
        dimension, rank = load_int(met.dimension, place), load_int(met.rank, place)
        if runs.default_count:
            store_int(work.has_dimension, dimension, serial)
        more = place + 1 < end or words < words_end
        if rank >= 0 and not _count_cell(runs, of, work, dimension, rank, base, more, out, room):
            return False
    for place in range(words, words_end):
        word = load_int(met.word, place)
        at, behind_it = load_int(runs.word_at, word), load_int(runs.word_at, word + 1)
        more = place + 1 < words_end
        if not _count_run(runs, of, work, at, behind_it, base, more, out, room):
            return False
    for place in range(runs.default_count):
        dimension = load_int(runs.defaults, place)
        if load_int(work.has_dimension, dimension) != serial and not _count_cell(
            runs, of, work, dimension, 1, base, False, out, room
        ):
            return False
    return True


@fresh
@kernel
def count_rows(
    runs: Runs,
    of: Interfaces,
    met: Met,
    work: Work,
    row: int,
    shift: int,
    first: int,
    took: int,
    out: int,
    room: int,
) -> int:
    """Match rows from this one on, until one finds no room; the next row."""
    while row < met.size:
        serial = row + 1
        start = load_long(first, row)
        _begin(of, met, row, serial, work)
        excluded = of.size - load_long(work.tally, LEFT)
        if excluded < of.size:
            _count_row(runs, of, met, row, serial, serial << shift, work, out + 4 * start, room - start)
        found = load_long(work.tally, FOUND)
        if start + found > room:
            return row
        store_long(first, row + 1, start + found)
        store_long(took, TALLIES * row, excluded)
        for each in range(FOUND, TALLIES):
            store_long(took, TALLIES * row + each, load_long(work.tally, each))
        row += 1
    return row
