"""`branchline bench changes`: subscriptions that change all the time, while events flow.

First without Kafka: what a change costs a shard, with few filters standing and with many. Then a router of
one broker and two shards, on a Kafka and a Spark of their own, gets requests and events at set rates: how
long its batches take, how long a request takes until it is in force, and whether events are late for it.
"""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from branchline.kafka.errors import JobFailed
from branchline.ops.bench_facts import facts, facts_text, warning
from branchline.ops.matching_workloads import MATCHING
from branchline.ops.numbers import FiniteRange
from branchline.ops.output import emit, say, table
from branchline.ops.settings import json_option

if TYPE_CHECKING:  # they import Spark, which takes a second
    from branchline.ops.changes_run import Seen

CORE_SHOWN = ("filters", "one_us", "events_us", "leading_ms", "other_ms")
FEW_SHARE = 10
"""How many times fewer filters a cost is compared with."""
SUBSCRIBERS_MOST = 1_000
"""Each has a topic of its own, which Kafka must keep."""
BATCH_EVENTS = 20_000


@click.command(short_help="Change subscriptions at a rate while events flow, and say what it takes.")
@click.option(
    "--filters",
    "sizes",
    type=click.IntRange(30, 1_000_000),
    multiple=True,
    default=(10_000,),
    show_default=True,
    help="How many stand; may be given several times.",
)
@click.option("--changes", type=FiniteRange(1, 20_000), default=1_000.0, show_default=True, help="A second.")
@click.option(
    "--rate", type=FiniteRange(1, 100_000), default=5_000.0, show_default=True, help="Events a second."
)
@click.option("--seconds", type=FiniteRange(1, 3_600), default=60.0, show_default=True)
@click.option("--warm-up", type=FiniteRange(0, 3_600), default=30.0, show_default=True, help="Seconds.")
@click.option("--core-only", is_flag=True, help="Leave Kafka and Spark out.")
@click.option(
    "--workload",
    type=click.Choice([name for name in MATCHING if name != "spellings"]),
    default="equalities",
    show_default=True,
)
@click.option("--seed", default=1, show_default=True, help="Seed of the random filters, events and changes.")
@json_option
def changes(
    sizes: tuple[int, ...],
    changes: float,
    rate: float,
    seconds: float,
    warm_up: float,
    core_only: bool,
    workload: str,
    seed: int,
    as_json: bool,
) -> None:
    """Change subscriptions while events flow: batches' times, and how long a change takes to be in force.

    \b
    Examples:
      branchline bench changes
      branchline bench changes --filters 100000 --seconds 120 --json
      branchline bench changes --core-only --filters 100000
    """
    found = facts(seed)
    busy = warning(found)
    if busy:
        say(busy)
    if not as_json:
        click.echo(facts_text(found))
    for size in dict.fromkeys(sizes):
        core = _core(workload, size, seed)
        if as_json:
            for row in core:
                emit({"workload": workload, **row} | found)
        else:
            click.echo(table(CORE_SHOWN, [[str(row[name]) for name in CORE_SHOWN] for row in core]))
        if core_only:
            continue
        seen = _router(workload, size, changes, rate, seconds, warm_up, seed)
        if as_json:
            emit({"workload": workload, "filters": size, **asdict(seen)} | found)
        else:
            click.echo(_seen_text(seen))
        if seen.refused or seen.missing_acks or seen.missing_events:
            raise JobFailed(
                f"{seen.refused} requests were refused, {seen.missing_acks} not answered, and "
                f"{seen.missing_events} events not handled in time",
                hint="use lower rates, or a machine with more cores",
            )


def _core(workload: str, size: int, seed: int) -> list[dict[str, float]]:
    from branchline.ops.changes_core import core_costs

    rows = []
    for filters in dict.fromkeys((max(30, size // FEW_SHARE), size)):
        say(f"a shard with {filters:,} filters")
        rows.append(core_costs(workload, filters, min(SUBSCRIBERS_MOST, filters), seed))
    return rows


def _router(
    workload: str, size: int, changes: float, rate: float, seconds: float, warm_up: float, seed: int
) -> "Seen":
    from branchline.ops.changes_load import draw_requests
    from branchline.ops.changes_run import drive
    from branchline.ops.pipeline_load import Load
    from branchline.ops.pipeline_site import Site
    from branchline.ops.pipeline_started import started
    from branchline.streaming.router import Delivery

    in_all = seconds + warm_up
    say("drawing filters, events and requests")
    load: Load = Load.drawn(workload, size, min(SUBSCRIBERS_MOST, size), round(rate * in_all), 0.0, seed)
    requests = draw_requests(load, workload, "b1", round(changes * in_all), seed)
    with started() as place:
        site = Site(place.spark, place.cluster, place.folder, "bench", 1, BATCH_EVENTS)
        say(f"{size:,} filters of {load.subscribers:,} subscribers: subscribing")
        say(f"  all stand after {site.subscribe(load):.0f} s")
        query: Any = site.start(Delivery.AT_LEAST_ONCE)
        try:
            say(f"{changes:,.0f} changes and {rate:,.0f} events a second, {in_all:.0f} s")
            topics = site.entry, site.topics.control, site.topics.acks
            return drive(place.cluster, query, topics, load.events, requests, seconds, warm_up)
        finally:
            query.stop()


def _seen_text(seen: "Seen") -> str:
    rows = [
        [what, str(each.count), str(each.p50_ms), str(each.p95_ms), str(each.most_ms)]
        for what, each in (
            ("batches", seen.batches),
            ("requests until in force", seen.in_force),
            ("events until delivered", seen.delivered),
        )
    ]
    return (
        table(("", "count", "p50_ms", "p95_ms", "most_ms"), rows)
        + f"\n{seen.changes_per_s:,.0f} changes and {seen.events_per_s:,.0f} events a second were written"
    )
