"""From what was scanned to ranks: where each row lies on the dimensions that filters name.

For each entry and each kin of its path the value's rank is looked up. Most of it is done in one compiled
pass. What needs Python is *late*: numbers of many digits, instants, addresses, and texts beyond ASCII whose
case is to be folded. Such a value has its place among the cells already; afterwards its position is worked
out as `dimensions.position` would, one by one, and ranked with all others that are late.

A text behind the longest of a dimension's values compares as its beginning does, so no more than that of it
is read: what a long text costs is bounded by the filters. Words are looked for in all of it.

Cost: some 20 ns for each entry and kin; late values 1 to 5 µs each, and they are counted (`Cells.late`).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from branchline.routing.compiled.bounds import (
    POINTS,
    PROBES,
    RANGES,
    STEP,
    Bounds,
    Marks,
    Step,
    hashed_text,
    ordered,
    tag_of,
)
from branchline.routing.compiled.freshness import fresh
from branchline.routing.compiled.gathering import late_key
from branchline.routing.compiled.kernels import kernel
from branchline.routing.compiled.literals import LATE, read_literal
from branchline.routing.compiled.memory import (
    Ints,
    address,
    byte_at,
    load_byte,
    load_int,
    load_long,
    store_byte,
    store_int,
    store_long,
)
from branchline.routing.compiled.spans import Scanned
from branchline.routing.compiled.texts import Longs, head_of, order_of, word_of
from branchline.routing.compiled.words import Automaton, find_words
from branchline.routing.dimensions import Axis
from branchline.routing.values import Kind

_PRESENCE, _BOOLEAN, _NUMBER = int(Axis.PRESENCE), int(Axis.BOOLEAN), int(Axis.NUMBER)
_TEXT, _FOLDED, _FOLDED_REVERSED = int(Axis.TEXT), int(Axis.FOLDED), int(Axis.FOLDED_REVERSED)
_OF_BOOLEAN, _OF_NUMBER, _OF_TEXT = int(Kind.BOOLEAN), int(Kind.NUMBER), int(Kind.TEXT)

_KIN, _AXIS, _HAS, _FIRST, _END, _LONGEST = range(len(Step._fields))

NOWHERE = -1
"""The rank of a value that no constraint on its dimension can hold for."""

_NOT_YET = -2
"""The rank of a value that is late."""


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


class _Late(NamedTuple):
    """Late texts, as keys, by addresses."""

    limit: int
    size: int
    kins: int
    steps: int
    cells: int
    """As in `_Out.late_cell`."""
    at: int
    blob: int


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
    made = Cells(first, dimension[:cells], ranks[:cells], word_first, found[: word_first[-1]], late)
    if not late:
        return made
    return _with_late(bounds, scanned, made, late_kin[:late], late_entry[:late], late_cell[:late])


def _with_late(
    bounds: Bounds, scanned: Scanned, made: Cells, kins: Ints, entries: Longs, cells: Longs
) -> Cells:
    """The cells with the late values ranked; the words of all rows, with those found in late texts."""
    starts, ends = scanned.start[entries].tolist(), scanned.end[entries].tolist()
    texts = [scanned.text[start:end].tobytes() for start, end in zip(starts, ends, strict=True)]
    axes = [bounds.kins[kin][1] for kin in kins.tolist()]
    is_number = np.array([axis is Axis.NUMBER for axis in axes])
    numbers = [_number(bounds, text) for axis, text in zip(axes, texts, strict=True) if axis is Axis.NUMBER]
    if numbers:
        near = ordered(np.array([each[0] for each in numbers]))
        for kin, cell, key, (_, fine) in zip(
            kins[is_number].tolist(), cells[is_number].tolist(), near.tolist(), numbers, strict=True
        ):
            first, end = bounds.value_first[kin], bounds.value_first[kin + 1]
            has = bounds.arrays["has"][kin]
            made.rank[cell] = number_rank(bounds.marks, int(first), int(end), int(has), key, fine)
    keys = [late_key(axis, text) for axis, text in zip(axes, texts, strict=True) if axis is not Axis.NUMBER]
    if not keys:
        return made
    kins, cells = kins[~is_number], cells[~is_number]
    blob, at = np.frombuffer(b"".join(keys), np.uint8), np.cumsum([0, *map(len, keys)])
    steps = bounds.steps_of(kins)
    columns: list[NDArray[Any]] = [kins, steps, cells, at, blob]
    late = _Late(address(blob) + blob.size, len(keys), *map(address, columns))
    _rank_keys(bounds.marks, late, address(made.rank))
    if not np.any(kins >= bounds.dimensions):
        return made
    stamp = np.full(bounds.words, -1, np.int32)
    rows, found = np.empty(0, np.int32), np.empty(0, np.int32)
    while True:
        scratch = address(stamp), address(rows), address(found), found.size
        count = _find_late(bounds.marks, bounds.automaton, late, *scratch)
        if count <= found.size:
            break
        stamp[:] = -1
        rows, found = np.empty(count, np.int32), np.empty(count, np.int32)
    rows = np.concatenate([np.repeat(np.arange(made.first.size - 1), np.diff(made.word_first)), rows])
    word_first = np.zeros_like(made.word_first)
    np.cumsum(np.bincount(rows, minlength=made.first.size - 1), out=word_first[1:])
    word = np.concatenate([made.word, found])[np.argsort(rows, kind="stable")]
    return Cells(made.first, made.dimension, made.rank, word_first, word, made.late)


def _number(bounds: Bounds, text: bytes) -> tuple[float, int]:
    """A number as the reader of JSON takes it: whole if it is written so, else a double."""
    digits = text[1:] if text[:1] == b"-" else text
    return bounds.fine_of(int(text)) if digits.isdigit() else (float(text) + 0.0, 0)


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
def _turned(start: int, length: int, axis: int, most: int, scratch: int) -> int:
    """A text folded, reversed or both, as far as it matters; how many bytes, or -1 if Python must fold it."""
    made = 0
    if axis == _FOLDED:
        for at in range(min(length, most)):
            byte = load_byte(start, at)
            if byte >= 128:
                return -1
            store_byte(scratch, made, byte + 32 if 65 <= byte <= 90 else byte)
            made += 1
        return made
    at = length
    while at > 0 and made < most:
        at -= 1
        byte = load_byte(start, at)
        if byte < 128:
            store_byte(scratch, made, byte + 32 if axis == _FOLDED_REVERSED and 65 <= byte <= 90 else byte)
            made += 1
            continue
        if axis == _FOLDED_REVERSED:
            return -1
        # The bytes of one code point stay in their order.
        size = 1
        while at > 0 and load_byte(start, at) & 0xC0 == 0x80:
            at -= 1
            size += 1
        for place in range(min(size, most - made)):
            store_byte(scratch, made, load_byte(start, at + place))
            made += 1
    return made


@fresh
@kernel
def number_rank(marks: Marks, first: int, end: int, has: int, near: int, fine: int) -> int:
    """The rank of a number, given as a double and its place among those that are none."""
    low, high = first - marks.numbers, end - marks.numbers
    while low < high:
        middle = (low + high) >> 1
        value = load_long(marks.near, middle)
        if value < near or (value == near and load_int(marks.fine, middle) < fine):
            low = middle + 1
        else:
            high = middle
    cell = low + marks.numbers
    if cell < end and load_long(marks.near, low) == near and load_int(marks.fine, low) == fine:
        return 2 * (cell - first) + 1
    return 2 * (cell - first) if has & RANGES else NOWHERE


@kernel
def _bisected(marks: Marks, first: int, end: int, start: int, length: int, limit: int) -> int:
    """The rank of a text, found among the values in order."""
    head = head_of(start, length, limit)
    low, high = first - marks.texts, end - marks.texts
    while low < high:
        middle = (low + high) >> 1
        order = load_long(marks.heads, middle)
        if order != head:
            order = -1 if order < head else 1
        else:
            begin = load_long(marks.at, middle)
            size = load_long(marks.at, middle + 1) - begin
            order = order_of(marks.blob + begin, size, marks.limit, start, length, limit)
        if order == 0:
            return 2 * (middle - first + marks.texts) + 1
        if order < 0:
            low = middle + 1
        else:
            high = middle
    return 2 * (low - first + marks.texts)


@kernel
def _is_text(marks: Marks, cell: int, start: int, length: int, limit: int) -> bool:
    """Whether the cell's value is the text."""
    begin = load_long(marks.at, cell - marks.texts)
    size = load_long(marks.at, cell - marks.texts + 1) - begin
    return size == length and order_of(start, length, limit, marks.blob + begin, size, marks.limit) == 0


