"""Records become events or rejections: modes, attributes, payloads, limits and forged headers."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from branchline.kafka.events import Event, Mode, decode_event
from branchline.kafka.headers import foreign
from branchline.kafka.record import Headers, Place, Record
from branchline.routing.codes import Code, Rejection
from branchline.routing.limits import (
    EVENT_MAX_BYTES,
    EVENT_MAX_DEPTH,
    EVENT_MAX_FIELDS,
    EVENT_MAX_HEADER_BYTES,
    EVENT_MAX_HEADERS,
    NAME_MAX_BYTES,
)

PLACE = Place("branchline.in.dublin", 3, 42, 1_700_000_000_000)
REQUIRED = {"id": "1", "source": "/shop", "type": "order", "specversion": "1.0"}
JSON_TYPE = ("content-type", b"application/json")
STRUCTURED_TYPE = ("content-type", b"application/cloudevents+json")


def record(value: bytes | None, *headers: tuple[str, bytes | None], key: bytes | None = None) -> Record:
    return Record(PLACE, key, value, headers)


def binary(
    attributes: dict[str, str] | None = None, value: bytes | None = None, *more: tuple[str, bytes | None]
) -> Record:
    texts = REQUIRED if attributes is None else attributes
    return record(value, *((f"ce_{name}", text.encode()) for name, text in texts.items()), *more)


def structured(**members: Any) -> Record:
    return record(json.dumps({**REQUIRED, **members}).encode(), STRUCTURED_TYPE)


def accepted(source: Record) -> Event:
    event = decode_event(source)
    assert isinstance(event, Event), event
    return event


def fields(source: Record) -> dict[str, Any]:
    """The attributes without `kafka`."""
    return {name: value for name, value in accepted(source).attributes.items() if name != "kafka"}


def code_of(source: Record) -> Code | None:
    event = decode_event(source)
    return event.code if isinstance(event, Rejection) else None


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text
documents = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=20,
)
header_names = st.sampled_from(
    ["content-type", "ce_specversion", "ce_id", "ce_source", "ce_type", "ce_data", "ce_", "bl-fpt"]
) | st.text(max_size=8)
content_types = st.sampled_from(
    [
        "application/cloudevents+json",
        "application/cloudevents",
        "application/avro",
        "application/json",
        "text/plain",
    ]
).map(str.encode)
header_values = st.none() | st.just(b"1.0") | content_types | st.binary(max_size=8)
records = st.builds(
    Record,
    st.just(PLACE),
    st.none() | st.binary(max_size=8),
    st.none()
    | st.binary(max_size=40)
    | documents.map(json.dumps).map(str.encode)
    | st.dictionaries(
        st.sampled_from([*REQUIRED, "data", "data_base64", "datacontenttype", "x"]),
        st.just("1.0") | documents,
    )
    .map(json.dumps)
    .map(str.encode),
    st.lists(st.tuples(header_names, header_values), max_size=8).map(tuple),
)
attribute_names = st.text("abcxyz019", min_size=1, max_size=8).filter(
    lambda name: name not in (*REQUIRED, "data", "kafka", "datacontenttype")
)


@st.composite
def cloudevents(draw: st.DrawFn) -> tuple[Record, Record]:
    """One CloudEvent in binary and in structured mode."""
    natural: dict[str, Any] = {
        **{name: draw(text.filter(bool)) for name in ("id", "source", "type")},
        "specversion": "1.0",
        **draw(
            st.dictionaries(attribute_names, text | st.booleans() | st.integers() | st.none(), max_size=4)
        ),
    }
    declared = draw(st.sampled_from([None, "application/json", "Application/X+json; a=b", "text/plain"]))
    bodies: list[tuple[bytes | None, dict[str, Any]]] = [(None, {})]
    raw = draw(st.binary(max_size=20) | documents.map(json.dumps).map(str.encode))
    bodies.append((raw, {"data_base64": base64.b64encode(raw).decode()}))
    if declared == "text/plain":
        words = draw(text)
        bodies.append((words.encode(), {"data": words}))
    else:
        document = draw(documents)
        bodies.append((json.dumps(document).encode(), {"data": document}))
    value, members = draw(st.sampled_from(bodies))
    headers: list[tuple[str, bytes | None]] = []
    for name, attribute in natural.items():
        written = json.dumps(attribute) if isinstance(attribute, bool | int) else attribute
        headers.append((f"ce_{name}", None if written is None else written.encode()))
    if declared is not None:
        headers.append(("content-type", declared.encode()))
        natural["datacontenttype"] = declared
    body = json.dumps({**natural, **members}, ensure_ascii=draw(st.booleans())).encode()
    return Record(PLACE, None, value, tuple(headers)), Record(PLACE, None, body, (STRUCTURED_TYPE,))


@given(records)
def test_any_record_gives_an_event_or_a_rejection(source: Record) -> None:
    """Whatever bytes a record holds, decoding gives an Event or a Rejection and never raises."""
    event = decode_event(source)
    if isinstance(event, Event):
        assert event.attributes["kafka"]["timestamp"] == PLACE.timestamp_ms
        assert not any(name.startswith("bl-") for name in event.attributes["kafka"]["header"])
    else:
        assert event.reason


@given(cloudevents())
def test_binary_and_structured_are_matched_alike(pair: tuple[Record, Record]) -> None:
    """One CloudEvent in either mode has equal attributes but for `kafka`, and is opaque or refused alike."""
    in_binary, in_structured = (decode_event(source) for source in pair)
    if isinstance(in_binary, Rejection) or isinstance(in_structured, Rejection):
        assert isinstance(in_binary, Rejection)
        assert isinstance(in_structured, Rejection)
        assert in_binary.code is in_structured.code
        return
    assert in_binary.mode is Mode.BINARY
    assert in_structured.mode is Mode.STRUCTURED
    assert in_binary.opaque is in_structured.opaque
    assert repr(fields(pair[0])) == repr({name: fields(pair[1])[name] for name in fields(pair[0])})
    assert fields(pair[0]) == fields(pair[1])


@given(st.dictionaries(text, documents, max_size=4))
def test_a_plain_objects_fields_are_its_attributes(document: dict[str, Any]) -> None:
    """A plain JSON object's fields are top-level attributes, but `kafka` is always the record's."""
    document.pop("kafka", None)
    source = record(json.dumps({**document, "kafka": "forged"}).encode())
    assert fields(source) == json.loads(json.dumps(document))
    assert accepted(source).attributes["kafka"] == {"timestamp": PLACE.timestamp_ms, "header": {}}


@pytest.mark.parametrize(
    ("headers", "mode"),
    [
        ((), Mode.PLAIN),
        ((JSON_TYPE,), Mode.PLAIN),
        ((("Content-Type", b"application/cloudevents+json"),), Mode.PLAIN),
        ((("content-type", b"\xff"),), Mode.PLAIN),
        ((STRUCTURED_TYPE,), Mode.STRUCTURED),
        ((("content-type", b"application/cloudevents"),), Mode.STRUCTURED),
        ((("content-type", b" Application/CloudEvents+JSON ; charset=UTF-8"),), Mode.STRUCTURED),
        (tuple((f"ce_{name}", value.encode()) for name, value in REQUIRED.items()), Mode.BINARY),
        ((("ce_specversion", b"9"), STRUCTURED_TYPE), Mode.STRUCTURED),
    ],
)
def test_headers_alone_tell_the_mode(headers: Headers, mode: Mode) -> None:
    """The content type's family comes first, then ce_specversion; else a record is plain."""
    assert accepted(record(json.dumps(REQUIRED).encode(), *headers)).mode is mode


