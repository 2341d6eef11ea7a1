"""Matchers that are measured match the same, and what is said of them is measured."""

import json
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from branchline.ops.cli import main
from branchline.ops.matchers import MATCHERS, Run, mixed
from branchline.ops.matching_workloads import MATCHING, Shape, draw_events, draw_filters
from branchline.routing.filters import Filter


def rows_of(*arguments: str) -> list[dict[str, Any]]:
    done = CliRunner().invoke(main, ["bench", *arguments, "--json"])
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("name", MATCHING)
def test_all_matchers_find_the_same_pairs(name: str) -> None:
    """Also of nested events, of those that take the slow path, and of those with arrays, which do not."""
    workload = MATCHING[name]
    filters = draw_filters(workload, 60, 3, Shape.NESTED)
    events = draw_events(workload, 50, 3, Shape.NESTED, 0.2, 0.3)
    found = {matcher: Run(make(filters), events).check() for matcher, make in MATCHERS.items()}
    assert len({pairs[:2] for pairs in found.values()}) == 1, found
    # What no filter names is not looked at.
    assert 0 < found["access"][2] <= 0.2


def test_the_checksum_tells_pairs_apart() -> None:
    """It is the finalizer of splitmix64, as the peers have it, and one filter less changes it."""
    assert mixed(np.array([1], np.uint64))[0] == 0x5692161D100B05E5
    filters = draw_filters(MATCHING["gaussian-10"], 40, 1, Shape.FLAT)
    events = draw_events(MATCHING["gaussian-10"], 40, 1, Shape.FLAT, 0)
    every, fewer = (Run(MATCHERS["access"](each), events).check() for each in (filters, filters[:-1]))
    assert every[0] > fewer[0] and every[1] != fewer[1]


def test_growth_and_facts_are_said() -> None:
    """Each row names what it was measured with, and from the second number of filters on how it grew."""
    few, many = rows_of(
        *("match", "--workload", "equalities", "--filters", "20", "--filters", "60"),
        *(
            "--events",
            "50",
            "--rounds",
            "2",
            "--shape",
            "nested",
            "--slow-share",
            "0.1",
            "--array-share",
            "0.5",
        ),
    )
    assert "growth" not in few and many["growth"] > 0
    assert (few["filters"], many["filters"]) == (20, 60) and few["seed"] == 1
    assert 0 < few["slow_share"] <= 0.1 and few["checked"] == 50
    assert few["slowest"] <= few["events_per_s"] <= few["fastest"]
    assert few["machine"]["cores"] and few["versions"]["numba"] and few["bytes_per_constraint"] > 0


def test_a_matcher_that_is_wrong_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """No rate is said of what does not match what filters say."""
    access = MATCHERS["access"]

    def wrong(filters: list[Filter]) -> Any:
        return access(filters[:-1])

    monkeypatch.setitem(MATCHERS, "access", wrong)
    arguments = ["bench", "match", "--workload", "gaussian-10", "--filters", "30", "--events", "50"]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 1 and "does not match what filters say" in done.stderr


def test_building_is_measured() -> None:
    """Every cost is there, also of a process that has to load everything."""
    [row] = rows_of("build", "--workload", "cw", "--filters", "40")
    for cost in ("compile_us", "build_s", "insert_us", "remove_us", "merge_s", "open_ms"):
        assert row[cost] >= 0
    assert row["constraints"] > 40 and row["stored_mb"] > 0 and row["cold_s"] > 0
