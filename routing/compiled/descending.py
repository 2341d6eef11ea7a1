"""The walk of many rows down one part of the tree: the edges that each follows, as an FPT.

Theory of operation. What a row meets is a list of cells: the values that it meets exactly, the words found
in it, and of paths that are missing that they are. At a node each of them is looked for among the edges to
points, and in each group of ranges the row's rank (`branches.py`). What was found is sorted and put on a
stack; the next that is taken from it is the next entry. So entries come in depth-first order, siblings by
child number. They are written as bytes, as headers have them; whether an entry has others below it is known
when the node has been looked at, and is a bit that is set then.

Cost: at each node that is followed, a bit for each cell and a look for those that may be there, and a
bisection for each group that the row has a rank for.
"""

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from branchline.routing.compiled.bounds import Bounds
from branchline.routing.compiled.branches import Branches
from branchline.routing.compiled.kernels import inlined, kernel
from branchline.routing.compiled.lookups import find, mixed
from branchline.routing.compiled.names import CHILD_BITS
from branchline.routing.compiled.prefixes import CHILD_NUMBER_MAX, Bytes, Flags, Ints, Longs, frozen
from branchline.routing.compiled.varints import put_number
from branchline.routing.dimensions import Axis
from branchline.routing.prefix.edges import ROOT

Number = TypeVar("Number", np.uint8, np.int32, np.int64)
NO_HEIGHT = -1
_FEW = 24
"""So many siblings are sorted as they come."""
_ENTRY_BYTES_MAX = 5
_LAST, _BELOW = 1, 2
"""Bits of an entry."""


class Met(NamedTuple):
    """What rows meet: `ranking.Cells`, as the kernel sees them."""

    first: Longs
    dimension: Ints
    rank: Ints
    word_first: Longs
    word: Ints


class Places(NamedTuple):
    """Where cells lie, the same for all rows."""

    value_first: Ints
    """For each dimension its first cell."""
    words: int
    """The first cell that is a word."""
    blank: Ints
    """For each dimension the rank of a row that has none there: on presence, that the path is missing."""
    presence: Ints
    """The dimensions of presence."""


def places(bounds: Bounds) -> Places:
    is_presence = bounds.axes[: bounds.dimensions] == int(Axis.PRESENCE)
    return Places(
        frozen(bounds.value_first),
        bounds.marks.words,
        np.where(is_presence, 1, -1).astype(np.int32),
        np.flatnonzero(is_presence).astype(np.int32),
    )


@kernel
def descend(
    tree: Branches, met: Met, rows: Longs, places: Places, height: int
) -> tuple[Bytes, Longs, Longs, Flags]:
    """The entries, where those of each row begin, how many these are, and which a height limit has cut."""
    # Asking a tuple for an array counts the array's owners up and down: not for every row.
    nodes, bloom, points = tree.nodes, tree.bloom, tree.points
    group_dimension, range_first = tree.dimension, tree.range_first
    range_low, range_high, range_leads = tree.low, tree.high, tree.leads
    cell_first, cell_dimension, cell_rank = met.first, met.dimension, met.rank
    word_first, words = met.word_first, met.word
    value_first, blank, presence = places.value_first, places.blank, places.presence

    first, cut = np.zeros(len(rows) + 1, np.int64), np.zeros(len(rows), np.bool_)
    entries, out = np.zeros(len(rows), np.int64), np.empty(16 * len(rows) + 64, np.uint8)
    held = blank.copy()
    most = 0
    for row in rows:
        most = max(most, cell_first[row + 1] - cell_first[row] + word_first[row + 1] - word_first[row])
    mine = np.empty(most + len(presence), np.int64)
    stack, levels, packed = np.empty(256, np.int64), np.empty(256, np.int32), np.empty(256, np.int64)
    for which in range(len(rows)):
        row = rows[which]
        count = 0
        for cell in range(cell_first[row], cell_first[row + 1]):
            rank, dimension = cell_rank[cell], cell_dimension[cell]
            if rank >= 0:
                held[dimension] = rank
                if rank & 1:
                    mine[count] = value_first[dimension] + (rank >> 1)
                    count += 1
        for dimension in presence:
            if held[dimension] == 1:
                mine[count] = value_first[dimension]
                count += 1
        for word in range(word_first[row], word_first[row + 1]):
            mine[count] = places.words + words[word]
            count += 1
        rests = np.uint64(0)
        for each in range(count):
            rests |= np.uint64(1) << np.uint64(mine[each] & 63)

        at = entry = first[which]
        node, depth, top = ROOT, 0, 0
        goes_on = tree.goes_on
        while True:
            if goes_on and depth == height:
                cut[which] = True
            elif goes_on:
                begin = top
                group, last_group = np.int64(nodes[2 * node + 1]), np.int64(nodes[2 * node + 3])
                if top + count + last_group - group > len(stack):
                    room = int(2 * (top + count + last_group - group))
                    stack, levels, packed = _wider(stack, room), _wider(levels, room), _wider(packed, room)
                asked = nodes[2 * node] & rests
                if asked:
                    for each in range(count):
                        if not asked >> np.uint64(mine[each] & 63) & np.uint64(1):
                            continue
                        key = node << CHILD_BITS | mine[each]
                        place = mixed(key)
                        if bloom[place >> 6 & len(bloom) - 1] >> np.uint64(place & 63) & np.uint64(1):
                            leads = find(points, key)
                            if leads >= 0:
                                top = _sort_in(stack, begin, top, leads)
                while group < last_group:
                    rank = held[group_dimension[group]]
                    if rank >= 0:
                        low, high = range_first[group], range_first[group + 1]
                        while low < high:
                            middle = (low + high) >> 1
                            if range_low[middle] <= rank:
                                low = middle + 1
                            else:
                                high = middle
                        if low > range_first[group] and range_high[low - 1] >= rank:
                            top = _sort_in(stack, begin, top, range_leads[low - 1])
                    group += 1
                if top - begin > _FEW:
                    stack[begin:top] = -np.sort(-stack[begin:top])
                elder = np.int64(-1)
                for each in range(top - 1, begin - 1, -1):
                    number = stack[each] >> CHILD_BITS + 1
                    levels[each], packed[each] = depth + 1, (number - elder - 1) << 2
                    elder = number
                if top > begin:
                    packed[begin] |= _LAST
                    if depth:
                        out[entry] |= _BELOW
            if not top:
                break
            top -= 1
            leads, depth = stack[top], levels[top]
            node, goes_on = leads >> 1 & CHILD_NUMBER_MAX, leads & 1 != 0
            if at + _ENTRY_BYTES_MAX > len(out):
                out = _wider(out, int(2 * (at + _ENTRY_BYTES_MAX)))
            entry = at
            at = put_number(out, at, packed[top])
            entries[which] += 1
        first[which + 1] = at
        for cell in range(cell_first[row], cell_first[row + 1]):
            held[cell_dimension[cell]] = blank[cell_dimension[cell]]
    return out[: first[-1]], first, entries, cut


@kernel
def _wider(cells: NDArray[Number], size: int) -> NDArray[Number]:
    made = np.empty(size, cells.dtype)
    made[: len(cells)] = cells
    return made


@inlined
def _sort_in(stack: Longs, begin: int, top: int, leads: int) -> int:
    """Put it where it belongs among few, the lowest last; among many, at the end. How many there are then."""
    place = top
    if top - begin < _FEW:
        while place > begin and stack[place - 1] < leads:
            stack[place] = stack[place - 1]
            place -= 1
    stack[place] = leads
    return top + 1
