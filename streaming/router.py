"""The router job: one streaming query from the control and event topics to everybody's topics.

The shape: two Kafka sources, a row per record with its shard, one stateful operator keyed by the shard,
and a sink that runs in the operator's own stage and writes to Kafka from the executors.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from branchline.kafka.admin import ensure_topics
from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import CheckpointDiffers, ConfigError
from branchline.kafka.topics import Topics, check_name
from branchline.streaming.columns import OUTPUT
from branchline.streaming.files import read_text, write_text
from branchline.streaming.operator import RouterOperator
from branchline.streaming.sink import SUMMARY, sink
from branchline.streaming.source import read_input, shard_labels

MAX_SHARDS = 256

BatchObserver = Callable[[int, list[dict[str, int]]], None]
"""Called on the driver after each batch with its number and what each shard counted."""


@dataclass(frozen=True)
class RouterConfig:
    """What a router job is told."""

    cluster: Cluster
    checkpoint: str
    namespace: str = "branchline"
    broker: str = "main"
    shards: int = 2
    max_events_per_batch: int = 20_000

    def __post_init__(self) -> None:
        check_name("broker", self.broker)
        for name, value, most in (
            ("shards", self.shards, MAX_SHARDS),
            ("max_events_per_batch", self.max_events_per_batch, 10_000_000),
        ):
            if not 1 <= value <= most:
                raise ConfigError(f"{name} is {value}", hint=f"use 1 to {most:,}")


def start_router(
    spark: SparkSession,
    config: RouterConfig,
    observe: BatchObserver | None = None,
    until_caught_up: bool = False,
) -> StreamingQuery:
    """Start the query. With `until_caught_up` it ends by itself when it has handled what is there now."""
    topics = Topics(config.namespace)
    ensure_topics(config.cluster, topics.of_broker(config.broker))
    _check_checkpoint(spark, config)
    labels = shard_labels(spark, config.shards)
    rows = read_input(
        spark,
        config.cluster.java(),
        topics.control_pattern(config.broker),
        topics.event_pattern(config.broker),
        labels,
        config.max_events_per_batch,
        f"{config.namespace}.router",
    )
    decided = rows.groupBy("shard").transformWithStateInPandas(
        RouterOperator(config.namespace, config.broker, labels),
        outputStructType=OUTPUT,
        outputMode="Append",
        timeMode="None",
    )
    write = sink(config.cluster, config.namespace)

    def run_batch(frame: DataFrame, batch: int) -> None:
        # One action only: a second one would run the operator again.
        summaries = frame.mapInArrow(write, SUMMARY).collect()
        if observe is not None:
            observe(batch, [json.loads(row["summary"]) for row in summaries])

    writer = (
        decided.writeStream.queryName(f"{config.namespace}.router.{config.broker}")
        .option("checkpointLocation", config.checkpoint)
        .foreachBatch(run_batch)
    )
    if until_caught_up:
        writer = writer.trigger(availableNow=True)
    # One task per shard; the query keeps the number that is set when it first starts.
    spark.conf.set("spark.sql.shuffle.partitions", str(config.shards))
    return writer.start()


def _check_checkpoint(spark: SparkSession, config: RouterConfig) -> None:
    """Refuse a checkpoint that was made for another namespace, broker or number of shards.

    Spark would take it and put rows where no state is: subscriptions would seem to be gone.
    """
    ours: dict[str, Any] = {
        "namespace": config.namespace,
        "broker": config.broker,
        "shards": config.shards,
    }
    path = f"{config.checkpoint.rstrip('/')}/branchline.json"
    found = read_text(spark, path)
    if found is None:
        write_text(spark, path, json.dumps(ours))
        return
    theirs = json.loads(found)
    for name, value in ours.items():
        if theirs.get(name) != value:
            raise CheckpointDiffers(
                f"the checkpoint {config.checkpoint} was made with {name} {theirs.get(name)!r}, "
                f"this job has {value!r}",
                hint=f"start it with the {name} it was made with, or give a new --checkpoint: the job then "
                "reads all topics from their beginning, and repeats deliveries with their old ids",
            )
