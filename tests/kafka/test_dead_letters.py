"""A dead letter keeps what it is about, says why, and can be sent again to whom it is owed."""

import hashlib

import pytest
import strategies as our
from hypothesis import given
from hypothesis import strategies as st

from branchline.kafka import headers as bl
from branchline.kafka.arrivals import received
from branchline.kafka.dead_letters import (
    KEY_MAX_BYTES,
    LETTER_MIN_BYTES,
    OWES_EVENT,
    OWES_NOTHING,
    REASON_MAX_CHARS,
    DeadLetter,
    decode_dead_letter,
    encode_dead_letter,
    fit_letter,
    letter_bytes,
    owed_to,
    owed_to_scope,
    read_scope,
    retry_headers,
)
from branchline.kafka.intake import read_batch
from branchline.kafka.record import Headers, Place, Record
from branchline.kafka.topics import Topics
from branchline.routing.codes import Code, Rejection
from branchline.routing.limits import EVENT_MAX_BYTES, EVENT_MAX_HEADER_BYTES, EVENT_MAX_HEADERS
from branchline.routing.overlay.topology import BROKER_NUMBER_MAX
from branchline.routing.prefix.header import Header
from branchline.routing.prefix.trees import UNMATCHED

TOPICS = Topics()
PLACE = Place("branchline.in.dublin", 3, 42, 1_700_000_000_000)
LETTER_PLACE = Place(TOPICS.dead_letters, 0, 5, 1_700_000_000_001)
REJECTION = Rejection(Code.TOO_MANY_CHOICES, "größer als erlaubt")

rejections = st.builds(Rejection, st.sampled_from(Code), our.texts.filter(bool))
scopes = st.integers(1, 2**300)
owed = st.one_of(
    st.just(OWES_NOTHING),
    st.just(owed_to(None)),
    our.legal_names.map(owed_to),
    scopes.map(owed_to_scope),
)
mixed_headers = st.tuples(our.forged_headers, our.foreign_headers, our.forged_headers).map(
    lambda parts: parts[0] + parts[1] + parts[2]
)
records = st.builds(Record, our.places, our.contents, our.contents, mixed_headers)


def letter(
    record: Record, owed: str = OWES_NOTHING, origin: Place | None = None, why: Rejection = REJECTION
) -> DeadLetter:
    """The dead letter for the record, written and read back."""
    return decode_dead_letter(Record(LETTER_PLACE, *encode_dead_letter(record, why, owed, origin)))


@given(records, rejections, owed, st.none() | our.places)
def test_a_dead_letter_reads_back(
    record: Record, rejection: Rejection, owed: str, origin: Place | None
) -> None:
    """Key, value and foreign headers are the original's, without forged ones; all that we say is read."""
    read = letter(record, owed, origin, rejection)
    assert read.record == Record(LETTER_PLACE, record.key, record.value, bl.foreign(record.headers))
    assert read.place == (origin or record.place)
    assert (read.code, read.reason, read.owed, read.cut) == (rejection.code, rejection.reason, owed, None)
    assert read.retryable == (owed != OWES_NOTHING)


@given(records)
def test_forged_headers_are_dropped(record: Record) -> None:
    """Each header of ours stands once, and it is the one that we wrote."""
    _, _, headers = encode_dead_letter(record, REJECTION, OWES_NOTHING)
    ours = [name for name, _ in headers if name.startswith(bl.OURS)]
    assert sorted(ours) == sorted([bl.CODE, bl.REASON, bl.ORIGIN, bl.OWED])


@pytest.mark.parametrize(
    ("value_bytes", "key_bytes"),
    [
        (EVENT_MAX_BYTES, KEY_MAX_BYTES),
        (EVENT_MAX_BYTES + 1, 1),
        (1, KEY_MAX_BYTES + 1),
        (2 * EVENT_MAX_BYTES, 2 * KEY_MAX_BYTES),
    ],
)
def test_what_is_too_large_is_cut_with_length_and_digest(value_bytes: int, key_bytes: int) -> None:
    """Value and key are kept up to their limits; beyond, the letter has their lengths and digests."""
    key, value = b"k" * key_bytes, b"v" * value_bytes
    read = letter(Record(PLACE, key, value), OWES_EVENT)
    assert read.record.key == key[:KEY_MAX_BYTES]
    assert read.record.value == value[:EVENT_MAX_BYTES]
    expected = [
        f"{what} {len(content)} bytes sha256 {hashlib.sha256(content).hexdigest()}"
        for what, content, limit in (("value", value, EVENT_MAX_BYTES), ("key", key, KEY_MAX_BYTES))
        if len(content) > limit
    ]
    assert read.cut == ("; ".join(expected) or None)
    assert read.retryable == (not expected)