@pytest.mark.parametrize("kind", ["-batch+json", "+avro", "+protobuf", "-batch", "x"])
def test_other_cloudevents_formats_are_unsupported(kind: str) -> None:
    """A CloudEvents format that we cannot read is refused, not taken for a plain event."""
    source = record(b"[]", ("content-type", f"application/cloudevents{kind}".encode()))
    assert code_of(source) is Code.CONTENT_TYPE_UNSUPPORTED


def test_limits_hold_exactly_and_name_the_actual_value() -> None:
    """Value size, header count and header bytes are accepted at the limit and refused one above it."""
    opaque = ("content-type", b"text/plain")
    assert code_of(record(b"x" * EVENT_MAX_BYTES, opaque)) is None
    assert code_of(record(b"x" * (EVENT_MAX_BYTES + 1), opaque)) is Code.EVENT_TOO_LARGE
    assert code_of(record(b"{}", *[("h", None)] * EVENT_MAX_HEADERS)) is None
    assert code_of(record(b"{}", *[("h", None)] * (EVENT_MAX_HEADERS + 1))) is Code.HEADERS_TOO_MANY
    assert code_of(record(b"{}", *[("h", None)] * 5_000)) is Code.HEADERS_TOO_MANY
    assert code_of(record(b"{}", ("é", b"x" * (EVENT_MAX_HEADER_BYTES - 2)))) is None
    refused = decode_event(record(b"{}", ("é", b"x" * (EVENT_MAX_HEADER_BYTES - 1))))
    assert isinstance(refused, Rejection)
    assert refused.code is Code.HEADERS_TOO_LARGE
    assert str(EVENT_MAX_HEADER_BYTES) in refused.reason
    assert str(EVENT_MAX_HEADER_BYTES + 1) in refused.reason


