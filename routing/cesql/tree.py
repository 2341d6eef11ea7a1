"""A CESQL expression as a tree.

Nodes are frozen values that compare and hash by what they say; the constant `true` is not the constant 1.
Chains of AND, of OR and of XOR are flat: `a AND (b AND c)` is evaluated exactly as `(a AND b) AND c` is.
Every recursion over a tree is bounded by FILTER_MAX_DEPTH + CESQL_MAX_DEPTH, which the reader checks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from branchline.routing.patterns import Pattern
from branchline.routing.values import Operator

Value: TypeAlias = str | int | bool


class Arithmetic(StrEnum):
    """What is done with two integers."""

    TIMES = "*"
    DIVIDED = "/"
    MODULO = "%"
    PLUS = "+"
    MINUS = "-"


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    value: Value

    # In Python True equals 1, and the constant TRUE would equal the constant 1.
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constant):
            return NotImplemented
        return type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True, slots=True)
class Identifier:
    """The value of an attribute."""

    name: str


@dataclass(frozen=True, slots=True)
class Exists:
    """EXISTS: whether the event has the attribute."""

    name: str


@dataclass(frozen=True, slots=True)
class Negate:
    term: "Node"


@dataclass(frozen=True, slots=True)
class Calculate:
    left: "Node"
    operator: Arithmetic
    right: "Node"


@dataclass(frozen=True, slots=True)
class Compare:
    left: "Node"
    operator: Operator
    right: "Node"


@dataclass(frozen=True, slots=True)
class Like:
    term: "Node"
    pattern: Pattern


@dataclass(frozen=True, slots=True)
class Among:
    """IN: the left value equals one of the elements, each cast to its type."""

    left: "Node"
    elements: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A function, by its name in capitals; there need not be one of this name."""

    name: str
    arguments: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Not:
    term: "Node"


@dataclass(frozen=True, slots=True)
class All:
    """AND: evaluated from the left until one is false."""

    terms: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Any:
    """OR: evaluated from the left until one is true."""

    terms: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Xor:
    """XOR: an odd number of the terms is true."""

    terms: tuple["Node", ...]


Node = (
    Constant
    | Identifier
    | Exists
    | Negate
    | Calculate
    | Compare
    | Like
    | Among
    | Call
    | Not
    | All
    | Any
    | Xor
)


def below(node: Node) -> tuple[Node, ...]:
    """The nodes right below this one, left to right."""
    match node:
        case Constant() | Identifier() | Exists():
            return ()
        case Negate(term) | Not(term) | Like(term, _):
            return (term,)
        case Calculate(left, _, right) | Compare(left, _, right):
            return left, right
        case Among(left, elements):
            return left, *elements
        case Call(_, arguments):
            return arguments
        case All(terms) | Any(terms) | Xor(terms):
            return terms


def nodes(root: Node) -> Iterator[Node]:
    """The node and all below it, left to right."""
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(below(node)))


def identifiers(root: Node) -> Iterator[str]:
    """The names of the attributes that the expression reads, as often as it does."""
    for node in nodes(root):
        if isinstance(node, Identifier | Exists):
            yield node.name
