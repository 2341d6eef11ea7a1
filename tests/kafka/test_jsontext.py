"""The strict JSON reader: what it accepts, what it refuses, and with which code."""

import json
import struct
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from branchline.kafka.jsontext import Unread, read_json, read_payload
from branchline.routing.codes import Code, Rejection
from branchline.routing.limits import EVENT_MAX_DEPTH, EVENT_MAX_FIELDS, NAME_MAX_BYTES, NUMBER_MAX_CHARS

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text
documents = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(text, inner, max_size=5),
    max_leaves=30,
)


def code_of(data: bytes) -> Code | None:
    value = read_json(data)
    return value.code if isinstance(value, Rejection) else None


def nested(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


@given(documents, st.booleans(), st.sampled_from([None, 1]))
def test_reads_what_the_standard_reader_reads(document: object, escaped: bool, indent: int | None) -> None:
    """Any document within the limits gives the same value, types included, as json.loads."""
    data = json.dumps(document, ensure_ascii=escaped, indent=indent).encode()
    expected = json.loads(data)
    value = read_json(data)
    assert value == expected
    assert repr(value).replace("-0.0", "0.0") == repr(expected).replace("-0.0", "0.0")


@given(st.binary() | st.text('[]{}",:\\u0dDtrue1e-. \n').map(str.encode))
def test_any_bytes_give_a_value_or_a_code(data: bytes) -> None:
    """Whatever the bytes: a value that can be written out again, or a rejection; never an exception."""
    value = read_json(data)
    if isinstance(value, Rejection):
        assert value.reason
    else:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()


@given(st.text('[]{}",:\\u0dtrue1e-. \n') | documents.map(json.dumps))
def test_invalid_means_that_the_standard_reader_refuses_it_too(written: str) -> None:
    """JSON_INVALID is given for exactly what is not JSON at all."""
    try:
        json.loads(written, parse_constant=int)
    except ValueError:
        assert code_of(written.encode()) is Code.JSON_INVALID
    else:
        assert code_of(written.encode()) is not Code.JSON_INVALID


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" ",
        b"NaN",
        b"Infinity",
        b'{"a": -Infinity}',
        b'{"a": NaN, "a": 1}',
        b'{"a": 1',
        b'{"a": 1}{"a": 2}',
        b'"\xff"',
        b'"\xed\xa0\x80"',
        b'"a\x00b"',
        b"{'a': 1}",
        b"[1,]",
        b"01",
        '{"a": 1}'.encode("utf-16"),
        '{"a": 1}'.encode("utf-16-le"),
        b"\xef\xbb\xbf\xef\xbb\xbf1",
        b"1e400 is a large number",
        b'{"a": "\\ud800"} or so',
    ],
)
def test_what_is_not_json_is_invalid(data: bytes) -> None:
    """Not UTF-8, not one whole document or not JSON's grammar: JSON_INVALID, whatever else is in it."""
    assert code_of(data) is Code.JSON_INVALID


def test_an_invalid_document_is_placed() -> None:
    """The rejection names line and column where the document stops being JSON."""
    value = read_json(b'{"a": 1,\n "b" 2}')
    assert isinstance(value, Rejection)
    assert (value.line, value.column) == (2, 6)


@pytest.mark.parametrize("before", ["", " ", "\r\n\t"])
@pytest.mark.parametrize("behind", ["", " \t\r\n", "\x0b", "\xa0", "}", " ]", ",", "{}", "x"])
@pytest.mark.parametrize("document", ['{"a": 1}', "{}", "[1]", "7"])
def test_around_a_document_is_json_space_alone(before: str, document: str, behind: str) -> None:
    """What stands around a document is accepted, or is invalid at its place, as json.loads says."""
    value = read_json(f"{before}{document}{behind}".encode())
    try:
        assert value == json.loads(f"{before}{document}{behind}")
    except json.JSONDecodeError as error:
        assert isinstance(value, Rejection)
        assert (value.reason, value.line, value.column) == (error.msg, error.lineno, error.colno)


def test_a_byte_order_mark_is_skipped() -> None:
    """A leading UTF-8 byte order mark is no part of the document."""
    assert read_json(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}


def test_the_last_of_a_repeated_name_wins() -> None:
    """A repeated name is read as nearly every reader does; the earlier ones are not judged."""
    assert read_json(b'{"a": 1e400, "b": 2, "a": 3}') == {"a": 3, "b": 2}


