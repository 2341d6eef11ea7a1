"""A router on Kafka and Spark for measuring: brokers in a line, subscribers at its end, events at its start.

What Spark says of its batches is what is timed: from when the second one began until the last one with input
was committed. The first brings workers up and is said apart. The rate is of events that enter, wherever they
have to go from there.

Beside it, Spark moves the same records from Kafka to Kafka with no operator at all: no router on Spark can be
faster than that.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

from confluent_kafka import TopicPartition
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming.query import StreamingQuery

from branchline.kafka.admin import create_topics, ensure_topics
from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import JobFailed
from branchline.kafka.messages import encode_request
from branchline.kafka.topics import ENTRY, Topics
from branchline.ops.pipeline_load import Load
from branchline.ops.pipeline_outbox import Outbox, ends
from branchline.routing.control import Operation, Request
from branchline.routing.overlay.topology import founded, link
from branchline.routing.prefix.optimizer import Settings
from branchline.streaming.optimizer import OptimizerConfig, start_optimizer
from branchline.streaming.router import Delivery, RouterConfig, start_router
from branchline.streaming.source import SOURCE_OPTIONS

CATCH_UP_S = 1_800.0
IDLE_S = 4.0
"""Without a batch for so long, everything that was there has been handled."""
NOTHING_S = 20.0
"""The same for a query that has had no batch at all: the first one takes long to plan."""
LOOK_S = 0.1
KEYS = 1_000
"""Keys of events: order is kept for each, so there should be many."""
HOPS_MOST = 8


@dataclass(frozen=True, slots=True)
class Batch:
    """A micro-batch, as Spark reports it."""

    number: int
    began_s: float
    took_s: float
    entered: int
    """Events from the topic where they enter."""
    rows: int


@dataclass(frozen=True, slots=True)
class Rate:
    """How fast a backlog was worked off."""

    events: int
    took_s: float
    batches: int
    batch_ms: int
    first_ms: int
    counts: dict[str, int]
    parts_ms: dict[str, int] = field(default_factory=dict)
    """What the parts of a batch take."""

    @property
    def per_s(self) -> float:
        return self.events / self.took_s


class Site:
    """A namespace of its own with its router."""

    def __init__(
        self, spark: SparkSession, cluster: Cluster, folder: Path, namespace: str, hops: int, batch: int
    ) -> None:
        self.cluster, self.topics = cluster, Topics(namespace)
        self._spark, self._folder, self._batch = spark, folder, batch
        self._brokers = tuple(f"b{number}" for number in range(1, hops + 1))
        links = [link(one, other) for one, other in zip(self._brokers, self._brokers[1:], strict=False)]
        self._topology = founded(list(self._brokers), links)
        ensure_topics(cluster, self.topics.of_brokers(self._brokers))

    @property
    def entry(self) -> str:
        """Where events enter."""
        return self.topics.entry(self._brokers[0])

    @property
    def home(self) -> str:
        """Where subscribers are at home."""
        return self._brokers[-1]

    def outbox(self, subscribers: int) -> Outbox:
        return Outbox(self.cluster, [self.topics.out(f"s{number}") for number in range(subscribers)])

    def subscribe(self, load: Load) -> float:
        """Let all subscriptions stand; how long the router took for that, in seconds."""
        producer = self.cluster.producer(linger_ms=20)
        for number, (subscriber, text) in enumerate(load.subscriptions()):
            request = Request(
                Operation.SUBSCRIBE, f"s{subscriber}", f"f{number}", home=self.home, filter=text
            )
            producer.produce(self.topics.control, encode_request(request))
            if number % 10_000 == 9_999:
                producer.flush(60)
        producer.flush(60)
        started = time.monotonic()
        with _Running(self.start(Delivery.AT_LEAST_ONCE)) as query:
            _until_idle(query)
        return time.monotonic() - started

    def tell_trees(self) -> None:
        """Let the Tree Optimizer hear all filters, and the router hear of its tree."""
        config = OptimizerConfig(
            self.cluster,
            str(self._folder / f"{self.topics.namespace}-trees"),
            self.topics.namespace,
            Settings(limit_ms=0),
        )
        with _Running(start_optimizer(self._spark, config)) as query:
            _until_idle(query)
        with _Running(self.start(Delivery.AT_LEAST_ONCE)) as query:
            _until_idle(query)

    def publish(self, events: Sequence[bytes]) -> list[int]:
        """Put the events into the topic where they enter; the offsets before, partition by partition."""
        before = self._ends()
        producer = self.cluster.producer(linger_ms=20)
        for number, event in enumerate(events):
            producer.produce(self.entry, event, b"%d" % (number % KEYS))
            producer.poll(0)
            if number % 20_000 == 19_999:
                producer.flush(60)
        producer.flush(60)
        return before

    def start(
        self, mode: Delivery, observe: Callable[[int, list[dict[str, Any]]], None] | None = None
    ) -> Any:
        """The router's query, which goes on until it is stopped."""
        name = self.topics.namespace
        config = RouterConfig(
            self.cluster,
            str(self._folder / name),
            name,
            self._brokers,
            max_events_per_batch=self._batch,
            topology=self._topology,
            delivery=mode,
        )
        return start_router(self._spark, config, observe)

    def route(self, mode: Delivery, events: int) -> Rate:
        """Work off so many events that wait."""
        counts: dict[int, dict[str, int]] = {}

        def observe(batch: int, shards: list[dict[str, Any]]) -> None:
            into = counts.setdefault(batch, {})
            for shard in shards:
                for name, value in shard.items():
                    if isinstance(value, int):
                        into[name] = into.get(name, 0) + value

        with _Running(self.start(mode, observe)) as query:
            batches = _until_entered(query, self.entry, events)
            parts = parts_of(query)
        return replace(_rate(batches, counts), parts_ms=parts)

    def move(self, start: Sequence[int], events: int, number: int) -> Rate:
        """Let Spark move the events from these offsets on to another topic, with no operator."""
        target = f"{self.topics.namespace}.moved"
        create_topics(self.cluster, {target: ENTRY})
        offsets = json.dumps({self.entry: {str(place): offset for place, offset in enumerate(start)}})
        client = {f"kafka.{name}": value for name, value in self.cluster.java().items()}
        options = {
            **SOURCE_OPTIONS,
            "subscribe": self.entry,
            "startingOffsets": offsets,
            "maxOffsetsPerTrigger": str(self._batch),
        }
        frame = self._spark.readStream.format("kafka").options(**options, **client).load()
        query = (
            frame.select("key", "value", "headers", sql.lit(target).alias("topic"))
            .writeStream.format("kafka")
            .options(**client, **{"kafka.linger.ms": "20", "kafka.batch.size": "131072"})
            .option("checkpointLocation", str(self._folder / f"{self.topics.namespace}-moved-{number}"))
            .start()
        )
        with _Running(query):
            return _rate(_until_entered(query, self.entry, events), {})

    def _ends(self) -> list[int]:
        return ends(self.cluster, [TopicPartition(self.entry, each) for each in range(ENTRY.partitions)])


