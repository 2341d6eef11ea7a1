"""From Kafka to Kafka, beside a consumer loop around event-ruler and Spark alone, in the same run.

    python -m benchmarks.compare_pipeline

Everybody reads the same backlog from the same topic of the same Kafka, on two cores, and must deliver what
subscribers are owed: counts and checksums are those of what is in their topics afterwards.
"""

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, TextIO

import click

from benchmarks.compare_match import summary
from benchmarks.jars import ensure_peer_jars
from benchmarks.peers import Java, class_path
from benchmarks.verdicts import Verdict
from benchmarks.writing import pattern, write_lines
from branchline.kafka.admin import create_topics
from branchline.kafka.home import Home
from branchline.kafka.topics import OUT
from branchline.ops.bench_facts import facts, facts_text, warning
from branchline.ops.bench_pipeline import MODES, Runs, check, rate_fields
from branchline.ops.output import say, table
from branchline.ops.pipeline_latency import Latency, measure_latency
from branchline.ops.pipeline_load import Load
from branchline.ops.pipeline_outbox import Outbox
from branchline.ops.pipeline_site import Rate
from branchline.ops.pipeline_started import CORES, Started, started
from branchline.streaming.router import Delivery

BUILD_TIMEOUT_S = 900.0
WORK_TIMEOUT_S = 1_800.0
HEAP_MB = 4_096
LEADS = ((100_000, 8.0), (10_000, 3.0))
"""From so many filters on, how many times the loop's events a second are wanted."""
OF_SPARK, OF_AT_LEAST_ONCE = 0.5, 0.8


