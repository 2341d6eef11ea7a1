"""Lookup reuse: keys tell where an event goes, and nobody loses anything where they cannot tell."""

import os
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from amounts import often
from hypothesis import given
from hypothesis import strategies as st
from reuse_networks import Looked, Network, compiled, imprints_of, some_event, some_network

from branchline.ops.simulation.runner import Record
from branchline.ops.simulation.scripts import play_all
from branchline.ops.simulation.setting import Faults, Setting
from branchline.ops.simulation.world import World
from branchline.routing.checking import check
from branchline.routing.codes import Rejection
from branchline.routing.control import Identity, Operation, Request
from branchline.routing.event import Event
from branchline.routing.history import Read
from branchline.routing.methods import reuse
from branchline.routing.methods.key_table import KeyTable
from branchline.routing.methods.naming import Methods, make_forwarding, misfit
from branchline.routing.methods.protocols import Interest, Sought
from branchline.routing.methods.reuse import ENTERED, Listed, Reuse
from branchline.routing.methods.table import TableMatching
from branchline.routing.overlay.dividing import Arrival
from branchline.routing.overlay.letters import Propose
from branchline.routing.overlay.topology import founded, link
from branchline.routing.prefix.forwarding import Found
from branchline.routing.prefix.header import Header, encode
from branchline.routing.prefix.keys import Keys
from branchline.routing.prefix.trees import Prefix, Trees
from branchline.routing.shard import EventBatch, Job, Shard

seeds = st.integers(0, 2**32)
ANN, BOB = Identity("b1", "ann", "one"), Identity("b2", "bob", "one")
LEFT = Looked({"b1": "b1", "b2": "b2"})
FORWARDINGS = ("always-reuse", "partial-reuse(1)", "partial-reuse(80)")


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
    forwarding = make_forwarding(Methods("partial-reuse", "table", "covering-poset"), Trees())
    forwarding.add(interest(ANN, "x = 1"))
    assert isinstance(forwarding, Reuse)
    sent = keys_to(forwarding, "b1", Event({"x": 1}))
    assert (len(sent), sent.complete) == (1, False)
    assert keys_to(made(None, interest(ANN, "x = 1")), "b1", Event({"x": 1})).complete


