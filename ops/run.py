"""`up` and `router`: the processes that run until they are told to stop."""

import contextlib
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import click
from pyspark.sql import SparkSession

from branchline.kafka.admin import cluster_id
from branchline.kafka.cluster import Cluster
from branchline.kafka.embedded import EmbeddedKafka
from branchline.kafka.home import Home
from branchline.kafka.jars import Jars, ensure_jars
from branchline.kafka.java import find_java
from branchline.ops.output import emit, say
from branchline.ops.settings import (
    BROKER,
    CHECKPOINT,
    MASTER,
    MAX_EVENTS,
    SHARDS,
    announce,
    cluster_options,
    find_cluster,
    json_option,
    make_topics,
    option,
)
from branchline.streaming.job import RouterJob
from branchline.streaming.router import RouterConfig
from branchline.streaming.session import create_session, is_local_path, stop_session

Report = Callable[[str], None]


def job_options(command: Any) -> Any:
    """The options of a router job."""
    for setting, kind in (
        (MASTER, None),
        (CHECKPOINT, None),
        (MAX_EVENTS, int),
        (SHARDS, int),
        (BROKER, None),
    ):
        command = option(setting, kind)(command)
    return json_option(command)


@click.command()
@cluster_options
@job_options
@click.option("--port", type=int, help="The embedded Kafka's port. Default: the last one, or a free one.")
@click.option("--data", type=click.Path(path_type=Path), help="The embedded Kafka's data folder.")
def up(
    bootstrap: str | None,
    client_properties: str | None,
    port: int | None,
    data: Path | None,
    as_json: bool,
    **job: Any,
) -> None:
    """Start everything on this machine: Kafka and the router. Ctrl-C stops all of it.

    With --bootstrap, only the jobs are started, against that cluster.

    \b
    Examples:
      branchline up
      branchline up --bootstrap kafka-1:9092 --client-properties client.properties
    """
    report = _reporter(as_json)
    home = Home.default()
    with contextlib.ExitStack() as stack:
        jars = prepare(home, report)
        if bootstrap is None:
            kafka = start_kafka(stack, home, jars, report, data or home.kafka, port)
            cluster = Cluster(kafka.bootstrap)
            stack.callback(announce(home, kafka.bootstrap).unlink, missing_ok=True)
        else:
            cluster = find_cluster(bootstrap, client_properties)
        run_router(stack, home, jars, cluster, report, **job)


@click.command()
@cluster_options
@job_options
def router(bootstrap: str | None, client_properties: str | None, as_json: bool, **job: Any) -> None:
    """Run the router job against a Kafka cluster until Ctrl-C.

    \b
    Examples:
      branchline router --bootstrap localhost:9092
      branchline router --bootstrap localhost:9092 --shards 4 --checkpoint /var/lib/branchline
    """
    report = _reporter(as_json)
    home = Home.default()
    cluster = find_cluster(bootstrap, client_properties)
    with contextlib.ExitStack() as stack:
        run_router(stack, home, prepare(home, report), cluster, report, **job)


def _reporter(as_json: bool) -> Report:
    return (lambda message: emit({"message": message})) if as_json else say


def prepare(home: Home, report: Report) -> Jars:
    """Java and the jars, or an error that says what is missing."""
    java = find_java()
    jars = ensure_jars(home, report)
    report(f"java: {java.version}")
    return jars


def start_kafka(
    stack: contextlib.ExitStack, home: Home, jars: Jars, report: Report, data: Path, port: int | None = None
) -> EmbeddedKafka:
    """An embedded Kafka that is stopped with the stack."""
    report("kafka: starting")
    kafka = EmbeddedKafka(data, jars, find_java(), port, home.make(home.logs) / "kafka.log")
    stack.enter_context(kafka)
    stack.callback(report, "kafka: stopping")
    report(f"kafka: running at {kafka.bootstrap}, data in {kafka.data_dir}, log {kafka.log_file}")
    return kafka


def start_spark(
    stack: contextlib.ExitStack, home: Home, jars: Jars, report: Report, master: str, checkpoint: str
) -> SparkSession:
    """A Spark session that is stopped with the stack."""
    log = home.make(home.logs) / "spark.log"
    report(f"spark: starting ({master}), log {log}")
    spark = create_session(jars.spark, log, master, local_checkpoint=is_local_path(checkpoint))
    stack.callback(stop_session, spark)
    stack.callback(report, "spark: stopping")
    return spark


def run_router(
    stack: contextlib.ExitStack,
    home: Home,
    jars: Jars,
    cluster: Cluster,
    report: Report,
    namespace: str,
    broker: str,
    shards: int,
    max_events_per_batch: int,
    checkpoint: str | None,
    master: str,
) -> None:
    """Run the router job in this process until it is told to stop."""
    make_topics(namespace)  # refuses a bad namespace before anything is started
    place = checkpoint or default_checkpoint(home, cluster, namespace, broker)
    config = RouterConfig(cluster, place, namespace, broker, shards, max_events_per_batch)
    spark = start_spark(stack, home, jars, report, master, place)
    with stopped_by_signals() as stop:
        RouterJob(spark, config, report).run(stop)


def default_checkpoint(home: Home, cluster: Cluster, namespace: str, broker: str) -> str:
    """A folder of its own for every cluster: a checkpoint means nothing to another one."""
    return str(home.checkpoints / cluster_id(cluster) / namespace / broker)


@contextlib.contextmanager
def stopped_by_signals() -> Iterator[Event]:
    """An event that Ctrl-C and SIGTERM set; a second Ctrl-C interrupts at once."""
    stop = Event()

    def handle(number: int, frame: Any) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        say("stopping; once more to stop at once")
        stop.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
