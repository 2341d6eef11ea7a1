"""The key table: what a key stands for, and that nothing of it is forgotten or left behind."""

from random import Random

from amounts import often
from hypothesis import given
from hypothesis import strategies as st
from reuse_networks import compiled, imprints_of, some_network

from branchline.routing.control import Identity
from branchline.routing.methods.key_table import KeyTable
from branchline.routing.methods.protocols import Interest

seeds = st.integers(0, 2**32)
ANN, BOB = Identity("b1", "ann", "one"), Identity("b2", "bob", "one")


def interest(identity: Identity, text: str) -> Interest:
    return Interest(identity, compiled(text), identity.home)


def test_a_key_may_stand_for_several() -> None:
    """With one key for all, each is found in doubt, and none is forgotten with another."""
    table = KeyTable(imprints_of(0))
    both = [interest(ANN, "x = 1"), interest(BOB, "x = 2")]
    for each in both:
        table.add(each)
    entry = table.find(0)
    assert entry is not None
    assert {each.identity for each in entry.known} == {ANN, BOB}
    assert table.describe() == "00000000: b1/ann/one for b1, b2/bob/one for b2"
    table.remove(both[0])
    entry = table.find(0)
    assert entry is not None
    assert [each.identity for each in entry.known] == [BOB]
    assert table.digest([0]) == entry.check == entry.known[0].check
    table.remove(both[1])
    assert table.find(0) is None


def test_an_equal_filter_in_place_of_another_leaves_the_key() -> None:
    """A subscription that is replaced by the same keeps its key, once the first is gone too."""
    table = KeyTable()
    first = interest(ANN, "x = 1 AND y = 2")
    second = interest(ANN, "y = 2 AND x = 1")
    table.add(first)
    key, owner = table.current(ANN)
    table.add(second)
    table.remove(first)
    assert table.current(ANN) == (key, owner) == (key, "b1")
    assert table.find(key) is not None
    other = interest(ANN, "x = 5")
    table.add(other)
    table.remove(second)
    assert table.current(ANN)[0] != key
    assert table.find(key) is None


@often
@given(seeds)
def test_a_table_is_seen_by_each_home_as_its_own(seed: int) -> None:
    """It is the table that the home would have made of the same subscriptions."""
    source = Random(seed)
    network = some_network(source)
    shared = KeyTable(imprints_of(source.choice((1, 32))))
    for identity in network.filters:
        shared.add(Interest(identity, network.filters[identity][0], identity.home))
    before = shared.describe()
    for home in {identity.home for identity in network.filters}:
        own = KeyTable(shared._imprint)
        for identity, (filter_, _) in network.filters.items():
            own.add(Interest(identity, filter_, identity if identity.home == home else identity.home))
        assert shared.seen_by(home).describe() == own.describe()
    assert shared.describe() == before
