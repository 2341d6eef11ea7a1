"""A shard with several brokers, and several shards: who answers, what survives, what is recorded."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from overlay_hands import NOW_MS, Hands, Plain, line, refusal, ring, statuses, subscribe, told, unsubscribe

from branchline.routing.codes import Code, Rejection
from branchline.routing.control import (
    Ended,
    Forgotten,
    Identity,
    Number,
    Operation,
    Request,
    Status,
    Subscribed,
)
from branchline.routing.limits import ENDED_REMEMBERED_MS, LEASE_MIN_MS
from branchline.routing.overlay.dividing import Arrival
from branchline.routing.overlay.facts import Fact, Lapsed
from branchline.routing.overlay.letters import Complete, Letter, Propose, Report
from branchline.routing.overlay.topology import Topology, founded, link
from branchline.routing.prefix.header import Header
from branchline.routing.prefix.optimizer import Optimizer, Settings
from branchline.routing.prefix.trees import UNMATCHED
from branchline.routing.prefix.updates import Snapshot, Update
from branchline.routing.shard import Control, EventBatch, Job, Outputs, Shard, ShardState

ANN = Identity("a", "ann", "one")
CLUSTERS = replace(
    ring("abcd"),
    members=tuple(
        member._replace(cluster="east" if member.name in "ab" else "west") for member in ring("abcd").members
    ),
)
"""a and b are in the east, c and d in the west."""


# Who answers


def refused_by(hands: Hands, request: Request | Propose) -> dict[str, Rejection]:
    """The jobs that refuse when all of them read it, by their first broker."""
    refused = {}
    for names in hands.jobs:
        outputs = hands.call(names[0], request)
        if outputs.acks:
            refused[names[0]] = refusal(outputs)
    return refused


def in_clusters() -> Hands:
    """Four jobs, two in each cluster."""
    return Hands(CLUSTERS, [("a",), ("b",), ("c",), ("d",)])


def test_where_a_cluster_has_several_brokers_the_home_must_be_named() -> None:
    """The job of the cluster's lowest number says so, with the names; all others are silent."""
    refused = refused_by(in_clusters(), subscribe(home=None))
    assert {name: each.code for name, each in refused.items()} == dict.fromkeys("ac", Code.HOME_MISSING)
    assert "'a', 'b'" in refused["a"].reason
    assert "'c', 'd'" in refused["c"].reason


def test_an_unknown_home_is_refused_by_whoever_speaks_for_the_cluster() -> None:
    """With the right names."""
    refused = refused_by(in_clusters(), subscribe(home="z"))
    assert {name: each.code for name, each in refused.items()} == dict.fromkeys("ac", Code.HOME_UNKNOWN)
    assert "'a', 'b'" in refused["a"].reason


def test_a_home_on_another_cluster_is_refused_with_its_name() -> None:
    """By the speaker of the cluster where it was asked; the job that serves it answers for itself."""
    hands = in_clusters()
    outputs = {name: hands.call(name, subscribe(home="c")) for name in "abd"}
    assert "'west'" in refusal(outputs["a"]).reason
    assert refusal(outputs["a"]).code is Code.HOME_UNKNOWN
    assert outputs["b"].acks == outputs["d"].acks == []
    assert statuses(hands.call("c", subscribe(home="c"))) == [Status.ACCEPTED]


def test_a_home_of_another_job_is_answered_by_that_job_alone() -> None:
    """Every job of the cluster reads the request."""
    hands = in_clusters()
    assert hands.call("a", subscribe(home="b")).acks == []
    assert statuses(hands.call("b", subscribe(home="b"))) == [Status.ACCEPTED]


def test_the_home_may_be_left_out_where_the_cluster_has_one_broker() -> None:
    """Its job answers, and no other."""
    lone = replace(CLUSTERS, members=tuple(each._replace(cluster=each.name) for each in CLUSTERS.members))
    hands = Hands(lone)
    outputs = hands.call("b", subscribe(home=None))
    assert [(ack.status, ack.home) for ack in outputs.acks] == [(Status.ACCEPTED, "b")]


def test_a_broker_that_is_not_in_the_topology_is_no_home() -> None:
    """Its job says so: before it has joined, and after it has gone."""
    hands = Hands(line("ab"))
    hands.start("z")
    assert refusal(hands.call("z", subscribe(home="z"))).code is Code.HOME_UNKNOWN
    gone = hands.topology.left("b").without("b")
    hands.take(gone, at="b")
    assert refusal(hands.call("b", subscribe(home="b"))).code is Code.HOME_UNKNOWN


