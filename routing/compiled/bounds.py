"""The values that filters name, in order, for each dimension: what ranks are made of.

Theory of operation. A dimension has sorted distinct values v_0 … v_(m-1). A position's *rank* is 2i+1 if it
equals v_i, 2i if it lies in the gap before v_i, and 2m behind all of them. An interval is then an inclusive
range of ranks, and holding is two comparisons of small integers. On the axes of presence and Booleans all
values there are stand in the table, so that a kind k has the rank 2k+1.

All values have one numbering, *cells*: those of presence and Booleans, then numbers, then texts, then
words; in each family by kin. A word has no rank: it is found in a row's text or not. What is asked of a row
is so a *slot*: a dimension, which has a rank, or a word, which counts as rank 1 where it was found.

Numbers compare exactly. A number that is no double is kept as the nearest double and its place (`fine`)
among all numbers that are none: below zero if it is less than its double, above if more. Rounding keeps the
order, so whatever is a double compares with the pair as with the number itself.

Texts are found by a hash (`hashing`), else by bisection. On a dimension where all constraints are points, a
text that is not found has no rank: no constraint holds there.

Cost: some 30 bytes for each value beside its text. Making sorts the values; nothing is done for each filter.
"""

from bisect import bisect_left
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from branchline.routing.compiled.gathering import (
    BOOLEANS,
    DIRECT,
    KINDS,
    NUMBERS,
    TEXTS,
    WORDS,
    Parts,
    family,
    nearest,
)
from branchline.routing.compiled.hashing import hashed
from branchline.routing.compiled.memory import Ints, address
from branchline.routing.compiled.ordering import (
    POINTS,
    RANGES,
    find_ranges,
    note_used,
    numbers_in_order,
    ordered,
    texts_in_order,
)
from branchline.routing.compiled.paths import Paths
from branchline.routing.compiled.texts import Longs, heads_of
from branchline.routing.compiled.words import Automaton, automaton
from branchline.routing.dimensions import Axis
from branchline.routing.prefix.siblings import Kin


class Marks(NamedTuple):
    """The values as kernels see them; arrays by their addresses."""

    paths: int
    """How many paths are known here."""
    path_first: int
    """For each path the first of its steps; one more at the end."""
    steps: int
    """For each path and kin STEP numbers: kin, axis, what it has, its first cell and the one behind its
    last, and the bytes of its longest text.
    """
    numbers: int
    """The first cell that is a number."""
    near: int
    """For each number the nearest double, as a whole number in the same order (`ordered`)."""
    fine: int
    """For each number its place among those that are no doubles, 0 if it is one."""
    texts: int
    """The first cell that is a text."""
    at: int
    blob: int
    limit: int
    heads: int
    seed: int
    places: int
    """How many there are in the table of hashes, a power of two."""
    slots: int
    """For each place two numbers: the first eight bytes of the text that stands there; and its length and a
    part of its hash, 16 bits each, and one more than its cell, 32 bits. Where nothing stands, 0.
    """
    ranked: int
    """How many kin are dimensions; the others are words."""
    words: int
    """The first cell that is a word."""
    wide: int
    """How many numbers are no doubles."""


STEP = 8


class Step(NamedTuple):
    """What is to be done for a value of a path: one of its kin."""

    kin: int
    axis: int
    has: int
    first: int
    end: int
    longest: int


@dataclass(frozen=True, slots=True)
class Bounds:
    """The values of all dimensions, and the words."""

    kins: tuple[Kin, ...]
    """Dimensions, then where words are looked for."""
    arrays: dict[str, NDArray[Any]]
    """What `marks` and `automaton` point to."""
    marks: Marks
    automaton: Automaton
    wide: tuple[int, ...]
    """The numbers that are no doubles, in order."""

    @property
    def dimensions(self) -> int:
        return self.marks.ranked

    @property
    def words(self) -> int:
        """How many there are."""
        return int(self.value_first[-1]) - self.marks.words

    @property
    def slots(self) -> int:
        """How many there are: dimensions, and words behind them."""
        return self.dimensions + self.words

    @property
    def value_first(self) -> Ints:
        """For each kin its first cell; one more at the end."""
        return self.arrays["value_first"]

    @property
    def axes(self) -> NDArray[np.uint8]:
        """For each kin its axis."""
        return self.arrays["axis"]

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for each in self.arrays.values())

    def steps_of(self, kins: Ints) -> Longs:
        """Where the steps of the kin are."""
        place = np.empty(len(self.kins), np.int64)
        place[self.arrays["steps"][:, 0]] = np.arange(len(self.kins))
        steps: Longs = self.marks.steps + 4 * STEP * place[kins]
        return steps

    def fine_of(self, number: int) -> tuple[float, int]:
        """A number as it is compared: the nearest double, and its place among those that are none."""
        near = nearest(number)
        if near == number:
            return near, 0
        place = bisect_left(self.wide, number)
        fine = 2 * place + 1 + (place < len(self.wide) and self.wide[place] == number)
        return near, fine if number > near else fine - 2 * len(self.wide) - 2


STORED: dict[str, type[np.generic]] = {
    "value_first": np.int32,
    "has": np.uint8,
    "longest": np.int32,
    "near": np.int64,
    "fine": np.int32,
    "at": np.int64,
    "blob": np.uint8,
    "heads": np.int64,
    "slots": np.int64,
    "axis": np.uint8,
}
WORDS_STORED: dict[str, type[np.generic]] = {
    "child": np.int32,
    "label": np.uint8,
    "fall": np.int32,
    "word": np.int32,
    "report": np.int32,
    "start": np.int64,
}
"""The arrays that bounds are made of, and what they are of."""


