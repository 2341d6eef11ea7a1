"""CESQL expressions as Branchline's own, as far as these can say the same; the rest stays a `Formula`.

Theory of operation. CESQL knows true, false and errors, and looks at its terms from the left: an error that
a term before has made irrelevant never happens. Branchline's unknown is not that: `unknown OR true` is true,
while CESQL's `missing = 'a' OR TRUE` is an error. So two expressions are made of each node: one is true
exactly where the node is true, the other exactly where it is false. What they are elsewhere, false or
unknown, does not matter, because AND and OR ask of their terms only whether they are true:

    true(a AND b) = true(a) AND true(b)             false(a OR b)  = false(a) AND false(b)
    true(a OR b)  = true(a) OR (passed(a) AND true(b))
    false(a AND b) = false(a) OR (passed(a) AND false(b))

NOT swaps the two. Where a has not settled the chain, passed(a) need only say that it is no error: mostly,
that its attribute is there. That is left out where what follows implies it, so a chain over one attribute
is bare.

What becomes a formula depends on the node alone, not on what is around it: a formula that is written as text
is read as the same formula. A formula is made of a chain that looks at more than CHAIN_MAX_ATTRIBUTES
attributes in a place where their presence matters, or that would become much larger than it was spelled,
and of the whole if the result is nested deeper than a filter may be.

Cost: a few passes over the tree for each of its levels. Recursion is bounded by FILTER_MAX_DEPTH.
"""

from collections.abc import Callable, Iterable

from branchline.routing.cesql.casts import ErrorKind, Type
from branchline.routing.cesql.evaluate import Result, evaluate, returns
from branchline.routing.cesql.leaves import (
    NEVER,
    FormulaLeaf,
    Leaf,
    Settled,
    all_of,
    any_of,
    present,
    read_leaf,
)
from branchline.routing.cesql.tree import (
    All,
    Any,
    Call,
    Constant,
    Exists,
    Identifier,
    Node,
    Not,
    below,
    nodes,
)
from branchline.routing.expression import And, Anything, Comparison, Expression, Formula, IsTrue, Or
from branchline.routing.expression import Not as Negation
from branchline.routing.limits import FILTER_MAX_DEPTH
from branchline.routing.values import MISSING, Operator

CHAIN_MAX_ATTRIBUTES = 16
"""Attributes whose presence a chain of conditions may repeat for each of its terms."""

_GROWTH = 4
_SLACK = 64


def may_hold(root: Node) -> bool:
    """Whether the expression makes a filter: its value can be Boolean."""
    return returns(root) in (None, Type.BOOLEAN)


def lower(root: Node) -> Expression:
    """An expression that is true for exactly the events for which CESQL's is, without an error.

    The CESQL expression must be one that may hold.
    """
    assert may_hold(root)
    if not _varies(root):
        return Anything() if _is_true(root) else NEVER
    if isinstance(root, Identifier):
        return Comparison((root.name,), Operator.EQ, True)
    lowered = _Lowering().true(root)
    return lowered if _depth(lowered) <= FILTER_MAX_DEPTH else Formula(root)


class _TooLarge(Exception):
    """An expression would be larger than its formula is worth."""


