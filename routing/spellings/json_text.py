"""Filters that are JSON: from their text to plain values, and from a value that does not fit to its place.

Theory of operation. The standard library's scanner reads the text, with hooks that refuse what it would
let through: repeated names, long names, NaN, numbers beyond a limit. A spelling then makes its expression
of plain Python values, and where one does not fit, it raises a `Misfit` that names the value by its path.
Neither knows a place in the text, so a filter that is right pays nothing for places. Only when something
was refused does the slow scan of `json_places.py` go over the text, to say what is wrong and where.

The slow scan also looks first at the few texts that may be too deep for the fast one, which recurses, and
at those with escaped surrogates, which the fast one lets through.

Cost: a few microseconds for a filter of usual size; the slow scan some milliseconds for the largest.
"""

import json
import math
from collections.abc import Callable
from typing import Any, NoReturn

from branchline.routing.codes import Code
from branchline.routing.expression import And, Expression, Or
from branchline.routing.limits import FILTER_MAX_JSON_DEPTH, NAME_MAX_BYTES, NUMBER_MAX_CHARS
from branchline.routing.spellings.errors import FilterError, check_text, clipped, place
from branchline.routing.spellings.json_places import JsonPath, check_json, find_place
from branchline.routing.values import JsonValue

_MAYBE_LONG = NAME_MAX_BYTES // 4
"""A name of no more code points than this cannot have too many bytes."""


class Misfit(Exception):
    """A value, or with `of_name` its name, is not what a spelling expects at this path of the document.

    With `within`, the place meant is that many code points into the text that is the value.
    """

    def __init__(
        self, code: Code, reason: str, path: JsonPath, *, of_name: bool = False, within: int | None = None
    ) -> None:
        super().__init__(code, reason, path)
        self.code = code
        self.reason = reason
        self.path = path
        self.of_name = of_name
        self.within = within


def read_json(text: str, build: Callable[[JsonValue], Expression], if_empty: str) -> Expression:
    """What `build` makes of the document; raises FilterError, also for a Misfit that `build` raises.

    `if_empty` tells someone who gives no text what to write.
    """
    check_text(text, if_empty)
    document = _decode(text)
    try:
        return build(document)
    except Misfit as misfit:
        offset = find_place(text, misfit.path, misfit.of_name, misfit.within)
        error = FilterError(misfit.code, misfit.reason, *place(text, offset))
    # Outside of the handler, so that the misfit is not shown as the cause.
    raise error


def joined(join: type[And] | type[Or], terms: list[Expression]) -> Expression:
    """AND or OR over the terms: those of its own kind dissolve in it, and one term stands alone."""
    flat: list[Expression] = []
    for term in terms:
        if isinstance(term, join):
            flat += term.terms
        else:
            flat.append(term)
    return flat[0] if len(flat) == 1 else join(tuple(flat))


def shown(value: JsonValue) -> str:
    """What was found, fit to stand in a reason."""
    match value:
        case dict():
            return "an object"
        case list():
            return "an array"
        case str():
            return f'the text "{clipped(value)}"'
        case None | bool():
            return json.dumps(value)
        case number:
            return f"the number {clipped(str(number))}"


class _Refused(ValueError):
    """The fast scan met something that is JSON but not a filter's."""


def _decode(text: str) -> JsonValue:
    if text.count("[") + text.count("{") > FILTER_MAX_JSON_DEPTH or "\\ud" in text or "\\uD" in text:
        check_json(text)
    try:
        document: JsonValue = _DECODER.decode(text)
    except (_Refused, json.JSONDecodeError):
        pass
    else:
        return document
    check_json(text)
    raise AssertionError("the two scans of a filter's JSON disagree")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _Refused
    for name in made:
        if len(name) > _MAYBE_LONG and len(name.encode()) > NAME_MAX_BYTES:
            raise _Refused
    return made


def _integer(text: str) -> int:
    if len(text) > NUMBER_MAX_CHARS:
        raise _Refused
    return int(text)


def _float(text: str) -> float:
    if len(text) > NUMBER_MAX_CHARS or math.isinf(number := float(text)):
        raise _Refused
    # Adding zero makes -0.0 plain 0.0, so that equal numbers are also the same to the bit.
    return number + 0.0


def _constant(_text: str) -> NoReturn:
    raise _Refused


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant
)
