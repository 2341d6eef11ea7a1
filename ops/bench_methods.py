"""`branchline bench methods`: what each way to match content costs, on one workload, and how that grows.

For each number of filters, each matching gets the same interests, divided among so many interfaces, and the
same events, one by one as a broker asks. Building is adding all interests and the first match, which is when
buffered changes are filed; for `tree` what the Tree Optimizer does is in it. It is built once more to see how
much memory it takes, beside the compiled filters that it is given.

All must find the same: whoever one finds for certain no other may miss, and for a sample of the events every
filter is asked.
"""

import gc
import time
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from random import Random
from statistics import median
from typing import Any

import click

from branchline.kafka.errors import ConfigError, JobFailed
from branchline.ops.bench_facts import facts, facts_text, warning
from branchline.ops.matching_workloads import MATCHING as WORKLOADS
from branchline.ops.matching_workloads import Shape, draw_filters
from branchline.ops.memory import allocated_bytes
from branchline.ops.output import emit, say, table
from branchline.ops.settings import json_option
from branchline.ops.sql_texts import sql_text
from branchline.routing.compiling import Compiled, compile_filter
from branchline.routing.control import Identity
from branchline.routing.event import Event
from branchline.routing.methods.naming import MATCHING, Methods, make_matching
from branchline.routing.methods.protocols import Interest, Matching
from branchline.routing.methods.words import unknown
from branchline.routing.prefix.optimizer import Optimizer, Settings
from branchline.routing.prefix.places import Owner
from branchline.routing.prefix.trees import Trees
from branchline.routing.values import JsonValue

SIZES = (100, 1_000, 10_000)
CHECKED_TRIES = 200_000
"""Filters asked in all for checking; at least one event is checked."""
WARM_UP = 10
COLUMNS = (
    *("matching", "filters", "build_us_per_constraint", "bytes_per_constraint", "us_per_event"),
    *("build_growth", "match_growth", "found_per_event", "doubtful_per_event"),
)

Events = Sequence[dict[str, JsonValue]]
Finds = list[tuple[set[Owner], set[Owner]]]
"""For each event who was found for certain, and who was found at all."""


@click.command(short_help="Compare the ways to match content, event by event.")
@click.option(
    "--matching",
    "names",
    multiple=True,
    metavar="NAME",
    help="This matching, perhaps with a number, as in counting(0); may be given several times. Default: all.",
)
@click.option(
    "--workload",
    type=click.Choice([name for name in WORKLOADS if name != "spellings"]),
    default="cw",
    show_default=True,
    help="Filters and events of this kind.",
)
@click.option(
    "--filters",
    "sizes",
    type=click.IntRange(1, 1_000_000),
    multiple=True,
    default=SIZES,
    show_default=True,
    help="How many; may be given several times.",
)
@click.option(
    "--interfaces",
    type=click.IntRange(0, 1_000_000),
    default=20,
    show_default=True,
    help="Whom the filters are of, in turn; 0 for one filter each.",
)
@click.option("--events", type=click.IntRange(1, 100_000), default=100, show_default=True)
@click.option("--rounds", type=click.IntRange(1, 100), default=3, show_default=True)
@click.option("--seed", default=1, show_default=True, help="Seed of the random filters and events.")
@json_option
def methods(
    names: tuple[str, ...],
    workload: str,
    sizes: tuple[int, ...],
    interfaces: int,
    events: int,
    rounds: int,
    seed: int,
    as_json: bool,
) -> None:
    """Match the same events against the same filters by every method, one event at a time.

    \b
    Examples:
      branchline bench methods
      branchline bench methods --matching counting --matching 'counting(0)' --interfaces 0 --filters 20000
    """
    for name in names:
        wrong = unknown("matching", name, MATCHING)
        if wrong is not None:
            raise ConfigError(wrong, hint="see `branchline bench methods --help`")
    found = facts(seed)
    busy = warning(found)
    if busy:
        say(busy)
    if not as_json:
        click.echo(facts_text(found))
    random = Random(f"{seed} events")
    drawn = [WORKLOADS[workload].event(random) for _ in range(events)]
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in names or MATCHING}
    for size in sorted(set(sizes)):
        interests = _interests(workload, size, interfaces or size, seed)
        finds: dict[str, Finds] = {}
        for name, mine in rows.items():
            say(f"{workload}: {size:,} filters of {interfaces or size:,} interfaces, {name}")
            row, finds[name] = _measure(name, interests, drawn, rounds)
            shown = {"workload": workload, "interfaces": interfaces or size, "filters": size}
            mine.append({"matching": name, **shown, **row})
            _grown(mine)
        _check(interests, drawn, finds)
        if as_json:
            for mine in rows.values():
                emit(mine[-1] | found)
    if not as_json:
        flat = [row for mine in rows.values() for row in mine]
        click.echo(f"\n{workload}, {interfaces or 'as many as filters'} interfaces, {events:,} events")
        click.echo(table(COLUMNS, [[_cell(row.get(column)) for column in COLUMNS] for row in flat]))


