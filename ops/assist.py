"""`assist`: have a subscriber work for its home, by finding out which filters cover which."""

import time

import click

from branchline.kafka.helping import FOR_MS, Done, Helper
from branchline.kafka.topics import check_name
from branchline.ops.output import emit
from branchline.ops.settings import (
    cluster_options,
    find_cluster,
    json_option,
    make_topics,
    own_control_option,
)
from branchline.routing.offloading.assisting import ASSIST_MAX_MS, ASSIST_MIN_MS


@click.command(short_help="Work for a broker: find out which filters cover which.")
@click.argument("subscriber")
@cluster_options
@click.option("--home", required=True, help="The broker to work for.")
@click.option("--seconds", type=click.FloatRange(min=0), help="Stop after so many seconds; without, never.")
@click.option(
    "--for-ms",
    type=click.IntRange(ASSIST_MIN_MS, ASSIST_MAX_MS),
    default=FOR_MS,
    show_default=True,
    help="For how long to volunteer at a time.",
)
@own_control_option
@json_option
def assist(
    subscriber: str,
    bootstrap: str | None,
    client_properties: str | None,
    namespace: str,
    home: str,
    seconds: float | None,
    for_ms: int,
    own: bool,
    as_json: bool,
) -> None:
    """Let SUBSCRIBER work for a broker, where the dissemination is covering+rto, until it is interrupted.

    The broker gives it filters to compare, and checks what it answers: nothing hangs on it but how much the
    broker has to do by itself. It sees filters of others, though not whose they are.

    \b
    Examples:
      branchline assist alice --home dublin
      branchline assist alice --home dublin --seconds 60 --json
    """
    for name, text in (("subscriber", subscriber), ("home", home)):
        check_name(name, text)
    cluster, topics = find_cluster(bootstrap, client_properties), make_topics(namespace)
    helper = Helper(cluster, topics, subscriber, home, own, for_ms)
    deadline_s = float("inf") if seconds is None else time.monotonic() + seconds
    done = 0
    work = helper.work()
    try:
        for each in work:
            if each is not None:
                done += 1
                _tell(each, as_json)
            if time.monotonic() > deadline_s:
                break
    finally:
        work.close()
    if as_json:
        emit({"subscriber": subscriber, "home": home, "tasks": done})
    else:
        click.echo(f"{subscriber} has done {done:,} tasks for {home}")


def _tell(done: Done, as_json: bool) -> None:
    if as_json:
        emit({"round": done.round, "slice": done.slice, "filters": done.filters, "table": done.table})
    else:
        click.echo(f"{done.filters} filters compared with {done.table}: {done.related} cover or are covered")
