"""The command: the same files every time, whatever the processes, and a verdict that others can rely on."""

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from branchline.ops.cli import main
from branchline.ops.simulation import running, simulation
from branchline.ops.simulation.kind import Beat, Case, Column, Kind
from branchline.ops.simulation.kind import Result as CaseResult
from branchline.ops.simulation.kinds import KINDS
from branchline.ops.simulation.plots import series

SMALL = """
kind = "growth"
title = "A small one"
statement = "Nothing."
seeds = [2, 1_000]
checkpoints = [5, 10, 20]
events = 5

[[populations]]
label = "a, b"
name_distribution = "uniform"
value_distribution = "uniform"

[[populations]]
label = "c"
name_distribution = "pareto"
value_distribution = "gaussian"

[[plots]]
name = "nodes"
title = "Nodes"
x = "filters"
y = ["tree_nodes", "fpt_nodes_mean"]
lines = "population"
seeds = "mean"
log = ["x", "y"]

[[plots]]
name = "panels"
title = "In panels"
x = "filters"
y = ["tree_height"]
lines = "seed"
panels = "population"
"""

FILES = {
    *("small.parquet", "small.csv"),
    *("small-nodes.png", "small-nodes.svg", "small-panels.png", "small-panels.svg"),
}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "small.toml"
    file.write_text(SMALL, encoding="utf-8")
    return file


def simulate(*arguments: object) -> Result:
    result = CliRunner().invoke(main, ["simulate", *map(str, arguments)], catch_exceptions=False)
    assert "Traceback" not in result.output
    return result


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    """The results of one run, and what the command said."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "small.toml").write_text(SMALL, encoding="utf-8")
    return folder / "out", simulate(
        folder / "small.toml", "--out", folder / "out", "--processes", 1, "--json"
    )


def test_the_same_seeds_give_the_same_files_on_any_number_of_processes(
    config: Path, tmp_path: Path, made: tuple[Path, Result]
) -> None:
    """Tables and plots are equal to the byte, and other seeds give others."""
    one, two, other = made[0], tmp_path / "two", tmp_path / "deep" / "other"
    assert made[1].exit_code == 0 and "4 cases on 1 process\n" in made[1].stderr
    spread = simulate(config, "--out", two, "--processes", 2)
    assert spread.exit_code == 0 and "4 cases on 2 processes\n" in spread.stderr and "4/4 " in spread.stderr
    assert contents(one).keys() == FILES
    assert contents(one) == contents(two)
    assert simulate(config, "--out", other, "--seed", 3, "--processes", 1).exit_code == 0
    assert not {*contents(one).values()} & {*contents(other).values()}


def test_tables_hold_all_rows_in_order(made: tuple[Path, Result]) -> None:
    """Parquet and CSV say the same; rows come by population, seed and checkpoint."""
    rows = pq.read_table(made[0] / "small.parquet").to_pylist()
    with (made[0] / "small.csv").open(encoding="utf-8", newline="") as file:
        texts = list(csv.DictReader(file))
    assert [(row["population"], row["seed"], row["filters"]) for row in rows] == [
        (population, seed, filters)
        for population in ("a, b", "c")
        for seed in (2, 1_000)
        for filters in (5, 10, 20)
    ]
    for row, text in zip(rows, texts, strict=True):
        assert row.keys() == text.keys()
        for name, value in row.items():
            assert text[name] == (f"{value:.6f}" if isinstance(value, float) else str(value))


def test_plots_carry_no_date_and_no_version(made: tuple[Path, Result]) -> None:
    """What changes from day to day would change the bytes."""
    for name, data in contents(made[0]).items():
        if name.endswith((".png", ".svg")):
            assert b"Software" not in data and b"<dc:date>" not in data and b"Matplotlib v" not in data


def test_people_get_a_table_and_the_files(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without --out results go to simulations/NAME here; the last row of each case is printed."""
    monkeypatch.chdir(tmp_path)
    result = simulate(config, "--seed", 7, "--processes", 1)
    heading, *rows = result.stdout.partition("\n\n")[0].splitlines()
    assert heading.split()[:4] == ["population", "seed", "filters", "stopped"]
    assert [row.split("  ")[0] for row in rows] == ["a, b", "c"]
    assert str(Path("simulations") / "small") in result.stdout and "small-nodes.svg" in result.stdout
    assert contents(tmp_path / "simulations" / "small").keys() == FILES
    assert "verdict" not in result.stdout


