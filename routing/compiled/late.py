"""Late values: those that the compiled pass leaves to Python, ranked one by one.

Their positions are worked out as `dimensions.position` would, and are then looked up among the bounds, all at
once. Instants and addresses, folded texts and what they are in order by become keys (`gathering.late_key`),
of which the last ones are remembered.

Cost: 1 to 5 µs a value.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from branchline.routing.compiled.bounds import Bounds, Marks
from branchline.routing.compiled.freshness import fresh
from branchline.routing.compiled.gathering import late_key
from branchline.routing.compiled.kernels import kernel
from branchline.routing.compiled.memory import Ints, address, load_int, load_long, store_int
from branchline.routing.compiled.ordering import ordered
from branchline.routing.compiled.positions import number_rank, text_rank
from branchline.routing.compiled.spans import Scanned
from branchline.routing.compiled.texts import Longs
from branchline.routing.compiled.words import Automaton, find_words
from branchline.routing.dimensions import Axis


class _Late(NamedTuple):
    """Late texts, as keys, by addresses."""

    limit: int
    size: int
    kins: int
    steps: int
    cells: int
    """Where the rank goes; of a text for words, its row."""
    at: int
    blob: int


def rank_late(
    bounds: Bounds, scanned: Scanned, kins: Ints, entries: Longs, cells: Longs, rank: Ints
) -> tuple[Ints, Ints]:
    """Put down the ranks of late values; the words found in late texts, by their rows.

    `cells` says where the rank of each goes; of a text for words, its row.
    """
    starts, ends = scanned.start[entries].tolist(), scanned.end[entries].tolist()
    texts = [scanned.text[start:end].tobytes() for start, end in zip(starts, ends, strict=True)]
    axes = [bounds.kins[kin][1] for kin in kins.tolist()]
    is_number = np.array([axis is Axis.NUMBER for axis in axes])
    numbers = [_number(bounds, text) for axis, text in zip(axes, texts, strict=True) if axis is Axis.NUMBER]
    near = ordered(np.array([each for each, _ in numbers], np.float64)).tolist()
    places = zip(kins[is_number].tolist(), cells[is_number].tolist(), strict=True)
    for (kin, cell), key, (_, fine) in zip(places, near, numbers, strict=True):
        first, end = bounds.value_first[kin : kin + 2].tolist()
        rank[cell] = number_rank(bounds.marks, first, end, int(bounds.arrays["has"][kin]), key, fine)
    keys = [late_key(axis, text) for axis, text in zip(axes, texts, strict=True) if axis is not Axis.NUMBER]
    kins, cells = kins[~is_number], cells[~is_number]
    blob, at = np.frombuffer(b"".join(keys), np.uint8), np.cumsum([0, *map(len, keys)])
    columns: list[NDArray[Any]] = [kins, bounds.steps_of(kins), cells, at, blob]
    late = _Late(address(blob) + blob.size, len(keys), *map(address, columns))
    _rank_keys(bounds.marks, late, address(rank))
    stamp = np.full(bounds.words, -1, np.int32)
    rows, found = np.empty(0, np.int32), np.empty(0, np.int32)
    while True:
        scratch = address(stamp), address(rows), address(found), found.size
        count = _find_late(bounds.marks, bounds.automaton, late, *scratch)
        if count <= found.size:
            return rows, found
        stamp[:] = -1
        rows, found = np.empty(count, np.int32), np.empty(count, np.int32)


def _number(bounds: Bounds, text: bytes) -> tuple[float, int]:
    """A number as the reader of JSON takes it: whole if it is written so, else a double."""
    digits = text[1:] if text[:1] == b"-" else text
    return bounds.fine_of(int(text)) if digits.isdigit() else (float(text) + 0.0, 0)


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
        # Keys are folded already.
        count = find_words(automaton, root, late.blob + start, length, False, stamp, row, found, room, count)
        for each in range(before, min(count, room)):
            store_int(rows, each, row)
    return count
