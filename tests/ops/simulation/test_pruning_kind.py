"""Kind `pruning` measures what a naive recount finds, and loses no event."""

from itertools import islice
from random import Random

import numpy as np
import pytest
from boolean_trees import nodes
from hypothesis import given, settings
from hypothesis import strategies as st

from branchline.ops.simulation.auctions import CLASSES, Market, events, subscriptions, tree
from branchline.ops.simulation.kind import Case, Row
from branchline.ops.simulation.pruning import BEND, KIND, LEAST, Spec, counted
from branchline.ops.simulation.pruning_tables import Table, alike
from branchline.ops.simulation.tables import check_rows
from branchline.routing.boolean.forest import forest_of
from branchline.routing.boolean.jumps import jumps
from branchline.routing.boolean.ordered import ordered
from branchline.routing.boolean.pruning import apply, prunings
from branchline.routing.boolean.trees import Node, leaves, may_match, size
from branchline.routing.event import Event

MARKET = Market(400, 150, 20, 2.0, 1.0, 1.0)
"""So few titles and authors that a small simulation has events that match."""
SPEC = Spec(CLASSES, (1, 3), MARKET, 300, 200, 40, (0.0, 0.5, 1.0))
TIMES = {"filter_us", "copy_us", "saved", "saved_all", "mark"}


def drawn(kind: str, count: int) -> list[Node]:
    return list(map(tree, islice(subscriptions(Random("1 subscriptions"), MARKET, kind), count)))


def ran(kind: str, brokers: int, seed: int = 1) -> list[Row]:
    result = KIND.run(SPEC, Case(seed, {"class": kind, "brokers": brokers}), lambda _: None)
    check_rows(KIND.columns, result.rows)
    assert result.failures == []
    return result.rows


@pytest.fixture(scope="module")
def pruned() -> tuple[list[list[Node]], list[Event]]:
    """All trees of one broker, row by row, made tree by tree; and the events."""
    trees = drawn("1-3", SPEC.subscriptions)
    stream = events(Random("1 events"), MARKET)
    predicates = list(dict.fromkeys(each for tree in trees for each in leaves(tree)))
    share = counted(predicates, [Event(each) for each in islice(stream, SPEC.sample)])
    happened = [Event(each) for each in islice(stream, SPEC.events)]
    done = prunings(trees, share)
    return [apply(trees, done, round(part * len(done))) for part in SPEC.shares], happened


def test_one_broker_is_recounted(pruned: tuple[list[list[Node]], list[Event]]) -> None:
    """Associations that are left and events that match, by asking each pruned tree by itself."""
    rows = ran("1-3", 1)
    tables, happened = pruned
    for row, made in zip(rows, tables, strict=True):
        assert row["associations"] == sum(map(size, made))
        assert row["trees"] == len(set(made))
        matching = sum(any(may_match(tree, event) for tree in made) for event in happened)
        assert row["matching"] == matching / len(happened)
        assert (row["visits"], row["copies"]) == (1, 0)
    assert [row["removed"] for row in rows][::2] == [0, 1]
    assert float(rows[-1]["extra"]) > 0


def test_a_line_is_recounted() -> None:
    """Before anything is pruned, an event crosses each link behind which somebody at home asks for it."""
    row = ran("3", 3)[0]
    trees = drawn("3", SPEC.subscriptions)
    happened = islice(events(Random("1 events"), MARKET), SPEC.sample, SPEC.sample + SPEC.events)
    copies = 0
    for place, event in enumerate(map(Event, happened)):
        homes = {number % 3 for number, tree in enumerate(trees) if may_match(tree, event)}
        at = place % 3
        copies += max(0, at - min(homes, default=at)) + max(0, max(homes, default=at) - at)
    assert row["copies"] == copies > 0
    assert row["visits"] == 1 + copies / SPEC.events


def test_a_line_of_brokers_forwards_more_and_loses_nothing() -> None:
    """Copies only grow with prunings, and but for times a case gives the same again."""
    rows, again = (ran("3", 3, seed=2) for _ in range(2))
    copies = [int(row["copies"]) for row in rows]
    assert copies == sorted(copies)
    assert copies[-1] > copies[0]
    for one, other in zip(rows, again, strict=True):
        assert {name: one[name] for name in one.keys() - TIMES} == {
            name: other[name] for name in other.keys() - TIMES
        }


def test_one_row_is_the_bend_and_one_the_quickest() -> None:
    """Of three points the bend is the one between, or the first where that lies above the line."""
    rows = ran("1", 1)
    share, extra = ([float(row[name]) for row in rows] for name in ("share", "extra"))
    bend = 1 if extra[1] / extra[2] < share[1] else 0
    assert [BEND in str(row["mark"]) for row in rows] == [place == bend for place in range(3)]
    times = [float(row["filter_us"]) + float(row["copy_us"]) for row in rows]
    assert [LEAST in str(row["mark"]) for row in rows] == [each == min(times) for each in times]


@pytest.mark.parametrize("kind, predicates, alternatives", [("1", 6, 1), ("2", 12, 2), ("3", 7, 3)])
def test_classes_have_the_predicates_that_the_paper_says(
    kind: str, predicates: int, alternatives: int
) -> None:
    """6, 12 and 7, where no two are drawn alike, and 1, 2 and 3 of their operators are OR."""
    forest = forest_of(drawn(kind, 50))
    sizes = [size(each) for each in drawn(kind, 50)]
    assert max(set(sizes), key=sizes.count) == max(sizes) == predicates
    ors = np.add.reduceat(forest.nodes.kind == 2, forest.nodes.first[:-1])
    assert ors.max() == alternatives


def test_events_have_ten_attributes() -> None:
    """As the paper says."""
    assert all(len(event) == 10 for event in islice(events(Random(1), MARKET), 10))


def test_shares_are_those_of_the_sample() -> None:
    """What some event of the sample satisfies has just the share of those that do."""
    predicates = [each for tree in drawn("2", 20) for each in leaves(tree)]
    sample = [Event(each) for each in islice(events(Random(1), MARKET), 200)]
    share = counted(predicates, sample)
    for predicate in predicates:
        count = sum(may_match(predicate, event) for event in sample)
        assert share(predicate) == count / 200 if count else 0 < share(predicate) <= 0.5 / 200


@settings(deadline=None)
@given(st.lists(nodes(), min_size=1, max_size=8), st.integers(0, 6))
def test_a_table_has_each_tree_once_with_all_its_homes(trees: list[Node], value: int) -> None:
    """And finds the homes of those that hold."""
    forest = forest_of(trees)
    rows = jumps(forest.nodes)
    same = alike(rows).tolist()
    assert all(trees[one] == tree for one, tree in zip(same, trees, strict=True))
    assert len(set(same)) == len(set(trees))
    event = Event({"x": value})
    whole = ordered(forest.predicates)
    table = Table([(0, rows), (2, jumps(forest.taken(np.arange(1)).nodes))], whole)
    assert len(table) == len(set(trees))
    held = any(may_match(tree, event) for tree in trees)
    assert table.match(event).homes == held + 4 * may_match(trees[0], event)
