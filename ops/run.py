"""`up`, `router` and `optimizer`: the processes that run until they are told to stop."""

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import click

from branchline.kafka.cluster import Cluster
from branchline.kafka.embedded import EmbeddedKafka
from branchline.kafka.errors import ConfigError, JobFailed, KafkaFailed
from branchline.kafka.home import Home
from branchline.kafka.jars import Jars, ensure_jars
from branchline.kafka.java import find_java
from branchline.kafka.topics import Topics, check_name
from branchline.ops.durations import duration_ms
from branchline.ops.methods import Chosen, agreed_methods, change_option, chosen_methods, method_options
from branchline.ops.optimizer import beside, default_checkpoint, optimizer_config, tree_options
from branchline.ops.output import emit, say
from branchline.ops.overlay import SMALL_MOST, read_topology, small_overlay
from branchline.ops.running import claim
from branchline.ops.settings import (
    BROKER,
    CHECKPOINT,
    CLUSTER,
    DELIVERY,
    LATENCY_GOAL,
    MAX_EVENTS,
    MAX_SUBSCRIPTIONS,
    OUT_PARTITIONS,
    OUT_REPLICATION,
    OUT_RETENTION,
    PARTS,
    REMOVE_AFTER,
    SHARDS,
    TOPOLOGY,
    cluster_options,
    find_cluster,
    json_option,
    make_topics,
    option,
)
from branchline.ops.spark_options import SparkChoice, spark_choice, spark_options
from branchline.routing.overlay.topology import Topology

if TYPE_CHECKING:  # they import Spark, which takes a second
    from branchline.streaming.optimizer import OptimizerConfig
    from branchline.streaming.router import RouterConfig

Report = Callable[[str], None]

KAFKA_CHECK_EVERY_S = 1.0
EXIT_TERMINATED = 128 + signal.SIGTERM


def job_options(command: Any) -> Any:
    """The options of a router job."""
    for setting, kind in (
        (CHECKPOINT, None),
        (DELIVERY, click.Choice(["at-least-once", "exactly-once"])),
        (PARTS, int),
        (REMOVE_AFTER, duration_ms),
        (OUT_RETENTION, duration_ms),
        (OUT_REPLICATION, int),
        (OUT_PARTITIONS, int),
        (MAX_SUBSCRIPTIONS, int),
        (LATENCY_GOAL, duration_ms),
        (MAX_EVENTS, int),
        (SHARDS, int),
        (CLUSTER, None),
        (TOPOLOGY, click.Path(path_type=Path)),
    ):
        command = option(setting, kind)(command)
    served = click.option(
        BROKER.option,
        "brokers",
        envvar=BROKER.variable,
        multiple=True,
        help=f"A broker to serve; may be repeated. Default: {BROKER.default}.  [{BROKER.variable}]",
    )
    return json_option(spark_options(served(method_options(change_option(command)))))


@click.command(short_help="Start Kafka, the router and the Tree Optimizer on this machine.")
@cluster_options
@job_options
@tree_options
@click.option(
    "--brokers",
    "count",
    type=click.IntRange(1, SMALL_MOST),
    help="Serve so many brokers, for trying out: main, b2, b3, ..., linked as a balanced tree.",
)
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
    count: int | None,
    port: int | None,
    data: Path | None,
    as_json: bool,
    master: str,
    spark_conf: tuple[str, ...],
    threshold: float,
    limit: int,
    snapshot_every: int,
    forwarding: str | None,
    matching: str | None,
    dissemination: str | None,
    optimise: str | None,
    change_methods: bool,
    **job: Any,
) -> None:
    """Start everything on this machine: Kafka, the router and the Tree Optimizer. Ctrl-C stops all of it.

    With --bootstrap, only the jobs are started, against that cluster.

    \b
    Examples:
      branchline up
      branchline up --brokers 4
      branchline up --forwarding rematch --matching table
      branchline up --bootstrap kafka-1:9092 --client-properties client.properties
    """
    report = reporter(as_json)
    home = Home.default()
    if count is not None:
        job |= _small(count, **job)
    config = _config(**job)
    chosen = Chosen(chosen_methods(forwarding, matching, dissemination, optimise), change_methods)
    choice = spark_choice(master, spark_conf)
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
            at = f" --home {config.name}" if len(config.brokers) > 1 else ""
            report(f'next, in another terminal: branchline subscribe alice "price < 100"{at}')
            report("Ctrl-C here stops all of it")
        config = replace(config, cluster=cluster)
        place = default_checkpoint(home, cluster, config.namespace)
        if job["checkpoint"] is not None:
            place = f"{job['checkpoint'].rstrip('/')}-trees"
        trees = optimizer_config(
            cluster, config.namespace, place, config.parts, threshold, limit, snapshot_every
        )
        run_router(stack, home, jars, config, report, home.logs / "spark.log", kafka, choice, chosen, trees)


@click.command(short_help="Run the router against a Kafka cluster.")
@cluster_options
@job_options
@click.option("--join", is_flag=True, help="Wait to be told of a topology: for brokers that join an overlay.")
def router(
    bootstrap: str | None,
    client_properties: str | None,
    as_json: bool,
    master: str,
    spark_conf: tuple[str, ...],
    forwarding: str | None,
    matching: str | None,
    dissemination: str | None,
    optimise: str | None,
    change_methods: bool,
    **job: Any,
) -> None:
    """Run the router job against a Kafka cluster until Ctrl-C.

    \b
    Examples:
      branchline router --bootstrap localhost:9092
      branchline router --bootstrap localhost:9092 --shards 4 --checkpoint /var/lib/branchline
      branchline router --broker dublin --broker virginia --topology overlay.toml
      branchline router --broker lisbon --join
      branchline router --delivery exactly-once
      branchline router --forwarding rematch --change-methods
      branchline router --master spark://master:7077 --checkpoint hdfs://namenode/branchline
    """
    report = reporter(as_json)
    home = Home.default()
    config = _config(**job)
    chosen = Chosen(chosen_methods(forwarding, matching, dissemination, optimise), change_methods)
    choice = spark_choice(master, spark_conf)
    config = replace(config, cluster=find_cluster(bootstrap, client_properties))
    with contextlib.ExitStack() as stack:
        stack.enter_context(unwound_by_sigterm())
        # Not the log of `up`, which may run beside it.
        log = home.make(home.logs) / f"spark-{config.namespace}-{config.name}.log"
        run_router(stack, home, prepare(home, report), config, report, log, None, choice, chosen)


