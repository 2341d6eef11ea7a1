"""Batches of records become rows as `decode_event` says, whichever way each record is read."""

import json
from typing import Any

import bad_inputs as bad
import json_texts as ours
import pytest
import strategies as our
from amounts import often
from hypothesis import given
from hypothesis import strategies as st
from mutations import mutated
from records_scanned import agrees, columns, record, registered
from spans_read import read_rows

from branchline.kafka.record import Headers, Record
from branchline.kafka.scanning import RecordColumns, Scanner
from branchline.routing.compiled.spans import ROWS_MAX
from branchline.routing.expression import Path
from branchline.routing.limits import EVENT_MAX_BYTES, EVENT_MAX_DEPTH, EVENT_MAX_FIELDS, EVENT_MAX_HEADERS

REQUIRED = {"id": "1", "source": "/shop", "type": "order", "specversion": "1.0"}
BINARY: Headers = tuple((f"ce_{name}", text.encode()) for name, text in REQUIRED.items())
MEDIA = (
    *(
        "application/json",
        "text/json",
        "application/x+json; charset=utf-8",
        " Application/JSON",
        "text/plain",
        "",
    ),
    *(
        "application/cloudevents",
        "application/cloudevents+json",
        "APPLICATION/CloudEvents+Json ;a=b",
        ";",
        "é/x",
    ),
    *(
        "application/cloudevents+avro",
        "application/cloudevents-batch+json",
        "+json",
        "x\x1f",
        "application/jsonx",
    ),
)
SOME_PATHS: tuple[Path, ...] = (
    *(
        ("a",),
        ("a", "b"),
        ("b",),
        ("items", "a"),
        ("items", "b"),
        ("größe",),
        ("",),
        ("m",),
        ("x",),
        ("y",),
        ("t",),
    ),
    *(("kafka",), ("kafka", "key"), ("kafka", "timestamp"), ("kafka", "header"), ("kafka", "header", "h")),
    *(
        ("kafka", "header", "größe"),
        ("kafka", "key", "a"),
        ("id",),
        ("type",),
        ("datacontenttype",),
        ("data",),
    ),
    *(("data", "a"), ("data", "a", "b"), ("data", "items", "b"), ("time",), ("kafka", "a"), ("id", "a")),
)


def stamped(strategy: st.SearchStrategy[tuple[bytes | None, Headers]]) -> st.SearchStrategy[Record]:
    keys = st.none() | st.sampled_from((b"", b"k", "größe".encode(), b"\xff", b"\xed\xa0\x80"))
    times = st.sampled_from((0, -1, 1_700_000_000_000, -(2**63), 2**63 - 1)) | st.integers(
        -(2**63), 2**63 - 1
    )
    return st.builds(lambda sent, key, at: record(*sent, key, at), strategy, keys, times)


header_names = st.sampled_from(
    ("h", "größe", "bl-id", "bl-", "ce_x", "ce_time", "ce_a", "ce_kafka", "ce_id", "x")
)
plain_headers: st.SearchStrategy[Headers] = st.lists(
    st.tuples(st.sampled_from(("h", "größe", "bl-id", "x", "content-typ", "")), our.contents), max_size=3
).map(tuple)
odd_headers: st.SearchStrategy[Headers] = st.lists(
    st.tuples(
        header_names
        | st.sampled_from(
            ("content-type", "ce_", "ce_data", "ce_data_base64", "ce_datacontenttype", "ce_specversion")
        )
        | st.text(max_size=5),
        our.contents
        | st.sampled_from(MEDIA).map(str.encode)
        | st.sampled_from((b"1.0", b"1.", b"1.1234", b"\xff")),
    ),
    max_size=5,
).map(tuple)
media = st.sampled_from(MEDIA).map(lambda text: ("content-type", text.encode()))


def some_of(headers: Headers) -> st.SearchStrategy[Headers]:
    """These, in some order, perhaps without one."""
    return (
        st.permutations(headers)
        .flatmap(lambda all_: st.sampled_from((all_, all_, all_, all_[1:])))
        .map(tuple)
    )


