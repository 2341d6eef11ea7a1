"""Filters in ranks, flattened again, so that they can be laid together with others and put in order anew.

A rank says which value a cut lies at and on which side: the lowest and the highest are cuts beyond all
values.

Cost: a few ns for each constraint and each value; no filter is looked at by itself.
"""

import numpy as np
from numpy.typing import NDArray

from branchline.routing.compiled.bounds import Bounds
from branchline.routing.compiled.gathering import DIRECT, HIGH, LOW, Parts, family
from branchline.routing.compiled.memory import Ints
from branchline.routing.compiled.ordering import doubles_of


def unranked(bounds: Bounds, first: Ints, checks: Ints, kept: NDArray[np.bool_]) -> Parts:
    """Filters in ranks, flattened again: those that are kept, and the values of all."""
    marks = bounds.marks
    dimensions = bounds.dimensions
    counts = np.diff(first)
    chosen = np.repeat(kept, counts)
    slot, low, high = checks[chosen].T
    is_word = slot >= dimensions
    word_kin = (
        np.searchsorted(bounds.value_first[dimensions:], slot - dimensions + marks.words, side="right") - 1
    )
    kin = np.where(is_word, dimensions + word_kin, slot).astype(np.int32)
    begin = bounds.value_first[kin]
    families = np.array([family(each) for each in bounds.kins], np.int32)[kin]
    # Codes number the values of each family from 0 on.
    base = np.array([0, marks.numbers, marks.texts, marks.texts])[families]
    is_direct = families == DIRECT
    base = np.where(is_direct, begin, base)
    lower = np.where(low <= is_direct, LOW, 2 * (begin - base + ((low - 1) >> 1)) + ((low & 1) == 0))
    top = 2 * (bounds.value_first[kin + 1] - begin) - is_direct
    upper = np.where(high >= top, HIGH, 2 * (begin - base + (high >> 1)) + (high & 1))
    upper = np.where(is_word, 2 * (slot - dimensions + marks.words - marks.texts), upper)
    lower = np.where(is_word, LOW, lower)
    value_kins = np.repeat(np.arange(len(bounds.kins)), np.diff(bounds.value_first)).astype(np.int32)
    fine = bounds.arrays["fine"]
    wide = {
        int(place): bounds.wide[
            fine[place] // 2 - 1 if fine[place] > 0 else fine[place] // 2 + len(bounds.wide)
        ]
        for place in np.flatnonzero(fine)
    }
    return Parts(
        list(bounds.kins),
        value_kins[marks.numbers : marks.texts],
        doubles_of(bounds.arrays["near"]),
        wide,
        value_kins[marks.texts :],
        bounds.arrays["at"],
        bounds.arrays["blob"],
        np.concatenate([[0], np.cumsum(counts[kept])]),
        kin,
        lower.astype(np.int32),
        upper.astype(np.int32),
    )
