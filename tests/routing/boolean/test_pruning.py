"""Pruned trees hold for more, never for less, and what costs least is pruned first."""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
from boolean_trees import nodes, predicate
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from branchline.routing.boolean.forest import forest_of
from branchline.routing.boolean.jumps import HOLDS, jumps
from branchline.routing.boolean.pruning import Target, apply, gone, pruned, prunings, prunings_of
from branchline.routing.boolean.selectivity import Selectivity, Share, degradation, estimate
from branchline.routing.boolean.trees import AllOf, Node, OneOf, Predicate, holds, leaves, size

several = st.lists(nodes(), min_size=1, max_size=4)
parts = st.sampled_from([0.0, 0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0])
shares = st.lists(parts, min_size=6, max_size=6).map(
    lambda drawn: {predicate(number): share for number, share in enumerate(drawn)}.__getitem__
)
quick = settings(deadline=None)


def cuts(tree: Node, gone: frozenset[int]) -> Iterator[int]:
    """The nodes that a pruning may take, by number, of a tree without those that are gone."""
    for node, (parent, _) in numbered(tree).items():
        if parent is None or node in gone or lost(tree, node, gone):
            continue
        siblings = [each for each, (above, _) in numbered(tree).items() if above == parent]
        if isinstance(numbered(tree)[parent][1], AllOf) and any(
            each != node and each not in gone for each in siblings
        ):
            yield node


@lru_cache
def numbered(tree: Node) -> dict[int, tuple[int | None, Node]]:
    """Each node by number, with that of its parent."""
    found: dict[int, tuple[int | None, Node]] = {}

    def visit(node: Node, parent: int | None) -> None:
        here = len(found)
        found[here] = (parent, node)
        if isinstance(node, AllOf | OneOf):
            for part in node.parts:
                visit(part, here)

    visit(tree, None)
    return found


def lost(tree: Node, node: int, gone: frozenset[int]) -> bool:
    above: int | None = node
    while above is not None:
        if above in gone:
            return True
        above = numbered(tree)[above][0]
    return False


def without(tree: Node, gone: frozenset[int]) -> Node:
    """The tree without these nodes, with every inner node kept, whatever it has left."""
    place = iter(range(1_000))

    def kept(node: Node) -> Node | None:
        here = next(place)
        made = node
        if isinstance(node, AllOf | OneOf):
            made = type(node)(tuple(part for part in map(kept, node.parts) if part is not None))
        return None if here in gone else made

    found = kept(tree)
    assert found is not None
    return found


def searched(trees: Sequence[Node], share: Share) -> list[tuple[int, int, float]]:
    """All prunings in order, each found by looking at every one that there is."""
    gone: list[frozenset[int]] = [frozenset() for _ in trees]
    done: list[tuple[int, int, float]] = []
    while True:
        found = [
            (_cost(tree, lost_, node, share), at, node)
            for at, (tree, lost_) in enumerate(zip(trees, gone, strict=True))
            for node in cuts(tree, lost_)
        ]
        if not found:
            return done
        by, at, node = min(found)
        gone[at] |= {node}
        done.append((at, node, by))


def _cost(tree: Node, gone: frozenset[int], node: int, share: Share) -> float:
    return degradation(estimate(without(tree, gone), share), estimate(without(tree, gone | {node}), share))


@quick
@given(several, shares)
def test_the_smallest_degradation_comes_first(trees: list[Node], share: Share) -> None:
    """The same prunings in the same order as a search over all of them finds."""
    done = prunings(trees, share)
    assert list(zip(done.tree.tolist(), done.node.tolist(), done.degradation.tolist(), strict=True)) == (
        searched(trees, share)
    )


@quick
@given(several, shares, st.sets(st.integers(0, 5)), st.data())
def test_pruning_never_loses_an_event(
    trees: list[Node], share: Share, numbers: set[int], data: st.DataObject
) -> None:
    """After any number of prunings a tree holds wherever it did, and with each for the same or more."""
    done = prunings(trees, share)
    fulfilled = {predicate(each) for each in numbers}.__contains__
    steps = sorted(data.draw(st.lists(st.integers(0, len(done)), max_size=3)))
    before = trees
    for count in steps:
        after = apply(trees, done, count)
        for one, other in zip(before, after, strict=True):
            assert holds(other, fulfilled) >= holds(one, fulfilled)
            assert set(leaves(other)) <= set(leaves(one))
        before = after


