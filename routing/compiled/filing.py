"""Where filters are filed: each under what it takes most to satisfy, so that few are looked at in vain.

A filter is filed once, under its *access*: one of its constraints, or two that are points (`choosing`).
What the access does not say is left to be checked (the *rest*).

- points and words have a list for each cell;
- pairs of points have a list for each pair (`pairing`);
- ranges with one end are in the order of that end: those that hold are the first so many, found by bisection;
- other ranges are in lists along a segment tree (`segments`), or, where many hold for many values, in a
block for
  the dimension (`blocks`);
- filters without constraints are in one list.

A list of many filters that have a rest has a block of them, too.

Lists of cells and segments are numbered; a bit for each cell and segment says whether it has one, and
counting bits says which. In a list, filters without a rest come first, as mere numbers: they are copied.
The others have their first check in place.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from branchline.routing.compiled.blocks import BLOCK_MIN, Building
from branchline.routing.compiled.bounds import Ranked
from branchline.routing.compiled.choosing import DOWN, PAIR, POINT, TREE, UP, WIDE, Doubles, Flags, choose
from branchline.routing.compiled.memory import Ints
from branchline.routing.compiled.pairing import in_pairs
from branchline.routing.compiled.segments import in_nodes
from branchline.routing.compiled.texts import Longs
from branchline.routing.dimensions import Axis

WIDE_SHARE = 1 / 16
"""From this part of a dimension's values on a range is wide: under segments it would be found too often."""

LIST_MAX = 8
"""From so many filters under one point on, finding a pair costs less than looking at them all."""

ENTRY = 6
"""Numbers in an entry: the filter; slot, low and high of its first check; where the others are, and how
many.
"""

Array = NDArray[Any]


class Filing(NamedTuple):
    """All that is filed, as kernels see it; arrays by their addresses."""

    dimensions: int
    cells: int
    value_first: int
    """For each slot its first cell; a word has one. One more at the end."""
    filed: int
    """How filters are filed under each dimension."""
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
    axes = bounds.axes[:dimensions]
    is_presence = np.zeros(slots, np.uint8)
    is_presence[:dimensions] = axes == int(Axis.PRESENCE)

    chosen = choose(ranked, value_first, is_presence, LIST_MAX)
    checks, how, chances, names = chosen.checks, chosen.how, chosen.chances, chosen.names
    rest = np.diff(first) - np.where(how == PAIR, 2, 1).astype(np.int32)
    last = first[1:] - 1

    made: dict[str, Array] = {
        "value_first": value_first,
        "blank": np.where(is_presence, 1, -1).astype(np.int32),
        "everything": np.flatnonzero(how == 0).astype(np.int32),
        "checks": checks,
    }
    _find_wide(how, rest, last, checks, chances, names)
    has = np.zeros(slots, np.uint8)
    for what in (POINT, TREE, UP, DOWN, WIDE):
        has[checks[last[how == what], 0]] |= what
    for back in (0, 1):
        has[checks[last[how == PAIR] - back, 0]] |= PAIR
    made["filed"] = has[:dimensions]
    alone = checks[last[(how != 0) & (how != PAIR)]]
    made["defaults"] = np.unique(alone[is_presence[alone[:, 0]].astype(np.bool_) & (alone[:, 1] <= 1), 0])

    single, several, both = (np.flatnonzero(how == what).astype(np.int32) for what in (POINT, TREE, PAIR))
    node, row = in_nodes(made, single, several, checks[last[single]], checks[last[several]], value_first)
    pair, pair_row, pair_starts = in_pairs(
        made, both, checks[last[both]], checks[last[both] - 1], value_first
    )
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
    is_wide = chances[ranges] * len(how) > WIDE_SHARE * names[slot]
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
