"""Questions about events and their answers, through the message formats, from job to job."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from branchline.kafka.cluster import Cluster
from branchline.kafka.dead_letters import decode_dead_letter
from branchline.kafka.dispatch import Dispatch, count, dispatch, one_by_one
from branchline.kafka.errors import ConfigError, RequestRefused, WaitExpired
from branchline.kafka.explaining import (
    EXPLAIN_MAX_BYTES,
    EXPLAINED_MAX_BYTES,
    EXPLAINED_MAX_NAMES,
    Asked,
    encode_asked,
    encode_explained,
    explained_from_fields,
)
from branchline.kafka.finding import Named, read_name
from branchline.kafka.following import Jobs, follow_event, unaskable
from branchline.kafka.intake import read_batch
from branchline.kafka.messages import BadRequest, decode_control
from branchline.kafka.record import Place, Record
from branchline.kafka.topics import Topics
from branchline.ops.simulation.runner import Runner
from branchline.ops.simulation.scripts import Script
from branchline.ops.simulation.world import World
from branchline.routing.codes import Code, Rejection
from branchline.routing.control import Identity, Subscribed
from branchline.routing.history import Published, Read
from branchline.routing.limits import EVENT_MAX_BYTES, EVENT_MAX_HEADER_BYTES
from branchline.routing.overlay.denying import Denial
from branchline.routing.overlay.explaining import Explained, Explanation, Onward
from branchline.routing.overlay.hops import Hop
from branchline.routing.overlay.topology import founded
from branchline.routing.prefix.header import Header, decode
from branchline.routing.prefix.trees import UNMATCHED
from branchline.routing.shard import Job, Shard

TOPICS = Topics("a.b")
NOW_MS = 1_700_000_000_000
PLACE = Place(TOPICS.entry("main"), 1, 17, NOW_MS)


def handled(shard: Shard, *values: bytes) -> list[Dispatch]:
    """What a shard writes when these control messages come; its state and its counts stay as they are."""
    records = [Record(Place(TOPICS.control, 0, at, NOW_MS), None, value) for at, value in enumerate(values)]
    intake = read_batch(TOPICS, records, [])
    before = shard.state()
    outputs = shard.handle(NOW_MS, [], intake.control, intake.events())
    assert outputs.changed is None and shard.state() == before
    if not intake.bad_control:
        assert not any(count(intake, outputs, leads=True).values()), "a question is not counted"
    return list(one_by_one(TOPICS, dispatch(TOPICS, "main", True, NOW_MS, intake, outputs)))


def answers(shard: Shard, *asked: Asked) -> list[Explained]:
    written = handled(shard, *map(encode_asked, asked))
    assert {item.topic for item in written} <= {TOPICS.acks}
    return [explained_from_fields(json.loads(item.value or b"")) for item in written]


def settled(seed: int) -> World:
    """A world after a script, with nothing on its way and no lease that could end meanwhile."""
    script = Script(seed)
    script._lease = lambda: None  # type: ignore[method-assign]
    script._renew = lambda: None  # type: ignore[method-assign]
    script.play(40)
    return script.world


def follow(world: World, first: Asked) -> Explanation:
    """Follow an event through the jobs of a world: every job on a cluster reads every question."""
    begin = world.at[first.broker].job.cluster

    def ask(cluster: str | None, asked: Sequence[Asked]) -> list[Explained | str]:
        runners: list[Runner] = list(dict.fromkeys(world.at.values()))
        there = [each for each in runners if each.job.cluster == (begin if cluster is None else cluster)]
        told = [answer for runner in there for answer in answers(runner.shards[0], *asked)]
        assert cluster != begin, "it has no name where the first question was asked"
        found: list[Explained | str] = []
        for question in asked:
            about = [each for each in told if each.broker == question.broker]
            told = [each for each in told if each not in about[:1]]
            found.append(about[0] if about else "no answer")
        return found

    return follow_event(ask, first)


@pytest.mark.parametrize("seed", range(20))
def test_an_explanation_is_what_happens_to_the_event(seed: int) -> None:
    """In a quiet network, an event published next crosses the links that were explained, with these scopes,
    and is read by those whom the explanation names; everybody else is told why not.
    """
    world = settled(seed)
    first = next(entry for entry in world.history if isinstance(entry, Published))
    attributes = dict(first.attributes)
    record = Record(PLACE, b"k", json.dumps(attributes).encode())
    subscribers = {
        change.identity.subscriber
        for runner in world.at.values()
        for broker in runner.shards[0].brokers.values()
        for change in broker.table.changes()
        if isinstance(change, Subscribed) and change.identity.home == broker.name
    }
    for member in [each for each in world.topology.members if not each.leaving][:3]:
        explanation = follow(world, Asked(member.name, record))
        told = {name: follow(world, Asked(member.name, record, subscriber=name)) for name in subscribers}
        copies, entries = len(world.copies), len(world.history)
        event = world.publish(member.name, attributes)
        world.settle()
        names = {each.number: each.name for each in world.topology.members}
        crossed = set()
        for _, at, to, header in world.copies[copies:]:
            carried = header if isinstance(header, Header) else decode(header)
            assert carried is not None
            crossed.add((at, to, tuple(name for bit, name in names.items() if carried.scope >> bit & 1)))
        assert crossed == {(hop.broker, to, scope) for hop in explanation.hops for to, scope in hop.copies}
        read = {
            entry.subscriber
            for entry in world.history[entries:]
            if isinstance(entry, Read) and entry.event == event
        }
        assert read == {name for hop in explanation.hops for name in hop.deliveries}
        assert {hop.broker for hop in explanation.hops} == {member.name} | {to for _, to, _ in crossed}
        assert not explanation.unasked
        for name, about in told.items():
            assert about.delivered is (name in read)
            assert about.delivered or about.denials, f"{name} is told nothing"
            assert all(about.reasons(denial) and not denial.matches for denial in about.denials)


headers = st.lists(
    st.tuples(st.text(st.characters(codec=None), max_size=5), st.none() | st.binary(max_size=5)), max_size=3
).map(tuple)
names = st.from_regex(r"[a-z0-9][a-z0-9-]{0,5}", fullmatch=True)
carried = st.builds(
    Header, st.just(UNMATCHED), st.integers(0, 2**70), st.integers(0, 2**40), st.integers(0, 64)
)
records = st.builds(
    Record,
    st.builds(
        Place, st.just("a.b.in.main"), st.integers(0, 9), st.integers(0, 2**60), st.integers(-1, 2**50)
    ),
    st.none() | st.binary(max_size=9),
    st.none() | st.binary(max_size=9),
    headers,
)


@given(
    st.builds(
        Asked,
        names,
        records,
        st.none() | carried,
        st.none() | names,
        st.none() | names,
        st.booleans(),
        st.none() | st.text(max_size=9),
    )
)
def test_a_question_reads_back(asked: Asked) -> None:
    """Whatever bytes an event has, also no text at all, they arrive as they are."""
    assert decode_control(encode_asked(asked)) == asked


words = st.lists(st.text(max_size=5), max_size=4).map(tuple)
hops = st.builds(
    Hop,
    names,
    st.none() | names,
    st.none() | st.integers(0, 2**53),
    words,
    st.text(max_size=9),
    words,
    words,
    words,
    st.lists(st.tuples(names, words), max_size=3).map(tuple),
    words,
    st.none() | st.text(max_size=9),
    st.none() | st.integers(0, 9),
)
denied = st.builds(
    Denial, st.builds(Identity, names, names, names), st.text(max_size=9), st.booleans(), words, words
)


@given(
    st.builds(
        Explained,
        names,
        names,
        st.none() | st.text(max_size=9),
        names,
        st.lists(hops, max_size=3).map(tuple),
        st.lists(st.builds(Onward, names, st.none() | names, names, carried), max_size=3).map(tuple),
        st.booleans(),
        st.lists(st.tuples(names, st.none() | names), max_size=3).map(tuple),
        st.lists(denied, max_size=3).map(tuple),
    )
)
def test_an_answer_reads_back(answer: Explained) -> None:
    """What a job answers is what the asker reads."""
    assert explained_from_fields(json.loads(encode_explained(answer, PLACE, NOW_MS))) == answer


def test_long_lists_are_cut_and_that_is_told() -> None:
    """An answer is one record, however many subscribers get the event."""
    many = tuple(f"s{number}" for number in range(EXPLAINED_MAX_NAMES + 7))
    denials = tuple(Denial(Identity("h", "alice", each), "TRUE", True) for each in many)
    hop = Hop("a", None, 1, many, "how", ("x" * 10_000,), many, many, (("b", many),), many)
    answer = Explained("a", "main", "r", "alice", (hop,) * 3, denials=denials)
    read = explained_from_fields(json.loads(encode_explained(answer, PLACE, NOW_MS)))
    assert dict(read.hops[0].left_out) == dict.fromkeys(("scope", "certain", "doubtful", "deliveries"), 7)
    assert len(read.hops[0].path[0]) < 1_000
    assert (len(read.denials), read.more_denials) == (EXPLAINED_MAX_NAMES, 7)
    shown = "\n".join(read.hops[0].describe())
    assert "s99 and 7 more" in shown and "s100" not in shown


def test_an_answer_that_is_still_too_large_is_a_refusal() -> None:
    """It would be refused by its topic, and fail the batch for ever."""
    hop = Hop("a", None, 1, (), "how", certain=("x" * 60_000,) * 50)
    encoded = encode_explained(Explained("a", "main", "r", hops=(hop,)), PLACE, NOW_MS)
    answer = explained_from_fields(json.loads(encoded))
    assert len(encoded) < 1_000 < EXPLAINED_MAX_BYTES
    assert answer.refused is not None and answer.refused.code is Code.CONTROL_TOO_LARGE


def test_the_largest_event_can_be_asked_about() -> None:
    """An event at all its limits fits a question, and its answer comes."""
    value = b'{"x": "' + b"y" * (EVENT_MAX_BYTES - 9) + b'"}'
    each = EVENT_MAX_HEADER_BYTES // 64 - 4
    record = Record(PLACE, b"k" * 65_536, value, tuple((f"h-{at:02}", b"z" * each) for at in range(64)))
    asked = Asked("main", record, request="r")
    assert len(encode_asked(asked)) <= EXPLAIN_MAX_BYTES and unaskable(asked) is None
    [answer] = answers(Shard(Job(("main",), founded(["main"])), 0), asked)
    assert [hop.stopped for hop in answer.hops] == [None]


def test_what_is_too_large_to_ask_about_is_explained_by_its_rejection() -> None:
    """It is read as a job would read it; one that only its key makes too large is an error."""
    explanation = unaskable(Asked("main", Record(PLACE, None, b"x" * 900_000), subscriber="alice"))
    assert explanation is not None and explanation.delivered is False
    assert "rejected (event-too-large)" in explanation.describe()
    with pytest.raises(ConfigError, match="limit is"):
        unaskable(Asked("main", Record(PLACE, b"k" * 900_000, b"{}")))


def test_what_is_no_event_is_answered_with_its_rejection() -> None:
    """Bad JSON is not the asker's fault: the answer is `explained`."""
    shard = Shard(Job(("main",), founded(["main"])), 0)
    json_type = (("content-type", b"application/json"),)
    [answer] = answers(shard, Asked("main", Record(PLACE, None, b"{", json_type), request="r"))
    assert answer.refused is None
    [hop] = answer.hops
    assert hop.stopped is not None and hop.stopped.startswith("rejected (json-invalid)")


