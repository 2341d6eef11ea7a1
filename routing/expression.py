"""One tree of expressions behind every spelling of a filter.

An expression is a Boolean combination of constraints on attributes. It is a frozen value: two filters
that mean the same text for text are equal and hash alike. As in evaluation, 1 equals 1.0 but not `true`.
AND and OR are n-ary, so a long chain of them is flat and depth counts only real nesting.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

Path = tuple[str, ...]
"""An attribute's path, segment by segment: never joined, so that `a."b.c"` is not `a.b.c`."""

Literal = str | int | float | bool


class Operator(StrEnum):
    """How a comparison compares."""

    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


class _TypedEquality(ABC):
    """Equality and hash over typed literals: in Python True equals 1, and `a = true` would equal `a = 1`."""

    __slots__ = ()

    @abstractmethod
    def _key(self) -> tuple[object, ...]:
        """What makes two constraints equal."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self) or not isinstance(other, _TypedEquality):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


def _typed(*literals: Literal) -> tuple[object, ...]:
    return tuple((isinstance(literal, bool), literal) for literal in literals)


@dataclass(frozen=True, slots=True, eq=False)
class Comparison(_TypedEquality):
    path: Path
    operator: Operator
    value: Literal

    def _key(self) -> tuple[object, ...]:
        return self.path, self.operator, _typed(self.value)


@dataclass(frozen=True, slots=True, eq=False)
class Between(_TypedEquality):
    """low <= attribute <= high; both ends are of one type."""

    path: Path
    low: Literal
    high: Literal

    def _key(self) -> tuple[object, ...]:
        return self.path, _typed(self.low, self.high)


@dataclass(frozen=True, slots=True, eq=False)
class In(_TypedEquality):
    path: Path
    values: tuple[Literal, ...]

    def _key(self) -> tuple[object, ...]:
        return self.path, _typed(*self.values)


@dataclass(frozen=True, slots=True)
class Like:
    """SQL's pattern on text: % is any run of characters, _ is any one."""

    path: Path
    pattern: str


@dataclass(frozen=True, slots=True)
class IsNull:
    path: Path


@dataclass(frozen=True, slots=True)
class Anything:
    """TRUE: matches every event."""


@dataclass(frozen=True, slots=True)
class And:
    terms: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Or:
    terms: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Not:
    term: "Expression"


Constraint = Comparison | Between | In | Like | IsNull
Expression = Constraint | Anything | And | Or | Not


def constraints(expression: Expression) -> Iterator[Constraint]:
    """Every constraint of the expression, left to right."""
    pending: list[Expression] = [expression]
    while pending:
        match pending.pop():
            case And(terms) | Or(terms):
                pending.extend(reversed(terms))
            case Not(term):
                pending.append(term)
            case Anything():
                pass
            case constraint:
                yield constraint


def paths(expression: Expression) -> frozenset[Path]:
    """The attributes that the expression names."""
    return frozenset(constraint.path for constraint in constraints(expression))
