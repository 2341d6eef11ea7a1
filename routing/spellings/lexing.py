"""Tokens, and the lexer that cuts the text of a filter into them for lark's parser or for our own.

One regular expression finds them all: its groups are the types of the tokens, but for two. A WORD is given
its type by the spelling, which may ask what the parser can go on with. A STRANGE is a character that begins
no token, and the parser never expects one. So the expression finds something wherever there is no blank.

Lark's own lexer counts lines and columns at every token and takes several times as long; here a token
knows its text, and counts when an error asks.
"""

import re
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator
from typing import Any, ClassVar, NamedTuple, TypeAlias

from lark.lexer import Lexer, LexerState

from branchline.routing.codes import Code
from branchline.routing.spellings.errors import FilterError, place
from branchline.routing.values import Operator

Expected: TypeAlias = Callable[[], Collection[str]]
"""Asks the parser which types of token it can go on with."""

OPERATORS = {"!=": Operator.NE} | {operator.value: operator for operator in Operator}
"""What the spellings of a comparison stand for."""


class _Fields(NamedTuple):
    type: str
    value: str
    start_pos: int
    source: str


class Token(_Fields):
    """A token that counts its line and column when asked. Lark wants no more of one than is here."""

    __slots__ = ()

    # Lark reads them, but only to pass them on.
    line = column = end_line = end_column = end_pos = None

    def refusal(self, code: Code, reason: str, offset: int = 0) -> FilterError:
        """Why this token, or what is at a place in it, cannot stand here."""
        return FilterError(code, reason, *place(self.source, self.start_pos + offset))


class WordLexer(Lexer):
    """What the spellings' lexers have in common: they cut a token when the parser has taken the last one."""

    __future_interface__ = 2

    master: ClassVar[re.Pattern[str]]
    """Finds the next token and the blanks before it."""

    def __init__(self, _conf: object = None) -> None:
        pass

    @staticmethod
    @abstractmethod
    def word(value: str, expected: Expected) -> str:
        """The type of a WORD."""

    def cut(self, text: str, expected: Expected) -> Iterator[Token]:
        """The tokens, each cut when it is asked for."""
        word, new = self.word, tuple.__new__
        # Without the blanks at its end, of which the expression would try every one as the beginning.
        for found in self.master.finditer(text.rstrip()):
            type_ = found.lastgroup or ""
            value = found[type_]
            if type_ == "WORD":
                type_ = word(value, expected)
            # As Token(...) does it, without a call in between.
            yield new(Token, (type_, value, found.end() - len(value), text))

    def lex(self, lexer_state: LexerState, parser_state: Any) -> Iterator[Any]:
        """The tokens, for lark."""
        states, stack = parser_state.parse_conf.states, parser_state.state_stack
        return self.cut(lexer_state.text.text, lambda: states[stack[-1]])
