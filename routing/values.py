"""The values that events carry, and the one way in which two of them compare.

There are three types of values that compare: Booleans (false before true), numbers and text (code point
order). Integers and floats are one type with one exact order: Python compares the two without rounding,
also beyond 2^53. In Python True equals 1; here types are told apart first, so it does not. Between two
types, or with null, an object or an array, every comparison is unknown, written None.

A missing attribute compares as null does, so nothing in this step needs a sentinel to tell them apart.
"""

import operator
from collections.abc import Callable
from enum import Enum
from typing import Any, TypeAlias

from branchline.routing.expression import Literal, Operator

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"

Truth: TypeAlias = bool | None
"""True, False, or None for unknown: the three values of SQL's logic."""


class Kind(Enum):
    """The types of values that compare with their like."""

    BOOLEAN = "true or false"
    NUMBER = "a number"
    TEXT = "text"


# Looked up by exact type: bool is a subclass of int, and isinstance would take it for a number.
_KINDS: dict[type, Kind] = {bool: Kind.BOOLEAN, int: Kind.NUMBER, float: Kind.NUMBER, str: Kind.TEXT}

_COMPARE: dict[Operator, Callable[[Any, Any], bool]] = {
    Operator.EQ: operator.eq,
    Operator.NE: operator.ne,
    Operator.LT: operator.lt,
    Operator.LE: operator.le,
    Operator.GT: operator.gt,
    Operator.GE: operator.ge,
}


def kind(value: JsonValue) -> Kind | None:
    """The value's type, or None if it compares with nothing: null, an object, an array."""
    return _KINDS.get(type(value))


def compare(value: JsonValue, operator: Operator, literal: Literal) -> Truth:
    """Whether `value operator literal` holds; unknown unless both are of one type."""
    if (one := _KINDS.get(type(value))) is None or one is not _KINDS.get(type(literal)):
        return None
    return _COMPARE[operator](value, literal)