def test_always_reuse_does_not_go_with_covering(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused with the reason; with partial reuse covering works."""
    known = dict.fromkeys(("simple", "covering-poset"))
    monkeypatch.setattr("branchline.routing.methods.naming.DISSEMINATION", known)
    why = misfit(Methods("always-reuse", "table", "covering-poset"))
    assert why == "always-reuse names all subscriptions that match, and with covering nobody knows them all"
    assert misfit(Methods("partial-reuse(60)", "table", "covering-poset")) is None
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


# The key table


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


# Worlds


@pytest.mark.parametrize("forwarding", FORWARDINGS)
@pytest.mark.parametrize("matching", ["table", "tree"])
def test_scripts_are_clean(forwarding: str, matching: str) -> None:
    """With all that goes wrong: lost and doubled records, crashes, brokers that join and leave."""
    wrong, counts = play_all(range(20, 26), 40, methods=Methods(forwarding, matching))
    assert wrong == []
    assert counts["keys_used"] and counts["lists_complete"] and counts["keys_sent"]


@pytest.mark.parametrize("forwarding", FORWARDINGS)
def test_who_replaces_filters_all_the_time_loses_nothing(forwarding: str) -> None:
    """An event that matches the old filter and the new one is owed throughout, wherever the change is."""
    names = ["b0", "b1", "b2", "b3", "b4"]
    topology = founded(names, [link(*each) for each in pairwise(names)])
    setting = Setting(
        topology,
        tuple((name,) for name in names),
        methods=Methods(forwarding, "table"),
        faults=Faults(delay_ms=60, lost=0.2, doubled=0.2, crashes=0.02),
    )
    world = World(setting, 5)
    source = Random("churn")
    homes = {f"s{number}": source.choice(names) for number in range(6)}

    def subscribe(subscriber: str, bound: int) -> None:
        world.counts["asked"] += 1
        asked = f"r{world.counts['asked']}"
        filter_ = f"x < {bound}"
        world.ask(
            Request(Operation.SUBSCRIBE, subscriber, "one", homes[subscriber], filter=filter_, request=asked)
        )

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
    assert world.counts["keys_unknown"] > 20, "keys of filters that were replaced have met new ones"
    assert world.counts["content_matches"] == world.counts["published"]


def test_keys_alone_lead_an_event() -> None:
    """With noise for content between brokers, everybody gets just what they asked for."""
    names = ["b0", "b1", "b2", "b3"]
    topology = founded(names, [link("b0", "b1"), link("b1", "b2"), link("b1", "b3")])
    setting = Setting(topology, (tuple(names),), methods=Methods("always-reuse", "table"), noise=True)
    world = World(setting, 1)
    wants = {("b3", "ann"): "x = 1", ("b2", "bob"): "x > 1", ("b0", "eve"): "x < 2 OR y = 'a'"}
    for (home, subscriber), filter_ in wants.items():
        world.ask(Request(Operation.SUBSCRIBE, subscriber, "one", home, filter=filter_, request=subscriber))
    world.settle()
    for value in (1, 2, 3):
        world.publish("b0", {"x": value})
        world.publish("b2", {"x": value})
    world.settle()
    read = [(entry.subscriber, entry.event) for entry in world.history if isinstance(entry, Read)]
    events = [{"x": value} for value in (1, 1, 2, 2, 3, 3)]
    assert len(read) == sum(
        compiled(filter_).matches(Event(dict(event))) is True
        for event in events
        for filter_ in wants.values()
    )
    assert world.counts["afresh_matches"] == 0
    assert world.counts["content_matches"] == 6


def test_a_retried_event_and_one_that_was_held_find_whom_they_are_for() -> None:
    """A copy for one subscriber goes nowhere else; one that came early is led by its keys later."""
    topology = founded(["b0", "b1"], [link("b0", "b1")])
    job = Job(("b0", "b1"), topology, methods=Methods("always-reuse", "table"))
    shard = Shard(job, 0)
    control = [
        Request(Operation.SUBSCRIBE, name, "one", "b1", filter="x = 1", request=name)
        for name in ("ann", "bob")
    ]
    letters = shard.handle(1, [], control, EventBatch()).letters
    while letters:
        letters = shard.handle(2, [], letters, EventBatch()).letters
    content = Record(0, None, {"x": 1})
    (copy,) = shard.handle(3, [], [], EventBatch(["b0"], [Arrival(content)])).forwarded
    header = copy.copy.header
    assert header.prefix.keys is not None
    assert len(header.prefix.keys) == 2
    for arrival in (Arrival(content, header, "ann"), Arrival(content, None, "ann")):
        outputs = shard.handle(4, [], [], EventBatch(["b1"], [arrival]))
        assert [each.subscriber for each in outputs.deliveries] == ["ann"]
        assert not outputs.forwarded
    later = topology.linked("b0", "b1", 2)
    early = Arrival(Unread(), header._replace(topology=later.number))
    outputs = shard.handle(5, [], [], EventBatch(["b1"], [early]))
    assert (outputs.counts["held"], len(outputs.deliveries)) == (1, 0)
    outputs = shard.handle(6, [], [Propose(later)], EventBatch())
    while outputs.letters and not outputs.released:
        outputs = shard.handle(7, [], outputs.letters, EventBatch())
    assert [each.subscriber for each in outputs.deliveries] == ["ann", "bob"]
    assert outputs.counts["lists_complete"] == 1


class Unread:
    """An event at whose content nobody looks."""

    def attributes(self) -> Rejection:
        raise AssertionError("its keys say all")


def test_the_default_number_of_keys() -> None:
    """As many as the paper found to be enough, or as many as are asked for."""
    for name, limit in (("partial-reuse", 80), ("partial-reuse(7)", 7), ("always-reuse", None)):
        forwarding = make_forwarding(Methods(name, "table"), Trees())
        assert isinstance(forwarding, Reuse)
        assert forwarding._limit == limit
    assert reuse.KEYS_PER_HOP == 80
