"""CESQL, the CloudEvents expression language: `type = 'order' AND (source LIKE '/shop/%' OR EXISTS subject)`.

Theory of operation. `cesql.lark` is the grammar and `cesql_lexer.py` cuts the text; as in SQL the parser
keeps its stack in a list and makes each piece of the tree as soon as its text is complete, counting depth on
the way, so no text can exhaust the stack. `read` then says in Branchline's own expressions what these can
say (`cesql/lower.py`), so that routing can index it, and leaves the rest as formulas.

CESQL's AND, OR and XOR bind alike, and NOT binds closer than anything: `NOT a = b` is `(NOT a) = b`. Names
keep their case, so that attributes of plain JSON events can be named too.
"""

from functools import cache
from typing import NamedTuple

from lark.exceptions import UnexpectedToken

from branchline.routing import limits
from branchline.routing.cesql.casts import INTEGERS, Type
from branchline.routing.cesql.evaluate import returns
from branchline.routing.cesql.functions import FUNCTIONS, resolve
from branchline.routing.cesql.lower import lower
from branchline.routing.cesql.text import read_pattern, unquoted, write
from branchline.routing.cesql.tree import (
    All,
    Among,
    Any,
    Arithmetic,
    Calculate,
    Call,
    Compare,
    Constant,
    Exists,
    Identifier,
    Like,
    Negate,
    Node,
    Not,
    Xor,
)
from branchline.routing.codes import Code
from branchline.routing.expression import Expression
from branchline.routing.spellings.cesql_lexer import KEYWORDS, CesqlLexer
from branchline.routing.spellings.errors import FilterError, Words, check_text, clipped, in_words, place
from branchline.routing.spellings.lexing import OPERATORS, Token
from branchline.routing.spellings.parsing import Parser

__all__ = ["parse", "read", "write"]

_OPERAND = frozenset(
    {"NAME", "FUNCTION", "INTEGER", "STRING", "TRUE", "FALSE", "NOT", "EXISTS", "_LPAR", "PLUS", "MINUS"}
)
_WORDS: Words = (
    (_OPERAND, "an attribute, a value or a condition"),
    (frozenset({"COMPARE", "PLUS", "MINUS", "STAR", "SLASH", "PERCENT"}), "an operator"),
    (frozenset({"LIKE", "IN", "NOT"}), "LIKE, IN, NOT LIKE, NOT IN"),
    (frozenset({"NAME"}), "an attribute"),
    (frozenset({"STRING"}), "text in quotes"),
    (frozenset({"INTEGER"}), "an integer"),
    (frozenset({"_COMMA"}), "a comma"),
    (frozenset({"_LPAR"}), "an opening parenthesis"),
    (frozenset({"_RPAR"}), "a closing parenthesis"),
    (frozenset({"$END"}), "the end of the filter"),
)

_ARITHMETIC = {operator.value: operator for operator in Arithmetic}


def read(text: str) -> Expression:
    """The expression that the text spells as a filter; raises FilterError if it spells none."""
    return lower(condition(text))


def condition(text: str) -> Node:
    """The tree of a text that can be true or false; raises FilterError if it cannot."""
    piece = _parse(text)
    if piece.unknown is not None:
        raise _unknown(piece.unknown)
    kind = returns(piece.node)
    if kind is not None and kind is not Type.BOOLEAN:
        reason = f"a filter must be true or false; this expression is always of type {kind.value}"
        raise FilterError(Code.FILTER_TYPE, reason, *place(text, len(text) - len(text.lstrip())))
    return piece.node


def parse(text: str) -> Node:
    """The expression that the text spells, which may be of any type and call functions that are not there."""
    return _parse(text).node


class _Invocation(NamedTuple):
    """A call, where it stands."""

    token: Token
    name: str
    arguments: int


class _Piece(NamedTuple):
    """A piece of the tree: how deep its logic and all else are nested, and its first unknown function."""

    node: Node
    logic: int = 0
    nesting: int = 0
    unknown: _Invocation | None = None