GOOD: dict[str, Any] = json.loads(encode_asked(Asked("main", Record(PLACE, b"k", b"{}"), request="r")))


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"version": 2}, Code.CONTROL_VERSION),
        ({"more": 1}, Code.CONTROL_INVALID),
        ({"broker": None}, Code.CONTROL_INVALID),
        ({"broker": "Not A Name"}, Code.CONTROL_INVALID),
        ({"place": "a.b.in.main:0:1"}, Code.CONTROL_INVALID),
        ({"value": "no base64!"}, Code.CONTROL_INVALID),
        ({"value": 1}, Code.CONTROL_INVALID),
        ({"headers": [["YQ=="]]}, Code.CONTROL_INVALID),
        ({"headers": [["gICA", None]]}, Code.CONTROL_INVALID),
        ({"prefix": "AAAA"}, Code.CONTROL_INVALID),
        ({"from": "Not A Name"}, Code.CONTROL_INVALID),
        ({"subscriber": "Not A Name"}, Code.CONTROL_INVALID),
        ({"follow": "yes"}, Code.CONTROL_INVALID),
        ({"request": "r" * 101}, Code.CONTROL_INVALID),
        ({"value": "A" * EXPLAIN_MAX_BYTES}, Code.CONTROL_TOO_LARGE),
    ],
    ids=lambda each: str(each)[:40],
)
def test_a_broken_question_is_refused_and_kept_as_a_dead_letter(change: dict[str, Any], code: Code) -> None:
    """As any other control message that cannot be read; nothing stops."""
    message = json.dumps({**GOOD, **change}).encode()
    bad = decode_control(message)
    assert isinstance(bad, BadRequest) and bad.rejection.code is code
    letter, ack = handled(Shard(Job(("main",), founded(["main"])), 0), message)
    dead = decode_dead_letter(Record(PLACE, letter.key, letter.value, letter.headers))
    assert (letter.topic, dead.code, dead.owed) == (TOPICS.dead_letters, code, "nothing")
    fields = json.loads(ack.value or b"")
    assert (fields["status"], fields["code"]) == ("refused", code)
    if code is not Code.CONTROL_TOO_LARGE:
        refused = explained_from_fields(fields).refused
        assert refused is not None and refused.code is code


