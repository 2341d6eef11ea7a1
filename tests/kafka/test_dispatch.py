"""From records to records: what intake, shard and dispatch make of a batch, whatever is in it."""

import json
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import pytest
import strategies as our
from hypothesis import given
from hypothesis import strategies as st

from branchline.kafka import headers as bl
from branchline.kafka.arrivals import received
from branchline.kafka.dead_letters import (
    OWES_NOTHING,
    DeadLetter,
    decode_dead_letter,
    owed_to,
    owed_to_scope,
)
from branchline.kafka.dispatch import Dispatch, Step, count, dispatch, one_by_one
from branchline.kafka.intake import Intake, read_batch
from branchline.kafka.letters import encode_letter, encode_recorded
from branchline.kafka.messages import encode_request, encode_tick
from branchline.kafka.record import Headers, Place, Record
from branchline.kafka.topics import Topics
from branchline.routing.codes import Code
from branchline.routing.control import Identity, Number, Operation, Request, Subscribed
from branchline.routing.limits import ENDED_REMEMBERED_MS, LEASE_MIN_MS
from branchline.routing.methods.naming import Methods
from branchline.routing.overlay.letters import Body, Complete, Letter
from branchline.routing.prefix.header import Header, decode, encode
from branchline.routing.prefix.trees import UNMATCHED
from branchline.routing.shard import Outputs, Shard, alone

HOME = "dublin"
TOPICS = Topics("a.b")
NOW_MS = 1_700_000_000_000
JSON_TYPE = ("content-type", b"application/json")


@dataclass(frozen=True, slots=True)
class Published:
    """An event record, the code that it must be rejected with, if any, and whether it was retried."""

    key: bytes | None
    value: bytes | None
    headers: Headers
    code: Code | None = None
    retried: bool = False
    only: str | None = None
    prefix: bytes | None = None
    """What came with it from a broker, readable or not."""


@dataclass(frozen=True, slots=True)
class Told:
    """A control record, and the code that it must be rejected with, if any."""

    topic: str
    value: bytes | None
    code: Code | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    elapsed_ms: int
    control: list[Told]
    events: list[Published]


keys = st.none() | st.sampled_from([b"", b"k1", b"k2", b"\xff"])
documents = st.sampled_from([json.dumps(event).encode() for event in our.EVENTS])
clean = st.tuples(our.forged_headers, our.foreign_headers).map(lambda parts: parts[0] + parts[1])
"""Headers that leave an event as it is: foreign ones, and forged ones, which are dropped."""

good_events = st.builds(Published, keys, documents | st.sampled_from([b"opaque", b"[1]", b"\xff"]), clean)
broken_events = st.one_of(
    st.builds(
        Published,
        keys,
        st.sampled_from([b"{", b"nonsense"]),
        our.forged_headers.map(lambda forged: (*forged, JSON_TYPE)),
        st.just(Code.JSON_INVALID),
    ),
    st.builds(Published, st.none(), st.none() | st.just(b""), our.forged_headers, st.just(Code.EVENT_EMPTY)),
    st.builds(
        Published, keys, documents, st.just((("ce_specversion", b"1.0"),)), st.just(Code.CLOUDEVENT_INVALID)
    ),
)
retried_events = st.builds(
    Published,
    keys,
    documents,
    our.foreign_headers,
    st.none() | st.just(Code.ORIGIN_INVALID),
    st.just(True),
    st.none() | our.subscribers,
) | st.builds(
    Published,
    keys,
    st.just(b"{"),
    st.just((JSON_TYPE,)),
    st.just(Code.JSON_INVALID),
    st.just(True),
    st.none() | our.subscribers,
)
damaged_events = st.builds(
    Published,
    keys,
    documents,
    our.foreign_headers,
    retried=st.just(True),
    only=st.none() | our.subscribers,
    prefix=st.sampled_from([b"", b"nonsense", encode(Header(UNMATCHED, 1))[:-1]]),
)
passed_events = st.builds(
    Published,
    keys,
    documents,
    our.foreign_headers,
    st.none() | st.just(Code.ORIGIN_INVALID),
    retried=st.just(True),
    prefix=st.integers(0, 3).map(lambda scope: encode(Header(UNMATCHED, scope, hops=1))),
)
every_event = st.one_of(
    good_events, good_events, broken_events, retried_events, damaged_events, passed_events
)
events = st.lists(every_event, max_size=5)

asked = our.requests() | our.requests(filters=st.sampled_from(our.BAD_FILTERS))
other_changes = our.changes(
    our.identities(("virginia",)),
    st.builds(Number, st.integers(1, 2), st.integers(0, 5)),
    forgetting=False,
)


