"""The messages of the control plane as JSON: requests, acks, and changes.

Requests and acks are what any Kafka client may write and read by hand; `docs/messages.md` is their
description. Changes are what `filters` and `link.<broker>` carry, and what the router keeps in its state.
Reading is strict: an unknown field, a missing one or one of the wrong type is a rejection that says which,
so that a misspelt field is never ignored in silence.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from branchline.kafka.jsontext import read_json
from branchline.kafka.record import Place
from branchline.kafka.topics import is_name
from branchline.routing.codes import Code, Rejection
from branchline.routing.control import (
    Ack,
    Change,
    Ended,
    Forgotten,
    Identity,
    Number,
    Operation,
    Request,
    Subscribed,
)
from branchline.routing.limits import CONTROL_MAX_BYTES

FORMAT_VERSION = 1
"""The `version` of every message here; another one is refused, never guessed at."""

DEFAULT_ID = "default"
"""The id of a subscription whose request names none."""

REQUEST_ID_MAX_CHARS = 100
"""A request's own id: it is kept in the state and comes back in every answer."""

CHANGE_MAX_BYTES = 64 * 1024
"""A change: a filter and the remembered request ids, every character of them escaped."""

_REQUEST_FIELDS = {
    Operation.SUBSCRIBE: {"version", "op", "subscriber", "id", "home", "spelling", "filter", "request"},
    Operation.UNSUBSCRIBE: {"version", "op", "subscriber", "id", "home", "request"},
}

_CHANGE_FIELDS = {
    "subscribed": {"state", "home", "subscriber", "id", "number", "spelling", "filter", "requests"},
    "ended": {"state", "home", "subscriber", "id", "number", "at_ms", "requests"},
    "forgotten": {"state", "home", "subscriber", "id", "number"},
}


@dataclass(frozen=True, slots=True)
class BadRequest:
    """A control message that is no request, with as much of the asker as could be read."""

    rejection: Rejection
    subscriber: str | None = None
    id: str | None = None
    request: str | None = None


def dump(message: Mapping[str, Any]) -> bytes:
    """JSON as we write it: compact, UTF-8, fields in the order given, nulls left out."""
    present = {name: value for name, value in message.items() if value is not None}
    return json.dumps(present, ensure_ascii=False, separators=(",", ":")).encode()


def encode_request(request: Request) -> bytes:
    """The control message for a request."""
    return dump(
        {
            "version": FORMAT_VERSION,
            "op": request.operation,
            "subscriber": request.subscriber,
            "id": request.id,
            "home": request.home,
            "spelling": request.spelling if request.operation is Operation.SUBSCRIBE else None,
            "filter": request.filter if request.operation is Operation.SUBSCRIBE else None,
            "request": request.request,
        }
    )


def decode_request(value: bytes | None) -> Request | BadRequest:
    """A request, or why the message is none."""
    fields = _read_object(value, CONTROL_MAX_BYTES)
    if isinstance(fields, Rejection):
        return BadRequest(fields)
    rejection = _check_version(fields) or _check_request(fields)
    if rejection is not None:
        asker = (_text_or_none(fields, name) for name in ("subscriber", "id", "request"))
        return BadRequest(rejection, *asker)
    return Request(
        Operation(fields["op"]),
        fields["subscriber"],
        fields.get("id", DEFAULT_ID),
        fields.get("home"),
        fields.get("spelling", "sql"),
        fields.get("filter", ""),
        fields.get("request"),
    )


def encode_ack(ack: Ack, place: Place, now_ms: int) -> bytes:
    """The answer to the control message at `place`."""
    rejection = ack.rejection
    return dump(
        {
            "version": FORMAT_VERSION,
            "status": ack.status,
            "subscriber": ack.subscriber,
            "id": ack.id,
            "home": ack.home,
            "number": ack.number,
            "request": ack.request,
            "code": rejection and rejection.code,
            "reason": rejection and rejection.reason,
            "line": rejection and rejection.line,
            "column": rejection and rejection.column,
            "note": ack.note,
            "place": {"topic": place.topic, "partition": place.partition, "offset": place.offset},
            "at_ms": now_ms,
        }
    )


def change_fields(change: Change) -> dict[str, Any]:
    """A change as JSON fields."""
    fields: dict[str, Any] = {
        "state": type(change).__name__.lower(),
        **change.identity._asdict(),
        "number": list(change.number),
    }
    match change:
        case Subscribed():
            fields |= {
                "spelling": change.spelling,
                "filter": change.filter,
                "requests": list(change.requests),
            }
        case Ended():
            fields |= {"at_ms": change.at_ms, "requests": list(change.requests)}
        case Forgotten():
            pass
    return fields


