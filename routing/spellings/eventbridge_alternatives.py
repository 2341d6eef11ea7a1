"""The alternatives for one field of an EventBridge pattern: values, null, and objects with one matcher.

A text, a number, true or false stands for itself, and null for null alone. An object holds one matcher;
`MATCHERS` has them all. Only leaves count as being there: an object is as good as missing.
"""

from branchline.routing.addresses import read_address, read_block
from branchline.routing.codes import Code
from branchline.routing.expression import (
    And,
    Comparison,
    Expression,
    In,
    InBlock,
    IsTrue,
    Not,
    OfKind,
    Or,
    Path,
)
from branchline.routing.limits import FILTER_MAX_IN_VALUES
from branchline.routing.spellings.errors import clipped
from branchline.routing.spellings.eventbridge_texts import TEXT_MATCHERS, Matcher, needed_text, only_name
from branchline.routing.spellings.json_places import JsonPath
from branchline.routing.spellings.json_text import Misfit, joined, shown
from branchline.routing.values import JsonValue, Kind, Literal, Operator

LEAVES = frozenset({Kind.NULL, Kind.BOOLEAN, Kind.NUMBER, Kind.TEXT})
"""What `exists` is true of."""
_ABSENT = frozenset(Kind) - LEAVES
_NULL = frozenset({Kind.NULL})

_LOWER = {">": Operator.GT, ">=": Operator.GE}
_UPPER = {"<": Operator.LT, "<=": Operator.LE}
_COMPARISONS = {"=": Operator.EQ, **_LOWER, **_UPPER}
_UNKNOWN = "a pattern for fields within stands without the array around it"


def read_alternatives(alternatives: list[JsonValue], at: JsonPath, path: Path) -> Expression:
    """One of these holds for the attribute at the path."""
    _check_list(alternatives, at, "alternatives")
    literals: list[Literal] = []
    terms: list[Expression] = []
    first_literal = 0
    for index, one in enumerate(alternatives):
        match one:
            case str() | bool() | int() | float():
                if not literals:
                    first_literal = len(terms)
                literals.append(one)
            case None:
                terms.append(OfKind(path, _NULL))
            case dict():
                terms.append(_matcher(one, (*at, index), path))
            case list():
                reason = (
                    "expected an alternative, found an array; alternatives stand side by side in one array"
                )
                raise Misfit(Code.FILTER_TYPE, reason, (*at, index))
    if literals:
        terms.insert(first_literal, _equal(path, literals))
    return joined(Or, terms)


def _matcher(members: dict[str, JsonValue], at: JsonPath, path: Path) -> Expression:
    name = only_name(members, at, MATCHERS, "a matcher", _UNKNOWN)
    return MATCHERS[name](members[name], (*at, name), path)


def _check_list(values: list[JsonValue], at: JsonPath, noun: str) -> None:
    if not values:
        raise Misfit(Code.FILTER_SYNTAX, f"expected {noun}, found an empty array", at)
    if len(values) > FILTER_MAX_IN_VALUES:
        reason = f"the list has {len(values)} {noun}; the limit is {FILTER_MAX_IN_VALUES}"
        raise Misfit(Code.FILTER_TOO_MANY_VALUES, reason, (*at, FILTER_MAX_IN_VALUES))


def _equal(path: Path, literals: list[Literal]) -> Expression:
    if len(literals) == 1:
        return Comparison(path, Operator.EQ, literals[0])
    return In(path, tuple(literals))


def _numeric(value: JsonValue, at: JsonPath, path: Path) -> Expression:
    """One comparison, or a lower bound and then an upper one."""
    if not isinstance(value, list):
        reason = f'numeric needs an array such as [">", 0, "<=", 5], found {shown(value)}'
        raise Misfit(Code.FILTER_TYPE, reason, at)
    if not value:
        raise Misfit(Code.FILTER_SYNTAX, 'numeric needs a comparison such as [">", 0]', at)
    operator, number = _bound(value, 0, at, _COMPARISONS)
    first = Comparison(path, operator, number)
    if len(value) == 2:
        return first
    if value[0] not in _LOWER:
        reason = f"nothing follows {value[0]} and its number; a range has its lower bound first"
        raise Misfit(Code.FILTER_SYNTAX, reason, (*at, 2))
    operator, upper = _bound(value, 2, at, _UPPER)
    if len(value) > 4:
        reason = "a range has a lower and an upper bound, and nothing follows them"
        raise Misfit(Code.FILTER_SYNTAX, reason, (*at, 4))
    if number >= upper:
        reason = f"expected an upper bound above {shown(number)}, found {shown(upper)}"
        raise Misfit(Code.FILTER_SYNTAX, reason, (*at, 3))
    return And((first, Comparison(path, operator, upper)))