def test_who_is_refused_or_not_answered_at_first_gets_an_error() -> None:
    """Elsewhere on the way, it is told in the explanation."""
    first = Asked("main", Record(PLACE, None, b"{}"))
    refused = Explained("main", "main", refused=Rejection(Code.HOME_UNKNOWN, "no broker"))
    with pytest.raises(RequestRefused, match="no broker") as error:
        follow_event(lambda _, asked: [refused], first)
    assert error.value.code == Code.HOME_UNKNOWN
    with pytest.raises(WaitExpired, match="silence"):
        follow_event(lambda _, asked: ["silence"], first)
    onward = tuple(Onward(to, "far", "main", Header(UNMATCHED, 2, 1, 1)) for to in ("b", "c"))
    told = {None: [Explained("main", "here", onward=onward)], "far": ["silence", refused]}
    explanation = follow_event(lambda cluster, asked: told[cluster], first)
    assert dict(explanation.unasked) == {"b": "silence", "c": "no broker"}
    assert "b: could not be asked: silence" in explanation.describe()


def test_a_cluster_that_is_not_named_cannot_be_asked() -> None:
    """It is told how to name it."""
    with Jobs(Cluster("localhost:1"), TOPICS, {}) as jobs:
        [why] = jobs.ask("far", [Asked("b", Record(PLACE, None, b"{}"))])
    assert isinstance(why, str) and "'far'" in why and "--clusters" in why


