"""Whatever bytes come in, every decoder gives a value or a rejection of ours: mutated, cut, joined, or
random.

Events that are accepted are also matched: what the compiled filter says is what the naive evaluator says.
"""

import json
import os
import zlib
from typing import Any

import bad_inputs as bad
import pytest
import strategies as our
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from mutations import mutated

from branchline.kafka.asking import Answer, decode_answer
from branchline.kafka.cluster import Cluster
from branchline.kafka.dead_letters import (
    LETTER_MIN_BYTES,
    DeadLetter,
    decode_dead_letter,
    encode_dead_letter,
    fit_letter,
    letter_bytes,
    retry_headers,
)
from branchline.kafka.dispatch import dispatch, one_by_one
from branchline.kafka.errors import MarkDiffers
from branchline.kafka.events import Event, decode_event
from branchline.kafka.intake import read_batch
from branchline.kafka.letters import decode_letter, decode_recorded, encode_letter
from branchline.kafka.marks import Marks, encode_mark, note_mark
from branchline.kafka.messages import BadRequest, decode_control, encode_request
from branchline.kafka.record import Headers, Place, Record
from branchline.kafka.topics import Topics
from branchline.kafka.trees import read_filters
from branchline.routing.codes import Code, Rejection
from branchline.routing.compiling import Compiled, compile_expression, compile_filter
from branchline.routing.evaluate import evaluate
from branchline.routing.event import Event as Matched
from branchline.routing.limits import CONTROL_MAX_BYTES
from branchline.routing.overlay.letters import Letter
from branchline.routing.overlay.topology import founded, link
from branchline.routing.prefix import header, telling
from branchline.routing.prefix.trees import Trees
from branchline.routing.shard import EventBatch, Shard, alone
from branchline.routing.spellings import SPELLINGS

EXAMPLES = {"everyday": 25, "thorough": 200, "soak": 5_000, "filters": 5_000}
often = settings(max_examples=EXAMPLES[os.environ.get("HYPOTHESIS_PROFILE", "everyday")])

TOPICS = Topics("fuzz")
PLACE = Place(TOPICS.entry("main"), 0, 5, 1)


