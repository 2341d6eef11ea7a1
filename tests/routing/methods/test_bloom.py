"""Bloom filter routing: bits find whom matching would find; where they cannot tell, content is matched."""

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import pairwise
from random import Random

import pytest
from amounts import often
from hypothesis import given
from hypothesis import strategies as st
from reuse_networks import TEXTS, Looked, compiled, some_event

from branchline.ops.simulation.setting import Faults, Setting
from branchline.ops.simulation.world import World
from branchline.routing.bloom.bftree import BfTree
from branchline.routing.bloom.bits import Shape, name_groups
from branchline.routing.bloom.sbstree import SbsTree
from branchline.routing.bloom.travelling import UNTOLD, EventBits
from branchline.routing.checking import check
from branchline.routing.control import Identity, Operation, Request
from branchline.routing.event import Event
from branchline.routing.methods.bloom import ENTERED, BloomForwarding
from branchline.routing.methods.naming import Methods, make_forwarding, misfit
from branchline.routing.methods.protocols import Interest, Sought
from branchline.routing.methods.table import TableMatching
from branchline.routing.overlay.topology import founded, link
from branchline.routing.prefix.header import Header, decode, encode
from branchline.routing.prefix.keys import NO_KEYS
from branchline.routing.prefix.trees import UNMATCHED, Prefix, Trees
from branchline.routing.values import JsonValue

seeds = st.integers(0, 2**32)


def made(source: Random, kind: type[BloomForwarding] = BloomForwarding) -> BloomForwarding:
    shape = Shape(source.choice((1, 5, 14, 14)), 2)
    return kind(TableMatching(), source.choice((BfTree, SbsTree))(shape), shape)


def interest(number: int, text: str) -> Interest:
    return Interest(Identity("b", f"s{number}", "one"), compiled(text), f"o{number}")


def unread() -> Mapping[str, JsonValue]:
    raise AssertionError("its bits say all")


def travelled(prefix: Prefix) -> Prefix:
    """What is left of it at the other end of a link."""
    decoded = decode(encode(Header(prefix)))
    assert decoded is not None
    return decoded.prefix


def wanting(standing: list[Interest], event: Event) -> set[object]:
    return {each.owner for each in standing if event.may_match(each.compiled.cover)}


def run_line(source: Random, make: Callable[[], BloomForwarding]) -> Counter[str]:
    """An event along brokers of which each knows some of some subscriptions: nobody is missed at any."""
    pool = [interest(number, source.choice(TEXTS)) for number in range(6)]
    brokers, known = [], list(pool)
    for _ in range(4):
        if source.random() < 0.4:
            known = [each for each in pool if source.random() < 0.5]
        broker = make()
        for each in pool:  # those that it has forgotten again must leave no trace
            broker.add(each)
        for each in pool:
            if each not in known:
                broker.remove(each)
        brokers.append((broker, list(known)))
    event, counts, prefix = some_event(source), Counter[str](), ENTERED
    for broker, standing in brokers:
        found = broker.find(prefix, event)
        assert found.certain | found.doubtful >= wanting(standing, event)
        if found.afresh:
            assert found.certain | found.doubtful == wanting(standing, event)
        else:
            assert not found.certain
            assert broker.find(prefix, Event(unread)).doubtful == found.doubtful
        prefix = travelled(broker.onward(prefix, found, "next"))
        counts.update(found.counts)
        counts["afresh"] += found.afresh
    return counts


@often
@given(seeds)
def test_nobody_is_missed_whatever_brokers_know(seed: int) -> None:
    """By bits or by content, each broker finds all whom it would find by matching."""
    source = Random(seed)
    shape = Shape(source.choice((1, 5, 14)))
    run_line(source, lambda: BloomForwarding(TableMatching(), source.choice((BfTree, SbsTree))(shape), shape))


@often
@given(seeds)
def test_brokers_of_other_sizes_match(seed: int) -> None:
    """Bits of a Bloom filter of another size say nothing."""
    source = Random(seed)
    run_line(source, lambda: made(source))


