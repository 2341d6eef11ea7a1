"""Cuts the text of a CESQL expression into tokens."""

import re

from branchline.routing.spellings.lexing import Expected, WordLexer

KEYWORDS = frozenset({"AND", "OR", "XOR", "NOT", "LIKE", "IN", "EXISTS", "TRUE", "FALSE"})

_TYPES = {word: word for word in KEYWORDS}


class CesqlLexer(WordLexer):
    """The tokens of CESQL. Words are of ASCII only, so keywords that ignore case are too.

    A name may start with a digit, but must not be a number. An underscore can only be in the name of a
    function. Without the lookahead, 'it''s' would be two texts side by side, and the error would point
    behind the mistake.
    """

    master = re.compile(
        r"""\s*(?:
        (?P<WORD>[0-9]*[A-Za-z][A-Za-z0-9]*(?!\w))
        | (?P<STRING>'(?:\\[\s\S]|[^'\\])*'(?!')|"(?:\\[\s\S]|[^"\\])*"(?!"))
        | (?P<COMPARE><>|!=|<=|>=|=|<|>)
        | (?P<_LPAR>\()
        | (?P<_RPAR>\))
        | (?P<_COMMA>,)
        | (?P<INTEGER>[0-9]+(?![\w.]))
        | (?P<PLUS>\+)
        | (?P<MINUS>-)
        | (?P<STAR>\*)
        | (?P<SLASH>/)
        | (?P<PERCENT>%)
        | (?P<FUNCTION>[A-Za-z]+_[A-Za-z_]*(?=\s*\())
        | (?P<STRANGE>\S)
        )""",
        re.VERBOSE,
    )

    @staticmethod
    def word(value: str, _expected: Expected) -> str:
        return _TYPES.get(value.upper(), "NAME")
