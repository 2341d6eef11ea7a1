"""Topics of subscribers on real Kafka and Spark: made as the job is set, removed when vacant, made anew."""

import json
from pathlib import Path

import pytest
from confluent_kafka.admin import ConfigResource, ResourceType
from pyspark.sql import SparkSession
from routers import Site, supervised
from waiting import wait_until

from branchline.kafka.admin import differences, list_topics
from branchline.kafka.cluster import Cluster
from branchline.kafka.record import Record
from branchline.kafka.topics import OUT
from branchline.routing.control import Status
from branchline.streaming import job
from branchline.streaming.job import RouterJob
from branchline.streaming.out_topics import OutTopics

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

HOUR_MS = 60 * 60 * 1000
KEYS = 8


def publish(site: Site, numbers: range) -> None:
    for number in numbers:
        site.publish(json.dumps({"n": number}), f"key-{number % KEYS}")
    site.flush()


def delivered(site: Site, subscriber: str) -> dict[bytes | None, list[int]]:
    """What the subscriber has, by key, in the order of its partitions; repeats dropped."""
    by_key: dict[bytes | None, list[Record]] = {}
    for record in site.read(site.topics.out(subscriber)):
        by_key.setdefault(record.key, []).append(record)
    for records in by_key.values():
        assert len({record.place.partition for record in records}) == 1, "a key is in one partition"
    return {
        key: list(dict.fromkeys(json.loads(record.value or b"")["n"] for record in records))
        for key, records in by_key.items()
    }


def expected(numbers: range) -> dict[bytes | None, list[int]]:
    return {
        f"key-{key}".encode(): [number for number in numbers if number % KEYS == key] for key in range(KEYS)
    }


def is_there(site: Site, subscriber: str) -> bool:
    return site.topics.out(subscriber) in list_topics(site.cluster)


def test_a_vacant_topic_is_removed_while_the_job_is_idle_and_made_anew_for_who_comes_back(
    spark: SparkSession, cluster: Cluster, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the partitions and retention of the job's settings; who comes back gets everything, in order."""
    monkeypatch.setattr(job, "TICK_EVERY_S", 0.5)
    out = OutTopics(3, 1, HOUR_MS, remove_after_ms=2_000)
    site = Site(spark, cluster, namespace, tmp_path / "checkpoint", out=out)
    topic = site.topics.out("ann")
    with supervised(RouterJob(site.spark, site.config(), print)):
        site.subscribe("ann", "n >= 0")
        site.subscribe("bob", "n >= 0")
        # What was made may not be in the server's list at once.
        wait_until(lambda: list_topics(cluster).get(topic) == 3, 60, "the topic has its partitions")
        assert retention_ms(cluster, topic) == HOUR_MS
        assert differences(cluster, {topic: OUT}) == [], "nobody complains"
        publish(site, range(40))
        wait_until(lambda: delivered(site, "ann") == expected(range(40)), 60, "all is there, in order")
        assert site.unsubscribe("ann").status is Status.ENDED
        assert is_there(site, "ann"), "not at once"
        wait_until(lambda: not is_there(site, "ann"), 60, "the topic is removed")
        site.subscribe("ann", "n >= 0")
        assert removals(site) == ["ann"], "its subscriber is told"
        publish(site, range(40, 80))
        wait_until(lambda: delivered(site, "ann") == expected(range(40, 80)), 60, "all of its new life")
        assert delivered(site, "bob") == expected(range(80)), "who stays is not touched"
    assert site.dead_letters() == []


def retention_ms(cluster: Cluster, topic: str) -> int:
    admin = cluster.admin()
    (described,) = admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
    return int(described.result()["retention.ms"].value)


def removals(site: Site) -> list[str]:
    return [ack.subscriber for ack in site.acks() if ack.status is Status.REMOVED]
