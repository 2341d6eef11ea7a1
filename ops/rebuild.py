"""`rebuild`: a new checkpoint for a router, from what Kafka has, when the old one is lost or does not fit."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import ConfigError, JobRunning
from branchline.kafka.home import Home
from branchline.kafka.listing import last_stats
from branchline.kafka.methods import namespace_methods
from branchline.kafka.rebuilding import Offsets
from branchline.kafka.topics import Topics
from branchline.ops.durations import duration_ms
from branchline.ops.methods import check_methods
from branchline.ops.output import emit, say
from branchline.ops.overlay import read_topology
from branchline.ops.settings import (
    BROKER,
    CHECKPOINT,
    CLUSTER,
    DISSEMINATION,
    NAMESPACE,
    SHARDS,
    TOPOLOGY,
    Command,
    Setting,
    cluster_options,
    find_cluster,
    json_option,
    make_topics,
    option,
)
from branchline.ops.spark_options import SparkChoice, spark_choice, spark_options
from branchline.ops.status import running_jobs
from branchline.routing.methods.choosing import USUAL

if TYPE_CHECKING:  # it imports Spark, which takes a second
    from branchline.ops.rebuild_starts import Plan
    from branchline.ops.rebuilding import Result


@dataclass(frozen=True, slots=True)
class Ways:
    """Where the events are to be read from: exactly one of these."""

    old: str | None
    offsets: Path | None
    since: str | None
    positions: bool
    beginning: bool

    def check(self) -> None:
        given = [self.old is not None, self.offsets is not None, self.since is not None]
        if sum([*given, self.positions, self.beginning]) != 1:
            raise ConfigError(
                "it must be said once from where events are read",
                hint="give one of --from, --from-positions, --offsets, --since and --from-beginning",
            )


def _unset(setting: Setting, kind: Any = None) -> Callable[[Command], Command]:
    """The setting as an option without its default: the old checkpoint may know better."""
    text = f"{setting.help} Default: as in --from, else {setting.default}.  [{setting.variable}]"
    return click.option(setting.option, envvar=setting.variable, type=kind, help=text)


@click.command(short_help="Make a new checkpoint for a router whose old one is lost or does not fit.")
@cluster_options
@click.option("--from", "old", metavar="CHECKPOINT", help="The old checkpoint: go on where it stopped.")
@click.option("--from-positions", is_flag=True, help="Go on where the router last said that it was.")
@click.option(
    "--offsets",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A JSON file, {topic: {partition: offset}}: go on there.",
)
@click.option(
    "--since", metavar="TIME", help="Read events of this time and later: 2h, 7d, 2026-05-01T12:00:00Z."
)
@click.option("--from-beginning", is_flag=True, help="Read all events that there still are.")
@click.option(
    "--control-since",
    metavar="TIME",
    help="Read requests and letters from this time on, if nobody knows how far they were read.",
)
@click.option(
    "--print-offsets", is_flag=True, help="Only print the offsets of --from, as --offsets takes them."
)
@click.option(
    BROKER.option,
    "brokers",
    envvar=BROKER.variable,
    multiple=True,
    help=f"A broker to serve; may be repeated. Default: as in --from, else {BROKER.default}.",
)
@_unset(CLUSTER)
@_unset(SHARDS, int)
@click.option(
    TOPOLOGY.option,
    envvar=TOPOLOGY.variable,
    type=click.Path(path_type=Path),
    help=f"The topology that the brokers began with. Default: as in --from.  [{TOPOLOGY.variable}]",
)
@click.option(
    DISSEMINATION.option,
    envvar=DISSEMINATION.variable,
    help=f"Who is told of which filter from now on. Default: the namespace's.  [{DISSEMINATION.variable}]",
)
@option(CHECKPOINT)
@spark_options
@json_option
def rebuild(
    bootstrap: str | None,
    client_properties: str | None,
    namespace: str,
    old: str | None,
    from_positions: bool,
    offsets: Path | None,
    since: str | None,
    from_beginning: bool,
    control_since: str | None,
    print_offsets: bool,
    brokers: tuple[str, ...],
    cluster: str | None,
    shards: int | None,
    topology: Path | None,
    dissemination: str | None,
    checkpoint: str | None,
    master: str,
    spark_conf: tuple[str, ...],
    as_json: bool,
) -> None:
    """Make a new checkpoint for a router: from the subscriptions on `filters`, and with offsets from the old
    checkpoint, the router's last positions, a file or a time. The router must be stopped; start it with the
    new checkpoint afterwards.

    \b
    Examples:
      branchline rebuild --from /var/lib/old --checkpoint /var/lib/new --shards 4
      branchline rebuild --from-positions --checkpoint /var/lib/new
      branchline rebuild --since 2h --checkpoint /var/lib/new
      branchline rebuild --from /var/lib/old --print-offsets > offsets.json
      branchline rebuild --offsets offsets.json --checkpoint /var/lib/new
      branchline rebuild --from /var/lib/old --checkpoint /var/lib/new --dissemination covering
    """
    now_ms = int(time.time() * 1000)
    if print_offsets:
        _print_offsets(old, spark_choice(master, spark_conf))
        return
    ways = Ways(old, offsets, since, from_positions, from_beginning)
    ways.check()
    from branchline.ops.rebuild_starts import Plan
    from branchline.ops.rebuilding import run

    plan = Plan(
        cluster=Cluster(""),
        topics=make_topics(namespace),
        old=old,
        positions=from_positions,
        offsets=None if offsets is None else read_offsets(offsets),
        since_ms=None if since is None else read_time(since, now_ms),
        control_since_ms=None if control_since is None else read_time(control_since, now_ms),
        brokers=brokers or None,
        cluster_name=cluster,
        shards=shards,
        topology=None if topology is None else read_topology(topology),
        checkpoint=checkpoint,
        spark=spark_choice(master, spark_conf),
    )
    reached = find_cluster(bootstrap, client_properties)
    stands = namespace_methods(reached, plan.topics) or USUAL
    chosen = check_methods(replace(stands, dissemination=dissemination or stands.dissemination))
    plan = replace(plan.at(reached), dissemination=chosen.dissemination)
    result = run(plan, Home.default(), (lambda text: emit({"message": text})) if as_json else say)
    _show(plan, result, as_json)


def _print_offsets(old: str | None, choice: SparkChoice) -> None:
    if old is None:
        raise ConfigError("--print-offsets needs a checkpoint to read", hint="name it with --from")
    from branchline.ops.rebuilding import old_offsets

    click.echo(json.dumps(old_offsets(old, Home.default(), choice, say), indent=1, sort_keys=True))


def read_offsets(file: Path) -> Offsets:
    """Offsets in a file, as `--print-offsets` writes them."""
    try:
        found = json.loads(file.read_bytes())
        offsets = {
            topic: {str(int(partition)): _natural(offset) for partition, offset in partitions.items()}
            for topic, partitions in found.items()
        }
    except (ValueError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"{file} has no offsets: {error}",
            hint='write {"branchline.in.main": {"0": 17, "1": 4}}, or let --print-offsets write it',
        ) from None
    return offsets


def _natural(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{value!r} is no offset")
    return value


def read_time(text: str, now_ms: int) -> int:
    """A moment in milliseconds: so long ago, or as ISO 8601 writes it, in UTC unless it says otherwise."""
    try:
        return now_ms - duration_ms(text)
    except click.BadParameter:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(
            f"{text!r} is no time", hint="write how long ago (2h, 7d) or a moment (2026-05-01T12:00:00Z)"
        ) from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def refuse_if_running(cluster: Cluster, topics: Topics, brokers: tuple[str, ...]) -> None:
    """A router that runs would write beside the rebuild, and go on beside the rebuilt one."""
    for job in running_jobs(last_stats(cluster, topics), time.time()):
        if set(job["brokers"]) & set(brokers):
            raise JobRunning(
                f"the router of {', '.join(job['brokers'])} is {job['state']} "
                f"(told {job['said_s_ago']:.0f} s ago)",
                hint="stop it first; one that was killed is taken to be gone after a minute at most",
            )


def _show(plan: "Plan", result: "Result", as_json: bool) -> None:
    if as_json:
        emit(result.fields())
        return
    for line in result.lines():
        click.echo(line)
    for warning in result.warnings:
        say(f"warning: {warning}")
    brokers = "".join(f" --broker {each}" for each in result.brokers)
    click.echo(
        f"next: branchline router{brokers} --shards {result.shards} --checkpoint {result.checkpoint}"
        + (f" --namespace {plan.topics.namespace}" if plan.topics.namespace != NAMESPACE.default else "")
        + (f" --cluster {result.cluster}" if result.cluster != CLUSTER.default else "")
    )
