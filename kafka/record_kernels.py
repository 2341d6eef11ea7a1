"""Records to entries, compiled: what `events` and `cloudevents` do for one record, for all of a batch.

A record is read here if nothing about it is unusual. What is, is left to those modules, by saying `SLOW`:
every record that they would reject, and whatever `scanning` and `header_kernels` give up. So nothing is
decided in two ways, and what is decided here is decided as there.

The text that a batch is read from has each value with a zero byte behind it, then the cells of headers, then
keys, then room for each timestamp's digits.
"""

from typing import NamedTuple

from branchline.kafka.header_kernels import (
    CLOUDEVENT,
    CLOUDEVENT_JSON,
    DATA,
    DATA_BASE64,
    DATACONTENTTYPE,
    OTHER,
    REQUIRED,
    SPECVERSION,
    UNDECLARED,
    Table,
    declared,
    header_declares,
    is_binary,
    is_version,
    list_headers,
    put_attributes,
    put_headers,
    reserved,
)
from branchline.routing.compiled.kernels import kernel
from branchline.routing.compiled.memory import (
    byte_at,
    copy_bytes,
    load_byte,
    load_int,
    load_long,
    part,
    store_byte,
    store_int,
    store_long,
)
from branchline.routing.compiled.paths import Layout, below, path_at
from branchline.routing.compiled.scanning import (
    CLOSE_OBJECT,
    COMMA,
    NUMBER,
    OBJECT,
    OPEN_OBJECT,
    SMALL_N,
    TEXT,
    Desk,
    move_entry,
    put,
    read_member,
    read_value,
)
from branchline.routing.compiled.tokens import (
    FAILED,
    MINUS,
    NINE,
    QUOTE,
    ZERO,
    is_utf8,
    read_number,
    read_string,
    read_word,
    skip_space,
)
from branchline.routing.limits import EVENT_MAX_BYTES, EVENT_MAX_DEPTH, EVENT_MAX_FIELDS

FINE, OPAQUE, SLOW = range(3)
"""What became of a record."""

STAMP_BYTES = 20
"""The longest timestamp, in characters."""


class Batch(NamedTuple):
    """Records, and what becomes of them: addresses."""

    records: int
    """How many there are."""
    value: int
    value_first: int
    text: int
    """Where values are copied to, each one byte further than it was."""
    header: int
    header_first: int
    key: int
    key_first: int
    key_null: int
    timestamp: int
    stamp: int
    """Where the digits of timestamps go."""
    first: int
    """For each record, where its entries begin; one more at the end."""
    outcome: int


@kernel
def scan_records(batch: Batch, trie: Layout, desk: Desk, table: Table) -> int:
    """Read all records; how many of them are SLOW. Those have no entries."""
    count, slow = 0, 0
    for each in range(batch.records):
        store_long(batch.first, each, count)
        outcome, entries = _scan_record(each, batch, trie, desk, table, count)
        store_byte(batch.outcome, each, outcome)
        if outcome == SLOW:
            slow += 1
        else:
            count = entries
    store_long(batch.first, batch.records, count)
    return slow


@part
def _scan_record(
    each: int, batch: Batch, trie: Layout, desk: Desk, table: Table, row: int
) -> tuple[int, int]:
    """What becomes of a record, and the count of entries then."""
    begin = load_long(batch.value_first, each)
    length = load_long(batch.value_first, each + 1) - begin
    if length > EVENT_MAX_BYTES:
        return SLOW, row
    at = batch.text + begin + each
    copy_bytes(at, batch.value + begin, length)
    store_byte(at, length, 0)
    cell, cell_end = load_long(batch.header_first, each), load_long(batch.header_first, each + 1)
    headers, says = 0, UNDECLARED
    if cell < cell_end:
        headers = list_headers(batch.header + cell, batch.header + cell_end, table)
        says = header_declares(table, headers)
    if headers < 0 or says < 0 or (length == 0 and headers == 0 and load_byte(batch.key_null, each)):
        return SLOW, row
    event, outcome, count = each + 1, FINE, row
    if says in (CLOUDEVENT, CLOUDEVENT_JSON):
        outcome, count = _read_structured(at, at + length, event, trie, desk, row)
    else:
        node = 0
        if is_binary(table, headers):
            node = trie.data
            count, says = put_attributes(table, headers, trie, desk, row)
            if count < 0:
                return SLOW, row
        if length > 0:
            if says in (OTHER, CLOUDEVENT):
                outcome = OPAQUE
            else:
                outcome, count = _read_payload(at, at + length, node, event, trie, desk, row, count)
    if outcome == SLOW or trie.kafka < 0:
        return outcome, count
    count = _put_record(each, batch, trie, desk, count)
    count = put_headers(table, headers, event, trie, desk, count)
    return (outcome, count) if count >= 0 else (SLOW, row)