def letter(body: Body, sender: str = "virginia") -> bytes:
    """The record that tells this to the home."""
    ((_, value),) = encode_letter(Letter(HOME, sender, body))
    return value


control = st.lists(
    st.one_of(
        asked.map(lambda request: Told(TOPICS.control, encode_request(request))),
        asked.map(lambda request: Told(TOPICS.control, encode_request(request))),
        st.sampled_from([None, b"", b"{", b"[]"]).map(
            lambda value: Told(TOPICS.control, value, Code.CONTROL_INVALID)
        ),
        st.just(Told(TOPICS.control, b'{"version":2}', Code.CONTROL_VERSION)),
        other_changes.map(lambda change: Told(TOPICS.link(HOME), letter(change))),
        st.just(Told(TOPICS.link(HOME), letter(Complete()))),
        st.just(Told(TOPICS.link(HOME), b"{}", Code.CONTROL_VERSION)),
        st.just(Told(TOPICS.control, encode_tick())),
    ),
    max_size=5,
)
batches = st.lists(
    st.builds(Batch, st.sampled_from([0, 1000, ENDED_REMEMBERED_MS]), control, events), max_size=4
)


def origin_of(at: tuple[int, int], published: Published) -> Place:
    """Where the event at this place of the script was first published."""
    partition, offset = at
    if published.retried and published.code is not Code.ORIGIN_INVALID:
        return Place(TOPICS.entry("elsewhere"), partition, offset, NOW_MS - 5)
    return place_of(at, published)


def place_of(at: tuple[int, int], published: Published) -> Place:
    return Place(TOPICS.broker(HOME) if published.retried else TOPICS.entry(HOME), *at, NOW_MS)


def event_record(at: tuple[int, int], published: Published) -> Record:
    headers = published.headers
    if published.retried:
        good = published.code is not Code.ORIGIN_INVALID
        headers += ((bl.ORIGIN, str(origin_of(at, published)).encode() if good else b"nowhere"),)
        if published.only is not None:
            headers += ((bl.ONLY, published.only.encode()),)
        if published.prefix is not None:
            headers += ((bl.PREFIX, published.prefix),)
    return Record(place_of(at, published), published.key, published.value, headers)


@dataclass(frozen=True, slots=True)
class Done:
    """One shard's handling of one batch."""

    intake: Intake
    outputs: Outputs
    dispatches: list[Dispatch]

    def to(self, topic: str) -> list[Dispatch]:
        return [item for item in self.dispatches if item.topic == topic and item.step is not Step.CREATE]

    def letters(self) -> list[DeadLetter]:
        return [
            decode_dead_letter(Record(Place(item.topic, 0, 0, 0), item.key, item.value, item.headers))
            for item in self.to(TOPICS.dead_letters)
        ]


class Router:
    """S shards; each gets all control and, of the events, those whose index is given to it."""

    def __init__(self, shards: int = 1) -> None:
        self._shards = [Shard(alone(HOME), index) for index in range(shards)]
        self._now_ms = NOW_MS
        self._batch = 0

    def run(self, batch: Batch, division: list[int] | None = None) -> list[Done]:
        self._now_ms += batch.elapsed_ms
        self._batch += 1
        control = [
            Record(Place(told.topic, 0, self._batch * 100 + at, NOW_MS), b"c", told.value)
            for at, told in enumerate(batch.control)
        ]
        records = [event_record((self._batch, at), event) for at, event in enumerate(batch.events)]
        with pytest.MonkeyPatch.context() as patch:
            # So few choices that arrays as small as ours exceed them.
            patch.setattr("branchline.routing.evaluate.MAX_CHOICES", 2)
            return [
                self._run_shard(
                    index,
                    control,
                    [
                        record
                        for at, record in enumerate(records)
                        if division is None or division[at % len(division)] == index
                    ],
                )
                for index in range(len(self._shards))
            ]

    def _run_shard(self, index: int, control: list[Record], events: list[Record]) -> Done:
        intake = read_batch(TOPICS, control, events)
        outputs = self._shards[index].handle(self._now_ms, [], intake.control, intake.events())
        dispatches = list(
            one_by_one(TOPICS, dispatch(TOPICS, HOME, index == 0, self._now_ms, intake, outputs))
        )
        return Done(intake, outputs, dispatches)


def deliveries(done: Done) -> list[Dispatch]:
    return [item for item in done.dispatches if item.id is not None]


