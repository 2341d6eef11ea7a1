"""From a Kafka record to the event that filters are matched against.

Theory of operation. A record is read in one of three modes, told apart by headers alone: a content
type of the `application/cloudevents` family means structured, else a `ce_specversion` header means
binary, else it is plain. Whatever the mode, the result is one tree of attributes:

- CloudEvents: each attribute by its name, as text, and the payload as `data` (`data.order.price`).
- plain: the fields of the JSON object that is the value are their own top-level attributes
  (`order.price`). Any other JSON value has no named fields and counts as opaque.
- in every mode `kafka`: the record's `key`, its `timestamp` and its headers by name under `header`.
  It replaces a field of that name, so that what it says can be trusted.

An opaque payload is routed on the other attributes and is never rejected for being opaque. A payload
declared or recognised as JSON that breaks the reader's limits is rejected: to treat it as opaque
would silently miss every filter on its fields.

Nothing here raises for what a record holds: the result is an `Event`, or a `Rejection` whose code
says why not. Key, value and foreign headers are only looked at; they travel on as they came.

Headers that begin with `bl-` are ours. A publisher's are dropped on entry and never seen as
attributes. The limits count foreign headers only: what we add on the way must not make a later
broker refuse an event that the first one accepted.

Header names are compared exactly, as Kafka does. Where a name that means something to us comes more
than once, a plain record's last one counts (Kafka's own habit) and a CloudEvent is invalid. A plain
record's content type that is not UTF-8 declares nothing.
"""

from dataclasses import dataclass
from enum import StrEnum

from branchline.kafka.cloudevents import (
    ATTRIBUTE_PREFIX,
    CONTENT_TYPE,
    MEDIA_PREFIX,
    CloudEvent,
    read_binary,
    read_structured,
)
from branchline.kafka.headers import foreign
from branchline.kafka.jsontext import Unread, media_type, read_payload, utf8_text
from branchline.kafka.record import Headers, Record
from branchline.routing.codes import Code, Rejection
from branchline.routing.limits import EVENT_MAX_BYTES, EVENT_MAX_HEADER_BYTES, EVENT_MAX_HEADERS
from branchline.routing.values import JsonValue


class Mode(StrEnum):
    """How a record carries its event."""

    BINARY = "cloudevent-binary"
    STRUCTURED = "cloudevent-structured"
    PLAIN = "plain"


@dataclass(frozen=True, slots=True)
class Event:
    """What filters are matched against; `opaque` if there is a payload that they cannot see."""

    attributes: dict[str, JsonValue]
    mode: Mode
    opaque: bool


def decode_event(record: Record) -> Event | Rejection:
    return decode_parts(record.key, record.value, record.headers, record.place.timestamp_ms)


def decode_parts(
    key: bytes | None, value: bytes | None, headers: Headers, timestamp_ms: int
) -> Event | Rejection:
    """The event of a record that nobody has made."""
    if len(value or b"") > EVENT_MAX_BYTES:
        return _over(Code.EVENT_TOO_LARGE, len(value or b""), "bytes of value", EVENT_MAX_BYTES)
    if headers:
        headers = foreign(headers)
        event = _beyond_limits(headers) or _declared(headers, key, value)
    else:
        event = _undeclared(key, value)
    if isinstance(event, Event):
        event.attributes["kafka"] = _kafka_attribute(key, timestamp_ms, headers)
    return event


def _declared(headers: Headers, key: bytes | None, value: bytes | None) -> Event | Rejection:
    """What the headers say that the record is."""
    content_type = _last_text(headers, CONTENT_TYPE)
    if media_type(content_type).startswith(MEDIA_PREFIX):
        return _from_cloudevent(read_structured(content_type or "", value), Mode.STRUCTURED)
    if any(name == f"{ATTRIBUTE_PREFIX}specversion" for name, _ in headers):
        return _from_cloudevent(read_binary(headers, value), Mode.BINARY)
    if not headers:
        return _undeclared(key, value)
    return _from_plain(read_payload(value, content_type))


def _undeclared(key: bytes | None, value: bytes | None) -> Event | Rejection:
    """A record without headers."""
    if not value and key is None:
        return Rejection(Code.EVENT_EMPTY, "no value, no key and no headers: nothing to match on")
    return _from_plain(read_payload(value, None))


def _beyond_limits(headers: Headers) -> Rejection | None:
    if len(headers) > EVENT_MAX_HEADERS:
        return _over(Code.HEADERS_TOO_MANY, len(headers), "headers", EVENT_MAX_HEADERS)
    header_bytes = sum(len(name.encode(errors="surrogatepass")) + len(text or b"") for name, text in headers)
    if header_bytes > EVENT_MAX_HEADER_BYTES:
        return _over(Code.HEADERS_TOO_LARGE, header_bytes, "bytes of headers", EVENT_MAX_HEADER_BYTES)
    return None


def _over(code: Code, actual: int, what: str, limit: int) -> Rejection:
    return Rejection(code, f"{actual} {what}, more than the limit of {limit}")


def _from_cloudevent(read: CloudEvent | Rejection, mode: Mode) -> Event | Rejection:
    if isinstance(read, Rejection):
        return read
    attributes: dict[str, JsonValue] = {**read.attributes}
    if not isinstance(read.payload, Unread):
        attributes["data"] = read.payload
    return Event(attributes, mode, opaque=read.payload is Unread.OPAQUE)


def _from_plain(payload: "JsonValue | Unread | Rejection") -> Event | Rejection:
    if isinstance(payload, Rejection):
        return payload
    if isinstance(payload, dict):
        return Event(payload, Mode.PLAIN, opaque=False)
    return Event({}, Mode.PLAIN, opaque=payload is not Unread.EMPTY)


def _kafka_attribute(key: bytes | None, timestamp_ms: int, headers: Headers) -> JsonValue:
    attribute: dict[str, JsonValue] = {"timestamp": timestamp_ms}
    text = None if key is None else utf8_text(key)
    if text is not None:
        attribute["key"] = text
    attribute["header"] = _headers_by_name(headers)
    return attribute


def _headers_by_name(headers: Headers) -> JsonValue:
    texts: dict[str, list[JsonValue]] = {}
    for name, value in headers:
        text = None if value is None else utf8_text(value)
        if value is None or text is not None:
            texts.setdefault(name, []).append(text)
    return {name: values if len(values) > 1 else values[0] for name, values in texts.items()}


def _last_text(headers: Headers, name: str) -> str | None:
    values = [value for header, value in headers if header == name]
    return utf8_text(values[-1]) if values and values[-1] is not None else None
