"""Cuts the text of an SQL predicate into tokens.

What a word is hangs on its place: where only a name can stand, as after a dot, every word is a name, and a
soft keyword is one only where the parser can go on with it. A hard keyword is a keyword everywhere else, so
that an error is found at the word that is wrong.
"""

import re

from branchline.routing.spellings.lexing import Expected, WordLexer

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


class SqlLexer(WordLexer):
    """The tokens of SQL. A quoted name is a word that is no keyword.

    A quoted text or name that is not closed must not end at the last pair of quotes in it: hence the
    lookahead. What follows a number must not look like more of it: 12abc and 1.2.3 are mistakes.
    """

    master = re.compile(
        r"""\s*(?:
        (?P<WORD>[^\W\d]\w*|"[^"]*(?:""[^"]*)*"(?!"))
        | (?P<_DOT>\.(?![0-9]))
        | (?P<COMPARE><>|!=|<=|>=|=|<|>)
        | (?P<STRING>'[^']*(?:''[^']*)*'(?!'))
        | (?P<NUMBER>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.]))
        | (?P<_LPAR>\()
        | (?P<_RPAR>\))
        | (?P<_COMMA>,)
        | (?P<STRANGE>\S)
        )""",
        re.VERBOSE,
    )

    @staticmethod
    def word(value: str, expected: Expected) -> str:
        type_ = _TYPES.get(value.upper())
        # In Unicode, more than ASCII letters may become those of a keyword.
        if type_ is None or not value.isascii():
            return "NAME"
        here = expected()
        if type_ in here or (type_ in KEYWORDS and ("NAME" not in here or len(here) > 1)):
            return type_
        return "NAME"
