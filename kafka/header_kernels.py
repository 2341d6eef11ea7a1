"""What headers say of an event, compiled: content types, a CloudEvent's attributes, and `kafka.header`.

The rules are those of `events` and `cloudevents`. Where a record breaks one, or might, the answer is FAILED
and those modules judge it: beyond a limit, an attribute that repeats or is no UTF-8, a content type that is
more than ASCII, a named header that comes twice and so is an array.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from branchline.kafka.cloudevents import ATTRIBUTE_PREFIX
from branchline.kafka.header_cells import NULL as NO_VALUE
from branchline.kafka.headers import OURS
from branchline.kafka.word_kernels import (
    CONTENT_TYPE_NAME,
    DATA,
    DATA_BASE64,
    DATACONTENTTYPE,
    REQUIRED,
    SPECVERSION,
    UNDECLARED,
    declared,
    is_version,
    is_word,
    reserved,
)
from branchline.routing.compiled.documents import NULL, OBJECT, TEXT
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
from branchline.routing.compiled.paths import Layout, below, name_hash, path_at
from branchline.routing.compiled.scanning import Desk, put
from branchline.routing.compiled.tokens import FAILED, is_utf8
from branchline.routing.limits import EVENT_MAX_HEADER_BYTES, EVENT_MAX_HEADERS, NAME_MAX_BYTES

_PREFIX_BYTES = 3
_THREE = (1 << 24) - 1
_OURS, _ATTRIBUTE = (int.from_bytes(prefix.encode(), "little") for prefix in (OURS, ATTRIBUTE_PREFIX))
assert len(OURS) == len(ATTRIBUTE_PREFIX) == _PREFIX_BYTES


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
def header_declares(table: Table, count: int) -> int:
    """What the one header `content-type` declares, if there is one."""
    found = -1
    for each in range(count):
        if is_word(load_long(table.name, each), load_long(table.name_end, each), CONTENT_TYPE_NAME):
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
        if not attribute and not is_word(start, end, CONTENT_TYPE_NAME):
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
