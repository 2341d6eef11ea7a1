"""Where filters are filed: each under what it takes most to satisfy, so that few are looked at in vain.

A filter is filed once, under its *access*: one of its constraints, or two that are points. What the access
does not say is left to be checked (the *rest*). How likely a constraint holds is guessed from the filters
alone: a dimension is as frequent in events as in filters, and so are values. The least likely constraint is
the access; where more than LIST_MAX filters would share a point, those that have a second one are filed
under both.

    points and words    a list for each cell
    pairs of points     a list for each pair, found by a hash; a Bloom filter in front of it says no most
    often ranges with one end in the order of that end: those that hold are the first so many, found by
    bisection other ranges        in lists along a segment tree over ranks: each range is in a few, and a
    rank meets one of them without constraints in one list

Lists of cells and segments are numbered; a bit for each cell and segment says whether it has one, and
counting bits says which. In a list, filters without a rest come first, as mere numbers: they are copied.
The others have their first check in place.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from branchline.routing.compiled.blocks import BLOCK_MIN, Building
from branchline.routing.compiled.bounds import Ranked
from branchline.routing.compiled.kernels import kernel
from branchline.routing.compiled.memory import Ints
from branchline.routing.compiled.texts import Longs
from branchline.routing.dimensions import Axis

WIDE_SHARE = 1 / 16
"""From this part of a dimension's values on a range is wide: under segments it would be found too often."""

LIST_MAX = 8
"""From so many filters under one point on, finding a pair costs less than looking at them all."""

POINT, TREE, UP, DOWN, PAIR, WIDE = 1, 2, 4, 8, 16, 32
"""What is filed under a dimension."""

FIRST, SECOND = 1, 2
"""What a cell is in pairs: the lower, the higher."""

ENTRY = 6
"""Numbers in an entry: the filter; slot, low and high of its first check; where the others are, and how
many.
"""

BLOOM_BITS = 8
"""Bits of the Bloom filter for each bucket of pairs."""

_MIX = -7046029254386353131
_LEVELS = 64
"""Segments that a range can be in: two for each level of a tree over less than 2^32 ranks."""

Array = NDArray[Any]
Flags = NDArray[np.uint8]
Doubles = NDArray[np.float64]


class Filing(NamedTuple):
    """All that is filed, as kernels see it; arrays by their addresses."""

    dimensions: int
    cells: int
    value_first: int
    """For each slot its first cell; a word has one. One more at the end."""
    filed: int
    """What is filed under each dimension."""
    blank: int
    """What each slot holds where a row has nothing for it: 1 on presence, where missing is a kind, else
    -1.
    """
    defaults: int
    default_count: int
    """Dimensions of presence under which something is filed that holds where the path is missing."""
    everything: int
    everything_count: int
    """The filters without constraints."""
    tree: int
    """For each dimension the first node of its segments; cells come before all of them."""
    levels: int
    """For each dimension a bit for each level of its segments that has lists."""
    bits: int
    before: int
    """For each 64 nodes, which have a list and how many lists come before them."""
    lists: int
    """For each list four numbers: its filters without a rest, from one to before another, and its entries;
    or, below zero, the block of the filters that have a rest.
    """
    sure: int
    """Filters without a rest, list by list, then those of ranges with one end."""
    entries: int
    """The others, in the same order, ENTRY numbers each."""
    side_sure: int
    side_sure_bound: int
    side_entry: int
    side_entry_bound: int
    """Twice a dimension ranges with one end that go up, and plus one those that go down: where they begin,
    counted from the first that is filed so, and their ends; of those without a rest, and of the others.
    """
    dimension_block: int
    """For each dimension the block of ranges that are filed under it, as in lists."""
    side_sure_from: int
    side_entry_from: int
    """Where the first that is filed so stands."""
    roles: int
    bloom: int
    bucket: int
    bucket_count: int
    """For each bucket of pairs the first of them; one more at the end."""
    pair: int
    pair_lists: int
    """The two cells of each pair as one number, sorted in each bucket. Their lists come last, in this
    order.
    """
    checks: int
    """Constraints: slot, low and high; those of one filter together, its rest first."""


