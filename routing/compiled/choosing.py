"""What each filter is filed under: what it takes most to satisfy.

How likely a constraint holds is guessed from the filters alone: a dimension is as frequent in events as in
filters, and so are values, the ends of ranges among them. The least likely constraint is the *access*.
Where that is a point that too many share, or a range, and two points together are less likely, it is a pair
of points.

Cost: three passes over the constraints.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from branchline.routing.compiled.bounds import Ranked
from branchline.routing.compiled.kernels import kernel
from branchline.routing.compiled.memory import Ints
from branchline.routing.compiled.texts import Longs
from branchline.routing.dimensions import Axis

POINT, TREE, UP, DOWN, PAIR, WIDE = 1, 2, 4, 8, 16, 32
"""How a filter is filed: under a point, a range by its segments, a range without an upper or without a
lower end, a pair of points, a range in a block. 0 is for a filter without constraints.
"""

Flags = NDArray[np.uint8]
Doubles = NDArray[np.float64]


class Chosen(NamedTuple):
    """What was chosen."""

    checks: Ints
    """The constraints (slot, low, high) of each filter, least likely first, its access last."""
    how: Flags
    """How each filter is filed."""
    chances: Doubles
    """How likely each filter's access holds."""
    names: Longs
    """How many constraints each slot has."""


def choose(ranked: Ranked, value_first: Ints, is_presence: Flags, list_max: int) -> Chosen:
    """Choose the access of each filter; under one point there may be so many, before pairs are made."""
    first, slot, low, high = ranked.first, ranked.slot, ranked.low, ranked.high
    filters, dimensions, cells = len(first) - 1, ranked.bounds.dimensions, int(value_first[-1])
    chances, names = np.empty(slot.size), np.bincount(slot, minlength=ranked.bounds.slots)
    _guess(first, slot, low, high, value_first, is_presence, names, np.zeros(cells + 1), chances)
    access, second = np.full(filters, -1, np.int32), np.full(filters, -1, np.int32)
    tally = np.zeros(cells + 1, np.int32)
    _choose(first, slot, low, high, chances, value_first, dimensions, list_max, tally, access, second)
    bottom = (ranked.bounds.axes[:dimensions] <= int(Axis.BOOLEAN)).astype(np.int32)
    top = (2 * np.diff(value_first[: dimensions + 1]) - bottom).astype(np.int32)
    checks, how = np.empty((slot.size, 3), np.int32), np.zeros(filters, np.uint8)
    order = np.empty(slot.size + 1, np.int32)
    _arrange(first, slot, low, high, chances, access, second, top, bottom, order, checks, how)
    has_access = access >= 0
    of_access = np.zeros(filters)
    of_access[has_access] = chances[access[has_access]]
    return Chosen(checks, how, of_access, names)


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