documents = ours.written(ours.objects())
payloads = documents | ours.written(ours.trees()) | st.sampled_from(ours.EDGES)
plain = st.tuples(payloads, plain_headers | st.tuples(media, st.just(("h", b"x"))))
binary = st.tuples(
    st.none() | payloads,
    st.builds(
        lambda one, two, more: (*one, *two, *more),
        some_of(BINARY),
        st.tuples(media) | st.just(()),
        odd_headers,
    ),
)
attributes = st.tuples(
    st.sampled_from((*REQUIRED, "datacontenttype", "kafka", "a", "data", "data_base64", "größe", "")),
    st.sampled_from((*MEDIA, "1.0", "", "1.12", "2.0", True, False, None, "text"))
    | ours.numbers.map(ours.Number)
    | ours.trees(),
)
required = st.permutations([*REQUIRED.items()])
envelopes = st.builds(
    lambda first, more, data: (*first, *more, *data),
    required,
    st.lists(attributes, max_size=3),
    st.just(()) | st.tuples(st.tuples(st.just("data"), ours.objects() | ours.trees())),
)
structured = st.tuples(
    ours.written(envelopes),
    st.sampled_from((b"application/cloudevents+json", b" application/cloudevents;x")).map(
        lambda value: (("h", b"x"), ("content-type", value))
    ),
)
odd = st.tuples(st.none() | st.binary(max_size=20) | mutated(documents), odd_headers)
records = stamped(st.one_of(plain, binary, structured, odd))
paths = st.just(SOME_PATHS) | st.builds(lambda some, more: (*some, *more), ours.named_paths, ours.named_paths)


@often
@given(st.lists(records, max_size=5), paths)
def test_every_record_is_read_as_the_reference_reads_it(sent: list[Record], named: tuple[Path, ...]) -> None:
    """In all modes: the same rejection, or the same values at all named paths, with a row for each choice."""
    agrees(registered(named), sent)


@often
@given(
    st.lists(stamped(st.tuples(mutated(documents | ours.written(envelopes)), plain_headers)), max_size=4),
    paths,
)
def test_whatever_was_done_to_a_document_it_is_read_as_the_reference_reads_it(
    sent: list[Record], named: tuple[Path, ...]
) -> None:
    """Also between other documents: nothing runs over a document's end."""
    declared = [record(each.value, (*each.headers, bad.JSON_TYPE)) for each in sent]
    wrapped = [record(each.value, (*BINARY, *each.headers)) for each in sent]
    enveloped = [record(each.value, (*each.headers, bad.STRUCTURED)) for each in sent]
    agrees(registered(named), [*sent, *declared, *wrapped, *enveloped])


def test_all_edges_are_read_as_the_reference_reads_them() -> None:
    """Numbers of all spellings, halves of surrogate pairs, depths and names at their limits, in each mode."""
    sent = [record(value, headers) for value in ours.EDGES for headers in ((), (bad.JSON_TYPE,), BINARY)]
    data = [
        b'"data": ' + value
        for value in (*ours.EDGES, ours.nested(EVENT_MAX_DEPTH - 2), b"[" * 63 + b"]" * 63)
    ]
    attributes = [
        b'"a": ' + number.encode() for number in (*ours.SPELLED, *ours.BAD_NUMBERS, *ours.NO_NUMBERS)
    ]
    envelope = json.dumps(REQUIRED).encode().removesuffix(b"}")
    structured = [record(envelope + b", " + each + b"}", (bad.STRUCTURED,)) for each in (*data, *attributes)]
    agrees(registered(SOME_PATHS), [*sent, *structured])


def test_all_classes_of_bad_input_are_read_as_the_reference_reads_them() -> None:
    """What the catalogue has of events and of their headers, in one batch."""
    sent = [
        record(each.make(), each.headers, each.key, each.timestamp_ms or 1)
        for each in (*bad.events(), *bad.event_headers())
    ]
    read = agrees(registered(SOME_PATHS), sent)
    assert read.unrowed


@pytest.mark.parametrize("byte", [*range(0x30), *range(0x30, 256, 5), *b'"[\\]u{}'])
def test_every_byte_in_every_place_of_a_small_document_is_judged_alike(byte: int) -> None:
    """One byte replaced, or put in, anywhere: in names, texts, escapes, characters, numbers and between."""
    document = '{"a": "é\\u00e9\\n", "b":[-1.5e1,true], "c" :{"d":null}}'.encode()
    paths = registered((("a",), ("c", "d"), ("é",)))
    assert agrees(paths, [record(document)]).slow == 0
    other = bytes([byte])
    sent = [
        record(document[:at] + other + document[at + skip :])
        for at in range(len(document) + 1)
        for skip in (0, 1)
    ]
    agrees(paths, sent)


def test_texts_of_all_lengths_end_where_they_end() -> None:
    """Wherever in a text the first byte is that needs care, and however the text lies in its batch."""
    specials = ("", "\\n", "é", "𝄞", "\\u00e9", "\x7f", "\n", "\\", '\\"')
    texts = [
        "x" * before + special + "y" * behind
        for before in range(35)
        for special in specials
        for behind in (0, 20)
    ]
    agrees(registered((("a",), ("xé",))), [record(f'{{"a":"{text}","{text}":1}}'.encode()) for text in texts])


