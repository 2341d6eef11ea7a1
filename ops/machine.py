"""`setup` and `doctor`: does this machine have what Branchline needs, and is the cluster as it should be?"""

import shutil
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import click

from branchline.kafka.admin import differences, list_topics
from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import BranchlineError
from branchline.kafka.home import Home
from branchline.kafka.jars import ensure_jars, find_jars
from branchline.kafka.java import find_java
from branchline.kafka.topics import Topics, check_name
from branchline.ops.output import emit, say
from branchline.ops.running import running_bootstrap
from branchline.ops.settings import (
    BROKER,
    NoCluster,
    cluster_options,
    find_cluster,
    json_option,
    make_topics,
    option,
)

OK, WARNING, FAILED = "ok", "warning", "failed"

FREE_BYTES_WANTED = 1 << 30
"""Below this the embedded Kafka and the checkpoints will soon be in trouble."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    state: str
    found: str
    hint: str = ""


@click.command(short_help="Fetch the Java libraries, once.")
@click.option("--quiet", is_flag=True, help="Say nothing if everything is there.")
def setup(quiet: bool) -> None:
    """Check Java, fetch the Kafka server and Spark connector jars, and compile what matches events, once.

    `up`, `router` and `demo` do it too, if it was not done. Only here Kafka and Spark then run for a moment
    to note the classes that they load, so that they start in half the time from then on.

    \b
    Example:
      branchline setup
    """
    # They import Spark and numba, which takes seconds.
    from branchline.streaming.recording import record_once
    from branchline.streaming.warming import warm_once

    java = find_java()
    home = Home.default()
    jars = ensure_jars(home, say)
    warm_once(home.root / "compiled", say)
    record_once(jars, say)
    if not quiet:
        say(f"ready: Java {java.version}, jars in {jars.kafka.parent}")


@click.command(short_help="Check this machine, the Kafka cluster and its topics.")
@cluster_options
@option(BROKER)
@json_option
@click.pass_context
def doctor(
    ctx: click.Context,
    bootstrap: str | None,
    client_properties: str | None,
    namespace: str,
    broker: str,
    as_json: bool,
) -> None:
    """Check Java, jars, ports, disk, the Kafka cluster and its topics.

    Exits with 1 if something failed.

    \b
    Example:
      branchline doctor --bootstrap localhost:9092
    """
    failed = False
    topics = make_topics(namespace)
    check_name("broker", broker)
    for check in examine(lambda: find_cluster(bootstrap, client_properties), topics, broker):
        failed |= check.state == FAILED
        if as_json:
            fields = {"check": check.name, "state": check.state, "found": check.found, "hint": check.hint}
            emit({name: value for name, value in fields.items() if value})
        else:
            click.echo(f"{check.state:8} {check.name:10} {check.found}")
            if check.hint and check.state != OK:
                click.echo(f"{'':8} {'':10} hint: {check.hint}")
    ctx.exit(1 if failed else 0)


def examine(find: Callable[[], Cluster], topics: Topics, broker: str) -> Iterator[Check]:
    """Everything there is to check, as it is found out."""
    home = Home.default()
    yield _java()
    yield _jars(home)
    yield _ports(home)
    yield _disk(home)
    try:
        cluster = find()
        found = list_topics(cluster)
    except NoCluster as error:
        yield Check("kafka", WARNING, str(error), error.hint)
        return
    except BranchlineError as error:
        yield Check("kafka", FAILED, str(error), error.hint)
        return
    yield Check("kafka", OK, f"{cluster.bootstrap} answers, {len(found)} topics")
    yield from _topics(cluster, topics, broker)


def _java() -> Check:
    try:
        java = find_java()
    except BranchlineError as error:
        return Check("java", FAILED, str(error), error.hint)
    return Check("java", OK, f"{java.version} at {java.path}")


def _jars(home: Home) -> Check:
    jars = find_jars(home)
    if jars is None:
        return Check("jars", FAILED, f"not in {home.jars}", "run `branchline setup`")
    return Check("jars", OK, f"in {jars.kafka.parent}")


def _ports(home: Home) -> Check:
    running = running_bootstrap(home)
    if running is not None:
        return Check("ports", OK, f"`branchline up` listens on {running}")
    try:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return Check("ports", OK, f"free ones to be had on 127.0.0.1, {probe.getsockname()[1]} for one")
    except OSError as error:
        return Check("ports", FAILED, f"cannot listen on 127.0.0.1: {error}", "check the machine's firewall")


def _disk(home: Home) -> Check:
    existing = next(path for path in (home.root, *home.root.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    found = f"{free / (1 << 30):.1f} GiB free for {home.root}"
    if free < FREE_BYTES_WANTED:
        return Check("disk", WARNING, found, "make room, or set BRANCHLINE_HOME to another disk")
    return Check("disk", OK, found)


def _topics(cluster: Cluster, topics: Topics, broker: str) -> Iterator[Check]:
    wanted = topics.of_broker(broker)
    wanted |= {name: kind for name in list_topics(cluster) if (kind := topics.kind(name)) is not None}
    wrong = differences(cluster, wanted)
    if not wrong:
        yield Check("topics", OK, f"all {len(wanted)} of namespace {topics.namespace} are as they should be")
    missing = [difference.topic for difference in wrong if difference.what == "topic"]
    if missing:
        yield Check(
            "topics",
            WARNING,
            f"missing: {', '.join(missing)}",
            f"check --namespace; a router of broker {broker} makes them when it starts",
        )
    for difference in wrong:
        if difference.what != "topic":
            yield Check(
                "topics",
                WARNING,
                f"{difference.topic}: {difference.what} is {difference.actual}, "
                f"and should be {difference.expected}",
                "change it with Kafka's own tools",
            )
