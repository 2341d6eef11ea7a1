"""`status`: is it running, is it keeping up, what became of the events, and what is waited for?

`gather` reads what Kafka has, and `assemble` makes one JSON object of it; `status_text.py` writes that for
people.
"""

import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

import click

from branchline.kafka.admin import list_topics
from branchline.kafka.cluster import Cluster
from branchline.kafka.listing import Known, last_stats, offsets, read_filters
from branchline.kafka.methods import methods_fields, namespace_methods
from branchline.kafka.topics import (
    BROKER,
    CONTROL,
    DEAD_LETTERS,
    ENTRY,
    LINK,
    OUT,
    OWN_CONTROL,
    RT_UPDATES,
    Topics,
)
from branchline.ops.output import emit
from branchline.ops.settings import cluster_options, find_cluster, json_option, make_topics
from branchline.ops.status_text import describe
from branchline.routing.methods.naming import Methods
from branchline.routing.overlay.topology import Topology

SILENT_AFTER_S = 20.0
"""A job that has said nothing for so long is taken to be gone: four times its heartbeat."""

FAILED_SILENT_AFTER_S = 60.0
"""The same for one that has failed: it says nothing while it waits to try again."""

WATCH_EVERY_S = 2.0

EXIT_NOT_RUNNING = 1

TOLD = (
    *("from", "to", "topology", "topologies", "joining", "waiting", "subscriptions", "pending", "delivery"),
    "offloading",
    *("methods", "tree", "parts", "rates", "backlog", "counts", "batches", "batch_ms", "restarts", "error"),
)
"""What a job's statistics are passed on of as they are; None for what it has not told."""

Ends = Mapping[str, list[tuple[int, int]]]
"""For each topic of the namespace the first and the next offset of each partition."""


@click.command(short_help="Show the jobs, their lag, and what became of the events.")
@cluster_options
@click.option("--watch", is_flag=True, help="Show it anew every 2 s, until Ctrl-C.")
@json_option
@click.pass_context
def status(
    ctx: click.Context,
    bootstrap: str | None,
    client_properties: str | None,
    namespace: str,
    watch: bool,
    as_json: bool,
) -> None:
    """Show the jobs, brokers and links, what waits, the subscriptions and what was delivered.

    Exits with 1 if no router is running.

    \b
    Examples:
      branchline status --json
      branchline status --watch
    """
    topics = make_topics(namespace)
    cluster = find_cluster(bootstrap, client_properties)
    found = _show(cluster, topics, as_json, anew=watch)
    try:
        while watch:
            time.sleep(WATCH_EVERY_S)
            found = _show(cluster, topics, as_json, anew=True)
    except KeyboardInterrupt:
        pass  # as it was last shown
    routers = [job for job in found["jobs"] if job["job"] == "router"]
    ctx.exit(0 if any(job["running"] for job in routers) else EXIT_NOT_RUNNING)


def _show(cluster: Cluster, topics: Topics, as_json: bool, *, anew: bool) -> dict[str, Any]:
    found = gather(cluster, topics, time.time())
    if as_json:
        emit(found)
        return found
    if anew:
        click.clear()
    click.echo(describe(found))
    return found


def gather(cluster: Cluster, topics: Topics, now_s: float) -> dict[str, Any]:
    """Everything that status knows, as one JSON object."""
    partitions = {
        name: count for name, count in list_topics(cluster).items() if topics.kind(name) is not None
    }
    ends = offsets(cluster, partitions)
    stats = last_stats(cluster, topics) if topics.stats in partitions else {}
    known = read_filters(cluster, topics) if topics.filters in partitions else Known([])
    methods = namespace_methods(cluster, topics) if topics.positions in partitions else None
    return {"bootstrap": cluster.bootstrap} | assemble(topics, ends, stats, known, now_s, methods)


def assemble(
    topics: Topics,
    ends: Ends,
    stats: Mapping[str, dict[str, Any]],
    known: Known,
    now_s: float,
    methods: Methods | None = None,
) -> dict[str, Any]:
    """What was read, put together."""
    jobs = [_job(key, said, ends, now_s) for key, said in sorted(stats.items(), key=_routers_first)]
    kinds = {name: topics.kind(name) for name in ends}
    inputs = [
        _input(topics, name, ends, jobs)
        for name in sorted(ends)
        if kinds[name] in (ENTRY, BROKER, LINK, CONTROL, OWN_CONTROL, RT_UPDATES)
    ]
    return {
        "namespace": topics.namespace,
        "methods": None if methods is None else methods_fields(methods),
        "jobs": jobs,
        "topology": None if known.topology is None else known.topology.number,
        "brokers": _brokers(jobs, known),
        "links": _links(topics, known.topology, {each["topic"]: each["lag"] for each in inputs}),
        "inputs": inputs,
        "subscribers": _subscribers(topics, ends, known),
        "subscriptions": len(known.subscriptions),
        "pending": _pending(jobs),
        "dead_letters": sum(end for name in ends if kinds[name] is DEAD_LETTERS for _, end in ends[name]),
    }