def _parse(text: str) -> _Piece:
    check_text(text)
    try:
        piece: _Piece = parser().parse(text)
    except UnexpectedToken as error:
        raise _explained(error, text) from None
    return piece


class _Builder:
    """Makes the pieces of the tree: one method per rule or alternative of the grammar."""

    def both(self, left: _Piece, token: Token, right: _Piece) -> _Piece:
        return _joined(All, left, token, right)

    def either(self, left: _Piece, token: Token, right: _Piece) -> _Piece:
        return _joined(Any, left, token, right)

    def parity(self, left: _Piece, token: Token, right: _Piece) -> _Piece:
        return _joined(Xor, left, token, right)

    def negation(self, token: Token, term: _Piece) -> _Piece:
        term = _condition(term)
        return _checked(term._replace(node=Not(term.node), logic=term.logic + 1), token)

    def comparison(self, left: _Piece, token: Token, right: _Piece) -> _Piece:
        return _made(Compare(left.node, OPERATORS[token.value], right.node), token, left, right)

    def calculation(self, left: _Piece, token: Token, right: _Piece) -> _Piece:
        return _made(Calculate(left.node, _ARITHMETIC[token.value], right.node), token, left, right)

    def like(self, term: _Piece, negated: Token | None, like: Token, pattern: Token) -> _Piece:
        made = _made(Like(term.node, read_pattern(unquoted(pattern.value))), like, term)
        return made if negated is None else self.negation(negated, made)

    def among(self, left: _Piece, negated: Token | None, token: Token, values: tuple[_Piece, ...]) -> _Piece:
        if len(values) > limits.FILTER_MAX_IN_VALUES:
            reason = f"the IN list has {len(values)} values; the limit is {limits.FILTER_MAX_IN_VALUES}"
            raise token.refusal(Code.FILTER_TOO_MANY_VALUES, reason)
        made = _made(Among(left.node, tuple(value.node for value in values)), token, left, *values)
        return made if negated is None else self.negation(negated, made)

    def minus(self, token: Token, term: _Piece) -> _Piece:
        return _made(Negate(term.node), token, term)

    def positive(self, *tokens: Token) -> _Piece:
        return _Piece(Constant(_integer(tokens[-1], "")))

    def negative(self, _minus: Token, token: Token) -> _Piece:
        return _Piece(Constant(_integer(token, "-")))

    def text(self, token: Token) -> _Piece:
        return _Piece(Constant(unquoted(token.value)))

    def boolean(self, token: Token) -> _Piece:
        return _Piece(Constant(token.type == "TRUE"))

    def identifier(self, token: Token) -> _Piece:
        return _Piece(Identifier(_name(token)))

    def exists(self, _exists: Token, token: Token) -> _Piece:
        return _Piece(Exists(_name(token)))

    def call(self, token: Token, values: tuple[_Piece, ...] | None) -> _Piece:
        name, pieces = token.value.upper(), values or ()
        made = _made(Call(name, tuple(piece.node for piece in pieces)), token, *pieces)
        if resolve(name, len(pieces)) is None:
            return made._replace(unknown=_Invocation(token, name, len(pieces)))
        return made

    def values(self, *pieces: _Piece) -> tuple[_Piece, ...]:
        return pieces


def _joined(join: type[All] | type[Any] | type[Xor], left: _Piece, token: Token, right: _Piece) -> _Piece:
    terms: list[Node] = []
    logic = nesting = 0
    for piece in (_condition(left), _condition(right)):
        node, deep, nested, _ = piece
        if isinstance(node, join):
            terms += node.terms
        else:
            terms.append(node)
            deep += 1
        logic = max(logic, deep)
        nesting = max(nesting, nested)
    return _checked(_Piece(join(tuple(terms)), logic, nesting, left.unknown or right.unknown), token)


def _condition(piece: _Piece) -> _Piece:
    # What is not Boolean is cast, and the cast may have to be spelled out as a call.
    return piece if returns(piece.node) is Type.BOOLEAN else piece._replace(nesting=piece.nesting + 1)


