"""The Tree Optimizer: the same filters make the same tree, and nothing is left of one that has gone."""

from itertools import combinations

from amounts import often
from filter_world import WORLD
from hypothesis import given
from hypothesis import strategies as st
from prefix_scripts import budgets, cover, some_filters

from branchline.routing import intervals
from branchline.routing.event import Event
from branchline.routing.filters import Filter
from branchline.routing.prefix.forwarding import Forwarder
from branchline.routing.prefix.optimizer import Optimizer, Settings
from branchline.routing.prefix.tree import ROOT, Tree, View
from branchline.routing.prefix.trees import Trees
from branchline.routing.prefix.updates import part_of

histories = st.lists(st.tuples(st.booleans(), some_filters, st.integers(0, 50)), max_size=20)


def play(optimizer: Optimizer, history: list[tuple[bool, Filter, int]]) -> list[Filter]:
    """Subscribe and unsubscribe; the filters that are left."""
    held: list[Filter] = []
    for joins, filter_, choice in history:
        if joins or not held:
            optimizer.subscribe((filter_,))
            held.append(filter_)
        else:
            optimizer.unsubscribe((held.pop(choice % len(held)),))
    return held


def told(optimizer: Optimizer, filters: list[Filter], parts: int) -> Forwarder:
    """A broker that knows the filters and what the optimizer has told."""
    broker = Forwarder(Trees(parts))
    for owner, filter_ in enumerate(filters):
        broker.subscribe((filter_,), owner)
    optimizer.updates(0)
    for piece in optimizer.snapshots():
        broker.trees.apply(piece)
    return broker


@often
@given(histories, budgets, st.integers(1, 3))
def test_the_same_filters_make_the_same_trees(
    history: list[tuple[bool, Filter, int]], budget: tuple[int, int, int], parts: int
) -> None:
    """Two optimizers that are fed the same tell the same, with the same digests."""
    settings = Settings(parts, 0, 0, 0.5, *budget)
    one, other = Optimizer(1, settings), Optimizer(1, settings)
    play(one, history)
    play(other, history)
    assert one.describe() == other.describe()
    assert one.updates(0) == other.updates(0)
    assert one.snapshots() == other.snapshots()
    assert [one.part(part).tree.digest for part in range(parts)] == [
        other.part(part).tree.digest for part in range(parts)
    ]


@often
@given(histories, budgets, st.integers(1, 3))
def test_a_tree_with_removals_finds_what_one_without_them_does(
    history: list[tuple[bool, Filter, int]], budget: tuple[int, int, int], parts: int
) -> None:
    """A filter that has gone leaves nothing that anybody could notice but in shapes and numbers."""
    settings = Settings(parts, 0, 0, 0.5, *budget)
    long, short = Optimizer(1, settings), Optimizer(1, settings)
    held = play(long, history)
    for filter_ in held:
        short.subscribe((filter_,))
    brokers = [told(long, held, parts), told(short, held, parts)]
    for event in WORLD[::11]:
        found = [broker.find(broker.enter(Event(event.attributes)), Event({})) for broker in brokers]
        assert found[0] == found[1]
        assert not found[0].doubtful
    for filter_ in held:
        long.unsubscribe((filter_,))
    assert all(not long.part(part).tree.nodes and not long.part(part).overflow for part in range(parts))


@often
@given(histories)
def test_siblings_do_not_overlap(history: list[tuple[bool, Filter, int]]) -> None:
    """Children of one node on one dimension are disjoint ranges, or words none of which contains another."""
    optimizer = Optimizer(1)
    play(optimizer, history)
    tree = optimizer.part(0).tree
    nodes = [ROOT, *tree.below(ROOT)]
    assert len(nodes) == tree.nodes + 1
    for node in nodes:
        for (*_, are_words), siblings in tree.children(node).items():
            said = [tree.constraint(tree.child(edge))[2] for edge in siblings]
            for one, other in combinations(said, 2):
                if are_words:
                    assert str(one) not in str(other)
                    assert str(other) not in str(one)
                else:
                    assert not intervals.overlaps(one, other)  # type: ignore[arg-type]
            numbers = [tree.number(edge) for edges in tree.children(node).values() for edge in edges]
            assert len(numbers) == len(set(numbers))


@often
@given(histories, st.integers(1, 6))
def test_a_view_is_the_tree_that_there_was(history: list[tuple[bool, Filter, int]], every: int) -> None:
    """The tree as it was at a version is the one that a broker which stopped there has."""
    optimizer = Optimizer(1, Settings(threshold=0, limit_ms=0))
    broker = Forwarder()
    shapes: dict[int, object] = {0: ()}
    held: list[Filter] = []
    for place, (joins, filter_, choice) in enumerate(history):
        if joins or not held:
            optimizer.subscribe((filter_,))
            held.append(filter_)
        else:
            optimizer.unsubscribe((held.pop(choice % len(held)),))
        if place % every == 0:
            for update in optimizer.updates(0):
                broker.trees.apply(update)
                shapes[update.version.clock] = _shape(
                    broker.trees.vocabularies[0].tree, broker.trees.vocabularies[0].tree
                )
        vocabulary = broker.trees.vocabularies[0]
        for clock in vocabulary.clocks():
            assert _shape(vocabulary.tree, vocabulary.view(clock)) == shapes[clock]