def test_a_job_without_a_topology_speaks_for_nobody_but_its_own() -> None:
    """A newcomer's job, which reads all of its cluster's control, refuses no request that is for others."""
    hands = Hands(line("ab"))
    hands.start("z")
    assert hands.call("z", subscribe(home="a")).acks == []
    assert hands.call("z", subscribe(home="nobody")).acks == []
    assert hands.call("z", subscribe(home=None)).acks == []


def test_a_proposal_is_answered_by_whoever_speaks_for_the_cluster() -> None:
    """Once in each cluster; one that breaks a rule is refused, with the rule."""
    hands = in_clusters()
    proposal = Propose(CLUSTERS.linked("a", "c"), "t2")
    outputs = {name: hands.call(name, proposal) for name in "abd"}
    assert {name: statuses(each) for name, each in outputs.items()} == {
        "a": [Status.ACCEPTED],
        "b": [],
        "d": [],
    }
    (ack,) = outputs["a"].acks
    assert (ack.home, ack.request, ack.subscriber, ack.index) == ("a", "t2", None, 0)
    assert outputs["a"].filters == [proposal.topology]
    again = hands.call("a", proposal)
    assert refusal(again).code is Code.TOPOLOGY_INVALID
    assert "known already" in refusal(again).reason
    assert (again.changed, again.letters) == (None, [])


def test_a_proposal_is_judged_by_the_newest_topology_that_the_job_knows() -> None:
    """One broker has a newer one than the broker that answers: accepting the same number could be undone."""
    hands = Hands(ring("abc"), [("a", "b"), ("c",)])
    hands.call("b", Letter("b", "c", hands.topology.linked("a", "b", 2)))
    outputs = hands.call("a", Propose(hands.topology.linked("a", "b", 3)))
    assert refusal(outputs).code is Code.TOPOLOGY_INVALID


def test_the_first_topology_may_be_proposed_to_jobs_without_one() -> None:
    """Whoever it makes speak for the cluster takes it; the others hear of it by letter."""
    hands = Hands(founded(["x"]))
    hands.start("a")
    hands.start("b")
    first = line("ab")
    assert hands.call("b", Propose(first)).acks == []
    assert statuses(hands.call("a", Propose(first))) == [Status.ACCEPTED]
    hands.settle()
    assert hands.broker("b").topology == first
    assert not hands.broker("b").joining


# What shards other than the first write


def test_other_shards_write_nothing_that_control_has_caused() -> None:
    """They make the same changes, divide and deliver their events, and hold what is early."""
    hands = Hands(line("abc"), shards=2)
    new = hands.topology.linked("a", "c")
    foreign = replace(told(3, home="c"), identity=Identity("c", "cid", "one"))
    batches: list[list[Control]] = [
        [subscribe(), subscribe("x ="), subscribe(home="zz")],
        [Letter("b", "c", foreign), Letter("b", "c", replace(foreign, filter="x =", number=Number(9, 9)))],
        [Letter("b", "c", foreign), Letter("nobody", "c", foreign)],
        [Propose(new, "t"), Letter("b", "c", new)],
        [unsubscribe()],
    ]
    for control in batches:
        for name in "ab":
            first, second = (
                shard.handle(hands.now_ms, [], control, _passing(name)) for shard in hands.at[name]
            )
            assert (second.acks, second.letters, second.filters, second.unusable) == ([], [], [], [])
            assert second.changed == first.changed
            assert second.forwarded == first.forwarded
            assert second.subscribers == first.subscribers


def _passing(name: str) -> EventBatch:
    return EventBatch([name] * 2, [Arrival(Plain({})), Arrival(Plain({}), Header(UNMATCHED, 0b111, 2, 1))])


# What is recorded


def changes_of(outputs: Outputs) -> list[Subscribed | Ended]:
    return [each for each in outputs.filters if isinstance(each, Subscribed | Ended)]


def test_several_brokers_of_a_job_record_a_change_once() -> None:
    """The first of them that learns it; the others only learn it too."""
    hands = Hands(ring("abc"), [("a", "b"), ("c",)])
    first = hands.call("a", subscribe())
    assert len(changes_of(first)) == 1
    later = [changes_of(each) for _ in range(4) for each in hands.deliver(to="b") + hands.deliver(to="a")]
    assert not any(later)
    assert hands.broker("b").table.find(ANN) == hands.broker("a").table.find(ANN)


