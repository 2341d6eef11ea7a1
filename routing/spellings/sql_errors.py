"""What is wrong with a text that is not an SQL predicate: what could stand there, and a hint.

The hints are for mistakes that people make who know another language, or another SQL.
"""

from lark.exceptions import UnexpectedToken

from branchline.routing.codes import Code
from branchline.routing.spellings.errors import FilterError, Words, clipped, in_words, place
from branchline.routing.spellings.lexing import Token
from branchline.routing.spellings.sql_lexer import KEYWORDS

_VALUES = frozenset({"NUMBER", "STRING", "TRUE", "FALSE", "TIMESTAMP"})
_NAMES = frozenset({"NAME", "TEXT", "TIMESTAMP", "CESQL"})
_KINDS = frozenset({"NULL", "MISSING", "JSON", "BOOLEAN", "NUMBER_KIND", "TEXT", "OBJECT"})

_WORDS: Words = (
    (_VALUES | _NAMES | {"NOT", "EXISTS", "EVERY", "_LPAR"}, "a condition such as price > 5"),
    (_VALUES | _NAMES, "a value or an attribute"),
    (_VALUES, "a value"),
    (_KINDS, "a kind (NULL, MISSING, JSON NULL, BOOLEAN, NUMBER, TEXT, OBJECT)"),
    (_NAMES, "an attribute"),
    (frozenset({"ILIKE"}), ""),
    (frozenset({"STARTS"}), "STARTS WITH"),
    (frozenset({"ENDS"}), "ENDS WITH"),
    (frozenset({"CIDR"}), "CIDR"),
    (frozenset({"TRUE", "FALSE"}), "TRUE, FALSE"),
    (frozenset({"IGNORE"}), "IGNORE CASE"),
    (frozenset({"NAME"}), "a name"),
    (frozenset({"STRING"}), "text in single quotes"),
    (frozenset({"COMPARE"}), "a comparison (=, <>, <, <=, >, >=)"),
    (frozenset({"_DOT"}), ""),
    (frozenset({"_COMMA"}), "a comma"),
    (frozenset({"_LPAR"}), "an opening parenthesis"),
    (frozenset({"_RPAR"}), "a closing parenthesis"),
    (frozenset({"$END"}), "the end of the filter"),
)

_STRANGE = {
    "'": "this text has no closing quote",
    '"': "this quoted name has no closing quote",
    "&": "the character '&' means nothing here; it is written AND",
    "|": "the character '|' means nothing here; it is written OR",
    "!": "the character '!' means nothing here; it is written NOT, or <> between values",
    "`": "the character '`' means nothing here; names stand in double quotes",
    "[": "the character '[' means nothing here; lists stand in parentheses, names in double quotes",
    ";": "the character ';' means nothing here; a filter is one condition and ends without it",
    **dict.fromkeys("+-.0123456789", "this is not a number"),
}


def explained(error: UnexpectedToken, text: str) -> FilterError:
    """The error that the parser met, in words, with its place."""
    token: Token = error.token
    if token.type == "STRANGE":
        reason = _STRANGE.get(token.value, f"the character {token.value!a} means nothing here")
        return token.refusal(Code.FILTER_SYNTAX, reason)
    accepts = set(error.accepts)
    if accepts & {"_RPAR", "$END"} and "_COMMA" not in accepts:
        # The parser has closed the condition before it saw that the next word does not follow one.
        accepts |= {"AND", "OR"}
    expected = in_words(accepts, _WORDS)
    if token.type == "$END":
        reason = f"the filter ends too early; expected {expected}{_bare(accepts)}"
        return FilterError(Code.FILTER_SYNTAX, reason, *place(text, len(text.rstrip())))
    reason = f"expected {expected}, found {clipped(token.value)}{_hint(token, accepts)}"
    return token.refusal(Code.FILTER_SYNTAX, reason)


def _hint(token: Token, accepts: set[str]) -> str:
    word = token.value.upper()
    before = token.source[: token.start_pos].rstrip()
    match token.type:
        case "NULL" if accepts & {"STRING", "NUMBER"}:
            return "; nothing equals NULL: write IS NULL or IS NOT NULL"
        case "COMPARE" if before.endswith("=") and word == "=":
            return "; equality is written with one ="
        case "_RPAR" if before.endswith(","):
            return "; no comma follows the last value"
        case "_RPAR" if before.endswith("("):
            return "; a list has at least one value"
        case "_LPAR" if {"ALL", "ANY"} <= accepts:
            return "; before a list write HAS ALL or HAS ANY"
        case "NAME" if word == "UNKNOWN" and "MISSING" in accepts:
            return "; IS UNKNOWN follows a condition in parentheses"
        case "NAME" if word in ("IGNORE", "ESCAPE") and "STRING" in accepts:
            return f"; {word} follows the text"
        case "NAME" if "STRING" in accepts:
            return "; double quotes are for names" if word[0] == '"' else "; text stands in single quotes"
        case "AND" | "OR" | "_RPAR":
            return _bare(accepts)
        case type_ if type_ in KEYWORDS and "NAME" in accepts:
            return f'; as a name it is written "{token.value}"'
        case _:
            return ""


def _bare(accepts: set[str]) -> str:
    return (
        "; an attribute alone is no condition: write IS TRUE after it" if {"IS", "COMPARE"} <= accepts else ""
    )
