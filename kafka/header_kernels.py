"""What headers say of an event, compiled: content types, a CloudEvent's attributes, and `kafka.header`.

The rules are those of `events` and `cloudevents`. Where a record breaks one, or might, the answer is FAILED
and those modules judge it: beyond a limit, an attribute that repeats or is no UTF-8, a content type that is
more than ASCII, a named header that comes twice and so is an array.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from branchline.kafka.cloudevents import ATTRIBUTE_PREFIX, CONTENT_TYPE, MEDIA_PREFIX
from branchline.kafka.header_cells import NULL as NO_VALUE
from branchline.kafka.headers import OURS
from branchline.routing.compiled.memory import (
    address,
    byte_at,
    load_int,
    load_long,
    part,
    store_int,
    store_long,
    word_at,
)
from branchline.routing.compiled.paths import Layout, below, name_hash, part_of, path_at
from branchline.routing.compiled.scanning import NULL, OBJECT, TEXT, Desk, put
from branchline.routing.compiled.tokens import FAILED, NINE, POINT, ZERO, is_utf8
from branchline.routing.limits import EVENT_MAX_HEADER_BYTES, EVENT_MAX_HEADERS, NAME_MAX_BYTES

UNDECLARED, JSON, OTHER, CLOUDEVENT, CLOUDEVENT_JSON = range(5)
"""What a content type declares."""

ID, SOURCE, TYPE, SPECVERSION, DATACONTENTTYPE, DATA, DATA_BASE64 = (1 << bit for bit in range(7))
"""Names that mean something in a CloudEvent."""
REQUIRED = ID | SOURCE | TYPE | SPECVERSION


Word = tuple[int, int, int, int, int]
"""A word that is compared with: its length, and its bytes by eights."""


def _word(text: str, filled: bytes = b"\0") -> Word:
    filled_up = text.encode().ljust(32, filled)
    first, second, third, fourth = (
        int.from_bytes(filled_up[at : at + 8], "little") for at in range(0, 32, 8)
    )
    return len(text), first, second, third, fourth


def _media(text: str) -> Word:
    return _word(text, b" ")


_CONTENT_TYPE = _word(CONTENT_TYPE)
_ID, _SOURCE, _TYPE, _SPECVERSION, _DATACONTENTTYPE, _DATA, _DATA_BASE64 = map(
    _word, ("id", "source", "type", "specversion", "datacontenttype", "data", "data_base64")
)
_CLOUDEVENT, _CLOUDEVENT_JSON = _media(MEDIA_PREFIX), _media(f"{MEDIA_PREFIX}+json")
_APPLICATION_JSON, _TEXT_JSON, _PLUS_JSON = map(_media, ("application/json", "text/json", "+json"))
_SPACES = int.from_bytes(b" " * 8, "little")
"""Makes capitals small; it leaves what else the words for media types have, `/` and `+`, as it is."""

_PREFIX_BYTES = 3
_THREE = (1 << 24) - 1
_OURS, _ATTRIBUTE = (int.from_bytes(prefix.encode(), "little") for prefix in (OURS, ATTRIBUTE_PREFIX))
assert len(OURS) == len(ATTRIBUTE_PREFIX) == _PREFIX_BYTES

_TAB, _SPACE, _SEMICOLON = ord("\t"), ord(" "), ord(";")


class Table(NamedTuple):
    """A record's foreign headers, by number: addresses of columns for as many as there may be."""

    name: int
    """Here and below, the columns of the addresses where names and values begin and end."""
    name_end: int
    value: int
    """-1 for a null."""
    value_end: int
    seen: int
    """A column of hashes of names, while it is found out whether one comes twice."""


def header_columns() -> NDArray[np.int64]:
    """The columns of a table, one behind the other."""
    return np.empty(len(Table._fields) * EVENT_MAX_HEADERS, np.int64)


def table(columns: NDArray[np.int64]) -> Table:
    """The table for a kernel. Whoever has it keeps the columns, too."""
    start = address(columns)
    return Table(*range(start, start + columns.nbytes, EVENT_MAX_HEADERS * columns.itemsize))


