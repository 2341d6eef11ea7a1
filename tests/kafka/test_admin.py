"""Making topics and finding out how they differ, on a real Kafka."""

import pytest
from confluent_kafka.admin import NewTopic
from waiting import wait_until

from branchline.kafka.admin import Difference, create_topics, differences, ensure_topics, list_topics
from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import TopicFailed
from branchline.kafka.topics import CONTROL, FILTERS, OUT, Topics

pytestmark = pytest.mark.kafka


def test_topics_are_made_once_and_as_the_table_says(cluster: Cluster, namespace: str) -> None:
    """What is missing is made with its configuration; making it again changes nothing and is no error."""
    wanted = Topics(namespace).of_broker("main")
    assert {each.actual for each in differences(cluster, wanted)} == {"missing"}
    ensure_topics(cluster, wanted)
    ensure_topics(cluster, wanted)
    wait_until(lambda: wanted.keys() <= list_topics(cluster).keys(), 30, "the topics are listed")
    assert differences(cluster, wanted) == []
    made = list_topics(cluster)
    assert {name: made[name] for name in wanted} == {name: kind.partitions for name, kind in wanted.items()}


def test_every_difference_is_named(cluster: Cluster, namespace: str) -> None:
    """Another clean-up, retention or number of partitions is found, but an out topic may have many."""
    topics = Topics(namespace)
    admin = cluster.admin()
    made = [
        NewTopic(topics.control, 3, -1, config={"retention.ms": "1000"}),
        NewTopic(topics.filters, 1, -1),
        NewTopic(topics.out("alice"), 4, -1, config=OUT.config()),
    ]
    for future in admin.create_topics(made).values():
        future.result()
    wanted = {topics.control: CONTROL, topics.filters: FILTERS, topics.out("alice"): OUT}
    # Kafka lists a topic some time after it has said that it is made.
    wait_until(lambda: wanted.keys() <= list_topics(cluster).keys(), 30, "the topics are listed")
    assert set(differences(cluster, wanted)) == {
        Difference(topics.control, "partitions", "1", "3"),
        Difference(topics.control, "retention.ms", CONTROL.config()["retention.ms"], "1000"),
        Difference(topics.filters, "cleanup.policy", "compact", "delete"),
        *(
            Difference(name, entry, value, str(2**63 - 1))
            for name in (topics.control, topics.filters)
            for entry, value in CONTROL.config().items()
            if entry == "message.timestamp.before.max.ms"
        ),
    }


def test_a_topic_that_kafka_refuses_is_named_with_the_reason(cluster: Cluster) -> None:
    """One bad name does not keep the others from being made."""
    failed = create_topics(cluster, {"not a topic!": OUT, "good-topic": OUT})
    assert failed.keys() == {"not a topic!"} and failed["not a topic!"]
    wait_until(lambda: "good-topic" in list_topics(cluster), 30, "it is listed")
    with pytest.raises(TopicFailed, match="not a topic!"):
        ensure_topics(cluster, {"not a topic!": OUT})
