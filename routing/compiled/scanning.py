"""From the bytes of a JSON document to entries for the paths that are named, in one pass.

Theory of operation. The document is read as a whole and checked to the last byte, as strictly as the
reference reader does, but nothing is made of it: beside the place in the text goes the node of the trie that
the names so far lead to, or -1 once they lead away from every path. A value at a node where a path ends is an
entry.

Whatever would need more than that is left to the reference reader, by giving up: an array at a node of the
trie, a name that comes twice and has names below it, limits that may be exceeded, and everything that is no
JSON. So what is accepted here is what the reference reader accepts, with the same values. Of a repeated name
without any below, the last one counts, as there.

Depth is bounded by the stack, which is as long as the levels allowed; there is no recursion.

Cost: about a nanosecond for each byte of short names and numbers, less within long strings.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from branchline.routing.compiled.memory import (
    Bytes,
    Ints,
    address,
    byte_at,
    load_byte,
    load_int,
    load_long,
    part,
    store_byte,
    store_int,
    store_long,
)
from branchline.routing.compiled.paths import Layout, Trie, below, is_inner, path_at
from branchline.routing.compiled.spans import Scanned
from branchline.routing.compiled.tokens import (
    FAILED,
    MINUS,
    NINE,
    QUOTE,
    ZERO,
    read_number,
    read_string,
    read_word,
    skip_space,
)
from branchline.routing.limits import EVENT_MAX_DEPTH, EVENT_MAX_FIELDS, NAME_MAX_BYTES
from branchline.routing.values import Kind

NULL, BOOLEAN, NUMBER, TEXT, OBJECT = (
    int(kind) for kind in (Kind.NULL, Kind.BOOLEAN, Kind.NUMBER, Kind.TEXT, Kind.OBJECT)
)
COMMA, COLON, SMALL_N = ord(","), ord(":"), ord("n")
OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY = ord("{"), ord("}"), ord("["), ord("]")

_WITHIN_ARRAY = -2
"""What the stack says of an array, which is never on the trie; of an object it has the node."""


class Desk(NamedTuple):
    """What scanning reads and writes while it works: addresses."""

    text: int
    """What spans are counted from."""
    met: int
    """For each node of the trie, the last event that had it. Events are numbered from 1."""
    levels: int
    """The stack: what surrounds the value that is read."""
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
    """How many entries there can be."""

    def desk(self) -> Desk:
        """The desk for a kernel. Whoever has it keeps the work, too."""
        start = address(self.block)
        places = (start + place for place in _places(self.most))
        return Desk(address(self.text), address(self.met), *places)

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
    paths = levels + 4 * EVENT_MAX_DEPTH
    return levels, paths, paths + 4 * most, 0, 8 * most


def work(text: Bytes, trie: Trie, most: int) -> Work:
    """For the events of a text, which have so many entries at most."""
    size = _places(most)[2] + most
    return Work(text, np.zeros(len(trie.nodes), np.int32), np.empty(size, np.uint8), most)


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
def move_entry(desk: Desk, to: int, at: int) -> None:
    """Write an entry over another."""
    store_int(desk.path, to, load_int(desk.path, at))
    store_byte(desk.kind, to, load_byte(desk.kind, at))
    store_long(desk.start, to, load_long(desk.start, at))
    store_long(desk.end, to, load_long(desk.end, at))


@part
def read_value(
    at: int,
    node: int,
    levels: int,
    event: int,
    trie: Layout,
    desk: Desk,
    row: int,
    count: int,
) -> tuple[int, int, int]:
    """The place behind the value that begins here and behind the space after it, the entries, and the leaves.

    The value stands at the node, or at none; the event's entries are from `row` to `count`.
    """
    depth, leaves, within = 0, 0, _WITHIN_ARRAY
    while True:
        if within != _WITHIN_ARRAY:
            at, node, count = _read_name(at, within, event, trie, desk, row, count)
            if at < 0:
                return FAILED, row, 0
        byte = byte_at(at)
        path = path_at(trie, node)
        if byte == QUOTE:
            end, behind = read_string(at + 1)
            if behind < 0:
                return FAILED, row, 0
            count = put(desk, count, path, TEXT, at + 1, end)
            leaves += 1
            at = behind
        elif byte == OPEN_OBJECT:
            if depth == levels:
                return FAILED, row, 0
            count = put(desk, count, path, OBJECT, at, at)
            at = skip_space(at + 1)
            if byte_at(at) != CLOSE_OBJECT:
                within = node if is_inner(trie, node) else -1
                store_int(desk.levels, depth, within)
                depth += 1
                continue
            leaves += 1
            at += 1
        elif byte == OPEN_ARRAY:
            if node >= 0 or depth == levels:
                return FAILED, row, 0
            at = skip_space(at + 1)
            if byte_at(at) != CLOSE_ARRAY:
                within = _WITHIN_ARRAY
                store_int(desk.levels, depth, within)
                depth += 1
                continue
            leaves += 1
            at += 1
        else:
            number = byte == MINUS or ZERO <= byte <= NINE
            behind = read_number(at) if number else read_word(at)
            if behind < 0:
                return FAILED, row, 0
            kind = NUMBER if number else NULL if byte == SMALL_N else BOOLEAN
            count = put(desk, count, path, kind, at, at if kind == NULL else behind)
            leaves += 1
            at = behind
        at = skip_space(at)
        if depth == 0:
            return at, count, leaves
        while True:
            byte, within = byte_at(at), load_int(desk.levels, depth - 1)
            at = skip_space(at + 1)
            if byte == COMMA:
                if leaves > EVENT_MAX_FIELDS:
                    return FAILED, row, 0
                node = -1
                break
            if byte != (CLOSE_ARRAY if within == _WITHIN_ARRAY else CLOSE_OBJECT):
                return FAILED, row, 0
            depth -= 1
            if depth == 0:
                return at, count, leaves


@part
def _read_name(
    at: int,
    within: int,
    event: int,
    trie: Layout,
    desk: Desk,
    row: int,
    count: int,
) -> tuple[int, int, int]:
    """The place of the value whose name begins here, its node, and the count of entries."""
    start, end, at = read_member(at)
    if at < 0 or within < 0:
        return at, -1, count
    node = below(trie, within, start, end - start)
    if node == trie.kafka:
        return at, -1, count
    if node >= 0:
        if load_int(desk.met, node) == event:
            if is_inner(trie, node):
                return FAILED, -1, count
            count = _without(desk, row, count, path_at(trie, node))
        store_int(desk.met, node, event)
    return at, node, count


@part
def read_member(at: int) -> tuple[int, int, int]:
    """Where the name that begins here has its text, from and to, and the place of its value."""
    if byte_at(at) != QUOTE:
        return FAILED, FAILED, FAILED
    start = at + 1
    end, at = read_string(start)
    if at < 0 or end - start > NAME_MAX_BYTES:
        return FAILED, FAILED, FAILED
    at = skip_space(at)
    if byte_at(at) != COLON:
        return FAILED, FAILED, FAILED
    return start, end, skip_space(at + 1)


@part
def _without(desk: Desk, row: int, count: int, path: int) -> int:
    """Take the path's entry out of the row, and put the last one in its place."""
    for at in range(row, count):
        if load_int(desk.path, at) == path:
            move_entry(desk, at, count - 1)
            return count - 1
    return count
