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


def test_trees_are_grown_and_measured() -> None:
    """Every workload gives a row for each size, costs and sizes are there, and growth from the second on."""
    arguments = ["bench", "tree", "--filters", "20", "--filters", "60", "--json"]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["workload"], row["filters"]) for row in rows] == [
        (workload, size) for workload in ("equalities", "ranges", "words", "mixed") for size in (20, 60)
    ]
    for row in rows:
        assert row["insert_us"] > 0 and row["match_us"] > 0 and not row["stopped"]
        assert row["nodes"] >= row["height"] > 0 and row["bytes_per_node"] > 0
        assert row["fpt_max"] >= row["fpt_mean"] and row["header_bytes_max"] >= row["header_bytes_mean"] > 0
        assert ("growth" in row) is (row["filters"] == 60)


def test_the_same_seed_grows_the_same_trees() -> None:
    """Facts that are no times do not change from run to run, and do with the seed."""

    def facts(seed: str) -> list[object]:
        arguments = ["bench", "tree", "--filters", "40", "--workload", "mixed", "--seed", seed, "--json"]
        row = json.loads(CliRunner().invoke(main, arguments).stdout)
        return [row[name] for name in ("nodes", "height", "fpt_mean", "header_bytes_max", "bytes_per_node")]

    assert facts("1") == facts("1") != facts("2")


def test_a_cap_that_is_hit_is_said() -> None:
    """The tree stays as large as it was, and larger ones are not tried."""
    arguments = ["bench", "tree", "--filters", "100", "--filters", "200", "--workload", "equalities"]
    done = CliRunner().invoke(main, [*arguments, "--nodes-cap", "30"])
    assert done.exit_code == 0, done.output
    assert "equalities: stopped at" in done.stderr and "--nodes-cap 30" in done.stderr
    assert "nodes_per_filter" in done.stdout and "growth" not in done.stdout


def test_a_cold_worker_is_measured() -> None:
    """Each workload's filters can be written as texts; an image has them all, and opening it is measured."""
    for workload in ("equalities", "ranges", "words", "mixed"):
        arguments = ["bench", "cold", "--filters", "10", "--filters", "20", "--workload", workload, "--json"]
        done = CliRunner().invoke(main, arguments)
        assert done.exit_code == 0, done.output
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        assert [row["filters"] for row in rows] == [10, 20]
        assert all(row["open_ms"] > 0 and row["image_mb"] >= 0 and "cold_batch_ms" in row for row in rows)
        assert [("growth" in row) for row in rows] == [False, True]


def test_hops_are_measured() -> None:
    """A row for each broker in the line: what it took, what went on, and the bytes that travelled."""
    arguments = ["bench", "hops", "--filters", "200", "--events", "300", "--hops", "3", "--rounds", "2"]
    done = CliRunner().invoke(main, [*arguments, "--workload", "mixed", "--json"])
    assert done.exit_code == 0, done.output
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["hop"] for row in rows] == [1, 2, 3] and rows[0]["copies"] == 300
    assert rows[0]["share"] == 1 and all(row["us_per_copy"] > 0 and row["match_us"] > 0 for row in rows)
    assert all(row["afresh"] == 0 and row["owed"] > 0 for row in rows)
    assert all(0 < row["fpt_bytes"] <= row["fpt_bytes_max"] for row in rows[:-1])
    assert rows[0]["copies"] > rows[1]["copies"] > rows[2]["copies"] > 0
    # Content is looked at where events enter, and nowhere else.
    stages = [set(row["stages_us"]) for row in rows]
    assert stages[0] == {"scan", "match", "walk", "write", "rest"}
    assert stages[1] == stages[2] == {"records", "decode", "follow", "divide", "write", "rest"}
    assert all(row["of_matching"] > 0 for row in rows)
