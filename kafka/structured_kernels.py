"""A CloudEvent that is one document, compiled: its attributes as text, and what is in `data`.

The rules are those of `cloudevents`. What the content type says of `data` may come behind it, so its entries
are written and, if they turn out to be of something opaque, taken out again. An attribute that comes twice
and means something, Base64, and whatever would be rejected is SLOW.
"""

from branchline.kafka.word_kernels import (
    CLOUDEVENT,
    DATA,
    DATA_BASE64,
    DATACONTENTTYPE,
    OTHER,
    REQUIRED,
    SPECVERSION,
    UNDECLARED,
    declared,
    is_version,
    reserved,
)
from branchline.routing.compiled.documents import (
    CHOICES,
    CLOSE_OBJECT,
    COMMA,
    OPEN_OBJECT,
    SMALL_N,
    TEXT,
    read_member,
    read_value,
)
from branchline.routing.compiled.memory import byte_at, load_int, part, store_int
from branchline.routing.compiled.paths import Layout, below, path_at
from branchline.routing.compiled.scanning import Desk, move_entry, put
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
from branchline.routing.limits import EVENT_MAX_DEPTH, EVENT_MAX_FIELDS

FINE, OPAQUE, SLOW, CHOOSES = range(4)
"""What becomes of a record: the last is read again, at a desk that chooses."""


@part
def read_structured(at: int, end: int, event: int, trie: Layout, desk: Desk, row: int) -> tuple[int, int]:
    """What becomes of a CloudEvent that is the document from here to the end, and the count of entries."""
    at = skip_space(at)
    if byte_at(at) != OPEN_OBJECT:
        return SLOW, row
    count, leaves, had, says = row, 0, 0, UNDECLARED
    data, data_end, data_empty = row, row, False
    byte = COMMA
    while byte == COMMA:
        start, name_end, at = read_member(skip_space(at + 1))
        which = reserved(start, name_end) if at >= 0 else 0
        if at < 0 or start == name_end or had & which or which == DATA_BASE64:
            return SLOW, row
        if which == DATA:
            data, data_empty = count, _is_empty(at)
            at, count, inside = read_value(at, trie.data, EVENT_MAX_DEPTH - 1, event, trie, desk, row, count)
            if at < 0:
                return CHOOSES if at == CHOICES else SLOW, row
            data_end, leaves = count, leaves + inside
            had |= DATA
        else:
            value, value_end, at = _read_attribute(at)
            if at < 0 or not _is_fit(which, value, value_end):
                return SLOW, row
            node = below(trie, 0, start, name_end - start)
            if node >= 0 and node != trie.kafka:
                if load_int(desk.met, node) == event:
                    return SLOW, row
                store_int(desk.met, node, event)
                if value >= 0:
                    count = put(desk, count, path_at(trie, node), TEXT, value, value_end)
            if value >= 0:
                had |= which
                says = declared(value, value_end) if which == DATACONTENTTYPE else says
            at = skip_space(at)
            leaves += 1
        byte = byte_at(at)
    if byte != CLOSE_OBJECT or skip_space(at + 1) != end or leaves > EVENT_MAX_FIELDS:
        return SLOW, row
    if had & REQUIRED != REQUIRED or says < 0:
        return SLOW, row
    if had & DATA and says in (OTHER, CLOUDEVENT):
        return FINE if data_empty else OPAQUE, _closed_up(desk, data, data_end, count)
    return FINE, count


@part
def _is_fit(which: int, start: int, end: int) -> bool:
    """Whether an attribute, which may be a required one, has a value that it may have."""
    if which == SPECVERSION:
        return is_version(start, end)
    return not which & REQUIRED or start < end


@part
def _read_attribute(at: int) -> tuple[int, int, int]:
    """Where an attribute has its text, from and to, and the place behind it; from -1 to -1 for a null.

    Binary mode would write Booleans and integers as JSON does, but for a zero with a minus.
    """
    byte = byte_at(at)
    if byte == QUOTE:
        end, behind = read_string(at + 1)
        return at + 1, end, behind
    if byte != MINUS and not ZERO <= byte <= NINE:
        behind = read_word(at)
        return (-1, -1, behind) if byte == SMALL_N else (at, behind, behind)
    behind = read_number(at)
    for each in range(at + 1, behind):
        if not ZERO <= byte_at(each) <= NINE:
            return FAILED, FAILED, FAILED
    start = at + 1 if byte == MINUS and byte_at(at + 1) == ZERO else at
    return start, behind, behind


@part
def _is_empty(at: int) -> bool:
    """Whether a value is null or a text of no characters, given that it is one."""
    byte = byte_at(at)
    return byte == SMALL_N or (byte == QUOTE and byte_at(at + 1) == QUOTE)


@part
def _closed_up(desk: Desk, start: int, end: int, count: int) -> int:
    """Take out the entries from one place to another; how many are left."""
    for at in range(end, count):
        move_entry(desk, start + at - end, at)
    return count - (end - start)