def test_limits_hold_exactly() -> None:
    """Bytes, fields, headers and choices: at the limit as just above it."""
    fields = [b"{" + b",".join(b'"%d":0' % n for n in range(count)) + b"}" for count in (999, 1000, 1001)]
    elements = [
        json.dumps({"z": [{}] * count}).encode() for count in (EVENT_MAX_FIELDS, EVENT_MAX_FIELDS + 1)
    ]
    texts = [b'{"a":"' + b"x" * (size - 8) + b'"}' for size in (EVENT_MAX_BYTES, EVENT_MAX_BYTES + 1)]
    choices = [json.dumps({"a": [1] * count}).encode() for count in (ROWS_MAX, ROWS_MAX + 1)]
    headers = [(("h", b"x"),) * count for count in (1, EVENT_MAX_HEADERS, EVENT_MAX_HEADERS + 1)]
    sent = [record(value) for value in (*fields, *elements, *texts, *choices)]
    read = agrees(registered((("a",), ("1",))), [*sent, *(record(b"{}", each) for each in headers)])
    assert read.unrowed == [8]
    assert sorted(read.rejected) == [2, 4, 6, 11]


def test_what_was_decoded_may_be_beyond_the_kernels_however_it_is_written() -> None:
    """Half a surrogate pair as a header's name, a long number, a level more; with a header that repeats."""
    twice: Headers = (("h", b"1"), ("h", b"2"))
    deep = json.dumps(REQUIRED).encode().removesuffix(b"}") + b', "data": ' + ours.nested(EVENT_MAX_DEPTH - 1)
    sent = [
        record(b'{"a": [1, 2]}', (("\ud800", b"x"), *twice)),
        record(b'{"a": 1}', twice),
        record(b'{"a": 1%s}' % (b"0" * 308), twice),
        record(deep + b"}", (bad.STRUCTURED, *twice)),
    ]
    read = agrees(registered([("a",), ("data", "a"), ("kafka", "header", "h")]), sent)
    assert read.slow == len(sent) and not read.rejected


@pytest.mark.parametrize("texts", [["\0between"], ["\0between"] * 3, ["x"]])
def test_events_that_were_decoded_stay_apart(texts: list[str]) -> None:
    """Whatever texts they have, among them the mark that stands between them while they are written."""
    twice: Headers = (("h", b"1"), ("h", b"2"))
    values = [{"a": [{"b": 1}, *texts, {"b": 2}]}, {"a": texts[0]}, {"a": {"b": texts[0]}}, {}, {"a": 5}]
    read = agrees(
        registered([("a",), ("a", "b"), ("kafka", "header", "h")]),
        [record(json.dumps(each).encode(), twice) for each in values],
    )
    assert read.slow == len(values)


FORGED = {"a": 1, "key": "forged", "timestamp": 5, "header": {"h": "forged"}}


@pytest.mark.parametrize(
    "named", [SOME_PATHS, [("kafka", "key", "a")], [("kafka", "a")], [("data", "kafka", "a")]]
)
def test_what_an_event_says_of_kafka_is_not_believed(named: list[Path]) -> None:
    """A field or an attribute of that name is nothing, in every mode; below `data` it is as any other."""
    agrees(
        registered(named),
        [
            record(json.dumps({"kafka": FORGED, "a": 1}).encode()),
            record(json.dumps({"kafka": [FORGED], "b": {"kafka": 1}}).encode()),
            record(b'{"kafk\\u0061": {"a": 1, "key": {"a": 1}}}'),
            record(json.dumps({"kafka": FORGED}).encode(), (*BINARY, ("ce_kafka", b"x"), ("h", b"true"))),
            record(
                json.dumps({**REQUIRED, "kafka": "x", "data": {"kafka": FORGED}}).encode(), (bad.STRUCTURED,)
            ),
            record(json.dumps({**REQUIRED, "kafka": FORGED}).encode(), (bad.STRUCTURED,)),
        ],
    )


