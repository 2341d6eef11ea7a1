"""The parts of offloading: layers, what clients answer, majorities, and fixed sets."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from poset_scripts import SOURCES, box, pools, some_filters, steps

from branchline.routing.dimensions import Axis
from branchline.routing.filters import Filter, Range, covers
from branchline.routing.intervals import HIGHEST, Interval, after, before
from branchline.routing.offloading.client import answer, claim, order_of
from branchline.routing.offloading.fixed import FixedRouter
from branchline.routing.offloading.layers import Layers
from branchline.routing.offloading.messages import Assignment, Between, Claim, Listed, Task
from branchline.routing.offloading.rounds import from_above, most_frequent, reach
from branchline.routing.posets.checking import immediate_pairs, link_faults, poset_faults
from branchline.routing.posets.forest import Forest
from branchline.routing.posets.graph import Graph
from branchline.routing.posets.poset import Poset
from branchline.routing.posets.subscribing import subscribe, unsubscribe


def longest_way(graph: Graph, number: int) -> int:
    """How far a filter is from the roots, asked step by step upwards."""
    length, level = 0, set(graph.entry(number).above)
    while level:
        length += 1
        level = set().union(*(graph.entry(each).above for each in level))
    return length


@given(pools, steps, st.integers(1, 4), st.booleans())
def test_layers_are_those_of_a_table_laid_out_anew(
    pool: list[Filter], script: list[tuple[bool, int, str]], size: int, is_poset: bool
) -> None:
    """After every step: each filter in one slice of its own layer, none empty or too large."""
    table: Poset | Forest = Poset() if is_poset else Forest()
    layers = Layers(table, size)
    for joins, which, source in script:
        if isinstance(table, Poset):
            (subscribe if joins else unsubscribe)(table, pool[which], source)
        else:
            (table.subscribe if joins else table.unsubscribe)(pool[which], source)
        layers.settle()
        listed = [each for part in layers.slices() for each in part.listed()]
        assert sorted(each.number for each in listed) == sorted(table)
        for part in layers.slices():
            assert 1 <= len(part.listed()) <= size
            for number, filter_ in part.listed():
                assert layers.layer(number) == part.layer == longest_way(table, number)
                assert table.entry(number).filter == filter_
        assert len(layers) == 1 + max((longest_way(table, each) for each in table), default=-1)


def test_what_did_not_change_is_not_looked_at() -> None:
    """A filter with nothing below it costs one look, and the slices of other layers stay as they are."""
    poset, random = Poset(), Random(1)
    for number in range(60):
        subscribe(poset, box(random, values=60), number)
    layers = Layers(poset, 5)
    before_ = {part.number: part.listed() for part in layers.slices()}
    subscribe(poset, tuple(each for name in "xyz" for each in _above_all(name)), "deep")
    assert layers.settle() == 1
    same = [part for part in layers.slices() if part.listed() is before_.get(part.number)]
    assert len(same) >= len(before_) - 1


def _above_all(name: str) -> Filter:
    return (Range((name,), Axis.NUMBER, Interval(after(1_000), HIGHEST)),)


@given(st.lists(some_filters, min_size=1, max_size=6, unique=True), pools)
def test_an_honest_answer_is_what_covering_says(batch: list[Filter], table: list[Filter]) -> None:
    """Numbers ascending, for each filter of the batch; the order of the batch is its immediate pairs."""
    listed = tuple(Listed(3 * place, each) for place, each in enumerate(table))[::-1]
    got = answer(Task(7, 1, listed, tuple(batch)), "a")
    assert (got.round, got.slice, got.client) == (7, 1, "a")
    for new, above, below in zip(batch, got.above, got.below, strict=True):
        assert above == tuple(3 * place for place, each in enumerate(table) if covers(each, new))
        assert below == tuple(3 * place for place, each in enumerate(table) if covers(new, each))
    links = {(batch[above], batch[place]) for place, each in enumerate(got.order) for above in each.above}
    assert links == immediate_pairs(batch)
    assert links == {
        (batch[place], batch[under]) for place, each in enumerate(got.order) for under in each.below
    }


def test_what_is_above_comes_first_also_in_circles() -> None:
    """In a true order always; in one that was made up all places still come once."""
    filters = [box(Random(number)) for number in range(12)]
    distinct = list(dict.fromkeys(filters))
    above = reach(order_of(distinct))
    order = from_above(above)
    for place, each in enumerate(order):
        assert not any(covers(distinct[later], distinct[each]) for later in order[place + 1 :])
    circle = [Between((1,), (1,)), Between((0,), (0,))]
    assert sorted(from_above(reach(circle))) == [0, 1]


def test_the_most_frequent_answer_counts_if_there_is_one() -> None:
    """More often than any other; two that come equally often decide nothing."""
    assert most_frequent(["a", "b", "a"]) == "a"
    assert most_frequent(["a", "b", "a", "b", "c"]) is most_frequent([]) is None


@given(
    pools,
    st.lists(st.tuples(some_filters, st.sampled_from(SOURCES)), max_size=10),
    st.lists(st.integers(0, 7), max_size=3),
    st.booleans(),
)
def test_a_fixed_set_changes_nothing_but_tests(
    pool: list[Filter], asked: list[tuple[Filter, str]], leaving: list[int], old: bool
) -> None:
    """Also when some of it has left the table, or the client has an older one."""
    router, alone = FixedRouter(Poset()), Poset()
    for number, each in enumerate(pool):
        for poset in (router.table, alone):
            subscribe(poset, each, number)
    assignment = router.assign(pool[:5])
    if old:
        router.assign(pool[3:])
    for number in leaving:
        for poset in (router.table, alone):
            unsubscribe(poset, pool[number], number)
    for filter_, source in asked:
        outcome = router.subscribe(claim(assignment, filter_), source)
        assert set(outcome.taken) == set(subscribe(alone, filter_, source).taken)
        assert not poset_faults(router.table)
        assert router.table.root_filters() == alone.root_filters()
    assert router.refuted == 0


@given(
    pools,
    st.lists(
        st.tuples(some_filters, *[st.lists(st.integers(-1, 8), max_size=4)] * 2, st.sampled_from(SOURCES)),
        max_size=10,
    ),
)
def test_false_claims_lose_nobody_an_event(
    pool: list[Filter], asked: list[tuple[Filter, list[int], list[int], str]]
) -> None:
    """Whatever is claimed, links are true and each source has what it asked for, or what covers it."""
    router = FixedRouter(Poset())
    for number, each in enumerate(pool):
        subscribe(router.table, each, number)
    router.assign(pool[:6])
    for filter_, above, below, source in asked:
        router.subscribe(Claim(1, filter_, tuple(above), tuple(below)), source)
        assert not link_faults(router.table)
    there = [router.table.entry(each) for each in router.table]
    for filter_, _, _, source in asked:
        assert any(source in each.sources and covers(each.filter, filter_) for each in there)


def test_a_fixed_set_saves_tests() -> None:
    """The more of the table clients know, the fewer tests are left; those for what it says are few."""
    random = Random(1)
    table = [box(random, values=400) for _ in range(200)]
    late = [box(random, values=400) for _ in range(30)]
    tests = []
    for size in (0, 50, 200):
        router = FixedRouter(Poset())
        for number, each in enumerate(table):
            subscribe(router.table, each, number)
        assignment = router.assign(table[:size])
        before_ = router.table.comparisons.tests
        for number, each in enumerate(late):
            router.subscribe(claim(assignment, each), f"late {number}")
        tests.append(router.table.comparisons.tests - before_)
    assert tests[0] > tests[1] > tests[2]


def test_a_claim_is_the_place_in_the_set() -> None:
    """As in the thesis' example: between 10 and 90, and between 70 and 95, both right above 75 to 80."""
    ranges = [(None, 100), (10, 90), (70, 95), (75, 80)]
    upto, wide, high, new = (_range(*each) for each in ranges)
    order = order_of([upto, wide, high])
    assert order == (Between((), (1, 2)), Between((0,), ()), Between((0,), ()))
    assert claim(Assignment(1, (upto, wide, high), order), new) == Claim(1, new, (1, 2), ())


def _range(low: int | None, high: int) -> Filter:
    return (Range(("p",), Axis.NUMBER, Interval((-1,) if low is None else before(low), after(high))),)
