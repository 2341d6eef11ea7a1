"""A Kafka and a Spark of their own, for measuring a pipeline; gone afterwards, with all they kept."""

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from branchline.kafka.cluster import Cluster
from branchline.kafka.embedded import EmbeddedKafka
from branchline.kafka.home import Home
from branchline.kafka.jars import Jars
from branchline.kafka.java import find_java
from branchline.ops.job import start_spark
from branchline.ops.output import say
from branchline.ops.run import prepare, unwound_by_sigterm
from branchline.ops.spark_options import SparkChoice

CORES = 2
"""Spark's, as many as the peers have threads."""
KAFKA_HEAP_MB = 1_024
"""Thousands of topics, written to by several: the embedded Kafka's own default is for trying out."""


@dataclass(frozen=True, slots=True)
class Started:
    spark: SparkSession
    cluster: Cluster
    folder: Path
    jars: Jars


@contextlib.contextmanager
def started() -> Iterator[Started]:
    """Both, until the end of the block."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(unwound_by_sigterm())
        jars = prepare(Home.default(), say)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="branchline-bench-")))
        say("kafka: starting")
        kafka = EmbeddedKafka(
            folder / "kafka", jars, find_java(), log_file=folder / "kafka.log", heap_mb=KAFKA_HEAP_MB
        )
        stack.enter_context(kafka)
        choice = SparkChoice(f"local[{CORES}]")
        spark = start_spark(stack, jars, say, choice, str(folder / "checkpoint"), folder / "spark.log")
        yield Started(spark, Cluster(kafka.bootstrap), folder, jars)
