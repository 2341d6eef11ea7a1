"""What the kinds measure is what a naive recount finds."""

from itertools import islice, pairwise
from statistics import fmean
from typing import Any

import pytest

from branchline.ops.simulation import growth, heights, levels, query_sets
from branchline.ops.simulation.generators import Distribution, Population
from branchline.ops.simulation.growing import FIRST_VERSION, Growth, events_of, filters_of
from branchline.ops.simulation.kind import Case, Kind, Result
from branchline.ops.simulation.kinds import KINDS
from branchline.ops.simulation.queries import QueryLog
from branchline.ops.simulation.tables import check_rows
from branchline.routing.evaluate import evaluate
from branchline.routing.event import Event
from branchline.routing.filters import Range
from branchline.routing.intervals import holds
from branchline.routing.prefix.header import HEADER_MAX_BYTES
from branchline.routing.prefix.optimizer import Optimizer, Settings
from branchline.routing.prefix.tree import ROOT, Tree
from branchline.routing.prefix.trees import PartPrefix
from branchline.routing.spellings import read_filter

PARETO = Population(Distribution.PARETO, Distribution.PARETO, 20)
POPULATIONS = {"pareto": PARETO}
CASE = Case(1, {"population": "pareto"})
GROWTH = Growth((5, 20, 60), 1_000_000, 30)


def run(kind: Kind[Any], spec: Any, case: Case = CASE) -> Result:
    beats: list[str] = []
    result = kind.run(spec, case, beats.append)
    check_rows(kind.columns, result.rows)
    return result


def grown(count: int) -> tuple[Tree, list[Event]]:
    """The same tree by other means: a huge budget in place of none."""
    optimizer = Optimizer(1, Settings(pieces=10**9, nodes_per_filter=10**9))
    for filter_ in islice(PARETO.routing_filters(filters_of(1)), count):
        optimizer.subscribe((filter_,))
    return optimizer.part(0).tree, [Event(each) for each in islice(PARETO.events(events_of(1)), 30)]


def followed(tree: Tree, event: Event) -> list[int]:
    """The nodes that the event leads to: all nodes are asked, whose constraints and those above all hold."""

    def satisfied(node: int) -> bool:
        constraint = tree.constraint(node)
        assert isinstance(constraint, Range)
        return any(holds(constraint.interval, at) for at in event.positions(constraint.path, constraint.axis))

    good = {ROOT}
    for node in tree.below(ROOT):
        if tree.parent(node) in good and satisfied(node):
            good.add(node)
    return sorted(good - {ROOT})


@pytest.mark.parametrize("count", [5, 60])
def test_growth_is_what_a_recount_of_the_tree_finds(count: int) -> None:
    """Nodes, heights and FPTs, each counted node by node."""
    (row,) = [
        row for row in run(growth.KIND, growth.Spec(GROWTH, POPULATIONS)).rows if row["filters"] == count
    ]
    tree, events = grown(count)
    nodes = list(tree.below(ROOT))
    fpts = [followed(tree, event) for event in events]
    tops = [max(map(tree.level, fpt), default=0) for fpt in fpts]
    assert (row["tree_nodes"], row["tree_height"]) == (len(nodes), max(map(tree.level, nodes)))
    assert row["nodes_per_filter"] == len(nodes) / count
    assert (row["fpt_nodes_mean"], row["fpt_nodes_max"]) == (fmean(map(len, fpts)), max(map(len, fpts)))
    assert (row["fpt_height_mean"], row["fpt_height_max"]) == (fmean(tops), max(tops))
    assert 0 < row["header_bytes_mean"] <= row["header_bytes_max"] <= HEADER_MAX_BYTES  # type: ignore[operator]
    assert row["stopped"] == ""


