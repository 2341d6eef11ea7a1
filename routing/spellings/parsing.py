"""Parses filters with the tables that lark makes of a grammar, in a loop of our own.

Theory of operation. Lark makes the tables, as it does for its own loop. A state is a row: for each type of
token either the row to go to, which shifts the token, or a rule to reduce by; for each rule's name the row
to go to once the rule is reduced. Here the stack holds the rows themselves, so that one look-up tells what
to do next. A rule with one symbol and nothing to build, of which a grammar with levels of operators has one
for each level, only changes the row on top. The end of the text is shifted like a token, by the row that
has seen a whole filter.

It is lark's loop in all else: pieces are built in the same order, by the same functions. So a text that
cannot be parsed is given to lark to parse once more, which finds the same mistake and knows how to tell
what could have stood there. `tests/routing/test_parsing.py` holds the two loops against each other.
"""

from collections.abc import Callable
from importlib import resources
from itertools import chain
from typing import Any, TypeAlias

from lark import Lark
from lark.parsers.lalr_analysis import Shift

from branchline.routing.spellings.lexing import Token, WordLexer

_Build: TypeAlias = Callable[[list[Any]], Any]
_Reduction: TypeAlias = tuple[int, str, _Build | None]
_Row: TypeAlias = "dict[str, _Row | _Reduction]"

_END = (Token("$END", "", 0, ""),)


class Parser:
    """A grammar, a lexer, and a builder with a method for each rule or alternative that builds something."""

    def __init__(self, grammar: str, lexer: type[WordLexer], builder: object) -> None:
        # Through importlib, because Spark may ship the package to its workers as a zip file.
        text = resources.files(__package__).joinpath(grammar).read_text(encoding="utf-8")
        self.lark = Lark(text, parser="lalr", lexer=lexer, transformer=_Inlined(builder))
        self._lexer = lexer()
        tables = self.lark.parse_interactive("").parser_state.parse_conf
        rows: dict[int, Any] = {state: {} for state in tables.states}
        for state, actions in tables.states.items():
            for symbol, (action, target) in actions.items():
                rows[state][str(symbol)] = (
                    rows[target] if action is Shift else _reduction(target, tables.callbacks[target])
                )
        rows[tables.end_state]["$END"] = {}
        self._start: _Row = rows[tables.start_state]

    def parse(self, text: str) -> Any:
        """What the builder makes of the text; raises UnexpectedToken if it cannot be parsed."""
        rows: list[Any] = [self._start]
        values: list[Any] = []
        try:
            for token in chain(self._lexer.cut(text, lambda: rows[-1]), _END):
                type_ = token[0]
                while type(action := rows[-1][type_]) is tuple:
                    size, name, build = action
                    if size == 1:
                        if build is not None:
                            values[-1] = build(values[-1:])
                        rows[-1] = rows[-2][name]
                    else:
                        values[-size:] = (build(values[-size:]),)
                        rows[-size:] = (rows[-size - 1][name],)
                rows.append(action)
                values.append(token)
        except KeyError:
            # The row has no such type of token. Should the builder have raised it, it will again.
            return self.lark.parse(text)
        return values[0]


def _reduction(rule: Any, build: _Build) -> _Reduction:
    size = len(rule.expansion)
    assert size > 0, "lark writes optional parts out, so no rule is empty"
    passes_on = size == 1 and rule.options.expand1 and not rule.alias
    return size, str(rule.origin.name), None if passes_on else build


class _Inlined:
    """Gives the builder's methods to lark as it calls them: with one list in place of the arguments."""

    def __init__(self, builder: object) -> None:
        self._builder = builder

    def __getattr__(self, name: str) -> _Build:
        method = getattr(self._builder, name)
        return lambda children: method(*children)
