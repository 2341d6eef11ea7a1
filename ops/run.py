"""`up` and `router`: the processes that run until they are told to stop."""

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import click

from branchline.kafka.cluster import Cluster
from branchline.kafka.embedded import EmbeddedKafka
from branchline.kafka.errors import JobFailed, KafkaFailed
from branchline.kafka.home import Home
from branchline.kafka.jars import Jars, ensure_jars
from branchline.kafka.java import find_java
from branchline.ops.output import emit, say
from branchline.ops.running import claim
from branchline.ops.settings import (
    BROKER,
    CHECKPOINT,
    MASTER,
    MAX_EVENTS,
    SHARDS,
    cluster_options,
    find_cluster,
    json_option,
    make_topics,
    option,
)

Report = Callable[[str], None]

KAFKA_CHECK_EVERY_S = 1.0
EXIT_TERMINATED = 128 + signal.SIGTERM


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


@click.command(short_help="Start Kafka and the router on this machine.")
@cluster_options
@job_options
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    help="The embedded Kafka's port. Default: the last one, or a free one.",
)
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help="The embedded Kafka's data folder. Default: in the home folder.",
)
def up(
    bootstrap: str | None,
    client_properties: str | None,
    port: int | None,
    data: Path | None,
    as_json: bool,
    **job: Any,
) -> None:
    """Start everything on this machine: Kafka and the router. Ctrl-C stops all of it.

    With --bootstrap, only the router is started, against that cluster.

    \b
    Examples:
      branchline up
      branchline up --bootstrap kafka-1:9092 --client-properties client.properties
    """
    report = reporter(as_json)
    home = Home.default()
    _check(job)
    with contextlib.ExitStack() as stack:
        stack.enter_context(unwound_by_sigterm())
        if bootstrap is not None:
            cluster, kafka = find_cluster(bootstrap, client_properties), None
            jars = prepare(home, report)
        else:
            announce = stack.enter_context(claim(home))
            jars = prepare(home, report)
            kafka = start_kafka(stack, jars, report, data or home.kafka, home.make(home.logs), port)
            cluster = Cluster(kafka.bootstrap)
            announce(kafka.bootstrap)
            report('next, in another terminal: branchline subscribe alice "price < 100"')
            report("Ctrl-C here stops all of it")
        run_router(stack, home, jars, cluster, report, home.logs / "spark.log", kafka, **job)


@click.command(short_help="Run the router against a Kafka cluster.")
@cluster_options
@job_options
def router(bootstrap: str | None, client_properties: str | None, as_json: bool, **job: Any) -> None:
    """Run the router job against a Kafka cluster until Ctrl-C.

    \b
    Examples:
      branchline router --bootstrap localhost:9092
      branchline router --bootstrap localhost:9092 --shards 4 --checkpoint /var/lib/branchline
    """
    report = reporter(as_json)
    home = Home.default()
    _check(job)
    cluster = find_cluster(bootstrap, client_properties)
    with contextlib.ExitStack() as stack:
        stack.enter_context(unwound_by_sigterm())
        # Not the log of `up`, which may run beside it.
        log = home.make(home.logs) / f"spark-{job['namespace']}-{job['broker']}.log"
        run_router(stack, home, prepare(home, report), cluster, report, log, None, **job)


def reporter(as_json: bool) -> Report:
    """How progress is told: in lines for people, or in JSON."""
    return (lambda message: emit({"message": message})) if as_json else say


def prepare(home: Home, report: Report) -> Jars:
    """Java and the jars, or an error that says what is missing."""
    java = find_java()
    jars = ensure_jars(home, report)
    report(f"java: {java.version}")
    return jars


def start_kafka(
    stack: contextlib.ExitStack,
    jars: Jars,
    report: Report,
    data: Path,
    logs: Path,
    port: int | None = None,
    log_name: str = "kafka.log",
) -> EmbeddedKafka:
    """An embedded Kafka that is stopped with the stack."""
    report("kafka: starting")
    kafka = EmbeddedKafka(data, jars, find_java(), port, logs / log_name)
    stack.enter_context(kafka)
    stack.callback(report, "kafka: stopping")
    report(f"kafka: running at {kafka.bootstrap}, data in {kafka.data_dir}, log {kafka.log_file}")
    return kafka


def run_router(
    stack: contextlib.ExitStack,
    home: Home,
    jars: Jars,
    cluster: Cluster,
    report: Report,
    log: Path,
    kafka: EmbeddedKafka | None,
    namespace: str,
    broker: str,
    shards: int,
    max_events_per_batch: int,
    checkpoint: str | None,
    master: str,
) -> None:
    """Run the router job in this process until it is told to stop, or its own Kafka has ended."""
    from branchline.ops import job
    from branchline.streaming.job import RouterJob
    from branchline.streaming.router import RouterConfig

    place = checkpoint or job.default_checkpoint(home, cluster, namespace, broker)
    config = RouterConfig(cluster, place, namespace, broker, shards, max_events_per_batch)
    spark = job.start_spark(stack, jars, report, master, place, log)
    with stopped_by_signals() as stop, _ended_without(kafka, lambda: job.kill_spark(spark)):
        RouterJob(spark, config, report, log).run(stop)


def _check(job: dict[str, Any]) -> None:
    """Refuse what is wrong before anything is started."""
    from branchline.ops.job import check_config

    make_topics(job["namespace"])
    check_config(job["namespace"], job["broker"], job["shards"], job["max_events_per_batch"])


@contextlib.contextmanager
def _ended_without(kafka: EmbeddedKafka | None, end: Callable[[], None]) -> Iterator[None]:
    """Call `end` if our own Kafka ends, and raise: the router would wait for it for ever."""
    if kafka is None:
        yield
        return
    left, lost = Event(), Event()

    def watch() -> None:
        while not left.wait(KAFKA_CHECK_EVERY_S):
            if not kafka.is_running():
                lost.set()
                end()
                return

    watcher = threading.Thread(target=watch, name="kafka-watch")
    watcher.start()
    try:
        yield
    except JobFailed:
        if not lost.is_set():
            raise
    finally:
        left.set()
        watcher.join()
    if lost.is_set():
        raise KafkaFailed("Kafka has ended unexpectedly", hint="start again", log=kafka.log_file)


@contextlib.contextmanager
def unwound_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end a start in order: by default Python would drop everything where it is."""

    def leave(number: int, frame: Any) -> None:
        sys.exit(EXIT_TERMINATED)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


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