@given(batches)
def test_topics_are_made_first_and_what_others_hear_comes_last(script: list[Batch]) -> None:
    """Steps never go back: nobody is told or answered before all else is safely written; and whatever is
    delivered goes to a topic made in this batch or before.
    """
    router, made = Router(), set()
    for batch in script:
        (done,) = router.run(batch)
        steps = [item.step for item in done.dispatches]
        assert steps == sorted(steps)
        made |= {item.topic for item in done.dispatches if item.step is Step.CREATE}
        assert {item.topic for item in deliveries(done)} <= made
        told = [item for item in done.dispatches if item.topic.startswith((TOPICS.acks, TOPICS.link("")))]
        assert told == [item for item in done.dispatches if item.step is Step.ACK]


def owes(event: Published) -> str:
    """To whom an event that could not be read is still owed."""
    header = decode(event.prefix) if event.prefix is not None else None
    return owed_to(event.only) if header is None else owed_to_scope(header.scope)


@given(batches)
def test_what_comes_damaged_from_a_broker_is_matched_afresh(script: list[Batch]) -> None:
    """A prefix that cannot be read costs a dead letter that owes nothing, and never an event."""
    with_damage, without = Router(), Router()
    for number, batch in enumerate(script, 1):
        (done,) = with_damage.run(batch)
        repaired = [
            replace(event, prefix=None) if event.prefix and decode(event.prefix) is None else event
            for event in batch.events
        ]
        (same,) = without.run(replace(batch, events=repaired))
        assert [(item.topic, item.value, item.id) for item in deliveries(done)] == [
            (item.topic, item.value, item.id) for item in deliveries(same)
        ]
        told = [letter for letter in done.letters() if letter.code == Code.HEADER_INVALID]
        assert {letter.owed for letter in told} <= {OWES_NOTHING}
        assert Counter((letter.place, letter.record.value) for letter in told) == Counter(
            (origin_of((number, at), event), event.value)
            for at, event in enumerate(batch.events)
            if event.prefix is not None and decode(event.prefix) is None
        )


@given(batches)
def test_every_bad_event_has_one_dead_letter(script: list[Batch]) -> None:
    """A dead letter for each, with its origin, its code and what is owed, and the record as it was."""
    router = Router()
    for number, batch in enumerate(script, 1):
        (done,) = router.run(batch)
        expected = Counter(
            (origin_of((number, at), event), event.code, event.key, event.value, bl.foreign(event.headers))
            for at, event in enumerate(batch.events)
            if event.code is not None and owes(event) != OWES_NOTHING
        )
        undecided = {
            (received(done.intake.arrivals[item.event]).origin, owed_to(item.subscriber))
            for item in done.outputs.undecided
        }
        letters = [letter for letter in done.letters() if letter.owed != OWES_NOTHING]
        bad = [letter for letter in letters if letter.code != Code.TOO_MANY_CHOICES]
        assert expected == Counter(
            (letter.place, letter.code, letter.record.key, letter.record.value, letter.record.headers)
            for letter in bad
        )
        assert undecided == {(letter.place, letter.owed) for letter in letters if letter not in bad}
        assert len(letters) - len(bad) == len(undecided)


@pytest.mark.parametrize("scope", [1, 0b1010])
def test_a_copy_without_an_origin_is_owed_to_its_scope(scope: int) -> None:
    """The dead letter owes the event to the homes that the copy answered for, and to no others."""
    copy = Published(b"k", b"{}", (), Code.ORIGIN_INVALID, True, prefix=encode(Header(UNMATCHED, scope)))
    (done,) = Router().run(Batch(0, [], [copy]))
    (letter,) = done.letters()
    assert (letter.code, letter.owed) == (Code.ORIGIN_INVALID, f"scope:{scope:x}")


@pytest.mark.parametrize("code", [Code.JSON_INVALID, Code.ORIGIN_INVALID])
@pytest.mark.parametrize("only", [None, "alice"])
def test_a_broken_retry_is_owed_to_whom_it_was_for(code: Code, only: str | None) -> None:
    """The dead letter owes the event to the one subscriber of the retry, or to everybody: never to more."""
    (done,) = Router().run(Batch(0, [], [Published(b"k", b"{", (JSON_TYPE,), code, True, only)]))
    (letter,) = done.letters()
    assert (letter.code, letter.owed) == (code, owed_to(only))


@given(batches)
def test_deliveries_carry_the_event_as_published(script: list[Batch]) -> None:
    """Key, value and foreign headers are the publisher's; the id names origin and subscriber, once each."""
    router, ids = Router(), []
    for number, batch in enumerate(script, 1):
        (done,) = router.run(batch)
        published = {origin_of((number, at), event): event for at, event in enumerate(batch.events)}
        for item in deliveries(done):
            read = bl.read_delivery_id(item.id or "")
            assert read is not None
            origin, subscriber = read
            event = published[origin]
            assert item.topic == TOPICS.out(subscriber)
            assert (item.key, item.value) == (event.key, event.value)
            assert item.headers == bl.foreign(event.headers)
            assert event.only in (None, subscriber)
            ids.append(item.id)
    assert len(ids) == len(set(ids))