class _Running:
    """A query that is stopped at the end."""

    def __init__(self, query: StreamingQuery) -> None:
        self._query = query

    def __enter__(self) -> StreamingQuery:
        return self._query

    def __exit__(self, *_: object) -> None:
        self._query.stop()


def batches_of(query: StreamingQuery, entry: str) -> list[Batch]:
    """The batches with input that the query has told of, of which Spark keeps the last hundred."""
    made = []
    for each in query.recentProgress:
        progress: Any = each
        if progress.numInputRows:
            began = datetime.fromisoformat(progress.timestamp.replace("Z", "+00:00"))
            entered = sum(_moved(source, entry) for source in progress.sources)
            took_s = progress.durationMs["triggerExecution"] / 1e3
            made.append(Batch(progress.batchId, began.timestamp(), took_s, entered, progress.numInputRows))
    return made


def parts_of(query: StreamingQuery) -> dict[str, int]:
    """What the parts of a batch take, as Spark names them: milliseconds, the middle of the last batches."""
    told: list[Any] = [each for each in query.recentProgress if each.numInputRows]
    names = sorted({name for each in told for name in each.durationMs})
    return {name: round(median(each.durationMs.get(name, 0) for each in told)) for name in names}


def _moved(source: Any, topic: str) -> int:
    """How many records of the topic a batch took."""
    ends, starts = (_offsets(each).get(topic, {}) for each in (source.endOffset, source.startOffset))
    return sum(int(end) - int(starts.get(partition, 0)) for partition, end in ends.items())


def _offsets(told: Any) -> dict[str, dict[str, Any]]:
    if isinstance(told, str):
        told = json.loads(told or "{}")
    return told if isinstance(told, dict) else {}


def _until_entered(query: StreamingQuery, entry: str, events: int) -> list[Batch]:
    """Wait until so many events have entered and nothing more happens; all batches."""
    known: dict[int, Batch] = {}
    deadline = time.monotonic() + CATCH_UP_S
    last = time.monotonic()
    while True:
        _check(query, deadline)
        for batch in batches_of(query, entry):
            if batch.number not in known:
                known[batch.number] = batch
                last = time.monotonic()
        if sum(each.entered for each in known.values()) >= events and time.monotonic() - last > IDLE_S:
            return [known[number] for number in sorted(known)]
        time.sleep(LOOK_S)


def _until_idle(query: StreamingQuery) -> None:
    """Wait until the query has handled what is there; nothing at all, if there is nothing for a while."""
    deadline = time.monotonic() + CATCH_UP_S
    last, patience_s = time.monotonic(), NOTHING_S
    while time.monotonic() - last < patience_s:
        _check(query, deadline)
        progress: Any = query.lastProgress
        if progress is not None and progress.numInputRows:
            patience_s = IDLE_S
        if query.status["isTriggerActive"] and query.status["isDataAvailable"]:
            last = time.monotonic()
        time.sleep(LOOK_S)


def _check(query: StreamingQuery, deadline: float) -> None:
    error = query.exception()
    if error is not None:
        raise JobFailed(f"the query has ended: {str(error)[:300]}", hint="see Spark's log")
    if time.monotonic() > deadline:
        raise JobFailed(f"it did not catch up within {CATCH_UP_S:.0f} s", hint="use fewer events or filters")


def _rate(batches: Sequence[Batch], counts: dict[int, dict[str, int]]) -> Rate:
    first, *timed = batches
    timed = timed or [first]  # with so few events there is no second one
    total: dict[str, int] = {}
    for of_batch in counts.values():
        for name, value in of_batch.items():
            total[name] = total.get(name, 0) + value
    return Rate(
        sum(each.entered for each in timed),
        timed[-1].began_s + timed[-1].took_s - timed[0].began_s,
        len(batches),
        round(median(each.took_s for each in timed) * 1e3),
        round(first.took_s * 1e3),
        total,
    )
