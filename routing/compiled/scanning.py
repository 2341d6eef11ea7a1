"""Where the scanner works: what it keeps in mind of a document, and the columns that entries are written to.

Entries stand one behind the other, event by event. At a desk that *chooses* there are marks between them,
which say where an array is that filters may choose from (`spreading.py`).
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from branchline.routing.compiled.memory import (
    Bytes,
    Ints,
    address,
    load_byte,
    load_int,
    load_long,
    part,
    store_byte,
    store_int,
    store_long,
)
from branchline.routing.compiled.paths import Trie
from branchline.routing.compiled.spans import Scanned
from branchline.routing.limits import EVENT_MAX_DEPTH

OPENS, NEXT, CLOSES = -1, -2, -3
"""The marks, in the place of a path: where an array opens, where its next element begins, where it closes."""

_STAMPS = (1 << 30) - 1


class Desk(NamedTuple):
    """What scanning reads and writes while it works: addresses."""

    text: int
    """What spans are counted from."""
    met: int
    """For each node of the trie the stamp of what had it last: an event, numbered from 1, or an element of an
    array, which is below 0. Where two have the same stamp, a name is taken for one that comes twice."""
    chooses: int
    """Whether choices are read: 1 or 0."""
    levels: int
    """The stack, two numbers for each level: what surrounds the value that is read, and its stamp."""
    path: int
    """Here and below: where entries are written, each column as long as there can be entries."""
    kind: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Work:
    """The memory that a desk speaks of: one block for all that is written, because each address that is asked
    for costs a microsecond.
    """

    text: Bytes
    met: Ints
    block: Bytes
    most: int
    """How many entries and marks there can be."""
    chooses: bool

    def desk(self) -> Desk:
        """The desk for a kernel. Whoever has it keeps the work, too."""
        start = address(self.block)
        places = (start + place for place in _places(self.most))
        return Desk(address(self.text), address(self.met), int(self.chooses), *places)

    def with_room(self, most: int) -> "Work":
        """The same with room for so many entries, of which none is written."""
        return replace(self, block=np.empty(_places(most)[2] + most, np.uint8), most=most)

    def rows(self, first: NDArray[np.int64], event: Ints) -> Scanned:
        """The entries that were written, as rows."""
        path, kind, starts, ends = (
            self.block[place : place + first[-1] * width.itemsize].view(width)
            for place, width in zip(_places(self.most)[1:], _WIDTHS, strict=True)
        )
        return Scanned(self.text, first, path, kind, starts, ends, event)


_WIDTHS = tuple(map(np.dtype, (np.int32, np.uint8, np.int64, np.int64)))


def _places(most: int) -> tuple[int, int, int, int, int]:
    """Where in the block levels, paths, kinds, starts and ends begin; the wider ones come first."""
    levels = 2 * 8 * most
    paths = levels + 2 * 4 * EVENT_MAX_DEPTH
    return levels, paths, paths + 4 * most, 0, 8 * most


def work(text: Bytes, trie: Trie, most: int, chooses: bool = False) -> Work:
    """For the events of a text, which have so many entries at most."""
    size = _places(most)[2] + most
    return Work(text, np.zeros(len(trie.nodes), np.int32), np.empty(size, np.uint8), most, chooses)


@part
def put(desk: Desk, at: int, path: int, kind: int, start: int, end: int) -> int:
    """Write an entry if there is a path for it; where the next one goes."""
    if path < 0:
        return at
    store_int(desk.path, at, path)
    store_byte(desk.kind, at, kind)
    store_long(desk.start, at, start - desk.text)
    store_long(desk.end, at, end - desk.text)
    return at + 1


@part
def put_mark(desk: Desk, at: int, node: int, mark: int) -> int:
    """Write a mark if there is a node for it; where the next entry goes."""
    if node < 0:
        return at
    store_int(desk.path, at, mark)
    return at + 1


@part
def stamp_of(desk: Desk, at: int) -> int:
    """The stamp of the element that begins here: the same wherever the text lies in memory."""
    return ~(at - desk.text & _STAMPS)


@part
def move_entry(desk: Desk, to: int, at: int) -> None:
    """Write an entry over another."""
    store_int(desk.path, to, load_int(desk.path, at))
    store_byte(desk.kind, to, load_byte(desk.kind, at))
    store_long(desk.start, to, load_long(desk.start, at))
    store_long(desk.end, to, load_long(desk.end, at))
