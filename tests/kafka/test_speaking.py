"""On its own control topic a subscriber speaks for itself alone, whatever it says."""

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
import strategies as our
from hypothesis import given
from hypothesis import strategies as st

from branchline.kafka.asking import ask, one_subscriber
from branchline.kafka.cluster import Cluster
from branchline.kafka.dead_letters import OWES_NOTHING, decode_dead_letter
from branchline.kafka.dispatch import Dispatch, Step, dispatch, one_by_one
from branchline.kafka.errors import ConfigError
from branchline.kafka.explaining import Asked, encode_asked
from branchline.kafka.intake import read_batch
from branchline.kafka.messages import encode_proposal, encode_refresh, encode_request, encode_tick
from branchline.kafka.record import Place, Record
from branchline.kafka.topics import Topics
from branchline.routing.codes import Code
from branchline.routing.control import Identity, Operation, Request, Subscribed
from branchline.routing.overlay.letters import Propose, Refresh
from branchline.routing.overlay.topology import founded
from branchline.routing.shard import Shard, alone

HOME = "dublin"
TOPICS = Topics("a.b")
NOW_MS = 1_700_000_000_000
NAMES = ("alice", "bob")
EVENT = Record(Place(TOPICS.entry(HOME), 0, 0, 1), None, b'{"a":1}')

questions = st.builds(
    Asked,
    st.just(HOME),
    st.just(EVENT),
    subscriber=st.none() | st.sampled_from(NAMES),
    follow=st.booleans(),
    request=st.none() | st.just("e"),
)
messages = st.one_of(
    our.requests().map(encode_request),
    st.builds(
        Request,
        st.sampled_from(list(Operation)),
        st.sampled_from(NAMES),
        st.sampled_from(["default", "other"]),
        filter=st.just("a = 1"),
        request=st.none() | st.sampled_from(["r1", "r2"]),
    ).map(encode_request),
    st.sampled_from(NAMES).map(
        lambda name: encode_request(Request(Operation.UNSUBSCRIBE, name, "", all=True, request="all"))
    ),
    questions.map(encode_asked),
    st.just(encode_proposal(Propose(founded([HOME, "virginia"]), "t"))),
    st.just(encode_tick()),
    st.just(encode_refresh(Refresh(HOME, 1_000, "f"))),
    st.sampled_from([None, b"", b"{", b'{"version":1,"op":"subscribe","subscriber":"bob"}']),
)


def records(topic: str, values: Sequence[bytes | None]) -> list[Record]:
    return [Record(Place(topic, 0, at, NOW_MS), b"k", value) for at, value in enumerate(values)]


def handled(shard: Shard, control: list[Record]) -> list[Dispatch]:
    intake = read_batch(TOPICS, control, [])
    outputs = shard.handle(NOW_MS, intake.updates, intake.control, intake.events())
    return list(one_by_one(TOPICS, dispatch(TOPICS, HOME, True, NOW_MS, intake, outputs)))


def standing(shard: Shard, but_for: str) -> dict[Identity, object]:
    return {
        change.identity: change
        for change in shard.brokers[HOME].table.changes()
        if change.identity.subscriber != but_for
    }


@given(st.sampled_from(NAMES), st.lists(messages, max_size=6))
def test_nothing_of_anybody_elses_changes(speaker: str, values: list[bytes | None]) -> None:
    """Neither subscriptions nor the topology; all answers go to the speaker's own acks, one of them at least
    to each message; nothing is written that anybody but the router's and the speaker's would read.
    """
    shard = Shard(alone(HOME), 0)
    asked = [Request(Operation.SUBSCRIBE, name, "default", filter="TRUE", request="r0") for name in NAMES]
    handled(shard, records(TOPICS.control, [encode_request(each) for each in asked]))
    before, topology = standing(shard, speaker), shard.brokers[HOME].topology
    written = handled(shard, records(TOPICS.own_control(speaker), values))
    assert (standing(shard, speaker), shard.brokers[HOME].topology) == (before, topology)
    own = {TOPICS.own_acks(speaker), TOPICS.out(speaker)}
    assert {item.topic for item in written} <= own | {TOPICS.filters, TOPICS.dead_letters}
    answers = [json.loads(item.value or b"") for item in written if item.step is Step.ACK]
    assert {answer["place"]["offset"] for answer in answers} == set(range(len(values)))
    for item in written:
        if item.topic == TOPICS.filters:
            assert (item.key or b"").startswith(f"{HOME}/{speaker}/".encode())
    if answers:
        assert TOPICS.own_acks(speaker) in [item.topic for item in written if item.step is Step.CREATE]


