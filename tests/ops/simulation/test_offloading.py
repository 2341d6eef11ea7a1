"""What is said of offloading is of tables that are right, and of clients that say what arrays say."""

from itertools import islice
from pathlib import Path
from random import Random

import pytest

from branchline.kafka.errors import ConfigError
from branchline.ops.simulation import offloading
from branchline.ops.simulation.kind import Case, Result
from branchline.ops.simulation.offloading import FOREST, PHASES, POSET, Spec
from branchline.ops.simulation.offloading_fleet import Fleet
from branchline.ops.simulation.simulation import read_simulation
from branchline.ops.simulation.structures_ranges import UNIFORM, ZIPF, Ranges
from branchline.ops.simulation.tables import check_rows
from branchline.routing.offloading.client import answer
from branchline.routing.offloading.placing import Check
from branchline.routing.offloading.router import Router, Settings
from branchline.routing.posets.poset import Poset

CHECKS = (Check.TRUST, Check.LINKS, Check.PLACES)


def run(table: str, fixed: tuple[int, ...] = (), interfaces: int = 5) -> Result:
    spec = Spec({"it": Ranges(ZIPF, 2)}, (table,), interfaces, (40, 90), (1, 7), (3, 10), CHECKS, 2, fixed)
    result = offloading.run(spec, Case(1, {"ranges": "it", "table": table}), lambda _: None)
    check_rows(offloading.KIND.columns, result.rows)
    return result


@pytest.mark.parametrize("table", [POSET, FOREST])
def test_tables_are_those_made_alone(table: str) -> None:
    """For every batch, slice and check; a row for each checkpoint, of phases that add up."""
    result = run(table)
    assert not result.failures and len(result.rows) == 2 * 2 * 2 * 3
    for row in result.rows:
        assert row["total_s"] == pytest.approx(sum(float(row[f"{phase}_s"]) for phase in PHASES))
        assert row["ratio"] == pytest.approx(float(row["total_s"]) / float(row["alone_s"]))
        assert row["what"] == f"{table}, it" and row["method"] == "rto"
    last = [row for row in result.rows if row["subscriptions"] == 90 and row["batch"] == 7]
    tests = {row["check"]: int(row["router_tests"]) for row in last}
    assert tests["trust"] < tests["links"] < tests["places"]
    assert len({row["client_tests"] for row in last if row["slice"] == 3}) == 1


def test_a_table_that_differs_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdict is not always the same: a fleet that finds nothing makes other posets."""
    monkeypatch.setattr(Fleet, "_found", lambda self, batch: ({}, {}))
    failures = run(POSET, interfaces=90).failures
    assert any("something else than the arrays" in each for each in failures)
    assert any("roots are not those" in each for each in failures)


def test_the_fleet_answers_as_clients_do() -> None:
    """Round after round, while filters come and go, each answer is what a client makes of the task."""
    fleet, router = Fleet(120, 2), Router(Poset(), Settings(batch=6, slice_size=4, copies=2))
    filters = islice(Ranges(UNIFORM, 2).filters(Random(1)), 120)
    compared = 0
    for number, filter_ in enumerate(filters):
        if router.subscribe(filter_, number % 3):
            router.prepare()
            dispatches = router.lay_out(("a", "b", "c"))
            answers = fleet.work(dispatches)
            assert answers == [answer(task, client) for client, task in dispatches]
            for each in answers:
                assert router.receive(each)
            router.insert()
            router.eliminate()
            compared += len(answers)
    assert compared > 100 and fleet.differed == 0 and fleet.longest_s > 0


def test_fixed_sets_are_measured_on_the_second_half() -> None:
    """The more clients know, the fewer tests the router makes; a set has no more filters than the table."""
    result = run(POSET, (5, 20, 1_000), interfaces=90)
    assert not result.failures
    assert [row["fixed"] for row in result.rows] == [5, 20, 45]
    tests = [int(row["router_tests"]) for row in result.rows]
    assert tests == sorted(tests, reverse=True) and tests[-1] < int(result.rows[0]["alone_tests"])
    assert {row["subscriptions"] for row in result.rows} == {45}


def test_a_file_that_asks_for_what_there_is_not_is_refused(tmp_path: Path) -> None:
    """No other tables and checks, and fixed sets for posets only."""
    file = tmp_path / "small.toml"
    text = 'kind = "offloading"\ntitle = "t"\nstatement = "s"\nseeds = 1\ncheckpoints = [5]\n'
    ranges = '[[ranges]]\nlabel = "a"\ndistribution = "zipf"\ndimensions = 1\n'
    for wrong, what in (
        ('tables = ["tree"]', "no 'tree'"),
        ('checks = ["none"]', "no 'none'"),
        ("fixed = [3]", "fixed sets are for a poset only"),
    ):
        file.write_text(f"{text}{wrong}\n{ranges}")
        with pytest.raises(ConfigError) as refused:
            read_simulation(file)
        assert what in f"{refused.value} {refused.value.hint}"
    file.write_text(text + ranges)
    assert read_simulation(file).spec.checks == (Check.TRUST, Check.LINKS)
