"""`branchline bench match`: from JSON bytes to matching filters, on one thread, and how that grows.

For each workload and each number of filters, events are matched in batches, again and again. The first pass
is checked: a sample of its events is matched once more by trying every filter, and the pairs must be the
same. Then come the rounds that are timed. Said is the median round, with the quickest and the slowest beside
it, and how many times the cost at the number of filters before it is.
"""

from itertools import pairwise
from statistics import median
from typing import Any

import click

from branchline.kafka.errors import JobFailed
from branchline.ops.bench_facts import facts, facts_text, warning
from branchline.ops.matching_workloads import MATCHING, Shape, draw_events, draw_filters
from branchline.ops.numbers import FiniteRange
from branchline.ops.output import emit, say, table
from branchline.ops.settings import json_option

SIZES = (100, 1_000, 10_000, 100_000)
MORE = {"equalities": (1_000_000,), "equalities-range": (1_000_000,), "cw": (250_000, 1_000_000)}
"""Numbers of filters beyond those that every workload is matched with."""
CHECKED_TRIES = 200_000
"""Filters tried in all for checking; at least one event is checked."""
COLUMNS = (
    *("filters", "events_per_s", "slowest", "fastest", "us_per_event", "growth", "matches_per_event"),
    *("slow_share", "build_s", "index_mb", "bytes_per_constraint", "resident_mb", "checked"),
)


@click.command(short_help="Match events against many filters, from JSON bytes.")
@click.option(
    "--workload",
    "names",
    type=click.Choice(list(MATCHING)),
    multiple=True,
    help="Filters and events of this kind; may be given several times. Default: all kinds.",
)
@click.option(
    "--filters",
    "sizes",
    type=click.IntRange(1, 10_000_000),
    multiple=True,
    help="How many; may be given several times. Default: 100 to 100,000, of some kinds to a million.",
)
@click.option("--events", type=click.IntRange(1, 1_000_000), default=20_000, show_default=True)
@click.option("--shape", type=click.Choice([each.value for each in Shape]), default="flat", show_default=True)
@click.option(
    "--slow-share",
    type=FiniteRange(0, 0.2),
    default=0.0,
    show_default=True,
    help="Share of the events, up to 0.2, that compiled loops leave to the slow path.",
)
@click.option(
    "--array-share",
    type=FiniteRange(0, 1),
    default=0.0,
    show_default=True,
    help="Share of the others with an array that filters may choose from.",
)
@click.option(
    "--matcher", type=click.Choice(["access", "tree", "naive"]), default="access", show_default=True
)
@click.option("--rounds", type=click.IntRange(1, 100), default=5, show_default=True)
@click.option("--seed", default=1, show_default=True, help="Seed of the random filters and events.")
@json_option
def match(
    names: tuple[str, ...],
    sizes: tuple[int, ...],
    events: int,
    shape: str,
    slow_share: float,
    array_share: float,
    matcher: str,
    rounds: int,
    seed: int,
    as_json: bool,
) -> None:
    """Match random events against random filters, on one thread, from JSON bytes to pairs.

    \b
    Examples:
      branchline bench match
      branchline bench match --workload cw --filters 250000 --filters 1000000
      branchline bench match --workload equalities --shape nested --slow-share 0.1 --matcher tree --json
    """
    found = facts(seed)
    busy = warning(found)
    if busy:
        say(busy)
    if not as_json:
        click.echo(facts_text(found))
    for name in names or MATCHING:
        rows: list[dict[str, Any]] = []
        for size in sorted(set(sizes)) or (*SIZES, *MORE.get(name, ())):
            say(f"{name}, {shape}: {size:,} filters")
            rows.append(
                {
                    **{"workload": name, "shape": shape, "matcher": matcher, "filters": size},
                    **measure(
                        name, size, events, Shape(shape), slow_share, array_share, matcher, rounds, seed
                    ),
                }
            )
            _grown(rows)
            if as_json:
                emit(rows[-1] | found)
        if not as_json:
            click.echo(f"\n{name}, {shape}, {matcher}, {events:,} events")
            click.echo(table(COLUMNS, [[_cell(row.get(column)) for column in COLUMNS] for row in rows]))


def measure(
    name: str,
    size: int,
    events: int,
    shape: Shape,
    slow_share: float,
    array_share: float,
    matcher: str,
    rounds: int,
    seed: int,
) -> dict[str, Any]:
    """What matching these events against so many filters costs."""
    from branchline.ops.matchers import MATCHERS, Run, resident_bytes  # compiled loops take seconds to load

    workload = MATCHING[name]
    filters = draw_filters(workload, size, seed, shape)
    texts = draw_events(workload, events, seed, shape, slow_share, array_share)
    MATCHERS[matcher](filters[:10])  # loads the compiled loops
    before = resident_bytes()
    built = MATCHERS[matcher](filters)
    run = Run(built, texts)
    matches, checksum, slow = run.check()
    resident = resident_bytes() - before
    sample = texts[: max(1, min(events, CHECKED_TRIES // size))]
    if Run(built, sample).check()[:2] != Run(MATCHERS["naive"](filters), sample).check()[:2]:
        raise JobFailed(
            f"{matcher} does not match what filters say", hint="this is a mistake of ours: report it"
        )
    passes = [run.run(1) for _ in range(rounds)]
    rates = sorted(events / each.wall_s for each in passes)
    row = {
        "events": events,
        "seed": seed,
        "events_per_s": round(median(rates)),
        "slowest": round(rates[0]),
        "fastest": round(rates[-1]),
        "us_per_event": round(1e6 / median(rates), 3),
        "cpu_us_per_event": round(median(each.cpu_s for each in passes) * 1e6 / events, 3),
        "matches_per_event": round(matches / events, 2),
        "checksum": checksum,
        "slow_share": round(slow, 4),
        "build_s": round(built.build_s, 2),
        "resident_mb": round(resident / 2**20, 1),
        "checked": len(sample),
    }
    if built.nbytes:
        row["index_mb"] = round(built.nbytes / 2**20, 1)
        row["bytes_per_constraint"] = round(built.nbytes / sum(map(len, filters)), 1)
    return row


def _grown(rows: list[dict[str, Any]]) -> None:
    """Beside each cost, how many times that of the number of filters before it is."""
    for before, row in pairwise(rows):
        row["growth"] = round(row["us_per_event"] / before["us_per_event"], 2)


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
