"""The router's input: two Kafka sources, one row shape, and the shard of every row, which SQL finds.

Control has a source of its own without a rate limit: a shared limit would be divided pro rata, and a
backlog of events would starve it. It is fanned out to every shard; an event goes to the shard of its key,
or of its source partition if it has none, in a bundle with others (`bundles.py`).
"""

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from branchline.kafka.admin import list_topics
from branchline.kafka.cluster import Cluster
from branchline.kafka.header_cells import NULL
from branchline.kafka.topics import OWN_CONTROL, Topics
from branchline.streaming.bundles import bundle
from branchline.streaming.columns import INPUT, Kind, batch_time_ms

EARLIEST = -2
"""In place of an offset: the first there is, as Spark writes it."""

SPARK_HASH_SEED = 42
"""What Spark's own partitioning starts its hash with."""

SOURCE_OPTIONS = {
    "startingOffsets": "earliest",
    "includeHeaders": "true",
    # An aborted transaction's records must never be routed.
    "kafka.isolation.level": "read_committed",
    # The default of 500 ms is what a partition with one fresh record would cost every batch.
    "kafka.fetch.max.wait.ms": "5",
    # Offsets that are gone are a loss: stop and say so, never step over them.
    "failOnDataLoss": "true",
}


def shard_labels(spark: SparkSession, shards: int) -> list[int]:
    """S integers, the i-th of which Spark hashes to partition i of S.

    The numbers 0 … S-1 themselves would share partitions: two shards in one task, another task idle.
    """
    jvm: Any = spark.sparkContext._jvm
    hasher = jvm.org.apache.spark.unsafe.hash.Murmur3_x86_32(SPARK_HASH_SEED)
    labels: dict[int, int] = {}
    for label in itertools.count():
        labels.setdefault(hasher.hashInt(label) % shards, label)
        if len(labels) == shards:
            return [labels[partition] for partition in range(shards)]
    raise AssertionError("unreachable: the count has no end")


def read_input(
    spark: SparkSession,
    client: Mapping[str, str],
    control_pattern: str,
    event_topics: Sequence[str],
    labels: Sequence[int],
    max_events_per_batch: int,
    group_prefix: str,
    starts: tuple[str, str] | None = None,
) -> DataFrame:
    """One streaming frame of control and events in the shape of `columns.INPUT`.

    `starts` are the offsets of both at which a query without a checkpoint begins.
    """

    def read(**options: str) -> DataFrame:
        everything = {**SOURCE_OPTIONS, "groupIdPrefix": group_prefix, **options}
        everything |= {f"kafka.{name}": value for name, value in client.items()}
        return spark.readStream.format("kafka").options(**everything).load()

    at = [{"startingOffsets": each} for each in starts] if starts is not None else [{}, {}]
    all_labels = sql.array(*(sql.lit(label) for label in labels))
    asked = read(subscribePattern=control_pattern, **at[0])
    control = _project(asked, Kind.CONTROL, sql.explode(all_labels))
    # Spark's hash of null is a number like any other, so the missing key must be asked for.
    placed = sql.when(sql.col("key").isNull(), sql.hash("topic", "partition")).otherwise(sql.hash("key"))
    shard = sql.element_at(all_labels, sql.pmod(placed, sql.lit(len(labels))) + 1)
    limit = {"maxOffsetsPerTrigger": str(max_events_per_batch)}
    # By name: for a pattern Kafka is asked for all topics there are, before each batch.
    published = read(subscribe=",".join(event_topics), **limit, **at[1])
    events = _project(published, Kind.EVENT, shard).mapInArrow(bundle, INPUT)
    return control.unionByName(events).select([field.name for field in INPUT])


def starting_offsets(
    cluster: Cluster, topics: Topics, brokers: tuple[str, ...], starts: Mapping[str, Mapping[str, int]]
) -> tuple[str, str]:
    """Where control and events are read from, for every partition that there is, as Spark wants it."""
    partitions = list_topics(cluster)

    def of(names: Sequence[str]) -> str:
        return json.dumps(
            {
                name: {
                    str(each): starts.get(name, {}).get(str(each), EARLIEST)
                    for each in range(partitions[name])
                }
                for name in names
            }
        )

    control = [*topics.control_topics(brokers), *topics.of_kind(OWN_CONTROL, partitions)]
    return of(control), of(topics.event_topics(brokers))


def _project(frame: DataFrame, kind: Kind, shard: Column) -> DataFrame:
    return frame.select(
        shard.alias("shard"),
        sql.lit(int(kind)).cast("byte").alias("kind"),
        "topic",
        "partition",
        "offset",
        sql.unix_millis("timestamp").alias("timestamp_ms"),
        "key",
        "value",
        packed_headers(sql.col("headers")).alias("headers"),
        batch_time_ms().alias("now_ms"),
    )


def packed_headers(headers: Column) -> Column:
    """A record's headers as one cell, as `kafka/header_cells.py` has it.

    By way of hexadecimal text, which Spark can join: adding one to another would take the square of the time.
    """

    def sized(content: Column) -> Column:
        return sql.concat(sql.lpad(sql.hex(sql.octet_length(content)), 8, "0"), sql.hex(content))

    def packed(header: Column) -> Column:
        value = sql.coalesce(sized(header["value"]), sql.lit(f"{NULL:X}"))
        return sql.concat(sized(header["key"]), value)

    return sql.coalesce(sql.unhex(sql.array_join(sql.transform(headers, packed), "")), sql.lit(b""))
