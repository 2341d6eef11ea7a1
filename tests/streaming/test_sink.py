"""What the sink does with records that their topics refuse: no Kafka, no Spark, a producer of our own."""

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError

from branchline.kafka import headers as bl
from branchline.kafka.cluster import Cluster
from branchline.kafka.dead_letters import DeadLetter, decode_dead_letter
from branchline.kafka.dispatch import Step
from branchline.kafka.record import Headers, Place, Record
from branchline.kafka.topics import Topics
from branchline.routing.codes import Code
from branchline.routing.prefix.header import Header, encode
from branchline.routing.prefix.trees import UNMATCHED
from branchline.streaming import sink as module
from branchline.streaming.columns import OUTPUT, pack_headers
from branchline.streaming.sink import SinkFailed, sink

TOPICS = Topics()
CLUSTER = Cluster("127.0.0.1:1")
ORIGIN = Place(TOPICS.entry("main"), 0, 42, 1_700_000_000_000)
COPY: Headers = (
    ("trace", b"1"),
    (bl.ORIGIN, str(ORIGIN).encode()),
    (bl.PREFIX, encode(Header(UNMATCHED, 0b110, 1, 1))),
)


class Picky:
    """A producer whose cluster takes no record for one topic."""

    def __init__(self, refused: str) -> None:
        self.refused = refused
        self.taken: list[tuple[str, bytes | None, bytes | None, Headers]] = []

    def produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        headers: list[Any],
        on_delivery: Callable[[Any, Any], None],
    ) -> None:
        if topic == self.refused:
            on_delivery(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE), None)
        else:
            self.taken.append((topic, key, value, tuple(headers)))

    def poll(self, _: float) -> int:
        return 0

    def flush(self, _: float) -> int:
        return 0

    def purge(self) -> None:
        pass

    def dead_letters(self) -> list[DeadLetter]:
        records = [each for each in self.taken if each[0] == TOPICS.dead_letters]
        return [
            decode_dead_letter(Record(Place(topic, 0, 0, 0), key, value, headers))
            for topic, key, value, headers in records
        ]


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Picky]]:
    """Write rows with a producer that refuses a topic."""

    def write(refused: str, *rows: tuple[Any, ...]) -> Picky:
        producer = Picky(refused)
        monkeypatch.setattr(module, "_producers", {CLUSTER: producer})
        monkeypatch.setattr(module, "_alone", {})
        columns = dict(zip(OUTPUT.names, map(list, zip(*rows, strict=True)), strict=True))
        list(sink(CLUSTER, TOPICS.namespace)(iter([pa.RecordBatch.from_pydict(columns)])))
        return producer

    return write


def row(topic: str, headers: Headers = (), delivery: str | None = None) -> tuple[Any, ...]:
    return (int(Step.WRITE), topic, b"k", b"v", pack_headers(headers), delivery)


def test_a_refused_copy_is_owed_to_its_scope(written: Callable[..., Picky]) -> None:
    """The neighbour's topic does not take it: a dead letter for the homes behind it; the batch goes on."""
    producer = written(
        TOPICS.broker("second"), row(TOPICS.broker("second"), COPY), row(TOPICS.broker("third"), COPY)
    )
    (letter,) = producer.dead_letters()
    assert (letter.code, letter.owed, letter.place) == (Code.OUTPUT_REFUSED, "scope:6", ORIGIN)
    assert (letter.record.key, letter.record.value, letter.record.headers) == (b"k", b"v", (("trace", b"1"),))
    assert [each[0] for each in producer.taken] == [TOPICS.broker("third"), TOPICS.dead_letters]


def test_a_refused_delivery_is_owed_to_its_subscriber(written: Callable[..., Picky]) -> None:
    """As before: the id says to whom, and where the event was published."""
    delivery = bl.delivery_id(ORIGIN, "alice")
    producer = written(TOPICS.out("alice"), row(TOPICS.out("alice"), (("trace", b"1"),), delivery))
    (letter,) = producer.dead_letters()
    assert (letter.code, letter.owed, letter.place) == (Code.OUTPUT_REFUSED, "subscriber:alice", ORIGIN)


@pytest.mark.parametrize("topic", [TOPICS.filters, TOPICS.link("second"), TOPICS.acks, TOPICS.dead_letters])
def test_what_must_not_be_missed_fails_the_batch(written: Callable[..., Picky], topic: str) -> None:
    """A change, a letter, an ack or a dead letter that is not taken is tried again with the whole batch."""
    with pytest.raises(SinkFailed):
        written(topic, row(topic))
