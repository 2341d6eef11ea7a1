"""A simulation's file is read strictly: each mistake is told with its file, its key and what to do."""

from pathlib import Path

import pytest

from branchline.kafka.errors import ConfigError
from branchline.ops.simulation.generators import Distribution
from branchline.ops.simulation.growing import Growth
from branchline.ops.simulation.kinds import KINDS
from branchline.ops.simulation.simulation import read_simulation

ROOT = Path(__file__).parents[3]
SIMULATIONS = sorted((ROOT / "docs" / "simulations").glob("*.toml"))

GROWTH = """
kind = "growth"
title = "A title"
statement = "What was\\nsaid."
seeds = [3, 5]
checkpoints = [1, 10]
events = 7

[[populations]]
label = "few"
names = 12
name_distribution = "uniform"
value_distribution = "pareto"
constraints = [2, 3]
operators = { "=" = 1, between = 2.5 }

[[plots]]
name = "nodes"
title = "Nodes"
x = "filters"
y = ["tree_nodes"]
lines = "population"
"""

QUERIES = """
kind = "queries"
title = "A title"
statement = "What was said."
seeds = 2
checkpoints = [10]

[[sets]]
label = "A"
users = 3
queries = 20
"""

HEIGHTS = """
kind = "heights"
title = "A title"
statement = "What was said."
seeds = 1
filters = 30
limits = [0, 2]

[[populations]]
label = "few"
name_distribution = "gaussian"
value_distribution = "gaussian"
"""

MISTAKES = [
    (GROWTH, 'kind = "growth"', "", "kind: missing", "'growth', 'levels', 'heights', 'queries'"),
    (GROWTH, 'kind = "growth"', 'kind = "grown"', "kind: not 'grown'", "one of 'growth'"),
    (GROWTH, 'title = "A title"', "title = 3", "title: not 3", "a text"),
    (GROWTH, 'title = "A title"', 'title = " "', "title: not ' '", "a text"),
    (GROWTH, 'title = "A title"', 'tilte = "A title"', "title: missing", "a text"),
    (GROWTH, "events = 7", "event = 7", "event: unknown key", "did you mean 'events'?"),
    (GROWTH, "events = 7", "zzz = 7", "zzz: unknown key", "known here: kind, title"),
    (GROWTH, "events = 7", "events = 0", "events: not 0", "a whole number from 1 to 100,000"),
    (GROWTH, "events = 7", "events = true", "events: not True", "a whole number"),
    (GROWTH, "events = 7", "events = 7.0", "events: not 7.0", "a whole number"),
    (GROWTH, "seeds = [3, 5]", "", "seeds: missing", "a count up to 1,000, or a list"),
    (GROWTH, "seeds = [3, 5]", "seeds = []", "seeds: not []", "different, ascending whole numbers"),
    (GROWTH, "seeds = [3, 5]", "seeds = [5, 3]", "seeds: not [5, 3]", "ascending"),
    (GROWTH, "seeds = [3, 5]", "seeds = true", "seeds: not True", "a count"),
    (GROWTH, "seeds = [3, 5]", "seeds = 0", "seeds: not 0", "a count"),
    (GROWTH, "seeds = [3, 5]", 'seeds = ["a"]', "seeds: not ['a']", "whole numbers"),
    (GROWTH, "checkpoints = [1, 10]", "checkpoints = [10, 10]", "checkpoints: not [10, 10]", "different"),
    (GROWTH, "checkpoints = [1, 10]", "", "checkpoints: missing", "a list of"),
    (GROWTH, "[[populations]]", "[populations]", "populations: not {", "[[populations]]"),
    (GROWTH, 'label = "few"', "", "populations[0].label: missing", "a text"),
    (GROWTH, "names = 12", "names = 11", "populations[0].names: 11 are too few", "ask for 12"),
    (GROWTH, "names = 12", "name = 12", "populations[0].name: unknown key", "did you mean 'names'?"),
    (GROWTH, '"pareto"', '"zipf"', "populations[0].value_distribution: not 'zipf'", "'uniform', 'gaussian'"),
    (GROWTH, "[2, 3]", "[1, 2, 3]", "populations[0].constraints: not [1, 2, 3]", "the fewest and the most"),
    (GROWTH, '"=" = 1', '"==" = 1', "populations[0].operators.==: unknown key", "did you mean '='?"),
    (GROWTH, '"=" = 1', '"=" = -1', "populations[0].operators.=: not -1", "a number from 0 to 1000"),
    (GROWTH, '"=" = 1, between = 2.5', '"=" = 0', "populations[0].operators.=: no operator", "above 0"),
    (GROWTH, 'name = "nodes"', 'name = "No des"', "plots[0].name: not 'No des'", "part of a file name"),
    (GROWTH, 'x = "filters"', 'x = "stopped"', "plots[0].x: not 'stopped'", "'filters'"),
    (GROWTH, '["tree_nodes"]', '["stopped"]', "plots[0].y: no column 'stopped' of numbers", "tree_nodes"),
    (GROWTH, '["tree_nodes"]', "[]", "plots[0].y: not []", "a list of different texts"),
    (GROWTH, 'x = "filters"', 'x = "filters"\nlog = ["z"]', "plots[0].log: not ['z']", "'x', 'y' or both"),
    (
        GROWTH,
        'x = "filters"',
        'x = "filters"\nsmooth = 1',
        "plots[0].smooth: unknown key",
        "known here: name",
    ),
    (GROWTH, "events = 7", "events = ", "Invalid value", "TOML"),
    (QUERIES, "users = 3", "users = 0", "sets[0].users: not 0", "a whole number from 1"),
    (QUERIES, "users = 3", "users = 3\nusres = 3", "sets[0].usres: unknown key", "did you mean 'users'?"),
    (QUERIES, "queries = 20", "", "sets[0].queries: missing", "a whole number"),
    (HEIGHTS, "limits = [0, 2]", "limits = [-1]", "limits: not [-1]", "from 0 to 1,000"),
    (HEIGHTS, "filters = 30", "filters = 30\nnodes_cap = 3", "nodes_cap: unknown key", "known here:"),
]


