"""Where a router that delivers exactly once can crash: each place, on real Kafka and Spark.

Two brokers, so that copies for neighbours are written too. The query fails at the place and is started again;
whoever reads committed records must then see every event once, in order, as if nothing had happened.
"""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from failpoints import arm, await_reached, disarm_all
from pyspark.sql import SparkSession
from routers import Site, delivery_id
from waiting import wait_until

from branchline.kafka.admin import remove_topics
from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import CheckpointLost, CheckpointOlder, JobFenced, MarkersGone
from branchline.kafka.markers import read_markers
from branchline.ops.overlay import small_overlay
from branchline.streaming.job import RouterJob
from branchline.streaming.once import OnceWriter, Turn
from branchline.streaming.out_topics import OutTopics
from branchline.streaming.router import Delivery

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

KEYS = 8
"""Enough for both shards to have some."""


@dataclass
class Watched:
    """A router that delivers exactly once, what was published, and what must be seen of it."""

    site: Site
    published: int = 0
    subscribers: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Each with its home, and how many were published before its subscription stood: those it may get."""

    def publish(self, count: int = 40) -> None:
        for number in range(self.published, self.published + count):
            self.site.publish(json.dumps({"n": number}), str(number % KEYS))
        self.site.flush()
        self.published += count

    def subscribe(self, name: str, home: str) -> None:
        assert self.site.subscribe(name, "n >= 0", home=home).status == "in-force"
        self.subscribers[name] = (home, self.published)

    def fails(self) -> str:
        """Wait until the query has failed; why."""
        query = self.site.query
        assert query is not None
        wait_until(lambda: not query.isActive, 60, "the query fails")
        self.site.query = None
        disarm_all()
        return str(query.exception())

    def check(self) -> None:
        """Every subscriber has every event once, in order per key, as soon as the router is through."""
        self.site.settle()
        for name, (_, since) in self.subscribers.items():
            records = self.site.read(self.site.topics.out(name))
            ids = [delivery_id(record) for record in records]
            assert len(ids) == len(set(ids))
            by_key: dict[bytes | None, list[int]] = {}
            for record in records:
                number = json.loads(record.value or b"")["n"]
                if number >= since:
                    by_key.setdefault(record.key, []).append(number)
            assert by_key == {
                str(key).encode(): wanted
                for key in range(KEYS)
                if (wanted := [n for n in range(since, self.published) if n % KEYS == key])
            }, name


@pytest.fixture(scope="module")
def watched(
    spark: SparkSession, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp("windows") / "checkpoint"
    site = Site(
        spark,
        cluster,
        "windows",
        folder,
        brokers=("main", "b2"),
        topology=small_overlay(2, "main"),
        delivery=Delivery.EXACTLY_ONCE,
    )
    site.start()
    watched = Watched(site)
    watched.subscribe("near", "main")
    watched.subscribe("far", "b2")
    yield watched
    site.stop()


@pytest.fixture(autouse=True)
def runs(watched: Watched) -> Iterator[None]:
    """Each test begins with a running query, and with nothing armed."""
    if watched.site.query is None:
        watched.site.start()
    yield
    disarm_all()


@pytest.mark.parametrize("place", ["during-produce", "after-produce"])
def test_the_query_fails_in_the_sink(watched: Watched, place: str) -> None:
    """At every attempt of both shards: nothing of the batch was written, and everything is later."""
    arm(f"sink.{place}", "always")
    watched.publish()
    assert "FailpointReached" in watched.fails()
    watched.site.start()
    watched.check()


@pytest.mark.parametrize("place", ["commit-not-sent", "commit-not-heard"])
def test_the_outcome_of_a_commit_is_unknown(watched: Watched, place: str) -> None:
    """The attempt finds out by itself, and the query goes on."""
    arm(f"sink.{place}")
    watched.publish()
    await_reached(f"sink.{place}")
    watched.check()


def test_a_worker_dies_with_its_transaction_open(watched: Watched) -> None:
    """The next attempt at the task settles it."""
    arm("sink.after-produce", "kill")
    watched.publish()
    await_reached("sink.after-produce")
    watched.check()


def test_all_is_written_and_spark_does_not_know(watched: Watched) -> None:
    """The batch is run again: every shard finds its marker, and writes nothing."""
    arm("router.after-batch")
    watched.publish()
    assert "FailpointReached" in watched.fails()
    before = len(watched.site.counts)
    watched.site.start()
    watched.check()
    again = watched.site.counts[before:]
    assert sum(counts["skipped"] for counts in again) >= 1
    assert not any(counts["differed"] for counts in again)


def test_some_shards_are_written_and_subscriptions_change_meanwhile(watched: Watched) -> None:
    """One shard finds its marker, the other writes. Who subscribes in between gets what comes after."""
    arm("sink.before-init.1", "always")
    watched.publish()
    watched.fails()
    site = watched.site
    site.start()
    watched.subscribe("late", "main")
    watched.publish()
    watched.check()


def test_a_subscribers_topic_is_gone(watched: Watched) -> None:
    """What was for it is owed to it, and it is suspended; nobody else misses anything, or waits for long."""
    site = watched.site
    assert site.subscribe("gone", "n >= 0", home="b2").status == "in-force"
    site.settle()
    remove_topics(site.cluster, [site.topics.out("gone")])
    watched.publish(10)

    def told() -> list[tuple[str, str]]:
        acks = [ack for ack in site.acks() if ack.subscriber == "gone" and ack.status == "suspended"]
        return [(ack.status, ack.id) for ack in acks]

    wait_until(lambda: len(told()) == 2, 60, "it is suspended")
    assert told() == [("suspended", "default"), ("suspended", "")]
    watched.publish(10)
    watched.check()
    owed = [letter for letter in site.dead_letters() if letter.owed == "subscriber:gone"]
    assert {json.loads(letter.record.value or b"")["n"] for letter in owed} == set(
        range(watched.published - 20, watched.published - 10)
    )


# What a run refuses to begin with


def test_a_checkpoint_that_is_older_than_what_was_written(watched: Watched, tmp_path: Path) -> None:
    """Its next batches would have numbers that were used, with other input."""
    site = watched.site
    site.settle()
    site.stop()
    shutil.copytree(site.checkpoint, tmp_path / "old")
    site.start()
    watched.publish()
    watched.check()
    site.stop()
    newest, site.checkpoint = site.checkpoint, tmp_path / "old"
    with pytest.raises(CheckpointOlder, match="knows of"):
        site.start()
    site.checkpoint = tmp_path / "none"
    with pytest.raises(CheckpointLost, match="is new"):
        site.start()
    site.checkpoint = newest
    site.start()
    watched.publish()
    watched.check()


def test_another_copy_of_the_job_has_written(watched: Watched) -> None:
    """The one that runs stops, and says why: of two copies only one goes on."""
    site = watched.site
    watched.check()
    topic = site.topics.markers("main")
    markers = read_markers(site.cluster, topic, site.shards)
    for shard, marker in enumerate(markers):
        assert marker is not None
        last = max(each.batch for each in markers if each is not None)
        turn = Turn(topic, marker.query, "copy", last + 1, "its own plan", must_mark=True)
        OnceWriter(site.cluster, site.topics, OutTopics(), turn, shard).finish()
    site.publish(json.dumps({"n": -1}), "0")
    site.flush()
    job = RouterJob(site.spark, site.config(), print)
    for _ in range(2):
        # Not after a restart either: its batch of that number is another one.
        refused = job._refused(watched.fails())
        assert isinstance(refused, JobFenced), refused
        site.start()
    site.stop()
    _forget(site)
    site.start()


def test_markers_are_gone(watched: Watched) -> None:
    """It cannot be known what was written: refused, until somebody says that repeats are no harm."""
    site = watched.site
    watched.publish()
    watched.check()
    site.stop()
    remove_topics(site.cluster, [site.topics.markers("main")])
    with pytest.raises(MarkersGone, match="does not say what shard"):
        site.start()
    _forget(site)
    site.start()
    watched.publish()
    watched.check()


def _forget(site: Site) -> None:
    """What the hint says: one start without markers."""
    remove_topics(site.cluster, [site.topics.markers("main")])
    site.delivery = Delivery.AT_LEAST_ONCE
    site.start()
    site.settle()
    site.stop()
    site.delivery = Delivery.EXACTLY_ONCE
