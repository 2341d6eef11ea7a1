"""SQL predicates: `type = 'order' AND data.price BETWEEN 10 AND 99.5 AND NOT data.country IN ('CH', 'AT')`.

Theory of operation. `sql.lark` is the grammar. The parser is bottom-up and keeps its stack in a list, and
each piece of the tree is made as soon as its text is complete, so no text, however deep, can exhaust the
stack. Depth is counted on the way: AND and OR within their like are one level, redundant parentheses are
none, and NOT is one, also the NOT of `NOT IN` and `IS NOT NULL`.

What lark cannot parse becomes an error that says in words what was expected, and where.
"""

import math
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from branchline.routing import limits
from branchline.routing.codes import Code
from branchline.routing.expression import (
    And,
    Anything,
    Between,
    Comparison,
    Constraint,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Operator,
    Or,
    Path,
)
from branchline.routing.spellings.errors import FilterError, Words, clipped, in_words, place
from branchline.routing.spellings.sql_text import KEYWORDS, write
from branchline.routing.values import kind

__all__ = ["read", "write"]

_WORDS: Words = (
    (KEYWORDS | {"NAME", "QUOTED"}, "a name"),
    (
        frozenset({"NAME", "QUOTED", "NUMBER", "STRING", "TRUE", "FALSE", "NOT", "LPAR"}),
        "a condition such as price > 5",
    ),
    (frozenset({"NUMBER", "STRING", "TRUE", "FALSE"}), "a value"),
    (frozenset({"NAME", "QUOTED"}), "an attribute"),
    (frozenset({"STRING"}), "text in single quotes"),
    (frozenset({"COMPARE"}), "a comparison (=, <>, <, <=, >, >=)"),
    (frozenset({"DOT"}), ""),
    (frozenset({"COMMA"}), "a comma"),
    (frozenset({"LPAR"}), "an opening parenthesis"),
    (frozenset({"RPAR"}), "a closing parenthesis"),
    (frozenset({"$END"}), "the end of the filter"),
)

_FLIPPED = {
    Operator.LT: Operator.GT,
    Operator.LE: Operator.GE,
    Operator.GT: Operator.LT,
    Operator.GE: Operator.LE,
}


