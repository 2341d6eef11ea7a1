"""A running query takes as many events as it is told."""

from pathlib import Path
from threading import Event

import pytest
from pyspark.sql import DataFrame, SparkSession

from branchline.kafka.admin import create_topics
from branchline.kafka.cluster import Cluster
from branchline.kafka.topics import CONTROL, ENTRY
from branchline.streaming.event_limit import EventLimit
from branchline.streaming.source import SOURCE_OPTIONS

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


def test_a_running_query_is_told_of_another_limit(
    spark: SparkSession, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    """From the next batch on, up and down; a source without a limit goes on without one."""
    limited, free = f"{namespace}.limited", f"{namespace}.free"
    create_topics(cluster, {limited: ENTRY, free: CONTROL})
    producer = cluster.producer(linger_ms=5)

    def write(topic: str, count: int) -> None:
        for number in range(count):
            producer.produce(topic, b"%d" % number, b"%d" % number)
        producer.flush(30)

    write(limited, 1_000)
    taken: list[tuple[int, int]] = []
    limit = EventLimit(spark, 100)
    is_told = Event()
    limits = iter((400, 50, 10_000, 10_000))

    def batch(frame: DataFrame, number: int) -> None:
        rows = [row["topic"] for row in frame.select("topic").collect()]
        taken.append((rows.count(limited), rows.count(free)))
        if number == 1:
            write(free, 700)
        assert is_told.wait(60)
        limit.set(next(limits))

    options = {**SOURCE_OPTIONS, **{f"kafka.{name}": value for name, value in cluster.java().items()}}
    source = spark.readStream.format("kafka").options(**options)
    rows = source.option("subscribe", limited).option("maxOffsetsPerTrigger", "100").load()
    query = (
        rows.union(source.option("subscribe", free).load())
        .writeStream.option("checkpointLocation", str(tmp_path))
        .foreachBatch(batch)
    )
    running = query.start()
    try:
        limit.of(running)
        is_told.set()
        running.processAllAvailable()
    finally:
        running.stop()
    assert limit.rows == 10_000
    events = [events for events, _ in taken]
    assert sum(events) == 1_000 and sum(others for _, others in taken) == 700
    bounds = ((90, 100), (350, 400), (40, 50), (450, 520))
    assert all(least <= count <= most for count, (least, most) in zip(events, bounds, strict=True))


def test_a_spark_that_is_not_as_we_know_it_keeps_its_limit(spark: SparkSession) -> None:
    """Nothing fails; the limit is the one that the query was started with."""

    class Other:
        _jsq = spark.sparkContext._jvm.java.lang.Object()  # type: ignore[union-attr]

    limit = EventLimit(spark, 100)
    limit.of(Other())  # type: ignore[arg-type]
    limit.set(400)
    limit.set(500)
    assert limit.rows == 100