@kernel
def text_rank(marks: Marks, step: int, start: int, length: int, limit: int) -> int:
    """The rank of a text on an axis of texts."""
    has, longest = load_int(step, _HAS), load_int(step, _LONGEST)
    first, end = load_int(step, _FIRST), load_int(step, _END)
    length = min(length, longest + 1)
    if has & POINTS and length <= longest:
        mixed = hashed_text(start, length, limit, marks.seed, load_int(step, _KIN))
        tag, word = tag_of(mixed, length), word_of(start, length, limit)
        place = mixed & (marks.places - 1)
        for _ in range(PROBES):
            found = load_long(marks.slots, 2 * place + 1)
            if found == 0:
                break
            if (found >> 32) << 32 == tag and load_long(marks.slots, 2 * place) == word:
                cell = (found & 0xFFFFFFFF) - 1
                if first <= cell < end and (length <= 8 or _is_text(marks, cell, start, length, limit)):
                    return 2 * (cell - first) + 1
            place = (place + 1) & (marks.places - 1)
    if not has & RANGES:
        return NOWHERE
    return _bisected(marks, first, end, start, length, limit)


@kernel
def _rank_on(
    marks: Marks, step: int, axis: int, kind: int, start: int, length: int, limit: int, scratch: int
) -> int:
    """The rank of a value on a dimension."""
    if axis == _TEXT:
        return text_rank(marks, step, start, length, limit) if kind == _OF_TEXT else NOWHERE
    if axis == _NUMBER:
        if kind != _OF_NUMBER:
            return NOWHERE
        number = read_literal(start, length)
        if number == LATE:
            return _NOT_YET
        first, end = load_int(step, _FIRST), load_int(step, _END)
        return number_rank(marks, first, end, load_int(step, _HAS), number, 0)
    if axis == _PRESENCE:
        return 2 * kind + 1
    if axis == _BOOLEAN:
        if kind != _OF_BOOLEAN:
            return NOWHERE
        return 3 if byte_at(start) == 116 else 1  # the t of true
    if kind != _OF_TEXT:
        return NOWHERE
    if axis > _FOLDED_REVERSED:
        return _NOT_YET
    made = _turned(start, length, axis, load_int(step, _LONGEST) + 1, scratch)
    return _NOT_YET if made < 0 else text_rank(marks, step, scratch, made, scratch + made)


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
                    rank = _rank_on(marks, step, axis, kind, start, length, spans.limit, out.scratch)
                    if rank == NOWHERE:
                        continue
                    store_int(out.dimension, cells, kin)
                    store_int(out.rank, cells, rank)
                    late_cell = cells
                    cells += 1
                    if rank != _NOT_YET:
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


@fresh
@kernel
def _rank_keys(marks: Marks, late: _Late, rank: int) -> None:
    """Rank late texts, given as keys."""
    for place in range(late.size):
        if load_int(late.kins, place) < marks.ranked:
            start = load_long(late.at, place)
            length = load_long(late.at, place + 1) - start
            found = text_rank(marks, load_long(late.steps, place), late.blob + start, length, late.limit)
            store_int(rank, load_long(late.cells, place), found)


@fresh
@kernel
def _find_late(
    marks: Marks, automaton: Automaton, late: _Late, stamp: int, rows: int, found: int, room: int
) -> int:
    """The words of late texts and the rows that they were found in; how many there are, room or not."""
    count = load_long(late.at, 0)
    for place in range(late.size):
        root = load_int(late.kins, place) - marks.ranked
        if root < 0:
            continue
        row, before = load_long(late.cells, place), count
        start = load_long(late.at, place)
        length = load_long(late.at, place + 1) - start
        fold = root < 0
        count = find_words(automaton, root, late.blob + start, length, fold, stamp, row, found, room, count)
        for each in range(before, min(count, room)):
            store_int(rows, each, row)
    return count
