"""Blocks hold what was put into them, however it is divided."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import strategies as our
from hypothesis import given
from hypothesis import strategies as st
from owing import Event, onward, owed, spelled_out

from branchline.kafka.dispatch import Dispatch, Step, one_by_one
from branchline.kafka.header_cells import unpack_headers
from branchline.kafka.owed import Onward, Owed
from branchline.kafka.record import Place
from branchline.kafka.topics import Topics
from branchline.streaming import blocks
from branchline.streaming.blocks import Block, BlockKind, Checksum, Records, pack, unpack
from branchline.streaming.lots import lot_of

Item = Dispatch | Sequence[Event]

some_headers = st.lists(st.tuples(our.texts, our.contents), max_size=3).map(tuple)
dispatches = st.builds(
    Dispatch,
    st.sampled_from(Step),
    our.legal_names,
    our.contents,
    our.contents,
    some_headers,
    st.none() | our.legal_names,
)
subscribers = st.lists(our.legal_names, max_size=4, unique=True)
events = st.tuples(our.places, our.contents, our.contents, some_headers, subscribers)
items = st.lists(dispatches | st.lists(events, max_size=8), max_size=8)


def packed(some: Sequence[Item]) -> list[Block]:
    return list(pack(item if isinstance(item, Dispatch) else owed(item) for item in some))


def told(some: Sequence[Item]) -> Iterator[Any]:
    for item in some:
        if isinstance(item, Dispatch):
            yield item
        else:
            yield from ((str(origin), *rest, list(to)) for origin, *rest, to in item)


def untold(some: Sequence[Block]) -> Iterator[Any]:
    for block in some:
        found = unpack(block)
        if isinstance(found, Owed):
            yield from spelled_out(found)
        else:
            yield from dispatched(found)


def dispatched(records: Records) -> Iterator[Dispatch]:
    for row in range(len(records)):
        id = records.ids[row]
        yield Dispatch(
            Step(records.steps[row]),
            records.topics[row],
            records.keys[row],
            records.values[row],
            unpack_headers(records.headers[row]),
            None if id is None else id.decode(),
        )


def checksum(some: Sequence[Block]) -> int:
    whole = Checksum()
    for block in some:
        whole.add(block)
    return whole.value()


@given(items)
def test_what_is_packed_comes_out_in_order(some: list[Item]) -> None:
    """Records and deliveries, null and empty cells, events that nobody is owed."""
    assert list(untold(packed(some))) == list(told(some))


@given(items, st.integers(1, 5), st.integers(1, 200))
def test_blocks_have_bounds_and_dividing_changes_nothing(some: list[Item], rows: int, size: int) -> None:
    """No block has more rows or bytes than it may, but for an event alone; the checksum stays the same."""
    whole = packed(some)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK_MAX_ROWS", rows)
        patch.setattr(blocks, "BLOCK_MAX_BYTES", size)
        divided = packed(some)
    assert list(untold(divided)) == list(untold(whole))
    assert checksum(divided) == checksum(whole)
    for block in divided:
        found = unpack(block)
        if isinstance(found, Records):
            assert len(found) <= rows
        else:
            assert len(found) <= rows or len(found.keys) == 1
            assert len(set(found.names)) == len(found.names) == len(set(found.subscriber.tolist()))


@given(st.lists(events, min_size=1, max_size=4), st.data())
def test_the_checksum_tells_deliveries_apart(some: list[Event], data: st.DataObject) -> None:
    """One that is owed to another, has another content or comes elsewhere gives another sum."""
    at = data.draw(st.integers(0, len(some) - 1))
    origin, key, value, headers, to = some[at]
    other: Event = data.draw(
        st.sampled_from(
            [
                (origin, key, (value or b"") + b"!", headers, to),
                (origin, (key or b"") + b"!", value, headers, to),
                (origin, key, value, (*headers, ("more", None)), to),
                (origin, key, value, headers, [*to, "somebody-else-altogether"]),
                (Place(origin.topic, origin.partition, origin.offset + 1, 0), key, value, headers, to),
            ]
        )
    )
    changed = [*some[:at], other, *some[at + 1 :]]
    assert checksum(packed([changed])) != checksum(packed([some]))


def test_an_event_too_large_for_a_block_is_one_by_itself() -> None:
    """Those around it are packed as if it were not there."""
    small, large = b"v", b"v" * (blocks.BLOCK_MAX_BYTES + 1)
    place = Place("in.main", 0, 1, 2)
    found = packed([[(place, None, value, (), ["ann"]) for value in (small, small, large, small, small)]])
    assert [len(block.data) > blocks.BLOCK_MAX_BYTES for block in found] == [False, True, False]


def test_events_stay_whole() -> None:
    """More deliveries of one event than a block may have are in one block."""
    names = [f"s{number}" for number in range(blocks.BLOCK_MAX_ROWS + 1)]
    event: Event = (Place("in.main", 0, 1, 2), b"k", b"v", (), names)
    (block,) = packed([[event]])
    found = unpack(block)
    assert isinstance(found, Owed)
    assert sorted(found.names) == sorted(names)


def test_neither_kind_overtakes_the_other() -> None:
    """What was given out before deliveries is in blocks before theirs."""
    one: Item = Dispatch(Step.WRITE, "filters")
    event: Event = (Place("in.main", 0, 1, 2), None, None, (), ["ann"])
    kinds = [block.kind for block in packed([one, one, [event], [event], one])]
    assert kinds == [BlockKind.RECORDS, BlockKind.DELIVERIES, BlockKind.DELIVERIES, BlockKind.RECORDS]


@given(
    st.lists(events, min_size=1, max_size=6),
    st.lists(st.binary(min_size=1, max_size=9), min_size=1),
    st.integers(1, 200),
)
def test_copies_are_packed_with_their_headers(some: list[Event], prefixes: list[bytes], size: int) -> None:
    """Each event once, and what a writer makes of a block is what one by one would be written."""
    topics, made = Topics("a.b"), onward(some, prefixes)
    whole = list(pack([made]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK_MAX_BYTES", size)
        divided = list(pack([made]))
    assert {block.kind for block in divided} == {BlockKind.COPIES}
    assert checksum(divided) == checksum(whole)
    for packed_so in (whole, divided):
        unpacked = [unpack(block) for block in packed_so]
        assert all(isinstance(each, Onward) for each in unpacked)
        assert [prefix for each in unpacked for prefix in each.prefixes] == list(made.prefixes)
        lots = [lot_of(topics, block) for block in packed_so]
        outputs = [lot.output(index) for lot in lots for index in range(len(lot))]
        expected = list(one_by_one(topics, [made]))
        assert [(each.topic, each.key, each.value, each.headers, each.delivery) for each in outputs] == [
            (each.topic, each.key, each.value, each.headers, None) for each in expected
        ]
    if len(made):
        other = onward(some, [prefix + b"!" for prefix in prefixes])
        assert checksum(list(pack([other]))) != checksum(whole)
