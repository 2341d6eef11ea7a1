"""Filters of the CloudEvents Subscriptions API: `{"all": [{"exact": {"type": "order"}}, {"not": ...}]}`.

A filter is an object with one dialect. `exact`, `prefix` and `suffix` give texts for attributes, which all
must match; `all`, `any` and `not` combine filters; `sql` is a CESQL expression. An array of filters asks
for all of them, an empty one for every event. Names are attributes and never paths.

Values that are not text are compared by their canonical text. There is no unknown here: an attribute that
is missing does not match, so `not` of that is true, and therefore negates IS TRUE of its filter.
"""

from branchline.routing.codes import Code
from branchline.routing.expression import And, Anything, Expression, IsTrue, Matches, Not, Or, Reading
from branchline.routing.limits import FILTER_MAX_DEPTH
from branchline.routing.patterns import ending, exactly, starting
from branchline.routing.spellings import cesql
from branchline.routing.spellings.errors import FilterError, clipped
from branchline.routing.spellings.json_places import JsonPath
from branchline.routing.spellings.json_text import Misfit, joined, read_json, shown
from branchline.routing.values import JsonValue

_PATTERNS = {"exact": exactly, "prefix": starting, "suffix": ending}
_JOINS: dict[str, type[And] | type[Or]] = {"all": And, "any": Or}
_DIALECTS = (*_PATTERNS, *_JOINS, "not", "sql")


def read(text: str) -> Expression:
    """The expression that the text spells; raises FilterError if it spells none."""
    return read_json(text, _document, "write [] to get every event")


def _document(document: JsonValue) -> Expression:
    if not isinstance(document, list):
        return _filter(document, (), 0)
    if not document:
        return Anything()
    return joined(And, [_filter(one, (index,), 0) for index, one in enumerate(document)])


def _filter(value: JsonValue, at: JsonPath, depth: int) -> Expression:
    """Recursion is bounded by FILTER_MAX_DEPTH."""
    if not isinstance(value, dict):
        reason = f'expected a filter such as {{"exact": {{"type": "order"}}}}, found {shown(value)}'
        raise Misfit(Code.FILTER_TYPE, reason, at)
    dialect = _dialect(value, at)
    content = value[dialect]
    at = (*at, dialect)
    if dialect in _PATTERNS:
        return _attributes(dialect, content, at)
    if dialect == "sql":
        return _sql(content, at)
    depth += 1
    if depth > FILTER_MAX_DEPTH:
        reason = f"all, any and not are nested at least {depth} deep; the limit is {FILTER_MAX_DEPTH}"
        raise Misfit(Code.FILTER_TOO_DEEP, reason, at, of_name=True)
    if dialect == "not":
        return Not(IsTrue(_filter(content, at, depth)))
    if not isinstance(content, list):
        raise Misfit(Code.FILTER_TYPE, f"{dialect} needs an array of filters, found {shown(content)}", at)
    if not content:
        raise Misfit(Code.FILTER_SYNTAX, f"{dialect} needs at least one filter", at)
    return joined(_JOINS[dialect], [_filter(one, (*at, index), depth) for index, one in enumerate(content)])


def _dialect(members: dict[str, JsonValue], at: JsonPath) -> str:
    known = ", ".join(_DIALECTS)
    if not members:
        raise Misfit(Code.FILTER_SYNTAX, f"a filter needs a dialect, one of {known}", at)
    first, *others = members
    for name in members:
        if name not in _DIALECTS:
            reason = f'unknown dialect "{clipped(name)}"; known: {known}'
            raise Misfit(Code.FILTER_SYNTAX, reason, (*at, name), of_name=True)
    if others:
        reason = (
            f'a filter has one dialect, and {others[0]} comes after {first}; join two with "all" or "any"'
        )
        raise Misfit(Code.FILTER_SYNTAX, reason, (*at, others[0]), of_name=True)
    return first


def _attributes(dialect: str, content: JsonValue, at: JsonPath) -> Expression:
    if not isinstance(content, dict):
        reason = f'{dialect} needs an object such as {{"type": "order"}}, found {shown(content)}'
        raise Misfit(Code.FILTER_TYPE, reason, at)
    if not content:
        raise Misfit(Code.FILTER_SYNTAX, f"{dialect} needs at least one attribute", at)
    terms: list[Expression] = []
    for name, text in content.items():
        if not name:
            raise Misfit(Code.FILTER_SYNTAX, "an attribute's name is empty", (*at, name), of_name=True)
        if not isinstance(text, str):
            reason = f"{dialect} compares with text, found {shown(text)}"
            if isinstance(text, bool | int | float):
                reason += "; in double quotes it is compared with the value's canonical text"
            raise Misfit(Code.FILTER_TYPE, reason, (*at, name))
        if not text:
            raise Misfit(Code.FILTER_SYNTAX, f"{dialect} needs a text that is not empty", (*at, name))
        terms.append(Matches((name,), _PATTERNS[dialect](text), Reading.CANONICAL))
    return joined(And, terms)


def _sql(content: JsonValue, at: JsonPath) -> Expression:
    if not isinstance(content, str):
        raise Misfit(Code.FILTER_TYPE, f"sql needs a CESQL expression as text, found {shown(content)}", at)
    try:
        return cesql.read(content)
    except FilterError as error:
        inner = error.rejection
        reason = f"in the CESQL text at line {error.line}, column {error.column}: {inner.reason}"
        raise Misfit(inner.code, reason, at) from None
