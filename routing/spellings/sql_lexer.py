"""Cuts the text of an SQL predicate into tokens for lark's parser.

One regular expression finds them all. What a word is hangs on its place: after a dot every word is a name,
and a soft keyword is one only where the parser can go on with it. A hard keyword is a keyword everywhere
else, so that an error is found at the word that is wrong. A character that begins no token becomes a token
STRANGE, which the parser never expects.

Lark's own lexer counts lines and columns at every token and takes several times as long; here a token
knows its text, and counts when an error asks.
"""

import re
from collections.abc import Iterator
from typing import Any

from lark import Token
from lark.lexer import Lexer, LexerState

from branchline.routing.codes import Code
from branchline.routing.spellings.errors import FilterError, place

KEYWORDS = frozenset(
    {"AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "IS", "NULL", "TRUE", "FALSE", "EXISTS", "EVERY"}
)
"""The hard keywords: as the first name of a path they need quotes."""

# fmt: off
SOFT_KEYWORDS = frozenset({
    "CONTAINS", "STARTS", "ENDS", "WITH", "IGNORE", "CASE", "ESCAPE", "ILIKE", "CIDR", "TIMESTAMP", "HAS",
    "ALL", "ANY", "MISSING", "JSON", "BOOLEAN", "NUMBER", "TEXT", "OBJECT", "UNKNOWN", "CESQL",
})
# fmt: on

_TYPES = {word: word for word in KEYWORDS | SOFT_KEYWORDS} | {"NUMBER": "NUMBER_KIND"}

# A quoted text or name that is not closed must not end at the last pair of quotes in it: hence the lookahead.
# What follows a number must not look like more of it: 12abc and 1.2.3 are mistakes.
_TOKEN = re.compile(
    r"""\s*(?:
    (?P<WORD>[^\W\d]\w*)
    | (?P<_DOT>\.(?![0-9]))
    | (?P<COMPARE><>|!=|<=|>=|=|<|>)
    | (?P<STRING>'[^']*(?:''[^']*)*'(?!'))
    | (?P<NUMBER>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.]))
    | (?P<_LPAR>\()
    | (?P<_RPAR>\))
    | (?P<_COMMA>,)
    | (?P<QUOTED>"[^"]*(?:""[^"]*)*"(?!"))
    | (?P<STRANGE>\S)
    )""",
    re.VERBOSE,
)


class SqlToken(Token):
    """A token that counts its line and column when asked."""

    __slots__ = ("source",)

    value: str
    source: str
    # They hide the attributes of the base class: lark reads them, but only to pass them on.
    line = column = end_line = end_column = end_pos = None

    def __new__(cls, type: str, value: str, start_pos: int, source: str) -> "SqlToken":
        token = str.__new__(cls, value)
        token.type = type
        token.value = value
        token.start_pos = start_pos
        token.source = source
        return token

    def refusal(self, code: Code, reason: str, offset: int = 0) -> FilterError:
        """Why this token, or what is at a place in it, cannot stand here."""
        return FilterError(code, reason, *place(self.source, (self.start_pos or 0) + offset))


class SqlLexer(Lexer):
    """What lark calls for tokens. It asks for one when the parser has taken the one before."""

    __future_interface__ = 2

    def __init__(self, _conf: object) -> None:
        pass

    def lex(self, lexer_state: LexerState, parser_state: Any) -> Iterator[SqlToken]:
        text = lexer_state.text.text
        states = parser_state.parse_conf.states
        stack = parser_state.state_stack
        after_dot = False
        # Without the blanks at its end, of which the expression would try every one as the beginning.
        for found in _TOKEN.finditer(text.rstrip()):
            type_ = found.lastgroup or ""
            value = found[type_]
            if type_ == "WORD":
                type_ = _TYPES.get(value.upper(), "NAME") if value.isascii() else "NAME"
                if after_dot or (type_ not in KEYWORDS and type_ not in states[stack[-1]]):
                    type_ = "NAME"
            elif type_ == "QUOTED":
                type_ = "NAME"
            after_dot = type_ == "_DOT"
            yield SqlToken(type_, value, found.end() - len(value), text)