STORED: dict[str, type[np.generic]] = {
    "value_first": np.int32,
    "filed": np.uint8,
    "blank": np.int32,
    "defaults": np.int32,
    "everything": np.int32,
    "tree": np.int64,
    "levels": np.int64,
    "bits": np.int64,
    "before": np.int32,
    "lists": np.int32,
    "sure": np.int32,
    "entries": np.int32,
    "side_sure": np.int32,
    "side_sure_bound": np.int32,
    "side_entry": np.int32,
    "side_entry_bound": np.int32,
    "dimension_block": np.int32,
    "roles": np.uint8,
    "bloom": np.int64,
    "bucket": np.int32,
    "pair": np.int64,
    "checks": np.int32,
}
"""The arrays that the filing is made of, and what they are of."""


def filed(ranked: Ranked) -> dict[str, Array]:
    """The arrays of the filing."""
    bounds, first = ranked.bounds, ranked.first
    dimensions, slots = bounds.dimensions, bounds.slots
    value_first = slot_cells(ranked)
    cells = int(value_first[-1])
    axes = bounds.axes[:dimensions]
    is_presence = np.zeros(slots, np.uint8)
    is_presence[:dimensions] = axes == int(Axis.PRESENCE)

    chances, names = np.empty(ranked.slot.size), np.bincount(ranked.slot, minlength=slots)
    _guess(
        first,
        ranked.slot,
        ranked.low,
        ranked.high,
        value_first,
        is_presence,
        names,
        np.zeros(cells + 1),
        chances,
    )
    access, second = np.full(len(first) - 1, -1, np.int32), np.full(len(first) - 1, -1, np.int32)
    tally = np.zeros(cells + 1, np.int32)
    _choose(
        first,
        ranked.slot,
        ranked.low,
        ranked.high,
        chances,
        value_first,
        dimensions,
        LIST_MAX,
        tally,
        access,
        second,
    )
    is_direct = (axes <= int(Axis.BOOLEAN)).astype(np.int32)
    top = np.append(2 * np.diff(value_first[: dimensions + 1]) - is_direct, 0).astype(np.int32)
    checks, how = np.empty((ranked.slot.size, 3), np.int32), np.zeros(len(first) - 1, np.uint8)
    order = np.empty(ranked.slot.size + 1, np.int32)
    _arrange(
        first,
        ranked.slot,
        ranked.low,
        ranked.high,
        chances,
        access,
        second,
        top,
        is_direct,
        order,
        checks,
        how,
    )
    rest = np.diff(first) - np.where(how == PAIR, 2, 1).astype(np.int32)
    last = first[1:] - 1

    made: dict[str, Array] = {
        "value_first": value_first,
        "blank": np.where(is_presence, 1, -1).astype(np.int32),
        "everything": np.flatnonzero(how == 0).astype(np.int32),
        "checks": checks,
    }
    if len(chances):
        _find_wide(how, rest, last, checks, chances[access] * (len(first) - 1), names)
    has = np.zeros(slots, np.uint8)
    for what in (POINT, TREE, UP, DOWN, WIDE):
        has[checks[last[how == what], 0]] |= what
    for back in (0, 1):
        has[checks[last[how == PAIR] - back, 0]] |= PAIR
    made["filed"] = has[:dimensions]
    alone = checks[last[(how != 0) & (how != PAIR)]]
    made["defaults"] = np.unique(alone[is_presence[alone[:, 0]].astype(np.bool_) & (alone[:, 1] <= 1), 0])

    node, row = _nodes(made, last, checks, how, value_first, dimensions)
    pair, pair_row, pair_starts = _pairs(made, last, checks, how, value_first, cells)
    side, side_row = _sides(made, last, checks, how, rest)
    starts = np.flatnonzero(np.diff(node, prepend=-1))
    at = np.concatenate([starts, pair_starts + node.size, [node.size + pair.size]])
    building = Building(first, checks)
    row, ends = _divided(building, at, np.concatenate([row, pair_row]), rest, starts.size)
    has_rest = rest[side_row] > 0
    made["lists"] = ends
    made["sure"] = np.concatenate([row[rest[row] == 0], side_row[~has_rest]])
    made["entries"] = _entries(np.concatenate([row[rest[row] > 0], side_row[has_rest]]), rest, first, checks)
    sides = np.arange(2 * dimensions + 1)
    made["side_sure"] = np.searchsorted(side[~has_rest], sides).astype(np.int32)
    made["side_entry"] = np.searchsorted(side[has_rest], sides).astype(np.int32)
    made["dimension_block"] = np.zeros(dimensions, np.int32)
    wide = np.flatnonzero(how == WIDE).astype(np.int32)
    for dimension in np.unique(checks[last[wide], 0]).tolist():
        mine = wide[checks[last[wide], 0] == dimension]
        made["dimension_block"][dimension] = ~building.add(mine, 0)
    return made | building.arrays()


