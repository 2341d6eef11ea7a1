"""One tree of expressions behind every spelling of a filter.

An expression is a Boolean combination of constraints on attributes. It is a frozen value: two filters
that mean the same text for text are equal and hash alike. As in evaluation, 1 equals 1.0 but not `true`.
AND and OR are n-ary, so a long chain of them is flat and depth counts only real nesting.

Truth is three-valued, as in SQL: a constraint on an attribute that is missing, or of a kind that it does
not speak of, is unknown. `IsTrue` makes two values of three, which is what the spellings need that know
no unknown: in them, NOT p is Not(IsTrue(p)).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from branchline.routing.addresses import Block
from branchline.routing.cesql.tree import Node, identifiers
from branchline.routing.patterns import Pattern
from branchline.routing.values import Kind, Literal, Operator

Path = tuple[str, ...]
"""An attribute's path, segment by segment: never joined, so that `a."b.c"` is not `a.b.c`."""


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


class Reading(Enum):
    """What of a value a pattern is laid against."""

    TEXT = "text"
    """Text as it is; every other kind is unknown."""
    FOLDED = "folded"
    """Text with its case folded; the pattern's is folded already."""
    CANONICAL = "canonical"
    """The canonical text of a Boolean, a number or text."""


@dataclass(frozen=True, slots=True)
class Matches:
    """The whole text fits a pattern: LIKE, STARTS WITH, ENDS WITH, CONTAINS and the wildcards of others."""

    path: Path
    pattern: Pattern
    reading: Reading = Reading.TEXT


@dataclass(frozen=True, slots=True)
class InBlock:
    """Text that reads as an IP address lies in a block; text that does not is unknown."""

    path: Path
    block: Block


@dataclass(frozen=True, slots=True)
class OfKind:
    """The attribute is of one of these kinds. Never unknown: that it is missing is a kind too."""

    path: Path
    kinds: frozenset[Kind]


@dataclass(frozen=True, slots=True)
class CompareFields:
    """Two attributes compare; unknown unless both are of one kind that compares."""

    path: Path
    operator: Operator
    other: Path


@dataclass(frozen=True, slots=True, eq=False)
class Has(_TypedEquality):
    """Among all values at the path, in all elements of all arrays on the way, one equals this one."""

    path: Path
    value: Literal

    def _key(self) -> tuple[object, ...]:
        return self.path, _typed(self.value)


SingleConstraint = Comparison | Between | In | Matches | InBlock | OfKind


@dataclass(frozen=True, slots=True)
class Every:
    """Each of all values at the constraint's path, in all elements of all arrays on the way, satisfies it."""

    constraint: SingleConstraint

    @property
    def path(self) -> Path:
        return self.constraint.path


@dataclass(frozen=True, slots=True)
class Formula:
    """A Boolean CESQL expression that the rest of the tree cannot say; unknown where CESQL has an error."""

    root: Node


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


@dataclass(frozen=True, slots=True)
class IsTrue:
    """True if the term is true, else false: never unknown."""

    term: "Expression"


Constraint = SingleConstraint | CompareFields | Has | Every | Formula
Expression = Constraint | Anything | And | Or | Not | IsTrue

NULLS = frozenset({Kind.MISSING, Kind.NULL})
"""What IS NULL is true of."""


def constraints(expression: Expression) -> Iterator[Constraint]:
    """Every constraint of the expression, left to right."""
    pending: list[Expression] = [expression]
    while pending:
        match pending.pop():
            case And(terms) | Or(terms):
                pending.extend(reversed(terms))
            case Not(term) | IsTrue(term):
                pending.append(term)
            case Anything():
                pass
            case constraint:
                yield constraint


def has_and(expression: Expression) -> bool:
    """Whether there is an AND, or a NOT that would make one of an OR, anywhere in the expression."""
    pending: list[Expression] = [expression]
    while pending:
        match pending.pop():
            case And() | Not():
                return True
            case Or(terms):
                pending.extend(terms)
            case IsTrue(term):
                pending.append(term)
    return False


def named_paths(constraint: Constraint) -> Iterator[Path]:
    """The attributes that the constraint names."""
    match constraint:
        case CompareFields(path, _, other):
            yield path
            yield other
        case Formula(root):
            yield from ((name,) for name in sorted(set(identifiers(root))))
        case single:
            yield single.path


def chosen_paths(expression: Expression) -> frozenset[Path]:
    """The attributes of which the expression looks at one value at a time: where arrays are chosen from.

    HAS and EVERY look at all values at once, so theirs are not among them.
    """
    found: set[Path] = set()
    for constraint in constraints(expression):
        if isinstance(constraint, CompareFields | Formula):
            found.update(named_paths(constraint))
        elif not isinstance(constraint, Has | Every):
            found.add(constraint.path)
    return frozenset(found)
