"""Records to entries, compiled: what `events` and `cloudevents` do for one record, for all of a batch.

A record is read here if nothing about it is unusual. What is, is left to those modules, by saying `SLOW`:
every record that they would reject, and whatever `scanning` and `header_kernels` give up. So nothing is
decided in two ways, and what is decided here is decided as there.

The text that a batch is read from has each value with a zero byte behind it, then the cells of headers, then
keys, then room for each timestamp's digits.
"""

from typing import NamedTuple

from branchline.kafka.header_kernels import (
    Table,
    header_declares,
    is_binary,
    list_headers,
    put_attributes,
    put_headers,
)
from branchline.kafka.structured_kernels import CHOOSES, FINE, OPAQUE, SLOW, read_structured
from branchline.kafka.word_kernels import CLOUDEVENT, CLOUDEVENT_JSON, OTHER, UNDECLARED
from branchline.routing.compiled.documents import (
    CHOICES,
    NUMBER,
    OBJECT,
    OPEN_OBJECT,
    TEXT,
    read_value,
)
from branchline.routing.compiled.freshness import fresh
from branchline.routing.compiled.kernels import kernel
from branchline.routing.compiled.memory import (
    byte_at,
    copy_bytes,
    load_byte,
    load_long,
    part,
    store_byte,
    store_long,
)
from branchline.routing.compiled.paths import Layout, path_at
from branchline.routing.compiled.scanning import Desk, put
from branchline.routing.compiled.tokens import (
    MINUS,
    ZERO,
    is_utf8,
    skip_space,
)
from branchline.routing.limits import EVENT_MAX_BYTES, EVENT_MAX_DEPTH, EVENT_MAX_FIELDS

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
        outcome, count = read_structured(at, at + length, event, trie, desk, row)
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
    if outcome >= SLOW or trie.kafka < 0:
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
        return CHOOSES if at == CHOICES else SLOW, row
    return OPAQUE if opaque else FINE, count


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


@fresh
@kernel
def scan_records(batch: Batch, trie: Layout, desk: Desk, table: Table) -> int:
    """Read all records, or at a desk that chooses those that are left to it; how many are not read.

    Those have no entries and are SLOW, or CHOOSES if they are left to a desk that does.
    """
    count, unread = 0, 0
    for each in range(batch.records):
        store_long(batch.first, each, count)
        if desk.chooses and load_byte(batch.outcome, each) != CHOOSES:
            continue
        outcome, entries = _scan_record(each, batch, trie, desk, table, count)
        store_byte(batch.outcome, each, outcome)
        if outcome >= SLOW:
            unread += 1
        else:
            count = entries
    store_long(batch.first, batch.records, count)
    return unread
