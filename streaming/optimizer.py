"""The Tree Optimizer job: one streaming query from `filters` to `rt-updates`.

A stateful operator keyed by the part of the tree; every part is told of every change and keeps the filters
that are its own. Each part has a partition of `rt-updates`, so what is told of it stays in order. A batch
that is run again tells the same again, which brokers know already.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaError, Message
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming.query import StreamingQuery

from branchline.kafka.admin import ensure_topics, grow_topic
from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import CheckpointDiffers, ConfigError
from branchline.kafka.reading import read_to_end
from branchline.kafka.topics import FILTERS, RT_UPDATES, STATS, Topics
from branchline.routing.prefix import telling
from branchline.routing.prefix.optimizer import Settings
from branchline.streaming.columns import batch_time_ms
from branchline.streaming.files import read_text, write_text
from branchline.streaming.router import MAX_PARTS
from branchline.streaming.sink import SUMMARY
from branchline.streaming.source import SOURCE_OPTIONS, shard_labels
from branchline.streaming.trees import OUTPUT, OptimizerOperator
from branchline.streaming.writing import FLUSH_TIMEOUT_S, SinkFailed

MAX_CHANGES_PER_BATCH = 20_000
LOOK_EVERY = "500 milliseconds"
LAST_TOLD = 50
"""Records at the end of `rt-updates`, in each partition, that an optimizer without a checkpoint looks at."""

PartsObserver = Callable[[int, list[dict[str, Any]]], None]
"""Called on the driver after each batch with its number and what each part tells of itself."""


@dataclass(frozen=True)
class OptimizerConfig:
    """What a Tree Optimizer job is told."""

    cluster: Cluster
    checkpoint: str
    namespace: str = "branchline"
    settings: Settings = field(default_factory=Settings)

    def __post_init__(self) -> None:
        settings = self.settings
        for name, value, least, most in (
            ("parts", settings.parts, 1, MAX_PARTS),
            ("threshold", settings.threshold, 0, 1),
            ("limit", settings.limit_ms, 0, None),
            ("snapshot interval", settings.snapshot_ms, 1, None),
        ):
            if value is not None and (value < least or (most is not None and value > most)):
                span = f"{least} or more" if most is None else f"{least} to {most}"
                raise ConfigError(f"the tree's {name} is {value}", hint=f"use {span}")


def start_optimizer(
    spark: SparkSession, config: OptimizerConfig, observe: PartsObserver | None = None
) -> StreamingQuery:
    """Start the query."""
    topics, parts = Topics(config.namespace), config.settings.parts
    ensure_topics(
        config.cluster, {topics.filters: FILTERS, topics.rt_updates: RT_UPDATES, topics.stats: STATS}
    )
    grow_topic(config.cluster, topics.rt_updates, parts)
    # Settings of a query of its own, that the router beside it does not see.
    spark = spark.newSession()
    floor = _highest_incarnation(spark, config)
    labels = shard_labels(spark, parts)
    told = (
        _read(spark, config, topics, labels)
        .groupBy("part")
        .transformWithStateInPandas(
            OptimizerOperator(config.settings, labels, floor),
            outputStructType=OUTPUT,
            outputMode="Append",
            timeMode="None",
        )
    )
    write = _sink(config.cluster, topics.rt_updates)

    def run_batch(frame: DataFrame, batch: int) -> None:
        summaries = frame.mapInArrow(write, SUMMARY).collect()
        if observe is not None:
            observe(batch, [json.loads(row["summary"]) for row in summaries])

    spark.conf.set("spark.sql.shuffle.partitions", str(parts))
    return (
        told.writeStream.queryName(f"{config.namespace}.optimizer")
        .option("checkpointLocation", config.checkpoint)
        # Nobody waits for a tree: several changes are one update, and an idle job asks Kafka less often.
        .trigger(processingTime=LOOK_EVERY)
        .foreachBatch(run_batch)
        .start()
    )


def _read(spark: SparkSession, config: OptimizerConfig, topics: Topics, labels: list[int]) -> DataFrame:
    """Every record of `filters`, for every part."""
    options = {
        **SOURCE_OPTIONS,
        "subscribe": topics.filters,
        "maxOffsetsPerTrigger": str(MAX_CHANGES_PER_BATCH),
        "groupIdPrefix": f"{config.namespace}.optimizer",
        # Compaction takes away what later records have replaced; nothing is missed by that.
        "failOnDataLoss": "false",
        **{f"kafka.{name}": value for name, value in config.cluster.java().items()},
    }
    return (
        spark.readStream.format("kafka")
        .options(**options)
        .load()
        .select(
            sql.explode(sql.array(*map(sql.lit, labels))).alias("part"),
            "offset",
            "key",
            "value",
            batch_time_ms().alias("now_ms"),
        )
    )


def _highest_incarnation(spark: SparkSession, config: OptimizerConfig) -> int:
    """The highest life that brokers may have heard of when the checkpoint was made: a new one is above it."""
    path = f"{config.checkpoint.rstrip('/')}/branchline.json"
    ours = {"namespace": config.namespace, "parts": config.settings.parts}
    found = read_text(spark, path)
    if found is None:
        topic = Topics(config.namespace).rt_updates
        records = read_to_end(config.cluster, topic, hint="", last=LAST_TOLD)
        told = [telling.decode(record.value or b"") for record in records]
        highest = max((each.version.incarnation for each in told if each is not None), default=0)
        write_text(spark, path, json.dumps({**ours, "above": highest}))
        return highest
    theirs = json.loads(found)
    for name, now in ours.items():
        if theirs.get(name) != now:
            raise CheckpointDiffers(
                f"the checkpoint {config.checkpoint} was made with {name} {theirs.get(name)!r}, "
                f"this job has {now!r}",
                hint=f"start it with the {name} it was made with, or delete it: nothing is lost, the Tree "
                "Optimizer then begins anew",
            )
    return int(theirs["above"])


def _sink(cluster: Cluster, topic: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`: writes what is told of a part to the part's partition."""

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        producer = cluster.producer(linger_ms=5, message_timeout_ms=120_000)
        failures: list[str] = []
        summaries: list[str] = []

        def report(error: KafkaError | None, message: Message | None) -> None:
            if error is not None:
                failures.append(error.str())

        for batch in batches:
            for part, value in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                if part < 0:
                    summaries.append(value.decode())
                else:
                    producer.produce(topic, value, partition=part, on_delivery=report)
                    producer.poll(0)
        left = producer.flush(FLUSH_TIMEOUT_S)
        if failures or left:
            raise SinkFailed(f"Kafka did not take what was told of the tree: {failures or left}")
        yield pa.RecordBatch.from_pydict({"summary": summaries}, pa.schema([("summary", pa.string())]))

    return write
