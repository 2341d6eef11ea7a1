"""Copies that are read as columns are what each would be by itself."""

import json
from random import Random
from typing import Any

import pytest
import strategies as our
from hypothesis import example, given
from hypothesis import strategies as st
from random_prefixes import some_headers
from record_nets import BROKERS, NOW_MS, TOPICS, Net, overlay

from branchline.kafka import headers as bl
from branchline.kafka import intake
from branchline.kafka.arrivals import received
from branchline.kafka.dispatch import count
from branchline.kafka.header_cells import pack_headers
from branchline.kafka.intake import Intake, read_batch
from branchline.kafka.messages import encode_request
from branchline.kafka.record import Headers, Place, Record
from branchline.routing.control import Operation, Request
from branchline.routing.methods.naming import Methods
from branchline.routing.overlay.passing import Passage, Passed
from branchline.routing.prefix.header import encode
from branchline.routing.prefix.optimizer import Optimizer, Settings
from branchline.routing.shard import Outputs

prefixes = st.integers(0, 2**32).map(lambda seed: encode(some_headers(Random(seed), 1)[0]))
damaged = st.tuples(prefixes, st.integers(0, 500), st.integers(1, 255)).map(
    lambda each: bytes(
        byte ^ (each[2] if place == each[1] % len(each[0]) else 0) for place, byte in enumerate(each[0])
    )
)
origins = our.places.map(lambda place: str(place).encode())
odd_origins = st.sampled_from(
    [
        *(b"", b"a", b"a:1:2", b"a:1:2:3:4", b"a:01:2:3", b"a:1:2:-0", b"a:1:2:-1", b"a:-1:2:3", b":1:2:3"),
        *(b"a b:1:2:3", b"a:1:2:3 ", b"a:1::3", b"a:1:2:9223372036854775807", b"a:1:2:9223372036854775808"),
        *(b"a:1:9223372036854775808:3", b"a:1:9999999999999999999:3", b"a:1:2:-9999999999999999999"),
        *(b"a" * 249 + b":0:0:0", b"a" * 250 + b":0:0:0", b"\xff:1:2:3", b"a:1:\xd9\xa1:3", b"a:1:2:-00"),
        *(b"a:1:2:00000000000000000001", b"a:999999999999999999:2:-999999999999999999"),
    ]
)


def named(name: str, values: st.SearchStrategy[bytes]) -> st.SearchStrategy[tuple[str, bytes | None]]:
    return values.map(lambda value: (name, value))


usual = st.tuples(
    st.lists(st.tuples(our.texts, our.contents), max_size=2),
    st.permutations([0, 1]),
    named(bl.PREFIX, prefixes),
    named(bl.ORIGIN, origins),
).map(lambda each: (*each[0], *((each[2], each[3])[place] for place in each[1])))
unusual = st.lists(
    st.one_of(
        named(bl.PREFIX, prefixes | damaged | our.contents.map(lambda each: each or b"")),
        named(bl.ORIGIN, origins | odd_origins),
        st.tuples(st.sampled_from([bl.PREFIX, bl.ORIGIN, bl.ONLY, "bl-else", "bl-", "bl"]), our.contents),
        named(bl.ONLY, st.sampled_from([b"ann", b"no name!"])),
    ),
    max_size=4,
).map(tuple)
records = st.lists(
    st.tuples(st.sampled_from(["broker.x", "broker.y", "in.x"]), usual | unusual), max_size=12
).map(
    lambda rows: [
        Record(Place(f"a.b.{topic}", 0, offset, NOW_MS), b"k", b"{}", headers)
        for offset, (topic, headers) in enumerate(rows)
    ]
)


def read(some: list[Record], together_from: int) -> Intake:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intake, "TOGETHER_FROM", together_from)
        return read_batch(TOPICS, [], some)


