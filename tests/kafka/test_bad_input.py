"""Every class of bad input, entrance by entrance, through the parts that need no Kafka."""

import json
import re
import time
import tracemalloc
from collections.abc import Iterator

import bad_inputs as bad
import pytest
from bad_outcomes import EVERYTHING, Seen, check_table, expected_deliveries

from branchline.kafka.dead_letters import decode_dead_letter
from branchline.kafka.dispatch import Dispatch, Step, dispatch, one_by_one
from branchline.kafka.intake import read_batch
from branchline.kafka.record import Headers, Place, Record
from branchline.kafka.topics import Topics
from branchline.kafka.trees import read_filters
from branchline.routing import limits
from branchline.routing.codes import Code
from branchline.routing.control import Identity, Number, Operation, Request, Subscribed
from branchline.routing.overlay.optimizing import TreeOptimizer
from branchline.routing.prefix.optimizer import Settings
from branchline.routing.shard import EventBatch, Shard, alone

TOPICS = Topics("bad")
CPU_MAX_S = 2.0
"""For any one input, on a slow machine: what is not bounded takes minutes."""
MEMORY_MAX_BYTES = 64 * 1024 * 1024
"""Beside the input itself: a value of a mebibyte may be held a few times over."""

LIMITED = {
    *(Code.EVENT_TOO_LARGE, Code.JSON_TOO_DEEP, Code.JSON_TOO_MANY_FIELDS, Code.JSON_NAME_TOO_LONG),
    *(Code.HEADERS_TOO_MANY, Code.HEADERS_TOO_LARGE, Code.TOO_MANY_CHOICES, Code.CONTROL_TOO_LARGE),
    *(Code.FILTER_TOO_LONG, Code.FILTER_TOO_DEEP, Code.FILTER_TOO_MANY_VALUES, Code.FILTER_NAME_TOO_LONG),
    *(Code.FILTER_TOO_MANY_CONSTRAINTS, Code.FILTER_TOO_MANY_WILDCARDS),
}
"""Codes of what exceeds a limit."""

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
    yield from one_by_one(TOPICS, dispatch(TOPICS, bad.BROKER, True, 2, intake, outputs))


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


TAKEN = [each for each in bad.catalogue() if each.where != bad.NOT_TAKEN]


@pytest.mark.parametrize("each", TAKEN, ids=lambda each: f"{each.entrance}: {each.name}".replace(" ", "-"))
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


FIRST_MET = (
    ("bytes of an event's value", "EVENT_MAX_BYTES", Code.EVENT_TOO_LARGE),
    ("levels of an event", "EVENT_MAX_DEPTH", Code.JSON_TOO_DEEP),
    ("leaf fields of an event", "EVENT_MAX_FIELDS", Code.JSON_TOO_MANY_FIELDS),
    ("bytes of a field's name", "NAME_MAX_BYTES", Code.JSON_NAME_TOO_LONG),
    ("characters of a number", "NUMBER_MAX_CHARS", Code.JSON_NUMBER),
    ("headers", "EVENT_MAX_HEADERS", Code.HEADERS_TOO_MANY),
    ("bytes of headers", "EVENT_MAX_HEADER_BYTES", Code.HEADERS_TOO_LARGE),
    ("bytes of a filter", "FILTER_MAX_BYTES", Code.FILTER_TOO_LONG),
    ("levels of a filter", "FILTER_MAX_DEPTH", Code.FILTER_TOO_DEEP),
    ("values of a list", "FILTER_MAX_IN_VALUES", Code.FILTER_TOO_MANY_VALUES),
    ("constraints of a filter", "FILTER_MAX_CONSTRAINTS", Code.FILTER_TOO_MANY_CONSTRAINTS),
    ("searches of a filter", "FILTER_MAX_WILDCARDS", Code.FILTER_TOO_MANY_WILDCARDS),
    ("choices of an event's arrays", "MAX_CHOICES", Code.TOO_MANY_CHOICES),
    ("steps over those choices", "MAX_STEPS", Code.TOO_MANY_CHOICES),
    ("subscriptions of a subscriber", "SUBSCRIPTIONS_PER_SUBSCRIBER", Code.SUBSCRIPTIONS_TOO_MANY),
    ("bytes of a request", "CONTROL_MAX_BYTES", Code.CONTROL_TOO_LARGE),
)


def test_the_page_has_the_limits_as_they_are() -> None:
    """Each with its number and the code of what exceeds it."""
    rows = [(what, f"`{name}`", f"{getattr(limits, name):,}", f"`{code}`") for what, name, code in FIRST_MET]
    head = ("of", "limit", "is", "code")
    check_table("limits", head, rows, "tests/kafka/test_bad_input.py")


BEYOND = [each for each in bad.catalogue() if each.code in LIMITED]


@pytest.mark.parametrize("each", BEYOND, ids=lambda each: f"{each.entrance}: {each.name}")
def test_a_limit_is_named_with_its_number_and_the_actual_one(shard: Shard, each: bad.Bad) -> None:
    """So that whoever is refused knows by how much."""
    record = Record(Place(TOPIC_OF[each.entrance], 0, 5, 1), each.key, each.make(), headers_of(each))
    found = seen(list(handle(shard, record)))
    reasons = {letter.reason for letter in found.letters} | {ack.get("reason", "") for ack in found.acks}
    numbers = {int(number) for reason in reasons for number in re.findall(r"[0-9]+", reason)}
    assert len(numbers) >= 2, reasons


RECORDED = [each for each in bad.letters() if not each.name.startswith(("a report", "a sender", "no sender"))]


@pytest.mark.parametrize("each", RECORDED, ids=lambda each: each.name)
def test_what_cannot_be_read_on_filters_makes_no_tree(each: bad.Bad) -> None:
    """The Tree Optimizer counts it, or it names no place; then come changes that it can read."""
    value = each.make()
    if value is not None:
        # As a record of `filters` has it, which names no sender.
        value = value.replace(b'"from": "elsewhere", ', b"")
    told = read_filters([Record(Place(TOPICS.filters, 0, 1, 1), b"k", value)])
    optimizer = TreeOptimizer(1, Settings(), 0)
    assert optimizer.handle(1, told.changes) == []
    change = Subscribed(Identity("main", "ann", "x"), Number(1, 1), "sql", "a = 1")
    assert optimizer.handle(100_000, [change])
