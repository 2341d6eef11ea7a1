"""An explanation says what the brokers do, hop by hop, and why somebody gets nothing."""

from branchline.ops.simulation.runner import Record
from branchline.ops.simulation.setting import Setting
from branchline.ops.simulation.world import World
from branchline.routing.codes import Code, Rejection
from branchline.routing.control import Identity, Operation, Request
from branchline.routing.methods.naming import Methods
from branchline.routing.overlay import explaining
from branchline.routing.overlay.broker import Broker
from branchline.routing.overlay.explaining import Explain, Explanation, explain, joined
from branchline.routing.overlay.topology import founded, link
from branchline.routing.prefix.header import Header
from branchline.routing.prefix.trees import UNMATCHED
from branchline.routing.shard import EventBatch, Job, Shard
from branchline.routing.values import JsonValue

PREFIX = Methods()


class Unreadable:
    """An event that cannot be read."""

    def attributes(self) -> Rejection:
        return Rejection(Code.JSON_INVALID, "no JSON")


def brokers_of(world: World) -> dict[str, Broker]:
    """All brokers of a world, as their leading shards have them."""
    return {name: runner.shards[0].brokers[name] for name, runner in world.at.items()}


def explained(
    world: World, at: str, attributes: dict[str, JsonValue], subscriber: str | None = None
) -> Explanation:
    """As if one job served all brokers."""
    asked = Explain(at, Record(-1, None, attributes), subscriber=subscriber)
    return joined([explain(brokers_of(world), "main", asked)], subscriber)


def subscribed(*filters: str, methods: Methods = PREFIX) -> World:
    """A world of three brokers in a line, with subscriptions of alice at the last one."""
    topology = founded(["a", "b", "c"], [link("a", "b"), link("b", "c")])
    world = World(Setting(topology, (("a",), ("b",), ("c",)), methods=methods), 1)
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
    assert [hop.knows for hop in explanation.hops] == [1, 1, 1]
    assert explanation.describe().endswith("alice gets the event")


def test_keys_that_were_looked_up_are_told_of() -> None:
    """How many came, and whether they say all; a broker to which no key says all matches afresh."""
    world = subscribed("x > 5", "x > 4", methods=Methods("always-reuse", "table"))
    explanation = explained(world, "a", {"x": 6}, "alice")
    assert explanation.delivered
    assert [hop.how for hop in explanation.hops] == [
        "its content is matched",
        *["its keys are looked up"] * 2,
    ]
    assert [hop.path for hop in explanation.hops] == [(), *[("2 keys, all that matched",)] * 2]
    world = subscribed("x > 5", "x > 4", methods=Methods("partial-reuse(1)", "table"))
    second, third = explained(world, "a", {"x": 6}, "alice").hops[1:]
    assert (second.how, second.path) == ("its keys are looked up", ("1 key, some of those that matched",))
    assert (third.how, third.deliveries) == ("its content is matched afresh", ("alice",))


def test_the_constraints_that_failed_are_named_with_what_the_event_has() -> None:
    """For each subscription of the subscriber, whatever of it is not met."""
    explanation = explained(subscribed("x > 5 AND t = 'b'", "y IS NOT NULL"), "a", {"x": 4}, "alice")
    assert explanation.delivered is False
    first, second = explanation.denials
    assert (first.subscription, first.filter) == (Identity("c", "alice", "f0"), "x > 5 AND t = 'b'")
    assert explanation.reasons(first) == ["x > 5: x is 4", "t = 'b': t is missing"]
    assert explanation.reasons(second) == ["y IS NOT NULL: y is missing"]
    shown = explanation.describe()
    assert "alice does not get the event:" in shown
    assert "x > 5: x is 4" in shown


def test_what_is_long_is_cut_in_reasons() -> None:
    """An event may have 256 KiB in one attribute."""
    [denial] = explained(subscribed("x = 'a'"), "a", {"x": "y" * 200_000}, "alice").denials
    assert denial.failures[0].startswith("x = 'a': x is 'yyy") and len(denial.failures[0]) < 300


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
    assert denial.matches and denial.waits_for == ("a", "b")
    assert explanation.reasons(denial) == [
        "it matches, but is not in force yet: a, b did not report it",
    ]
    assert [hop.broker for hop in explanation.hops] == ["a"]
    assert brokers["c"].home.pending.find(Identity("c", "alice", "f0")) is not None


def test_who_knows_too_little_is_named_if_no_copy_comes() -> None:
    """The home waits for nobody, and a broker on the way has forgotten the subscription: a fault of ours."""
    world = subscribed("x > 5")
    fresh = Shard(Job(("a",), world.topology), 0).brokers["a"]
    asked = Explain("a", Record(-1, None, {"x": 6}), subscriber="alice")
    explanation = joined([explain({**brokers_of(world), "a": fresh}, "main", asked)], "alice")
    [denial] = explanation.denials
    assert explanation.reasons(denial) == ["it matches, but no copy goes to c; not all is known at a"]