def test_a_broker_that_lags_does_not_record_what_is_older() -> None:
    """Another one of the job has written something newer: on a compacted topic the last one stands."""
    hands = Hands(line("abcd"), [("b", "c"), ("a",), ("d",)])
    assert changes_of(hands.call("b", Letter("b", "a", told(2)))) == [told(2)]
    assert changes_of(hands.call("c", Letter("c", "d", told(1)))) == []
    assert changes_of(hands.call("c", Letter("c", "d", told(2)))) == []
    assert changes_of(hands.call("c", Letter("c", "d", told(3)))) == [told(3)]


@pytest.mark.parametrize("names", ["bc", "cb"])
def test_in_one_call_the_one_that_lags_records_nothing(names: str) -> None:
    """Whichever broker is first in the call: what was recorded before is not recorded again, nor older."""
    ahead, behind = names
    hands = Hands(line("abcd"), [("b", "c"), ("a",), ("d",)])
    hands.call(ahead, Letter(ahead, "x", told(2)))
    letters = [Letter(ahead, "x", told(3)), Letter(behind, "x", told(1)), Letter(behind, "x", told(2))]
    assert changes_of(hands.call("b", *letters)) == [told(3)]


def test_a_topology_is_recorded_once_by_a_job() -> None:
    """The newest of all its brokers, and no older one after it."""
    hands = Hands(ring("abc"), [("a", "b"), ("c",)])
    new = hands.topology.linked("a", "b", 5)
    newer = new.linked("a", "b", 6)
    assert hands.call("a", Letter("a", "c", newer)).filters == [newer]
    assert hands.call("b", Letter("b", "c", new)).filters == []
    assert hands.call("b", Letter("b", "c", newer)).filters == []


def test_an_end_is_forgotten_in_filters_when_all_brokers_of_the_job_forget_it() -> None:
    """One tombstone, however many brokers the job has."""
    hands = Hands(line("ab"), [("a", "b")])
    hands.call("a", subscribe(), unsubscribe())
    hands.settle()
    hands.now_ms += ENDED_REMEMBERED_MS
    outputs = hands.call("a", subscribe(subscriber="bob"))
    assert [each for each in outputs.filters if isinstance(each, Forgotten)] == [
        Forgotten(ANN, Number(NOW_MS, 2))
    ]


told_to = st.builds(
    lambda broker, number, revision, end: Letter(
        broker,
        "z",
        # No two changes of a home have one number.
        Ended(ANN, Number(1, 2 * number + 1), NOW_MS) if end else told(2 * number, revision=revision),
    ),
    st.sampled_from("bc"),
    st.integers(1, 4),
    st.integers(0, 1),
    st.sampled_from((False, False, True)),
)


@given(st.lists(st.lists(told_to, max_size=4), max_size=6))
def test_filters_has_each_change_once_and_never_an_older_one_later(calls: list[list[Letter]]) -> None:
    """Whatever the brokers of a job hear, in whatever order and calls: the orders recorded rise strictly."""
    hands = Hands(line("abcd"), [("b", "c"), ("a",), ("d",)])
    recorded = [change for letters in calls for change in changes_of(hands.call("b", *letters))]
    orders = [change.order for change in recorded]
    assert orders == sorted(set(orders))
    known = [hands.broker(name).table.find(ANN) for name in "bc"]
    newest = max((each for each in known if each is not None), key=lambda each: each.order, default=None)
    assert (recorded[-1] if recorded else None) == newest


# What survives


@dataclass(frozen=True, slots=True)
class Call:
    """One call of `handle`."""

    now_ms: int
    updates: tuple[Update | Snapshot, ...]
    control: tuple[Control, ...]
    events: EventBatch


LINKED = line("abc").linked("a", "c")
JOINED = LINKED.joined("d", {"b": 1, "c": 2})
TOPOLOGIES = [line("abc"), LINKED, JOINED, JOINED.left("b"), JOINED.left("b").without("b")]
FILTERS = ("TRUE", "x = 1", "x > 1 AND y = 2", "x < y")
SERVED = ("a", "b", "d")
"""d joins in the third topology, and b leaves."""