@part
def list_headers(at: int, end: int, table: Table) -> int:
    """Fill the table from a cell; how many headers are foreign."""
    count, size = 0, 0
    while at < end:
        name = at + 4
        name_end = name + _length(at)
        value = name_end + 4
        if value > end:
            return FAILED
        length = _length(name_end)
        at = value if length == NO_VALUE else value + length
        if at > end:
            return FAILED
        if _starts(name, name_end, _OURS):
            continue
        if count == EVENT_MAX_HEADERS:
            return FAILED
        store_long(table.name, count, name)
        store_long(table.name_end, count, name_end)
        store_long(table.value, count, FAILED if length == NO_VALUE else value)
        store_long(table.value_end, count, at)
        count += 1
        size += name_end - name + at - value
    return count if size <= EVENT_MAX_HEADER_BYTES else FAILED


@part
def _length(at: int) -> int:
    return byte_at(at) << 24 | byte_at(at + 1) << 16 | byte_at(at + 2) << 8 | byte_at(at + 3)


@part
def _starts(start: int, end: int, prefix: int) -> bool:
    return end - start >= _PREFIX_BYTES and word_at(start) & _THREE == prefix


@part
def _is_word(start: int, end: int, word: Word) -> bool:
    """Whether the text is the word."""
    at = 0
    while at < word[0] and part_of(start, at, word[0]) == word[1 + (at >> 3)]:
        at += 8
    return at >= word[0] == end - start


@part
def _is_media(start: int, end: int, word: Word) -> bool:
    """Whether the text is the word, in small letters or capitals, given that it has no control characters."""
    at = 0
    while at < word[0] and part_of(start, at, word[0]) | _SPACES == word[1 + (at >> 3)]:
        at += 8
    return at >= word[0] == end - start


@part
def reserved(start: int, end: int) -> int:
    """Which of the names that mean something this is, or 0."""
    length = end - start
    if length == 2:
        return ID if _is_word(start, end, _ID) else 0
    if length == 4:
        if _is_word(start, end, _TYPE):
            return TYPE
        return DATA if _is_word(start, end, _DATA) else 0
    if length == 6:
        return SOURCE if _is_word(start, end, _SOURCE) else 0
    if length == 11:
        if _is_word(start, end, _SPECVERSION):
            return SPECVERSION
        return DATA_BASE64 if _is_word(start, end, _DATA_BASE64) else 0
    return DATACONTENTTYPE if _is_word(start, end, _DATACONTENTTYPE) else 0


@part
def is_version(start: int, end: int) -> bool:
    """Whether the text is a `specversion` that we read: 1, a point, and one to three digits."""
    if not 3 <= end - start <= 5 or byte_at(start) != ZERO + 1 or byte_at(start + 1) != POINT:
        return False
    at = start + 2
    while at < end and ZERO <= byte_at(at) <= NINE:
        at += 1
    return at == end


@part
def declared(start: int, end: int) -> int:
    """What a content type declares."""
    cut = end
    for at in range(end - 1, start - 1, -1):
        byte = byte_at(at)
        if byte > 127 or (byte < _SPACE and byte != _TAB):
            return FAILED
        if byte == _SEMICOLON:
            cut = at
    while start < cut and byte_at(start) <= _SPACE:
        start += 1
    while start < cut and byte_at(cut - 1) <= _SPACE:
        cut -= 1
    if start == cut:
        return UNDECLARED
    if _is_media(start, cut, _CLOUDEVENT):
        return CLOUDEVENT
    if _is_media(start, cut, _CLOUDEVENT_JSON):
        return CLOUDEVENT_JSON
    family = _CLOUDEVENT[0]
    if cut - start >= family and _is_media(start, start + family, _CLOUDEVENT):
        return FAILED
    if _is_media(start, cut, _APPLICATION_JSON) or _is_media(start, cut, _TEXT_JSON):
        return JSON
    ending = _PLUS_JSON[0]
    return JSON if cut - start >= ending and _is_media(cut - ending, cut, _PLUS_JSON) else OTHER


