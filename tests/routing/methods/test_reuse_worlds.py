"""Lookup reuse in whole overlays: with all that goes wrong, and filters that are replaced all the time."""

from itertools import pairwise
from random import Random

import pytest
from reuse_networks import compiled

from branchline.ops.simulation.runner import Record
from branchline.ops.simulation.scripts import play_all
from branchline.ops.simulation.setting import Faults, Setting
from branchline.ops.simulation.world import World
from branchline.routing.checking import check
from branchline.routing.codes import Rejection
from branchline.routing.control import Operation, Request
from branchline.routing.event import Event
from branchline.routing.history import Read
from branchline.routing.methods.naming import Methods
from branchline.routing.overlay.dividing import Arrival
from branchline.routing.overlay.letters import Propose
from branchline.routing.overlay.topology import founded, link
from branchline.routing.shard import EventBatch, Job, Shard

FORWARDINGS = ("always-reuse", "partial-reuse(1)", "partial-reuse(80)")


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


@pytest.mark.parametrize("batches_from", [None, 0])
def test_jobs_with_other_methods_understand_each_other(batches_from: int | None) -> None:
    """What a job cannot follow it matches afresh: while methods are exchanged, nothing is lost."""
    topology = founded(["b0", "b1"], [link("b0", "b1")])
    shards = []
    for forwarding, matching in (("prefix", "tree"), ("rematch", "table"), ("always-reuse", "table")):
        methods = Methods(forwarding, matching, batches_from=batches_from)
        shard = Shard(Job(("b0", "b1"), topology, methods=methods), 0)
        request = Request(Operation.SUBSCRIBE, "ann", "one", "b1", filter="x = 1", request="r")
        letters = shard.handle(1, [], [request], EventBatch()).letters
        while letters:
            letters = shard.handle(2, [], letters, EventBatch()).letters
        shards.append(shard)
    content = Record(0, None, {"x": 1})
    for sender in shards:
        (sent,) = sender.handle(3, [], [], EventBatch(["b0"], [Arrival(content)])).forwarded
        for reader in shards:
            outputs = reader.handle(4, [], [], EventBatch(["b1"], [Arrival(content, sent.copy.header)]))
            assert [each.subscriber for each in outputs.deliveries] == ["ann"]


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