def bounds_of(
    kins: tuple[Kin, ...],
    arrays: dict[str, NDArray[Any]],
    seed: int,
    wide: tuple[int, ...],
    paths: Paths,
) -> Bounds:
    """The bounds whose values lie in these arrays (`STORED` and `WORDS_STORED`)."""
    families = [family(kin) for kin in kins]
    numbers, texts, words = (
        int(arrays["value_first"][sum(each < limit for each in families)])
        for limit in (NUMBERS, TEXTS, WORDS)
    )
    of_paths = np.array([paths.add(kin[0]) for kin in kins], np.int64)
    order = np.argsort(of_paths, kind="stable")
    known = int(of_paths.max()) + 1 if of_paths.size else 0
    path_first = np.searchsorted(of_paths[order], np.arange(known + 1)).astype(np.int32)
    steps = np.zeros((order.size, STEP), np.int32)
    value_first = arrays["value_first"]
    columns = (arrays["axis"], arrays["has"], value_first[:-1], value_first[1:], arrays["longest"])
    for column, values in enumerate((np.arange(order.size), *columns)):
        steps[:, column] = values[order]
    arrays = {**arrays, "path_first": path_first, "steps": steps}
    blob = address(arrays["blob"])
    facts = {
        "paths": known,
        "numbers": numbers,
        "texts": texts,
        "limit": blob + arrays["blob"].nbytes,
        "seed": seed,
        "places": arrays["slots"].size // 2,
        "ranked": sum(each != WORDS for each in families),
        "words": words,
        "wide": len(wide),
    }
    marks = Marks(*(facts[name] if name in facts else address(arrays[name]) for name in Marks._fields))
    found = Automaton(*(address(arrays[name]) for name in Automaton._fields))
    return Bounds(kins, arrays, marks, found, wide)


class Ranked(NamedTuple):
    """Filters in ranks: constraints `first[f]` to `first[f + 1]` are those of filter f, in any order."""

    bounds: Bounds
    first: Ints
    slot: Ints
    low: Ints
    high: Ints
    """The range is inclusive at both ends; of a word it is 1 to 1."""


def ranked(parts: Parts, paths: Paths) -> Ranked:
    """The filters in ranks of their own values; values that no filter names are left out."""
    wanted = np.unique(parts.kin).tolist()
    order = sorted(wanted, key=lambda kin: (family(parts.kins[kin]), parts.kins[kin][0], parts.kins[kin][1]))
    kins = tuple(parts.kins[kin] for kin in order)
    renumbered = np.full(len(parts.kins) + 1, -1, np.int32)
    renumbered[order] = np.arange(len(order), dtype=np.int32)
    families = np.array([family(kin) for kin in kins], np.int32)
    kin = renumbered[parts.kin]
    of_numbers, of_texts = np.zeros(parts.near.size, np.uint8), np.zeros(parts.text_kin.size, np.uint8)
    note_used(kin, parts.low, parts.high, families, of_numbers, of_texts)

    counts = np.zeros(len(kins), np.int64)
    for place in np.flatnonzero(families == DIRECT).tolist():
        counts[place] = KINDS if kins[place][1] is Axis.PRESENCE else BOOLEANS
    numbers = int(counts.sum())
    number_cell, near, fine, wide = numbers_in_order(parts, renumbered, of_numbers, counts)
    texts = numbers + near.size
    text_cell, blob, at = texts_in_order(parts, renumbered, of_texts, counts)
    value_first = np.zeros(len(kins) + 1, np.int32)
    np.cumsum(counts, out=value_first[1:])
    dimensions = int((families != WORDS).sum())

    slot, low, high = np.empty_like(kin), np.empty_like(kin), np.empty_like(kin)
    has = np.zeros(len(kins), np.uint8)
    # Nothing lies before the empty text, so where it is the first value ranks begin with 1.
    lowest = (families == DIRECT).astype(np.int32)
    lengths = np.append(np.diff(at), 1)
    textual = np.flatnonzero(families >= TEXTS)
    lowest[textual] = (lengths[value_first[textual] - texts] == 0) & (counts[textual] > 0)
    find_ranges(
        kin,
        parts.low,
        parts.high,
        families,
        value_first,
        number_cell + numbers,
        text_cell + texts,
        lowest,
        dimensions,
        slot,
        low,
        high,
        has,
    )
    longest = np.zeros(len(kins), np.int32)
    if textual.size:
        longest[textual] = np.maximum.reduceat(lengths, value_first[textual] - texts)
    kins_of_points = np.flatnonzero((families == TEXTS) & (has & POINTS > 0))
    seed, slots, homeless = hashed(kins_of_points, value_first, texts, blob, at)
    has[homeless] |= RANGES
    arrays: dict[str, NDArray[Any]] = {
        "value_first": value_first,
        "has": has,
        "longest": longest,
        "near": ordered(near),
        "fine": fine,
        "at": at,
        "blob": blob,
        "heads": heads_of(blob, at),
        "slots": slots,
        "axis": np.array([each[1] for each in kins], np.uint8),
        **automaton(value_first[dimensions:] - np.int32(texts), blob, at),
    }
    found = bounds_of(kins, arrays, seed, wide, paths)
    return Ranked(found, parts.first.astype(np.int32), slot, low, high)