def test_forged_headers_are_invisible_and_not_counted() -> None:
    """Headers named `bl-…` give no attribute, do not count towards limits and are dropped on entry."""
    own = [("bl-fpt", b"forged"), ("bl-", None)] * EVENT_MAX_HEADERS
    source = record(b"{}", *own, ("trace", b"t"))
    assert accepted(source).attributes["kafka"]["header"] == {"trace": "t"}
    assert foreign(source.headers) == (("trace", b"t"),)


def test_header_names_that_are_not_text_do_no_harm() -> None:
    """A client that hands over undecodable names as surrogates cannot make decoding raise."""
    assert code_of(record(b"{}", ("\udcff", b"x"))) is None
    assert code_of(binary(None, b"{}", ("ce_\udcff", b"x"))) is None


def test_the_kafka_attribute_holds_key_timestamp_and_headers() -> None:
    """Texts by name, null for null, a list for a repeated name; what is not UTF-8 is left out."""
    source = record(
        b"{}",
        ("one", b"1"),
        ("null", None),
        ("twice", b"a"),
        ("twice", None),
        ("bytes", b"\xff"),
        ("a.b", "é".encode()),
        key=b"k",
    )
    header = {"one": "1", "null": None, "twice": ["a", None], "a.b": "é"}
    expected = {"key": "k", "timestamp": PLACE.timestamp_ms, "header": header}
    assert accepted(source).attributes == {"kafka": expected}
    assert "key" not in accepted(record(b"{}", key=b"\xff")).attributes["kafka"]


@pytest.mark.parametrize("value", [None, b""])
def test_a_record_that_says_nothing_is_refused(value: bytes | None) -> None:
    """Without value, key and foreign headers there is nothing to match on; with one of them there is."""
    assert code_of(record(value)) is Code.EVENT_EMPTY
    assert code_of(record(value, ("bl-fpt", b"forged"))) is Code.EVENT_EMPTY
    for source in (record(value, key=b"k"), record(value, ("h", None)), record(value, JSON_TYPE)):
        assert fields(source) == {}
        assert not accepted(source).opaque


@pytest.mark.parametrize("value", [b"[1]", b"1", b"null", b'"text"', b"true"])
def test_json_without_named_fields_is_opaque(value: bytes) -> None:
    """A plain array or scalar has no attributes, declared as JSON or not."""
    for source in (record(value), record(value, JSON_TYPE)):
        assert accepted(source).opaque
        assert fields(source) == {}


