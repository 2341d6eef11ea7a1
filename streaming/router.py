"""The router job: one streaming query from the control and event topics to everybody's topics.

The shape: two Kafka sources, a row per record with its shard, one stateful operator keyed by the shard,
and a sink that runs in the operator's own stage and writes to Kafka from the executors.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from branchline.kafka.admin import ensure_topics
from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import CheckpointDiffers, ConfigError
from branchline.kafka.proposing import record_first
from branchline.kafka.topics import TopicKind, Topics, check_name
from branchline.routing.limits import SUBSCRIPTIONS_PER_SUBSCRIBER
from branchline.routing.methods.naming import Methods, misfit
from branchline.routing.overlay.topology import Topology, fault
from branchline.routing.shard import Job
from branchline.streaming import checkpoint, state
from branchline.streaming.columns import OUTPUT
from branchline.streaming.event_limit import EventLimit
from branchline.streaming.failpoints import reach
from branchline.streaming.files import SparkFolder, read_text, write_text
from branchline.streaming.operator import RouterOperator
from branchline.streaming.out_topics import OutTopics, begin_generation, generation
from branchline.streaming.pacing import LATENCY_GOAL_MOST_MS, LATENCY_GOAL_MS, MOST_EVENTS, Pace, taken
from branchline.streaming.runs import begin_run, last_batch
from branchline.streaming.sink import SUMMARY, sink
from branchline.streaming.source import read_input, shard_labels, starting_offsets

MAX_SHARDS = 256
MAX_PARTS = 64


class Delivery(StrEnum):
    """How often a record comes to its topic."""

    AT_LEAST_ONCE = "at-least-once"
    """Repeats, after a failure, have the id of what they repeat."""
    EXACTLY_ONCE = "exactly-once"
    """For whoever reads committed records only."""


BatchObserver = Callable[[int, list[dict[str, Any]]], None]
"""Called on the driver after each batch with its number and what each shard counted and knows."""


@dataclass(frozen=True)
class RouterConfig:
    """What a router job is told."""

    cluster: Cluster
    checkpoint: str
    namespace: str = "branchline"
    brokers: tuple[str, ...] = ("main",)
    """Those that it serves; the first one gives the job its name."""
    shards: int = 2
    max_events_per_batch: int = MOST_EVENTS
    """Never more; how many it is is found out: see `pacing.py`."""
    topology: Topology | None = None
    """The one that the brokers begin with. None for the one that the checkpoint began with; in a new one,
    a broker alone begins with itself, and several wait until they are told of one."""
    cluster_name: str = "main"
    """What topologies call the Kafka cluster."""
    parts: int = 1
    """Parts of the Routing Tree, as many as the Tree Optimizer has; with others it is only less precise."""
    join: bool = False
    """In a new checkpoint, also a broker alone waits until it is told of a topology."""
    max_subscriptions: int = SUBSCRIPTIONS_PER_SUBSCRIBER
    """How many a subscriber may have."""
    out: OutTopics = field(default_factory=OutTopics)
    delivery: Delivery = Delivery.AT_LEAST_ONCE
    methods: Methods = field(default_factory=Methods)
    """How events are forwarded and matched; the state does not hang on it, so a later start may have others.
    Its parts are those above."""
    latency_goal_ms: int = LATENCY_GOAL_MS
    """How soon an event should be delivered, and a change be in force, while there is no backlog."""

    def __post_init__(self) -> None:
        for broker in self.brokers:
            check_name("broker", broker)
        check_name("cluster", self.cluster_name)
        if not 1 <= len(set(self.brokers)) == len(self.brokers):
            raise ConfigError(
                "no broker is named, or one is named twice", hint="name each broker once: --broker"
            )
        for name, value, most in (
            ("shards", self.shards, MAX_SHARDS),
            ("max_events_per_batch", self.max_events_per_batch, 10_000_000),
            ("latency_goal_ms", self.latency_goal_ms, LATENCY_GOAL_MOST_MS),
            ("parts", self.parts, MAX_PARTS),
            ("max_subscriptions", self.max_subscriptions, SUBSCRIPTIONS_PER_SUBSCRIBER),
        ):
            if not 1 <= value <= most:
                raise ConfigError(f"{name} is {value}", hint=f"use 1 to {most:,}")
        wrong = misfit(self.methods)
        if wrong is not None:
            raise ConfigError(wrong, hint="choose methods that fit together: docs/methods.md")
        self._check_topology()

    def _check_topology(self) -> None:
        if self.topology is None:
            return
        if self.join:
            raise ConfigError(
                "brokers that join an overlay are told of its topology",
                hint="give --join or --topology, not both",
            )
        wrong = fault(self.topology)
        if wrong is not None:
            raise ConfigError(f"this cannot be a topology: {wrong}", hint="correct it: docs/messages.md")
        members = [self.topology.member(broker) for broker in self.brokers]
        if not any(members):
            raise ConfigError(
                "none of the brokers to serve is in the topology",
                hint=f"name some of {', '.join(each.name for each in self.topology.members)}: --broker",
            )
        for member in members:
            if member is not None and member.cluster != self.cluster_name:
                raise ConfigError(
                    f"the topology has broker {member.name!r} on the cluster {member.cluster!r}, "
                    f"and this job is for {self.cluster_name!r}",
                    hint="check --cluster, or serve that broker there",
                )

    @property
    def name(self) -> str:
        """What the job is called, however many brokers are added to it."""
        return self.brokers[0]


def start_router(
    spark: SparkSession,
    config: RouterConfig,
    observe: BatchObserver | None = None,
    until_caught_up: bool = False,
) -> StreamingQuery:
    """Start the query. With `until_caught_up` it ends by itself when it has handled what is there now."""
    topics = Topics(config.namespace)
    ensure_topics(config.cluster, topics.of_brokers(config.brokers))
    folder = SparkFolder(spark, config.checkpoint)
    made = _made_for(spark, config, folder)
    run = (
        None
        if made.once_since is None
        else begin_run(
            config.cluster,
            folder,
            topics.markers(config.name),
            config.shards,
            made.once_since,
            made.seed is not None,
            config.checkpoint,
        )
    )
    ensure_topics(config.cluster, _neighbours_topics(topics, config.brokers, made.topology))
    job = Job(
        config.brokers,
        made.topology,
        config.cluster_name,
        replace(config.methods, parts=config.parts),
        max_subscriptions=config.max_subscriptions,
        remove_after_ms=config.out.remove_after_ms,
    )
    labels = shard_labels(spark, config.shards)
    pace = Pace(config.max_events_per_batch, config.latency_goal_ms / 1e3)
    limit = EventLimit(spark, pace.limit)
    rows = read_input(
        spark,
        config.cluster.java(),
        topics.control_pattern(config.brokers),
        topics.event_topics(config.brokers),
        labels,
        pace.limit,
        f"{config.namespace}.router",
        None
        if made.starts is None
        else starting_offsets(config.cluster, topics, config.brokers, made.starts),
    )
    decided = rows.groupBy("shard").transformWithStateInPandas(
        RouterOperator(
            config.namespace,
            job,
            labels,
            config.checkpoint,
            made.seed and _seed(spark, config, made.seed),
        ),
        outputStructType=OUTPUT,
        outputMode="Append",
        timeMode="None",
    )

    def run_batch(frame: DataFrame, batch: int) -> None:
        began_s = time.monotonic()
        turn = None if run is None else run.turn(batch)
        write = sink(config.cluster, config.namespace, config.out, generation(), turn)
        # One action only: a second one would run the operator again.
        summaries = [json.loads(row["summary"]) for row in frame.mapInArrow(write, SUMMARY).collect()]
        if run is not None:
            run.note(summaries)
        if any(summary["told"]["removed"] for summary in summaries):
            begin_generation()
        counts = [each for summary in summaries for each in summary["counts"]]
        limit.set(pace.after(taken(counts, time.monotonic() - began_s)))
        if observe is not None:
            observe(batch, [counts | each["told"] for each in summaries for counts in each["counts"]])
        reach("router.after-batch")

    writer = (
        decided.writeStream.queryName(f"{config.namespace}.router.{config.name}")
        .option("checkpointLocation", config.checkpoint)
        .foreachBatch(run_batch)
    )
    if until_caught_up:
        writer = writer.trigger(availableNow=True)
    # One task per shard; the query keeps the number that is set when it first starts.
    spark.conf.set("spark.sql.shuffle.partitions", str(config.shards))
    query = writer.start()
    limit.of(query)
    return query


def _neighbours_topics(
    topics: Topics, brokers: tuple[str, ...], topology: Topology | None
) -> dict[str, TopicKind]:
    """Where the brokers write to from the beginning. Later neighbours get theirs as they are told of."""
    neighbours = [each for broker in brokers for each in (topology.neighbours(broker) if topology else ())]
    return {topic: kind for each in neighbours for topic, kind in topics.of_neighbour(each).items()}


def _made_for(spark: SparkSession, config: RouterConfig, folder: SparkFolder) -> checkpoint.Made:
    """What the checkpoint is for, from now on. Refuses one that was made for something else."""
    ours = checkpoint.Made(
        config.namespace,
        config.cluster_name,
        config.shards,
        config.brokers,
        config.topology,
        state.LAYOUT_VERSION,
        on_tree=config.methods.on_tree,
        join=config.join,
    )
    path = f"{config.checkpoint.rstrip('/')}/{checkpoint.MADE_FILE}"
    found = read_text(spark, path)
    made = (
        checkpoint.begin(ours)
        if found is None
        else checkpoint.go_on(ours, checkpoint.load(found), config.checkpoint)
    )
    if config.delivery is Delivery.AT_LEAST_ONCE:
        made = replace(made, once_since=None)
    elif made.once_since is None:
        # A batch that was begun before is run again, and may repeat what it wrote then.
        made = replace(made, once_since=last_batch(folder, "offsets") + 1)
    if found is None and made.topology is not None:
        # Before the checkpoint is there: a start that fails in between does it again.
        record_first(config.cluster, Topics(config.namespace), made.topology)
    if made.dump() != found:
        write_text(spark, path, made.dump())
    return made


def _seed(spark: SparkSession, config: RouterConfig, name: str) -> str:
    """The name under which workers find what a rebuilt job begins with."""
    if name not in SparkFolder(spark, config.checkpoint).names():
        raise CheckpointDiffers(
            f"the checkpoint {config.checkpoint} was rebuilt, and its {name} is gone",
            hint=checkpoint.anew(config.checkpoint),
        )
    # Not in the operator itself: it is sent along with every task of every batch. Nor a broadcast, which is
    # not there when Spark asks the operator for its state variables.
    spark.sparkContext.addFile(f"{config.checkpoint.rstrip('/')}/{name}")
    return name