def change_from_fields(fields: Mapping[str, Any]) -> Change:
    """The inverse of `change_fields`; raises KeyError, TypeError or ValueError on anything else."""
    identity = Identity(*(_name(fields[name]) for name in ("home", "subscriber", "id")))
    incarnation, counter = _list(fields["number"])
    number = Number(_int(incarnation), _int(counter))
    state = fields["state"]
    if state not in _CHANGE_FIELDS:
        raise ValueError(f"state {_glance(state)} is unknown")
    unknown = sorted(fields.keys() - _CHANGE_FIELDS[state] - {"version"})
    if unknown:
        raise ValueError(f"unknown field {_glance(unknown[0])}")
    if state == "forgotten":
        return Forgotten(identity, number)
    requests = tuple(_text(item) for item in _list(fields["requests"]))
    if state == "ended":
        return Ended(identity, number, _int(fields["at_ms"]), requests)
    return Subscribed(identity, number, _text(fields["spelling"]), _text(fields["filter"]), requests)


def encode_change(change: Change) -> tuple[bytes, bytes | None]:
    """Key and value of the change on `filters`; a forgotten subscription is a tombstone."""
    key = str(change.identity).encode()
    if isinstance(change, Forgotten):
        return key, None
    return key, dump({"version": FORMAT_VERSION, **change_fields(change)})


def decode_change(value: bytes | None) -> Change | Rejection:
    """A change told by another broker or read from `filters`, or why it is none."""
    fields = _read_object(value, CHANGE_MAX_BYTES)
    rejection = fields if isinstance(fields, Rejection) else _check_version(fields)
    if rejection is not None:
        return rejection
    assert isinstance(fields, dict)
    try:
        return change_from_fields(fields)
    except (KeyError, TypeError, ValueError) as error:
        return Rejection(Code.CONTROL_INVALID, f"not a change: {type(error).__name__} {error}")


def _read_object(value: bytes | None, max_bytes: int) -> dict[str, Any] | Rejection:
    if value is None or not value.strip():
        return Rejection(Code.CONTROL_INVALID, "the message has no value")
    if len(value) > max_bytes:
        return Rejection(
            Code.CONTROL_TOO_LARGE, f"the message has {len(value)} bytes; the limit is {max_bytes}"
        )
    fields = read_json(value)
    if isinstance(fields, Rejection):
        return Rejection(Code.CONTROL_INVALID, f"the message is not JSON as we read it: {fields.reason}")
    if not isinstance(fields, dict):
        return Rejection(Code.CONTROL_INVALID, "the message must be a JSON object")
    return fields


def _check_version(fields: Mapping[str, Any]) -> Rejection | None:
    version = fields.get("version")
    if type(version) is not int or version != FORMAT_VERSION:
        return Rejection(
            Code.CONTROL_VERSION, f'"version" must be {FORMAT_VERSION}, not {json.dumps(version)[:40]}'
        )
    return None


def _check_request(fields: dict[str, Any]) -> Rejection | None:
    known = [operation.value for operation in Operation]
    if fields.get("op") not in known:
        return Rejection(Code.CONTROL_OPERATION, f'"op" must be one of {", ".join(known)}')
    operation = Operation(fields["op"])
    unknown = sorted(fields.keys() - _REQUEST_FIELDS[operation])
    if unknown:
        return Rejection(
            Code.CONTROL_INVALID,
            f"unknown field {unknown[0][:40]!r}; {operation} takes "
            + ", ".join(sorted(_REQUEST_FIELDS[operation])),
        )
    required = ["subscriber", "filter"] if operation is Operation.SUBSCRIBE else ["subscriber"]
    for name in required:
        if name not in fields:
            return Rejection(Code.CONTROL_INVALID, f'"{name}" is missing')
    for name, value in fields.items():
        if name != "version" and not isinstance(value, str):
            return Rejection(Code.CONTROL_INVALID, f'"{name}" must be a string')
    for name in ("subscriber", "id", "home"):
        if name in fields and not is_name(fields[name]):
            return Rejection(
                Code.NAME_INVALID,
                f'"{name}" must be 1 to 63 of a-z, 0-9 and "-", not beginning with "-": '
                f"{fields[name][:70]!r}",
            )
    length = len(fields.get("request", ""))
    if length > REQUEST_ID_MAX_CHARS:
        return Rejection(
            Code.CONTROL_INVALID, f'"request" has {length} characters; the limit is {REQUEST_ID_MAX_CHARS}'
        )
    return None


def _text_or_none(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    return value[:REQUEST_ID_MAX_CHARS] if isinstance(value, str) else None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{_glance(value)} is not a string")
    return value


def _name(value: Any) -> str:
    if not is_name(_text(value)):
        raise ValueError(f"{_glance(value)} is not a name")
    return str(value)


def _int(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"{_glance(value)} is not an integer")
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{_glance(value)} is not a list")
    return value


def _glance(value: Any) -> str:
    """Enough of a foreign value to know it by: a reason travels in a header."""
    return repr(value)[:60]
