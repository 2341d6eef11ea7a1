"""The sink removes a topic and makes it anew: nothing written afterwards is refused. Kafka, but no Spark."""

import json
from collections.abc import Iterator

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from waiting import wait_until

from branchline.kafka import headers as bl
from branchline.kafka.admin import ensure_topics, list_topics, remove_topics
from branchline.kafka.cluster import Cluster
from branchline.kafka.dispatch import Dispatch, Step
from branchline.kafka.reading import read_to_end
from branchline.kafka.record import Place
from branchline.kafka.topics import DEAD_LETTERS, Topics
from branchline.streaming import sink as module
from branchline.streaming.blocks import BlockKind, pack
from branchline.streaming.out_topics import OutTopics
from branchline.streaming.sink import sink

pytestmark = pytest.mark.kafka

OUT = OutTopics(partitions=2, remove_after_ms=1_000)


@pytest.fixture
def topics(cluster: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Topics]:
    """A namespace, and a worker of its own whose producers soon notice what becomes of topics."""
    soon = {"topic_metadata_refresh_interval_ms": 100, "topic_metadata_propagation_max_ms": 300}
    monkeypatch.setattr(module, "PRODUCER_SETTINGS", {**module.PRODUCER_SETTINGS, **soon})
    monkeypatch.setattr(module, "_producers", {})
    monkeypatch.setattr(module, "_generations", {})
    topics = Topics(namespace)
    ensure_topics(cluster, {topics.dead_letters: DEAD_LETTERS})
    yield topics


def written(cluster: Cluster, topics: Topics, generation: int, *steps: Step) -> dict[str, int]:
    """One batch for ann's topic; what the sink counted."""
    origin = Place(topics.entry("main"), 0, 1, 2)
    delivery = bl.delivery_id(origin, "ann")
    blocks = list(pack(Dispatch(step, topics.out("ann"), b"k", b"v", (), delivery) for step in steps))
    kinds = [*(int(block.kind) for block in blocks), int(BlockKind.COUNTS)]
    columns = {"kind": kinds, "block": [*(block.data for block in blocks), b"{}"]}
    (told,) = sink(cluster, topics.namespace, OUT, generation)(iter([pa.RecordBatch.from_pydict(columns)]))
    return dict(json.loads(told.column(0)[0].as_py())["told"])


def refuses(producer: Producer, topic: str) -> bool:
    """Whether a producer takes a topic for one that is not there."""
    said: list[KafkaError] = []
    try:
        producer.produce(topic, b"x", on_delivery=lambda error, _: said.append(error) if error else None)
    except KafkaException as error:
        said.append(error.args[0])
    producer.flush(10)
    return any(error.code() in module.REFUSALS for error in said)


def delivered(cluster: Cluster, topics: Topics) -> int:
    return len(list(read_to_end(cluster, topics.out("ann"), hint="")))


def test_what_is_written_after_a_removal_is_in_the_new_topic(cluster: Cluster, topics: Topics) -> None:
    """Though the producer of before knows that the topic has gone; that one would divert the delivery."""
    assert written(cluster, topics, 0, Step.CREATE, Step.WRITE)["diverted"] == 0
    told = written(cluster, topics, 0, Step.REMOVE)
    assert (told["removed"], told["not_removed"]) == (1, 0)
    assert topics.out("ann") not in list_topics(cluster)
    old = module._producers[cluster]
    wait_until(lambda: refuses(old, topics.out("ann")), 60, "the producer of before knows it")
    assert written(cluster, topics, 1, Step.CREATE, Step.WRITE)["diverted"] == 0
    assert delivered(cluster, topics) == 1
    assert module._producers[cluster] is not old
    assert list_topics(cluster)[topics.out("ann")] == 2


def test_removing_what_is_gone_is_done(cluster: Cluster, topics: Topics) -> None:
    """A batch that is run again, or a subscriber that never had a topic, is no failure."""
    written(cluster, topics, 0, Step.CREATE)
    for _ in range(2):
        assert written(cluster, topics, 0, Step.REMOVE)["removed"] == 1
    assert remove_topics(cluster, [topics.out("ann"), topics.out("bob")]) == {}


def test_a_topic_is_removed_before_topics_are_made(cluster: Cluster, topics: Topics) -> None:
    """In one batch too: what is made stays, and what is written is in it."""
    written(cluster, topics, 0, Step.CREATE, Step.WRITE)
    written(cluster, topics, 1, Step.REMOVE, Step.CREATE, Step.WRITE)
    assert delivered(cluster, topics) == 1
