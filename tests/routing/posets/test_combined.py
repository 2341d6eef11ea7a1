"""A forest for clients with a poset for neighbours: nobody's subscription ends with another's."""

from hypothesis import given
from hypothesis import strategies as st
from poset_scripts import pools

from branchline.routing.filters import Filter
from branchline.routing.posets.checking import forest_faults, minimal_cover, poset_faults
from branchline.routing.posets.combined import Combined, Letter
from branchline.routing.posets.poset import Poset
from branchline.routing.posets.subscribing import subscribe, unsubscribe

NEIGHBOURS = ("north", "south")
CLIENTS = ("ann", "bob")
steps = st.lists(
    st.tuples(st.booleans(), st.integers(0, 7), st.sampled_from((*NEIGHBOURS, *CLIENTS))),
    min_size=1,
    max_size=25,
)


def obey(poset: Poset, letter: Letter, sender: str) -> None:
    """What a neighbour does with a letter: ends first."""
    for each in letter.ended:
        unsubscribe(poset, each, sender)
    for each in letter.begun:
        subscribe(poset, each, sender)


@given(pools, steps)
def test_neighbours_know_the_minimal_cover_of_what_all_others_want(
    pool: list[Filter], script: list[tuple[bool, int, str]]
) -> None:
    """Letter by letter, a neighbour's own table comes to hold just what it should of this router."""
    router, theirs = Combined(NEIGHBOURS), {each: Poset() for each in NEIGHBOURS}
    clients: set[tuple[Filter, str]] = set()
    for joins, which, who in script:
        filter_ = pool[which]
        if who in CLIENTS:
            letters = (router.subscribe_here if joins else router.unsubscribe_here)(filter_, who)
            (clients.add if joins else clients.discard)((filter_, who))
        else:
            letters = (router.subscribe if joins else router.unsubscribe)(filter_, who)
        for neighbour, letter in letters.items():
            obey(theirs[neighbour], letter, "router")
        assert not forest_faults(router.clients) and not poset_faults(router.others)
        for neighbour in NEIGHBOURS:
            wanted = {each for each, _ in clients}
            for number in router.others:
                entry = router.others.entry(number)
                if entry.sources - {neighbour, "here"}:
                    wanted.add(entry.filter)
            assert router.told(neighbour) == minimal_cover(wanted)
            known = {theirs[neighbour].entry(each).filter for each in theirs[neighbour]}
            assert known == minimal_cover(wanted)


@given(pools)
def test_a_client_below_the_roots_concerns_nobody_else(pool: list[Filter]) -> None:
    """While a root covers it, what a client does gives no letter and no covering test in the poset."""
    router = Combined(NEIGHBOURS)
    for each in pool:
        router.subscribe_here(each, "ann")
    before = router.others.comparisons.tests
    for each in set(pool) - router.clients.root_filters():
        assert router.subscribe_here(each, "bob") == router.unsubscribe_here(each, "ann") == {}
    assert router.others.comparisons.tests == before
    assert "north is told" in router.describe()
