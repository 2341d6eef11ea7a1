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

from branchline.routing.compiled.bounds import Ranked
from branchline.routing.compiled.kernels import kernel
from branchline.routing.compiled.memory import Ints
from branchline.routing.compiled.texts import Longs
from branchline.routing.dimensions import Axis

LIST_MAX = 8
"""From so many filters under one point on, finding a pair costs less than looking at them all."""

POINT, TREE, UP, DOWN, PAIR = 1, 2, 4, 8, 16
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
    sure_at: int
    sure: int
    entry_at: int
    entries: int
    """For each list its filters without a rest, and those with one."""
    side_sure_at: int
    side_sure_bound: int
    side_sure: int
    side_entry_at: int
    side_entry_bound: int
    side_entries: int
    """The same for ranges with one end: twice a dimension those that go up, and plus one those that go
    down.
    """
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
    "sure_at": np.int32,
    "sure": np.int32,
    "entry_at": np.int32,
    "entries": np.int32,
    "side_sure_at": np.int32,
    "side_sure_bound": np.int32,
    "side_sure": np.int32,
    "side_entry_at": np.int32,
    "side_entry_bound": np.int32,
    "side_entries": np.int32,
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

    chances = np.empty(ranked.slot.size)
    _guess(
        first,
        ranked.slot,
        ranked.low,
        ranked.high,
        value_first,
        is_presence,
        np.bincount(ranked.slot, minlength=slots),
        np.zeros(cells + 1),
        chances,
    )
    access, second = np.full(len(first) - 1, -1, np.int32), np.full(len(first) - 1, -1, np.int32)
    tally = np.zeros(cells + 1, np.int32)
    _choose(
        first, ranked.slot, ranked.low, ranked.high, chances, value_first, dimensions, tally, access, second
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
    has = np.zeros(slots, np.uint8)
    for what in (POINT, TREE, UP, DOWN):
        has[checks[last[how == what], 0]] |= what
    for back in (0, 1):
        has[checks[last[how == PAIR] - back, 0]] |= PAIR
    made["filed"] = has[:dimensions]
    alone = checks[last[(how != 0) & (how != PAIR)]]
    made["defaults"] = np.unique(alone[is_presence[alone[:, 0]].astype(np.bool_) & (alone[:, 1] <= 1), 0])

    node, row = _nodes(made, last, checks, how, value_first, dimensions)
    pair, pair_row, pair_starts = _pairs(made, last, checks, how, value_first, cells)
    starts = np.flatnonzero(np.diff(node, prepend=-1))
    at = np.concatenate([starts, pair_starts + node.size, [node.size + pair.size]])
    _list("", made, at, np.concatenate([row, pair_row]), rest, first, checks)
    _sides(made, last, checks, how, rest, first, dimensions)
    return made


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


def _sides(
    made: dict[str, Array],
    last: Ints,
    checks: Ints,
    how: Flags,
    rest: Ints,
    first: Ints,
    dimensions: int,
) -> None:
    """File ranges that have one end, in the order of that end: those that hold are the first ones."""
    row = np.flatnonzero((how == UP) | (how == DOWN)).astype(np.int32)
    is_down = how[row] == DOWN
    side = 2 * checks[last[row], 0] + is_down
    bound = np.where(is_down, -checks[last[row], 2], checks[last[row], 1])
    order = np.lexsort((bound, side))
    side, bound, row = side[order], bound[order], row[order]
    at = np.searchsorted(side, np.arange(2 * dimensions + 1))
    _list("side_", made, at, row, rest, first, checks)
    has_rest = rest[row] > 0
    made |= {"side_sure_bound": bound[~has_rest], "side_entry_bound": bound[has_rest]}


def _list(
    name: str,
    made: dict[str, Array],
    at: Longs,
    row: Ints,
    rest: Ints,
    first: Ints,
    checks: Ints,
) -> None:
    """Lists of filters as lists of those without a rest, and of entries of the others."""
    has_rest = rest[row] > 0
    before = np.concatenate([[0], np.cumsum(has_rest)])
    listed = row[has_rest]
    entries = np.empty((listed.size, ENTRY), np.int32)
    entries[:, 0] = listed
    entries[:, 1:4] = checks[first[listed]]
    entries[:, 4] = first[listed] + 1
    entries[:, 5] = rest[listed] - 1
    made |= {
        f"{name}sure_at": (at - before[at]).astype(np.int32),
        f"{name}sure": row[~has_rest],
        f"{name}entry_at": before[at].astype(np.int32),
        f"{name}entries": entries,
    }


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
        best, other = access[filter_], -1
        if best < 0 or slot[best] >= dimensions or low[best] != high[best] or not low[best] & 1:
            continue
        if tally[value_first[slot[best]] + (low[best] >> 1)] <= LIST_MAX:
            continue
        for place in range(first[filter_], first[filter_ + 1]):
            is_point = slot[place] < dimensions and low[place] == high[place] and low[place] & 1
            if is_point and place != best and (other < 0 or chances[place] < chances[other]):
                other = place
        second[filter_] = other


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
