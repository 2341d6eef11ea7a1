"""From what was scanned to ranks: where each row lies on the dimensions that filters name.

For each entry and each kin of its path the value's rank is looked up. Most of it is done in one compiled
pass. What needs Python is *late*: numbers of many digits, instants, addresses, and texts beyond ASCII whose
case is to be folded. Such a value has its place among the cells already; afterwards its position is worked
out as `dimensions.position` would, one by one, and ranked with all others that are late.

Cost: some 20 ns for each entry and kin; late values 1 to 5 µs each, and they are counted (`Cells.late`).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from branchline.routing.compiled.bounds import STEP, Bounds, Marks, Step
from branchline.routing.compiled.freshness import fresh
from branchline.routing.compiled.kernels import kernel
from branchline.routing.compiled.late import rank_late
from branchline.routing.compiled.memory import (
    Ints,
    address,
    byte_at,
    load_byte,
    load_int,
    load_long,
    store_int,
    store_long,
)
from branchline.routing.compiled.positions import NOT_YET, NOWHERE, rank_on
from branchline.routing.compiled.spans import Scanned
from branchline.routing.compiled.texts import Longs
from branchline.routing.compiled.words import Automaton, find_words
from branchline.routing.dimensions import Axis
from branchline.routing.values import Kind

_TEXT, _FOLDED, _OF_TEXT = int(Axis.TEXT), int(Axis.FOLDED), int(Kind.TEXT)
_KIN, _AXIS = Step._fields.index("kin"), Step._fields.index("axis")


@dataclass(frozen=True, slots=True)
class Cells:
    """For each row its ranks and the words found in it.

    A dimension has at most one cell in a row, and a word is there once. Where a row has no cell for a
    dimension, it has no position there, or no constraint holds at it; but a path that is missing has the
    rank 1 on presence.
    """

    first: Longs
    dimension: Ints
    rank: Ints
    """NOWHERE where nothing holds."""
    word_first: Longs
    word: Ints
    late: int
    """How many values had to be ranked in Python."""


class _Spans(NamedTuple):
    """What was scanned, by addresses."""

    text: int
    limit: int
    first: int
    path: int
    kind: int
    start: int
    end: int


class _Out(NamedTuple):
    """What is made of it, by addresses."""

    first: int
    dimension: int
    rank: int
    word_first: int
    late_kin: int
    late_entry: int
    late_cell: int
    """Where the rank of a late value goes; of a text for words, its row."""
    scratch: int
    stamp: int
    """For each word the last row that it was found in."""


def rank(bounds: Bounds, scanned: Scanned) -> Cells:
    """The cells of all rows."""
    found_at = (scanned.first, scanned.path, scanned.kind, scanned.start, scanned.end)
    columns: list[NDArray[Any]] = [np.ascontiguousarray(each) for each in found_at]
    text = np.ascontiguousarray(scanned.text)
    spans = _Spans(address(text), address(text) + text.size, *map(address, columns))
    rows, words = scanned.rows, bounds.words
    most = _most(bounds.marks, len(scanned.path), spans.path)
    first, word_first = np.zeros(rows + 1, np.int64), np.zeros(rows + 1, np.int64)
    dimension, ranks, late_kin = (np.empty(most, np.int32) for _ in range(3))
    late_entry, late_cell = np.empty(most, np.int64), np.empty(most, np.int64)
    # No text is longer in it than the longest value and one byte more.
    scratch = np.empty(int(bounds.arrays["longest"].max(initial=0)) + 16, np.uint8)
    stamp = np.full(words, -1, np.int32)
    found = np.empty(4 * rows if words else 0, np.int32)
    arrays: tuple[NDArray[Any], ...] = (
        first,
        dimension,
        ranks,
        word_first,
        late_kin,
        late_entry,
        late_cell,
        scratch,
        stamp,
    )
    out = _Out(*map(address, arrays))
    row = cells = late = 0
    while True:
        row, cells, late = _rank(
            bounds.marks, bounds.automaton, spans, out, rows, row, cells, late, address(found), found.size
        )
        if row >= rows:
            break
        # The row is done again with more room, as if it had not been begun.
        stamp[stamp == row] = -1
        found = np.concatenate([found, np.empty(found.size + words, np.int32)])
    word = found[: word_first[-1]]
    if late:
        more = rank_late(bounds, scanned, late_kin[:late], late_entry[:late], late_cell[:late], ranks)
        word_first, word = _with_words(word_first, word, *more)
    return Cells(first, dimension[:cells], ranks[:cells], word_first, word, late)


def _with_words(first: Longs, word: Ints, rows: Ints, found: Ints) -> tuple[Longs, Ints]:
    """The words of all rows, with those that were found late."""
    if not found.size:
        return first, word
    rows = np.concatenate([np.repeat(np.arange(first.size - 1), np.diff(first)), rows])
    made = np.zeros_like(first)
    np.cumsum(np.bincount(rows, minlength=first.size - 1), out=made[1:])
    return made, np.concatenate([word, found])[np.argsort(rows, kind="stable")]


@fresh
@kernel
def _most(marks: Marks, entries: int, paths: int) -> int:
    """How many cells there can be."""
    most = 0
    for entry in range(entries):
        path = load_int(paths, entry)
        if path < marks.paths:
            most += load_int(marks.path_first, path + 1) - load_int(marks.path_first, path)
    return most


@kernel
def _is_ascii(place: int, length: int) -> bool:
    seen = 0
    for at in range(place, place + length):
        seen |= byte_at(at)
    return seen < 128


@fresh
@kernel
def _rank(
    marks: Marks,
    automaton: Automaton,
    spans: _Spans,
    out: _Out,
    rows: int,
    row: int,
    cells: int,
    late: int,
    found: int,
    room: int,
) -> tuple[int, int, int]:
    """Rank rows from this one on, until words find no room: the next row, and how many cells and late
    ones.
    """
    words = load_long(out.word_first, row)
    while row < rows:
        begun_cells, begun_late, count = cells, late, words
        for entry in range(load_long(spans.first, row), load_long(spans.first, row + 1)):
            path = load_int(spans.path, entry)
            if path >= marks.paths:
                continue
            kind = load_byte(spans.kind, entry)
            start = load_long(spans.start, entry)
            length = load_long(spans.end, entry) - start
            start += spans.text
            for place in range(load_int(marks.path_first, path), load_int(marks.path_first, path + 1)):
                step = marks.steps + 4 * STEP * place
                kin, axis = load_int(step, _KIN), load_int(step, _AXIS)
                if kin < marks.ranked:
                    rank = rank_on(marks, step, axis, kind, start, length, spans.limit, out.scratch)
                    if rank == NOWHERE:
                        continue
                    store_int(out.dimension, cells, kin)
                    store_int(out.rank, cells, rank)
                    late_cell = cells
                    cells += 1
                    if rank != NOT_YET:
                        continue
                elif kind != _OF_TEXT:
                    continue
                elif axis == _TEXT or _is_ascii(start, length):
                    root, fold = kin - marks.ranked, axis == _FOLDED
                    count = find_words(
                        automaton, root, start, length, fold, out.stamp, row, found, room, count
                    )
                    continue
                else:
                    late_cell = row
                store_int(out.late_kin, late, kin)
                store_long(out.late_entry, late, entry)
                store_long(out.late_cell, late, late_cell)
                late += 1
        if count > room:
            return row, begun_cells, begun_late
        words = count
        row += 1
        store_long(out.first, row, cells)
        store_long(out.word_first, row, words)
    return row, cells, late
