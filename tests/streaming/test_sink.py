"""What both sinks do with records that their topics refuse. Kafka, but no Spark."""

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from owing import Event, onward, owed

from branchline.kafka import headers as bl
from branchline.kafka.admin import ensure_topics
from branchline.kafka.cluster import Cluster
from branchline.kafka.dead_letters import DeadLetter, decode_dead_letter
from branchline.kafka.dispatch import Dispatch, Step
from branchline.kafka.markers import ensure_markers, read_markers
from branchline.kafka.messages import decode_request
from branchline.kafka.owed import Owed
from branchline.kafka.reading import read_to_end
from branchline.kafka.record import Headers, Place
from branchline.kafka.topics import BROKER, CONTROL, DEAD_LETTERS, OUT, Topics
from branchline.routing.codes import Code
from branchline.routing.control import Operation, Request
from branchline.routing.prefix.header import Header, encode
from branchline.routing.prefix.trees import UNMATCHED
from branchline.streaming import once
from branchline.streaming import sink as at_least_once
from branchline.streaming.blocks import pack
from branchline.streaming.once import OnceWriter, Turn
from branchline.streaming.out_topics import OutTopics
from branchline.streaming.sink import AtLeastOnceWriter, write_rows
from branchline.streaming.writing import SinkFailed

pytestmark = pytest.mark.kafka

SMALL, LARGE = b"v", b"v" * 2_000
LIMIT = 1_000

Written = Callable[..., dict[str, Any]]

Form = Callable[[Topics, Sequence[Event]], list[Dispatch | Owed]]
"""How deliveries come to the sink."""


def origin(topics: Topics, offset: int = 42) -> Place:
    return Place(topics.entry("main"), 0, offset, 1_700_000_000_000)


def copy(topics: Topics) -> Headers:
    return (
        ("trace", b"1"),
        (bl.ORIGIN, str(origin(topics)).encode()),
        (bl.PREFIX, encode(Header(UNMATCHED, 0b110, 1, 1))),
    )


@pytest.fixture
def topics(cluster: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch) -> Topics:
    """A namespace with some topics, of which those that begin with `small` take no large records."""
    soon = {"topic_metadata_propagation_max_ms": 300}
    for module in (at_least_once, once):
        monkeypatch.setattr(module, "PRODUCER_SETTINGS", {**module.PRODUCER_SETTINGS, **soon})
    monkeypatch.setattr(at_least_once, "_producers", {})
    monkeypatch.setattr(at_least_once, "_alone", {})
    topics = Topics(namespace)
    small = [topics.out("small"), topics.broker("small")]
    ensure_topics(
        cluster,
        {
            topics.dead_letters: DEAD_LETTERS,
            topics.control: CONTROL,
            topics.out("ann"): OUT,
            topics.out("small"): OUT,
            topics.broker("small"): BROKER,
            topics.broker("third"): BROKER,
        },
    )
    admin = cluster.admin()
    entry = ConfigEntry("max.message.bytes", str(LIMIT), incremental_operation=AlterConfigOpType.SET)
    resources = [ConfigResource(ResourceType.TOPIC, name, incremental_configs=[entry]) for name in small]
    for future in admin.incremental_alter_configs(resources).values():
        future.result()
    return topics


@pytest.fixture(params=["at least once", "exactly once"])
def written(request: pytest.FixtureRequest, cluster: Cluster, topics: Topics) -> Iterator[Written]:
    """Write rows with either sink; what it told."""
    turn = Turn(topics.markers("main"), uuid.uuid4().hex, "run", 0, "plan")
    ensure_markers(cluster, turn.topic, 1)

    def write(*items: Dispatch | Owed) -> dict[str, Any]:
        writer: AtLeastOnceWriter | OnceWriter
        if request.param == "at least once":
            writer = AtLeastOnceWriter(cluster, topics, OutTopics(), 0)
        else:
            writer = OnceWriter(cluster, topics, OutTopics(), turn, 0)
        write_rows(writer, rows(items))
        return writer.told()

    yield write


def rows(items: Iterable[Dispatch | Owed]) -> Iterator[pa.RecordBatch]:
    """What the operator gives out for them."""
    for block in pack(items):
        yield pa.RecordBatch.from_pydict({"kind": [int(block.kind)], "block": [block.data]})


def row(topic: str, value: bytes = SMALL, headers: Headers = (), delivery: str | None = None) -> Dispatch:
    return Dispatch(Step.WRITE, topic, b"k", value, headers, delivery)


def dead_letters(cluster: Cluster, topics: Topics) -> list[DeadLetter]:
    return [decode_dead_letter(record) for record in read_to_end(cluster, topics.dead_letters, hint="")]


def values(cluster: Cluster, topic: str) -> list[bytes | None]:
    return [record.value for record in read_to_end(cluster, topic, hint="")]


@pytest.mark.parametrize("in_columns", [False, True])
def test_a_refused_copy_is_owed_to_its_scope(
    cluster: Cluster, topics: Topics, written: Written, in_columns: bool
) -> None:
    """The neighbour's topic does not take it: a dead letter for the homes behind it; the batch goes on."""
    neighbours = topics.broker("small"), topics.broker("third")
    event: Event = (origin(topics), b"k", LARGE, (("trace", b"1"),), ["small", "third"])
    columns = onward([event], [encode(Header(UNMATCHED, 0b110, 1, 1))])
    items = [columns] if in_columns else [row(each, LARGE, copy(topics)) for each in neighbours]
    assert written(*items)["diverted"] == 1
    (letter,) = dead_letters(cluster, topics)
    assert (letter.code, letter.owed, letter.place) == (Code.OUTPUT_REFUSED, "scope:6", origin(topics))
    assert (letter.record.key, letter.record.value) == (b"k", LARGE)
    assert letter.record.headers == (("trace", b"1"),)
    assert [values(cluster, each) for each in neighbours] == [[], [LARGE]]
    (passed,) = read_to_end(cluster, topics.broker("third"), hint="")
    assert (passed.key, passed.headers) == (b"k", copy(topics))