def test_machines_get_one_object(made: tuple[Path, Result]) -> None:
    """With --json there is one line on standard output, with all files by their paths."""
    found = json.loads(made[1].stdout)
    assert {Path(file) for file in found.pop("files")} == {made[0] / name for name in FILES}
    assert found == {"name": "small", "kind": "growth", "cases": 4, "rows": 12, "failures": []}


def test_a_wrong_file_is_told_before_anything_is_made(config: Path, tmp_path: Path) -> None:
    """Exit code 2 with message and hint, as JSON if that was asked for, and no folder is left."""
    config.write_text(SMALL.replace("events", "evnets"), encoding="utf-8")
    result = simulate(config, "--out", tmp_path / "out")
    assert result.exit_code == 2 and "evnets: unknown key" in result.stderr
    assert "hint: did you mean 'events'?" in result.stderr and not (tmp_path / "out").exists()
    found = json.loads(simulate(config, "--json").stdout)
    assert found["error"] == "config" and "evnets" in found["message"] and "events" in found["hint"]


@pytest.mark.parametrize("arguments", [["no-such-file"], ["--seed", "-1"], ["--processes", "0"], []])
def test_wrong_usage_is_refused(config: Path, arguments: list[str]) -> None:
    """As with every command: exit code 2."""
    given = arguments if not arguments or arguments[0] == "no-such-file" else [str(config), *arguments]
    assert simulate(*given).exit_code == 2


def test_a_folder_that_cannot_be_made_costs_no_time(config: Path) -> None:
    """It is told before the first case."""
    result = simulate(config, "--out", config / "below", "--processes", 1)
    assert result.exit_code == 2 and "cases on" not in result.stderr


def _run_strict(spec: int, case: Case, beat: Beat) -> CaseResult:
    beat("half of it")
    return CaseResult([{"square": case.seed**2}], ["too large"] if case.seed > spec else [])


STRICT: Kind[int] = Kind(
    name="strict",
    read=lambda section: section.integer("most", 0, 10),
    sweep=lambda _: [{"what": "it"}],
    run=_run_strict,
    swept=(Column("what", str, "what"),),
    columns=(Column("square", int, "square"),),
    shown=("square",),
    verdict="no seed is too large",
)


@pytest.fixture
def strict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kind that has a verdict, and a file of it."""
    for module in (simulation, running):
        monkeypatch.setattr(module, "KINDS", {**KINDS, "strict": STRICT})
    monkeypatch.setattr(running, "BEAT_S", 0.0)
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "strict.toml"
    file.write_text('kind = "strict"\ntitle = "t"\nstatement = "s"\nseeds = [1, 4]\nmost = 4\n')
    return file


def test_a_verdict_is_told_and_is_the_exit_code(strict: Path) -> None:
    """With 0 what is known; with 1 what failed, where, after the results were written all the same."""
    good = simulate(strict, "--processes", 1)
    assert good.exit_code == 0 and good.stdout.endswith("verdict: no seed is too large\n")
    bad = simulate(strict, "--seed", 3, "--seed", 5, "--seed", 6, "--processes", 1)
    assert bad.exit_code == 1 and "verdict: 2 things are wrong, see above" in bad.stdout
    assert "failed: 5, it: too large\n" in bad.stdout and "2/3 it, seed 5: failed" in bad.stderr
    assert (strict.parent / "simulations" / "strict" / "strict.csv").read_text() == (
        "seed,what,square\n3,it,9\n5,it,25\n6,it,36\n"
    )
    told: dict[str, Any] = json.loads(simulate(strict, "--seed", 5, "--processes", 1, "--json").stdout)
    assert told["failures"] == [{"seed": 5, "what": "it", "failure": "too large"}]


def test_long_cases_say_how_far_they_are(strict: Path) -> None:
    """Each beat names its case."""
    assert "  it, seed 4: half of it\n" in simulate(strict, "--processes", 1).stderr


def test_a_mean_is_drawn_where_all_seeds_have_a_value() -> None:
    """Else it would jump where one of them ends."""
    rows: list[dict[str, Any]] = [
        {"seed": seed, "x": x, "y": y} for seed, x, y in [(1, 2, 4.0), (1, 1, 1.0), (2, 1, 3.0), (2, 3, 9.0)]
    ]
    assert series(rows, "x", "y", mean=True) == [([1], [2.0])]
    assert series(rows, "x", "y", mean=False) == [([1, 2], [1.0, 4.0]), ([1, 3], [3.0, 9.0])]