def document(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode(errors="surrogatepass")


plain = our.events(our.few_names).map(document)
structured = our.events(our.few_names).map(
    lambda data: document({"specversion": "1.0", "id": "1", "source": "s", "type": "t", "data": data})
)
HEADER_NAMES = (
    *("ce_id", "ce_source", "ce_type", "ce_specversion", "ce_x", "content-type"),
    *("bl-only", "bl-prefix", "h"),
)
some_headers: st.SearchStrategy[Headers] = st.lists(
    st.tuples(
        st.sampled_from(HEADER_NAMES) | our.texts,
        st.none()
        | st.sampled_from((b"1.0", b"application/json", b"application/cloudevents+json", b"\xff", b""))
        | st.binary(max_size=8),
    ),
    max_size=8,
).map(tuple)
REQUIRED = (("ce_id", b"1"), ("ce_source", b"s"), ("ce_type", b"t"), ("ce_specversion", b"1.0"))
binary_headers = some_headers.map(lambda more: (*REQUIRED, *more))
structured_headers = some_headers.map(lambda more: (bad.STRUCTURED, *more))


@often
@given(
    st.one_of(
        st.tuples(mutated(plain), some_headers),
        st.tuples(mutated(plain), binary_headers),
        st.tuples(mutated(structured), structured_headers),
    ),
    our.expressions(),
)
def test_an_event_is_rejected_or_matched_as_the_naive_evaluator_says(
    sent: tuple[bytes, Headers], expression: Any
) -> None:
    """In all three modes, whatever was done to the document."""
    event = decode_event(Record(PLACE, None, *sent))
    if isinstance(event, Rejection):
        assert isinstance(event.code, Code)
        return
    assert isinstance(event, Event)
    compiled = compile_expression(expression)
    assume(isinstance(compiled, Compiled))
    assert isinstance(compiled, Compiled)
    naive, made = evaluate(expression, event.attributes), compiled.matches(Matched(event.attributes))
    assert naive == made or (isinstance(naive, Rejection) and isinstance(made, Rejection))


filter_documents = st.sampled_from(
    (
        *("a = 1 AND b < 2.5", "a IN (1, 'x', TRUE) OR NOT (b LIKE '%x_y%')", "EVERY items.a > 3", "a HAS 5"),
        *('{"a": [{"numeric": ["<", 5]}, "x", {"prefix": "p"}]}', '{"a": [{"wildcard": "*x*"}]}'),
        *('{"all": [{"exact": {"a": "1"}}, {"not": {"prefix": {"b": "x"}}}]}', '[{"suffix": {"a": "9"}}]'),
        *("a LIKE 'x%' AND NOT EXISTS b", "LENGTH(CONCAT(a, '9')) > 5 AND a IN ('1', '99')", "a = '99'"),
    )
).map(str.encode)


@often
@given(mutated(filter_documents), st.sampled_from(sorted(SPELLINGS)), our.events(our.few_names))
@example(b"a LIKE '" + b"9" * 400 + b"'", "cesql", {"a": 1})
def test_a_filter_is_refused_or_matches_as_the_naive_evaluator_says(
    data: bytes, spelling: str, event: Any
) -> None:
    """In all spellings, whatever was done to its text."""
    compiled = compile_filter(spelling, data.decode(errors="replace"))
    if isinstance(compiled, Rejection):
        assert compiled.code.startswith("filter-")
        return
    naive, made = evaluate(compiled.expression, event), compiled.matches(Matched(event))
    assert naive == made or (isinstance(naive, Rejection) and isinstance(made, Rejection))


TOPOLOGY = founded(["main", "other"], [link("main", "other", 3)])
requests = st.builds(encode_request, our.requests())
told = our.changes(forgetting=False).map(
    lambda change: next(encode_letter(Letter("main", "other", change)))[1]
)
topologies = st.just(next(encode_letter(Letter("main", "other", TOPOLOGY)))[1])


@often
@given(mutated(requests), mutated(told | topologies), mutated(plain))
def test_control_is_answered_and_letters_are_obeyed_or_kept(
    control: bytes, letter: bytes, event: bytes
) -> None:
    """Through intake, shard and encoding: nothing is raised, and whatever is rejected has a code and is
    kept.
    """
    asked, heard = decode_control(control), decode_letter("main", letter)
    assert not isinstance(asked, BadRequest) or isinstance(asked.rejection.code, Code)
    assert not isinstance(heard, Rejection) or isinstance(heard.code, Code)
    recorded = decode_recorded(letter)
    assert not isinstance(recorded, Rejection) or isinstance(recorded.code, Code)
    read_filters([Record(PLACE, b"x", letter)])
    shard = Shard(alone("main"), 0)
    records = [
        Record(Place(TOPICS.control, 0, 1, 1), b"k", control),
        Record(Place(TOPICS.link("main"), 0, 1, 1), b"k", letter),
        Record(Place(TOPICS.control, 0, 2, 1), None, encode_request_for_all()),
    ]
    intake = read_batch(TOPICS, records, [Record(PLACE, b"k", event)])
    outputs = shard.handle(1, intake.updates, intake.control, intake.events())
    made = list(one_by_one(TOPICS, dispatch(TOPICS, "main", True, 1, intake, outputs)))
    letters = [each for each in made if each.topic == TOPICS.dead_letters]
    bad_ones = isinstance(asked, BadRequest) + isinstance(heard, Rejection) + len(outputs.unusable)
    assert len(letters) == bad_ones + len(intake.bad_events) + len(outputs.refused)


def encode_request_for_all() -> bytes:
    return json.dumps({"version": 1, "op": "subscribe", "subscriber": "all", "filter": "TRUE"}).encode()


UPDATES = [each.make() or b"" for each in bad.updates()]


MARK = encode_mark(("in.main", 0), 7, "source")[1]


@often
@given(mutated(st.just(b"in.main/0")), mutated(st.just(MARK)))
def test_a_mark_is_read_or_said_to_be_none(key: bytes, value: bytes) -> None:
    """Whoever else writes there, the bridge says so by a name of its own."""
    marks = Marks()
    try:
        note_mark(marks, Record(PLACE, key, value), Cluster("nowhere:1"), "source")
    except MarkDiffers:
        assert marks == Marks()


@often
@given(mutated(st.sampled_from(UPDATES)), st.booleans())
def test_an_update_is_obeyed_passed_over_or_none(data: bytes, seal: bool) -> None:
    """Also with a right checksum: whatever is read can be applied to trees, and an event matched with
    them.
    """
    update = telling.decode(bad.sealed(data[:-4]) if seal else data)
    if update is None:
        return
    trees = Trees()
    trees.apply(update)
    prefix = trees.enter(Matched({"a": 5, "b": "x", "items": [1, "x"]}))
    assert header.decode(header.encode(header.Header(prefix))) is not None
    assert len(trees.stored()) == 2


PREFIXES = [value for each in bad.copies() for name, value in each.headers if name == "bl-prefix" and value]


@often
@given(mutated(st.sampled_from(PREFIXES)), st.booleans(), st.none() | st.binary(max_size=9))
def test_a_copy_goes_on_whatever_its_headers_say(data: bytes, seal: bool, only: bytes | None) -> None:
    """A prefix that is ours is followed, and any other is matched afresh; the event is delivered or kept."""
    prefix = data[:-4] + zlib.crc32(data[:-4]).to_bytes(4, "little") if seal else data
    headers = [("bl-origin", bad.ORIGIN.encode()), ("bl-prefix", prefix)]
    headers += [] if only is None else [("bl-only", only)]
    record = Record(Place(TOPICS.broker("main"), 0, 1, 1), None, b'{"a": 1}', tuple(headers))
    shard = Shard(alone("main"), 0)
    asked = decode_control(encode_request_for_all())
    shard.handle(1, [], [asked], EventBatch())  # type: ignore[list-item]
    intake = read_batch(TOPICS, [], [record])
    outputs = shard.handle(2, [], [], intake.events())
    told_scope = header.decode(prefix)
    made = list(one_by_one(TOPICS, dispatch(TOPICS, "main", True, 1, intake, outputs)))
    elsewhere = told_scope is not None and not told_scope.scope & 1
    held = told_scope is not None and told_scope.topology > 1
    assert made or elsewhere or held or only is not None


@often
@given(
    st.none() | st.binary(max_size=40_000),
    st.none() | st.binary(max_size=20_000),
    our.foreign_headers,
    st.integers(LETTER_MIN_BYTES, 50_000),
)
def test_a_dead_letter_fits_any_topic(
    key: bytes | None, value: bytes | None, headers: Headers, room: int
) -> None:
    """It keeps what we say of it, and says what was cut; cutting it again changes only what is kept."""
    rejection = Rejection(Code.JSON_INVALID, "r" * 2_000)
    whole = encode_dead_letter(Record(PLACE, key, value, headers), rejection, "event")
    made = fit_letter(whole, room)
    assert letter_bytes(made) <= max(room, letter_bytes(whole) if whole == made else 0)
    assert (made == whole) == (letter_bytes(whole) <= room)
    read = decode_dead_letter(Record(Place("d", 0, 1, 1), *made))
    assert (read.code, read.owed, read.place) == (Code.JSON_INVALID, "event", PLACE)
    assert read.retryable == (made == whole)
    smaller = fit_letter(made, LETTER_MIN_BYTES)
    assert letter_bytes(smaller) <= LETTER_MIN_BYTES
    again = decode_dead_letter(Record(Place("d", 0, 1, 1), *smaller))
    for part in (read.cut or "").split("; ") if read.cut else []:
        assert part in (again.cut or "")


@often
@given(
    st.lists(
        st.tuples(st.sampled_from(("bl-code", "bl-origin", "bl-owed", "bl-cut", "bl-reason")), our.contents)
    )
)
def test_whatever_stands_in_the_dead_letters_is_read(headers: Any) -> None:
    """Somebody else may write there: reading gives a letter, and what can be retried has a place."""
    letter = decode_dead_letter(Record(Place("d", 0, 1, 1), None, b"x", tuple(headers)))
    assert isinstance(letter, DeadLetter)
    if letter.retryable:
        retry_headers(letter)


@often
@given(
    mutated(
        st.just(b'{"version":1,"status":"in-force","subscriber":"a","id":"b","request":"r","number":[1,2]}')
    )
)
def test_whatever_stands_in_the_acks_is_read_or_no_answer(data: bytes) -> None:
    answer = decode_answer(Record(PLACE, None, data))
    assert answer is None or (isinstance(answer, Answer) and isinstance(answer.request, str))


@pytest.mark.parametrize("levels", [1_000, 1_000_000])
def test_an_answer_of_any_depth_is_no_answer(levels: int) -> None:
    """Nor does it exhaust the stack."""
    assert decode_answer(Record(PLACE, None, b"[" * levels)) is None


def test_the_largest_request_is_read() -> None:
    """A filter of full size whose every byte is a JSON escape still fits a control message."""
    text = "a = '" + "\u0001" * 4_000 + "'"
    value = json.dumps({"version": 1, "op": "subscribe", "subscriber": "a", "filter": text}).encode()
    assert len(value) <= CONTROL_MAX_BYTES
    assert not isinstance(decode_control(value), BadRequest)
