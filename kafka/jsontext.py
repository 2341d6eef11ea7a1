"""JSON as we accept it: from bytes to a value or a rejection, never an exception.

Theory of operation. The standard library's decoder does the reading. It is fast and exact about
grammar, but lenient and unbounded where a router must not be:

- It recurses once per level, so depth is checked before it runs. A document with no more opening
  brackets than levels allowed cannot be too deep, which settles nearly every event with two counts.
  Others are scanned once for brackets outside strings. At the first bracket that opens a level too
  many, the text before it is completed with closing brackets and read: if that is JSON the document
  is too deep, if not it was never JSON. What comes after that bracket is not looked at.
- It makes integers of any length (quadratic time) and infinities of large floats. Hooks see each
  number's text first, and put an `_Unusable` in the place of one that we refuse.
- It accepts NaN and Infinity, which are not JSON; a hook ends the reading there.
- It accepts escaped lone surrogates, which cannot be written out again as UTF-8.

After reading, one walk over the value, without recursion, counts leaves and looks for unusable
numbers, names and strings. So a document that is not JSON at all is always `JSON_INVALID`, and the
other codes mean that it was JSON beyond one of our limits: callers rely on that difference. If it
is beyond several, which one is named is not defined.

The limits hold for the value as read. Of a repeated name the last one wins, as with nearly every
reader, and the earlier ones are not judged.

Cost: linear in the bytes, with at most two passes before the decoder's own.
"""

import json
import math
import re
from codecs import BOM_UTF8
from dataclasses import dataclass
from enum import Enum
from typing import cast

from branchline.routing.codes import Code, Rejection
from branchline.routing.limits import EVENT_MAX_DEPTH, EVENT_MAX_FIELDS, NAME_MAX_BYTES, NUMBER_MAX_CHARS
from branchline.routing.values import JsonValue

_SAFE_INTEGER_CHARS = 308
"""An integer of this many characters is below 10^308, so it cannot overflow a double."""

# A string without its end swallows the rest: it can then not be tried again from every quote in it,
# which would be quadratic.
_STRING_OR_BRACKET = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]', re.DOTALL)
_CLOSING = {"[": "]", "{": "}"}
_SPACE = " \t\n\r"


class Unread(Enum):
    """A payload that gives no value to match on."""

    EMPTY = "empty"
    OPAQUE = "opaque"


@dataclass(frozen=True, slots=True)
class _Unusable:
    """Stands in a document for a number that we refuse."""

    reason: str