@given(batches)
def test_every_control_message_is_answered_where_it_was_asked(script: list[Batch]) -> None:
    """Each request has acks with its place; a bad one is refused, and its dead letter owes nothing."""
    router = Router()
    for number, batch in enumerate(script, 1):
        (done,) = router.run(batch)
        acks: dict[int, list[dict[str, Any]]] = {}
        for item in done.to(TOPICS.acks):
            ack = json.loads(item.value or b"")
            if "place" not in ack:
                assert ack["status"] == "expired", "all others answer a message of this batch"
                continue
            assert ack["place"]["topic"] == TOPICS.control
            assert item.key == (ack["subscriber"].encode() if "subscriber" in ack else None)
            acks.setdefault(ack["place"]["offset"] - number * 100, []).append(ack)
        asked = {
            at: told
            for at, told in enumerate(batch.control)
            if told.topic == TOPICS.control and told.value != encode_tick()
        }
        assert acks.keys() == asked.keys()
        for at, told in asked.items():
            if told.code is not None:
                assert [(ack["status"], ack["code"]) for ack in acks[at]] == [("refused", told.code)]
        dead = Counter(
            (letter.code, letter.record.value)
            for letter in done.letters()
            if letter.owed == OWES_NOTHING and letter.place.topic in (TOPICS.control, TOPICS.link(HOME))
        )
        assert dead == Counter((told.code, told.value) for told in batch.control if told.code is not None)


@given(batches)
def test_filters_records_every_change_before_its_ack(script: list[Batch]) -> None:
    """The changes of a batch stand on `filters` in their order, with a tombstone for each forgotten one."""
    router = Router()
    for batch in script:
        (done,) = router.run(batch)
        written = [(item.key, item.value) for item in done.to(TOPICS.filters)]
        assert written == [encode_recorded(change) for change in done.outputs.filters]


@given(batches, st.integers(2, 4), st.data())
def test_shards_together_do_what_one_does(script: list[Batch], shards: int, data: st.DataObject) -> None:
    """However the events are divided, all that is written is what one shard writes.

    Shards that do not lead write no acks, no filters and no dead letters of control.
    """
    alone, together = Router(), Router(shards)
    for batch in script:
        division = data.draw(st.lists(st.integers(0, shards - 1), min_size=1, max_size=5))
        (one,) = alone.run(batch)
        several = together.run(batch, division)
        for done in several[1:]:
            assert done.to(TOPICS.acks) == done.to(TOPICS.filters) == done.to(TOPICS.link(HOME)) == []
            about = {letter.place.topic for letter in done.letters() if letter.place is not None}
            assert not about & {TOPICS.control, TOPICS.link(HOME)}
            assert [item for item in done.dispatches if item.step is Step.CREATE] == [
                item for item in one.dispatches if item.step is Step.CREATE
            ]
        written = [item for done in several for item in done.dispatches if item.step is not Step.CREATE]
        assert Counter(written) == Counter(item for item in one.dispatches if item.step is not Step.CREATE)


def test_an_unusable_change_is_a_dead_letter_and_no_ack() -> None:
    """A change told by another broker whose filter cannot be read owes nothing and is answered to nobody."""
    change = Subscribed(Identity("virginia", "bob", "default"), Number(1, 1), "sql", "a =")
    (done,) = Router().run(Batch(0, [Told(TOPICS.link(HOME), letter(change))], []))
    (dead,) = done.letters()
    assert (dead.code, dead.owed) == (Code.FILTER_SYNTAX, OWES_NOTHING)
    assert [item.topic for item in done.dispatches] == [TOPICS.dead_letters]


def test_the_counts_say_what_happened() -> None:
    """Accepted, opaque, rejected, delivered, undecided, requests and refused are each counted once."""
    request = Request(Operation.SUBSCRIBE, "alice", "default", filter="items = 1 AND a = 1")
    told = [
        Told(TOPICS.control, encode_request(request)),
        Told(TOPICS.control, encode_request(replace(request, filter="a ="))),
        Told(TOPICS.control, b"{"),
    ]
    events = [
        Published(None, b'{"a":1,"items":1}', ()),
        Published(None, b'{"a":1,"items":[1,2,3]}', ()),
        Published(None, b"opaque", ()),
        Published(None, None, ()),
    ]
    (done,) = Router().run(Batch(0, told, events))
    counts = count(done.intake, done.outputs, leads=True)
    expected = {
        "accepted": 3,
        "opaque": 1,
        "rejected": 1,
        "delivered": 1,
        "undecided": 1,
        "requests": 3,
        "refused": 2,
    }
    assert {name: counts[name] for name in expected} == expected
    other = count(done.intake, done.outputs, leads=False)
    assert other["requests"] == 0, "or the sum over all shards would count it several times"
    assert counts["content_matches"] == counts["accepted"]