identities = st.builds(
    Identity, st.sampled_from("abcd"), st.sampled_from(("ann", "bob")), st.sampled_from(("one", "two"))
)
some_numbers = st.builds(Number, st.sampled_from((1, NOW_MS)), st.integers(1, 5))
bodies = st.one_of(
    st.builds(
        Subscribed,
        identities,
        some_numbers,
        st.just("sql"),
        st.sampled_from(FILTERS),
        revision=st.integers(0, 2),
    ),
    st.builds(Ended, identities, some_numbers, st.sampled_from((NOW_MS, NOW_MS - 5))),
    st.sampled_from(TOPOLOGIES),
    st.just(Complete()),
    st.builds(
        Report,
        st.sampled_from("abcd"),
        st.sampled_from("abcd"),
        st.sampled_from([topology.order for topology in TOPOLOGIES]),
        st.lists(st.tuples(identities, some_numbers), max_size=3).map(tuple),
    ),
)
controls: st.SearchStrategy[Control] = st.one_of(
    st.builds(
        Request,
        st.sampled_from((Operation.SUBSCRIBE, Operation.SUBSCRIBE, Operation.UNSUBSCRIBE, Operation.RENEW)),
        st.sampled_from(("ann", "bob", "cid")),
        st.sampled_from(("one", "two")),
        st.sampled_from((None, "a", "a", "b", "d", "c")),
        filter=st.sampled_from(FILTERS),
        request=st.sampled_from((None, "r1", "r2", "r3", "r4")),
        lease_ms=st.sampled_from((None, LEASE_MIN_MS)),
    ),
    st.builds(Letter, st.sampled_from(SERVED), st.sampled_from("abcd"), bodies),
    st.builds(Propose, st.sampled_from(TOPOLOGIES)),
)
headers = st.none() | st.builds(
    Header, st.just(UNMATCHED), st.integers(0, 15), st.integers(1, 5), st.sampled_from((1, 2, 65))
)
arrivals = st.builds(
    Arrival,
    st.builds(Plain, st.fixed_dictionaries({"x": st.integers(0, 2), "y": st.integers(0, 2)})),
    headers,
    st.sampled_from((None, None, "ann")),
)
event_batches = st.lists(st.tuples(st.sampled_from(SERVED), arrivals), max_size=3).map(
    lambda rows: EventBatch([name for name, _ in rows], [arrival for _, arrival in rows])
)


@st.composite
def scripts(draw: st.DrawFn) -> list[Call]:
    """Calls, with the letters that the job writes to its own brokers, and updates of a tree."""
    shard = Shard(JOB, 0)
    optimizer = Optimizer(1, Settings(threshold=0.0))
    waiting: list[Letter] = []
    script, now_ms = [], NOW_MS
    for _ in range(draw(st.integers(1, 8))):
        now_ms += draw(st.sampled_from((0, 1, LEASE_MIN_MS, ENDED_REMEMBERED_MS)))
        read = draw(st.integers(0, len(waiting)))
        control = (*draw(st.lists(controls, max_size=4)), *waiting[:read])
        waiting = waiting[read:]
        updates = tuple(optimizer.updates(now_ms)) if draw(st.booleans()) else ()
        call = Call(now_ms, updates, control, draw(event_batches))
        script.append(call)
        outputs = play(shard, [call])[0]
        waiting += [letter for letter in outputs.letters if letter.to in SERVED]
        for change in outputs.filters:
            if isinstance(change, Subscribed):
                compiled = shard.brokers["a"].table.compiled(change.identity)
                if compiled is not None:
                    optimizer.subscribe(compiled.cover)
    return script


JOB = Job(SERVED, TOPOLOGIES[0])


def play(shard: Shard, script: Sequence[Call]) -> list[Outputs]:
    return [shard.handle(call.now_ms, call.updates, call.control, call.events) for call in script]


many = settings(max_examples=4 * settings().max_examples)


@many
@given(scripts(), st.data())
def test_a_rebuilt_shard_goes_on_as_if_nothing_had_happened(script: list[Call], data: st.DataObject) -> None:
    """From its log, from its state, or from a state and the log since then, all outputs are the same."""
    taken = data.draw(st.integers(0, len(script)))
    cut = data.draw(st.integers(taken, len(script)))
    shard = Shard(JOB, 0)
    early = play(shard, script[:taken])
    snapshot = shard.state()
    late = play(shard, script[taken:cut])
    log = [outputs.changed for outputs in (*early, *late) if outputs.changed is not None]
    since = [outputs.changed for outputs in late if outputs.changed is not None]
    states: list[list[ShardState]] = [log, [shard.state()], [snapshot, *since]]
    expected = play(Shard(JOB, 0, log), script[cut:])
    assert play(shard, script[cut:]) == expected
    for state in states[1:]:
        rebuilt = Shard(JOB, 0, state)
        assert play(rebuilt, script[cut:]) == expected
        assert rebuilt.state() == shard.state()
        assert rebuilt.describe() == shard.describe()