BAD_JSON = {
    "deep": (b"[" * 260_000, Code.JSON_TOO_DEEP),
    "level": (b"[" * (EVENT_MAX_DEPTH + 1) + b"]" * (EVENT_MAX_DEPTH + 1), Code.JSON_TOO_DEEP),
    "integer": (b'{"a": ' + b"9" * 5_000 + b"}", Code.JSON_NUMBER),
    "infinite": (b'{"a": 1e400}', Code.JSON_NUMBER),
    "surrogate": (rb'{"a": "\ud800"}', Code.JSON_SURROGATE),
    "surrogate-name": (rb'{"\udfff": 1}', Code.JSON_SURROGATE),
    "name": (b'{"' + b"k" * 50_000 + b'": 1}', Code.JSON_NAME_TOO_LONG),
    "fields": (
        json.dumps({str(i): i for i in range(EVENT_MAX_FIELDS + 1)}).encode(),
        Code.JSON_TOO_MANY_FIELDS,
    ),
    "elements": (b"[" + b"0," * 130_000 + b"0]", Code.JSON_TOO_MANY_FIELDS),
}
NOT_JSON = {
    "nan": b'{"a": NaN}',
    "infinity": b'{"a": Infinity}',
    "utf-8": b'{"a": "\xff"}',
    "utf-16": '{"a": 1}'.encode("utf-16"),
    "truncated": b'{"a": 1',
    "concatenated": b'{"a": 1}{"a": 2}',
    "text": b"hello",
}


@pytest.mark.parametrize(("value", "code"), BAD_JSON.values(), ids=BAD_JSON)
def test_json_beyond_a_limit_is_refused_in_every_mode(value: bytes, code: Code) -> None:
    """JSON that breaks a limit is refused with its code, declared or not, unless declared something else."""
    encoded = {"data_base64": base64.b64encode(value).decode()} if len(value) < EVENT_MAX_BYTES // 2 else None
    assert code_of(record(value)) is code
    assert code_of(record(value, JSON_TYPE)) is code
    assert code_of(binary(None, value)) is code
    assert code_of(record(value, STRUCTURED_TYPE)) is code
    if encoded:
        assert code_of(structured(**encoded)) is code
    assert accepted(record(value, ("content-type", b"text/plain"))).opaque


@pytest.mark.parametrize("value", NOT_JSON.values(), ids=NOT_JSON)
def test_what_is_not_json_is_opaque_unless_declared_json(value: bytes) -> None:
    """A payload that is not JSON is routed on its other attributes; declared as JSON it is refused."""
    encoded = base64.b64encode(value).decode()
    for source in (record(value), binary(None, value), structured(data_base64=encoded)):
        assert accepted(source).opaque
        assert "data" not in accepted(source).attributes
    assert code_of(record(value, JSON_TYPE)) is Code.JSON_INVALID
    assert code_of(binary(None, value, JSON_TYPE)) is Code.JSON_INVALID
    declared = structured(data_base64=encoded, datacontenttype="application/json")
    assert code_of(declared) is Code.JSON_INVALID
    assert code_of(record(value, STRUCTURED_TYPE)) is Code.JSON_INVALID


@pytest.mark.parametrize("name", REQUIRED)
def test_required_attributes_must_be_there_and_not_empty(name: str) -> None:
    """id, source, type and specversion are required in both modes; empty or null is as good as missing."""
    without = {key: value for key, value in REQUIRED.items() if key != name}
    if name != "specversion":
        assert code_of(binary(without)) is Code.CLOUDEVENT_INVALID
    assert code_of(binary({**REQUIRED, name: ""})) is Code.CLOUDEVENT_INVALID
    assert code_of(binary(without, None, (f"ce_{name}", None))) is Code.CLOUDEVENT_INVALID
    for document in (without, {**REQUIRED, name: ""}, {**REQUIRED, name: None}):
        source = record(json.dumps(document).encode(), STRUCTURED_TYPE)
        assert code_of(source) is Code.CLOUDEVENT_INVALID


@pytest.mark.parametrize(
    ("version", "fine"), [("1.0", True), ("1.1", True), ("0.3", False), ("2.0", False), ("1", False)]
)
def test_any_minor_version_of_one_is_read(version: str, fine: bool) -> None:
    """Any specversion 1.x is accepted; another major version is refused and named."""
    for source in (binary({**REQUIRED, "specversion": version}), structured(specversion=version)):
        event = decode_event(source)
        if fine:
            assert isinstance(event, Event)
        else:
            assert isinstance(event, Rejection)
            assert event.code is Code.CLOUDEVENT_INVALID
            assert repr(version) in event.reason


@pytest.mark.parametrize("value", [{}, [], 1.5, 1.0, [1], {"a": 1}])
def test_a_structured_attribute_is_text_boolean_or_integer(value: object) -> None:
    """Other JSON values are no CloudEvents attributes."""
    assert code_of(structured(extension=value)) is Code.CLOUDEVENT_INVALID


