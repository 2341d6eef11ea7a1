"""An explanation says what the brokers do: the same hops and deliveries, and why somebody gets nothing."""

import json

import pytest

from branchline.ops.simulation.runner import Record
from branchline.ops.simulation.scripts import Script
from branchline.ops.simulation.setting import Setting
from branchline.ops.simulation.world import World
from branchline.routing.control import Identity, Operation, Request
from branchline.routing.history import Published, Read
from branchline.routing.overlay.broker import Broker
from branchline.routing.overlay.explaining import Explanation, explain
from branchline.routing.overlay.topology import founded, link
from branchline.routing.prefix.header import Header, decode
from branchline.routing.values import JsonValue


def brokers_of(world: World) -> dict[str, Broker]:
    """All brokers of a world, as their leading shards have them."""
    return {name: runner.shards[0].brokers[name] for name, runner in world.at.items()}


def explained(
    world: World, at: str, attributes: dict[str, JsonValue], subscriber: str | None = None
) -> Explanation:
    return explain(brokers_of(world), at, Record(-1, None, attributes), subscriber)


def settled(seed: int) -> World:
    """A world after a script, with nothing on its way and no lease that could end meanwhile."""
    script = Script(seed)
    script._lease = lambda: None  # type: ignore[method-assign]
    script._renew = lambda: None  # type: ignore[method-assign]
    script.play(40)
    return script.world


@pytest.mark.parametrize("seed", range(30))
def test_an_explanation_is_what_happens_to_the_event(seed: int) -> None:
    """In a quiet network, an event published next crosses the links that were explained, with these scopes,
    and is read by those whom the explanation names.
    """
    world = settled(seed)
    first = next(entry for entry in world.history if isinstance(entry, Published))
    attributes = dict(first.attributes)
    for member in [each for each in world.topology.members if not each.leaving][:3]:
        explanation = explained(world, member.name, attributes)
        copies, entries = len(world.copies), len(world.history)
        event = world.publish(member.name, attributes)
        world.settle()
        names = {each.number: each.name for each in world.topology.members}
        crossed = set()
        for _, at, to, header in world.copies[copies:]:
            told = header if isinstance(header, Header) else decode(header)
            assert told is not None
            crossed.add((at, to, tuple(name for bit, name in names.items() if told.scope >> bit & 1)))
        assert crossed == {(hop.broker, to, scope) for hop in explanation.hops for to, scope in hop.copies}
        read = {
            entry.subscriber
            for entry in world.history[entries:]
            if isinstance(entry, Read) and entry.event == event
        }
        assert read == {name for hop in explanation.hops for name in hop.deliveries}
        assert {hop.broker for hop in explanation.hops} == {member.name} | {to for _, to, _ in crossed}
        assert json.loads(json.dumps(explanation.fields()))["hops"][0]["broker"] == member.name


def subscribed(*filters: str) -> World:
    """A world of three brokers in a line, with subscriptions of alice at the last one."""
    topology = founded(["a", "b", "c"], [link("a", "b"), link("b", "c")])
    world = World(Setting(topology, (("a",), ("b",), ("c",))), 1)
    for place, text in enumerate(filters):
        request = Request(Operation.SUBSCRIBE, "alice", f"f{place}", "c", filter=text, request=f"r{place}")
        world.ask(request)
    world.settle()
    return world


def test_a_delivery_is_explained_hop_by_hop() -> None:
    """Where the content is matched, where the prefix is followed, what was found, and who gets it."""
    world = subscribed("x > 5")
    world.optimizer.tell_snapshot()
    world.settle()
    explanation = explained(world, "a", {"x": 6}, "alice")
    assert explanation.delivered
    first, second, third = explanation.hops
    assert (first.broker, first.sender, first.scope) == ("a", None, ("a", "b", "c"))
    assert first.how == "its content is matched"
    assert first.copies == (("b", ("b", "c")),)
    assert (second.broker, second.sender, second.how) == ("b", "a", "its prefix is followed")
    assert second.copies == (("c", ("c",)),)
    assert third.deliveries == ("alice",)
    assert (*third.certain, *third.doubtful) == ("c/alice/f0",)
    assert explanation.describe().endswith("alice gets the event")


def test_the_constraints_that_failed_are_named_with_what_the_event_has() -> None:
    """For each subscription of the subscriber, whatever of it is not met."""
    explanation = explained(subscribed("x > 5 AND t = 'b'", "y IS NOT NULL"), "a", {"x": 4}, "alice")
    assert explanation.delivered is False
    first, second = explanation.denials
    assert (first.subscription, first.filter) == ("c/alice/f0", "x > 5 AND t = 'b'")
    assert first.reasons == ("x > 5: x is 4", "t = 'b': t is missing")
    assert second.reasons == ("y IS NOT NULL: y is missing",)
    shown = explanation.describe()
    assert "alice does not get the event:" in shown
    assert "x > 5: x is 4" in shown


def test_a_subscriber_without_subscriptions_is_told_so() -> None:
    """Nothing failed: there is nothing that could match."""
    explanation = explained(subscribed("x > 5"), "a", {"x": 6}, "bob")
    assert (explanation.delivered, explanation.denials) == (False, ())
    assert "it has no subscription" in explanation.describe()


def test_what_is_not_in_force_yet_names_who_is_waited_for() -> None:
    """It matches, and the event does not come, because a broker on the way has not heard of it."""
    world = subscribed()
    brokers = brokers_of(world)
    brokers["c"].ask(1_000, 0, Request(Operation.SUBSCRIBE, "alice", "f0", "c", filter="x > 5"))
    explanation = explained(world, "a", {"x": 6}, "alice")
    (denial,) = explanation.denials
    assert denial.reasons == ("it matches, but is not in force yet: a, b did not report it",)
    assert [hop.broker for hop in explanation.hops] == ["a"]
    assert brokers["c"].home.pending.find(Identity("c", "alice", "f0")) is not None


def test_a_broker_that_is_not_known_here_ends_what_can_be_told() -> None:
    """A job explains its own brokers; what happens elsewhere is asked there."""
    world = subscribed("x > 5")
    here = {name: broker for name, broker in brokers_of(world).items() if name != "b"}
    explanation = explain(here, "a", Record(-1, None, {"x": 6}))
    assert [hop.broker for hop in explanation.hops] == ["a", "b"]
    assert explanation.hops[1].stopped == "this broker is not known here"