@pytest.mark.parametrize(
    "media",
    [
        *(
            *MEDIA,
            "x\x1c",
            "\x1fx",
            "\tx/y ",
            "\x0bapplication/json",
            "application/JSON\x85",
            "application\x0fjson",
        ),
        *(
            "\x01application/json",
            "application/json\0",
            "application/json\t;",
            "text\tjson",
            "application/jso\x0e",
        ),
    ],
)
def test_a_content_type_means_the_same_wherever_it_stands(media: str) -> None:
    """As a header of either mode, as an attribute before or behind the data, and twice."""
    value, said = b'{"a": {"b": 1}}', media.encode()
    content, given = ("content-type", said), ("ce_datacontenttype", said)
    headers = ((content,), (content, content), (content, ("content-type", None)), (*BINARY, content))
    more = (
        (*BINARY, given),
        (*BINARY, given, content),
        (*BINARY, given, bad.JSON_TYPE),
        (*BINARY, content, content),
    )
    sent = [record(value, each) for each in (*headers, *more)]
    for data in ({"a": {"b": 1}}, "", None, "text", [{"a": 1}]):
        before = {"datacontenttype": media, **REQUIRED, "data": data, "time": "x"}
        behind = {"data": data, "time": "x", **REQUIRED, "datacontenttype": media}
        sent += [record(json.dumps(each).encode(), (bad.STRUCTURED,)) for each in (before, behind)]
    agrees(registered(SOME_PATHS), sent)


ORDER = {
    "order": {"price": 2.5, "id": 7, "note": "größe\n"},
    "tags": ["x", {"y": []}],
    "paid": True,
    "gone": None,
}
COMMON = {
    "plain": record(json.dumps(ORDER).encode()),
    "declared": record(json.dumps(ORDER, ensure_ascii=False).encode(), (bad.JSON_TYPE, ("bl-id", b"x"))),
    "indented": record(json.dumps(ORDER, indent=2).encode()),
    "a name twice": record(b'{"paid": 1, "paid": [], "paid": 3, "other": 1, "other": 2}'),
    "text": record(b"\xff\x00", (("content-type", b"text/plain"),)),
    "an array": record(b'[1, {"paid": 2}]'),
    "empty": record(b""),
    "a tombstone": record(None),
    "binary": record(json.dumps(ORDER).encode(), (*BINARY, bad.JSON_TYPE, ("ce_time", b"x"))),
    "binary, undeclared": record(json.dumps(ORDER).encode(), BINARY),
    "binary, opaque": record(b"\0", (*BINARY, ("ce_datacontenttype", b"image/png"))),
    "binary, text": record(b'"x"', (*BINARY, bad.JSON_TYPE, ("ce_datacontenttype", b"application/json"))),
    "structured": record(
        json.dumps({**REQUIRED, "data": ORDER, "n": 1, "b": True, "x": None}).encode(), (bad.STRUCTURED,)
    ),
    "structured, opaque": record(
        json.dumps({**REQUIRED, "data": "<x/>", "datacontenttype": "text/xml", "time": "x"}).encode(),
        (bad.STRUCTURED,),
    ),
}
COMMON_PATHS: tuple[Path, ...] = (
    *(
        ("order",),
        ("order", "price"),
        ("order", "note"),
        ("other",),
        ("gone",),
        ("missing",),
        ("time",),
        ("n",),
        ("b",),
    ),
    *(("data", "order", "price"), ("data", "paid"), ("type",), ("kafka", "key"), ("kafka", "timestamp")),
    *(("kafka", "header", "content-type"), ("datacontenttype",)),
)


def test_common_events_are_read_by_the_kernels() -> None:
    """No event that is as most are goes the slow way, whatever its mode, if no path names its arrays."""
    read = agrees(registered(COMMON_PATHS), list(COMMON.values()))
    assert read.slow == 0, [name for at, name in enumerate(COMMON) if at in read.events]


def test_a_batch_may_be_a_part_of_larger_columns() -> None:
    """Cells that do not begin at the start of their bytes, as slices of a larger batch do not."""
    all_ = columns(list(COMMON.values()))

    def tail(column: Any, start: int) -> Any:
        return type(column)(column.data, column.first[start:], column.null[start:])

    part = RecordColumns(
        *(tail(each, 3) for each in (all_.values, all_.keys, all_.headers)), all_.timestamps[3:]
    )
    scanner = Scanner(registered(COMMON_PATHS))
    assert read_rows(scanner.scan(part).scanned, 11) == read_rows(scanner.scan(all_).scanned, 14)[3:]


def test_nothing_is_read_of_nothing() -> None:
    """No records, or no paths: no entries, and a row for each event that is accepted."""
    assert agrees(registered(COMMON_PATHS), []).scanned.rows == 0
    assert agrees(registered(()), list(COMMON.values())).scanned.rows == len(COMMON)


def test_paths_that_come_later_are_read_from_then_on() -> None:
    """The scanner follows what is registered."""
    paths = registered([("a",)])
    scanner = Scanner(paths)
    sent = columns([record(b'{"a": 1, "b": 2}')])
    assert len(scanner.scan(sent).scanned.path) == 1
    assert paths.add(("b",)) == 1
    assert sorted(scanner.scan(sent).scanned.path) == [0, 1]