def test_what_goes_to_other_jobs_is_onward_with_its_header() -> None:
    """A job explains its own brokers; what happens elsewhere is asked there, and comes to the same."""
    world = subscribed("x > 5")
    brokers = brokers_of(world)
    whole = explained(world, "a", {"x": 6}, "alice")
    content = Record(-1, None, {"x": 6})
    here = explain({name: brokers[name] for name in "ac"}, "main", Explain("a", content, subscriber="alice"))
    [onward] = here.onward
    assert (onward.to, onward.cluster, onward.sender) == ("b", "main", "a")
    assert (here.homes, here.delivered) == ((("c", "main"),), False)
    there = explain(
        {"b": brokers["b"]}, "main", Explain("b", content, onward.header, onward.sender, subscriber="alice")
    )
    [last] = there.onward
    end = explain({"c": brokers["c"]}, "main", Explain("c", content, last.header, "b", subscriber="alice"))
    assert joined([here, there, end], "alice") == whole


def test_a_long_way_is_told_in_several_answers() -> None:
    """An answer has so many hops at most; the rest is onward, though the job serves those brokers too."""
    count = explaining.HOPS_TOLD + 5
    names = [f"b{number:02}" for number in range(count)]
    links = [link("b00", each) for each in names[1:]]
    world = World(Setting(founded(names, links), (tuple(names),)), 1)
    for each in names:
        world.ask(Request(Operation.SUBSCRIBE, f"at-{each}", "f", each, filter="x > 5", request=each))
    world.settle()
    answer = explain(brokers_of(world), "main", Explain("b00", Record(-1, None, {"x": 6})))
    assert len(answer.hops) == explaining.HOPS_TOLD
    assert sorted([hop.broker for hop in answer.hops] + [each.to for each in answer.onward]) == names


def test_what_is_no_event_is_explained_by_its_rejection() -> None:
    """Where it enters, it is read first, and gets no further."""
    world = subscribed("x > 5")
    asked = Explain("a", Unreadable(), subscriber="alice")
    explanation = joined([explain(brokers_of(world), "main", asked)], "alice")
    [hop] = explanation.hops
    assert (hop.stopped, hop.copies) == ("rejected (json-invalid): no JSON", ())
    [denial] = explanation.denials
    assert explanation.reasons(denial) == ["the event cannot be read: no JSON"]


def test_a_copy_that_is_held_is_told_so() -> None:
    """It was divided under a newer topology than the broker has."""
    world = subscribed("x > 5")
    asked = Explain("b", Record(-1, None, {"x": 6}), Header(UNMATCHED, 0b100, 7, 1), "a")
    [hop] = explain(brokers_of(world), "main", asked).hops
    assert (hop.how, hop.stopped) == (
        "it waits for a newer topology",
        "held here until the broker has topology 7",
    )
    assert "nobody found" not in "\n".join(hop.describe())


def test_asking_changes_nothing_and_only_the_leading_shard_answers() -> None:
    """Neither the state nor a count, nor what is remembered of old ends."""
    topology = founded(["a"])
    shards = [Shard(Job(("a",), topology), index) for index in range(2)]
    asks = [
        Request(Operation.SUBSCRIBE, "alice", "f0", "a", filter="x > 5"),
        Request(Operation.UNSUBSCRIBE, "alice", "f0", "a"),
        Request(Operation.SUBSCRIBE, "alice", "f1", "a", filter="x > 6"),
    ]
    for index, shard in enumerate(shards):
        shard.handle(1_000, [], asks, EventBatch())
        before = shard.state()
        long_after_ms = 10**9
        question = Explain("a", Record(-1, None, {"x": 7}), subscriber="alice", request="r")
        outputs = shard.handle(long_after_ms, [], [question], EventBatch())
        assert outputs.changed is None and shard.state() == before
        assert not +outputs.counts and not outputs.filters and not outputs.acks and not outputs.deliveries
        assert [answer.delivered for answer in outputs.explanations] == ([True] if index == 0 else [])


def test_a_broker_that_is_not_there_is_refused_by_whoever_speaks() -> None:
    """Of two jobs on a cluster one refuses; about a broker of the other job only that one answers."""
    topology = founded(["a", "b"], [link("a", "b")])
    shards = {name: Shard(Job((name,), topology), 0) for name in "ab"}
    content = Record(-1, None, {})
    told = {
        at: {
            name: shard.handle(1, [], [Explain(at, content)], EventBatch()).explanations
            for name, shard in shards.items()
        }
        for at in ("b", "nowhere")
    }
    assert told["b"]["a"] == [] and len(told["b"]["b"]) == 1
    [refused] = told["nowhere"]["a"]
    assert told["nowhere"]["b"] == []
    assert refused.refused is not None and refused.refused.code is Code.HOME_UNKNOWN


def test_a_bloom_filter_is_told_of() -> None:
    """It is made where the event enters, and looked up from there on."""
    world = subscribed("x > 5", methods=Methods("bloom", "table"))
    explanation = explained(world, "a", {"x": 6}, "alice")
    assert explanation.delivered
    assert [hop.how for hop in explanation.hops] == [
        "its content is matched",
        *["its Bloom filter is looked up"] * 2,
    ]
    assert explanation.hops[1].path[0].endswith("bits of a Bloom filter")
