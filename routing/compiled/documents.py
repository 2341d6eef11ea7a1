"""From the bytes of a JSON document to entries for the paths that are named, in one pass.

Theory of operation. The document is read as a whole and checked to the last byte, as strictly as the
reference reader does, but nothing is made of it: beside the place in the text goes the node of the trie that
the names so far lead to, or -1 once they lead away from every path. A value at a node where a path ends is an
entry.

An array at a node of the trie ends the reading, with CHOICES: few events have one, and they are read a second
time, at a desk that `chooses`. There the entries stand as they come, with *marks* between them where such an
array opens, where its next element begins and where it closes; `spreading` makes a row of each choice. A name
may then come again in the next element, so each element has a stamp of its own.

Whatever would need more than that is left to the reference reader, by giving up: a name that comes twice and
has names below it, or is in an event with choices; limits that may be exceeded, and everything that is no
JSON. So what is accepted here is what the reference reader accepts, with the same values. Of another repeated
name the last one counts, as there.

Depth is bounded by the stack, which is as long as the levels allowed; there is no recursion.

Cost: about a nanosecond for each byte of short names and numbers, less within long strings.
"""

from branchline.routing.compiled.memory import byte_at, load_int, part, store_int
from branchline.routing.compiled.paths import Layout, below, is_inner, path_at
from branchline.routing.compiled.scanning import (
    CLOSES,
    NEXT,
    OPENS,
    Desk,
    move_entry,
    put,
    put_mark,
    stamp_of,
)
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
from branchline.routing.limits import EVENT_MAX_FIELDS, NAME_MAX_BYTES
from branchline.routing.values import Kind

NULL, BOOLEAN, NUMBER, TEXT, OBJECT = (
    int(kind) for kind in (Kind.NULL, Kind.BOOLEAN, Kind.NUMBER, Kind.TEXT, Kind.OBJECT)
)
COMMA, COLON, SMALL_N = ord(","), ord(":"), ord("n")
OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY = ord("{"), ord("}"), ord("["), ord("]")

_ARRAY = -2
"""What the stack says of an array that is not on the trie; of one at node n it says n + 1 less, and of an
object its node, or -1."""

CHOICES = -2
"""The place behind a document with choices, at a desk that does not choose."""


@part
def read_value(
    at: int,
    node: int,
    levels: int,
    stamp: int,
    trie: Layout,
    desk: Desk,
    row: int,
    count: int,
) -> tuple[int, int, int]:
    """The place behind the value that begins here and behind the space after it, the entries, and the leaves.

    The value stands at the node, or at none; the event's entries are from `row` to `count`.
    """
    depth, leaves, within = 0, 0, _ARRAY
    while True:
        if within > _ARRAY:
            at, node, count = _read_name(at, within, stamp, trie, desk, row, count)
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
                store_int(desk.levels, 2 * depth, within)
                depth += 1
                continue
            leaves += 1
            at += 1
        elif byte == OPEN_ARRAY:
            if depth == levels:
                return FAILED, row, 0
            if node >= 0 and not desk.chooses:
                return CHOICES, row, 0
            count = put_mark(desk, count, node, OPENS)
            at = skip_space(at + 1)
            if byte_at(at) != CLOSE_ARRAY:
                within = _ARRAY - 1 - node
                store_int(desk.levels, 2 * depth, within)
                store_int(desk.levels, 2 * depth + 1, stamp)
                stamp = stamp_of(desk, at)
                depth += 1
                continue
            count = put_mark(desk, count, node, CLOSES)
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
            byte, within = byte_at(at), load_int(desk.levels, 2 * (depth - 1))
            at = skip_space(at + 1)
            # Where this is an object, the name to come says which node.
            node = _ARRAY - 1 - within if within <= _ARRAY else -1
            if byte == COMMA:
                if leaves > EVENT_MAX_FIELDS:
                    return FAILED, row, 0
                if node >= 0:
                    count = put_mark(desk, count, node, NEXT)
                    stamp = stamp_of(desk, at)
                break
            if byte != (CLOSE_ARRAY if within <= _ARRAY else CLOSE_OBJECT):
                return FAILED, row, 0
            depth -= 1
            if within <= _ARRAY:
                count = put_mark(desk, count, node, CLOSES)
                stamp = load_int(desk.levels, 2 * depth + 1)
            if depth == 0:
                return at, count, leaves


@part
def _read_name(
    at: int,
    within: int,
    stamp: int,
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
        if load_int(desk.met, node) == stamp:
            if is_inner(trie, node) or desk.chooses:
                return FAILED, -1, count
            count = _without(desk, row, count, path_at(trie, node))
        store_int(desk.met, node, stamp)
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
