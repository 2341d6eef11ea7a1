"""What a filter is filed under: nothing that covers it, or that it covers, is passed over."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from poset_scripts import box, some_filters

from branchline.routing.dimensions import Axis
from branchline.routing.filters import Filter, Range, covers
from branchline.routing.intervals import point
from branchline.routing.posets.checking import minimal_cover, poset_faults
from branchline.routing.posets.filed import Filed
from branchline.routing.posets.poset import Poset
from branchline.routing.posets.subscribing import subscribe, unsubscribe


def kinds(random: Random, many: int) -> Filter:
    """A range or two, mostly with a kind beside it, of which there are so many."""
    kind = Range(("kind",), Axis.NUMBER, point(random.randrange(many)))
    ranges = box(random, random.randint(1, 2))
    return (kind, *ranges) if random.random() < 0.9 else ranges


@given(
    st.lists(some_filters, min_size=1, max_size=12, unique=True), some_filters, st.sets(st.integers(0, 11))
)
def test_nothing_that_is_related_is_passed_over(some: list[Filter], filter_: Filter, gone: set[int]) -> None:
    """Whatever was filed and taken out again; what is counted is never less than what is found."""
    filed = Filed()
    for each in some:
        filed.add(each)
    for place in gone:
        if place < len(some):
            filed.remove(some[place])
    left = [each for place, each in enumerate(some) if place not in gone]
    assert filed.filters == set(left)
    wider, narrower = list(filed.wider(filter_)), filed.narrower(filter_)
    assert {each for each in left if each != filter_ and covers(each, filter_)} <= set(wider) <= set(left)
    assert {each for each in left if each != filter_ and covers(filter_, each)} <= set(narrower) <= set(left)
    assert len(set(wider)) == len(wider) <= filed.count_wider(filter_)
    assert len(set(narrower)) == len(narrower) <= filed.count_narrower(filter_)


@given(st.integers(0, 10**6), st.integers(1, 20))
def test_a_poset_that_passes_filters_over_is_the_same(seed: int, many: int) -> None:
    """Links are the immediate pairs and roots the minimal cover, though few filters are compared."""
    random, poset = Random(seed), Poset()
    pool = [kinds(random, many) for _ in range(60)]
    for step, filter_ in enumerate(pool):
        subscribe(poset, filter_, step % 7)
        if random.random() < 0.3:
            unsubscribe(poset, random.choice(pool[: step + 1]), random.randrange(7))
        assert not poset_faults(poset)
    assert poset.root_filters() == minimal_cover({poset.entry(number).filter for number in poset})


def test_filters_that_ask_for_other_values_are_not_compared() -> None:
    """As many subscriptions to one kind each as one likes: a test for each of the same kind, not of all."""
    random, poset, size = Random(1), Poset(), 2_000
    for number in range(size):
        kind = Range(("kind",), Axis.NUMBER, point(number % 500))
        subscribe(poset, (kind, *box(random, 1, 1_000)), number)
    assert poset.comparisons.tests < 2 * size * (size // 500)
