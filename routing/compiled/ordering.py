"""Values put in order: numbers and texts that were numbered as they came get their places among their like.

Equal values become one, also if they came from parts that knew nothing of each other, and values that no
constraint names are left out. From the places follow the ranks of each constraint's two cuts.

Cost: sorting the values; then a few ns for each constraint.
"""

import numpy as np
from numpy.typing import NDArray

from branchline.routing.compiled.gathering import DIRECT, NUMBERS, WORDS, Parts
from branchline.routing.compiled.kernels import kernel
from branchline.routing.compiled.memory import Bytes, Ints
from branchline.routing.compiled.texts import Longs, packed, sorted_texts

POINTS, RANGES = 1, 2
"""What a dimension has: values that something must equal, and ranges that gaps matter for."""

_LOW_63 = (1 << 63) - 1


def ordered(doubles: NDArray[np.float64]) -> Longs:
    """Doubles as whole numbers in the same order."""
    bits = doubles.view(np.int64)
    return bits ^ ((bits >> 63) & _LOW_63)


def doubles_of(ordered: Longs) -> NDArray[np.float64]:
    """The inverse."""
    return (ordered ^ ((ordered >> 63) & _LOW_63)).view(np.float64)


def numbers_in_order(
    parts: Parts, renumbered: Ints, used: NDArray[np.uint8], counts: Longs
) -> tuple[Ints, NDArray[np.float64], Ints, tuple[int, ...]]:
    """For each number its place in order, and the numbers in order; how many of each kin is noted."""
    chosen = np.flatnonzero(used)
    wide = tuple(sorted({value for number, value in parts.wide.items() if used[number]}))
    places = {value: place for place, value in enumerate(wide)}
    fine = np.zeros(parts.near.size, np.int32)
    for number, value in parts.wide.items():
        if used[number]:
            place = places[value]
            # Not as numpy compares them: that would round the whole number first.
            is_above = value > float(parts.near[number])
            fine[number] = 2 * (place + 1) if is_above else 2 * (place - len(wide))
    kin, near, fine = renumbered[parts.number_kin[chosen]], parts.near[chosen], fine[chosen]
    order = np.lexsort((fine, near, kin))
    kin, near, fine = kin[order], near[order], fine[order]
    is_new = np.ones(kin.size, np.bool_)
    is_new[1:] = (kin[1:] != kin[:-1]) | (near[1:] != near[:-1]) | (fine[1:] != fine[:-1])
    cell = np.zeros(parts.near.size, np.int32)
    cell[chosen[order]] = np.cumsum(is_new) - 1
    counts += np.bincount(kin[is_new], minlength=counts.size)
    return cell, near[is_new], fine[is_new], wide


def texts_in_order(
    parts: Parts, renumbered: Ints, used: NDArray[np.uint8], counts: Longs
) -> tuple[Ints, Bytes, Longs]:
    """For each text its place in order, and the texts in order; how many of each kin is noted."""
    chosen = np.flatnonzero(used).astype(np.int32)
    kin = renumbered[parts.text_kin[chosen]]
    blob, at = packed(parts.blob, parts.at, chosen)
    order, is_new = sorted_texts(kin, blob, at)
    cell = np.zeros(parts.text_kin.size, np.int32)
    cell[chosen[order]] = np.cumsum(is_new) - 1
    counts += np.bincount(kin[order][is_new], minlength=counts.size)
    return cell, *packed(blob, at, order[is_new])


@kernel
def note_used(
    kin: Ints,
    lows: Ints,
    highs: Ints,
    families: Ints,
    of_numbers: NDArray[np.uint8],
    of_texts: NDArray[np.uint8],
) -> None:
    """Note which numbers and which texts some constraint names."""
    for place in range(kin.size):
        mine = families[kin[place]]
        if mine == DIRECT:
            continue
        low, high = lows[place], highs[place]
        if mine == NUMBERS:
            if low >= 0:
                of_numbers[low >> 1] = 1
            if high >= 0:
                of_numbers[high >> 1] = 1
        else:
            if low >= 0:
                of_texts[low >> 1] = 1
            if high >= 0:
                of_texts[high >> 1] = 1


@kernel
def find_ranges(
    kin: Ints,
    lows: Ints,
    highs: Ints,
    families: Ints,
    value_first: Ints,
    number_cell: Ints,
    text_cell: Ints,
    lowest: Ints,
    dimensions: int,
    slot: Ints,
    low: Ints,
    high: Ints,
    has: NDArray[np.uint8],
) -> None:
    """Find each constraint's slot and ranks, and note what each kin has."""
    for place in range(kin.size):
        mine = kin[place]
        what = families[mine]
        first, end = value_first[mine], value_first[mine + 1]
        lower, upper = lows[place], highs[place]
        if what == WORDS:
            slot[place] = dimensions + text_cell[upper >> 1] - value_first[dimensions]
            low[place] = high[place] = 1
            continue
        slot[place] = mine
        low[place] = lowest[mine]
        if what == DIRECT:
            # These have a next one: after one is before the next, and no rank is a gap.
            high[place] = 2 * (end - first) - 1
            if lower >= 0:
                low[place] = 2 * ((lower >> 1) + (lower & 1)) + 1
            if upper >= 0:
                high[place] = 2 * ((upper >> 1) + (upper & 1)) - 1
        else:
            high[place] = 2 * (end - first)
            if lower >= 0:
                cell = number_cell[lower >> 1] if what == NUMBERS else text_cell[lower >> 1]
                low[place] = 2 * (cell - first) + 1 + (lower & 1)
            if upper >= 0:
                cell = number_cell[upper >> 1] if what == NUMBERS else text_cell[upper >> 1]
                high[place] = 2 * (cell - first) + (upper & 1)
        has[mine] |= POINTS if low[place] == high[place] and low[place] & 1 else RANGES
