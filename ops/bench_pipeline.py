"""`branchline bench pipeline`: events from Kafka to Kafka by the router, on a Kafka and a Spark of their own.

For each number of filters and of hops, a router works off a backlog, in either mode of delivery in turn, and
beside it Spark moves the same records with no operator. Everything that is delivered is read back and
compared with what subscribers are owed, which is worked out without Kafka. Then events are published at a set
rate, and it is said how long they were on their way.
"""

from dataclasses import asdict, replace
from statistics import median
from typing import TYPE_CHECKING, Any

import click

from branchline.kafka.errors import JobFailed
from branchline.ops.bench_facts import facts, facts_text, warning
from branchline.ops.matching_workloads import MATCHING
from branchline.ops.numbers import FiniteRange
from branchline.ops.output import emit, say, table
from branchline.ops.settings import json_option

if TYPE_CHECKING:  # they import Spark, which takes a second
    from branchline.ops.pipeline_latency import Latency
    from branchline.ops.pipeline_load import Deliveries, Load
    from branchline.ops.pipeline_site import Rate
    from branchline.ops.pipeline_started import Started

SHOWN = (
    *(
        "filters",
        "hops",
        "delivery",
        "events_per_s",
        "slowest",
        "fastest",
        "of_spark",
        "batch_ms",
        "first_ms",
    ),
    *("delivered", "checksum", "slow_share", "p50_ms", "p95_ms", "changing_p50_ms", "changing_p95_ms"),
)
MODES = ("at-least-once", "exactly-once")


@click.command(short_help="Route a backlog from Kafka to Kafka, and say what it takes.")
@click.option(
    "--filters",
    "sizes",
    type=click.IntRange(1, 1_000_000),
    multiple=True,
    default=(1_000, 10_000),
    show_default=True,
    help="How many; may be given several times.",
)
@click.option("--subscribers", type=click.IntRange(1, 10_000), default=1_000, show_default=True)
@click.option(
    "--hops",
    type=click.IntRange(1, 8),
    multiple=True,
    default=(1,),
    show_default=True,
    help="Brokers that an event passes, in a line; may be given several times.",
)
@click.option(
    "--delivery", "modes", type=click.Choice(MODES), multiple=True, default=MODES, show_default=True
)
@click.option("--events", type=click.IntRange(100, 5_000_000), default=100_000, show_default=True)
@click.option(
    "--batch",
    type=click.IntRange(100, 1_000_000),
    default=100_000,
    show_default=True,
    help="Events a batch takes at most.",
)
@click.option("--rounds", type=click.IntRange(1, 20), default=3, show_default=True, help="For each mode.")
@click.option(
    "--rate", type=FiniteRange(0, 100_000), default=500.0, show_default=True, help="For latency; 0 for none."
)
@click.option("--seconds", type=FiniteRange(1, 3_600), default=60.0, show_default=True, help="For latency.")
@click.option("--warm-up", type=FiniteRange(0, 3_600), default=60.0, show_default=True, help="For latency.")
@click.option(
    "--changes",
    type=FiniteRange(0, 1_000),
    default=0.0,
    show_default=True,
    help="Measure latency once more, with so many requests to subscribe and unsubscribe a second.",
)
@click.option("--workload", type=click.Choice(list(MATCHING)), default="equalities", show_default=True)
@click.option("--slow-share", type=FiniteRange(0, 0.2), default=0.0, show_default=True)
@click.option("--trees/--no-trees", default=True, show_default=True, help="Let a Tree Optimizer run before.")
@click.option("--seed", default=1, show_default=True, help="Seed of the random filters and events.")
@json_option
def pipeline(
    sizes: tuple[int, ...],
    subscribers: int,
    hops: tuple[int, ...],
    modes: tuple[str, ...],
    events: int,
    batch: int,
    rounds: int,
    rate: float,
    seconds: float,
    warm_up: float,
    changes: float,
    workload: str,
    slow_share: float,
    trees: bool,
    seed: int,
    as_json: bool,
) -> None:
    """Route events from Kafka to Kafka: how fast a backlog is worked off, and how long one event takes.

    \b
    Examples:
      branchline bench pipeline
      branchline bench pipeline --filters 100000 --rounds 1 --json
      branchline bench pipeline --hops 1 --hops 2 --hops 4 --hops 8 --delivery at-least-once
    """
    from branchline.ops.pipeline_load import Load
    from branchline.ops.pipeline_started import started

    found = facts(seed)
    busy = warning(found)
    if busy:
        say(busy)
    if not as_json:
        click.echo(facts_text(found))
    drawn = max(events + batch, round(rate * (warm_up + seconds)))
    rows: list[dict[str, Any]] = []
    for size in dict.fromkeys(sizes):
        load = Load.drawn(workload, size, min(subscribers, size), drawn, slow_share, seed)
        for count in dict.fromkeys(hops):
            # A Kafka for each: thousands of topics that nobody needs any more would slow down the next.
            with started() as place:
                runs = Runs(place, load, count, batch, events + batch, trees)
                made = [
                    *runs.backlog(modes, rounds),
                    *([] if not rate else runs.latencies(modes, rate, warm_up, seconds, changes)),
                ]
            rows += _joined(made, {"workload": workload, "filters": size, "subscribers": load.subscribers})
            if as_json:
                for row in rows[-len(modes) :]:
                    emit(row | found)
    if not as_json:
        click.echo(table(SHOWN, [[str(row.get(name, "")) for name in SHOWN] for row in rows]))


