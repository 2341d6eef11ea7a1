"""Every class of bad input, entrance by entrance, through the parts that need no Kafka."""

import json
import time
import tracemalloc
from collections.abc import Iterator

import bad_inputs as bad
import pytest
from bad_outcomes import EVERYTHING, Seen, expected_deliveries

from branchline.kafka.dead_letters import decode_dead_letter
from branchline.kafka.dispatch import Dispatch, Step, dispatch
from branchline.kafka.intake import read_batch
from branchline.kafka.record import Headers, Place, Record
from branchline.kafka.topics import Topics
from branchline.routing.control import Operation, Request
from branchline.routing.shard import EventBatch, Shard, alone

TOPICS = Topics("bad")
CPU_MAX_S = 2.0
"""For any one input, on a slow machine: what is not bounded takes minutes."""
MEMORY_MAX_BYTES = 64 * 1024 * 1024
"""Beside the input itself: a value of a mebibyte may be held a few times over."""

TOPIC_OF = {
    bad.EVENT: TOPICS.entry(bad.BROKER),
    bad.HEADER: TOPICS.entry(bad.BROKER),
    bad.COPY: TOPICS.broker(bad.BROKER),
    bad.CONTROL: TOPICS.control,
    bad.FILTER: TOPICS.control,
    bad.LINK: TOPICS.link(bad.BROKER),
    bad.UPDATES: TOPICS.rt_updates,
}


@pytest.fixture(scope="module")
def shard() -> Shard:
    """One shard for all: what one input leaves behind must not change what becomes of the next."""
    made = Shard(alone(bad.BROKER), 0)
    probes = {EVERYTHING: "TRUE", **bad.PROBES}
    requests = [Request(Operation.SUBSCRIBE, name, "p", filter=text) for name, text in probes.items()]
    assert all(ack.rejection is None for ack in made.handle(1, [], requests, EventBatch()).acks)
    return made


def headers_of(each: bad.Bad) -> Headers:
    """As Spark hands them over: what is no UTF-8 in a name has been replaced."""
    return (("\ufffd", b"x"),) if each.unreadable_name else each.headers


def handle(shard: Shard, record: Record) -> Iterator[Dispatch]:
    is_event = record.place.topic in (TOPIC_OF[bad.EVENT], TOPIC_OF[bad.COPY])
    control, events = ([], [record]) if is_event else ([record], [])
    intake = read_batch(TOPICS, control, events)
    outputs = shard.handle(2, intake.updates, intake.control, intake.events())
    yield from dispatch(TOPICS, bad.BROKER, True, 2, intake, outputs)


def seen(dispatches: list[Dispatch]) -> Seen:
    found = Seen()
    for each in dispatches:
        record = Record(Place(each.topic, 0, 0, 0), each.key, each.value, each.headers)
        if each.step not in (Step.WRITE, Step.ACK):
            continue
        if each.topic == TOPICS.dead_letters:
            found.letters.append(decode_dead_letter(record))
        elif each.topic == TOPICS.acks:
            found.acks.append(json.loads(each.value or b""))
        elif each.id is not None:
            found.delivered.add(TOPICS.named(each.topic) or "")
    return found


@pytest.mark.parametrize(
    "each", bad.catalogue(), ids=lambda each: f"{each.entrance}: {each.name}".replace(" ", "-")
)
def test_every_class_is_matched_as_the_oracle_says_or_rejected_with_its_code(
    shard: Shard, each: bad.Bad
) -> None:
    """Within bounds of time and memory, and nothing is raised."""
    record = Record(Place(TOPIC_OF[each.entrance], 0, 5, 1), each.key, each.make(), headers_of(each))
    tracemalloc.start()
    began = time.process_time()
    found = seen(list(handle(shard, record)))
    took = time.process_time() - began
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.outcome(each.entrance) == (each.code, each.where)
    if each.where in (bad.DELIVERED, bad.AFRESH, "matched afresh", bad.LETTER_ONE):
        assert found.delivered == expected_deliveries(each, headers_of(each))
    assert took < CPU_MAX_S, f"{took:.2f} s"
    assert peak < MEMORY_MAX_BYTES, f"{peak:,} bytes"