class DigestIgnored(BloomForwarding):
    """Bits are believed wherever they were made: a constraint that was not known there is missed."""

    def find(self, prefix: Prefix, event: Event, wanted: Sought | None = None):  # type: ignore[no-untyped-def]
        told = prefix.bloom
        if told is not None and told.size:
            digest = self.poset.digest(told.names)
            prefix = Prefix((), bloom=EventBits(told.size, told.bits, told.names, digest))
        return super().find(prefix, event, wanted)


def test_a_broker_that_ignores_the_digest_is_found_out() -> None:
    """The property above is not always true."""
    caught = 0
    for seed in range(100):
        try:
            run_line(Random(seed), lambda: DigestIgnored(TableMatching(), SbsTree(Shape()), Shape()))
        except AssertionError:
            caught += 1
    assert caught > 5


def test_one_match_is_enough_where_all_know_the_same() -> None:
    """Later brokers look at no content, and the Bloom filter goes on as it came."""
    standing = [interest(number, text) for number, text in enumerate(TEXTS)]
    brokers = [BloomForwarding(TableMatching(), SbsTree(Shape()), Shape()) for _ in range(3)]
    for turn, broker in enumerate(brokers):
        for each in standing[turn:] + standing[:turn]:
            broker.add(each)
    event = Event({"x": 1, "y": 2})
    first = brokers[0].find(ENTERED, event)
    assert (first.afresh, first.certain) == (1, wanting(standing, event))
    told = brokers[0].onward(ENTERED, first, "b")
    assert brokers[0].onward(ENTERED, first, "c") is told, "it is made once"
    assert first.counts["bloom_made"] == 1
    assert told.bloom is not None
    assert first.counts["bloom_bits"] == len(told.bloom.bits) > 4
    for broker in brokers[1:]:
        later = broker.find(told, Event(unread))
        assert (later.afresh, later.certain, later.doubtful) == (0, set(), wanting(standing, event))
        assert broker.onward(told, later, "d") is told
        assert later.counts == {"bloom_led": 1, "bloom_found": len(later.doubtful)}


def test_only_what_may_hold_for_an_event_must_be_known_alike() -> None:
    """A constraint on another attribute does not matter, one on presence always does."""
    assert len({name_groups([name]) for name in ("x", "y", "z")}) == 3
    for text, agrees in (
        ("y = 1", True),
        ("x = 2", False),
        ("z.a = 1 AND y > 0", True),
        ("y IS NULL", False),
    ):
        one, other = (BloomForwarding(TableMatching(), SbsTree(Shape()), Shape()) for _ in range(2))
        for broker in (one, other):
            broker.add(interest(1, "x = 1"))
        other.add(interest(2, text))
        event = Event({"x": 1})
        told = one.onward(ENTERED, one.find(ENTERED, event), "b")
        found = other.find(told, event)
        assert bool(found.afresh) is not agrees
        assert "bloom_led" in found.counts if agrees else "bloom_differed" in found.counts


@pytest.mark.parametrize("prefix", [UNMATCHED, Prefix((), keys=NO_KEYS), Prefix((), bloom=UNTOLD)])
def test_what_another_method_has_found_is_matched_and_goes_on_as_bits(prefix: Prefix) -> None:
    """So brokers further on need not match."""
    broker = BloomForwarding(TableMatching(), BfTree(Shape()), Shape())
    broker.add(interest(1, "x = 1"))
    found = broker.find(prefix, Event({"x": 1}))
    assert (found.afresh, found.certain, "bloom_differed" in found.counts) == (1, {"o1"}, False)
    onward = broker.onward(prefix, found, "b").bloom
    groups = name_groups(["x"])
    expected = EventBits(
        14, broker.poset.bits(compiled("x = 1").cover[0]), groups, broker.poset.digest(groups)
    )
    assert onward == expected


def test_only_who_is_wanted_is_found_and_enough_is_enough() -> None:
    """Of those that the bits lead to."""
    broker = BloomForwarding(TableMatching(), SbsTree(Shape()), Shape())
    for number in range(9):
        broker.add(interest(number, f"x < {number + 2}"))
    event = Event({"x": 1})
    told = broker.onward(ENTERED, broker.find(ENTERED, event), "b")
    found = broker.find(told, event, Looked({"o2": "b", "o5": "c", "o6": "c"}))
    assert (found.doubtful, found.counts["bloom_found"]) == ({"o2", "o5", "o6"}, 2)

    class One(Looked):
        def enough(self, found: object) -> bool:
            return True

    assert len(broker.find(told, event, One({f"o{number}": "b" for number in range(9)})).doubtful) == 1


