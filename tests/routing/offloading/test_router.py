"""Offloading changes who does the work, and nothing else: neither for honest clients nor for others."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from offloading_clients import (
    CLIENTS,
    Client,
    garbled,
    honest,
    lying,
    run_round,
    silent,
    subscribe_all,
)
from poset_scripts import SOURCES, box, some_filters

from branchline.routing.filters import Filter, covers
from branchline.routing.offloading.placing import Check
from branchline.routing.offloading.router import Router, Settings
from branchline.routing.posets.checking import forest_faults, link_faults, poset_faults
from branchline.routing.posets.forest import Forest, Variant
from branchline.routing.posets.graph import Graph
from branchline.routing.posets.poset import Poset
from branchline.routing.posets.subscribing import subscribe, unsubscribe

asked_for = st.lists(st.tuples(some_filters, st.sampled_from(SOURCES)), min_size=1, max_size=14)
settings = st.builds(
    Settings,
    batch=st.integers(1, 6),
    slice_size=st.integers(1, 4),
    copies=st.integers(1, 3),
    check=st.sampled_from([Check.LINKS, Check.PLACES]),
)
variants = st.sampled_from(Variant)
Asked = list[tuple[Filter, object]]


def in_table(table: Graph) -> set[tuple[Filter, object]]:
    return {(table.entry(each).filter, source) for each in table for source in table.entry(each).sources}


def alone(asked: Asked) -> Poset:
    poset = Poset()
    for each in asked:
        subscribe(poset, *each)
    return poset


def all_of(client: Client) -> dict[str, Client]:
    return dict.fromkeys(CLIENTS, client)


@given(asked_for, settings, st.sampled_from(Check), st.sampled_from([honest, silent, garbled]))
def test_with_honest_clients_the_poset_is_the_one_made_alone(
    asked: Asked, setting: Settings, check: Check, client: Client
) -> None:
    """Also where all checks are off, where nobody answers, and where only one answer of many is one."""
    setting = Settings(setting.batch, setting.slice_size, setting.copies, check)
    router = Router(Poset(), setting)
    subscribe_all(router, asked, all_of(client))
    assert not poset_faults(router.table)  # type: ignore[arg-type]
    assert in_table(router.table) == in_table(alone(asked))


@given(asked_for, settings, st.sampled_from(Check), variants)
def test_with_honest_clients_a_forest_is_one(
    asked: Asked, setting: Settings, check: Check, variant: Variant
) -> None:
    """Sibling-pure, with the minimal cover as roots; whoever asked has the filter or one that covers it."""
    setting = Settings(setting.batch, setting.slice_size, setting.copies, check)
    router = Router(Forest(variant), setting)
    subscribe_all(router, asked, all_of(honest))
    faults = forest_faults(router.table)  # type: ignore[arg-type]
    assert not [each for each in faults if variant is not Variant.NON_REDUNDANT or "asks for" not in each]
    assert_nobody_lost(router, asked)


def assert_nobody_lost(router: Router, asked: Asked) -> None:
    """Links are true, roots cover everything, and each source has all it asked for or what covers it."""
    assert not link_faults(router.table)
    there, roots = in_table(router.table), router.table.root_filters()
    for filter_, source in asked:
        assert any(who == source and covers(each, filter_) for each, who in there)
        assert any(covers(root, filter_) for root in roots)


@given(asked_for, settings, st.integers(0, 10**6), st.integers(0, 3), st.booleans())
def test_liars_lose_nobody_an_event(
    asked: Asked, setting: Settings, seed: int, honest_ones: int, is_poset: bool
) -> None:
    """Whoever lies, says nothing or garbles: roots still cover all that was asked for."""
    random = Random(seed)
    kinds = [lying(random), silent, garbled]
    clients = {
        name: honest if place < honest_ones else random.choice(kinds) for place, name in enumerate(CLIENTS)
    }
    router = Router(Poset() if is_poset else Forest(Variant.INTERFACES), setting)
    subscribe_all(router, asked, clients, random)
    assert_nobody_lost(router, asked)
    layers = router.layers
    layers.settle()
    assert sorted(each.number for part in layers.slices() for each in part.listed()) == sorted(router.table)


@pytest.mark.parametrize("table", [Poset, Forest], ids=["poset", "forest"])
def test_nothing_but_lies_loses_nobody_an_event(table: type[Graph]) -> None:
    """In forty worlds of boxes, where every answer is made up; plenty of claims are refuted."""
    refuted = 0
    for seed in range(40):
        random = Random(seed)
        asked: Asked = [(box(random), random.choice(SOURCES)) for _ in range(25)]
        made = Poset() if table is Poset else Forest(random.choice(list(Variant)))
        router = Router(made, Settings(batch=random.randint(1, 6), slice_size=4, copies=1))
        subscribe_all(router, asked, all_of(lying(random)), random)
        assert_nobody_lost(router, asked)
        refuted += router.counts.refuted
    assert refuted > 500


@given(asked_for, st.integers(0, 10**6))
def test_a_minority_of_liars_is_outvoted(asked: Asked, seed: int) -> None:
    """Two honest answers of three are the most frequent, so the poset is the one made alone."""
    lie = lying(Random(seed))
    router = Router(Poset(), Settings(batch=4, slice_size=3, copies=3))
    subscribe_all(router, asked, {"a": honest, "b": lie, "c": honest})
    assert not poset_faults(router.table)  # type: ignore[arg-type]
    assert in_table(router.table) == in_table(alone(asked))
    assert router.counts.refuted == 0


@given(asked_for, asked_for, st.lists(st.tuples(some_filters, st.sampled_from(SOURCES)), max_size=4))
def test_unsubscriptions_within_a_round_are_obeyed(first: Asked, batch: Asked, ends: Asked) -> None:
    """In the table, in the round under way and among those that wait: as if what they end had never come."""
    router = Router(Poset(), Settings(batch=min(len(batch), 5), slice_size=2))
    subscribe_all(router, first, all_of(honest))
    for each in batch:
        router.subscribe(*each)
    router.prepare()
    tasks = router.lay_out(CLIENTS)
    ended = [*ends, *batch[:1], *first[:1]]
    for each in ended:
        router.unsubscribe(*each)
    for client, task in tasks:
        for got in honest(task, client):
            router.receive(got)
    assert router.complete
    router.insert()
    router.eliminate()
    subscribe_all(router, [], all_of(honest))
    kept = [each for each in batch if not ends_it(each, ended)]
    expected = alone(first)
    for each in ended:
        unsubscribe(expected, *each)
    for filter_, source in kept:
        subscribe(expected, filter_, source)
    assert not poset_faults(router.table)  # type: ignore[arg-type]
    assert in_table(router.table) == in_table(expected)


def ends_it(asked: tuple[Filter, object], ended: Asked) -> bool:
    return any(who == asked[1] and covers(each, asked[0]) for each, who in ended)


def test_checks_cost_a_test_for_each_link_and_no_more() -> None:
    """Trusted clients leave the router no test, but for the order of the first batch, which goes into an
    empty table; verified ones as many as links were made.
    """
    random = Random(1)
    asked: Asked = [(box(random, values=500), number) for number in range(150)]
    tests = {}
    for check in Check:
        router = Router(Poset(), Settings(batch=10, slice_size=20, copies=1, check=check))
        subscribe_all(router, asked, all_of(honest))
        tests[check] = router.table.comparisons.tests
    assert tests[Check.TRUST] == 10 * 9 < tests[Check.LINKS] < tests[Check.PLACES]
    assert tests[Check.LINKS] < alone(asked).comparisons.tests / 3


def test_a_round_goes_on_without_the_answers_that_are_missing() -> None:
    """What nobody answered for is compared by the router, and counted; other slices are not."""
    random = Random(2)
    router = Router(Poset(), Settings(batch=5, slice_size=4, copies=1))
    subscribe_all(router, [(box(random, values=50), number) for number in range(40)], all_of(honest))
    before = router.counts.computed
    for number in range(5):
        router.subscribe(box(random, values=50), f"late {number}")
    router.prepare()
    first, *rest = router.lay_out(CLIENTS)
    for client, task in rest:
        router.receive(honest(task, client)[0])
    assert not router.complete
    router.insert()
    router.eliminate()
    assert before == 0 and router.counts.computed == 1 and len(first.task.table) <= 4
    assert not poset_faults(router.table)  # type: ignore[arg-type]


def test_work_is_spread_over_clients() -> None:
    """Each slice goes to different clients, and no client gets two tasks more than another."""
    router = Router(Poset(), Settings(batch=1, slice_size=2, copies=2))
    subscribe_all(router, [(box(Random(n), values=90), n) for n in range(30)], all_of(honest))
    router.subscribe(box(Random(99), values=90), "x")
    router.prepare()
    tasks = router.lay_out(CLIENTS)
    asked = [client for client, _ in tasks]
    assert max(map(asked.count, CLIENTS)) - min(map(asked.count, CLIENTS)) <= 1
    assert len({(client, task.slice) for client, task in tasks}) == len(tasks)
    router.insert()
    router.eliminate()
    run_round(router, {})


@pytest.mark.parametrize("wrong", [{"batch": 51}, {"slice_size": 501}, {"copies": 0}])
def test_settings_beyond_their_limits_are_refused(wrong: dict[str, int]) -> None:
    """Each limit is one."""
    with pytest.raises(AssertionError):
        Settings(**wrong)  # type: ignore[arg-type]