@part
def _read_payload(
    at: int,
    end: int,
    node: int,
    event: int,
    trie: Layout,
    desk: Desk,
    row: int,
    count: int,
) -> tuple[int, int]:
    """A value that is JSON, at the root or below `data`; only an object has fields at the root."""
    at = skip_space(at)
    opaque = node == 0 and byte_at(at) != OPEN_OBJECT
    at, count, leaves = read_value(at, -1 if opaque else node, EVENT_MAX_DEPTH, event, trie, desk, row, count)
    if at != end or leaves > EVENT_MAX_FIELDS:
        return SLOW, row
    return OPAQUE if opaque else FINE, count


@part
def _read_structured(at: int, end: int, event: int, trie: Layout, desk: Desk, row: int) -> tuple[int, int]:
    """A CloudEvent that is one document: its attributes as text, and what is in `data`."""
    at = skip_space(at)
    if byte_at(at) != OPEN_OBJECT:
        return SLOW, row
    count, leaves, had, says = row, 0, 0, UNDECLARED
    data, data_end, data_empty = row, row, False
    byte = COMMA
    while byte == COMMA:
        start, name_end, at = read_member(skip_space(at + 1))
        if at < 0 or start == name_end:
            return SLOW, row
        which = reserved(start, name_end)
        if had & which or which == DATA_BASE64:
            return SLOW, row
        value, value_end = at, at
        if which == DATA:
            data, data_empty = count, _is_empty(at)
            at, count, inside = read_value(at, trie.data, EVENT_MAX_DEPTH - 1, event, trie, desk, row, count)
            if at < 0:
                return SLOW, row
            data_end, had, leaves = count, had | DATA, leaves + inside
        else:
            value, value_end, at = _read_attribute(at)
            if at < 0:
                return SLOW, row
            leaves += 1
            at = skip_space(at)
            node = below(trie, 0, start, name_end - start)
            if node >= 0 and node != trie.kafka:
                if load_int(desk.met, node) == event:
                    return SLOW, row
                store_int(desk.met, node, event)
                if value >= 0:
                    count = put(desk, count, path_at(trie, node), TEXT, value, value_end)
            if value >= 0:
                had |= which
            if which == DATACONTENTTYPE and value >= 0:
                says = declared(value, value_end)
            if which & REQUIRED and value == value_end:
                return SLOW, row
            if which == SPECVERSION and not is_version(value, value_end):
                return SLOW, row
        byte = byte_at(at)
    if byte != CLOSE_OBJECT or skip_space(at + 1) != end or leaves > EVENT_MAX_FIELDS:
        return SLOW, row
    if had & REQUIRED != REQUIRED or says < 0:
        return SLOW, row
    if had & DATA and says in (OTHER, CLOUDEVENT):
        return FINE if data_empty else OPAQUE, _closed_up(desk, data, data_end, count)
    return FINE, count


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


@part
def _put_record(each: int, batch: Batch, trie: Layout, desk: Desk, at: int) -> int:
    """Write `kafka` itself, its key and its timestamp; where the next entry goes."""
    at = put(desk, at, path_at(trie, trie.kafka), OBJECT, desk.text, desk.text)
    if trie.key >= 0 and not load_byte(batch.key_null, each):
        start = batch.key + load_long(batch.key_first, each)
        end = batch.key + load_long(batch.key_first, each + 1)
        if is_utf8(start, end):
            at = put(desk, at, path_at(trie, trie.key), TEXT, start, end)
    if trie.timestamp >= 0:
        end = batch.stamp + (each + 1) * STAMP_BYTES
        start = _write_digits(end, load_long(batch.timestamp, each))
        at = put(desk, at, path_at(trie, trie.timestamp), NUMBER, start, end)
    return at


@part
def _write_digits(end: int, number: int) -> int:
    """Write a number so that it ends at a place; where it begins."""
    at = end
    # The lowest number has no positive counterpart, so digits are taken from the negative one.
    left = number if number < 0 else -number
    while left < 0 or at == end:
        # Division rounds down, so the tenth of a negative number is taken from one digit less.
        tenth = (left + 9) // 10
        at -= 1
        store_byte(at, 0, ZERO + tenth * 10 - left)
        left = tenth
    if number < 0:
        at -= 1
        store_byte(at, 0, MINUS)
    return at
