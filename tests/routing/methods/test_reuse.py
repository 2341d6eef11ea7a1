"""Lookup reuse: keys tell where an event goes, and nobody loses anything where they cannot tell."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from amounts import often
from hypothesis import given
from hypothesis import strategies as st
from reuse_networks import Looked, Network, compiled, some_event, some_network

from branchline.routing.control import Identity
from branchline.routing.event import Event
from branchline.routing.methods import reuse
from branchline.routing.methods.naming import Methods, make_forwarding, misfit
from branchline.routing.methods.protocols import Interest, Sought
from branchline.routing.methods.reuse import ENTERED, Listed, Reuse
from branchline.routing.methods.table import TableMatching
from branchline.routing.prefix.forwarding import Found
from branchline.routing.prefix.header import Header, encode
from branchline.routing.prefix.keys import Keys
from branchline.routing.prefix.trees import Prefix, Trees

seeds = st.integers(0, 2**32)
ANN, BOB = Identity("b1", "ann", "one"), Identity("b2", "bob", "one")
LEFT = Looked({"b1": "b1", "b2": "b2"})


def interest(identity: Identity, text: str, owner: object = None) -> Interest:
    return Interest(identity, compiled(text), identity.home if owner is None else identity)


def made(limit: int | None = None, *interests: Interest, completes: bool = True) -> Reuse:
    forwarding = Reuse(TableMatching(), TableMatching(), limit, completes=completes)
    for each in interests:
        forwarding.add(each)
    return forwarding


def keys_to(forwarding: Reuse, to: str, event: Event, wanted: Sought = LEFT) -> Keys:
    """What goes to a neighbour with an event that enters."""
    prefix = forwarding.enter(event)
    sent = forwarding.onward(prefix, forwarding.find(prefix, event, wanted), to).keys
    assert sent is not None
    return sent


# Networks in which filters are being replaced


@often
@given(seeds)
def test_who_wants_it_by_the_old_and_the_new_filter_gets_it(seed: int) -> None:
    """Whichever of the two each broker has, however few keys travel, and whatever their keys are."""
    source = Random(seed)
    network = some_network(source)
    for _ in range(4):
        network.check(some_event(source), source.randint(0, len(network.parents)))


@often
@given(seeds)
def test_where_nothing_changes_all_keys_are_known_and_one_match_is_enough(seed: int) -> None:
    """With all keys, no broker but the first looks at the content, unless somebody here is in doubt."""
    source = Random(seed)
    network = some_network(source, steady=True, bits=32)
    network.cut = 1_000
    for broker in network.brokers:
        broker._limit = None
    for _ in range(4):
        network.check(some_event(source), source.randint(0, len(network.parents)))
    assert network.counts["keys_unknown"] == 0
    assert network.counts["afresh"] == network.counts["entered"]
    assert network.counts["lists_complete"] == network.counts["visits"] - network.counts["entered"]


class FlagAlwaysOn(Reuse):
    """A list that was cut says that it is complete: what no key leads to is lost."""

    def onward(self, prefix: Prefix, found: Found, to: str) -> Prefix:
        keys = super().onward(prefix, found, to).keys
        assert keys is not None
        digest = self.table.digest((*keys.certain, *keys.doubtful))
        return Prefix((), keys=replace(keys, digest=digest))


class KeysOfAnotherHop(Reuse):
    """A copy carries the keys that lead to another neighbour: behind this one nobody is found."""

    def onward(self, prefix: Prefix, found: Found, to: str) -> Prefix:
        assert isinstance(found, Listed)
        others = [each for each in sorted(found.lists) if each != to]
        found.whole = None
        return super().onward(prefix, found, others[0] if others else to)


class UnknownKeysIgnored(Reuse):
    """A key that stands for nothing here is passed over: who has just replaced its filter loses events."""

    def _look_up(self, keys: Keys, in_doubt: bool, found: Listed, wanted: Sought | None) -> bool:
        super()._look_up(keys, in_doubt, found, wanted)
        return True


class DigestIgnored(Reuse):
    """Known keys are believed: one that stands for somebody else here than where it was written, too."""

    def _look_up(self, keys: Keys, in_doubt: bool, found: Listed, wanted: Sought | None) -> bool:
        known = [key for key in (*keys.certain, *keys.doubtful) if self.table.find(key) is not None]
        believed = replace(keys, digest=self.table.digest(known))
        return super()._look_up(believed, in_doubt, found, wanted)


@pytest.mark.parametrize("bug", [FlagAlwaysOn, KeysOfAnotherHop, UnknownKeysIgnored, DigestIgnored])
def test_bugs_are_found(bug: type[Reuse]) -> None:
    """Each rule that is taken out shows in one of these networks, and without it none of them shows any."""
    caught = 0
    for seed in range(300):
        network_seed = f"bugs {seed}"
        for kind in (Reuse, bug):
            source = Random(network_seed)
            network = some_network(source, kind)
            event, at = some_event(source), source.randint(0, len(network.parents))
            if kind is Reuse:
                network.check(event, at)
                continue
            try:
                network.check(event, at)
            except AssertionError:
                caught += 1
        if caught:
            return
    raise AssertionError(bug.__doc__)


def test_a_replaced_filter_is_matched_where_its_key_is_unknown() -> None:
    """Old filter where the event enters, new one on its way, old one at home: each hop matches afresh."""
    old, new = compiled("x < 3"), compiled("x = 1")
    filters = {Identity("b2", "ann", "one"): (old, new)}
    ann = next(iter(filters))
    has = {(0, ann): False, (1, ann): True, (2, ann): False}
    network = Network([0, 1], filters, has, lambda: Reuse(TableMatching(), TableMatching()))
    assert network.send(Event({"x": 1}), 0) == {ann}
    assert (network.counts["visits"], network.counts["afresh"], network.counts["keys_unknown"]) == (3, 3, 2)


# Lists


def test_a_list_names_what_is_behind_its_link() -> None:
    """Each neighbour gets the keys of the homes behind it, and of nobody else."""
    forwarding = made(None, interest(ANN, "x = 1"), interest(BOB, "x > 0"), interest(BOB, "x = 7"))
    event = Event({"x": 1})
    lists = [keys_to(forwarding, to, event) for to in ("b1", "b2")]
    assert [len(each) for each in lists] == [1, 1]
    assert all(each.complete for each in lists)
    assert lists[0].certain != lists[1].certain
    far = Looked({"b1": "b2", "b2": "b2"})
    assert sorted(keys_to(forwarding, "b2", event, far).certain) == sorted(
        lists[0].certain + lists[1].certain
    )


def test_too_many_keys_are_of_as_many_homes_as_can_be() -> None:
    """One of each home before a second one of any; and the list is not complete."""
    homes = [f"b{each}" for each in range(1, 6)]
    many = [interest(Identity(home, f"s{n}", "one"), "x = 1") for home in homes for n in range(4)]
    wanted = Looked(dict.fromkeys(homes, "b1"))
    event = Event({"x": 1})
    for limit, of_each in ((5, {1}), (10, {2}), (20, {4})):
        forwarding = made(limit, *many)
        sent = keys_to(forwarding, "b1", event, wanted)
        assert sent.complete is (limit == 20)
        assert len(sent) == limit
        counted = dict.fromkeys(homes, 0)
        for key in sent.certain:
            entry = forwarding.table.find(key)
            assert entry is not None
            counted[entry.known[0].identity.home] += 1
        assert set(counted.values()) == of_each


def test_a_list_that_is_not_complete_asks_only_where_no_key_leads() -> None:
    """And it asks all who are at home here."""
    here = Identity("b0", "eve", "one")
    forwarding = made(1, interest(ANN, "x = 1"), interest(BOB, "x = 1"), interest(here, "x = 1", here))
    event = Event({"x": 1})
    ann = keys_to(forwarding, "b1", event)
    asked: list[str] = []

    class Watched(TableMatching):
        def __init__(self, name: str, inner: TableMatching) -> None:
            self.name, self.inner = name, inner

        def match(self, event: Event, wanted: object = None) -> Found:
            asked.append(self.name)
            return self.inner.match(event, wanted)  # type: ignore[arg-type]

    forwarding.here = Watched("here", forwarding.here)  # type: ignore[arg-type]
    forwarding.elsewhere = Watched("elsewhere", forwarding.elsewhere)  # type: ignore[arg-type]
    half = Prefix((), keys=Keys(ann.certain))
    for wanted, expected in (
        (LEFT, ["here", "elsewhere"]),
        (Looked({"b1": "b1"}), ["here"]),
        (Looked({"b1": "b1"}, local=False), []),
        (Looked({"b1": "b1", "b2": "b2"}, local=False), ["elsewhere"]),
    ):
        asked.clear()
        found = forwarding.find(half, event, wanted)
        assert asked == expected
        assert found.certain == {*wanted.hops, *([here] if wanted.local else [])}
    assert forwarding.find(half, event, LEFT).whole == {"b2"}, "of b1 only some are known"


def test_with_covering_no_list_is_complete() -> None:
    """What is covered is known downstream alone: with keys for all one must still look for it."""
    forwarding = make_forwarding(Methods("partial-reuse", "table", "covering"), Trees())
    forwarding.add(interest(ANN, "x = 1"))
    assert isinstance(forwarding, Reuse)
    sent = keys_to(forwarding, "b1", Event({"x": 1}))
    assert (len(sent), sent.complete) == (1, False)
    assert keys_to(made(None, interest(ANN, "x = 1")), "b1", Event({"x": 1})).complete


def test_always_reuse_does_not_go_with_covering() -> None:
    """It is refused with the reason; with partial reuse covering works."""
    why = misfit(Methods("always-reuse", "table", "covering"))
    assert why is not None and why.startswith(
        "always-reuse names all subscriptions that match, and only simple"
    )
    assert misfit(Methods("partial-reuse(60)", "table", "covering")) is None
    assert misfit(Methods("always-reuse", "table")) is None
    assert misfit(Methods("always-reuse(3)", "table")) is not None


@often
@given(seeds)
def test_a_list_hangs_on_what_is_known_and_on_nothing_else(seed: int) -> None:
    """Not on the order in which a broker has heard of it, nor on what has come and gone before."""
    source = Random(seed)
    network = some_network(source)
    known = [network.interest(0, identity) for identity in network.filters]
    event = some_event(source)
    lists = []
    for warm in (False, True):
        forwarding = network.make()
        source.shuffle(known)
        for each in known:
            if warm and source.random() < 0.5:
                before = replace(each, compiled=compiled(source.choice(("x = 9", "x < 3", "TRUE"))))
                forwarding.add(before)
                forwarding.add(each)
                forwarding.remove(before)
            else:
                forwarding.add(each)
        wanted = Looked(network.hops[0])
        found = forwarding.find(ENTERED, event, wanted)
        lists.append({to: forwarding.onward(ENTERED, found, to) for to in found.lists})
    assert lists[0] == lists[1]


def sent_bytes() -> str:
    """What a fixed broker sends, as bytes."""
    homes = [f"b{each}" for each in range(1, 6)]
    many = [interest(Identity(home, f"s{n}", "one"), "x = 1") for home in homes for n in range(9)]
    event = Event({"x": 1})
    sent = keys_to(made(7, *many), "b1", event, Looked(dict.fromkeys(homes, "b1")))
    return encode(Header(Prefix((), keys=sent))).hex()


def test_a_process_that_hashes_otherwise_sends_the_same_bytes() -> None:
    """Keys and their choice are the same in every process."""
    paths = os.pathsep.join((str(Path(__file__).parent), *sys.path))
    for hash_seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": paths}
        code = "import test_reuse; print(test_reuse.sent_bytes())"
        run = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
        )
        assert run.stdout.strip() == sent_bytes()


def test_the_default_number_of_keys() -> None:
    """As many as the paper found to be enough, or as many as are asked for."""
    for name, limit in (("partial-reuse", 80), ("partial-reuse(7)", 7), ("always-reuse", None)):
        forwarding = make_forwarding(Methods(name, "table"), Trees())
        assert isinstance(forwarding, Reuse)
        assert forwarding._limit == limit
    assert reuse.KEYS_PER_HOP == 80