@part
def header_declares(table: Table, count: int) -> int:
    """What the one header `content-type` declares, if there is one."""
    found = -1
    for each in range(count):
        if _is_word(load_long(table.name, each), load_long(table.name_end, each), _CONTENT_TYPE):
            if found >= 0:
                return FAILED
            found = each
    if found < 0 or load_long(table.value, found) < 0:
        return UNDECLARED
    return declared(load_long(table.value, found), load_long(table.value_end, found))


@part
def is_binary(table: Table, count: int) -> bool:
    """Whether one of the headers is `ce_specversion`."""
    for each in range(count):
        start, end = load_long(table.name, each), load_long(table.name_end, each)
        if _starts(start, end, _ATTRIBUTE) and reserved(start + _PREFIX_BYTES, end) == SPECVERSION:
            return True
    return False


@part
def put_attributes(table: Table, count: int, trie: Layout, desk: Desk, at: int) -> tuple[int, int]:
    """Write the attributes that headers hold; where the next entry goes, and what the payload is called."""
    had, seen = 0, 0
    sent, given = -1, -1
    for each in range(count):
        start, end = load_long(table.name, each), load_long(table.name_end, each)
        attribute = _starts(start, end, _ATTRIBUTE)
        if not attribute and not _is_word(start, end, _CONTENT_TYPE):
            continue
        # Two different names with one hash are taken for one that repeats, which the reference then denies.
        name = name_hash(0, start, end - start)
        for other in range(seen):
            if load_long(table.seen, other) == name:
                return FAILED, FAILED
        store_long(table.seen, seen, name)
        seen += 1
        start += _PREFIX_BYTES if attribute else 0
        which = reserved(start, end) if attribute else 0
        if not 1 <= end - start <= NAME_MAX_BYTES or which & (DATA | DATA_BASE64):
            return FAILED, FAILED
        value, value_end = load_long(table.value, each), load_long(table.value_end, each)
        if value < 0:
            continue
        if not is_utf8(value, value_end):
            return FAILED, FAILED
        if not attribute:
            sent = each
        elif which == DATACONTENTTYPE:
            given = each
        else:
            if which and not _is_fit(which, value, value_end):
                return FAILED, FAILED
            had |= which
            node = below(trie, 0, start, end - start)
            if node != trie.kafka:
                at = put(desk, at, path_at(trie, node), TEXT, value, value_end)
    if had != REQUIRED or (sent >= 0 and given >= 0 and not _are_alike(table, sent, given)):
        return FAILED, FAILED
    one = max(sent, given)
    if one < 0:
        return at, UNDECLARED
    value, value_end = load_long(table.value, one), load_long(table.value_end, one)
    at = put(desk, at, path_at(trie, trie.datacontenttype), TEXT, value, value_end)
    says = declared(value, value_end)
    return (at, says) if says >= 0 else (FAILED, FAILED)


@part
def _is_fit(which: int, start: int, end: int) -> bool:
    """Whether a required attribute has a value that it may have."""
    return start < end and (which != SPECVERSION or is_version(start, end))


@part
def _are_alike(table: Table, one: int, other: int) -> bool:
    """Whether two headers have the same value."""
    at, end, to = load_long(table.value, one), load_long(table.value_end, one), load_long(table.value, other)
    if end - at != load_long(table.value_end, other) - to:
        return False
    while at < end and byte_at(at) == byte_at(to):
        at += 1
        to += 1
    return at == end


@part
def put_headers(table: Table, count: int, event: int, trie: Layout, desk: Desk, at: int) -> int:
    """Write what `kafka.header` and the names below it hold; where the next entry goes."""
    if trie.header < 0:
        return at
    at = put(desk, at, path_at(trie, trie.header), OBJECT, desk.text, desk.text)
    for each in range(count):
        start = load_long(table.name, each)
        node = below(trie, trie.header, start, load_long(table.name_end, each) - start)
        if node < 0:
            continue
        if load_int(desk.met, node) == event:
            return FAILED
        store_int(desk.met, node, event)
        value, value_end = load_long(table.value, each), load_long(table.value_end, each)
        if value < 0:
            at = put(desk, at, path_at(trie, node), NULL, desk.text, desk.text)
        elif is_utf8(value, value_end):
            at = put(desk, at, path_at(trie, node), TEXT, value, value_end)
    return at