def test_structured_attributes_become_text() -> None:
    """Booleans and integers turn into the text that binary mode carries; true is not 1; null is absent."""
    read = fields(structured(a=True, b=False, c=1, d=2**60, e=None, f="x"))
    assert read == {**REQUIRED, "a": "true", "b": "false", "c": "1", "d": str(2**60), "f": "x"}


@pytest.mark.parametrize(
    "extra",
    [
        [("ce_id", b"2")],
        [("ce_x", None), ("ce_x", None)],
        [("ce_x", b"\xff")],
        [("ce_", b"x")],
        [("ce_data", b"x")],
        [("ce_data_base64", b"x")],
        [("ce_" + "n" * (NAME_MAX_BYTES + 1), b"x")],
        [("content-type", b"\xff")],
        [("content-type", b"a/b"), ("content-type", b"a/b")],
        [("content-type", b"text/plain"), ("ce_datacontenttype", b"application/json")],
    ],
)
def test_broken_binary_attributes_are_refused(extra: list[tuple[str, bytes | None]]) -> None:
    """Repeated, not UTF-8, nameless, overlong or contradictory attributes, or the payload's names."""
    assert code_of(binary(None, b"{}", *extra)) is Code.CLOUDEVENT_INVALID


@pytest.mark.parametrize("value", [None, b"", b"[]", b'"x"', b"1", b'{"": 1}'])
def test_a_structured_event_is_a_json_object(value: bytes | None) -> None:
    """A structured event without a document is not JSON; another JSON value is no CloudEvent."""
    code = Code.CLOUDEVENT_INVALID if value else Code.JSON_INVALID
    assert code_of(record(value, STRUCTURED_TYPE)) is code


def test_the_content_type_header_is_datacontenttype() -> None:
    """In binary mode the attribute comes from content-type, or from a ce_ header that does not contradict."""
    expected = {**REQUIRED, "datacontenttype": "application/json", "data": {"a": 1}}
    same = ("ce_datacontenttype", b"application/json")
    assert fields(binary(None, b'{"a": 1}', JSON_TYPE)) == expected
    assert fields(binary(None, b'{"a": 1}', same)) == expected
    assert fields(binary(None, b'{"a": 1}', JSON_TYPE, same)) == expected
    assert fields(structured(datacontenttype="application/json", data={"a": 1})) == expected


@pytest.mark.parametrize("encoded", ["YQ", "YQ==YQ==", "Y Q==", "é", "====", "YQ==\n", 1, True, {}, []])
def test_data_base64_is_read_strictly(encoded: object) -> None:
    """Anything but padded Base64 text in data_base64 is refused."""
    assert code_of(structured(data_base64=encoded)) is Code.CLOUDEVENT_INVALID


def test_data_comes_once() -> None:
    """The members data and data_base64 exclude each other; null counts as neither."""
    assert code_of(structured(data=1, data_base64="MQ==")) is Code.CLOUDEVENT_INVALID
    assert fields(structured(data=None, data_base64="MQ=="))["data"] == 1
    assert fields(structured(data=1, data_base64=None))["data"] == 1


def test_an_event_without_payload_has_no_data() -> None:
    """No value, or no data member, is fine: no `data`, not opaque. JSON null is a payload that is null."""
    for source in (binary(), binary(None, b""), structured(), structured(data_base64="")):
        assert fields(source) == REQUIRED
        assert not accepted(source).opaque
    assert fields(binary(None, b"null")) == fields(structured(data=None)) == {**REQUIRED, "data": None}
    for nothing in ("", None):
        assert not accepted(structured(datacontenttype="text/plain", data=nothing)).opaque


def test_text_payloads_are_opaque_in_both_modes() -> None:
    """Declared as text, a payload gives no `data`, even where structured mode shows it as a JSON string."""
    for source in (
        binary(None, b'{"a": 1}', ("content-type", b"text/plain")),
        structured(datacontenttype="text/plain", data='{"a": 1}'),
        structured(datacontenttype="text/plain", data={"a": 1}),
    ):
        assert fields(source) == {**REQUIRED, "datacontenttype": "text/plain"}
        assert accepted(source).opaque
