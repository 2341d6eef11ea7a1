"""A router on the suite's Kafka and Spark, as scripts of actions use it: start, publish, ask, read, stop."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from branchline.kafka.admin import ensure_topics
from branchline.kafka.asking import Answer, ask, decode_answer
from branchline.kafka.cluster import Cluster
from branchline.kafka.dead_letters import DeadLetter, decode_dead_letter
from branchline.kafka.headers import ID, foreign, text
from branchline.kafka.reading import read_to_end
from branchline.kafka.record import Headers, Record
from branchline.kafka.topics import Topics
from branchline.ops.chaos.reading import ends as ends
from branchline.ops.chaos.reading import read_all as read_all
from branchline.routing.control import Operation, Request, Status
from branchline.routing.limits import SUBSCRIPTIONS_PER_SUBSCRIBER
from branchline.routing.methods.naming import Methods
from branchline.routing.overlay.topology import Topology
from branchline.streaming.out_topics import OutTopics
from branchline.streaming.router import Delivery, RouterConfig, start_router
from branchline.streaming.supervising import SupervisedJob


@dataclass
class Site:
    """The topics of a broker, or of several, on the suite's Kafka, with or without a router running."""

    spark: SparkSession
    cluster: Cluster
    namespace: str
    checkpoint: Path
    shards: int = 2
    max_events_per_batch: int = 20_000
    brokers: tuple[str, ...] = ("main",)
    topology: Topology | None = None
    max_subscriptions: int = SUBSCRIPTIONS_PER_SUBSCRIBER
    out: OutTopics = field(default_factory=OutTopics)
    cluster_name: str = "main"
    delivery: Delivery = Delivery.AT_LEAST_ONCE
    methods: Methods = field(default_factory=Methods)
    query: StreamingQuery | None = None
    counts: list[dict[str, Any]] = field(default_factory=list)
    """What every shard counted in every batch."""

    def __post_init__(self) -> None:
        self.topics = Topics(self.namespace)
        ensure_topics(self.cluster, self.topics.of_brokers(self.brokers))
        self._producer = self.cluster.producer(linger_ms=1)

    def config(self) -> RouterConfig:
        return RouterConfig(
            self.cluster,
            str(self.checkpoint),
            self.namespace,
            self.brokers,
            topology=self.topology,
            shards=self.shards,
            max_events_per_batch=self.max_events_per_batch,
            max_subscriptions=self.max_subscriptions,
            out=self.out,
            cluster_name=self.cluster_name,
            delivery=self.delivery,
            methods=self.methods,
        )

    def start(self) -> None:
        self.query = start_router(self.spark, self.config(), lambda _, counts: self.counts.extend(counts))

    def counted(self) -> Counter[str]:
        """What all shards counted in all batches."""
        counts = Counter[str]()
        for each in self.counts:
            counts.update({name: count for name, count in each.items() if isinstance(count, int)})
        return counts

    def stop(self) -> None:
        if self.query is not None:
            self.query.stop()
            self.query = None

    def run_to_end(self, between_batches: Callable[[], None] = lambda: None) -> int:
        """Handle everything that is there, calling back after each batch; the number of batches."""
        batches = []

        def observe(batch: int, counts: list[dict[str, Any]]) -> None:
            self.counts.extend(counts)
            batches.append(batch)
            between_batches()

        query = start_router(self.spark, self.config(), observe, until_caught_up=True)
        assert query.awaitTermination(120), "the router did not catch up"
        return len(batches)

    def settle(self) -> None:
        """Return when the router has handled everything written so far."""
        assert self.query is not None
        self.query.processAllAvailable()

    def write(
        self,
        topic: str,
        value: bytes | str | None,
        key: bytes | str | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        **more: Any,
    ) -> None:
        while True:
            try:
                self._producer.produce(topic, value, key, headers=list(headers), **more)
                break
            except BufferError:
                self._producer.poll(0.1)

    def publish(
        self,
        value: bytes | str | None,
        key: bytes | str | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        at: str = "main",
    ) -> None:
        self.write(self.topics.entry(at), value, key, headers)

    def flush(self) -> None:
        assert self._producer.flush(60) == 0, "Kafka did not take everything"

    def subscribe(self, subscriber: str, filter: str, id: str = "default", **more: Any) -> Answer:
        request = Request(Operation.SUBSCRIBE, subscriber, id, filter=filter, **more)
        return ask(self.cluster, self.topics, [request], Status.IN_FORCE, 60)[0]

    def unsubscribe(self, subscriber: str, id: str = "default", home: str | None = None) -> Answer:
        request = Request(Operation.UNSUBSCRIBE, subscriber, id, home)
        return ask(self.cluster, self.topics, [request], Status.ENDED, 60)[0]

    def renew(self, subscriber: str, id: str = "default", lease_ms: int | None = None) -> Answer:
        request = Request(Operation.RENEW, subscriber, id, lease_ms=lease_ms)
        return ask(self.cluster, self.topics, [request], Status.RENEWED, 60)[0]

    def read(self, topic: str) -> list[Record]:
        self.flush()
        return list(read_to_end(self.cluster, topic, hint=""))

    def delivered(self, subscriber: str) -> list[bytes | None]:
        """The values in the subscriber's topic, once the router has handled everything."""
        self.flush()
        if self.query is not None:
            self.settle()
        return [record.value for record in self.read(self.topics.out(subscriber))]

    def acks(self) -> list[Answer]:
        answers = (decode_answer(record) for record in self.read(self.topics.acks))
        return [answer for answer in answers if answer is not None]

    def dead_letters(self) -> list[DeadLetter]:
        return [decode_dead_letter(record) for record in self.read(self.topics.dead_letters)]


def delivery_id(record: Record) -> str:
    found = text(record.headers, ID)
    assert found is not None, f"{record.place} has no id"
    return found


def as_published(record: Record) -> tuple[bytes | None, bytes | None, Headers]:
    """What must arrive untouched."""
    return record.key, record.value, foreign(record.headers)


@contextmanager
def running(site: Site) -> Iterator[Site]:
    site.start()
    try:
        yield site
    finally:
        site.stop()


@contextmanager
def supervised(job: SupervisedJob) -> Iterator[None]:
    """A job that runs in a thread of its own: with its ticks and statistics, not the query alone."""
    stop, started = Event(), Event()
    thread = Thread(target=job.run, args=(stop, started))
    thread.start()
    try:
        assert started.wait(120)
        yield
    finally:
        stop.set()
        thread.join()
