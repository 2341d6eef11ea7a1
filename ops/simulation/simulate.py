"""`branchline simulate`: run what a file describes, and write its table and its plots."""

import os
from pathlib import Path

import click

from branchline.ops.output import emit, say, table
from branchline.ops.settings import json_option
from branchline.ops.simulation.kind import SEED, Case, Result, Row, Value
from branchline.ops.simulation.plots import draw
from branchline.ops.simulation.running import run_cases
from branchline.ops.simulation.simulation import SEED_MAX, Simulation, read_simulation
from branchline.ops.simulation.tables import check_rows, write_tables

EXIT_FAILED = 1


@click.command(short_help="Run a simulation from a file; write tables and plots.")
@click.argument("config", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the results; made if it is not there. Default: simulations/NAME, here.",
)
@click.option(
    "--seed",
    "seeds",
    type=click.IntRange(0, SEED_MAX),
    multiple=True,
    help="Run with this seed instead of the file's; may be given several times.",
)
@click.option(
    "--processes",
    type=click.IntRange(1, 1_024),
    default=lambda: os.cpu_count() or 1,
    show_default="all cores",
    help="Cases that are run at a time.",
)
@json_option
@click.pass_context
def simulate(
    ctx: click.Context, config: Path, out: Path | None, seeds: tuple[int, ...], processes: int, as_json: bool
) -> None:
    """Run the simulation that the TOML file CONFIG describes, and write its table and its plots.

    The same file and the same seeds give the same results to the byte, on however many processes; only
    CPU times, where a kind measures them, differ. Needs neither Kafka nor Java. Exits with 1 if a case finds
    something wrong.

    \b
    Examples:
      branchline simulate docs/simulations/tree-growth.toml
      branchline simulate docs/simulations/query-sets.toml --seed 7 --seed 8 --out results --json
    """
    simulation = read_simulation(config).with_seeds(seeds)
    folder = out or Path("simulations") / simulation.name
    # Before the work, so that a folder that cannot be made costs no time.
    folder.mkdir(parents=True, exist_ok=True)
    cases = simulation.cases()
    say(f"{simulation.name}: {simulation.title}")
    results = run_cases(simulation.kind.name, simulation.spec, cases, processes, say)
    rows = [_whole(case, row) for case, result in zip(cases, results, strict=True) for row in result.rows]
    files = _write(simulation, rows, folder)
    failures = [
        {**_whole(case, {}), "failure": failure}
        for case, result in zip(cases, results, strict=True)
        for failure in result.failures
    ]
    if as_json:
        found = {
            "cases": len(cases),
            "rows": len(rows),
            "failures": failures,
            "files": [str(file) for file in files],
        }
        emit({"name": simulation.name, "kind": simulation.kind.name, **found})
    else:
        click.echo(_shown(simulation, cases, results))
        click.echo(f"\n{len(rows)} rows; files in {folder}:")
        click.echo("\n".join(f"  {file.name}" for file in files))
        _tell_verdict(simulation, failures)
    if failures:
        ctx.exit(EXIT_FAILED)


def _whole(case: Case, row: Row) -> Row:
    return {SEED.name: case.seed, **case.swept, **row}


def _write(simulation: Simulation, rows: list[Row], folder: Path) -> list[Path]:
    columns = simulation.kind.table
    check_rows(columns, rows)
    files = write_tables(simulation.name, columns, rows, folder)
    for plot in simulation.plots:
        files += draw(simulation.name, plot, columns, rows, folder)
    return files


def _shown(simulation: Simulation, cases: list[Case], results: list[Result]) -> str:
    """The last row of each case, in the columns that the kind chose."""
    kind = simulation.kind
    names = [*(column.name for column in kind.swept), SEED.name, *kind.shown]
    last = [
        # A seed is a name, and is written like one.
        {**_whole(case, result.rows[-1]), SEED.name: str(case.seed)}
        for case, result in zip(cases, results, strict=True)
        if result.rows
    ]
    return table(names, [[_cell(row[name]) for name in names] for row in last])


def _cell(value: Value) -> str:
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else value


def _tell_verdict(simulation: Simulation, failures: list[Row]) -> None:
    for failure in failures:
        *place, what = failure.values()
        click.echo(f"failed: {', '.join(map(str, place))}: {what}")
    if failures:
        click.echo(
            f"verdict: {len(failures)} {'thing is' if len(failures) == 1 else 'things are'} wrong, see above"
        )
    elif simulation.kind.verdict:
        click.echo(f"verdict: {simulation.kind.verdict}")