def _interests(workload: str, size: int, interfaces: int, seed: int) -> list[Interest]:
    made = []
    for number, filter_ in enumerate(draw_filters(WORKLOADS[workload], size, seed, Shape.FLAT)):
        compiled = compile_filter("sql", sql_text(filter_))
        assert isinstance(compiled, Compiled), "what is drawn can be matched"
        owner = f"i{number % interfaces}"
        made.append(Interest(Identity(owner, f"s{number}", "one"), compiled, owner))
    return made


def _built(name: str, interests: Sequence[Interest]) -> Matching:
    """A matching that has all interests and has filed them."""
    trees = Trees()
    if name == "tree":
        optimizer = Optimizer(1, Settings(limit_ms=0))
        for each in interests:
            optimizer.subscribe(each.compiled.cover)
        for update in optimizer.updates(0):
            trees.apply(update)
    matching = make_matching(Methods(matching=name), trees)
    for each in interests:
        matching.add(each)
    matching.match(Event({}))
    return matching


def _measure(
    name: str, interests: Sequence[Interest], events: Events, rounds: int
) -> tuple[dict[str, Any], Finds]:
    constraints = sum(len(filter_) for each in interests for filter_ in each.compiled.cover)
    warm = _built(name, interests[:WARM_UP])  # loads what is loaded when it is first needed
    warm.match(Event(events[0]))
    gc.collect()
    started = time.process_time()
    matching = _built(name, interests)
    build_s = time.process_time() - started
    finds: Finds = []
    counts: Counter[str] = Counter()
    for attributes in events:
        found = matching.match(Event(attributes))
        finds.append((set(found.certain), found.certain | found.doubtful))
        counts.update(found.counts)
    passes = [_pass_s(matching, events) for _ in range(rounds)]
    return {
        "constraints": constraints,
        "build_us_per_constraint": round(build_s * 1e6 / constraints, 2),
        "bytes_per_constraint": round(allocated_bytes(lambda: _built(name, interests)) / constraints, 1),
        "us_per_event": round(median(passes) * 1e6 / len(events), 1),
        "found_per_event": round(sum(len(each) for _, each in finds) / len(events), 2),
        "doubtful_per_event": round(sum(len(each - sure) for sure, each in finds) / len(events), 2),
        "counts": {count: round(total / len(events), 2) for count, total in counts.items()},
    }, finds


def _pass_s(matching: Matching, events: Events) -> float:
    looked_at = [Event(each) for each in events]
    started = time.process_time()
    for event in looked_at:
        matching.match(event)
    return time.process_time() - started


def _grown(rows: list[dict[str, Any]]) -> None:
    """Beside costs, how many times those at the number of filters before they are."""
    for before, row in pairwise(rows):
        row["match_growth"] = round(row["us_per_event"] / before["us_per_event"], 2)
        totals = [each["build_us_per_constraint"] * each["constraints"] for each in (before, row)]
        row["build_growth"] = round(totals[1] / totals[0], 2)


def _check(interests: Sequence[Interest], events: Events, finds: dict[str, Finds]) -> None:
    """Whoever is found for certain is found by all; in the sample nobody is missing and nobody too many."""
    sample = max(1, min(len(events), CHECKED_TRIES // len(interests)))
    asked = []
    for attributes in events[:sample]:
        event = Event(attributes)
        asked.append({each.owner for each in interests if event.may_match(each.compiled.cover)})
    for place, _ in enumerate(events):
        certain = set().union(*(each[place][0] for each in finds.values()))
        for name, mine in finds.items():
            sure, everybody = mine[place]
            wrong = not certain <= everybody
            if place < sample:
                wrong = wrong or not sure <= asked[place] <= everybody
            if wrong:
                raise JobFailed(
                    f"{name} does not find what filters say for event {place}",
                    hint="this is a mistake of ours: report it",
                )


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