@pytest.mark.parametrize(
    "value",
    [
        encode_request(Request(Operation.SUBSCRIBE, "bob", "default", filter="TRUE", request="r")),
        encode_request(Request(Operation.UNSUBSCRIBE, "bob", "default", request="r")),
        encode_request(Request(Operation.UNSUBSCRIBE, "bob", "", all=True, request="r")),
        encode_request(Request(Operation.RENEW, "bob", "default", request="r")),
        encode_proposal(Propose(founded([HOME, "virginia"]), "r")),
        encode_asked(Asked(HOME, EVENT, subscriber="bob", follow=False, request="r")),
        encode_asked(Asked(HOME, EVENT, subscriber="alice", request="r")),
        encode_asked(Asked(HOME, EVENT, follow=False, request="r")),
    ],
)
def test_what_is_not_the_subscribers_is_refused_and_kept(value: bytes) -> None:
    """With a code of its own and the request's id, to the speaker alone; and as a dead letter."""
    written = handled(Shard(alone(HOME), 0), records(TOPICS.own_control("alice"), [value]))
    made, dead, ack = written
    assert (made.step, made.topic) == (Step.CREATE, TOPICS.own_acks("alice"))
    letter = decode_dead_letter(Record(EVENT.place, dead.key, dead.value, dead.headers))
    assert (dead.topic, letter.code, letter.owed) == (TOPICS.dead_letters, Code.NOT_YOURS, OWES_NOTHING)
    said = json.loads(ack.value or b"")
    assert (ack.topic, said["status"], said["code"], said["request"]) == (
        *(TOPICS.own_acks("alice"), "refused", Code.NOT_YOURS),
        "r",
    )


def test_a_question_about_itself_is_answered_without_a_word_of_others() -> None:
    """Why its own filters do not match, and where its home is: no hops, no copies, no other name."""
    shard = Shard(alone(HOME), 0)
    asked = [
        Request(Operation.SUBSCRIBE, name, f"of-{name}", filter=f"a = 2 AND {name} = 1") for name in NAMES
    ]
    handled(shard, records(TOPICS.control, [encode_request(each) for each in asked]))
    question = encode_asked(Asked(HOME, EVENT, subscriber="alice", follow=False, request="e"))
    *_, ack = handled(shard, records(TOPICS.own_control("alice"), [question]))
    said = json.loads(ack.value or b"")
    assert (ack.topic, said["status"], said["hops"], said["onward"]) == (
        *(TOPICS.own_acks("alice"), "explained", []),
        [],
    )
    assert len(said["denials"]) == 1 and "of-alice" in str(said["denials"])
    assert b"bob" not in (ack.value or b"")


def test_a_body_cannot_say_by_which_way_it_came() -> None:
    """`own` in a message is an unknown field; what is asked on the shared topic is answered there."""
    request = Request(Operation.SUBSCRIBE, "alice", "default", filter="TRUE", request="r", own=True)
    shard = Shard(alone(HOME), 0)
    written = handled(shard, records(TOPICS.control, [encode_request(request)]))
    assert {item.topic for item in written if item.step is Step.ACK} == {TOPICS.acks}
    forged = json.dumps({**json.loads(encode_request(replace(request, request="r2"))), "own": True}).encode()
    *_, ack = handled(shard, records(TOPICS.control, [forged]))
    assert json.loads(ack.value or b"")["code"] == Code.CONTROL_INVALID
    (change,) = shard.brokers[HOME].table.changes()
    assert isinstance(change, Subscribed) and not change.own


def test_several_subscribers_cannot_ask_together_on_own_topics() -> None:
    """There is no topic that is all of theirs; that is told before anything is written."""
    asked = [Request(Operation.SUBSCRIBE, name, "default", filter="TRUE") for name in NAMES]
    assert one_subscriber(asked[:1]) == "alice"
    with pytest.raises(ConfigError, match="'alice' and 'bob'"):
        ask(Cluster("127.0.0.1:1"), TOPICS, asked, own=True)