def test_homes_that_nobody_on_the_way_knows_are_looked_up() -> None:
    """The subscription may be so new that only its home has it."""
    first = Asked("a", Record(PLACE, None, b"{}"), subscriber="alice")
    denial = Denial(Identity("c", "alice", "f"), "TRUE", True, waits_for=("a",))
    asked_for = []

    def ask(cluster: str | None, asked: Sequence[Asked]) -> list[Explained | str]:
        asked_for.extend((cluster, each.broker, each.follow) for each in asked)
        if asked[0].follow:
            return [Explained("a", "here", None, "alice", (Hop("a", None, 1, (), "how", knows=0),))]
        return [Explained("c", "far", None, "alice", denials=(denial,))]

    explanation = follow_event(ask, first, lambda: [("c", "far")])
    assert asked_for == [(None, "a", True), ("far", "c", False)]
    assert explanation.reasons(denial) == ["it matches, but is not in force yet: a did not report it"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("a.b.in.main:0:17", Named("a.b.in.main", 0, 17)),
        ("a.b.in.main:0:17:5", Named("a.b.in.main", 0, 17, 5)),
        ("a.b.in.main:0:17:5:alice", Named("a.b.in.main", 0, 17, 5, "alice")),
    ],
)
def test_an_event_is_named_by_its_place_or_a_delivery(text: str, named: Named) -> None:
    """The timestamp may be left out; a delivery's id says for whom it was."""
    assert read_name(text) == named


@pytest.mark.parametrize("text", ["", "17", "a:b:c", "a:0", "a:0:-1", ":0:1", "a:0:1:x:y:z"])
def test_what_names_no_event_is_told(text: str) -> None:
    """With the ways in which one can be named."""
    with pytest.raises(ConfigError, match="names no event") as error:
        read_name(text)
    assert "--last" in error.value.hint