def write(folder: Path, text: str, name: str = "small.toml") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def refused(file: Path) -> ConfigError:
    with pytest.raises(ConfigError) as error:
        read_simulation(file)
    return error.value


@pytest.mark.parametrize(("text", "right", "wrong", "message", "hint"), MISTAKES)
def test_each_mistake_is_told_with_its_place(
    tmp_path: Path, text: str, right: str, wrong: str, message: str, hint: str
) -> None:
    """The message names the file and the key, and the hint what to write instead."""
    assert right in text
    file = write(tmp_path, text.replace(right, wrong, 1))
    error = refused(file)
    assert str(error).startswith(f"{file}: ") and message in str(error)
    assert hint in error.hint


@pytest.mark.parametrize(
    ("text", "part"), [(GROWTH, "[[populations]]"), (GROWTH, "[[plots]]"), (QUERIES, "[[sets]]")]
)
def test_two_of_a_name_are_refused(tmp_path: Path, text: str, part: str) -> None:
    """Labels and names of plots tell results apart."""
    first = text.index(part)
    ends = text.find("[[", first + 2)
    twice = text + text[first : ends if ends > 0 else None]
    assert "another" in str(refused(write(tmp_path, twice)))


def test_a_file_that_cannot_name_results_is_refused(tmp_path: Path) -> None:
    """The file's name is that of the results; what is no text is no TOML."""
    assert "small letters" in refused(write(tmp_path, GROWTH, "Not Small.toml")).hint
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    assert "not UTF-8" in str(refused(tmp_path / "binary.toml"))


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    """Settings are taken as they stand, the others are as documented, and each population has its cases."""
    simulation = read_simulation(write(tmp_path, GROWTH))
    assert (simulation.name, simulation.statement, simulation.seeds) == ("small", "What was said.", (3, 5))
    assert simulation.spec.growth == Growth((1, 10), 1_000_000, 7)
    (few,) = simulation.spec.populations.values()
    assert (few.names, few.constraints, few.attributes, few.decimals) == (12, (2, 3), (2, 12), 1)
    assert few.value_distribution is Distribution.PARETO
    assert few.operators == (1.0, 0.0, 0.0, 0.0, 0.0, 2.5)
    assert [(case.seed, case.swept) for case in simulation.cases()] == [
        (3, {"population": "few"}),
        (5, {"population": "few"}),
    ]
    assert [case.seed for case in simulation.with_seeds((9, 4, 9)).cases()] == [9, 4]
    assert read_simulation(write(tmp_path, QUERIES)).seeds == (1, 2)


@pytest.mark.parametrize("file", SIMULATIONS, ids=lambda file: file.stem)
def test_the_simulations_of_the_documentation_read(file: Path) -> None:
    """Each file in docs/simulations is right, has cases and says what it looks at."""
    simulation = read_simulation(file)
    assert simulation.cases() and simulation.statement


def test_every_plot_of_the_documentation_comes_from_a_simulation() -> None:
    """Each plot that is kept is one that a file there makes, is shown with the results, and is small."""
    made = {
        f"{simulation.name}-{plot.name}.svg"
        for simulation in map(read_simulation, SIMULATIONS)
        for plot in simulation.plots
    }
    results = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    for plot in (ROOT / "docs" / "plots").iterdir():
        assert plot.name in made
        assert f"](plots/{plot.name})" in results
        assert plot.stat().st_size < 200_000
    commands = [f"branchline simulate docs/simulations/{file.name}" for file in SIMULATIONS]
    assert [command for command in commands if command not in results] == []


def test_every_kind_is_documented() -> None:
    """The page of commands has a row for each kind."""
    commands = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert [name for name in KINDS if f"\n| `{name}` | " not in commands] == []
