"""`bench` measures what it says."""

import json

from click.testing import CliRunner

from branchline.ops.cli import main


def test_all_filters_of_the_benchmark_compile() -> None:
    """Every spelling takes part, every filter is accepted, and the rate is of all of them."""
    done = CliRunner().invoke(main, ["bench", "filters", "--count", "80", "--json"])
    assert done.exit_code == 0, done.output
    *spellings, everything = map(json.loads, done.stdout.splitlines())
    assert [row["spelling"] for row in spellings] == ["sql", "cesql", "cloudevents", "eventbridge"]
    assert all(row["filters"] == 20 and row["accepted"] == 20 for row in spellings)
    assert everything["filters"] == 80
    assert everything["filters_per_s"] > 0
