"""EventBridge patterns: `{"type": ["order"], "data": {"price": [{"numeric": [">", 100]}]}}`.

A pattern is an object. Under each name stands an array of alternatives for that attribute, of which one
must hold, or an object, which is a pattern for the attributes within. All names of a pattern must hold.
Paths are made by nesting alone: a dot in a name is part of it. Beside names, `$or` may stand: an array of
two patterns or more, one of which must hold. A field of that name is still told apart, because its
alternatives are not patterns.

Patterns know no unknown, and where they negate (`anything-but`), they negate IS TRUE. AND and OR need no
such care: a term that is unknown keeps them from being true just as a false one does.
"""

import json

from branchline.routing.codes import Code
from branchline.routing.expression import And, Expression, Or, Path
from branchline.routing.limits import FILTER_MAX_DEPTH
from branchline.routing.spellings.eventbridge_alternatives import MATCHERS, read_alternatives
from branchline.routing.spellings.json_places import JsonPath
from branchline.routing.spellings.json_text import Misfit, joined, read_json, shown
from branchline.routing.values import JsonValue

_OR = "$or"
_EXAMPLE = '{"type": ["order"]}'
_SHORT = 40
"""A value of no more characters is shown as it should have been written."""


def read(text: str) -> Expression:
    """The expression that the text spells; raises FilterError if it spells none."""
    return read_json(text, _document, f"write a pattern such as {_EXAMPLE}")


def _document(document: JsonValue) -> Expression:
    return _pattern(document, (), (), 0)


def _pattern(value: JsonValue, at: JsonPath, path: Path, depth: int) -> Expression:
    """The pattern for what is at the path. Recursion is bounded by FILTER_MAX_JSON_DEPTH."""
    if not isinstance(value, dict):
        raise Misfit(Code.FILTER_TYPE, f"expected a pattern such as {_EXAMPLE}, found {shown(value)}", at)
    if not value:
        reason = f"an empty pattern says nothing; name a field, as in {_EXAMPLE}"
        raise Misfit(Code.FILTER_SYNTAX, reason, at)
    terms: list[Expression] = []
    for name, content in value.items():
        if name == _OR and isinstance(content, list) and any(map(_is_pattern, content)):
            terms.append(_either(content, (*at, name), path, depth + 1))
        else:
            terms.append(_field(content, (*at, name), (*path, name), depth))
    return joined(And, terms)


def _field(value: JsonValue, at: JsonPath, path: Path, depth: int) -> Expression:
    if isinstance(value, list):
        return read_alternatives(value, at, path)
    if isinstance(value, dict):
        return _pattern(value, at, path, depth)
    reason = f"expected an array of alternatives, found {shown(value)}"
    if len(written := json.dumps(value, ensure_ascii=False)) <= _SHORT:
        reason += f"; write [{written}]"
    raise Misfit(Code.FILTER_TYPE, reason, at)


def _is_pattern(value: JsonValue) -> bool:
    """Whether it is an object, and not one that could be an alternative for a field named $or."""
    return isinstance(value, dict) and not (len(value) == 1 and MATCHERS.keys() >= value.keys())


def _either(patterns: list[JsonValue], at: JsonPath, path: Path, depth: int) -> Expression:
    if len(patterns) < 2:
        raise Misfit(Code.FILTER_SYNTAX, "$or needs at least two patterns, found one", at)
    if depth > FILTER_MAX_DEPTH:
        reason = f"$or is nested at least {depth} deep; the limit is {FILTER_MAX_DEPTH}"
        raise Misfit(Code.FILTER_TOO_DEEP, reason, at, of_name=True)
    return joined(Or, [_pattern(one, (*at, index), path, depth) for index, one in enumerate(patterns)])
