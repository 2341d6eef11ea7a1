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
from branchline.kafka.dead_letters import OWES_NOTHING, DeadLetter, decode_dead_letter, owed_to
from branchline.kafka.dispatch import Dispatch, Step, count, dispatch
from branchline.kafka.intake import Intake, read_batch
from branchline.kafka.messages import change_fields, dump, encode_change, encode_request
from branchline.kafka.record import Headers, Place, Record
from branchline.kafka.topics import Topics
from branchline.routing.codes import Code
from branchline.routing.control import Identity, Number, Operation, Request, Subscribed
from branchline.routing.limits import ENDED_REMEMBERED_MS
from branchline.routing.shard import Outputs, Shard

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
events = st.lists(good_events | good_events | broken_events | retried_events, max_size=5)

asked = our.requests() | our.requests(filters=st.sampled_from(our.BAD_FILTERS))
other_changes = our.changes(
    our.identities(("virginia",)), st.builds(Number, st.integers(1, 2), st.integers(0, 5))
)
control = st.lists(
    st.one_of(
        asked.map(lambda request: Told(TOPICS.control, encode_request(request))),
        asked.map(lambda request: Told(TOPICS.control, encode_request(request))),
        st.sampled_from([None, b"", b"{", b"[]"]).map(
            lambda value: Told(TOPICS.control, value, Code.CONTROL_INVALID)
        ),
        st.just(Told(TOPICS.control, b'{"version":2}', Code.CONTROL_VERSION)),
        other_changes.map(
            lambda change: Told(TOPICS.link(HOME), dump({"version": 1, **change_fields(change)}))
        ),
        st.just(Told(TOPICS.link(HOME), b"{}", Code.CONTROL_VERSION)),
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
        self._shards = [Shard(HOME, index) for index in range(shards)]
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
        outputs = self._shards[index].handle(self._now_ms, intake.control, intake.events())
        dispatches = list(dispatch(TOPICS, HOME, index == 0, self._now_ms, intake, outputs))
        return Done(intake, outputs, dispatches)


def deliveries(done: Done) -> list[Dispatch]:
    return [item for item in done.dispatches if item.id is not None]


@given(batches)
def test_topics_are_made_first_and_acks_come_last(script: list[Batch]) -> None:
    """Steps never go back, and whatever is delivered goes to a topic made in this batch or before."""
    router, made = Router(), set()
    for batch in script:
        (done,) = router.run(batch)
        steps = [item.step for item in done.dispatches]
        assert steps == sorted(steps)
        made |= {item.topic for item in done.dispatches if item.step is Step.CREATE}
        assert {item.topic for item in deliveries(done)} <= made
        assert {item.topic for item in done.dispatches if item.step is Step.ACK} <= {TOPICS.acks}
        assert all(item.step is Step.ACK for item in done.to(TOPICS.acks))


@given(batches)
def test_every_bad_event_has_one_dead_letter(script: list[Batch]) -> None:
    """A dead letter for each, with its origin, its code and what is owed, and the record as it was."""
    router = Router()
    for number, batch in enumerate(script, 1):
        (done,) = router.run(batch)
        expected = Counter(
            (origin_of((number, at), event), event.code, event.key, event.value, bl.foreign(event.headers))
            for at, event in enumerate(batch.events)
            if event.code is not None
        )
        undecided = {
            (done.intake.arrivals[item.event].origin, owed_to(item.subscriber))
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
            assert ack["place"]["topic"] == TOPICS.control
            assert item.key == (ack["subscriber"].encode() if "subscriber" in ack else None)
            acks.setdefault(ack["place"]["offset"] - number * 100, []).append(ack)
        asked = {at: told for at, told in enumerate(batch.control) if told.topic == TOPICS.control}
        assert acks.keys() == asked.keys()
        for at, told in asked.items():
            if told.code is not None:
                assert [(ack["status"], ack["code"]) for ack in acks[at]] == [("refused", told.code)]
        dead = Counter(
            (letter.code, letter.record.value) for letter in done.letters() if letter.owed == OWES_NOTHING
        )
        assert dead == Counter((told.code, told.value) for told in batch.control if told.code is not None)


@given(batches)
def test_filters_records_every_change_before_its_ack(script: list[Batch]) -> None:
    """The changes of a batch stand on `filters` in their order, with a tombstone for each forgotten one."""
    router = Router()
    for batch in script:
        (done,) = router.run(batch)
        written = [(item.key, item.value) for item in done.to(TOPICS.filters)]
        assert written == [encode_change(change) for change in done.outputs.filters]


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
            assert done.to(TOPICS.acks) == done.to(TOPICS.filters) == []
            assert all(letter.owed != OWES_NOTHING for letter in done.letters())
            assert [item for item in done.dispatches if item.step is Step.CREATE] == [
                item for item in one.dispatches if item.step is Step.CREATE
            ]
        written = [item for done in several for item in done.dispatches if item.step is not Step.CREATE]
        assert Counter(written) == Counter(item for item in one.dispatches if item.step is not Step.CREATE)


def test_an_unusable_change_is_a_dead_letter_and_no_ack() -> None:
    """A change told by another broker whose filter cannot be read owes nothing and is answered to nobody."""
    change = Subscribed(Identity("virginia", "bob", "default"), Number(1, 1), "sql", "a =")
    (done,) = Router().run(Batch(0, [Told(TOPICS.link(HOME), encode_change(change)[1])], []))
    (letter,) = done.letters()
    assert (letter.code, letter.owed) == (Code.FILTER_SYNTAX, OWES_NOTHING)
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