def test_a_lease_ends_through_the_link_and_says_so() -> None:
    """The expiry is a letter to oneself; the ack of it answers no message."""
    router = Router()
    asked = Request(Operation.SUBSCRIBE, "alice", "default", filter="TRUE", lease_ms=LEASE_MIN_MS)
    router.run(Batch(0, [Told(TOPICS.control, encode_request(asked))], []))
    (done,) = router.run(Batch(LEASE_MIN_MS, [Told(TOPICS.control, encode_tick())], []))
    (told,) = done.to(TOPICS.link(HOME))
    assert [item.topic for item in done.dispatches] == [TOPICS.link(HOME)]
    (done,) = router.run(Batch(0, [Told(TOPICS.link(HOME), told.value)], []))
    (ack,) = done.to(TOPICS.acks)
    fields = json.loads(ack.value or b"")
    assert (fields["status"], fields["subscriber"], "place" in fields) == ("expired", "alice", False)


def test_topics_are_removed_before_all_else_and_told_last() -> None:
    """The leading shard alone says so, in the batch that a tick brings about."""
    shards = [Shard(replace(alone(HOME), remove_after_ms=1_000), index) for index in (0, 1)]
    requests = [
        Request(Operation.SUBSCRIBE, "alice", "default", filter="TRUE"),
        Request(Operation.UNSUBSCRIBE, "alice", "", all=True),
    ]
    for at_ms, values in ((0, [encode_request(each) for each in requests]), (1_000, [encode_tick()])):
        records = [
            Record(Place(TOPICS.control, 0, offset, NOW_MS), None, value)
            for offset, value in enumerate(values)
        ]
        made = []
        for index, shard in enumerate(shards):
            intake = read_batch(TOPICS, records, [])
            outputs = shard.handle(NOW_MS + at_ms, intake.updates, intake.control, intake.events())
            made.append(
                list(one_by_one(TOPICS, dispatch(TOPICS, HOME, index == 0, NOW_MS + at_ms, intake, outputs)))
            )
    (removal, ack), others = made
    assert (removal.step, removal.topic, others) == (Step.REMOVE, TOPICS.out("alice"), [])
    told = json.loads(ack.value or b"")
    assert (ack.step, told["status"], told["subscriber"]) == (
        Step.ACK,
        "removed",
        "alice",
    ) and "id" not in told


def test_what_is_not_advertised_is_owed_to_everybody_until_it_is() -> None:
    """A dead letter with its code; retried as it says, it is refused again, and delivered once advertised."""
    topics, methods = Topics("branchline"), Methods("rematch", "table", "covering+advertised")
    shard = Shard(replace(alone("main"), methods=methods), 0)

    def run(control: list[Request], events: list[Record]) -> list[Dispatch]:
        place = Place(topics.control, 0, 0, 1)
        asked = [Record(place, None, encode_request(each)) for each in control]
        intake = read_batch(topics, asked, events)
        outputs = shard.handle(1, intake.updates, intake.control, intake.events())
        counts = count(intake, outputs, leads=True)
        assert counts["accepted"] + counts["rejected"] == len(events)
        return list(one_by_one(topics, dispatch(topics, "main", True, 1, intake, outputs)))

    run([Request(Operation.SUBSCRIBE, "ann", "one", filter="TRUE", request="r1")], [])
    entering = Record(Place(topics.entry("main"), 0, 7, 5), b"k", b'{"x": 1}')
    (dead,) = run([], [entering])
    assert dead.topic == topics.dead_letters
    said = dict(dead.headers)
    assert (said[bl.CODE], said[bl.OWED]) == (b"not-advertised", b"event")
    retried = Record(
        Place(topics.broker("main"), 0, 0, 9), b"k", b'{"x": 1}', ((bl.ORIGIN, said[bl.ORIGIN]),)
    )
    (again,) = run([], [retried])
    assert dict(again.headers)[bl.OWED] == b"event"
    run([Request(Operation.ADVERTISE, "shop", "one", filter="x = 1", request="r2")], [])
    (delivered,) = run([], [retried])
    assert delivered.topic == topics.out("ann")