def _bound(
    values: list[JsonValue], index: int, at: JsonPath, known: dict[str, Operator]
) -> tuple[Operator, int | float]:
    sign = values[index]
    if not isinstance(sign, str) or sign not in known:
        code = Code.FILTER_SYNTAX if isinstance(sign, str) else Code.FILTER_TYPE
        reason = f"expected one of {', '.join(known)} in double quotes, found {shown(sign)}"
        raise Misfit(code, reason, (*at, index))
    if index + 1 == len(values):
        raise Misfit(Code.FILTER_SYNTAX, f"a number must follow {sign}", (*at, index))
    number = values[index + 1]
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise Misfit(Code.FILTER_TYPE, f"expected a number, found {shown(number)}", (*at, index + 1))
    return known[sign], number


def _exists(value: JsonValue, at: JsonPath, path: Path) -> Expression:
    if not isinstance(value, bool):
        raise Misfit(Code.FILTER_TYPE, f"exists needs true or false, found {shown(value)}", at)
    return OfKind(path, LEAVES if value else _ABSENT)


def _cidr(value: JsonValue, at: JsonPath, path: Path) -> Expression:
    text = needed_text("cidr", value, at)
    block = read_block(text)
    if block is None:
        reason = f'cidr needs a block of addresses such as "10.0.0.0/8", found "{clipped(text)}"'
        if address := read_address(text):
            reason += f'; write "{text}/{32 if address.version == 4 else 128}" for this address alone'
        raise Misfit(Code.FILTER_SYNTAX, reason, at)
    return InBlock(path, block)


def _anything_but(value: JsonValue, at: JsonPath, path: Path) -> Expression:
    """A leaf, but none of these."""
    if isinstance(value, dict):
        name = only_name(value, at, TEXT_MATCHERS, "a matcher that anything-but takes")
        refused = _excluded_texts(name, value[name], (*at, name), path)
    else:
        refused = _excluded_values(value, at, path)
    return And((OfKind(path, LEAVES), Not(IsTrue(refused))))


def _excluded_values(value: JsonValue, at: JsonPath, path: Path) -> Expression:
    literals: list[Literal] = []
    for one, where in _one_or_more(value, at, "values"):
        if isinstance(one, bool) or not isinstance(one, str | int | float):
            raise Misfit(Code.FILTER_TYPE, f"anything-but needs text or numbers, found {shown(one)}", where)
        if literals and isinstance(one, str) is not isinstance(literals[0], str):
            reason = (
                f"anything-but needs values of one type, found {shown(one)} in a list that began otherwise"
            )
            raise Misfit(Code.FILTER_TYPE, reason, where)
        literals.append(one)
    return _equal(path, literals)


def _excluded_texts(name: str, value: JsonValue, at: JsonPath, path: Path) -> Expression:
    terms: list[Expression] = []
    for one, where in _one_or_more(value, at, "texts"):
        text = needed_text(name, one, where)
        if not text and name in ("prefix", "suffix"):
            reason = f"every text has the empty {name}: this would refuse all text"
            raise Misfit(Code.FILTER_SYNTAX, reason, where)
        terms.append(TEXT_MATCHERS[name](text, where, path))
    return joined(Or, terms)


def _one_or_more(value: JsonValue, at: JsonPath, noun: str) -> list[tuple[JsonValue, JsonPath]]:
    if not isinstance(value, list):
        return [(value, at)]
    _check_list(value, at, noun)
    return [(one, (*at, index)) for index, one in enumerate(value)]


MATCHERS: dict[str, Matcher] = {
    **TEXT_MATCHERS,
    "anything-but": _anything_but,
    "numeric": _numeric,
    "exists": _exists,
    "cidr": _cidr,
}