@given(records)
def test_reading_together_is_reading_one_by_one(some: list[Record]) -> None:
    """The same arrivals at the same brokers, and the same that cannot be used, whatever headers there are."""
    together, alone = read(some, 1), read(some, 1_000)
    came = together.arrivals.came
    assert {index for sent in together.sent for index in sent.index.tolist()} == set(came.place)
    assert count(together, Outputs(), True) == count(alone, Outputs(), True)
    for index, place in came.place.items():
        content = received(alone.arrivals[index])
        assert came.origins[place] == str(content.origin)
        assert came.timestamps_ms[place] == content.origin.timestamp_ms
        assert came.foreign[place] == pack_headers(bl.foreign(content.record.headers))
    assert (together.at, together.entering) == (alone.at, alone.entering)
    assert (together.bad_events, together.bad_headers) == (alone.bad_events, alone.bad_headers)
    assert list(together.arrivals) == list(alone.arrivals)


@given(st.lists(usual, min_size=1, max_size=5))
@example([((bl.PREFIX, encode(some_headers(Random(1), 1)[0])), (bl.ORIGIN, b"a:0:9223372036854775807:0"))])
def test_what_we_write_is_read_together(some: list[Headers]) -> None:
    """None that is as we write it is left to the reference."""
    made = [Record(Place("a.b.broker.x", 0, row, 0), None, None, each) for row, each in enumerate(some)]
    assert len(read(made, 1).arrivals.came.place) == len(made)


def events(random: Random, count: int) -> list[Record]:
    """Plain events, some with arrays, some that filters cannot see into."""
    values = [
        {"a": random.randrange(4), "b": random.choice([1, 2, [1, 2], "text"]), "n": n} for n in range(count)
    ]
    return [
        Record(
            Place(TOPICS.entry("dublin"), 0, offset, NOW_MS + offset % 3),
            b"k",
            b"opaque" if offset % 17 == 16 else json.dumps(value).encode(),
            (("trace", str(offset).encode()),) if offset % 2 else (),
        )
        for offset, value in enumerate(values)
    ]


def played(batches_from: int | None, seed: int) -> dict[str, list[Record]]:
    """All that is written when events go through brokers in a row, while subscriptions come and go."""
    # Where they enter, all is routed as batches, which makes fewer copies.
    first = {"dublin": overlay(Methods(batches_from=0))["dublin"]}
    made = Net(overlay(Methods(batches_from=batches_from)) | first, {}, {})
    random, optimizer = Random(seed), Optimizer(1, Settings(threshold=0.0, limit_ms=0))
    filters = ("a = 1", "a > 1 AND b = 2", f"kafka.timestamp > {NOW_MS}", "a < b", "b = 1", "TRUE")
    for turn in range(4):
        for number in range(6):
            name, filter_ = random.choice(BROKERS), random.choice(filters)
            subscriber = f"at-{name}-{number % 2}"
            request = Request(Operation.SUBSCRIBE, subscriber, f"i{number}", name, filter=filter_)
            made.write(TOPICS.control, encode_request(request))
        made.run()
        if turn % 2:
            table = made.shards["dublin"].brokers["dublin"].table
            for change in table.changes():
                compiled = table.compiled(change.identity)
                if compiled is not None:
                    optimizer.subscribe(compiled.cover)
            for update in optimizer.updates(NOW_MS + turn):
                for shard in made.shards.values():
                    shard.trees.apply(update)
        for record in events(random, 40):
            made.write(TOPICS.entry("dublin"), record.value, record.key, record.headers)
        made.run()
    return made.topics


@pytest.mark.parametrize("seed", range(6))
def test_what_is_written_is_the_same_to_the_byte(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All records of all topics in their order, with batches or one by one, whatever stands in the tree."""
    passed = 0

    def route(passage: Passage, *arguments: Any) -> Passed:
        nonlocal passed
        made = _route(passage, *arguments)
        passed += len(made.done)
        return made

    monkeypatch.setattr(Passage, "route", route)
    together, alone = played(0, seed), played(None, seed)
    assert together.keys() == alone.keys()
    for topic, records in alone.items():
        assert together[topic] == records
    assert passed > 20, "most copies were routed as batches"


_route = Passage.route
