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

Texts are found by a hash, and their bytes compared. A value stands at most PROBES places from where its
hash says; a dimension with a value for which that cannot be is bisected instead, so whoever aims at the
hash gains nothing. On a dimension where all constraints are points, a text that is not found has no rank:
no constraint holds there.

Cost: some 30 bytes for each value beside its text. Making sorts the values; nothing is done for each filter.
"""

from bisect import bisect_left
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from branchline.routing.compiled.freshness import fresh
from branchline.routing.compiled.gathering import (
    BOOLEANS,
    DIRECT,
    HIGH,
    KINDS,
    LOW,
    NUMBERS,
    TEXTS,
    WORDS,
    Parts,
    family,
    nearest,
)
from branchline.routing.compiled.kernels import kernel
from branchline.routing.compiled.memory import Bytes, Ints, address, load_int, load_long, store_long
from branchline.routing.compiled.paths import Paths
from branchline.routing.compiled.texts import Longs, hash_of, heads_of, packed, sorted_texts, word_of
from branchline.routing.compiled.words import Automaton, automaton
from branchline.routing.dimensions import Axis
from branchline.routing.prefix.siblings import Kin

POINTS, RANGES = 1, 2
"""What a dimension has: values that something must equal, and ranges that gaps matter for."""

PROBES = 16
"""How far from its place a value may stand in the table of hashes; at half full, one in thousands is further
than a few."""

LONG_TEXT = 0xFFFF
"""From so many bytes on a text's length is not kept beside its hash."""

_SEEDS = 4
_MIX = -7046029254386353131
_LOW_63 = (1 << 63) - 1


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
    }
    marks = Marks(*(facts[name] if name in facts else address(arrays[name]) for name in Marks._fields))
    found = Automaton(*(address(arrays[name]) for name in Automaton._fields))
    return Bounds(kins, arrays, marks, found, wide)


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
    text_kins = np.repeat(np.arange(len(bounds.kins)), np.diff(bounds.value_first)).astype(np.int32)
    near = bounds.arrays["near"].astype(np.int64)
    fine = bounds.arrays["fine"]
    wide = {
        int(place): bounds.wide[
            fine[place] // 2 - 1 if fine[place] > 0 else fine[place] // 2 + len(bounds.wide)
        ]
        for place in np.flatnonzero(fine)
    }
    return Parts(
        list(bounds.kins),
        text_kins[marks.numbers : marks.texts],
        (near ^ ((near >> 63) & _LOW_63)).view(np.float64),
        wide,
        text_kins[marks.texts :],
        bounds.arrays["at"],
        bounds.arrays["blob"],
        np.concatenate([[0], np.cumsum(counts[kept])]),
        kin,
        lower.astype(np.int32),
        upper.astype(np.int32),
    )


class Ranked(NamedTuple):
    """Filters in ranks: constraints `first[f]` to `first[f + 1]` are those of filter f, in any order."""

    bounds: Bounds
    first: Ints
    slot: Ints
    low: Ints
    high: Ints
    """The range is inclusive at both ends; of a word it is 1 to 1."""


def ordered(doubles: NDArray[np.float64]) -> Longs:
    """Doubles as whole numbers in the same order."""
    bits = doubles.view(np.int64)
    return bits ^ ((bits >> 63) & _LOW_63)


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
    _use(kin, parts.low, parts.high, families, of_numbers, of_texts)

    counts = np.zeros(len(kins), np.int64)
    for place in np.flatnonzero(families == DIRECT).tolist():
        counts[place] = KINDS if kins[place][1] is Axis.PRESENCE else BOOLEANS
    numbers = int(counts.sum())
    number_cell, near, fine, wide = _numbers(parts, renumbered, of_numbers, counts)
    texts = numbers + near.size
    text_cell, blob, at = _texts(parts, renumbered, of_texts, counts)
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
    _ranges(
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
    has, seed, slots = _hashed(has, families, value_first, texts, blob, at)
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


def _numbers(
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


def _texts(
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


class _Table(NamedTuple):
    """The texts, and the table of their hashes that is being made, by addresses."""

    value_first: int
    texts: int
    at: int
    blob: int
    limit: int
    seed: int
    places: int
    slots: int


def _hashed(
    has: NDArray[np.uint8], families: Ints, value_first: Ints, texts: int, blob: Bytes, at: Longs
) -> tuple[NDArray[np.uint8], int, Longs]:
    """The table of hashes with the seed that suits it best; what finds no place in it is to be bisected."""
    kins = np.flatnonzero((families == TEXTS) & (has & POINTS > 0))
    count = int(np.diff(value_first)[kins].sum())
    places = 1 << max(2 * count - 1, 1).bit_length()
    best: tuple[int, int, Longs, NDArray[np.uint8]] | None = None
    for seed in range(_SEEDS):
        slots, homeless = np.zeros(2 * places, np.int64), np.zeros(has.size, np.uint8)
        table = _Table(
            address(value_first),
            texts,
            address(at),
            address(blob),
            address(blob) + blob.size,
            seed,
            places,
            address(slots),
        )
        for kin in kins.tolist():
            homeless[kin] = not _place(table, kin)
        if best is None or homeless.sum() < best[0]:
            best = int(homeless.sum()), seed, slots, homeless
        if not best[0]:
            break
    assert best is not None
    return has | np.where(best[3], RANGES, 0).astype(np.uint8), best[1], best[2]


@kernel
def _use(
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
def _ranges(
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


@kernel
def hashed_text(place: int, length: int, limit: int, seed: int, kin: int) -> int:
    """The hash of a text of the kin: its lowest bits say where it belongs, its highest are kept with it."""
    mixed = (hash_of(place, length, limit, seed) + kin) * _MIX
    return mixed ^ (mixed >> 32)


@kernel
def tag_of(mixed: int, length: int) -> int:
    """What is kept of the hash and the length of a text, above the 32 bits of its cell."""
    return ((mixed >> 48) << 48) | (min(length, LONG_TEXT) << 32)


@fresh
@kernel
def _place(table: _Table, kin: int) -> bool:
    """Put the texts of the kin into the table of hashes; whether all found a place."""
    for cell in range(load_int(table.value_first, kin), load_int(table.value_first, kin + 1)):
        start = load_long(table.at, cell - table.texts)
        length = load_long(table.at, cell - table.texts + 1) - start
        mixed = hashed_text(table.blob + start, length, table.limit, table.seed, kin)
        place, left = mixed & (table.places - 1), PROBES
        while left and load_long(table.slots, 2 * place + 1):
            place = (place + 1) & (table.places - 1)
            left -= 1
        if not left:
            return False
        store_long(table.slots, 2 * place, word_of(table.blob + start, length, table.limit))
        store_long(table.slots, 2 * place + 1, tag_of(mixed, length) | (cell + 1))
    return True