class Runs:
    """One router with its subscriptions, and what is measured of it."""

    def __init__(
        self, place: "Started", load: "Load", hops: int, batch: int, events: int, trees: bool
    ) -> None:
        from branchline.ops.pipeline_site import Site

        self.load, self.hops, self.events = load, hops, events
        self.backlog_events = load.events[:events]
        say("working out what subscribers are owed")
        self.owed, self.slow_share = replace(load, events=self.backlog_events).owed()
        self.site = Site(place.spark, place.cluster, place.folder, f"bench{hops}", hops, batch)
        say(f"{len(load.filters):,} filters of {load.subscribers:,} subscribers, {hops} hops: subscribing")
        took_s = self.site.subscribe(load)
        say(f"  all stand after {took_s:.0f} s")
        if trees:
            say("  telling of the Routing Tree")
            self.site.tell_trees()
        self.outbox = self.site.outbox(load.subscribers)

    def route(self, mode: str) -> "Rate":
        """Work off the events that wait in this mode, and compare what is delivered with what is owed."""
        from branchline.streaming.router import Delivery

        mark = self.outbox.mark()
        rate = self.site.route(Delivery(mode), self.events)
        check(mode, self.outbox.since(mark), self.owed)
        return rate

    def backlog(self, modes: tuple[str, ...], rounds: int) -> list[dict[str, Any]]:
        """A row for each mode, and one for Spark alone."""
        rates: dict[str, list[Rate]] = {}
        for number in range(rounds):
            for mode in modes:
                start = self.site.publish(self.backlog_events)
                rates.setdefault(mode, []).append(self.route(mode))
                say(f"  round {number + 1} of {rounds}, {mode}: {rates[mode][-1].per_s:,.0f} events/s")
            rates.setdefault("spark", []).append(self.site.move(start, self.events, number))
            say(f"  round {number + 1} of {rounds}, Spark alone: {rates['spark'][-1].per_s:,.0f} events/s")
        spark = median(each.per_s for each in rates["spark"])
        return [
            {
                "delivery": mode,
                **rate_fields(rates[mode]),
                "of_spark": round(median(each.per_s for each in rates[mode]) / spark, 2),
                "spark_events_per_s": round(spark),
                "hops": self.hops,
                "delivered": self.owed.count,
                "checksum": self.owed.checksum,
                "slow_share": round(self.slow_share, 4),
                "counts": rates[mode][-1].counts,
                "backlog_parts_ms": rates[mode][-1].parts_ms,
            }
            for mode in modes
        ]

    def latencies(
        self, modes: tuple[str, ...], rate: float, warm_up_s: float, seconds: float, changes: float
    ) -> list[dict[str, Any]]:
        """A row for each mode, with what it is at that many changes a second, if there are to be any."""
        rows = []
        for mode in modes:
            found, parts = self._latency(mode, rate, warm_up_s, seconds, 0)
            fields = asdict(found)
            rows.append(
                {"delivery": mode, "latency_rate": fields.pop("rate"), **fields, "batch_parts_ms": parts}
            )
            if changes:
                found, parts = self._latency(mode, rate, warm_up_s, seconds, changes)
                rows[-1] |= {
                    "changes_rate": changes,
                    "changing_p50_ms": found.p50_ms,
                    "changing_p95_ms": found.p95_ms,
                    "changing_batch_parts_ms": parts,
                }
        return rows

    def _latency(
        self, mode: str, rate: float, warm_up_s: float, seconds: float, changes: float
    ) -> "tuple[Latency, dict[str, int]]":
        """How long events are on their way, and what the parts of a batch take."""
        from branchline.ops.pipeline_changing import changing
        from branchline.ops.pipeline_latency import measure_latency
        from branchline.ops.pipeline_site import parts_of
        from branchline.streaming.router import Delivery

        site = self.site
        query = site.start(Delivery(mode))
        try:
            with changing(site.cluster, site.topics, site.home, changes):
                found = measure_latency(
                    site.cluster, site.entry, self.outbox, self.load, rate, warm_up_s, seconds
                )
            parts = parts_of(query)
        finally:
            query.stop()
        beside = f", {changes:g} changes/s" if changes else ""
        say(f"  {mode}, {found.rate:.0f} events/s{beside}: p50 {found.p50_ms} ms, p95 {found.p95_ms} ms")
        say("    parts of a batch, ms: " + ", ".join(f"{name} {ms}" for name, ms in parts.items()))
        return found, parts


def rate_fields(rates: "list[Rate]") -> dict[str, Any]:
    """The median rate of several rounds, and how far they were apart."""
    per_s = [each.per_s for each in rates]
    return {
        "events_per_s": round(median(per_s)),
        "slowest": round(min(per_s)),
        "fastest": round(max(per_s)),
        "batch_ms": round(median(each.batch_ms for each in rates)),
        "first_ms": round(median(each.first_ms for each in rates)),
        "timed_events": rates[0].events,
    }


def check(who: str, delivered: "Deliveries", owed: "Deliveries") -> None:
    """No rate is said of what did not arrive."""
    if delivered != owed:
        raise JobFailed(
            f"{who}: {delivered} were delivered, {owed} are owed", hint="this is a mistake of ours: report it"
        )


def _joined(made: list[dict[str, Any]], more: dict[str, Any]) -> list[dict[str, Any]]:
    """One row for each mode."""
    rows: dict[str, dict[str, Any]] = {}
    for row in made:
        rows.setdefault(row["delivery"], dict(more)).update(row)
    return list(rows.values())