def _shape(tree: Tree, shape: Tree | View) -> tuple[object, ...]:
    """Everything that a tree says, in an order of its own."""
    made = []
    pending = [ROOT]
    while pending:
        node = pending.pop()
        for siblings in shape.children(node).values():
            made += [tree.edge(edge) for edge in siblings]
            pending += [tree.child(edge) for edge in siblings]
    return tuple(sorted(made))


def test_a_filter_that_two_have_stays_until_both_are_gone() -> None:
    """Filters are counted, and the tree does not grow with who has them."""
    optimizer = Optimizer(1)
    optimizer.subscribe(cover("x > 5"))
    optimizer.subscribe(cover("x > 5"))
    assert optimizer.part(0).tree.nodes == 1
    optimizer.unsubscribe(cover("x > 5"))
    assert optimizer.part(0).tree.nodes == 1
    optimizer.unsubscribe(cover("x > 5"))
    assert optimizer.part(0).tree.nodes == 0


def test_a_node_lives_while_a_path_runs_through_it() -> None:
    """What another filter was split against, or hangs below, goes with the last of these."""
    optimizer = Optimizer(1)
    for text in ("x > 5", "x < 9", "x > 0 AND x < 2"):
        optimizer.subscribe(cover(text))
    optimizer.unsubscribe(cover("x > 5"))
    assert optimizer.part(0).tree.nodes == 4
    optimizer.unsubscribe(cover("x < 9"))
    assert optimizer.part(0).tree.nodes == 2, "x <= 5 had adopted the last one, which keeps it"
    optimizer.unsubscribe(cover("x > 0 AND x < 2"))
    assert optimizer.part(0).tree.nodes == 0


def test_numbers_are_never_given_twice() -> None:
    """Neither a node's, nor a child's under its parent, nor one beside the tree."""
    optimizer = Optimizer(1, Settings(threshold=0, limit_ms=0, nodes_per_filter=0, spare_nodes=1))
    seen: set[object] = set()
    for _ in range(5):
        optimizer.subscribe(cover("x = 1"))
        optimizer.subscribe(cover("y = 1"))
        [update] = optimizer.updates(0)
        named = {("node", edge.child) for edge in update.born}
        named |= {("edge", edge.parent, edge.number) for edge in update.born}
        named |= {("number", number) for number, _ in update.numbered}
        assert len(named) == 3
        assert not named & seen
        seen |= named
        optimizer.unsubscribe(cover("x = 1"))
        optimizer.unsubscribe(cover("y = 1"))
        if len(seen) % 2:
            optimizer.updates(0)


@often
@given(some_filters, some_filters, st.integers(1, 5))
def test_a_part_is_decided_by_the_first_dimension(one: Filter, other: Filter, parts: int) -> None:
    """Filters with the same first dimension are in one part; without a constraint, in the first."""
    assert 0 <= part_of(one, parts) < parts
    assert part_of((), parts) == 0
    if one and other and one[0].dimension == other[0].dimension:
        assert part_of(one, parts) == part_of(other, parts)


def test_parts_are_the_same_in_every_process() -> None:
    """The hash is a stable one: these are numbers that must never change."""
    assert [part_of(cover(f"{name} = 1")[0], 5) for name in "abcdefgh"] == [1, 0, 4, 4, 4, 0, 0, 4]


def test_the_description_of_the_optimizer() -> None:
    """People see each part: what was told, how far it is from now, the tree, and the filters beside it."""
    optimizer = Optimizer(7, Settings(parts=2, threshold=0, limit_ms=0, nodes_per_filter=0, spare_nodes=3))
    for text in ("x > 5 AND y = 1", "x < 9"):
        optimizer.subscribe(cover(text))
    optimizer.updates(0)
    optimizer.unsubscribe(cover("x > 5 AND y = 1"))
    optimizer.subscribe(cover("x > 5"))
    optimizer.subscribe(cover("q LIKE '%a%' AND r IS NULL"))
    assert optimizer.describe() == (
        "part 0 at 7/0, 1.000 from what was told\n"
        "  0 q CONTAINS 'a'\n"
        "    0 r IS NULL\n"
        "part 1 at 7/1, 1.000 from what was told\n"
        "  1 x > 5\n"
        "  #0 x < 9"
    )


def test_filters_beside_the_tree_are_told_too() -> None:
    """Numbers weigh nothing in the tree, but when many are new or gone they are told without a time limit."""
    optimizer = Optimizer(1, Settings(threshold=0.3, limit_ms=None, nodes_per_filter=0, spare_nodes=1))
    optimizer.subscribe(cover("a = 1"))
    assert len(optimizer.updates(0)) == 1
    optimizer.subscribe(cover("b = 1"))
    [update] = optimizer.updates(0)
    assert [number for number, _ in update.numbered] == [0]
    optimizer.unsubscribe(cover("b = 1"))
    [update] = optimizer.updates(0)
    assert update.unnumbered == (0,)


def test_snapshots_come_on_schedule() -> None:
    """Each time the interval has passed, counted from the first look, and at any time on request."""
    optimizer = Optimizer(1, Settings(snapshot_ms=100))
    optimizer.subscribe(cover("a = 1"))
    optimizer.updates(0)
    due = [bool(optimizer.snapshots_due(now_ms)) for now_ms in (0, 99, 100, 150, 199, 200)]
    assert due == [False, False, True, False, False, True]
    assert optimizer.snapshots()[0].edges
    assert Optimizer(1, Settings(snapshot_ms=None)).snapshots_due(10**9) == []
