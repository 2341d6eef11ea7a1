"""The values that events carry and filters name, and the one way in which two of them compare.

Every attribute of a single-valued event has one of six kinds. Booleans (false before true), numbers and
text (code point order) compare with their like. Integers and floats are one kind with one exact order:
Python compares the two without rounding, also beyond 2^53. In Python True equals 1; here kinds are told
apart first, so it does not. An instant that a filter names compares with text that reads as an instant.
Every other comparison is unknown, written None.
"""

import math
import operator
from collections.abc import Callable
from enum import Enum, IntEnum, StrEnum
from typing import Any, Final, TypeAlias

from branchline.routing.instants import Instant, read_instant

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"

Literal: TypeAlias = str | int | float | bool | Instant
"""A value that a filter may name."""

Truth: TypeAlias = bool | None
"""True, False, or None for unknown: the three values of SQL's logic."""


class _Missing(Enum):
    MISSING = "missing"


MISSING: Final = _Missing.MISSING
"""What stands where an event has no value, not even null."""

Found: TypeAlias = "JsonValue | _Missing"
"""What looking for an attribute gives."""


class Kind(IntEnum):
    """What an attribute of a single-valued event can be. The order is that of the presence dimension."""

    MISSING = 0
    NULL = 1
    BOOLEAN = 2
    NUMBER = 3
    TEXT = 4
    OBJECT = 5

    @property
    def words(self) -> str:
        """As a person would say it."""
        return _WORDS[self]


_WORDS = ("nothing", "null", "true or false", "a number", "text", "an object")

SCALARS = frozenset({Kind.BOOLEAN, Kind.NUMBER, Kind.TEXT})
"""The kinds whose values compare with their like."""

# Looked up by exact type: bool is a subclass of int, and isinstance would take it for a number.
_KINDS: dict[type, Kind] = {
    _Missing: Kind.MISSING,
    type(None): Kind.NULL,
    bool: Kind.BOOLEAN,
    int: Kind.NUMBER,
    float: Kind.NUMBER,
    str: Kind.TEXT,
    dict: Kind.OBJECT,
}


class Operator(StrEnum):
    """How a comparison compares."""

    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


COMPARE: dict[Operator, Callable[[Any, Any], bool]] = {
    Operator.EQ: operator.eq,
    Operator.NE: operator.ne,
    Operator.LT: operator.lt,
    Operator.LE: operator.le,
    Operator.GT: operator.gt,
    Operator.GE: operator.ge,
}
"""What each operator says of two values of one kind."""


def kind(value: Found) -> Kind:
    """The value's kind. An array has none: it stands for its elements."""
    return _KINDS[type(value)]


def literal_kind(literal: Literal) -> Kind | None:
    """The kind of value that the literal compares with; None for an instant, which is text read as time."""
    return _KINDS.get(type(literal))


def compare(value: Found, operator: Operator, literal: Literal) -> Truth:
    """Whether `value operator literal` holds; unknown unless both are of one kind that has an order."""
    if type(literal) is Instant:
        moment = read_instant(value) if isinstance(value, str) else None
        return None if moment is None else COMPARE[operator](moment, literal)
    if (one := kind(value)) not in SCALARS or one is not _KINDS[type(literal)]:
        return None
    return COMPARE[operator](value, literal)


def is_finite(number: int | float) -> bool:
    """Whether an event can have the number: the reader refuses what is beyond a double's range."""
    try:
        return math.isfinite(number)
    except OverflowError:  # an integer so long that Python cannot even ask
        return False


def canonical_text(value: Found) -> str | None:
    """The text that stands for a value of a kind that compares, as CloudEvents writes it; else None.

    Numbers that are equal have one text: 1.0 is written 1, and 1e21 with all its zeros.
    """
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return str(int(value)) if value.is_integer() else repr(value)
        case _:
            return None
