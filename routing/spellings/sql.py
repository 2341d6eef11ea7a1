"""SQL predicates: `type = 'order' AND data.price BETWEEN 10 AND 99.5 AND NOT data.country IN ('CH', 'AT')`.

Theory of operation. `sql.lark` is the grammar. The parser is bottom-up and keeps its stack in a list, and
each piece of the tree is made as soon as its text is complete, so no text, however deep, can exhaust the
stack. Depth is counted on the way: AND and OR within their like are one level, redundant parentheses are
none, and NOT is one, also the NOT of `NOT IN` and `IS NOT NULL`. IS [NOT] TRUE is one level, IS [NOT] FALSE
two and IS UNKNOWN three, as if they were spelled with NOT and IS NOT TRUE. So the tree is at most twice as
deep as the limit, and UNKNOWN in UNKNOWN, which takes its condition twice, does not grow beyond measure.

`sql_lexer.py` cuts the text, `parsing.py` parses it, `sql_values.py` reads tokens, `sql_errors.py` explains
what cannot be parsed, and `sql_text.py` writes.
"""

from functools import cache
from typing import Any

from lark.exceptions import UnexpectedToken

from branchline.routing import limits
from branchline.routing.codes import Code
from branchline.routing.expression import (
    And,
    Anything,
    Between,
    CompareFields,
    Comparison,
    Every,
    Expression,
    Formula,
    Has,
    In,
    InBlock,
    IsTrue,
    Matches,
    Not,
    OfKind,
    Or,
    Path,
)
from branchline.routing.spellings.cesql import condition as read_cesql
from branchline.routing.spellings.errors import FilterError, check_text
from branchline.routing.spellings.lexing import Token
from branchline.routing.spellings.parsing import Parser
from branchline.routing.spellings.sql_conditions import Conditions, Node, maybe_negated, several
from branchline.routing.spellings.sql_errors import explained
from branchline.routing.spellings.sql_lexer import SqlLexer
from branchline.routing.spellings.sql_text import write
from branchline.routing.spellings.sql_values import (
    Value,
    offset_in,
    read_operator,
    read_text,
)
from branchline.routing.values import Kind, Operator

__all__ = ["read", "write"]

_FLIPPED = {
    Operator.LT: Operator.GT,
    Operator.LE: Operator.GE,
    Operator.GT: Operator.LT,
    Operator.GE: Operator.LE,
}
_ALL_KINDS = frozenset(Kind)


def read(text: str) -> Expression:
    """The expression that the text spells; raises FilterError if it spells none."""
    check_text(text)
    try:
        node: Node = parser().parse(text)
    except UnexpectedToken as error:
        raise explained(error, text) from None
    return node.expression


class _Builder(Conditions):
    """Makes the pieces of the tree: conditions on one value, and here all else."""

    def either(self, *children: Any) -> Node:
        return _joined(Or, children)

    def both(self, *children: Any) -> Node:
        return _joined(And, children)

    def negation(self, token: Token, node: Node) -> Node:
        return _checked(Node(Not(node.expression), node.depth + 1), token)

    def settled(self, node: Node, is_: Token, negated: Token | None, truth: Token) -> Node:
        term = node.expression
        match truth.type:
            case "TRUE":
                made = Node(IsTrue(term), node.depth + 1)
            case "FALSE":
                made = Node(IsTrue(Not(term)), node.depth + 2)
            case _:
                made = Node(And((Not(IsTrue(term)), Not(IsTrue(Not(term))))), node.depth + 3)
        return _checked(_not_true(made) if negated else made, is_)

    def anything(self, _token: Token) -> Node:
        return Node(Anything(), 0)

    def nothing(self, _token: Token) -> Node:
        return Node(Not(Anything()), 1)

    def every(self, token: Token, node: Node) -> Node:
        match node.expression:
            case Not(OfKind(path, kinds)):
                return Node(Every(OfKind(path, _ALL_KINDS - kinds)), 0)
            case Comparison() | Between() | In() | Matches() | InBlock() | OfKind() as constraint:
                return Node(Every(constraint), 0)
            case Not():
                reason = "EVERY takes no NOT; NOT EVERY ... says that one value does not fit"
                raise (node.negation or token).refusal(Code.FILTER_SYNTAX, reason)
            case _:
                reason = "EVERY takes a condition on one value: =, <, IN, BETWEEN, LIKE, IS NUMBER ..."
                raise token.refusal(Code.FILTER_SYNTAX, reason)

    def exists(self, _exists: Token, path: Path) -> Node:
        return Node(OfKind(path, _ALL_KINDS - {Kind.MISSING}), 0)

    def flipped(self, value: Value, operator: Token, path: Path) -> Node:
        plain = read_operator(operator)
        return Node(Comparison(path, _FLIPPED.get(plain, plain), value.literal), 0)

    def fields(self, path: Path, operator: Token, other: Path) -> Node:
        return Node(CompareFields(path, read_operator(operator), other), 0)

    def is_truth(self, path: Path, _is: Token, negated: Token | None, truth: Token) -> Node:
        made = Node(IsTrue(Comparison(path, Operator.EQ, truth.type == "TRUE")), 1)
        return _not_true(made) if negated else made

    def has(self, path: Path, negated: Token | None, _has: Token, value: Value) -> Node:
        return maybe_negated(Has(path, value.literal), negated)

    def has_several(
        self, path: Path, negated: Token | None, _has: Token, which: Token, values: tuple[Value, ...]
    ) -> Node:
        join = And if which.type == "ALL" else Or
        return several(join, [Has(path, value.literal) for value in values], negated)

    def cesql(self, _cesql: Token, token: Token) -> Node:
        text = read_text(token)
        try:
            root = read_cesql(text)
        except FilterError as error:
            lines = text.split("\n")[: error.line - 1]
            offset = offset_in(token, sum(len(line) + 1 for line in lines) + error.column - 1)
            raise token.refusal(error.rejection.code, f"in CESQL: {error.rejection.reason}", offset) from None
        # Not lowered: what lowering makes is true where the formula is, but may be false where it fails.
        return Node(Formula(root), 0)


def _joined(join: type[And] | type[Or], children: tuple[Any, ...]) -> Node:
    """A node over every second child; the operators between them are there for their places."""
    terms: list[Expression] = []
    depth = 0
    for node in children[::2]:
        if isinstance(node.expression, join):
            terms += node.expression.terms
            depth = max(depth, node.depth)
        else:
            terms.append(node.expression)
            depth = max(depth, node.depth + 1)
    return _checked(Node(join(tuple(terms)), depth), children[1])


def _not_true(node: Node) -> Node:
    """The negation of what IS made: IS NOT TRUE is one level, as IS TRUE is."""
    deeper = 0 if isinstance(node.expression, IsTrue) else 1
    return Node(Not(node.expression), node.depth + deeper)


def _checked(node: Node, token: Token) -> Node:
    # The innermost level that is too many is refused at once, so the actual depth is never known.
    if node.depth > limits.FILTER_MAX_DEPTH:
        reason = (
            f"the conditions are nested at least {node.depth} deep; the limit is {limits.FILTER_MAX_DEPTH}"
        )
        raise token.refusal(Code.FILTER_TOO_DEEP, reason)
    return node


@cache
def parser() -> Parser:
    """Parses a text that has passed `check_text`."""
    return Parser("sql.lark", SqlLexer, _Builder())
