"""A poset-derived forest stays sibling-pure, its roots the minimal cover, in all variants."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from poset_scripts import box, pools, steps

from branchline.routing.filters import Filter, covers
from branchline.routing.posets.checking import forest_faults
from branchline.routing.posets.forest import Forest, Variant
from branchline.routing.posets.poset import Poset
from branchline.routing.posets.subscribing import subscribe

variants = st.sampled_from(Variant)


def in_table(forest: Forest) -> set[tuple[Filter, object]]:
    return {(forest.entry(each).filter, source) for each in forest for source in forest.entry(each).sources}


@given(pools, steps, variants)
def test_a_forest_keeps_its_shape(
    pool: list[Filter], script: list[tuple[bool, int, str]], variant: Variant
) -> None:
    """After every step: one parent each, siblings that do not cover each other, roots that are the minimal
    cover, an index that is what a recount finds; without redundance, also no two of one source related.
    """
    forest = Forest(variant)
    for joins, which, source in script:
        (forest.subscribe if joins else forest.unsubscribe)(pool[which], source)
        assert not forest_faults(forest)


@pytest.mark.parametrize("variant", Variant)
def test_large_forests_keep_their_shape(variant: Variant) -> None:
    """Of 400 steps with boxes, of which a third end a subscription that is there; looked at every hundred."""
    forest, random = Forest(variant), Random(1)
    for step in range(1, 401):
        if random.random() < 1 / 3 and len(forest):
            filter_, source = random.choice(sorted(in_table(forest), key=repr))
            assert forest.unsubscribe(filter_, source)
        else:
            forest.subscribe(box(random, random.randint(1, 2), 30), random.randrange(6))
        if step % 100 == 0:
            assert not forest_faults(forest)


@given(pools, steps)
def test_a_plain_forest_keeps_every_subscription(
    pool: list[Filter], script: list[tuple[bool, int, str]]
) -> None:
    """What was subscribed and not unsubscribed is there, covered or not; changes are told as such."""
    forest, wanted = Forest(), set()
    for joins, which, source in script:
        asked = (pool[which], source)
        if joins:
            assert forest.subscribe(*asked) == (asked not in wanted)
            wanted.add(asked)
        else:
            assert forest.unsubscribe(*asked) == (asked in wanted)
            wanted.discard(asked)
        assert in_table(forest) == wanted


@given(pools, steps, st.sampled_from([Variant.INTERFACES, Variant.BALANCED, Variant.NON_REDUNDANT]))
def test_what_is_left_out_is_covered_for_the_same_source(
    pool: list[Filter], script: list[tuple[bool, int, str]], variant: Variant
) -> None:
    """Each subscription that came is there, or one of the same source that covers it."""
    forest, asked = Forest(variant), set()
    for _, which, source in script:
        forest.subscribe(pool[which], source)
        asked.add((pool[which], source))
    there = in_table(forest)
    assert there <= asked
    for filter_, source in asked:
        assert any(who == source and covers(each, filter_) for each, who in there)


def test_without_redundance_a_forest_holds_what_a_poset_holds() -> None:
    """The same filters with the same sources, of 200 boxes of 5 sources."""
    forest, poset, random = Forest(Variant.NON_REDUNDANT), Poset(), Random(1)
    for number in range(200):
        filter_ = box(random, values=40)
        assert forest.subscribe(filter_, number % 5) == subscribe(poset, filter_, number % 5).changed
    assert in_table(forest) == {
        (poset.entry(each).filter, source) for each in poset for source in poset.entry(each).sources
    }
    assert forest.root_filters() == poset.root_filters()


def test_variants_leave_ever_fewer() -> None:
    """Of 400 boxes of 4 sources: plain keeps all, then each variant keeps no more than the one before."""
    sizes = []
    for variant in (Variant.PLAIN, Variant.INTERFACES, Variant.BALANCED, Variant.NON_REDUNDANT):
        forest, random = Forest(variant), Random(3)
        for number in range(400):
            forest.subscribe(box(random, values=100), number % 4)
        sizes.append(len(in_table(forest)))
    assert sizes[0] == 400 and sizes == sorted(sizes, reverse=True) and sizes[-1] < sizes[1]


@pytest.mark.parametrize("variant", Variant)
def test_an_emptied_forest_is_empty(variant: Variant) -> None:
    """Whoever came leaves, and nothing is left."""
    forest, random = Forest(variant), Random(4)
    asked = [(box(random), number % 3) for number in range(60)]
    for each in asked:
        forest.subscribe(*each)
    for filter_, source in sorted(in_table(forest), key=repr):
        assert forest.unsubscribe(filter_, source)
    assert len(forest) == 0 and not forest.roots and forest.describe() == ""
