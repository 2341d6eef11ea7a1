"""What both sinks do with records that their topics refuse. Kafka, but no Spark."""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from branchline.kafka import headers as bl
from branchline.kafka.admin import ensure_topics
from branchline.kafka.cluster import Cluster
from branchline.kafka.dead_letters import DeadLetter, decode_dead_letter
from branchline.kafka.dispatch import Step
from branchline.kafka.markers import ensure_markers, read_markers
from branchline.kafka.messages import decode_request
from branchline.kafka.reading import read_to_end
from branchline.kafka.record import Headers, Place
from branchline.kafka.topics import BROKER, CONTROL, DEAD_LETTERS, OUT, Topics
from branchline.routing.codes import Code
from branchline.routing.control import Operation, Request
from branchline.routing.prefix.header import Header, encode
from branchline.routing.prefix.trees import UNMATCHED
from branchline.streaming import once
from branchline.streaming import sink as at_least_once
from branchline.streaming.columns import OUTPUT, pack_headers
from branchline.streaming.once import OnceWriter, Turn
from branchline.streaming.out_topics import OutTopics
from branchline.streaming.sink import AtLeastOnceWriter, write_rows
from branchline.streaming.writing import SinkFailed

pytestmark = pytest.mark.kafka

SMALL, LARGE = b"v", b"v" * 2_000
LIMIT = 1_000

Written = Callable[..., dict[str, Any]]


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

    def write(*rows: tuple[Any, ...]) -> dict[str, Any]:
        writer: AtLeastOnceWriter | OnceWriter
        if request.param == "at least once":
            writer = AtLeastOnceWriter(cluster, topics, OutTopics(), 0)
        else:
            writer = OnceWriter(cluster, topics, OutTopics(), turn, 0)
        columns = dict(zip(OUTPUT.names, map(list, zip(*rows, strict=True)), strict=True))
        write_rows(writer, iter([pa.RecordBatch.from_pydict(columns)]))
        return writer.told()

    yield write


def row(
    topic: str, value: bytes = SMALL, headers: Headers = (), delivery: str | None = None
) -> tuple[Any, ...]:
    return (int(Step.WRITE), topic, b"k", value, pack_headers(headers), delivery)


def dead_letters(cluster: Cluster, topics: Topics) -> list[DeadLetter]:
    return [decode_dead_letter(record) for record in read_to_end(cluster, topics.dead_letters, hint="")]


def values(cluster: Cluster, topic: str) -> list[bytes | None]:
    return [record.value for record in read_to_end(cluster, topic, hint="")]


def test_a_refused_copy_is_owed_to_its_scope(cluster: Cluster, topics: Topics, written: Written) -> None:
    """The neighbour's topic does not take it: a dead letter for the homes behind it; the batch goes on."""
    neighbours = topics.broker("small"), topics.broker("third")
    assert written(*(row(each, LARGE, copy(topics)) for each in neighbours))["diverted"] == 1
    (letter,) = dead_letters(cluster, topics)
    assert (letter.code, letter.owed, letter.place) == (Code.OUTPUT_REFUSED, "scope:6", origin(topics))
    assert (letter.record.key, letter.record.value) == (b"k", LARGE)
    assert letter.record.headers == (("trace", b"1"),)
    assert [values(cluster, each) for each in neighbours] == [[], [LARGE]]


def test_a_refused_delivery_is_owed_to_its_subscriber(
    cluster: Cluster, topics: Topics, written: Written
) -> None:
    """And only those that are too large: others of the same topic come, in order."""
    contents = [SMALL, LARGE, SMALL + b"2", LARGE, SMALL + b"3"]
    told = written(
        *(
            row(topics.out("small"), value, (), bl.delivery_id(origin(topics, offset), "small"))
            for offset, value in enumerate(contents)
        )
    )
    assert told["diverted"] == 2
    letters = dead_letters(cluster, topics)
    assert [(each.code, each.owed) for each in letters] == [(Code.OUTPUT_REFUSED, "subscriber:small")] * 2
    assert [each.place for each in letters] == [origin(topics, 1), origin(topics, 3)]
    assert values(cluster, topics.out("small")) == [value for value in contents if value != LARGE]


def test_a_topic_that_is_gone_holds_nobody_up(cluster: Cluster, topics: Topics, written: Written) -> None:
    """What was for it is owed, everybody else gets theirs, and its subscriber is to be suspended."""
    told = written(
        *(
            row(topics.out(name), SMALL, (), bl.delivery_id(origin(topics), name))
            for name in ("gone", "ann", "gone")
        )
    )
    assert told["diverted"] == 2
    assert {letter.owed for letter in dead_letters(cluster, topics)} == {"subscriber:gone"}
    assert values(cluster, topics.out("ann")) == [SMALL]
    (asked,) = read_to_end(cluster, topics.control, hint="")
    request = decode_request(asked.value)
    assert isinstance(request, Request)
    assert (request.operation, request.subscriber, request.all) == (Operation.SUSPEND, "gone", True)


def test_a_marker_names_what_was_diverted(cluster: Cluster, topics: Topics, written: Written) -> None:
    """By the places of the events, never by their bytes; only the sink that delivers exactly once has any."""
    told = written(row(topics.out("small"), LARGE, (), bl.delivery_id(origin(topics), "small")))
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
