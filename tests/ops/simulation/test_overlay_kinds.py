"""Kinds `network` and `faults`, and the shapes of overlays."""

from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from branchline.kafka.errors import ConfigError
from branchline.ops.cli import main
from branchline.ops.simulation import network
from branchline.ops.simulation.kind import Case, Row
from branchline.ops.simulation.shapes import Shape
from branchline.ops.simulation.simulation import Simulation, read_simulation
from branchline.routing.overlay.dividing import Divider
from branchline.routing.overlay.topology import fault

NETWORK = """
kind = "network"
title = "A small one"
statement = "Nothing."
seeds = 1
events = 120
rows = 4
thresholds = [0.3]
{more}

[overlay]
{overlay}

[publishers]
count = 3
every_ms = 1_000

[subscribers]
count = 3
every_ms = 500
most = 60

[links]
delay_ms = 20

[[populations]]
label = "pareto"
name_distribution = "pareto"
value_distribution = "pareto"
names = 12
decimals = 0
"""
TREE = 'shape = "balanced-tree"\nbrokers = 7'

FAULTS = """
kind = "faults"
title = "A few"
statement = "Nothing is lost."
seeds = 1
first = 3
scripts = 6
steps = 20
block = 4
"""


def written(folder: Path, text: str) -> Simulation:
    file = folder / "small.toml"
    file.write_text(text, encoding="utf-8")
    return read_simulation(file)


def rows_of(simulation: Simulation) -> dict[str, list[Row]]:
    """The rows of each case, by its swept values."""
    found = {}
    for case in simulation.cases():
        result = simulation.kind.run(simulation.spec, case, lambda _: None)
        assert not result.failures
        found[case.describe()] = result.rows
    return found


shapes = st.sampled_from(("line", "star", "balanced-tree", "random-tree", "random-graph"))


@given(shapes, st.integers(1, 40), st.integers(1, 5), st.integers(0, 30), st.integers(0, 9))
def test_every_shape_is_an_overlay_of_that_size(
    shape: str, brokers: int, arity: int, more: int, seed: int
) -> None:
    """All brokers are reached; trees have a link less than brokers, graphs as many more as asked for."""
    made = Shape(shape, brokers, arity, more).topology(Random(seed))
    assert fault(made) is None
    assert len(made.members) == brokers
    most = brokers * (brokers - 1) // 2
    expected = min(most, brokers - 1 + more) if shape == "random-graph" else brokers - 1
    assert len(made.links) == expected
    degrees = [len(made.neighbours(member.name)) for member in made.members]
    if shape == "line":
        assert max(degrees) <= 2
    if shape == "star":
        assert degrees[0] == brokers - 1
    if shape == "balanced-tree":
        assert max(degrees) <= arity + 1


def test_a_file_of_links_is_an_overlay(tmp_path: Path) -> None:
    """Names and costs are taken as they are; what is no overlay is refused with the key and a hint."""
    links = 'shape = "file"\nlinks = [["rome", "oslo", 2], ["oslo", "bonn", 1]]'
    spec = written(tmp_path, NETWORK.format(more="", overlay=links)).spec
    topology = spec.overlay.topology(Random(1))
    assert [member.name for member in topology.members] == ["bonn", "oslo", "rome"]
    assert [(each.one, each.other, each.cost) for each in topology.links] == [
        ("bonn", "oslo", 1),
        ("oslo", "rome", 2),
    ]
    for wrong in (
        '[["a", "b", 0]]',
        '[["a", "a", 1]]',
        '[["a", "b"]]',
        "[]",
        '[["a", "b", 1], ["c", "d", 1]]',
    ):
        with pytest.raises(ConfigError, match=r"overlay\.links"):
            written(tmp_path, NETWORK.format(more="", overlay=f'shape = "file"\nlinks = {wrong}'))