def _routers_first(item: tuple[str, dict[str, Any]]) -> tuple[bool, str]:
    return item[1].get("job") != "router", item[0]


def _job(key: str, said: dict[str, Any], ends: Ends, now_s: float) -> dict[str, Any]:
    age_s = now_s - said.get("at_ms", 0) / 1000
    state = said.get("state", "unknown")
    patience_s = {"running": SILENT_AFTER_S, "failed": FAILED_SILENT_AFTER_S}
    if age_s > patience_s.get(state, age_s):
        state = "silent"
    # A bridge says itself how much it has to carry.
    lags = said.get("lag")
    if not isinstance(lags, dict):
        positions = said.get("positions") or {}
        lags = {name: _lag(ends[name], at) for name, at in positions.items() if name in ends}
    return {
        "job": said.get("job"),
        "name": key.partition("/")[2],
        "broker": said.get("broker"),
        "brokers": said.get("brokers") or ([said["broker"]] if said.get("broker") else []),
        "state": state,
        "running": state == "running",
        "said_s_ago": round(age_s, 1),
        "lag": sum(lags.values()),
        "lags": lags,
        **{name: said.get(name) for name in TOLD},
    }


def running_jobs(stats: Mapping[str, dict[str, Any]], now_s: float) -> list[dict[str, Any]]:
    """The jobs that run, or have failed and try again."""
    jobs = [_job(key, said, {}, now_s) for key, said in stats.items()]
    return [job for job in jobs if job["state"] in ("running", "failed")]


def _lag(ends: list[tuple[int, int]], at: Mapping[str, int]) -> int:
    return sum(max(end - at.get(str(number), first), 0) for number, (first, end) in enumerate(ends))


def _input(topics: Topics, name: str, ends: Ends, jobs: list[dict[str, Any]]) -> dict[str, Any]:
    """A topic that somebody is to read; if several do, the slowest of those that run counts."""
    readers = [job for job in jobs if name in job["lags"]]
    if name in (topics.control, topics.rt_updates):
        # Bridges carry these too, but that they wait for one is no lag of a router.
        readers = [job for job in readers if job["job"] == "router"]
    readers = [job for job in readers if job["running"]] or readers
    records = sum(end - first for first, end in ends[name])
    return {
        "topic": name,
        "records": records,
        "lag": max((job["lags"][name] for job in readers), default=records),
        "reader": ", ".join(f"{job['job']} {job['name']}" for job in readers) or None,
    }


def _brokers(jobs: list[dict[str, Any]], known: Known) -> list[dict[str, Any]]:
    """The brokers of the topology, and whoever else is served here."""
    served: dict[str, dict[str, Any]] = {}
    for job in jobs:
        for broker in job["brokers"] if job["job"] == "router" else ():
            if broker not in served or job["running"]:
                served[broker] = job
    members = {} if known.topology is None else {each.name: each for each in known.topology.members}
    adverts = Counter(each.identity.home for each in known.advertisements)
    found = []
    for name in dict.fromkeys((*members, *served)):
        job, member = served.get(name, {}), members.get(name)
        found.append(
            {
                "broker": name,
                "cluster": None if member is None else member.cluster,
                "job": job.get("name"),
                "state": job.get("state"),
                "topology": (job.get("topologies") or {}).get(name),
                "joining": name in (job.get("joining") or ()),
                "leaving": member is not None and member.leaving,
                "advertisements": adverts[name],
                "offloading": (job.get("offloading") or {}).get(name),
            }
        )
    return found


def _links(topics: Topics, topology: Topology | None, lags: Mapping[str, int]) -> list[dict[str, Any]]:
    """The links of the topology, and how many records wait at either end, from whichever neighbour."""
    links = [] if topology is None else topology.links
    return [
        {
            "between": [one, other],
            "cost": cost,
            "waiting": {
                end: lags.get(topics.link(end), 0) + lags.get(topics.broker(end), 0) for end in (one, other)
            },
        }
        for one, other, cost in links
    ]


def _subscribers(topics: Topics, ends: Ends, known: Known) -> list[dict[str, Any]]:
    standing: dict[str, int] = {}
    for change in known.subscriptions:
        standing[change.identity.subscriber] = standing.get(change.identity.subscriber, 0) + 1
    return [
        {
            "subscriber": topics.named(name),
            "subscriptions": standing.get(topics.named(name) or "", 0),
            "delivered": sum(end for _, end in ends[name]),
        }
        for name in sorted(ends)
        if topics.kind(name) is OUT
    ]


def _pending(jobs: list[dict[str, Any]]) -> dict[str, Any]:
    """The subscriptions that are not in force yet, of all jobs."""
    told = [job["pending"] for job in jobs if job["pending"] is not None]
    return {
        "count": sum(each["count"] for each in told),
        "first": [waiting for each in told for waiting in each["first"]],
    }
