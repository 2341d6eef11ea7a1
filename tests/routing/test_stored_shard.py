"""A shard that is opened from its image does what the one that lived does, for filters of every spelling."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

import pytest
from filter_texts import pairs
from hypothesis import given
from hypothesis import strategies as st
from overlay_hands import Plain

from branchline.routing.control import Operation, Request
from branchline.routing.evaluate import Attributes
from branchline.routing.methods.naming import Methods
from branchline.routing.overlay.dividing import Arrival
from branchline.routing.prefix.layout import UnreadableTree
from branchline.routing.prefix.optimizer import Optimizer, Settings
from branchline.routing.prefix.updates import Snapshot, Update
from branchline.routing.shard import Control, EventBatch, Image, Job, Outputs, Shard, alone
from branchline.routing.spellings import SPELLINGS

JOB = alone("main")
NOW_MS = 1_700_000_000_000
LEASE_MS = 60_000


def call(
    shard: Shard,
    control: Sequence[Control] = (),
    events: Sequence[Attributes] = (),
    updates: Sequence[Update | Snapshot] = (),
    now_ms: int = NOW_MS,
) -> Outputs:
    arrivals = [Arrival(Plain(event)) for event in events]
    return shard.handle(now_ms, updates, control, EventBatch(["main"] * len(arrivals), arrivals))


def reopened(shard: Shard) -> Shard:
    image = shard.image()
    assert image is not None
    return Shard(JOB, 0, [shard.own_state()], image)


def covers(shard: Shard) -> list[Any]:
    table = shard.brokers["main"].table
    found = [table.compiled(change.identity) for change in table.changes()]
    return sorted((each.cover for each in found if each is not None), key=repr)


@pytest.mark.parametrize("spelling", SPELLINGS)
@given(st.data())
def test_the_opened_one_does_what_the_living_one_does(spelling: str, data: st.DataObject) -> None:
    """Twins, of which one is opened again between calls, say the same to requests, updates and events."""
    drawn = data.draw(st.lists(pairs(spelling), min_size=1, max_size=4))
    events = [event for _, event in drawn]
    leases = data.draw(st.lists(st.sampled_from((None, LEASE_MS)), min_size=len(drawn), max_size=len(drawn)))
    live, twin = Shard(JOB, 0), Shard(JOB, 0)
    optimizer = Optimizer(1, Settings(threshold=0.0, limit_ms=0))
    requests = [
        Request(Operation.SUBSCRIBE, f"s{at % 2}", f"f{at}", None, spelling, text, f"r{at}", leases[at])
        for at, (text, _) in enumerate(drawn)
    ]
    some = data.draw(st.integers(0, len(requests)))
    others = data.draw(st.lists(st.sampled_from(requests), max_size=3))
    ends = [Request(Operation.UNSUBSCRIBE, each.subscriber, each.id) for each in others]
    replacing = [
        Request(Operation.SUBSCRIBE, each.subscriber, each.id, None, spelling, requests[0].filter, "again")
        for each in others
    ]
    steps: list[tuple[Sequence[Control], bool, int]] = [
        (requests[:some], False, NOW_MS),
        ((), True, NOW_MS),
        (requests[some:], False, NOW_MS),
        (replacing, True, NOW_MS),
        (ends, False, NOW_MS + 1),
        ((), False, NOW_MS + LEASE_MS),
        (requests, True, NOW_MS + LEASE_MS),
    ]
    for control, tells, now_ms in steps:
        updates: list[Update] = []
        if tells:
            for cover in covers(live):
                optimizer.subscribe(cover)
            updates = optimizer.updates(now_ms)
        twin = reopened(twin)
        assert call(twin, control, events, updates, now_ms) == call(live, control, events, updates, now_ms)
        assert twin.state() == live.state()
        assert covers(twin) == covers(live)


def test_a_method_that_cannot_be_opened_has_no_image() -> None:
    """Where every filter is asked there are no places to store."""
    job = Job(("main",), JOB.topology, methods=Methods("rematch", "table"))
    assert Shard(job, 0).image() is None


@given(st.data())
def test_a_damaged_image_is_not_opened(data: st.DataObject) -> None:
    """A buffer with any bit changed, or cut, is refused when the shard is opened."""
    shard = Shard(JOB, 0)
    requests = [Request(Operation.SUBSCRIBE, "s", f"f{at}", filter=f"n > {at}") for at in range(3)]
    call(shard, requests)
    image = shard.image()
    assert image is not None
    buffers = [bytearray(each) for each in image.buffers]
    at = data.draw(st.integers(0, len(buffers) - 1))
    place = data.draw(st.integers(0, len(buffers[at]) - 1))
    if data.draw(st.booleans()):
        buffers[at][place] ^= 1 << data.draw(st.integers(0, 7))
    else:
        del buffers[at][place:]
    with pytest.raises(UnreadableTree):
        Shard(JOB, 0, (), Image(list(map(bytes, buffers)), image.rest))


def test_what_is_beside_the_tree_is_read_when_it_is_asked_for() -> None:
    """Overflow numbers come back with the filters that they stand for, also those that have ended."""
    live = Shard(JOB, 0)
    texts = [f"n > {at} AND n < {at + 50}" for at in range(0, 60, 7)]
    call(live, [Request(Operation.SUBSCRIBE, "s", f"f{at}", filter=text) for at, text in enumerate(texts)])
    optimizer = Optimizer(1, Settings(threshold=0.0, limit_ms=0, nodes_per_filter=0, spare_nodes=3))
    told = covers(live)
    for cover in told:
        optimizer.subscribe(cover)
    call(live, updates=optimizer.updates(NOW_MS))
    for cover in islice(told, 3):
        optimizer.unsubscribe(cover)
    call(live, updates=optimizer.updates(NOW_MS + 1))
    assert any(each.died > NOW_MS for each in live.trees.vocabularies[0].numbered.values())
    twin = reopened(live)
    events = [{"n": number} for number in range(0, 120, 3)]
    assert call(twin, events=events) == call(live, events=events)
    assert twin.trees.vocabularies[0].numbered == live.trees.vocabularies[0].numbered