@pytest.mark.parametrize("overlay", [TREE, 'shape = "random-graph"\nbrokers = 6\nmore_links = 3'])
def test_a_network_counts_what_happens(tmp_path: Path, overlay: str) -> None:
    """Rows rise, every event is matched once, shares are shares of what they say, and what crosses a link in
    vain is part of what crosses.
    """
    for rows in rows_of(written(tmp_path, NETWORK.format(more="", overlay=overlay))).values():
        assert [row["events"] for row in rows] == [30, 60, 90, 120]
        assert rows[-1]["subscriptions"] == 60
        last = rows[-1]
        assert float(last["delivered"]) > 0 and float(last["copies"]) > 0
        assert float(last["events"]) - 3 <= float(last["content_matches"]) <= float(last["events"])
        for before, row in pairwise(rows):
            for name in ("updates", "delivered", "false_positives", "copies", "needless_copies", "visits"):
                assert float(before[name]) <= float(row[name])
            found = float(row["false_positives"]) + float(row["delivered"])
            assert row["false_share"] == pytest.approx(float(row["false_positives"]) / found)
            assert float(row["needless_copies"]) <= float(row["copies"])
            assert float(row["visits"]) >= float(row["copies"])


def test_methods_and_heights_differ_as_they_should(tmp_path: Path) -> None:
    """Rematching looks at the content at every visit; a height limit finds no less and delivers the same."""
    more = 'heights = [-1, 1]\nforwarding = ["prefix", "rematch"]'
    found = rows_of(written(tmp_path, NETWORK.format(more=more, overlay=TREE)))
    last = {name: rows[-1] for name, rows in found.items()}
    plain = last["pareto, 0.3, -1, prefix, seed 1"]
    again = last["pareto, 0.3, -1, rematch, seed 1"]
    limited = last["pareto, 0.3, 1, prefix, seed 1"]
    assert plain["afresh_matches"] == 0
    assert int(again["content_matches"]) + int(again["afresh_matches"]) == again["visits"]
    assert plain["delivered"] == again["delivered"] == limited["delivered"]
    assert int(limited["false_positives"]) > int(plain["false_positives"])
    assert int(limited["copies"]) > int(plain["copies"])


def test_an_unknown_method_is_refused(tmp_path: Path) -> None:
    """With the ones that there are."""
    with pytest.raises(ConfigError, match="not 'teleport'") as refused:
        written(tmp_path, NETWORK.format(more='forwarding = ["teleport"]', overlay=TREE))
    assert refused.value.hint is not None and "rematch" in refused.value.hint


def test_a_network_is_the_same_every_time(tmp_path: Path) -> None:
    """Same seed, same rows; another seed, other rows."""
    simulation = written(tmp_path, NETWORK.format(more="", overlay=TREE))
    (case,) = simulation.cases()
    runs = [network.run(simulation.spec, Case(seed, case.swept), lambda _: None).rows for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


def test_clean_scripts_give_a_clean_verdict(tmp_path: Path) -> None:
    """One row for each block of scripts, and the verdict at the end."""
    (tmp_path / "few.toml").write_text(FAULTS, encoding="utf-8")
    arguments = ["simulate", str(tmp_path / "few.toml"), "--out", str(tmp_path / "out"), "--processes", "1"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    assert "verdict: all scripts are clean" in result.stdout
    lines = (tmp_path / "out" / "few.csv").read_text(encoding="utf-8").splitlines()
    found = [line.split(",")[:5] for line in lines[1:]]
    assert found == [["1", "3", "drawn", "4", "0"], ["1", "7", "drawn", "2", "0"]]


def test_scripts_are_played_by_the_methods_that_are_named(tmp_path: Path) -> None:
    """One block after the other, each by the next; a word that names none is refused."""
    told = FAULTS + 'methods = ["prefix+tell-covering", "rematch+table"]\n'
    words = [case.swept["methods"] for case in written(tmp_path, told).cases()]
    assert words == ["prefix+tell-covering", "rematch+table"]
    with pytest.raises(ConfigError, match="'hope' is no method"):
        written(tmp_path, FAULTS + 'methods = ["hope"]\n')


def test_a_bug_ends_in_a_verdict_that_names_the_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was found is told with the script's number, and the exit code is 1."""
    monkeypatch.setattr(Divider, "_deliver", lambda *_: None)
    (tmp_path / "few.toml").write_text(FAULTS.replace("steps = 20", "steps = 60"), encoding="utf-8")
    arguments = ["simulate", str(tmp_path / "few.toml"), "--out", str(tmp_path / "out"), "--processes", "1"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 1
    assert "NOT CLEAN" in result.stdout and "lost" in result.stdout
    assert "verdict:" in result.stdout and "script " in result.stdout
