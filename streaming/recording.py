"""Making the archives of classes from which Kafka and Spark start in half the time.

Both run for a moment, as they will: a router delivers an event, and a Tree Optimizer hears of a filter. What
their Javas have loaded by then is written down when they end. Why that is worth it is in
`kafka/class_archives.py`.
"""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from branchline.kafka.class_archives import class_archive
from branchline.kafka.cluster import Cluster
from branchline.kafka.embedded import RECORD_DEADLINE_S, EmbeddedKafka
from branchline.kafka.errors import BranchlineError
from branchline.kafka.jars import Jars
from branchline.kafka.java import find_java
from branchline.kafka.messages import encode_request
from branchline.kafka.topics import Topics
from branchline.routing.control import Operation, Request
from branchline.streaming.optimizer import OptimizerConfig, start_optimizer
from branchline.streaming.router import Delivery, RouterConfig, start_router
from branchline.streaming.session import create_session, spark_archive, stop_session

CAUGHT_UP_S = 180
BROKER = "main"


def record_once(jars: Jars, report: Callable[[str], None]) -> bool:
    """Make the archives, unless they are there; whether there was anything to do.

    What goes wrong is only told: without them everything is the same, if later.
    """
    archives = class_archive("kafka", jars.kafka), spark_archive(jars.spark)
    if all(each.is_there() for each in archives):
        return False
    report("noting which classes Kafka and Spark load, once for each version: up to a minute")
    try:
        with tempfile.TemporaryDirectory(prefix="branchline-recording-") as folder:
            _run_both(jars, Path(folder))
    except BranchlineError as error:
        report(f"that did not work, so they will take longer to start: {error}")
    for archive in archives:
        if not archive.keep():
            report(f"Java has not written {archive.file}, so starts will take longer")
    return True


def _run_both(jars: Jars, folder: Path) -> None:
    kafka_archive, archive = class_archive("kafka", jars.kafka), spark_archive(jars.spark)
    with EmbeddedKafka(folder / "kafka", jars, find_java(), record=kafka_archive) as kafka:
        spark = create_session(jars.spark, folder / "spark.log", "local[2]", record=archive)
        try:
            _deliver(spark, Cluster(kafka.bootstrap), folder)
        finally:
            stop_session(spark, RECORD_DEADLINE_S)


def _deliver(spark: SparkSession, cluster: Cluster, folder: Path) -> None:
    """Both jobs at work; in a second batch the router finds a state, and delivers."""
    topics = Topics()
    request = Request(Operation.SUBSCRIBE, "somebody", "main", home=BROKER, filter="a = 1 AND b > 2")
    router = RouterConfig(cluster, str(folder / "router"), brokers=(BROKER,), delivery=Delivery.EXACTLY_ONCE)
    producer = cluster.producer(linger_ms=0)
    query = start_router(spark, router)
    producer.produce(topics.control, encode_request(request))
    producer.flush(CAUGHT_UP_S)
    query.processAllAvailable()
    producer.produce(topics.entry(BROKER), json.dumps({"a": 1, "b": 3}).encode(), b"key")
    producer.flush(CAUGHT_UP_S)
    query.processAllAvailable()
    optimizer = start_optimizer(spark, OptimizerConfig(cluster, str(folder / "optimizer")))
    optimizer.processAllAvailable()
    optimizer.stop()
    query.stop()