def test_bits_that_are_set_by_chance_find_more() -> None:
    """With few bits all are set, and all are found: in doubt."""
    found = []
    for size in (1, 14):
        broker = BloomForwarding(TableMatching(), SbsTree(Shape(size)), Shape(size))
        for number in range(20):
            broker.add(interest(number, f"x = {number}"))
            broker.add(interest(number, f"y = {number}"))
        event = Event({"x": 1, "y": 1})
        told = broker.onward(ENTERED, broker.find(ENTERED, event), "b")
        found.append(len(broker.find(told, event).doubtful))
    assert found == [20, 1]


def test_what_it_goes_with() -> None:
    """Any matching, no optimisation, no covering; sizes that fit a header."""
    for name in ("bloom", "bloom-sbstree", "bloom(1)", "bloom-sbstree(16)"):
        assert misfit(Methods(name, "counting")) is None
        assert misfit(Methods(name, "table", "covering")) == (
            "a Bloom filter is of the constraints known where an event enters, and only simple dissemination "
            "makes them known everywhere"
        )
        assert misfit(Methods(name, "table", optimise=("merging",))) == (
            "optimise = merging: a Bloom filter is of constraints that all brokers know, so none may leave "
            "any out or change them"
        )
    for wrong in ("bloom(0)", "bloom(17)", "bloom-sbstree(99)"):
        assert misfit(Methods(wrong, "table")) == (f"forwarding = {wrong!r}: the number must be from 1 to 16")


@pytest.mark.parametrize(
    ("name", "structure"),
    [("bloom", "a bftree of 8 levels, 8 nodes"), ("bloom-sbstree(3)", "an sbstree of 2 nodes")],
)
def test_it_describes_itself(name: str, structure: str) -> None:
    """What is looked up, and the constraints by covering."""
    forwarding = make_forwarding(Methods(name, "table"), Trees())
    assert isinstance(forwarding, BloomForwarding)
    forwarding.add(interest(1, "x > 3"))
    forwarding.add(interest(2, "x > 3"))
    assert forwarding.describe() == f"1 Bloom filters in {structure}, 1 constraints:\nx > 3"


@pytest.mark.parametrize("forwarding", ["bloom", "bloom-sbstree(6)"])
def test_who_replaces_filters_all_the_time_loses_nothing(forwarding: str) -> None:
    """An event that matches the old filter and the new one is owed throughout, wherever the change is."""
    names = ["b0", "b1", "b2", "b3", "b4"]
    setting = Setting(
        founded(names, [link(*each) for each in pairwise(names)]),
        tuple((name,) for name in names),
        methods=Methods(forwarding, "table"),
        faults=Faults(delay_ms=60, lost=0.2, doubled=0.2, crashes=0.02),
    )
    world, source = World(setting, 5), Random("churn")
    homes = {f"s{number}": source.choice(names) for number in range(6)}

    def subscribe(subscriber: str, bound: int) -> None:
        world.counts["asked"] += 1
        asked = Request(
            *(Operation.SUBSCRIBE, subscriber, "one", homes[subscriber]),
            filter=f"x < {bound}",
            request=f"r{world.counts['asked']}",
        )
        world.ask(asked)

    for subscriber in homes:
        subscribe(subscriber, 5)
    world.settle()
    for _ in range(60):
        subscribe(source.choice(sorted(homes)), source.randint(2, 9))
        for _ in range(source.randint(1, 3)):
            world.publish(source.choice(names), {"x": source.choice((1, 1, 4))}, None)
        world.advance(world.now_ms + source.choice((0, 5, 40, 100)))
    world.settle()
    assert world.failures == []
    verdict = check(world.history)
    assert verdict.clean, verdict.describe()
    assert verdict.owed > 300
    assert world.counts["bloom_differed"] > 20 < world.counts["bloom_led"]
    assert world.counts["content_matches"] == world.counts["published"]