@click.command()
@click.option("--filters", type=click.IntRange(1, 1_000_000), default=10_000, show_default=True)
@click.option("--subscribers", type=click.IntRange(1, 5_000), default=1_000, show_default=True)
@click.option("--events", type=click.IntRange(100, 5_000_000), default=200_000, show_default=True)
@click.option("--batch", type=click.IntRange(100, 1_000_000), default=100_000, show_default=True)
@click.option("--rounds", type=click.IntRange(1, 20), default=3, show_default=True)
@click.option("--rate", type=click.FloatRange(0, 100_000), default=500.0, show_default=True)
@click.option("--seconds", type=click.FloatRange(1, 3_600), default=60.0, show_default=True)
@click.option("--warm-up", type=click.FloatRange(0, 3_600), default=60.0, show_default=True)
@click.option("--workload", default="equalities", show_default=True)
@click.option("--slow-share", type=click.FloatRange(0, 0.2), default=0.0, show_default=True)
@click.option("--trees/--no-trees", default=True, show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option("--out", type=click.File("a"), help="All figures, as JSON lines, behind what is there.")
def main(
    filters: int,
    subscribers: int,
    events: int,
    batch: int,
    rounds: int,
    rate: float,
    seconds: float,
    warm_up: float,
    workload: str,
    slow_share: float,
    trees: bool,
    seed: int,
    out: TextIO | None,
) -> None:
    """Route a backlog and single events, beside a loop around event-ruler and Spark with no operator.

    --rate, --seconds and --warm-up are for latency, which is not measured at a rate of 0.
    """
    found = facts(seed)
    click.echo(facts_text(found))
    busy = warning(found)
    if busy:
        say(busy)
    jars = ensure_peer_jars(Home.default(), say)
    drawn = max(events + batch, round(rate * (warm_up + seconds)))
    load = Load.drawn(workload, filters, min(subscribers, filters), drawn, slow_share, seed)
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(started())
        runs = Runs(place, load, 1, batch, events + batch, trees)
        say("starting the loops around event-ruler")
        write_lines(place.folder / "patterns", map(pattern, load.filters))
        loops = {
            mode: stack.enter_context(Loop.started(place, runs, jars.ruler, mode, batch)) for mode in MODES
        }
        rates = _backlogs(runs, loops, rounds)
        latencies = _latencies(runs, loops, rate, warm_up, seconds) if rate else {}
    rows = [
        {
            "who": who,
            **rate_fields(each),
            "delivered": "" if who == "spark" else runs.owed.count,
            "checksum": "" if who == "spark" else runs.owed.checksum,
            "slow_share": round(runs.slow_share, 3) if who in MODES else "",
            "p50_ms": latencies[who].p50_ms if who in latencies else "",
            "p95_ms": latencies[who].p95_ms if who in latencies else "",
        }
        for who, each in rates.items()
    ]
    names = list(rows[0])
    click.echo(f"\n{workload}, {filters:,} filters of {load.subscribers:,} subscribers, {events:,} events")
    click.echo(table(names, [[str(row[name]) for name in names] for row in rows]))
    said = verdicts(filters, {who: median(each.per_s for each in mine) for who, mine in rates.items()})
    for verdict in said:
        click.echo(verdict.line())
    for mode in MODES:
        if mode in latencies:
            ours, theirs = latencies[mode], latencies[f"loop, {mode}"]
            verb = "is behind" if ours.p50_ms > theirs.p50_ms else "is ahead"
            click.echo(
                f"latency, {mode}, {ours.rate:.0f} events/s: p50 {ours.p50_ms} ms, p95 {ours.p95_ms} ms; "
                f"the loop p50 {theirs.p50_ms} ms, p95 {theirs.p95_ms} ms: the router {verb}"
            )
    click.echo("\n" + summary(said))
    if out is not None:
        facts_of_load = {"filters": filters, "subscribers": load.subscribers, "workload": workload}
        for row in rows:
            out.write(json.dumps({**facts_of_load, **row, **found}) + "\n")
        out.writelines(json.dumps({**facts_of_load, **verdict.fields()}) + "\n" for verdict in said)


@dataclass(frozen=True, slots=True)
class Loop:
    """The consumer loop in a process of its own, and the topics that it writes to."""

    java: Java
    outbox: Outbox
    batch: int

    @staticmethod
    @contextlib.contextmanager
    def started(place: Started, runs: Runs, ruler: Path, mode: str, batch: int) -> Any:
        """A loop that has taken in all filters."""
        prefix = f"loop-{mode}.out."
        topics = [f"{prefix}{number}" for number in range(runs.load.subscribers)]
        create_topics(place.cluster, dict.fromkeys(topics, OUT))
        arguments = [place.cluster.bootstrap, runs.site.entry, prefix, str(place.folder / "patterns")]
        arguments += [str(runs.load.subscribers), mode, str(CORES)]
        with Java(
            *("RulerLoop", class_path(ruler, place.jars.kafka), arguments),
            log=place.folder / f"loop-{mode}.log",
            heap_mb=HEAP_MB,
        ) as java:
            java.hear(BUILD_TIMEOUT_S)
            yield Loop(java, Outbox(place.cluster, topics), batch)

    def work(self, mode: str, runs: Runs, start: list[int]) -> Rate:
        """Work off what is in the topic from these offsets on."""
        mark = self.outbox.mark()
        offsets = ",".join(map(str, start))
        told = self.java.ask(f"work {runs.events} {self.batch} {offsets}", WORK_TIMEOUT_S)
        check(f"loop, {mode}", self.outbox.since(mark), runs.owed)
        return Rate(told["timed"], told["ns"] / 1e9, 0, 0, 0, {"delivered": told["delivered"]})


def _backlogs(runs: Runs, loops: dict[str, Loop], rounds: int) -> dict[str, list[Rate]]:
    """Rounds that take turns; the first, in which everybody warms up, is not counted."""
    rates: dict[str, list[Rate]] = {}
    for number in range(rounds + 1):
        taken: dict[str, Rate] = {}
        for mode in MODES:
            start = runs.site.publish(runs.backlog_events)
            taken[mode] = runs.route(mode)
            taken[f"loop, {mode}"] = loops[mode].work(mode, runs, start)
        taken["spark"] = runs.site.move(start, runs.events, number)
        which = f"round {number} of {rounds}" if number else "warm-up"
        say(f"  {which}, events/s: " + ", ".join(f"{who} {rate.per_s:,.0f}" for who, rate in taken.items()))
        if number:
            for who, rate in taken.items():
                rates.setdefault(who, []).append(rate)
    return rates


def _latencies(
    runs: Runs, loops: dict[str, Loop], rate: float, warm_up_s: float, seconds: float
) -> dict[str, Latency]:
    found: dict[str, Latency] = {}
    site = runs.site

    def measured(outbox: Outbox) -> Latency:
        return measure_latency(site.cluster, site.entry, outbox, runs.load, rate, warm_up_s, seconds)

    # The router first: what is published for the loops, it would have to work off.
    for mode in MODES:
        query = site.start(Delivery(mode))
        try:
            found[mode] = measured(runs.outbox)
        finally:
            query.stop()
    for mode, loop in loops.items():
        loop.java.tell("follow " + ",".join(map(str, site.publish([]))))
        found[f"loop, {mode}"] = measured(loop.outbox)
        loop.java.ask("stop", WORK_TIMEOUT_S)
    for who, each in found.items():
        say(f"  {who}, {each.rate:.0f} events/s: p50 {each.p50_ms} ms, p95 {each.p95_ms} ms")
        if each.missing:
            raise click.ClickException(f"{who}: {each.missing} deliveries never came")
    return found


def verdicts(filters: int, per_s: dict[str, float]) -> list[Verdict]:
    """What is aimed at, of events a second."""
    ours, once = (per_s[mode] for mode in MODES)
    name = f"pipeline, {filters:,} filters"
    made = []
    for least, wanted in LEADS:
        if filters >= least:
            made.append(Verdict(f"{name}: router over loop", ours / per_s[f"loop, {MODES[0]}"], wanted))
            break
    return [
        *made,
        Verdict(f"{name}: router of Spark alone", ours / per_s["spark"], OF_SPARK),
        Verdict(f"{name}: exactly once of at least once", once / ours, OF_AT_LEAST_ONCE),
    ]


if __name__ == "__main__":
    main()
