"""`branchline bench hops`: what an event costs at each broker on its way, in the core, without Kafka.

Brokers in a line, whose subscriptions are at home at all of them in turn, and a Routing Tree of all filters.
Events enter at the first broker, from JSON bytes, and go on as records do, with their headers as bytes: what
one broker forwards is what the next one reads. Timed is, at each broker, reading the batch and routing it, in
CPU time of one thread; for each copy that came there the median round is said, and what part that is of what
an event costs where it enters, and of what matching takes there: scanning, the index and the walk along the
tree. A second table tells the stages of each broker apart. What the index alone takes, from JSON bytes to
pairs of events and filters, is said beside.

The first pass is checked: who is owed what must be what trying every filter gives, on a sample of the events.
"""

from itertools import islice
from random import Random
from statistics import median
from typing import TYPE_CHECKING, Any

import click

from branchline.kafka.errors import JobFailed
from branchline.ops.bench_facts import facts, facts_text, warning
from branchline.ops.output import emit, say, table
from branchline.ops.settings import json_option
from branchline.ops.sql_texts import sql_text
from branchline.ops.workloads import WORKLOADS

if TYPE_CHECKING:  # compiled loops take seconds to load
    from branchline.ops.line_of_brokers import Line

COLUMNS = (
    *("hop", "copies", "us_per_copy", "slowest", "share", "of_matching", "owed"),
    *("afresh", "exact_checks", "fpt_bytes", "fpt_bytes_max"),
)
MATCHING = ("scan", "match", "walk")
"""The stages at the first broker that look at an event's content."""
SAMPLE = 50
"""Events that are checked."""


@click.command(short_help="Let events go through a line of brokers.")
@click.option(
    "--filters",
    "sizes",
    type=click.IntRange(1, 1_000_000),
    multiple=True,
    default=(1_000, 10_000),
    show_default=True,
    help="Filters in all; may be given several times.",
)
@click.option(
    "--workload",
    "name",
    type=click.Choice(list(WORKLOADS)),
    default="mixed",
    show_default=True,
    help="Filters and events of this kind.",
)
@click.option("--hops", type=click.IntRange(2, 64), default=8, show_default=True, help="Brokers in the line.")
@click.option("--events", type=click.IntRange(1, 1_000_000), default=20_000, show_default=True)
@click.option("--rounds", type=click.IntRange(1, 100), default=5, show_default=True)
@click.option("--seed", default=1, show_default=True, help="Seed of the random filters and events.")
@json_option
def hops(
    sizes: tuple[int, ...], name: str, hops: int, events: int, rounds: int, seed: int, as_json: bool
) -> None:
    """Route random events through brokers in a line, and say what each costs, and what its stages cost.

    \b
    Examples:
      branchline bench hops
      branchline bench hops --filters 10000 --hops 3 --workload words --json
    """
    from branchline.ops.line_of_brokers import STAGES

    found = facts(seed)
    busy = warning(found)
    if busy:
        say(busy)
    if not as_json:
        click.echo(facts_text(found))
    for size in sorted(set(sizes)):
        say(f"{name}: {size:,} filters, {hops} brokers")
        measured = _measure(name, size, hops, events, rounds, seed)
        if as_json:
            for row in measured["rows"]:
                about = {
                    "workload": name,
                    "filters": size,
                    "events": events,
                    "match_us": measured["match_us"],
                }
                emit(about | row | found)
            continue
        click.echo(f"\n{name}, {size:,} filters, {events:,} events; matching alone {measured['match_us']} µs")
        rows = [[_cell(row.get(column)) for column in COLUMNS] for row in measured["rows"]]
        click.echo(table(COLUMNS, rows))
        rows = [
            [_cell(each) for each in (row["hop"], *map(row["stages_us"].get, STAGES))]
            for row in measured["rows"]
        ]
        click.echo("\nof that, µs in each stage")
        click.echo(table(("hop", *STAGES), rows))


def _measure(name: str, size: int, hops: int, events: int, rounds: int, seed: int) -> dict[str, Any]:
    from branchline.ops.line_of_brokers import Line
    from branchline.ops.matchers import MATCHERS, Run

    workload = WORKLOADS[name]
    filters = list(islice(workload.filters(Random(f"{seed} filters")), size))
    random = Random(f"{seed} events")
    drawn = [workload.event(random) for _ in range(events)]
    line = Line([sql_text(each) for each in filters], hops)
    say("routing once, to check what is owed")
    _check(line, drawn)
    run = Run(MATCHERS["access"](filters), line.values(drawn))
    passes: list[list[dict[str, Any]]] = []
    matching: list[float] = []
    for number in range(rounds):
        say(f"round {number + 1} of {rounds}")
        matching.append(run.run(1).cpu_s * 1e6 / events)
        passes.append([row for row, _ in line.send(line.values(drawn))])
    match_us = median(matching)
    rows: list[dict[str, Any]] = []
    for of_hop in zip(*passes, strict=True):
        costs = [each["us_per_copy"] for each in of_hop]
        row = of_hop[0] | {"us_per_copy": round(median(costs), 3), "slowest": round(max(costs), 3)}
        row["stages_us"] = {
            stage: round(median(each["stages_us"][stage] for each in of_hop), 3)
            for stage in of_hop[0]["stages_us"]
        }
        first = (rows or [row])[0]
        matching_us = sum(first["stages_us"][stage] for stage in MATCHING)
        row["share"] = round(median(costs) / first["us_per_copy"], 3)
        row["of_matching"] = round(median(costs) / matching_us, 3)
        rows.append(row)
    return {"match_us": round(match_us, 3), "rows": rows}


def _check(line: "Line", drawn: list[Any]) -> None:
    """What subscribers are owed, at whatever broker, is what their filters say."""
    sample = drawn[:SAMPLE]
    owed = sorted(each for _, found in line.send(line.values(sample)) for each in found)
    if owed != sorted(line.expected(sample)):
        raise JobFailed(
            "what is delivered is not what filters say", hint="this is a mistake of ours: report it"
        )


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
