"""Ways to match content are measured, and found out if they do not find the same."""

import json
from typing import Any

import pytest
from click.testing import CliRunner

from branchline.ops.cli import main
from branchline.routing.event import Event
from branchline.routing.methods.naming import MATCHING
from branchline.routing.methods.table import TableMatching
from branchline.routing.prefix.forwarding import Found, Wanted

SMALL = ("--filters", "30", "--filters", "60", "--events", "8", "--rounds", "1")


def rows_of(*arguments: str) -> list[dict[str, Any]]:
    done = CliRunner().invoke(main, ["bench", "methods", *SMALL, *arguments, "--json"])
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_every_matching_is_measured() -> None:
    """Costs, sizes, and growth from the second number of filters on; all find as many for certain or not."""
    rows = rows_of("--interfaces", "7")
    assert [(row["filters"], row["matching"]) for row in rows] == [
        (size, name) for size in (30, 60) for name in MATCHING
    ]
    for row in rows:
        assert row["build_us_per_constraint"] > 0 and row["bytes_per_constraint"] > 0
        assert row["us_per_event"] > 0 and row["interfaces"] == 7
        assert ("match_growth" in row) is (row["filters"] == 60)
        assert row["machine"]["cores"] and row["seed"] == 1
    certain = {
        row["found_per_event"] - row["doubtful_per_event"]
        for row in rows
        if row["filters"] == 60 and not row["doubtful_per_event"]
    }
    assert len(certain) == 1


def test_a_matching_may_have_a_number() -> None:
    """More rounds of the selectivity table rule more out, where each interface has one filter."""
    rows = rows_of(
        *("--interfaces", "0", "--matching", "counting(0)", "--matching", "counting(2)", "--workload"),
        *("equalities",),
    )
    without, with_two = (row["counts"] for row in rows[-2:])
    assert without["interfaces_excluded"] == 0 < with_two["interfaces_excluded"]
    assert rows[-1]["found_per_event"] == rows[-2]["found_per_event"]
    wrong = CliRunner().invoke(main, ["bench", "methods", "--matching", "guessing"])
    assert wrong.exit_code == 2 and "guessing" in wrong.stderr and "counting" in wrong.stderr


def test_a_matching_that_is_wrong_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is said of one that misses somebody."""
    right = TableMatching.match

    def wrong(self: TableMatching, event: Event, wanted: Wanted | None = None) -> Found:
        found = right(self, event, wanted)
        found.certain = set(sorted(map(str, found.certain))[1:])
        return found

    monkeypatch.setattr(TableMatching, "match", wrong)
    done = CliRunner().invoke(main, ["bench", "methods", *SMALL, "--workload", "gaussian-10"])
    assert done.exit_code == 1 and "table does not find what filters say" in done.stderr