@click.command(short_help="Run the Tree Optimizer against a Kafka cluster.")
@cluster_options
@option(PARTS, int)
@tree_options
@option(CHECKPOINT)
@spark_options
@json_option
def optimizer(
    bootstrap: str | None,
    client_properties: str | None,
    namespace: str,
    parts: int,
    threshold: float,
    limit: int,
    snapshot_every: int,
    checkpoint: str | None,
    master: str,
    spark_conf: tuple[str, ...],
    as_json: bool,
) -> None:
    """Run the Tree Optimizer against a Kafka cluster until Ctrl-C.

    One is enough for an overlay, beside any of its clusters; bridges carry what it tells. Without it, or
    while it is down, everybody still gets what they are owed, and trees only get less precise. A router needs
    the same --parts.

    \b
    Examples:
      branchline optimizer --bootstrap localhost:9092
      branchline optimizer --bootstrap localhost:9092 --threshold 0.1 --limit 10s
    """
    from branchline.ops import job
    from branchline.streaming.job import OptimizerJob

    report = reporter(as_json)
    home = Home.default()
    choice = spark_choice(master, spark_conf)
    config = optimizer_config(
        Cluster(""), namespace, checkpoint or "", parts, threshold, limit, snapshot_every
    )
    cluster = find_cluster(bootstrap, client_properties)
    place = config.checkpoint or default_checkpoint(home, cluster, namespace)
    config = replace(config, cluster=cluster, checkpoint=place)
    with contextlib.ExitStack() as stack:
        stack.enter_context(unwound_by_sigterm())
        log = home.make(home.logs) / f"spark-{namespace}-optimizer.log"
        spark = job.start_spark(stack, prepare(home, report), report, choice, place, log, cluster)
        with stopped_by_signals() as stop:
            OptimizerJob(spark, config, report, log).run(stop)


def reporter(as_json: bool) -> Report:
    """How progress is told: in lines for people, or in JSON."""
    return (lambda message: emit({"message": message})) if as_json else say


def prepare(home: Home, report: Report) -> Jars:
    """Java, the jars and the compiled loops, or an error that says what is missing."""
    from branchline.streaming.warming import warm_once  # it imports numba, which takes a second

    java = find_java()
    jars = ensure_jars(home, report)
    report(f"java: {java.version}")
    warm_once(home.root / "compiled", report)
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
    config: "RouterConfig",
    report: Report,
    log: Path,
    kafka: EmbeddedKafka | None,
    choice: SparkChoice,
    chosen: Chosen,
    trees: "OptimizerConfig | None" = None,
) -> None:
    """Run the router job in this process until it is told to stop, or its own Kafka has ended.

    With `trees`, a Tree Optimizer runs beside it in the same Spark session.
    """
    from branchline.ops import job
    from branchline.streaming.job import RouterJob

    methods = agreed_methods(config.cluster, Topics(config.namespace), config.name, chosen, report)
    place = config.checkpoint or job.default_checkpoint(home, config.cluster, config.namespace, config.name)
    config = replace(config, checkpoint=place, methods=methods)
    spark = job.start_spark(stack, jars, report, choice, place, log, config.cluster)
    with (
        stopped_by_signals() as stop,
        _ended_without(kafka, lambda: job.kill_spark(spark)),
        beside(spark, trees, report, log) if trees is not None else contextlib.nullcontext(),
    ):
        RouterJob(spark, config, report, log).run(stop)


def _small(
    count: int, brokers: tuple[str, ...], topology: Path | None, cluster: str, **_: Any
) -> dict[str, Any]:
    """The brokers and the topology of a small overlay."""
    if brokers or topology is not None:
        raise ConfigError(
            "--brokers names the brokers and their topology itself",
            hint="leave it out, or --broker and --topology with their variables",
        )
    overlay = small_overlay(count, check_name("cluster", cluster))
    return {"brokers": tuple(member.name for member in overlay.members), "topology": overlay}


def _config(
    namespace: str,
    brokers: tuple[str, ...],
    topology: Path | Topology | None,
    cluster: str,
    shards: int,
    max_events_per_batch: int,
    latency_goal: int,
    max_subscriptions: int,
    out_partitions: int,
    out_replication: int | None,
    out_retention: int,
    remove_topics_after: int | None,
    checkpoint: str | None,
    parts: int,
    delivery: str,
    join: bool = False,
) -> "RouterConfig":
    """What the job is told, but for the cluster: what is wrong is refused before anything is started."""
    from branchline.streaming.out_topics import OutTopics
    from branchline.streaming.router import Delivery, RouterConfig

    make_topics(namespace)
    return RouterConfig(
        Cluster(""),
        checkpoint or "",
        namespace,
        brokers or (str(BROKER.default),),
        shards,
        max_events_per_batch,
        read_topology(topology) if isinstance(topology, Path) else topology,
        cluster,
        parts,
        join,
        max_subscriptions,
        OutTopics(out_partitions, out_replication, out_retention, remove_topics_after),
        Delivery(delivery),
        latency_goal_ms=latency_goal,
    )


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