def test_levels_add_up_to_the_whole() -> None:
    """Each level is recounted; together they are the tree, and the mean FPT."""
    rows = run(levels.KIND, levels.Spec(GROWTH, POPULATIONS)).rows
    whole = {row["filters"]: row for row in run(growth.KIND, growth.Spec(GROWTH, POPULATIONS)).rows}
    for count, one in whole.items():
        mine = [row for row in rows if row["filters"] == count]
        assert [row["level"] for row in mine] == list(range(1, int(one["tree_height"]) + 1))
        assert sum(int(row["tree_nodes"]) for row in mine) == one["tree_nodes"]
        assert sum(float(row["fpt_nodes_mean"]) for row in mine) == pytest.approx(one["fpt_nodes_mean"])
    tree, _ = grown(60)
    nodes = list(tree.below(ROOT))
    for row in rows:
        if row["filters"] == 60:
            assert row["tree_nodes"] == sum(tree.level(node) == row["level"] for node in nodes)


def test_a_cap_on_nodes_ends_the_growth_and_is_told() -> None:
    """The last row is that of the filter that reached it."""
    capped = growth.Spec(Growth((5, 20, 60), 100, 3), POPULATIONS)
    *before, last = run(growth.KIND, capped).rows
    assert all(row["stopped"] == "" and int(row["tree_nodes"]) < 100 for row in before)
    assert last["stopped"] == "nodes" and int(last["tree_nodes"]) >= 100 and int(last["filters"]) < 60


def test_a_height_limit_finds_more_and_never_less() -> None:
    """What is found falls with the limit to what matches, which the naive evaluator confirms; FPTs grow."""
    spec = heights.Spec(80, (0, 1, 2, 4), 40, POPULATIONS)
    result = run(heights.KIND, spec)
    rows: list[dict[str, Any]] = result.rows  # type: ignore[assignment]
    assert not result.failures
    assert rows[0]["found_mean"] == 80 and rows[0]["fpt_nodes_max"] == 0 and rows[0]["cut_share"] == 1
    for lower, higher in pairwise(rows):
        assert lower["limit"] < higher["limit"]
        assert lower["found_mean"] >= higher["found_mean"] >= higher["matching_mean"]
        assert lower["fpt_nodes_mean"] <= higher["fpt_nodes_mean"]
    assert rows[-1]["false_positive_share"] == rows[-1]["cut_share"] == 0
    filters = [read_filter("sql", text) for text in islice(PARETO.filters(filters_of(1)), 80)]
    events = list(islice(PARETO.events(events_of(1)), 40))
    matches = sum(evaluate(each, event) is True for each in filters for event in events)  # type: ignore[arg-type]
    assert matches and rows[-1]["matching_mean"] == matches / 40


def test_a_limit_that_lost_something_would_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdict is not always the same."""
    lost = PartPrefix(FIRST_VERSION, ())
    monkeypatch.setattr(heights, "fpts", lambda tree, events, limit: [lost for _ in events])
    result = run(heights.KIND, heights.Spec(80, (1,), 40, POPULATIONS))
    assert "filters that match were not found" in result.failures[0]


def test_the_fpt_of_a_text_has_the_queries_that_it_contains() -> None:
    """Every node is a query, so there are as many nodes as queries that the text contains."""
    log = QueryLog(1, 4, 200, 1_000)
    spec = query_sets.Spec(Growth((50, 1_000), 10_000, 20), {"A": log})
    rows = run(query_sets.KIND, spec, Case(1, {"set": "A"})).rows
    assert [row["filters"] for row in rows] == [50, 200]
    texts = log.texts(filters_of(1))
    contents = [str(event["query"]) for event in islice(log.events(events_of(1)), 20)]
    for row in rows:
        asked = texts[: int(row["filters"])]
        assert row["tree_nodes"] == row["filters"]
        assert row["fpt_nodes_mean"] == fmean(sum(text in content for text in asked) for content in contents)
        below = sum(any(other in text for other in asked if other != text) for text in asked)
        assert row["below_others_share"] == pytest.approx(below / len(asked))


def test_every_kind_shows_columns_that_it_has() -> None:
    """The printed table, and the table of files, have one column of each name."""
    for name, kind in KINDS.items():
        names = [column.name for column in kind.table]
        assert kind.name == name and len(set(names)) == len(names) and {*kind.shown} <= {*names}