def _find_wide(how: Flags, rest: Ints, last: Ints, checks: Ints, chances: Doubles, names: Longs) -> None:
    """Say of which ranges a block is to be made: of those that hold for many values, where they are many."""
    ranges = np.flatnonzero(np.isin(how, (TREE, UP, DOWN)) & (rest > 0))
    slot = checks[last[ranges], 0]
    is_wide = chances[ranges] > WIDE_SHARE * names[slot]
    counts = np.bincount(slot[is_wide], minlength=names.size)
    how[ranges[is_wide & (counts[slot] >= BLOCK_MIN)]] = WIDE


def _divided(building: Building, at: Longs, row: Ints, rest: Ints, singles: int) -> tuple[Ints, Ints]:
    """Make blocks of what is long in lists: the filters that are left in lists, and where lists begin and
    end.
    """
    has_rest = rest[row] > 0
    counts = np.diff(np.concatenate([[0], np.cumsum(has_rest)])[at])
    made = np.zeros(counts.size, np.int32)
    gone = np.zeros(row.size, np.bool_)
    for which in np.flatnonzero(counts >= BLOCK_MIN).tolist():
        mine = np.arange(at[which], at[which + 1])
        mine = mine[has_rest[mine]]
        made[which] = ~building.add(row[mine], 1 if which < singles else 2)
        gone[mine] = True
    sure_at = np.concatenate([[0], np.cumsum(~has_rest)])[at]
    entry_at = np.concatenate([[0], np.cumsum(has_rest & ~gone)])[at]
    lists = np.stack(
        [sure_at[:-1], sure_at[1:], entry_at[:-1], np.where(made < 0, made, entry_at[1:])], axis=1
    )
    return row[~gone], lists.astype(np.int32)


def slot_cells(ranked: Ranked) -> Ints:
    """For each slot its first cell; one more at the end."""
    words = ranked.bounds.marks.words + np.arange(ranked.bounds.words + 1, dtype=np.int32)
    return np.concatenate([ranked.bounds.value_first[: ranked.bounds.dimensions], words]).astype(np.int32)


def _nodes(
    made: dict[str, Array],
    last: Ints,
    checks: Ints,
    how: Flags,
    value_first: Ints,
    dimensions: int,
) -> tuple[Longs, Ints]:
    """File under cells and segments: their nodes in order, with the filters."""
    widths = np.where(
        made["filed"] & TREE, 2 * (2 * np.diff(value_first[: dimensions + 1]).astype(np.int64) + 1), 0
    )
    tree = np.cumsum(np.append(value_first[-1], widths))
    single = np.flatnonzero(how == POINT).astype(np.int32)
    several = np.flatnonzero(how == TREE).astype(np.int32)
    node, row = np.empty(several.size * _LEVELS, np.int64), np.empty(several.size * _LEVELS, np.int32)
    levels = np.zeros(dimensions, np.int64)
    count = _divide(several, last, checks, value_first, tree, node, row, levels)
    points = checks[last[single]]
    node = np.concatenate([value_first[points[:, 0]] + (points[:, 1] >> 1), node[:count]])
    row = np.concatenate([single, row[:count]])
    order = np.argsort(node, kind="stable")
    node, row = node[order], row[order]
    used = np.unique(node)
    bits = np.zeros((int(tree[-1]) >> 6) + 1, np.uint64)
    np.bitwise_or.at(bits, used >> 6, np.uint64(1) << (used & 63).astype(np.uint64))
    before = np.zeros(bits.size, np.int32)
    before[1:] = np.cumsum(np.bitwise_count(bits[:-1]))
    made |= {"tree": tree[:-1], "levels": levels, "bits": bits.view(np.int64), "before": before}
    return node, row


