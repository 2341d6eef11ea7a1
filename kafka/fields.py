"""JSON objects as we write and strictly read them: a version, and fields by name, type and rule.

What reads a whole message gives a value or a rejection. The readers of single fields raise KeyError,
TypeError or ValueError instead (`UNFIT`), for whoever reads the message to catch once.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any

from branchline.kafka.jsontext import read_json
from branchline.kafka.topics import is_name
from branchline.routing.codes import Code, Rejection
from branchline.routing.limits import EVENT_MAX_FIELDS

FORMAT_VERSION = 1
"""The `version` of every message; another one is refused, never guessed at."""

COUNTED_MAX = 2**53
"""What counts in a message is at most this: beyond, many readers of JSON round."""

WORD_END = 2**64
"""Whole numbers in a message are below this: digests have 64 bits, and nothing has more."""

UNFIT = (KeyError, TypeError, ValueError)
"""What the readers of single fields raise."""


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def dump(message: Mapping[str, Any]) -> bytes:
    """JSON as we write it: compact, UTF-8, fields in the order given, nulls left out."""
    present = {name: value for name, value in message.items() if value is not None}
    return _ENCODER.encode(present).encode()


def read_object(
    value: bytes | None, max_bytes: int, max_fields: int = EVENT_MAX_FIELDS
) -> dict[str, Any] | Rejection:
    """The fields of a message."""
    if value is None or not value.strip():
        return Rejection(Code.CONTROL_INVALID, "the message has no value")
    if len(value) > max_bytes:
        return too_large(value, max_bytes)
    fields = read_json(value, max_fields)
    if isinstance(fields, Rejection):
        return Rejection(Code.CONTROL_INVALID, f"the message is not JSON as we read it: {fields.reason}")
    if not isinstance(fields, dict):
        return Rejection(Code.CONTROL_INVALID, "the message must be a JSON object")
    return fields


def too_large(value: bytes, max_bytes: int) -> Rejection:
    return Rejection(Code.CONTROL_TOO_LARGE, f"the message has {len(value)} bytes; the limit is {max_bytes}")


def check_version(fields: Mapping[str, Any]) -> Rejection | None:
    """Why these are not the fields of our version."""
    version = fields.get("version")
    if type(version) is not int or version != FORMAT_VERSION:
        return Rejection(
            Code.CONTROL_VERSION, f'"version" must be {FORMAT_VERSION}, not {json.dumps(version)[:40]}'
        )
    return None


def unfit(what: str, error: Exception) -> Rejection:
    """The rejection of a message in which a field could not be read."""
    return Rejection(Code.CONTROL_INVALID, f"not {what}: {type(error).__name__} {error}")


def check_known(fields: Mapping[str, Any], known: Collection[str]) -> None:
    """Refuse a field of another name."""
    unknown = sorted(fields.keys() - set(known))
    if unknown:
        raise ValueError(f"unknown field {glance(unknown[0])}")


def text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{glance(value)} is not a string")
    return value


def name(value: Any) -> str:
    """A broker, a subscriber or a subscription."""
    if not is_name(text(value)):
        raise ValueError(f"{glance(value)} is not a name")
    return str(value)


def integer(value: Any) -> int:
    """A whole number that a machine word holds, so that nothing that keeps it can overflow."""
    if type(value) is not int:
        raise TypeError(f"{glance(value)} is not an integer")
    if not -WORD_END < value < WORD_END:
        raise ValueError(f"{glance(value)} is too large")
    return value


def counted(value: Any) -> int:
    """A number that counts, or the milliseconds of a time: from 0 on, and exact in every reader of JSON."""
    return within(value, 0, COUNTED_MAX)


def within(value: Any, least: int, most: int) -> int:
    """An integer from the least to the most."""
    if not least <= integer(value) <= most:
        raise ValueError(f"{glance(value)} is not from {least} to {most}")
    return int(value)


def boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{glance(value)} is not true or false")
    return value


def items(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{glance(value)} is not a list")
    return value


def members(value: Any, known: Collection[str]) -> dict[str, Any]:
    """An object within a message, of fields of these names."""
    if not isinstance(value, dict):
        raise TypeError(f"{glance(value)} is not an object")
    check_known(value, known)
    return value


def glance(value: Any) -> str:
    """Enough of a foreign value to know it by: a reason travels in a header."""
    return repr(value)[:60]