def one_by_one(topics: Topics, events: Sequence[Event]) -> list[Dispatch | Owed]:
    return [
        Dispatch(Step.WRITE, topics.out(name), key, value, headers, bl.delivery_id(place, name))
        for place, key, value, headers, to in events
        for name in to
    ]


def as_columns(topics: Topics, events: Sequence[Event]) -> list[Dispatch | Owed]:
    return [owed(events)]


@pytest.mark.parametrize("form", [one_by_one, as_columns])
def test_deliveries_are_as_they_were_published(
    cluster: Cluster, topics: Topics, written: Written, form: Form
) -> None:
    """Key, value and headers, null or not, in order, and the id as the last header."""
    events: list[Event] = [
        (origin(topics, 1), b"k", SMALL, (), ["ann", "small"]),
        (origin(topics, 2), None, None, (("a", b"1"), ("a", None), ("größe", b"\xff")), ["ann"]),
        (origin(topics, 3), b"", b"", (), []),
        (origin(topics, 4), b"", b"", (("", b""),), ["small", "ann"]),
    ]
    assert written(*form(topics, events))["diverted"] == 0
    for name in ("ann", "small"):
        got = read_to_end(cluster, topics.out(name), hint="")
        assert [(record.key, record.value, record.headers) for record in got] == [
            (key, value, (*headers, (bl.ID, f"{place}:{name}".encode())))
            for place, key, value, headers, to in events
            if name in to
        ]


@pytest.mark.parametrize("form", [one_by_one, as_columns])
def test_a_refused_delivery_is_owed_to_its_subscriber(
    cluster: Cluster, topics: Topics, written: Written, form: Form
) -> None:
    """And only those that are too large: others of the same topic come, in order."""
    contents = [SMALL, LARGE, SMALL + b"2", LARGE, SMALL + b"3"]
    events: list[Event] = [
        (origin(topics, offset), b"k", value, (("trace", b"1"),), ["ann", "small"])
        for offset, value in enumerate(contents)
    ]
    assert written(*form(topics, events))["diverted"] == 2
    letters = dead_letters(cluster, topics)
    assert [(each.code, each.owed) for each in letters] == [(Code.OUTPUT_REFUSED, "subscriber:small")] * 2
    assert [each.place for each in letters] == [origin(topics, 1), origin(topics, 3)]
    assert {each.record.headers for each in letters} == {(("trace", b"1"),)}
    assert values(cluster, topics.out("small")) == [value for value in contents if value != LARGE]
    assert values(cluster, topics.out("ann")) == contents


@pytest.mark.parametrize("form", [one_by_one, as_columns])
def test_a_topic_that_is_gone_holds_nobody_up(
    cluster: Cluster, topics: Topics, written: Written, form: Form
) -> None:
    """What was for it is owed, everybody else gets theirs, and its subscriber is to be suspended."""
    events: list[Event] = [
        (origin(topics, 1), b"k", SMALL, (), ["gone", "ann"]),
        (origin(topics, 2), b"k", SMALL, (), ["gone"]),
    ]
    assert written(*form(topics, events))["diverted"] == 2
    letters = dead_letters(cluster, topics)
    assert {letter.owed for letter in letters} == {"subscriber:gone"}
    assert {letter.place for letter in letters} == {origin(topics, 1), origin(topics, 2)}
    assert values(cluster, topics.out("ann")) == [SMALL]
    (asked,) = read_to_end(cluster, topics.control, hint="")
    request = decode_request(asked.value)
    assert isinstance(request, Request)
    assert (request.operation, request.subscriber, request.all) == (Operation.SUSPEND, "gone", True)


def test_a_queue_that_is_full_is_waited_for(
    cluster: Cluster, topics: Topics, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More deliveries than the client takes at once all come, in order."""
    for module in (at_least_once, once):
        narrow = {**module.PRODUCER_SETTINGS, "queue_buffering_max_messages": 10}
        monkeypatch.setattr(module, "PRODUCER_SETTINGS", narrow)
    contents = [b"%d" % number for number in range(200)]
    events: list[Event] = [
        (origin(topics, offset), b"k", value, (), ["ann", "small"]) for offset, value in enumerate(contents)
    ]
    assert written(owed(events))["diverted"] == 0
    for name in ("ann", "small"):
        assert values(cluster, topics.out(name)) == contents


@pytest.mark.parametrize("form", [one_by_one, as_columns])
def test_a_marker_names_what_was_diverted(
    cluster: Cluster, topics: Topics, written: Written, form: Form
) -> None:
    """By the places of the events, never by their bytes; only the sink that delivers exactly once has any."""
    events: list[Event] = [(origin(topics), b"k", LARGE, (), ["small"])]
    told = written(*form(topics, events))
    (marker,) = read_markers(cluster, topics.markers("main"), 1)
    if "transactions" in told:
        assert marker is not None
        assert (marker.batch, marker.rows, marker.places) == (0, 1, (str(origin(topics)),))
    else:
        assert marker is None


@pytest.mark.parametrize("kind", ["filters", "link", "acks"])
def test_what_must_not_be_missed_fails_the_batch(
    cluster: Cluster, topics: Topics, written: Written, kind: str
) -> None:
    """A change, a letter or an ack that is not taken is tried again with the whole batch."""
    topic = {"filters": topics.filters, "link": topics.link("second"), "acks": topics.acks}[kind]
    with pytest.raises(SinkFailed):
        written(row(topic))
