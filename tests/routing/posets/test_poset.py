"""The filters poset is the graph of immediate covering, whoever comes and goes."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from poset_scripts import SOURCES, box, pools, some_filters, steps
from table_filters import sql

from branchline.routing.filters import Filter, covers
from branchline.routing.posets.checking import minimal_cover, poset_faults
from branchline.routing.posets.poset import Poset
from branchline.routing.posets.searching import find_place
from branchline.routing.posets.subscribing import forwards, subscribe, told, unsubscribe

Wanted = set[tuple[Filter, str]]


class Siena:
    """What is wanted, by definition: for each source, no filter that another of its own covers."""

    def __init__(self) -> None:
        self.wanted: Wanted = set()

    def subscribe(self, filter_: Filter, source: str) -> bool:
        if any(who == source and covers(each, filter_) for each, who in self.wanted):
            return False
        self.unsubscribe(filter_, source)
        self.wanted.add((filter_, source))
        return True

    def unsubscribe(self, filter_: Filter, source: str) -> set[Filter]:
        gone = {(each, who) for each, who in self.wanted if who == source and covers(filter_, each)}
        self.wanted -= gone
        return {each for each, _ in gone}


def in_table(poset: Poset) -> set[tuple[Filter, object]]:
    return {(poset.entry(each).filter, source) for each in poset for source in poset.entry(each).sources}


@given(pools, steps)
def test_the_table_is_what_the_definition_says(
    pool: list[Filter], script: list[tuple[bool, int, str]]
) -> None:
    """After every step: the same subscriptions, and links that are just the immediate pairs."""
    poset, oracle = Poset(), Siena()
    for joins, which, source in script:
        filter_ = pool[which]
        if joins:
            before = set(oracle.wanted)
            outcome = subscribe(poset, filter_, source)
            assert outcome.changed == oracle.subscribe(filter_, source)
            assert {(each, source) for each in outcome.taken} == before - oracle.wanted
        else:
            assert set(unsubscribe(poset, filter_, source)) == oracle.unsubscribe(filter_, source)
        assert in_table(poset) == oracle.wanted
        assert not poset_faults(poset)


def test_large_tables_are_what_the_definition_says() -> None:
    """Of 600 steps with boxes, of which a third are unsubscriptions; looked at every hundred steps."""
    poset, oracle, random = Poset(), Siena(), Random(1)
    for step in range(1, 601):
        filter_, source = box(random, random.randint(1, 2), 30), str(random.randrange(6))
        if random.random() < 1 / 3:
            unsubscribe(poset, filter_, source)
            oracle.unsubscribe(filter_, source)
        else:
            subscribe(poset, filter_, source)
            oracle.subscribe(filter_, source)
        if step % 100 == 0:
            assert in_table(poset) == oracle.wanted
            assert not poset_faults(poset)


@given(pools, steps, st.sampled_from([SOURCES[:2], SOURCES, ("elsewhere",)]))
def test_neighbours_are_told_the_minimal_cover_of_what_others_want(
    pool: list[Filter], script: list[tuple[bool, int, str]], neighbours: tuple[str, ...]
) -> None:
    """Each neighbour of just the filters that no other filter of somebody else than it covers."""
    poset = Poset()
    for joins, which, source in script:
        (subscribe if joins else unsubscribe)(poset, pool[which], source)
    for neighbour in neighbours:
        others = {each for each, source in in_table(poset) if source != neighbour}
        assert told(poset, neighbour) == minimal_cover(others)
        sent = {each for each in others if neighbour in forwards(poset, each, set(neighbours))}
        assert sent == minimal_cover(others)


@given(pools, some_filters)
def test_a_place_lies_between_what_covers_it_and_what_it_covers(pool: list[Filter], filter_: Filter) -> None:
    """For any filter, whether or not it is then put there; looking changes nothing."""
    poset = Poset()
    for number, each in enumerate(pool):
        subscribe(poset, each, number)
    if filter_ in poset:
        return
    place = find_place(poset, filter_)
    filters = [poset.entry(each).filter for each in poset]
    above = {each for each in filters if covers(each, filter_)}
    below = {each for each in filters if covers(filter_, each)}
    assert {poset.entry(each).filter for each in place.covered} == below
    assert {poset.entry(each).filter for each in place.below} == minimal_cover(below)
    assert {poset.entry(each).filter for each in place.above} == {
        each for each in above if not any(covers(each, other) for other in above if other != each)
    }


def test_fewer_tests_are_made_than_there_are_pairs() -> None:
    """Of 300 boxes that all stay, not half of the pairs are compared, and as many in every run."""
    counts = []
    for _ in range(2):
        poset, random = Poset(), Random(1)
        for number in range(300):
            subscribe(poset, box(random, values=1_000), number)
        counts.append(poset.comparisons.tests)
    assert counts[0] == counts[1] < 300 * 299 / 2


def test_what_is_known_by_its_hash_costs_no_test() -> None:
    """A filter that is there already is neither compared to gain a source nor to lose one."""
    poset, random = Poset(), Random(2)
    known = [box(random) for _ in range(20)]
    for number, each in enumerate(known):
        subscribe(poset, each, number)
    before = poset.comparisons.tests
    for each in known:
        subscribe(poset, each, "another")
        unsubscribe(poset, each, "another")
    assert poset.comparisons.tests == before


def test_a_table_describes_itself() -> None:
    """Each filter once, below one that covers it, with who asked for it; a second way up is counted."""
    poset = Poset()
    texts = ("x >= 0", "x >= 0 AND x <= 5", "y = 1 AND x >= 2 AND x <= 3", "y = 1")
    for source, text in zip("abba", texts, strict=True):
        (asked,) = sql(text)
        subscribe(poset, asked.cover[0], source)
    assert poset.describe().splitlines() == [
        "x >= 0 <- a",
        "  x >= 0 AND x <= 5 <- b",
        "y = 1 <- a",
    ]
    (asked,) = sql("y = 1 AND x >= 2 AND x <= 3")
    subscribe(poset, asked.cover[0], "c")
    assert "    x >= 2 AND x <= 3 AND y = 1 (+1 above) <- c" in poset.describe().splitlines()
    assert poset.links == 3