class _Lowering:
    """Makes the expressions of the nodes of one tree, each once."""

    def __init__(self) -> None:
        # By identity: equal nodes would be found only after a walk over both.
        self._made: dict[tuple[str, int], Expression] = {}
        self._leaves: dict[int, Leaf] = {}

    def true(self, node: Node) -> Expression:
        """True exactly where the node, cast to Boolean, is true."""
        return self._once("true", node, self._true)

    def false(self, node: Node) -> Expression:
        """True exactly where the node, cast to Boolean, is false."""
        return self._once("false", node, self._false)

    def _once(self, name: str, node: Node, make: Callable[[Node], Expression]) -> Expression:
        key = name, id(node)
        if key not in self._made:
            self._made[key] = make(node)
        return self._made[key]

    def _true(self, node: Node) -> Expression:
        match node:
            case Not(term):
                return self.false(term)
            case All(terms):
                return all_of(map(self.true, terms))
            case Any():
                try:
                    return any_of(self._settled(node, self.true, self.false, self._when_true))
                except _TooLarge:
                    return Formula(node)
            case _:
                return self._leaf(node).true()

    def _false(self, node: Node) -> Expression:
        match node:
            case Not(term):
                return self.true(term)
            case Any(terms):
                return all_of(map(self.false, terms))
            case All():
                try:
                    return any_of(self._settled(node, self.false, self.true, self._when_false))
                except _TooLarge:
                    return Formula(Not(node))
            case _:
                return self._leaf(node).false()

    def _settled(
        self,
        chain: All | Any,
        settles: Callable[[Node], Expression],
        passes: Callable[[Node], Expression],
        implied: Callable[[Node], frozenset[str]],
    ) -> list[Expression]:
        """For each term, that it settles the chain, given that the terms before it have not."""
        room = _GROWTH * sum(1 for _ in nodes(chain)) + _SLACK
        names: dict[str, None] = {}
        others: dict[Expression, frozenset[str] | None] = {}
        made = []
        for term in chain.terms:
            there = implied(term)
            before = [present(name) for name in names if name not in there]
            before += [other for other, enough in others.items() if enough is None or not enough <= there]
            made.append(all_of((*before, settles(term))))
            room -= _size(made[-1])
            if room < 0 or len(names) > CHAIN_MAX_ATTRIBUTES:
                raise _TooLarge
            leaf = self._leaf_below(term)
            needs = None if leaf is None else leaf.needs()
            if needs is not None:
                names |= dict.fromkeys(sorted(needs))
            else:
                defined = None if leaf is None else leaf.defined()
                passed = passes(term) if defined is None else defined
                others[passed] = self._enough(term)
        return made

    def _enough(self, node: Node) -> frozenset[str] | None:
        """Attributes whose presence is enough for the node to be no error; None if there are none such."""
        match node:
            case Not(term):
                return self._enough(term)
            case All(terms) | Any(terms):
                found = [self._enough(term) for term in terms]
                return None if None in found else frozenset().union(*filter(None, found))
            case _:
                return self._leaf(node).needs()

    def _leaf_below(self, node: Node) -> Leaf | None:
        """The leaf, if there is nothing but NOT above it: what is no error is none with NOT either."""
        while isinstance(node, Not):
            node = node.term
        return None if isinstance(node, All | Any) else self._leaf(node)

    def _when_true(self, node: Node) -> frozenset[str]:
        """Attributes that are there where the node is true."""
        match node:
            case Not(term):
                return self._when_false(term)
            case All(terms):
                return frozenset().union(*map(self._when_true, terms))
            case Any(terms):
                return self._when_defined(terms[0])
            case _:
                return self._leaf(node).implies()

    def _when_false(self, node: Node) -> frozenset[str]:
        """Attributes that are there where the node is false."""
        match node:
            case Not(term):
                return self._when_true(term)
            case Any(terms):
                return frozenset().union(*map(self._when_false, terms))
            case All(terms):
                return self._when_defined(terms[0])
            case _:
                return self._leaf(node).implies()

    def _when_defined(self, node: Node) -> frozenset[str]:
        """Attributes that are there where the node has no error."""
        match node:
            case Not(term):
                return self._when_defined(term)
            case All(terms) | Any(terms):
                return self._when_defined(terms[0])
            case _:
                return self._leaf(node).implies()

    def _leaf(self, node: Node) -> Leaf:
        key = id(node)
        if key not in self._leaves:
            self._leaves[key] = _make_leaf(node)
        return self._leaves[key]


def _make_leaf(node: Node) -> Leaf:
    """The leaf for a node that is not a combination, or not one that expressions can say."""
    # The cast to Boolean, which every operand of logic gets, is spelled out if it does anything.
    condition = node if returns(node) is Type.BOOLEAN else Call("BOOL", (node,))
    if not _varies(node):
        match _constant(condition):
            case Result(bool(value), None):
                return Settled(value)
            case _:
                return Settled(None)
    return read_leaf(condition, _fold) or FormulaLeaf(condition)


def _fold(node: Node) -> Node:
    """The node's value, if it is the same for all events and no error."""
    if isinstance(node, (Constant, Identifier)) or _varies(node):
        return node
    result = _constant(node)
    return Constant(result.value) if result.error is None else node


def _varies(node: Node) -> bool:
    # Not by way of `identifiers`: mostly the leftmost leaf is one, and is found before a generator is made.
    return isinstance(node, (Identifier, Exists)) or any(map(_varies, below(node)))


def _is_true(node: Node) -> bool:
    result = _constant(node)
    return result.value is True and result.error is None


def _constant(node: Node) -> Result:
    result = evaluate(node, lambda _: MISSING)
    assert result.error is not ErrorKind.MISSING_ATTRIBUTE
    return result


def _size(expression: Expression) -> int:
    count = 0
    pending: list[Expression] = [expression]
    while pending:
        count += 1
        pending += _terms(pending.pop())
    return count


def _depth(expression: Expression) -> int:
    """How many levels of AND, OR and NOT there are."""
    depth = 0
    level: list[Expression] = [expression]
    while level := [term for each in level for term in _terms(each)]:
        depth += 1
    return depth


def _terms(expression: Expression) -> Iterable[Expression]:
    if isinstance(expression, (And, Or)):
        return expression.terms
    if isinstance(expression, (Negation, IsTrue)):
        return (expression.term,)
    return ()