def _made(node: Node, token: Token, *pieces: _Piece) -> _Piece:
    logic = nesting = 0
    unknown: _Invocation | None = None
    for piece in pieces:
        logic = max(logic, piece.logic)
        nesting = max(nesting, piece.nesting)
        unknown = unknown or piece.unknown
    return _checked(_Piece(node, logic, nesting + 1, unknown), token)


def _checked(piece: _Piece, token: Token) -> _Piece:
    # The innermost level that is too many is refused at once, so the actual depth is never known.
    if piece.logic > limits.FILTER_MAX_DEPTH:
        reason = (
            f"AND, OR, XOR and NOT are nested at least {piece.logic} deep; "
            f"the limit is {limits.FILTER_MAX_DEPTH}{_bind_alike(piece.node)}"
        )
        raise token.refusal(Code.FILTER_TOO_DEEP, reason)
    if piece.nesting > limits.CESQL_MAX_DEPTH:
        reason = (
            f"operators and functions are nested {piece.nesting} deep; the limit is {limits.CESQL_MAX_DEPTH}"
        )
        raise token.refusal(Code.FILTER_TOO_DEEP, reason)
    return piece


def _bind_alike(node: Node) -> str:
    if isinstance(node, All | Any | Xor) and isinstance(node.terms[0], All | Any | Xor):
        return "; they bind alike and group from the left, so a mixed chain is nested: use parentheses"
    return ""


def _unknown(call: _Invocation) -> FilterError:
    if call.name in FUNCTIONS:
        reason = f"{call.name} does not take {call.arguments} arguments"
    else:
        reason = f"there is no function {clipped(call.name)}; known: {', '.join(FUNCTIONS)}"
    return call.token.refusal(Code.FILTER_SYNTAX, reason)


def _name(token: Token) -> str:
    name = token.value
    if len(name) > limits.NAME_MAX_BYTES:
        reason = f"the name has {len(name)} bytes; the limit is {limits.NAME_MAX_BYTES}"
        raise token.refusal(Code.FILTER_NAME_TOO_LONG, reason)
    return name


def _integer(token: Token, sign: str) -> int:
    digits = token.value.lstrip("0") or "0"
    if len(digits) > len(str(INTEGERS[-1])) or int(sign + digits) not in INTEGERS:
        number = sign + clipped(token.value)
        reason = f"{number} is no integer of CESQL; they go from {INTEGERS[0]} to {INTEGERS[-1]}"
        raise token.refusal(Code.FILTER_NUMBER, reason)
    return int(sign + digits)


@cache
def parser() -> Parser:
    """Parses a text that has passed `check_text`."""
    return Parser("cesql.lark", CesqlLexer, _Builder())


def _explained(error: UnexpectedToken, text: str) -> FilterError:
    token: Token = error.token
    if token.type == "STRANGE":
        return token.refusal(Code.FILTER_SYNTAX, _strange(token.value))
    accepts = set(error.accepts)
    if accepts & {"_RPAR", "$END"}:
        # The parser has closed the operand before it saw that the next word does not follow one.
        accepts |= {"AND", "OR", "XOR"}
    if token.type == "$END":
        reason = f"the filter ends too early; expected {in_words(accepts, _WORDS)}"
        return FilterError(Code.FILTER_SYNTAX, reason, *place(text, len(text.rstrip())))
    hint = (
        "; a keyword cannot name an attribute in CESQL"
        if token.type in KEYWORDS and "NAME" in accepts
        else ""
    )
    reason = f"expected {in_words(accepts, _WORDS)}, found {clipped(token.value)}{hint}"
    return token.refusal(Code.FILTER_SYNTAX, reason)


def _strange(character: str) -> str:
    if character in "'\"":
        return f"this text has no closing quote; within it, {character} is written \\{character}"
    if character.isascii() and character.isdigit():
        return "this is not an integer"
    if character == ".":
        return "CESQL knows attributes by one name, and no paths"
    if character == "_" or character.isalpha():
        return "attributes have names of ASCII letters and digits in CESQL"
    return f"the character {character!a} means nothing here"
