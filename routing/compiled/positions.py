"""Where a single value lies on a dimension: its rank, looked up in a compiled part.

A text behind the longest of a dimension's values compares as its beginning does, so no more than that of it
is read: what a long text costs is bounded by the filters.

Cost: some 20 ns.
"""

from branchline.routing.compiled.bounds import Marks, Step
from branchline.routing.compiled.freshness import fresh
from branchline.routing.compiled.hashing import PROBES, hashed_text, tag_of
from branchline.routing.compiled.kernels import kernel
from branchline.routing.compiled.literals import LATE, read_literal
from branchline.routing.compiled.memory import byte_at, load_byte, load_int, load_long, store_byte
from branchline.routing.compiled.ordering import POINTS, RANGES
from branchline.routing.compiled.texts import head_of, order_of, word_of
from branchline.routing.dimensions import Axis
from branchline.routing.values import Kind

_PRESENCE, _BOOLEAN, _NUMBER = int(Axis.PRESENCE), int(Axis.BOOLEAN), int(Axis.NUMBER)
_TEXT, _FOLDED, _FOLDED_REVERSED = int(Axis.TEXT), int(Axis.FOLDED), int(Axis.FOLDED_REVERSED)
_OF_BOOLEAN, _OF_NUMBER, _OF_TEXT = int(Kind.BOOLEAN), int(Kind.NUMBER), int(Kind.TEXT)
_KIN, _AXIS, _HAS, _FIRST, _END, _LONGEST = range(len(Step._fields))

NOWHERE = -1
"""The rank of a value that no constraint on its dimension can hold for."""

NOT_YET = -2
"""The rank of a value that is late."""


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
def rank_on(
    marks: Marks, step: int, axis: int, kind: int, start: int, length: int, limit: int, scratch: int
) -> int:
    """The rank of a value on a dimension."""
    if axis == _TEXT:
        return text_rank(marks, step, start, length, limit) if kind == _OF_TEXT else NOWHERE
    if axis == _NUMBER:
        if kind != _OF_NUMBER:
            return NOWHERE
        number, differs = read_literal(start, length)
        if number == LATE or (differs and marks.wide):
            return NOT_YET
        first, end = load_int(step, _FIRST), load_int(step, _END)
        return number_rank(marks, first, end, load_int(step, _HAS), number, differs)
    if axis == _PRESENCE:
        return 2 * kind + 1
    if axis == _BOOLEAN:
        if kind != _OF_BOOLEAN:
            return NOWHERE
        return 3 if byte_at(start) == 116 else 1  # the t of true
    if kind != _OF_TEXT:
        return NOWHERE
    if axis > _FOLDED_REVERSED:
        return NOT_YET
    made = _turned(start, length, axis, load_int(step, _LONGEST) + 1, scratch)
    return NOT_YET if made < 0 else text_rank(marks, step, scratch, made, scratch + made)
