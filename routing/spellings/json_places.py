"""Where things stand in a filter's JSON, and what in it is not JSON as we read it.

A slow, exact scan for texts that were refused. It goes over the tokens once, from left to right, keeps its
stack in a list, and gives the place of every name and value in the order of the text, or raises
FilterError at the first thing that is wrong. So of several faults the first is named.

Invariant: it accepts the same texts as the fast scan of `json_text.py`.
"""

import json
import math
import re
from collections.abc import Iterator
from enum import Enum
from itertools import islice
from typing import NamedTuple, TypeAlias

from branchline.routing.codes import Code
from branchline.routing.limits import FILTER_MAX_JSON_DEPTH, NAME_MAX_BYTES, NUMBER_MAX_CHARS
from branchline.routing.spellings.errors import FilterError, clipped, place

JsonPath: TypeAlias = tuple[str | int, ...]
"""The names and indexes that lead from the document to a value in it."""


class _Spot(NamedTuple):
    """Where a name or a value starts."""

    path: JsonPath
    is_name: bool
    start: int


class _Wanted(Enum):
    """What must come next, in words."""

    VALUE = "a value"
    FIRST_VALUE = "a value or ]"
    NAME = "a name in double quotes"
    FIRST_NAME = "a name in double quotes or }"
    COLON = "a colon"
    MORE_VALUES = "a comma or ]"
    MORE_MEMBERS = "a comma or }"
    END = "the end of the filter"


_CLOSING = {
    _Wanted.FIRST_VALUE: "]",
    _Wanted.MORE_VALUES: "]",
    _Wanted.FIRST_NAME: "}",
    _Wanted.MORE_MEMBERS: "}",
}

# A string without its end swallows the rest, and whatever could be meant as a number or word is one token.
_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[-+.\w]++|[^ \t\n\r]', re.DOTALL)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_CODE_POINT = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4}"
    r'|\\["\\/bfnrt]|[^"\\\x00-\x1f]'
)


def check_json(text: str) -> None:
    """Raise FilterError at the first thing in the text that is not JSON within our limits."""
    for _ in _spots(text):
        pass


def find_place(text: str, path: JsonPath, of_name: bool, within: int | None) -> int:
    """The offset of the value at the path, or of its name, or of a code point within the text it is."""
    start = next(spot.start for spot in _spots(text) if spot.path == path and spot.is_name == of_name)
    return start if within is None else next(islice(_code_points(text, start), within, None))


def _spots(text: str) -> Iterator[_Spot]:
    path: list[str | int] = []
    names: list[set[str]] = []  # for each open object the names in it so far; for an array it stays empty
    wanted = _Wanted.VALUE
    for token in _TOKEN.finditer(text):
        found, start = token[0], token.start()
        match wanted:
            case _ if found == _CLOSING.get(wanted):
                path.pop()
                names.pop()
                wanted = _after_value(path)
            case _Wanted.VALUE | _Wanted.FIRST_VALUE if found in ("[", "{"):
                yield _Spot(tuple(path), False, start)
                path.append(0 if found == "[" else "")
                names.append(set())
                _check_level(text, start, len(path))
                wanted = _Wanted.FIRST_VALUE if found == "[" else _Wanted.FIRST_NAME
            case _Wanted.VALUE | _Wanted.FIRST_VALUE:
                _check_scalar(text, start, found, wanted)
                yield _Spot(tuple(path), False, start)
                wanted = _after_value(path)
            case _Wanted.NAME | _Wanted.FIRST_NAME if found[0] == '"':
                path[-1] = name = _name(text, start, found)
                if name in names[-1]:
                    raise _fault(text, start, f'the name "{clipped(name)}" stands twice in one object')
                names[-1].add(name)
                yield _Spot(tuple(path), True, start)
                wanted = _Wanted.COLON
            case _Wanted.COLON if found == ":":
                wanted = _Wanted.VALUE
            case _Wanted.MORE_VALUES if found == ",":
                path[-1] += 1  # type: ignore[operator]  # within an array it is an index
                wanted = _Wanted.VALUE
            case _Wanted.MORE_MEMBERS if found == ",":
                wanted = _Wanted.NAME
            case _:
                raise _fault(text, start, f"expected {wanted.value}, found {_as_found(found)}")
    if wanted is not _Wanted.END:
        reason = f"the filter ends too early; expected {wanted.value}"
        raise _fault(text, len(text.rstrip()), reason)