def but_lapses(state: ShardState | None) -> list[tuple[str, Fact]]:
    """All but which leases were told to expire, which only the leading shard looks after."""
    return [] if state is None else [each for each in state.facts if not isinstance(each[1], Lapsed)]


@given(scripts())
def test_all_shards_agree_whatever_their_share_of_the_events(script: list[Call]) -> None:
    """Others than the first write nothing that control caused, and end equal."""
    first, second = Shard(JOB, 0), Shard(JOB, 1)
    silent = [replace(call, events=EventBatch()) for call in script]
    for outputs, others in zip(play(first, silent), play(second, silent), strict=True):
        assert (others.acks, others.letters, others.filters, others.unusable) == ([], [], [], [])
        assert but_lapses(others.changed) == but_lapses(outputs.changed)
        assert others.subscribers == outputs.subscribers
        assert (others.forwarded, others.deliveries) == (outputs.forwarded, outputs.deliveries)
    assert but_lapses(second.state()) == but_lapses(first.state())


@given(scripts())
def test_a_call_made_again_gives_the_same(script: list[Call]) -> None:
    """From equal states, equal outputs: no clock, no chance, no order that hangs on hashing."""
    assert play(Shard(JOB, 0), script) == play(Shard(JOB, 0), script)


@given(scripts())
def test_filters_leads_to_the_newest_that_the_job_knows(script: list[Call]) -> None:
    """Compacted, `filters` has what stands as the newest broker has it, and nothing older than any has.

    An end that one broker has forgotten is kept for as long as another has not heard of it.
    """
    shard, held = Shard(JOB, 0), dict[Identity, Subscribed | Ended]()
    newest: Topology | None = None
    for outputs in play(shard, script):
        for change in outputs.filters:
            if isinstance(change, Topology):
                assert newest is None or change.order > newest.order
                newest = change
            elif isinstance(change, Forgotten):
                held.pop(change.identity, None)
            else:
                held[change.identity] = change
    known: dict[Identity, Subscribed | Ended] = {}
    for broker in shard.brokers.values():
        for change in broker.table.changes():
            if change.identity not in known or change.order > known[change.identity].order:
                known[change.identity] = change
    assert all(held[identity].order >= change.order for identity, change in known.items())
    standing = {identity: change for identity, change in held.items() if isinstance(change, Subscribed)}
    assert {identity: known.get(identity) for identity in standing} == standing


def test_ends_of_one_moment_are_forgotten_in_one_order() -> None:
    """A shard that comes back from its state writes its tombstones as the one that never stopped."""
    shard = Shard(JOB, 0)
    asked = [subscribe(subscriber=name) for name in ("bob", "ann")]
    ended = [unsubscribe(subscriber=name) for name in ("bob", "ann")]
    shard.handle(NOW_MS, [], [*asked, *ended], EventBatch())
    rebuilt = Shard(JOB, 0, [shard.state()])
    later = NOW_MS + ENDED_REMEMBERED_MS
    expected = shard.handle(later, [], [subscribe(subscriber="cid")], EventBatch())
    assert rebuilt.handle(later, [], [subscribe(subscriber="cid")], EventBatch()).filters == expected.filters


def test_a_pending_subscription_survives_with_the_reports_that_it_has() -> None:
    """Also when the job starts anew between two reports."""
    hands = Hands(line("abc"))
    hands.call("a", subscribe())
    hands.deliver(to="b")
    hands.deliver(to="a")
    (shard,) = hands.at["a"]
    hands.at["a"] = [Shard(Job(("a",), hands.topology), 0, [shard.state()])]
    assert hands.broker("a").home.pending.waits_for(ANN) == ["c"]
    hands.settle()
    assert hands.acks[-1].status is Status.IN_FORCE


def test_a_newcomer_that_starts_anew_still_joins() -> None:
    """Until it is told that it knows everything; and not again afterwards."""
    hands = Hands(founded("ab", [link("a", "b")]))
    hands.call("a", subscribe())
    hands.settle()
    hands.start("c")
    hands.take(hands.topology.joined("c", {"b": 1}), at="b")
    hands.deliver(to="c", body=Topology)
    for joins in (True, False):
        (shard,) = hands.at["c"]
        hands.at["c"] = [Shard(Job(("c",), None), 0, [shard.state()])]
        assert hands.broker("c").joining is joins
        hands.settle()
