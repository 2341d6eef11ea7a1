"""CloudEvents as Kafka carries them, in binary and in structured mode, read to one and the same value.

Both modes end in a `CloudEvent`: attributes by name, always as text, and the payload. Binary mode
has nothing but text; so in structured mode, where an attribute may be a JSON Boolean or integer, it
becomes the text that binary mode would carry (`true`, `42`). A filter then cannot tell the modes apart.

- Null, as a header value or in JSON, means that the attribute is absent.
- `id`, `source` and `type` must be there and not empty; `specversion` must be 1.x. A minor version
  keeps what we read here, so tomorrow's events are routed today; another major version may not.
- Names are not held to the specification's alphabet: many producers break it (`ce_trace_id`), and
  we only compare names. But `data` and `data_base64` are the payload's, never an attribute's.
- In binary mode the header `content-type` is the attribute `datacontenttype`. Some libraries write
  `ce_datacontenttype` as well or instead: taken if it does not contradict.
- In structured mode a JSON null as `data` is a payload, as the bytes `null` are in binary mode, except
  beside `data_base64`. Text that is empty and not JSON is no payload, as empty bytes are none.

Limits apply to the record as it was written, so an event at the very edge of one can pass in one
mode and not in the other; whatever passes in both is the same.
"""

import base64
import re
from dataclasses import dataclass

from branchline.kafka.jsontext import Unread, is_json, media_type, read_json, read_payload, utf8_text
from branchline.kafka.record import Headers
from branchline.routing.codes import Code, Rejection
from branchline.routing.limits import NAME_MAX_BYTES
from branchline.routing.values import JsonValue

ATTRIBUTE_PREFIX = "ce_"
CONTENT_TYPE = "content-type"
MEDIA_PREFIX = "application/cloudevents"

_READABLE = (MEDIA_PREFIX, f"{MEDIA_PREFIX}+json")
_REQUIRED = ("id", "source", "type", "specversion")
_PAYLOAD_NAMES = ("data", "data_base64")
_SPECVERSION = re.compile(r"1\.[0-9]{1,3}")
_SHOWN_CHARS = 40


@dataclass(frozen=True, slots=True)
class CloudEvent:
    """The attributes, and the payload: a JSON value, or why there is none."""

    attributes: dict[str, str]
    payload: "JsonValue | Unread"


def read_binary(headers: Headers, value: bytes | None) -> CloudEvent | Rejection:
    """A CloudEvent whose attributes are headers and whose payload is the record's value."""
    attributes = _binary_attributes(headers)
    if isinstance(attributes, Rejection):
        return attributes
    if fault := _required_fault(attributes):
        return fault
    payload = read_payload(value, attributes.get("datacontenttype"))
    return payload if isinstance(payload, Rejection) else CloudEvent(attributes, payload)


def read_structured(content_type: str, value: bytes | None) -> CloudEvent | Rejection:
    """A CloudEvent that is one JSON document, attributes and payload together."""
    if (media := media_type(content_type)) not in _READABLE:
        return Rejection(
            Code.CONTENT_TYPE_UNSUPPORTED, f"{_shown(media)} is not one of {', '.join(_READABLE)}"
        )
    document = read_json(value or b"")
    if isinstance(document, Rejection):
        return document
    if not isinstance(document, dict):
        return _invalid("the document is not a JSON object")
    attributes = _structured_attributes(document)
    if isinstance(attributes, Rejection):
        return attributes
    if fault := _required_fault(attributes):
        return fault
    payload = _structured_payload(document, attributes.get("datacontenttype"))
    return payload if isinstance(payload, Rejection) else CloudEvent(attributes, payload)


def _binary_attributes(headers: Headers) -> dict[str, str] | Rejection:
    seen: set[str] = set()
    texts: dict[str, str] = {}
    for header, value in headers:
        if header != CONTENT_TYPE and not header.startswith(ATTRIBUTE_PREFIX):
            continue
        if header in seen:
            return _invalid(f"the header {_shown(header)} comes more than once")
        seen.add(header)
        if fault := _name_fault(header.removeprefix(ATTRIBUTE_PREFIX)):
            return fault
        if value is None:
            continue
        text = utf8_text(value)
        if text is None:
            return _invalid(f"the header {_shown(header)} is not UTF-8")
        texts[header] = text
    content_type = texts.pop(CONTENT_TYPE, None)
    attributes = {header.removeprefix(ATTRIBUTE_PREFIX): text for header, text in texts.items()}
    if content_type is not None and attributes.setdefault("datacontenttype", content_type) != content_type:
        return _invalid("the headers content-type and ce_datacontenttype differ")
    return attributes


def _structured_attributes(document: dict[str, JsonValue]) -> dict[str, str] | Rejection:
    attributes: dict[str, str] = {}
    for name, value in document.items():
        if name in _PAYLOAD_NAMES:
            continue
        if fault := _name_fault(name):
            return fault
        match value:
            case None:
                pass
            case bool():
                attributes[name] = "true" if value else "false"
            case int():
                attributes[name] = str(value)
            case str():
                attributes[name] = value
            case _:
                return _invalid(f"the attribute {_shown(name)} is not text, a Boolean or an integer")
    return attributes


def _structured_payload(
    document: dict[str, JsonValue], content_type: str | None
) -> "JsonValue | Unread | Rejection":
    encoded = document.get("data_base64")
    if encoded is not None:
        if document.get("data") is not None:
            return _invalid("data and data_base64 are both there")
        data = _base64_bytes(encoded)
        return data if isinstance(data, Rejection) else read_payload(data, content_type)
    if "data" not in document:
        return Unread.EMPTY
    data_json = document["data"]
    declared = media_type(content_type)
    if not declared or is_json(declared):
        return data_json
    return Unread.EMPTY if data_json is None or data_json == "" else Unread.OPAQUE


def _base64_bytes(encoded: JsonValue) -> bytes | Rejection:
    if not isinstance(encoded, str):
        return _invalid("data_base64 is not text")
    try:
        return base64.b64decode(encoded, validate=True)
    except ValueError:
        return _invalid("data_base64 is not Base64")


def _required_fault(attributes: dict[str, str]) -> Rejection | None:
    for name in _REQUIRED:
        if not attributes.get(name):
            return _invalid(f"the attribute {name} is missing or empty")
    version = attributes["specversion"]
    if not _SPECVERSION.fullmatch(version):
        return _invalid(f"specversion {_shown(version)} is not a version that we read: 1.0, or any 1.x")
    return None


def _name_fault(name: str) -> Rejection | None:
    if not name:
        return _invalid("an attribute without a name")
    if name in _PAYLOAD_NAMES:
        return _invalid(f"{name} cannot be an attribute's name")
    size = len(name.encode(errors="surrogatepass"))
    if size > NAME_MAX_BYTES:
        return _invalid(f"an attribute's name of {size} bytes, more than the limit of {NAME_MAX_BYTES}")
    return None


def _invalid(reason: str) -> Rejection:
    return Rejection(Code.CLOUDEVENT_INVALID, reason)


def _shown(text: str) -> str:
    """Foreign text in a reason: cut, and with whatever cannot be printed escaped."""
    return ascii(text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}...")