@pytest.mark.parametrize(
    "headers",
    [
        tuple((f"h{count}", b"") for count in range(EVENT_MAX_HEADERS + 1)),
        (("h", b"x" * EVENT_MAX_HEADER_BYTES),),
    ],
)
def test_headers_beyond_the_limits_are_left_out(headers: Headers) -> None:
    """Too many or too large headers are counted in their place; the rest of the letter is whole."""
    read = letter(Record(PLACE, b"k", b"v", headers), OWES_EVENT)
    assert read.record == Record(LETTER_PLACE, b"k", b"v")
    assert read.cut is not None
    assert read.cut.startswith(f"headers {len(headers)}, ")
    assert not read.retryable


def test_header_names_that_are_no_text_do_not_raise() -> None:
    """A name with half of a surrogate pair passes the intake's limits, so it must pass here too."""
    read = letter(Record(PLACE, None, b"v", (("\ud800", b"x"),)))
    assert read.record.headers == (("\ud800", b"x"),)


@given(records, st.none() | our.legal_names, st.none() | our.places)
def test_a_retried_event_arrives_as_it_was_published(
    record: Record, subscriber: str | None, origin: Place | None
) -> None:
    """On `broker.<broker>` it has its original place and content, and is for the one subscriber or all."""
    record = Record(record.place, b"key", record.value, record.headers)
    read = letter(record, owed_to(subscriber), origin)
    again = Record(
        Place(TOPICS.broker("dublin"), 0, 9, 2), read.record.key, read.record.value, retry_headers(read)
    )
    intake = read_batch(TOPICS, [], [again])
    assert intake.bad_events == []
    (arrival,) = intake.arrivals
    content = received(arrival)
    assert (content.origin, arrival.only, arrival.header) == (origin or record.place, subscriber, None)
    assert (content.record.key, content.record.value) == (record.key, record.value)
    assert bl.foreign(content.record.headers) == bl.foreign(record.headers)


@given(records, scopes, st.none() | our.places)
def test_what_is_owed_to_a_scope_arrives_for_that_scope(
    record: Record, scope: int, origin: Place | None
) -> None:
    """It answers for just these homes, is matched by nobody yet, and waits for no topology."""
    record = Record(record.place, b"key", record.value, record.headers)
    read = letter(record, owed_to_scope(scope), origin)
    again = Record(
        Place(TOPICS.broker("dublin"), 0, 9, 2), read.record.key, read.record.value, retry_headers(read)
    )
    intake = read_batch(TOPICS, [], [again])
    assert intake.bad_events == intake.bad_headers == []
    (arrival,) = intake.arrivals
    content = received(arrival)
    assert arrival.header == Header(UNMATCHED, scope, 0, 0)
    assert (content.origin, arrival.only) == (origin or record.place, None)
    assert bl.foreign(content.record.headers) == bl.foreign(record.headers)


def test_what_is_owed() -> None:
    """The event to everybody, to one subscriber, or to the homes of a scope; to no home is nothing."""
    assert owed_to(None) == "event"
    assert owed_to("alice") == "subscriber:alice"
    assert owed_to_scope(0b11010) == "scope:1a"
    assert owed_to_scope(0) == OWES_NOTHING


@pytest.mark.parametrize(
    "owed",
    ["scope:", "scope:0", "scope:01", "scope:1A", "scope:x", "scope:-1", "scope:٣", "scope", "", "all"],
)
def test_what_we_never_wrote_is_owed_to_nobody(owed: str) -> None:
    """What is owed must read as we write it, or a retry would reach others than it should."""
    assert read_scope(owed) is None
    assert not letter(Record(PLACE, b"k", b"v"), owed).retryable


@given(st.builds(Record, our.places, our.contents, our.contents, mixed_headers))
def test_any_record_reads_as_a_dead_letter(record: Record) -> None:
    """What somebody else wrote to the topic does not raise; without a place it is not retried."""
    read = decode_dead_letter(record)
    assert not read.retryable or read.place is not None


def test_the_smallest_dead_letter_has_room_for_all_that_we_say() -> None:
    """The longest reason, of the longest characters, the longest topic and the largest scope."""
    place = Place("t" * 249, 2**31 - 1, 2**63 - 1, 2**63 - 1)
    rejection = Rejection(Code.CLOUDEVENT_INVALID, "𝄞" * 2 * REASON_MAX_CHARS)
    record = Record(place, b"k" * KEY_MAX_BYTES, b"v" * EVENT_MAX_BYTES, (("h", b"x" * 1_000),))
    whole = encode_dead_letter(record, rejection, owed_to_scope(2 ** (BROKER_NUMBER_MAX + 1) - 1))
    small = fit_letter(whole, LETTER_MIN_BYTES)
    assert letter_bytes(small) <= LETTER_MIN_BYTES
    read = decode_dead_letter(Record(LETTER_PLACE, *small))
    assert read.place == place and read.owed == owed_to_scope(2 ** (BROKER_NUMBER_MAX + 1) - 1)
    assert read.cut is not None
    assert [part.split()[0] for part in read.cut.split("; ")] == ["value", "key", "headers"]
