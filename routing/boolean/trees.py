"""Predicate trees: a filter's expression in positive form, with AND and OR kept as they are.

Theory of operation. A cover is a disjunction of conjunctions, and whoever wants it short must widen it. A
predicate tree keeps the shape of the expression instead: negations are pushed into the constraints as
compiling does it (`wants.py`), and each constraint becomes the ranges and words of its region (`regions.py`).
So the tree has about as many leaves as the filter has constraints, whatever it looks like.

A *predicate* is a leaf: a range on a dimension, or a word. What has no such form may hold for any event.
Below an AND it is left out, and an OR with such a term holds always. So for every event

    the expression is true  implies  the tree holds

and if no region was larger than what was asked, the tree is *exact*: for events without arrays, they are the
same. That is so wherever the cover is exact, and also where only its length made the cover inexact.

With arrays each leaf may choose by itself, whichever element satisfies it. Nothing on two leaves is ever
intersected, so HAS may ask for two elements of one array, and each is a leaf.

Pruning (`pruning.py`) takes children of an AND away. All inner nodes are AND or OR, of two parts or more,
none of its own kind, no part twice; TRUE and FALSE are whole trees only.

Cost: linear in the constraints. Recursion is bounded by FILTER_MAX_DEPTH.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias, TypeGuard

from branchline.routing.compiling import by_axis
from branchline.routing.covers import Cover
from branchline.routing.describing import describe_constraint
from branchline.routing.event import Event
from branchline.routing.expression import (
    And,
    Anything,
    Constraint,
    Expression,
    In,
    IsTrue,
    Not,
    Or,
)
from branchline.routing.filters import Contains, Range
from branchline.routing.regions import axis_of, where_false, where_true, where_unknown
from branchline.routing.wants import OF_IS_TRUE, OF_NOT, POSITIVE, Want

Predicate: TypeAlias = Range | Contains


@dataclass(frozen=True, slots=True)
class AllOf:
    """An AND; without parts, TRUE."""

    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class OneOf:
    """An OR; without parts, FALSE."""

    parts: tuple["Node", ...]


Node: TypeAlias = Predicate | AllOf | OneOf


def is_leaf(node: Node) -> TypeGuard[Predicate]:
    """Whether it is a predicate."""
    return isinstance(node, Range | Contains)


TRUE = AllOf(())
FALSE = OneOf(())


@dataclass(frozen=True, slots=True)
class PredicateTree:
    """A filter as a tree of predicates."""

    root: Node
    exact: bool
    """Whether it holds for no event without arrays that the filter does not match."""


def tree_of(expression: Expression) -> PredicateTree:
    """The expression's tree."""
    walk = _Walk()
    return PredicateTree(walk.node(expression, Want.TRUE), walk.exact)


def conjunction(parts: Iterable[Node]) -> Node:
    """The tree that holds where all parts do."""
    made: dict[Node, None] = {}
    for part in parts:
        if part == FALSE:
            return FALSE
        made.update(dict.fromkeys(part.parts if isinstance(part, AllOf) else (part,)))
    return next(iter(made)) if len(made) == 1 else AllOf(tuple(made))


def disjunction(parts: Iterable[Node]) -> Node:
    """The tree that holds where one of the parts does."""
    made: dict[Node, None] = {}
    for part in parts:
        if part == TRUE:
            return TRUE
        made.update(dict.fromkeys(part.parts if isinstance(part, OneOf) else (part,)))
    return next(iter(made)) if len(made) == 1 else OneOf(tuple(made))


def of_cover(cover: Cover) -> Node:
    """The tree of a disjunction of conjunctions."""
    return disjunction(map(conjunction, cover))


def leaves(node: Node) -> Iterator[Predicate]:
    """The predicates, left to right, each as often as it stands there."""
    pending = [node]
    while pending:
        part = pending.pop()
        if isinstance(part, AllOf | OneOf):
            pending.extend(reversed(part.parts))
        else:
            yield part


def size(node: Node) -> int:
    """How many leaves the tree has."""
    return sum(1 for _ in leaves(node))


def least(node: Node) -> int:
    """The least number of leaves that are fulfilled wherever the tree holds; of FALSE more than it has.

    A predicate that stands in the tree twice counts twice: so does whoever counts what is fulfilled.
    """
    match node:
        case AllOf(parts):
            return sum(map(least, parts))
        case OneOf(parts):
            return min(map(least, parts), default=1)
        case _:
            return 1


def holds(node: Node, fulfilled: Callable[[Predicate], bool]) -> bool:
    """Whether the tree holds if these predicates do."""
    match node:
        case AllOf(parts):
            return all(holds(part, fulfilled) for part in parts)
        case OneOf(parts):
            return any(holds(part, fulfilled) for part in parts)
        case predicate:
            return fulfilled(predicate)


def may_match(node: Node, event: Event) -> bool:
    """Whether the tree holds for the event; with arrays, whether it does if each leaf chooses by itself."""
    return holds(node, lambda predicate: event.may_match(((predicate,),)))


def describe(node: Node) -> str:
    """The tree on one line."""
    match node:
        case AllOf(()):
            return "TRUE"
        case OneOf(()):
            return "FALSE"
        case AllOf(parts):
            return " AND ".join(_bracketed(part) for part in parts)
        case OneOf(parts):
            return " OR ".join(_bracketed(part) for part in parts)
        case predicate:
            return describe_constraint(predicate)


def _bracketed(node: Node) -> str:
    return f"({describe(node)})" if isinstance(node, AllOf | OneOf) else describe(node)


class _Walk:
    """One walk over an expression."""

    def __init__(self) -> None:
        self.exact = True

    def node(self, part: Expression, want: Want) -> Node:
        """The tree of the region of the part that is wanted."""
        match part:
            case And(terms) | Or(terms):
                parts = [self.node(term, want) for term in terms]
                return (conjunction if isinstance(part, And) is (want in POSITIVE) else disjunction)(parts)
            case Not(term):
                return self.node(term, OF_NOT[want])
            case IsTrue(term):
                return self.node(term, OF_IS_TRUE[want])
            case Anything():
                return TRUE if want in POSITIVE else FALSE
            case In(_, values) if len({axis_of(value) for value in values}) > 1:
                return self.node(by_axis(part), want)
            case constraint:
                return disjunction(self._constraint(constraint, want))

    def _constraint(self, constraint: Constraint, want: Want) -> Iterator[Node]:
        regions = []
        if want in (Want.TRUE, Want.NOT_FALSE):
            # Leaves are never intersected, so each is asked as if nothing else spoke of its attribute.
            regions.append(where_true(constraint, alone=True))
        else:
            regions.append(where_false(constraint))
        if want in (Want.NOT_TRUE, Want.NOT_FALSE):
            regions.append(where_unknown(constraint))
        for region in regions:
            self.exact = self.exact and region.why is None
            yield of_cover(region.cover)
