"""How far the tree is from what was told: the definition, and when it makes the optimizer tell."""

import pytest
from amounts import often
from hypothesis import given
from hypothesis import strategies as st
from prefix_scripts import budgets, cover, some_filters

from branchline.routing.filters import Filter
from branchline.routing.prefix.optimizer import Optimizer, Settings
from branchline.routing.prefix.tree import ROOT, Edge

Levels = dict[Edge, int]


def _told(optimizer: Optimizer, part: int) -> tuple[Levels, set[tuple[int, Filter]]]:
    """The edges that were told, each with its level, and the filters beside the tree."""
    levels = {ROOT: 0}
    edges: Levels = {}
    numbered = set()
    for piece in optimizer.snapshots():
        if piece.part == part:
            for edge in piece.edges:
                edges[edge] = levels[edge.child] = levels[edge.parent] + 1
            numbered |= set(piece.numbered)
    return edges, numbered


def _present(optimizer: Optimizer, part: int) -> tuple[Levels, set[tuple[int, Filter]]]:
    tree = optimizer.part(part).tree
    edges: Levels = {}
    pending = [(ROOT, 1)]
    while pending:
        node, level = pending.pop()
        for siblings in tree.children(node).values():
            for each in siblings:
                edges[tree.edge(each)] = level
                pending.append((tree.child(each), level + 1))
    return edges, {(number, filter_) for filter_, number in optimizer.part(part).overflow.items()}


def naive(optimizer: Optimizer, part: int, base: float) -> float:
    """The definition: the weight of what is in one tree only, over the weight of both trees."""
    told, present = _told(optimizer, part)[0], _present(optimizer, part)[0]
    only = [level for edge, level in told.items() if edge not in present]
    only += [level for edge, level in present.items() if edge not in told]
    both = [*told.values(), *present.values()]
    return (
        sum(base ** (level - 1) for level in only) / sum(base ** (level - 1) for level in both)
        if both
        else 0.0
    )


steps = st.lists(
    st.tuples(st.sampled_from("ssssutw"), some_filters, st.integers(0, 50)), min_size=1, max_size=20
)


@often
@given(steps, st.sampled_from((0.5, 0.3, 1.0)), budgets, st.integers(1, 2))
def test_the_difference_is_what_the_definition_says(
    steps: list[tuple[str, Filter, int]], base: float, budget: tuple[int, int, int], parts: int
) -> None:
    """After every step of every script, whatever moved, died or was born since the last update."""
    optimizer = Optimizer(1, Settings(parts, 0, 0, base, *budget))
    held: list[Filter] = []
    for kind, filter_, choice in steps:
        if kind == "s":
            optimizer.subscribe((filter_,))
            held.append(filter_)
        elif kind == "u" and held:
            optimizer.unsubscribe((held.pop(choice % len(held)),))
        elif kind == "t":
            optimizer.updates(0)
        for part, difference in enumerate(optimizer.differences()):
            assert difference == pytest.approx(naive(optimizer, part, base), abs=1e-9)


def beside(optimizer: Optimizer) -> float:
    """The share of the overflow numbers, told and present, that only one of the two has."""
    part = optimizer.part(0)
    told, present = set(part._told.overflow), set(part.overflow.values())
    return len(told ^ present) / (len(told) + len(present)) if told or present else 0


@often
@given(steps, st.sampled_from((0.0, 0.3, 0.8)), st.sampled_from((None, 0, 60)), budgets)
def test_it_is_told_when_it_is_time(
    steps: list[tuple[str, Filter, int]], threshold: float, limit: int | None, budget: tuple[int, int, int]
) -> None:
    """Exactly when the difference, of the tree or of the numbers beside it, passes the threshold, or has
    been there for as long as the limit says.
    """
    optimizer = Optimizer(1, Settings(1, threshold, limit, 0.5, *budget))
    held: list[Filter] = []
    now = clock = 0
    since: int | None = None
    for kind, filter_, choice in steps:
        if kind == "s":
            optimizer.subscribe((filter_,))
            held.append(filter_)
        elif kind == "u" and held:
            optimizer.unsubscribe((held.pop(choice % len(held)),))
        now += choice if kind == "w" else 0
        different = _told(optimizer, 0) != _present(optimizer, 0)
        since = (now if since is None else since) if different else None
        waited = since is not None and limit is not None and now - since >= limit
        passed = max(optimizer.differences()[0], beside(optimizer)) > threshold
        expected = different and (passed or waited)
        updates = optimizer.updates(now)
        assert len(updates) == expected
        if expected:
            since = None
            clock += 1
            assert updates[0].version == (1, clock)
            assert _told(optimizer, 0) == _present(optimizer, 0)
            assert optimizer.differences() == [0]
            assert not optimizer.updates(now + 1_000_000), "there is nothing more to tell"


def test_two_empty_trees_are_alike() -> None:
    """Zero, and nothing is told, however long it takes."""
    optimizer = Optimizer(1, Settings(threshold=0, limit_ms=0))
    assert optimizer.differences() == [0]
    assert not optimizer.updates(10**12)


def test_trees_with_nothing_in_common_differ_by_one() -> None:
    """At first, and when everything that was told has gone and something else has come."""
    optimizer = Optimizer(1, Settings(threshold=0))
    optimizer.subscribe(cover("x > 5 AND y = 1"))
    assert optimizer.differences() == [1]
    optimizer.updates(0)
    assert optimizer.differences() == [0]
    optimizer.unsubscribe(cover("x > 5 AND y = 1"))
    assert optimizer.differences() == [1]
    optimizer.subscribe(cover("x > 5 AND y = 1"))
    assert optimizer.differences() == [1], "the numbers are others"


def test_changes_near_the_root_weigh_more() -> None:
    """A new node on level 2 weighs half of one on level 1."""
    optimizer = Optimizer(1, Settings(threshold=0.9, limit_ms=0))
    optimizer.subscribe(cover("x > 5"))
    optimizer.updates(0)
    optimizer.subscribe(cover("x > 5 AND y = 1"))
    assert optimizer.differences() == [0.5 / 2.5]
    optimizer.unsubscribe(cover("x > 5 AND y = 1"))
    optimizer.subscribe(cover("y = 1"))
    assert optimizer.differences() == [1 / 3]


def test_a_node_that_moves_counts_in_both_trees() -> None:
    """Its old edge is in one tree only, its new edge in the other; what hangs below it is in both."""
    optimizer = Optimizer(1, Settings(threshold=0))
    optimizer.subscribe(cover("x > 5 AND y = 1"))
    optimizer.updates(0)
    optimizer.subscribe(cover("x > 4"))
    # Told: x>5 (1), y (1/2). Now: x>4 (1), x>5 (1/2), y (1/4).
    assert optimizer.differences() == [(1 + 1 + 0.5) / (1.5 + 1.75)]
