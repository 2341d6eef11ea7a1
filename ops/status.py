"""`status`: is it running, is it keeping up, and what became of the events?"""

import time
from typing import Any

import click

from branchline.kafka.admin import list_topics
from branchline.kafka.cluster import Cluster
from branchline.kafka.listing import last_stats, list_subscriptions, offsets
from branchline.kafka.topics import BROKER, CONTROL, DEAD_LETTERS, ENTRY, LINK, OUT, RT_UPDATES, Topics
from branchline.ops.output import emit, table
from branchline.ops.settings import cluster_options, find_cluster, json_option, make_topics

SILENT_AFTER_S = 20.0
"""A job that has said nothing for so long is taken to be gone: four times its heartbeat."""

FAILED_SILENT_AFTER_S = 60.0
"""The same for one that has failed: it says nothing while it waits to try again."""

EXIT_NOT_RUNNING = 1


@click.command(short_help="Show the jobs, their lag, and what became of the events.")
@cluster_options
@json_option
@click.pass_context
def status(
    ctx: click.Context, bootstrap: str | None, client_properties: str | None, namespace: str, as_json: bool
) -> None:
    """Show the jobs, their lag, the subscriptions and what was delivered.

    Exits with 1 if no router is running.

    \b
    Example:
      branchline status --json
    """
    cluster = find_cluster(bootstrap, client_properties)
    found = gather(cluster, make_topics(namespace), time.time())
    if as_json:
        emit(found)
    else:
        _show(found)
    ctx.exit(0 if any(job["running"] for job in found["jobs"]) else EXIT_NOT_RUNNING)


def gather(cluster: Cluster, topics: Topics, now_s: float) -> dict[str, Any]:
    """Everything that status knows, as one JSON object."""
    every = list_topics(cluster)
    kinds = {name: topics.kind(name) for name in every}
    partitions = {name: count for name, count in every.items() if kinds[name] is not None}
    ends = offsets(cluster, partitions)
    jobs = _jobs(last_stats(cluster, topics) if topics.stats in partitions else {}, now_s)
    positions: dict[str, dict[str, int]] = {}
    for job in jobs:
        positions |= job.pop("positions")
    subscriptions = list_subscriptions(cluster, topics) if topics.filters in partitions else []
    inputs = [name for name in partitions if kinds[name] in (ENTRY, BROKER, LINK, CONTROL, RT_UPDATES)]
    return {
        "bootstrap": cluster.bootstrap,
        "namespace": topics.namespace,
        "jobs": jobs,
        "inputs": [
            {
                "topic": name,
                "records": sum(end - first for first, end in ends[name]),
                "lag": sum(
                    end - positions.get(name, {}).get(str(partition), first)
                    for partition, (first, end) in enumerate(ends[name])
                ),
            }
            for name in sorted(inputs)
        ],
        "subscribers": [
            {
                "subscriber": topics.named(name),
                "subscriptions": sum(
                    each.identity.subscriber == topics.named(name) for each in subscriptions
                ),
                "delivered": sum(end for _, end in ends[name]),
            }
            for name in sorted(partitions)
            if kinds[name] is OUT
        ],
        "subscriptions": len(subscriptions),
        "dead_letters": sum(
            end for name in partitions if kinds[name] is DEAD_LETTERS for _, end in ends[name]
        ),
    }


def _jobs(stats: dict[str, dict[str, Any]], now_s: float) -> list[dict[str, Any]]:
    jobs = []
    for said in stats.values():
        age_s = now_s - said.get("at_ms", 0) / 1000
        state = said.get("state", "unknown")
        patience_s = {"running": SILENT_AFTER_S, "failed": FAILED_SILENT_AFTER_S}
        if age_s > patience_s.get(state, age_s):
            state = "silent"
        jobs.append(
            {
                "job": said.get("job"),
                "broker": said.get("broker"),
                "brokers": said.get("brokers") or [said.get("broker")],
                "topology": said.get("topology"),
                "state": state,
                "running": state == "running",
                "said_s_ago": round(age_s, 1),
                "positions": said.get("positions") or {},
                **{
                    name: said.get(name)
                    for name in ("batches", "batch_ms", "restarts", "error", "counts", "backlog")
                },
            }
        )
    return jobs


def running_jobs(stats: dict[str, dict[str, Any]], now_s: float) -> list[dict[str, Any]]:
    """The jobs that run, or have failed and try again."""
    return [job for job in _jobs(stats, now_s) if job["state"] in ("running", "failed")]


def _show(found: dict[str, Any]) -> None:
    click.echo(f"Kafka {found['bootstrap']}, namespace {found['namespace']}")
    if not found["jobs"]:
        click.echo("no router has ever run here; start one with `branchline up` or `branchline router`")
    for job in found["jobs"]:
        counts = job["counts"] or {}
        click.echo(
            f"{job['job']} of {_brokers(job)}: {job['state']} (told {job['said_s_ago']:.0f} s ago), "
            f"{job['batches']} batches, the last in {job['batch_ms'] or 0} ms, {job['restarts']} restarts"
        )
        if job["topology"]:
            click.echo(f"  its brokers have topology {job['topology']}")
        click.echo(
            f"  since it started: {counts.get('accepted', 0):,} events accepted "
            f"({counts.get('opaque', 0):,} opaque), {counts.get('rejected', 0):,} rejected, "
            f"{counts.get('delivered', 0):,} deliveries, {counts.get('content_matches', 0):,} content matches"
        )
        if job["backlog"]:
            backlog = job["backlog"]
            click.echo(
                f"  works off what was there when it started: {backlog['handled']:,} of "
                f"{backlog['records']:,} events, {backlog['rate']:,} a second"
            )
        if job["error"]:
            click.echo(f"  last error: {job['error']}")
    _show_table(
        ("INPUT", "RECORDS", "LAG"),
        [(each["topic"], each["records"], each["lag"]) for each in found["inputs"]],
    )
    _show_table(
        ("SUBSCRIBER", "SUBSCRIPTIONS", "DELIVERED"),
        [(each["subscriber"], each["subscriptions"], each["delivered"]) for each in found["subscribers"]],
    )
    click.echo(f"\n{found['subscriptions']} subscriptions in force, {found['dead_letters']} dead letters")


def _brokers(job: dict[str, Any]) -> str:
    return f"broker{'s' if len(job['brokers']) > 1 else ''} {', '.join(map(str, job['brokers']))}"


def _show_table(headings: tuple[str, ...], rows: list[tuple[object, ...]]) -> None:
    if rows:
        click.echo(f"\n{table(headings, rows)}")