def read_json(data: bytes, max_fields: int = EVENT_MAX_FIELDS) -> "JsonValue | Rejection":
    """The one JSON document in `data`: UTF-8, with or without a byte order mark."""
    try:
        text = data.removeprefix(BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        return Rejection(Code.JSON_INVALID, f"not UTF-8 at byte {error.start}")
    if text.count("[") + text.count("{") > EVENT_MAX_DEPTH:
        text, too_deep = _cut_at_depth(text)
    else:
        too_deep = None
    try:
        value = _decoded(text)
    except json.JSONDecodeError as error:
        return Rejection(Code.JSON_INVALID, error.msg, error.lineno, error.colno)
    except ValueError as error:
        return Rejection(Code.JSON_INVALID, str(error))
    # Without such an escape a string read from UTF-8 cannot hold a surrogate.
    surrogates = "\\ud" in text or "\\uD" in text
    return too_deep or _beyond_limits(value, surrogates, max_fields) or cast(JsonValue, value)


def read_payload(data: bytes | None, content_type: str | None) -> "JsonValue | Unread | Rejection":
    """A payload's bytes as the content type declares them.

    Declared as JSON it must be JSON; declared as anything else it is never parsed. Undeclared it is
    what it reads as: JSON, which must then keep our limits, or opaque.
    """
    if not data:
        return Unread.EMPTY
    declared = media_type(content_type)
    if declared and not is_json(declared):
        return Unread.OPAQUE
    value = read_json(data)
    if isinstance(value, Rejection) and value.code is Code.JSON_INVALID and not declared:
        return Unread.OPAQUE
    return value


def media_type(content_type: str | None) -> str:
    """The type alone, in lower case, without parameters; empty if none is declared."""
    return (content_type or "").partition(";")[0].strip().lower()


def is_json(media: str) -> bool:
    return media in ("application/json", "text/json") or media.endswith("+json")


def utf8_text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _decoded(text: str) -> object:
    """The value of the document, as the decoder reads it; raises ValueError if it is none."""
    if text[:1] == "{":
        # Nearly every event: then nobody has to look for space around it.
        value, end = _DECODER.raw_decode(text)
        if end == len(text) or not text[end:].strip(_SPACE):
            return value
    return _DECODER.decode(text)


def _cut_at_depth(text: str) -> tuple[str, Rejection | None]:
    """The text itself; or, if it is too deep, its completed beginning and the rejection that it earns."""
    closing: list[str] = []
    for token in _STRING_OR_BRACKET.finditer(text):
        match token[0]:
            case "[" | "{" if len(closing) == EVENT_MAX_DEPTH:
                reason = f"level {EVENT_MAX_DEPTH + 1} opens at character {token.start()}"
                reason += f", more than the limit of {EVENT_MAX_DEPTH} levels"
                beginning = text[: token.start()] + "0" + "".join(reversed(closing))
                return beginning, Rejection(Code.JSON_TOO_DEEP, reason)
            case "[" | "{" as bracket:
                closing.append(_CLOSING[bracket])
            case "]" | "}" if closing:
                closing.pop()
    return text, None


_SHORT = NAME_MAX_BYTES // 4
"""Code points that take no more than the limit, whichever they are."""


def _beyond_limits(root: object, surrogates: bool, max_fields: int) -> Rejection | None:
    leaves = 0
    pending = [root]
    # What is appended meanwhile is gone through, too.
    for node in pending:
        if type(node) is dict and node:
            for name in node:
                # Asked about few: a short name without surrogates has no fault.
                if (surrogates or len(name) > _SHORT) and (fault := _name_fault(name, surrogates)):
                    return fault
            pending += node.values()
        elif type(node) is list and node:
            pending += node
        else:
            leaves += 1
            if type(node) is _Unusable:
                return Rejection(Code.JSON_NUMBER, node.reason)
            if surrogates and type(node) is str and _has_surrogate(node):
                return Rejection(Code.JSON_SURROGATE, "a string holds a lone surrogate")
    if leaves > max_fields:
        reason = f"{leaves} leaf fields, more than the limit of {max_fields}"
        return Rejection(Code.JSON_TOO_MANY_FIELDS, reason)
    return None


def _name_fault(name: str, surrogates: bool) -> Rejection | None:
    if surrogates and _has_surrogate(name):
        return Rejection(Code.JSON_SURROGATE, "a name holds a lone surrogate")
    if len(name) <= _SHORT:
        return None
    size = len(name.encode())
    if size > NAME_MAX_BYTES:
        reason = f"a name of {size} bytes, more than the limit of {NAME_MAX_BYTES}"
        return Rejection(Code.JSON_NAME_TOO_LONG, reason)
    return None


def _has_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _integer(text: str) -> int | _Unusable:
    if len(text) <= _SAFE_INTEGER_CHARS:
        return int(text)
    return _number_fault(text) or int(text)


def _float(text: str) -> float | _Unusable:
    # Adding zero makes -0.0 plain 0.0, so that equal numbers are also the same to the bit.
    return _number_fault(text) or float(text) + 0.0


def _number_fault(text: str) -> _Unusable | None:
    if len(text) > NUMBER_MAX_CHARS:
        return _Unusable(f"a number of {len(text)} characters, more than the limit of {NUMBER_MAX_CHARS}")
    if math.isinf(float(text)):
        shown = text if len(text) <= 24 else f"a number of {len(text)} characters"
        return _Unusable(f"{shown} is beyond the range of a double")
    return None


def _constant(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


_DECODER = json.JSONDecoder(parse_int=_integer, parse_float=_float, parse_constant=_constant)
