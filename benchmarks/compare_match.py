"""Matching, beside event-ruler and Lucene's monitor in the same run.

    python -m benchmarks.compare_match

Everybody gets the same filters and events as JSON bytes, on one thread, and must find the same pairs.
"""

import contextlib
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

import click

from benchmarks.cases import CASES, LUCENE, RULER, Case, Done, verdicts
from benchmarks.jars import PeerJars, ensure_peer_jars
from benchmarks.peers import Java, PeerFailed, PeerMatcher, class_path
from benchmarks.rounds import Contender, take_turns
from benchmarks.verdicts import Verdict
from benchmarks.writing import pattern, query, write_lines
from branchline.kafka.home import Home
from branchline.ops.bench_facts import facts, facts_text, warning
from branchline.ops.matchers import MATCHERS, Run, resident_bytes
from branchline.ops.matching_workloads import MATCHING, draw_events, draw_filters
from branchline.ops.output import say, table
from branchline.routing.filters import Filter

BUILD_TIMEOUT_S = 900.0
"""For a peer to take in all filters, and for each of its answers."""
PROGRAMS = {RULER: ("RulerMatcher", pattern), LUCENE: ("LuceneMatcher", query)}


@click.command()
@click.option("--rounds", type=click.IntRange(1, 50), default=5, show_default=True)
@click.option("--passes", type=click.IntRange(1, 50), default=1, show_default=True, help="In each round.")
@click.option("--warm-up", type=click.FloatRange(0, 600), default=15.0, show_default=True, help="Seconds.")
@click.option(
    "--scale", type=click.FloatRange(0.0001, 1), default=1.0, help="Of filters and events, to try it."
)
@click.option("--only", multiple=True, help="Cases whose name contains this; may be given several times.")
@click.option("--seed", default=1, show_default=True)
@click.option("--out", type=click.File("w"), help="All figures, as JSON lines.")
def main(
    rounds: int,
    passes: int,
    warm_up: float,
    scale: float,
    only: tuple[str, ...],
    seed: int,
    out: TextIO | None,
) -> None:
    """Match the same events with the same filters as event-ruler and Lucene's monitor do."""
    found = facts(seed)
    click.echo(facts_text(found))
    busy = warning(found)
    if busy:
        say(busy)
    jars = ensure_peer_jars(Home.default(), say)
    click.echo(", ".join(sorted(_versions(jars))))
    reached: list[Verdict] = []
    earlier: dict[tuple[Any, ...], Done] = {}
    for case in CASES:
        if only and not any(each in case.name for each in only):
            continue
        done, rows = compare(case, jars, rounds, passes, warm_up, scale, seed)
        click.echo(f"\n{case.name}" + (f" (scale {scale})" if scale < 1 else ""))
        names = list(rows[0])
        click.echo(table(names, [[str(row.get(name, "")) for name in names] for row in rows]))
        kind = (case.workload, case.shape, case.slow_share, case.array_share, case.events)
        said = verdicts(done, earlier.get((*kind, case.filters // 10)))
        earlier[(*kind, case.filters)] = done
        for verdict in said:
            click.echo(verdict.line())
        reached += said
        if out is not None:
            for row in rows:
                out.write(json.dumps({"case": case.name, **row, **found}) + "\n")
            out.writelines(json.dumps(verdict.fields()) + "\n" for verdict in said)
            out.flush()
    click.echo("\n" + summary(reached))


def compare(
    case: Case, jars: PeerJars, rounds: int, passes: int, warm_up_s: float, scale: float, seed: int
) -> tuple[Done, list[dict[str, Any]]]:
    """A row for each who took part; ratios are over each of ours."""
    say(case.name)
    workload = MATCHING[case.workload]
    size, count = max(1, round(case.filters * scale)), max(100, round(case.events * scale))
    filters = draw_filters(workload, size, seed, case.shape)
    events = draw_events(workload, count, seed, case.shape, case.slow_share, case.array_share)
    rows: dict[str, dict[str, Any]] = {}
    contenders: dict[str, Contender] = {}
    agreed: set[tuple[int, str]] = set()
    done = Done(case, {})
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="branchline-peers-")))
        write_lines(folder / "events", events)
        for name in case.ours:
            before = resident_bytes()
            built = MATCHERS[name](filters)
            run = Run(built, events)
            matches, checksum, slow = run.check()
            agreed.add((matches, checksum))
            contenders[name] = run
            rows[name] = {
                "build_s": round(built.build_s, 2),
                "mb": round(built.nbytes / 2**20, 1),
                "matches": matches,
                "checksum": checksum,
                "slow_share": round(slow, 3),
            }
            if name == "access":
                per = built.nbytes / sum(map(len, filters))
                done = Done(case, {}, per, built.build_s, (resident_bytes() - before) / 2**20)
        for name in case.peers:
            try:
                peer = _start(stack, name, jars, folder, filters)
                matches, checksum = peer.check()
            except PeerFailed as failed:
                say(f"  {name} is out: {failed}")
                rows[name] = {"out": str(failed)}
                continue
            agreed.add((matches, checksum))
            contenders[name] = peer
            rows[name] = {
                "build_s": round(peer.build_s, 2),
                "mb": round(peer.heap_bytes / 2**20, 1),
                "matches": matches,
                "checksum": checksum,
            }
        if len(agreed) > 1:
            raise click.ClickException(f"they do not match the same: {rows}")
        timed = take_turns(contenders, count, rounds, passes, warm_up_s, say)
    for name, each in timed.items():
        done.us[name] = each.us
        rows[name] |= each.fields()
    _set_ratios(case, done, rows)
    columns = dict.fromkeys(column for row in rows.values() for column in row)
    return done, [
        {"matcher": name, **{column: row.get(column, "") for column in columns}} for name, row in rows.items()
    ]


def _start(
    stack: contextlib.ExitStack, name: str, jars: PeerJars, folder: Path, filters: Sequence[Filter]
) -> PeerMatcher:
    program, write = PROGRAMS[name]
    file = folder / program
    write_lines(file, map(write, filters))
    place = class_path(jars.ruler if name == RULER else jars.lucene)
    java = stack.enter_context(
        Java(program, place, [str(file), str(folder / "events")], folder / f"{program}.log")
    )
    return PeerMatcher(java, BUILD_TIMEOUT_S)


def _set_ratios(case: Case, done: Done, rows: dict[str, dict[str, Any]]) -> None:
    for ours in case.ours:
        for peer in case.peers:
            if peer in done.us:
                rows[peer][f"{ours}_is"] = f"{done.us[peer] / done.us[ours]:.1f}x"
                cpu = rows[peer]["cpu_us_per_event"] / rows[ours]["cpu_us_per_event"]
                rows[peer][f"{ours}_cpu_is"] = f"{cpu:.1f}x"


def _versions(jars: PeerJars) -> list[str]:
    wanted = ("event-ruler-", "lucene-monitor-", "jackson-databind-")
    files = [*jars.ruler.glob("*.jar"), *jars.lucene.glob("*.jar")]
    return list({file.stem for file in files if file.name.startswith(wanted)})


def summary(reached: Sequence[Verdict]) -> str:
    """How many targets were met, and each that was not."""
    missed = [each for each in reached if not each.met]
    lines = [f"{len(reached) - len(missed)} of {len(reached)} targets met"]
    return "\n".join([*lines, *(each.line() for each in missed)])


if __name__ == "__main__":
    main()