def read(text: str) -> Expression:
    """The expression that the text spells; raises FilterError if it spells none."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise FilterError(
            Code.FILTER_SYNTAX, "half of a surrogate pair is not a character", *place(text, error.start)
        ) from None
    if size > limits.FILTER_MAX_BYTES:
        reason = f"the filter has {size} bytes; the limit is {limits.FILTER_MAX_BYTES}"
        raise FilterError(Code.FILTER_TOO_LONG, reason, 1, 1)
    if not text.strip():
        raise FilterError(Code.FILTER_SYNTAX, "the filter is empty; write TRUE to get every event", 1, 1)
    try:
        node: _Node = _parser().parse(text)  # type: ignore[assignment]  # the builder makes nodes, not trees
    except UnexpectedInput as error:
        raise _explained(error, text) from None
    return node.expression


class _Node(NamedTuple):
    """A piece of the tree and its depth: how many AND, OR and NOT are above its deepest constraint."""

    expression: Expression
    depth: int


class _Value(NamedTuple):
    literal: Literal
    token: Token


def _refusal(token: Token, code: Code, reason: str) -> FilterError:
    return FilterError(code, reason, token.line or 1, token.column or 1)


@v_args(inline=True)
class _Builder(Transformer[Token, Any]):
    """Makes the pieces of the tree: one method per rule or alternative of the grammar."""

    def either(self, *children: Any) -> _Node:
        return _joined(Or, children)

    def both(self, *children: Any) -> _Node:
        return _joined(And, children)

    def negation(self, token: Token, node: _Node) -> _Node:
        return _checked(_Node(Not(node.expression), node.depth + 1), token)

    def anything(self, _token: Token) -> _Node:
        return _Node(Anything(), 0)

    def comparison(self, path: Path, operator: Token, value: _Value) -> _Node:
        return _Node(Comparison(path, _operator(operator), value.literal), 0)

    def flipped(self, value: _Value, operator: Token, path: Path) -> _Node:
        plain = _operator(operator)
        return _Node(Comparison(path, _FLIPPED.get(plain, plain), value.literal), 0)

    def among(self, path: Path, negated: Token | None, _in: Token, values: tuple[_Value, ...]) -> _Node:
        return _maybe_negated(In(path, tuple(value.literal for value in values)), negated)

    def between(
        self, path: Path, negated: Token | None, _between: Token, low: _Value, _and: Token, high: _Value
    ) -> _Node:
        one, other = kind(low.literal), kind(high.literal)
        if one is None or other is None or one is not other:
            reason = (
                f"BETWEEN needs two ends of one type, not {one and one.value} and {other and other.value}"
            )
            raise _refusal(high.token, Code.FILTER_TYPE, reason)
        return _maybe_negated(Between(path, low.literal, high.literal), negated)

    def like(self, path: Path, negated: Token | None, _like: Token, pattern: Token) -> _Node:
        return _maybe_negated(Like(path, _unquoted(pattern)), negated)

    def is_null(self, path: Path, _is: Token, negated: Token | None, _null: Token) -> _Node:
        return _maybe_negated(IsNull(path), negated)

    def path(self, *tokens: Token) -> Path:
        return tuple(_name(token) for token in tokens)

    def literals(self, *values: _Value) -> tuple[_Value, ...]:
        if len(values) > limits.FILTER_MAX_IN_VALUES:
            reason = f"the IN list has {len(values)} values; the limit is {limits.FILTER_MAX_IN_VALUES}"
            raise _refusal(values[limits.FILTER_MAX_IN_VALUES].token, Code.FILTER_TOO_MANY_VALUES, reason)
        return values

    def literal(self, token: Token) -> _Value:
        match token.type:
            case "NUMBER":
                return _Value(_number(token), token)
            case "STRING":
                return _Value(_unquoted(token), token)
            case _:
                return _Value(token.type == "TRUE", token)


def _joined(join: type[And] | type[Or], children: tuple[Any, ...]) -> _Node:
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
    return _checked(_Node(join(tuple(terms)), depth), children[1])


def _maybe_negated(constraint: Constraint, negated: Token | None) -> _Node:
    return _Node(constraint, 0) if negated is None else _Node(Not(constraint), 1)


def _checked(node: _Node, token: Token) -> _Node:
    # The innermost level that is too many is refused at once, so the actual depth is never known.
    if node.depth > limits.FILTER_MAX_DEPTH:
        reason = (
            f"AND, OR and NOT are nested at least {node.depth} deep; the limit is {limits.FILTER_MAX_DEPTH}"
        )
        raise _refusal(token, Code.FILTER_TOO_DEEP, reason)
    return node


def _operator(token: Token) -> Operator:
    return Operator.NE if token == "!=" else Operator(str(token))


def _unquoted(token: Token) -> str:
    quote = token[0]
    return token[1:-1].replace(quote * 2, quote)


def _name(token: Token) -> str:
    name = _unquoted(token) if token.type == "QUOTED" else str(token)
    size = len(name.encode())
    if size > limits.NAME_MAX_BYTES:
        reason = f"the name has {size} bytes; the limit is {limits.NAME_MAX_BYTES}"
        raise _refusal(token, Code.FILTER_NAME_TOO_LONG, reason)
    return name


def _number(token: Token) -> int | float:
    if len(token) > limits.NUMBER_MAX_CHARS:
        reason = f"the number has {len(token)} characters; the limit is {limits.NUMBER_MAX_CHARS}"
        raise _refusal(token, Code.FILTER_NUMBER, reason)
    if token.lstrip("+-").isdigit():
        return int(token)
    number = float(token)
    if math.isinf(number):
        raise _refusal(token, Code.FILTER_NUMBER, f"{clipped(token)} is too large for a decimal number")
    return number


@cache
def _parser() -> Lark:
    # Through importlib, because Spark may ship the package to its workers as a zip file.
    grammar = resources.files(__package__).joinpath("sql.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer="basic", transformer=_Builder())


def _explained(error: UnexpectedInput, text: str) -> FilterError:
    if isinstance(error, UnexpectedCharacters):
        return FilterError(Code.FILTER_SYNTAX, _strange(error.char), error.line, error.column)
    assert isinstance(error, UnexpectedToken)
    accepts = set(error.accepts)
    if accepts & {"RPAR", "$END"} and "COMMA" not in accepts:
        # The parser has closed the condition before it saw that the next word does not follow one.
        accepts |= {"AND", "OR"}
    token = error.token
    if token.type == "$END":
        reason = f"the filter ends too early; expected {in_words(accepts, _WORDS)}"
        return FilterError(Code.FILTER_SYNTAX, reason, *place(text, len(text.rstrip())))
    reason = f"expected {in_words(accepts, _WORDS)}, found {clipped(token)}{_hint(token, accepts)}"
    return _refusal(token, Code.FILTER_SYNTAX, reason)


def _strange(character: str) -> str:
    match character:
        case "'":
            return "this text has no closing quote"
        case '"':
            return "this quoted name has no closing quote"
        case _ if character in "+-.0123456789":
            return "this is not a number"
        case _:
            return f"the character {character!a} means nothing here"


def _hint(token: Token, accepts: set[str]) -> str:
    if token.type == "NULL" and accepts & {"STRING", "NUMBER"}:
        return "; nothing equals NULL: write IS NULL or IS NOT NULL"
    if token.type in KEYWORDS and "NAME" in accepts:
        return f'; as a name it is written "{token}"'
    if token.type in ("NAME", "QUOTED") and "STRING" in accepts:
        return "; text stands in single quotes"
    return ""