def _pairs(
    made: dict[str, Array], last: Ints, checks: Ints, how: Flags, value_first: Ints, cells: int
) -> tuple[Longs, Ints, Longs]:
    """File under pairs of cells: the pairs by their buckets, with the filters, and where each pair begins."""
    row = np.flatnonzero(how == PAIR).astype(np.int32)
    one, other = (
        value_first[checks[last[row] - back, 0]] + (checks[last[row] - back, 1].astype(np.int64) >> 1)
        for back in (0, 1)
    )
    pair = np.minimum(one, other) * cells + np.maximum(one, other)
    buckets = 1 << max(pair.size, 1).bit_length()
    bucket, bloom = np.empty_like(pair), np.zeros((buckets * BLOOM_BITS >> 6) + 1, np.int64)
    _hash(pair, buckets, bucket, bloom)
    order = np.lexsort((pair, bucket))
    pair, row, bucket = pair[order], row[order], bucket[order]
    starts = np.flatnonzero(np.diff(pair, prepend=-1))
    roles = np.zeros(cells + 1, np.uint8)
    roles[pair // max(cells, 1)] |= FIRST
    roles[pair % max(cells, 1)] |= SECOND
    made |= {
        "roles": roles,
        "bloom": bloom,
        "bucket": np.searchsorted(bucket[starts], np.arange(buckets + 1)).astype(np.int32),
        "pair": pair[starts],
    }
    return pair, row, starts


def _sides(made: dict[str, Array], last: Ints, checks: Ints, how: Flags, rest: Ints) -> tuple[Ints, Ints]:
    """File ranges that have one end, in the order of that end: those that hold are the first ones."""
    row = np.flatnonzero((how == UP) | (how == DOWN)).astype(np.int32)
    is_down = how[row] == DOWN
    side = 2 * checks[last[row], 0] + is_down
    bound = np.where(is_down, -checks[last[row], 2], checks[last[row], 1])
    order = np.lexsort((bound, side))
    side, bound, row = side[order], bound[order], row[order]
    has_rest = rest[row] > 0
    made |= {"side_sure_bound": bound[~has_rest], "side_entry_bound": bound[has_rest]}
    return side, row


def _entries(row: Ints, rest: Ints, first: Ints, checks: Ints) -> Ints:
    """Filters that have a rest, with their first checks in place."""
    entries = np.empty((row.size, ENTRY), np.int32)
    entries[:, 0] = row
    entries[:, 1:4] = checks[first[row]]
    entries[:, 4] = first[row] + 1
    entries[:, 5] = rest[row] - 1
    return entries


@kernel
def _guess(
    first: Ints,
    slot: Ints,
    low: Ints,
    high: Ints,
    value_first: Ints,
    is_presence: Flags,
    names: Longs,
    mass: Doubles,
    chances: Doubles,
) -> None:
    """Guess for each constraint how likely it holds, as far as filters tell."""
    for place in range(slot.size):
        mine = slot[place]
        begin, last = value_first[mine], value_first[mine + 1] - 1
        if last >= begin:
            mass[min(begin + (low[place] >> 1), last) + 1] += 0.5
            mass[min(begin + (high[place] >> 1), last) + 1] += 0.5
    for cell in range(mass.size - 1):
        mass[cell + 1] += mass[cell]
    for place in range(slot.size):
        mine = slot[place]
        begin, end = value_first[mine], value_first[mine + 1]
        chances[place] = names[mine] / (first.size - 1)
        if is_presence[mine] and low[place] <= 1:
            chances[place] = 1.0
        elif end > begin:
            held = mass[begin + ((high[place] + 1) >> 1)] - mass[begin + (low[place] >> 1)]
            chances[place] *= (held + 0.5) / (mass[end] - mass[begin] + 0.5)


@kernel
def _choose(
    first: Ints,
    slot: Ints,
    low: Ints,
    high: Ints,
    chances: Doubles,
    value_first: Ints,
    dimensions: int,
    list_max: int,
    tally: Ints,
    access: Ints,
    second: Ints,
) -> None:
    """Choose for each filter its access, and the second point of a pair, or -1."""
    for filter_ in range(access.size):
        best = -1
        for place in range(first[filter_], first[filter_ + 1]):
            if best < 0 or chances[place] < chances[best]:
                best = place
        access[filter_] = best
        if best >= 0 and low[best] == high[best] and low[best] & 1:
            tally[value_first[slot[best]] + (low[best] >> 1)] += 1
    for filter_ in range(access.size):
        best, one, other = access[filter_], -1, -1
        if best < 0 or slot[best] >= dimensions:
            continue
        is_point = low[best] == high[best] and low[best] & 1
        if is_point and tally[value_first[slot[best]] + (low[best] >> 1)] <= list_max:
            continue
        for place in range(first[filter_], first[filter_ + 1]):
            if slot[place] < dimensions and low[place] == high[place] and low[place] & 1:
                if one < 0 or chances[place] < chances[one]:
                    one, other = place, one
                elif other < 0 or chances[place] < chances[other]:
                    other = place
        if other >= 0 and chances[one] * chances[other] < chances[best]:
            access[filter_], second[filter_] = one, other


@kernel
def _arrange(
    first: Ints,
    slot: Ints,
    low: Ints,
    high: Ints,
    chances: Doubles,
    access: Ints,
    second: Ints,
    top: Ints,
    bottom: Ints,
    order: Ints,
    checks: Ints,
    how: Flags,
) -> None:
    """Put the constraints of each filter in order, least likely first and its access last, and say how it
    is filed.
    """
    for filter_ in range(access.size):
        begin, end = first[filter_], first[filter_ + 1]
        best, other = access[filter_], second[filter_]
        at = begin
        for place in range(begin, end):
            if place != best and place != other:
                to = at
                while to > begin and chances[order[to - 1]] > chances[place]:
                    order[to] = order[to - 1]
                    to -= 1
                order[to] = place
                at += 1
        if other >= 0:
            order[at] = other
            at += 1
        if best >= 0:
            order[at] = best
            mine = slot[best]
            if other >= 0:
                how[filter_] = PAIR
            elif low[best] == high[best] and low[best] & 1:
                how[filter_] = POINT
            elif high[best] >= top[mine]:
                how[filter_] = UP
            elif low[best] <= bottom[mine]:
                how[filter_] = DOWN
            else:
                how[filter_] = TREE
        for at in range(begin, end):
            place = order[at]
            checks[at, 0], checks[at, 1], checks[at, 2] = slot[place], low[place], high[place]


@kernel
def _divide(
    several: Ints,
    last: Ints,
    checks: Ints,
    value_first: Ints,
    tree: Longs,
    node: Longs,
    row: Ints,
    levels: Longs,
) -> int:
    """Divide ranges into segments: their nodes, with the filters; how many."""
    count = 0
    for place in range(several.size):
        check = last[several[place]]
        slot = checks[check, 0]
        width = 2 * (value_first[slot + 1] - value_first[slot]) + 1
        left, right, level = checks[check, 1] + width, checks[check, 2] + width + 1, 0
        while left < right:
            if left & 1:
                node[count], row[count] = tree[slot] + left, several[place]
                levels[slot] |= 1 << level
                count += 1
                left += 1
            if right & 1:
                right -= 1
                node[count], row[count] = tree[slot] + right, several[place]
                levels[slot] |= 1 << level
                count += 1
            left >>= 1
            right >>= 1
            level += 1
    return count


@kernel
def pair_hash(pair: int) -> int:
    """A hash of a pair; those of one bucket are bisected, so nothing is gained by aiming at it."""
    mixed = pair * _MIX
    return (mixed ^ (mixed >> 29)) >> 8


@kernel
def _hash(pair: Longs, buckets: int, bucket: Longs, bloom: Longs) -> None:
    """Find the bucket of each pair, and note the pair in the Bloom filter."""
    for place in range(pair.size):
        found = pair_hash(pair[place])
        bucket[place] = found & (buckets - 1)
        bit = found & (buckets * BLOOM_BITS - 1)
        bloom[bit >> 6] |= 1 << (bit & 63)