@quick
@given(several, shares, st.sets(st.integers(0, 5)), st.data())
def test_a_forest_is_pruned_without_making_trees_again(
    trees: list[Node], share: Share, numbers: set[int], data: st.DataObject
) -> None:
    """After any number of prunings a tree's row says what the pruned tree says, also of a part of them."""
    forest = forest_of(trees)
    which = data.draw(st.lists(st.integers(0, len(trees) - 1), max_size=4))
    part = forest.taken(np.array(which, np.int64))
    mine = [trees[each] for each in which]
    done = prunings_of(part, np.array([share(each) for each in forest.predicates]))
    assert done.node.tolist() == prunings(mine, share).node.tolist()
    count = data.draw(st.integers(0, len(done)))
    rows = jumps(part.nodes, gone(part, done, count))
    fulfilled = [each in {predicate(number) for number in numbers} for each in forest.predicates]
    for at, tree in enumerate(apply(mine, done, count)):
        row = slice(rows.first[at], rows.first[at + 1])
        asked, yes, no = (column[row].tolist() for column in (rows.leaf, rows.yes, rows.no))
        place = 0
        while place >= 0:
            place = yes[place] if fulfilled[asked[place]] else no[place]
        held = holds(tree, {predicate(number) for number in numbers}.__contains__)
        assert (place == HOLDS) is held
        assert not held or sum(fulfilled[each] for each in asked) >= rows.least[at]
        assert [forest.predicates[each] for each in asked] == list(
            leaves(without(mine[at], frozenset(done.node[:count][done.tree[:count] == at].tolist())))
        )


@quick
@given(several, shares)
def test_all_prunings_leave_no_and_with_two_children(trees: list[Node], share: Share) -> None:
    """Nothing more can be pruned then, each tree has a leaf, and the leaves that went were counted."""
    done = prunings(trees, share)
    made = apply(trees, done)
    assert not any(isinstance(node, AllOf) for tree in made for _, node in numbered(tree).values())
    assert all(size(tree) for tree in made)
    assert len(prunings(made, share)) == 0
    gone = [frozenset(done.node[done.tree == at].tolist()) for at in range(len(trees))]
    left = sum(size(without(tree, lost_)) for tree, lost_ in zip(trees, gone, strict=True))
    assert sum(map(size, trees)) - int(done.leaves.sum()) == left


@quick
@given(several, shares, parts, parts)
def test_a_target_ends_it_in_time(trees: list[Node], share: Share, part: float, most: float) -> None:
    """What is done is the beginning of all prunings, no longer than it takes, and as long if it can be."""
    everything = prunings(trees, share)
    total = sum(map(size, trees))
    by_memory = prunings(trees, share, Target(memory=part))
    assert by_memory.node.tolist() == everything.node[: len(by_memory)].tolist()
    assert by_memory.leaves[:-1].sum() < part * total or not len(by_memory)
    assert by_memory.leaves.sum() >= part * total or len(by_memory) == len(everything)
    by_precision = prunings(trees, share, Target(precision=most))
    assert all(each <= most for each in by_precision.degradation)
    assert len(by_precision) == len(everything) or everything.degradation[len(by_precision)] > most
    by_time = prunings(trees, share, Target(time=part))
    assert by_time.node.tolist() == everything.node[: len(by_time)].tolist()

    def work(made: Sequence[Node]) -> float:
        return sum(share(each) for tree in made for each in leaves(tree))

    saved = work(trees) - work(apply(trees, by_time))
    assert saved >= part * work(trees) - 1e-9 or len(by_time) == len(everything)


@given(nodes(), shares)
def test_a_selectivity_is_between_its_bounds(tree: Node, share: Share) -> None:
    """The likely share lies between the least and the largest that there can be."""
    least, likely, largest = estimate(tree, share)
    assert -1e-9 <= least <= likely + 1e-9 <= largest + 2e-9 <= 1 + 1e-8


@given(nodes(depth=2), st.lists(st.sets(st.integers(0, 5)), min_size=1, max_size=12))
def test_counted_shares_lie_within_the_estimate(tree: Node, events: list[set[int]]) -> None:
    """However predicates hang together, a tree holds for a share of events between least and largest."""
    fulfilled = [{predicate(each) for each in event} for event in events]

    def share(each: Predicate) -> float:
        return sum(each in event for event in fulfilled) / len(events)

    held = sum(holds(tree, event.__contains__) for event in fulfilled) / len(events)
    least, _, largest = estimate(tree, share)
    assert least - 1e-9 <= held <= largest + 1e-9


def test_a_worked_case() -> None:
    """The estimate of a AND (b OR c), and of what is left of it."""
    a, b, c = map(predicate, range(3))
    share = {a: 0.5, b: 0.2, c: 0.4}.__getitem__
    tree = AllOf((a, OneOf((b, c))))
    found = estimate(tree, share)
    assert all(map(math.isclose, found, Selectivity(0.0, 0.26, 0.5)))
    done = prunings([tree], share)
    assert (done.node.tolist(), done.leaves.tolist()) == ([1], [1])
    assert math.isclose(done.degradation[0], 0.4)
    assert pruned(tree, [1]) == OneOf((b, c))


@given(nodes())
def test_no_pruning_leaves_the_tree_as_it_is(tree: Node) -> None:
    """The very tree, so that what is not pruned costs nothing."""
    assume(size(tree))
    assert pruned(tree, ()) is tree