def _after_value(path: list[str | int]) -> _Wanted:
    if not path:
        return _Wanted.END
    return _Wanted.MORE_VALUES if isinstance(path[-1], int) else _Wanted.MORE_MEMBERS


def _fault(text: str, offset: int, reason: str, code: Code = Code.FILTER_SYNTAX) -> FilterError:
    return FilterError(code, reason, *place(text, offset))


def _as_found(found: str) -> str:
    return clipped(found) if len(found) > 1 or found.isprintable() else ascii(found)


def _check_level(text: str, start: int, level: int) -> None:
    if level > FILTER_MAX_JSON_DEPTH:
        reason = f"arrays and objects are nested at least {level} deep; the limit is {FILTER_MAX_JSON_DEPTH}"
        raise _fault(text, start, reason, Code.FILTER_TOO_DEEP)


def _check_scalar(text: str, start: int, found: str, wanted: _Wanted) -> None:
    if found[0] == '"':
        for _ in _code_points(text, start):
            pass
    elif _NUMBER.fullmatch(found):
        _check_number(text, start, found)
    elif found not in ("true", "false", "null"):
        raise _fault(text, start, f"expected {wanted.value}, found {_as_found(found)}{_hint(found)}")


def _hint(found: str) -> str:
    if found == "'":
        return "; text stands in double quotes"
    if found.lstrip("+-") in ("NaN", "Infinity"):
        return ", which is not JSON"
    if found.lower() in ("true", "false", "null"):
        return f"; write {found.lower()}"
    if found[0] in "+-.0123456789":
        return ", which is no number in JSON"
    return "; text stands in double quotes" if found[0].isalpha() else ""


def _check_number(text: str, start: int, found: str) -> None:
    if len(found) > NUMBER_MAX_CHARS:
        reason = f"the number has {len(found)} characters; the limit is {NUMBER_MAX_CHARS}"
        raise _fault(text, start, reason, Code.FILTER_NUMBER)
    if not found.lstrip("-").isdigit() and math.isinf(float(found)):
        reason = f"{clipped(found)} is too large for a decimal number"
        raise _fault(text, start, reason, Code.FILTER_NUMBER)


def _name(text: str, start: int, found: str) -> str:
    for _ in _code_points(text, start):
        pass
    name: str = json.loads(found)
    size = len(name.encode())
    if size > NAME_MAX_BYTES:
        reason = f"the name has {size} bytes; the limit is {NAME_MAX_BYTES}"
        raise _fault(text, start, reason, Code.FILTER_NAME_TOO_LONG)
    return name


def _code_points(text: str, start: int) -> Iterator[int]:
    """The place of each code point of the string that opens here, and of its closing quote."""
    at = start + 1
    while text[at : at + 1] != '"':
        yield at
        found = _CODE_POINT.match(text, at)
        if found is None:
            raise _bad_string(text, start, at)
        at = found.end()
    yield at


def _bad_string(text: str, start: int, at: int) -> FilterError:
    if _SURROGATE.match(text, at):
        return _fault(text, at, "half of a surrogate pair is not a character")
    match text[at : at + 2]:
        case "" | "\\":
            return _fault(text, start, "this text has no closing quote")
        case "\\u":
            return _fault(text, at, "\\u needs four hexadecimal digits")
        case escape if escape[0] == "\\":
            return _fault(text, at, f"{clipped(escape)} is no escape in JSON; a backslash is written twice")
        case control:
            return _fault(text, at, f"the control character {control[0]!a} must be escaped in JSON")
