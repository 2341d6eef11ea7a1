"""`branchline compare`: one workload by several methods, side by side; who gets what must be the same."""

from pathlib import Path
from typing import Any

import click

from branchline.kafka.errors import ConfigError
from branchline.ops.bench_facts import facts, facts_text, warning
from branchline.ops.compare_loads import NAMES, Load, drawn, read_load, taken
from branchline.ops.compare_plots import draw_bars
from branchline.ops.compare_runs import FIGURES, Result, disagreement, simulate
from branchline.ops.durations import duration_ms
from branchline.ops.methods import FITTING
from branchline.ops.output import emit, say, table
from branchline.ops.overlay import SMALL_MOST
from branchline.ops.settings import cluster_options, find_cluster, json_option, make_topics
from branchline.routing.methods.choosing import read_methods, spelled
from branchline.routing.methods.naming import Methods

USUALLY = (
    "prefix",
    "rematch",
    "rematch+counting",
    "rematch+access",
    "always-reuse+counting",
    "rematch+counting+covering",
    "prefix+tell-covering",
)
"""What is compared unless somebody says: each way to forward and the matchings that are fit for work."""

BROKERS, SUBSCRIPTIONS, EVENTS = 7, 1_000, 1_000
SMALL_BROKERS, SMALL_SUBSCRIPTIONS, SMALL_EVENTS = 3, 60, 60
"""The same on real jobs."""
EXIT_DIFFERS = 1


@click.command(short_help="Compare methods on one workload, simulated or on the real jobs.")
@click.option(
    "--methods",
    "words",
    multiple=True,
    metavar="WORD",
    help="Methods joined by +, as in rematch+counting+covering; may be given several times. "
    f"Default: {', '.join(USUALLY)}.",
)
@click.option("--workload", metavar="NAME", help=f"Draw this one: {', '.join(NAMES)}. Default: cw.")
@click.option(
    "--file",
    type=click.Path(path_type=Path),
    help='Read it: lines like {"filter": "price < 100"} and {"event": {"price": 42}}.',
)
@click.option("--topic", help="Take what entered by this topic, with the namespace's subscriptions.")
@click.option("--since", type=duration_ms, default="1h", show_default=True, help="How far back in --topic.")
@click.option(
    "--brokers", type=click.IntRange(1, SMALL_MOST), help=f"In a balanced tree. Default: {BROKERS}."
)
@click.option(
    "--subscriptions", type=click.IntRange(1, 1_000_000), help=f"To draw. Default: {SUBSCRIPTIONS:,}."
)
@click.option(
    "--events", type=click.IntRange(1, 1_000_000), help=f"To draw, or to take at most. Default: {EVENTS:,}."
)
@click.option(
    "--on",
    "where",
    type=click.Choice(["simulator", "spark"]),
    default="simulator",
    show_default=True,
    help="The simulated network, or real jobs on an embedded Kafka: "
    f"{SMALL_BROKERS} brokers, {SMALL_SUBSCRIPTIONS} subscriptions and {SMALL_EVENTS} events by default.",
)
@click.option("--seed", default=1, show_default=True, help="Seed of what is drawn.")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="Write the table and a plot (SVG) here."
)
@cluster_options
@json_option
@click.pass_context
def compare(
    ctx: click.Context,
    words: tuple[str, ...],
    workload: str | None,
    file: Path | None,
    topic: str | None,
    since: int,
    brokers: int | None,
    subscriptions: int | None,
    events: int | None,
    where: str,
    seed: int,
    out: Path | None,
    bootstrap: str | None,
    client_properties: str | None,
    namespace: str,
    as_json: bool,
) -> None:
    """Put one workload through several methods, and show what each costs.

    Who gets what must be the same for all of them, and is checked: if it is not, that is said, and the
    command exits with 1. Figures but for processor time and memory are the same for the same seed. What a
    dissemination asks of clients is done: publishers advertise, and subscribers spare brokers work.

    \b
    Examples:
      branchline compare
      branchline compare --workload auctions --methods prefix --methods rematch+counting --out compared
      branchline compare --methods rematch+tell-covering+tell-poset --methods rematch+tell-covering+tell-rto
      branchline compare --file mine.jsonl --json
      branchline compare --topic branchline.in.main --since 1h
      branchline compare --on spark --methods prefix --methods rematch
    """
    several = [_read(word) for word in words or USUALLY]
    if sum(each is not None for each in (workload, file, topic)) > 1:
        raise ConfigError("several workloads are named", hint="give one of --workload, --file and --topic")
    small = where == "spark"
    count = brokers or (SMALL_BROKERS if small else BROKERS)
    most = events or (SMALL_EVENTS if small else EVENTS)
    if file is not None:
        load = read_load(file, count)
    elif topic is not None:
        topics = make_topics(namespace)
        load = taken(find_cluster(bootstrap, client_properties), topics, topic, since, most)
    else:
        asked = subscriptions or (SMALL_SUBSCRIPTIONS if small else SUBSCRIPTIONS)
        load = drawn(workload or "cw", count, asked, most, seed)
    found = facts(seed)
    busy = warning(found)
    if busy and not small:
        say(busy)
    results = _results(load, several, small, seed)
    _show(load, results, found, out, where, as_json)
    wrong = disagreement(results)
    if wrong is not None:
        say(f"verdict: {wrong}")
        ctx.exit(EXIT_DIFFERS)
    say(f"verdict: all {len(results)} deliver the same, which is what is owed")


def _read(word: str) -> Methods:
    read = read_methods(word)
    if isinstance(read, str):
        raise ConfigError(f"--methods {word}: {read}", hint=FITTING)
    return read


def _results(load: Load, several: list[Methods], small: bool, seed: int) -> list[Result]:
    say(
        f"{load.name}: {len(load.subscriptions):,} subscriptions and {len(load.events):,} events "
        f"at {len(load.brokers)} brokers"
    )

    def beat(methods: Methods) -> Any:
        return lambda message: say(f"  {spelled(methods)}: {message}")

    if small:
        from branchline.ops.compare_spark import run_on_spark

        return list(run_on_spark(load, several, beat))
    return [simulate(load, methods, seed, beat(methods)) for methods in several]


def _show(
    load: Load, results: list[Result], found: dict[str, Any], out: Path | None, where: str, as_json: bool
) -> None:
    rows = [result.row() for result in results]
    head = {
        "workload": load.name,
        "on": where,
        "brokers": len(load.brokers),
        "subscriptions": len(load.subscriptions),
        "events": len(load.events),
    }
    said = {**head, "same": disagreement(results) is None, "results": rows, **found}
    text = table(
        ["methods", *FIGURES], [[_cell(row[name]) for name in ("methods", *FIGURES)] for row in rows]
    )
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / f"{load.name}.txt").write_text(f"{facts_text(found)}\n\n{text}\n", encoding="utf-8")
        draw_bars(load.name, FIGURES, rows, out / f"{load.name}.svg")
    if as_json:
        emit(said)
        return
    click.echo(text)
    for row in rows:
        if row["counts"]:
            counts = ", ".join(f"{name} {count:,}" for name, count in row["counts"].items())
            click.echo(f"{row['methods']} counts {counts}")
    if out is not None:
        click.echo(f"files in {out}: {load.name}.txt, {load.name}.svg")


def _cell(value: object) -> str:
    return "-" if value is None else value if isinstance(value, str) else f"{value:,}"
