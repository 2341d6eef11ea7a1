"""The three types of CESQL's values, the casts between them, and the errors that evaluation can have."""

import re
from enum import Enum, StrEnum

from branchline.routing.cesql.tree import Node, Value
from branchline.routing.values import Found, canonical_text

INTEGERS = range(-(2**31), 2**31)
"""The integers of CESQL: 32 bits, signed."""

_INTEGER = re.compile(r"([+-]?)0*([0-9]{1,10})", re.ASCII)


class Type(Enum):
    """What a value is, and what an operator or function makes of its arguments."""

    STRING = "String"
    INTEGER = "Integer"
    BOOLEAN = "Boolean"


class ErrorKind(StrEnum):
    """What went wrong, as the specification and its conformance kit call it."""

    PARSE = "parse"
    MATH = "math"
    CAST = "cast"
    MISSING_ATTRIBUTE = "missingAttribute"
    MISSING_FUNCTION = "missingFunction"
    FUNCTION_EVALUATION = "functionEvaluation"
    GENERIC = "generic"


class Failure(Exception):
    """Evaluation ends here: the first error is the expression's.

    Some functions give a value along with their error. It is the expression's value only if the function
    is the whole expression, so the failure carries the node where it arose.
    """

    def __init__(self, kind: ErrorKind, value: Value | None = None) -> None:
        super().__init__(kind, value)
        self.kind = kind
        self.value = value
        self.source: Node | None = None


_ZEROS: dict[Type, Value] = {Type.STRING: "", Type.INTEGER: 0, Type.BOOLEAN: False}
_TYPES: dict[type, Type] = {str: Type.STRING, int: Type.INTEGER, bool: Type.BOOLEAN}


def zero(kind: Type | None) -> Value:
    """What an expression of this type is worth if it fails; where the type is not known, false."""
    return False if kind is None else _ZEROS[kind]


def type_of(value: Value) -> Type:
    return _TYPES[type(value)]


def from_event(found: Found) -> Value:
    """An attribute's value. Numbers that CESQL has no type for become text; other kinds count as missing."""
    if isinstance(found, bool | str):
        return found
    if isinstance(found, int | float) and is_integer(found):
        return int(found)
    text = canonical_text(found)
    if text is None:
        raise Failure(ErrorKind.MISSING_ATTRIBUTE)
    return text


def is_integer(number: int | float) -> bool:
    """Whether CESQL has the number as an integer."""
    # Not `in INTEGERS`: of a float, Python would look for it among all of them, one by one.
    return INTEGERS[0] <= number <= INTEGERS[-1] and number == int(number)


def to_string(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def to_integer(value: Value) -> int:
    if not isinstance(value, str):
        return int(value)
    # Cut to ten digits before it becomes a number: a long text is not worth the arithmetic.
    digits = _INTEGER.fullmatch(value)
    number = int("".join(digits.groups())) if digits else None
    if number is None or number not in INTEGERS:
        raise Failure(ErrorKind.CAST)
    return number


def to_boolean(value: Value) -> bool:
    if not isinstance(value, str):
        return bool(value)
    if len(value) <= len("false") and (lower := value.lower()) in ("true", "false"):
        return lower == "true"
    raise Failure(ErrorKind.CAST)


def cast(value: Value, kind: Type) -> Value:
    """The value as one of the type; raises Failure if there is none."""
    match kind:
        case Type.STRING:
            return to_string(value)
        case Type.INTEGER:
            return to_integer(value)
        case Type.BOOLEAN:
            return to_boolean(value)


def castable(value: Value, kind: Type) -> bool:
    try:
        cast(value, kind)
    except Failure:
        return False
    return True