@pytest.mark.parametrize("name", ["", "a.b", "a\x00b", "\U0001f600", "x" * NAME_MAX_BYTES])
def test_odd_names_are_names(name: str) -> None:
    """Empty, dotted, NUL-bearing and non-ASCII names stay as they are."""
    assert read_json(json.dumps({name: 1}).encode()) == {name: 1}


@pytest.mark.parametrize("name", ["x" * (NAME_MAX_BYTES + 1), "é" * (NAME_MAX_BYTES // 2 + 1), "k" * 50_000])
def test_a_long_name_is_refused_with_limit_and_length(name: str) -> None:
    """A name is measured in bytes of UTF-8, and the reason names limit and actual length."""
    value = read_json(json.dumps([{name: 1}]).encode())
    assert isinstance(value, Rejection)
    assert value.code is Code.JSON_NAME_TOO_LONG
    assert str(len(name.encode())) in value.reason
    assert str(NAME_MAX_BYTES) in value.reason


def test_integers_stay_exact() -> None:
    """Integers beyond 2^53 keep every digit, and a Boolean stays a Boolean."""
    assert read_json(b"[9007199254740993, -9007199254740993]") == [2**53 + 1, -(2**53) - 1]
    assert read_json(str(10**307).encode()) == 10**307
    assert [type(value) for value in read_json(b"[true, 1, 1.0]")] == [bool, int, float]


@pytest.mark.parametrize("data", [b"-0", b"-0.0", b"-0e5", b"-1e-400"])
def test_there_is_one_zero(data: bytes) -> None:
    """Minus zero, written in any way, is zero to the bit."""
    assert struct.pack(">d", read_json(data)) == bytes(8)


@pytest.mark.parametrize(
    "number",
    [
        "1e400",
        "-1e400",
        "1" + "0" * 309,
        "-" + "9" * 350,
        "9" * 5_000,
        "9" * 200_000,
        "0." + "1" * NUMBER_MAX_CHARS,
        "1e" + "0" * 5_000 + "1",
    ],
)
def test_a_number_too_long_or_too_large_is_refused(number: str) -> None:
    """No number is read that a double cannot hold or that has more characters than the limit."""
    assert code_of(f'{{"a": [{number}]}}'.encode()) is Code.JSON_NUMBER
    assert code_of(number.encode()) is Code.JSON_NUMBER


@pytest.mark.parametrize("number", ["1." + "1" * (NUMBER_MAX_CHARS - 2), "1e308", "9" * 308, "1e-400"])
def test_a_number_at_the_limit_is_read(number: str) -> None:
    """The longest number and the largest exponent within the limits are accepted."""
    assert read_json(number.encode()) == json.loads(number)


@pytest.mark.parametrize("data", [rb'"\ud800"', rb'["\uDFFF"]', rb'{"\ud800": 1}', rb'"\udc00\ud800"'])
def test_a_lone_surrogate_is_refused(data: bytes) -> None:
    """A string or name that cannot be written as UTF-8 is refused."""
    assert code_of(data) is Code.JSON_SURROGATE


def test_a_surrogate_pair_is_one_character() -> None:
    """Escaped pairs are ordinary characters, and an escaped backslash before `ud800` is ordinary text."""
    assert read_json(rb'"\ud83d\ude00"') == "\U0001f600"
    assert read_json(rb'"\\ud800"') == "\\ud800"


def test_depth_is_limited_exactly() -> None:
    """The deepest allowed document is read, one level more is refused; siblings do not add up."""
    assert code_of(nested(EVENT_MAX_DEPTH)) is None
    assert code_of(nested(EVENT_MAX_DEPTH + 1)) is Code.JSON_TOO_DEEP
    assert (
        code_of(b'{"a":' * (EVENT_MAX_DEPTH + 1) + b"1" + b"}" * (EVENT_MAX_DEPTH + 1)) is Code.JSON_TOO_DEEP
    )
    assert code_of(b"[" + b",".join([nested(EVENT_MAX_DEPTH - 1)] * 100) + b"]") is None


def test_brackets_in_strings_are_not_depth() -> None:
    """Text full of brackets, quotes and backslashes is not nesting."""
    inside = '[{\\"' * 200
    assert read_json(json.dumps([inside, {inside[:50]: inside}]).encode()) == [inside, {inside[:50]: inside}]


@pytest.mark.parametrize("data", [b"see " + b"[" * 100, b"[}" * 100, b'["' + b"[" * 100, b"[1" + b"[" * 100])
def test_deep_text_that_is_not_json_is_invalid(data: bytes) -> None:
    """Brackets alone do not make a text JSON: it is too deep only if it is JSON down to there."""
    assert code_of(data) is Code.JSON_INVALID


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (nested(1_000_000), Code.JSON_TOO_DEEP),
        (b"[" * 1_000_000, Code.JSON_TOO_DEEP),
        (b'{"a":' * 1_000_000, Code.JSON_TOO_DEEP),
        (b"[" + b"0," * 999_999 + b"0]", Code.JSON_TOO_MANY_FIELDS),
        (b"[" + b"[]," * 100_000 + b"[]]", Code.JSON_TOO_MANY_FIELDS),
        (b"9" * 1_000_000, Code.JSON_NUMBER),
        (b"[" * 64 + b'"' + b'\\"[' * 300_000, Code.JSON_INVALID),
        (b'"[' * 300_000, Code.JSON_INVALID),
        (b'["' + b'\\"' * 300_000 + b'"]' + b"[" * 99, Code.JSON_INVALID),
    ],
    ids=["nested", "unclosed", "objects", "elements", "empties", "digits", "escapes", "quotes", "trailing"],
)
def test_hostile_documents_are_refused_in_bounded_time(data: bytes, code: Code) -> None:
    """Inputs built to exhaust a stack or to make a scan quadratic are refused, without delay."""
    started = time.process_time()
    assert code_of(data) is code
    # Linear work on a megabyte takes a fraction of this; quadratic work takes minutes.
    assert time.process_time() - started < 5


def test_leaves_are_counted_exactly() -> None:
    """Scalars, nulls, elements and empty containers each count one; other containers count none."""
    some = [None, True, 1, "x", [], {}, [0], {"a": 0}]
    whole = some * (EVENT_MAX_FIELDS // len(some))
    assert code_of(json.dumps({"a": whole}).encode()) is None
    value = read_json(json.dumps({"a": whole, "b": None}).encode())
    assert isinstance(value, Rejection)
    assert value.code is Code.JSON_TOO_MANY_FIELDS
    assert f"{EVENT_MAX_FIELDS + 1} leaf" in value.reason
    fields = {f"f{number}": number for number in range(100_000)}
    assert code_of(json.dumps(fields).encode()) is Code.JSON_TOO_MANY_FIELDS


@pytest.mark.parametrize(
    "declared", ["application/json", "Text/JSON; charset=utf-8", "application/vnd.x+JSON"]
)
def test_a_payload_declared_json_must_be_json(declared: str) -> None:
    """Declared as JSON, in any case and with parameters, a payload is read or refused."""
    assert read_payload(b"[1]", declared) == [1]
    refused = read_payload(b"hello", declared)
    assert isinstance(refused, Rejection)
    assert refused.code is Code.JSON_INVALID


@pytest.mark.parametrize("undeclared", [None, "", " ", "; charset=utf-8"])
def test_an_undeclared_payload_is_what_it_reads_as(undeclared: str | None) -> None:
    """Undeclared: JSON if it is JSON, opaque if not, refused if it is JSON beyond a limit."""
    assert read_payload(b"[1]", undeclared) == [1]
    assert read_payload(b"hello", undeclared) is Unread.OPAQUE
    assert read_payload(b"\xff\x00", undeclared) is Unread.OPAQUE
    refused = read_payload(nested(EVENT_MAX_DEPTH + 1), undeclared)
    assert isinstance(refused, Rejection)
    assert refused.code is Code.JSON_TOO_DEEP


def test_a_payload_of_another_type_is_never_parsed() -> None:
    """Declared as anything but JSON a payload is opaque, even if it would read as JSON or break a limit."""
    assert read_payload(b"[1]", "text/plain") is Unread.OPAQUE
    assert read_payload(nested(1_000), "application/octet-stream") is Unread.OPAQUE


@pytest.mark.parametrize("declared", [None, "application/json", "text/plain"])
def test_an_empty_payload_is_empty_whatever_is_declared(declared: str | None) -> None:
    """No bytes are no payload: neither opaque nor invalid."""
    assert read_payload(None, declared) is Unread.EMPTY
    assert read_payload(b"", declared) is Unread.EMPTY
