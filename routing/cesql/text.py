"""CESQL trees as text, and CESQL's text literals and patterns: what reading and writing must agree on.

In a text literal a backslash before the quote that encloses it makes the quote a part of the text. Every
other backslash is itself, so there is no escape for a backslash, and a few texts cannot be written at all:
those that have a backslash before both kinds of quote, for example. No text that is read is one of them.

In a pattern, % is any run and _ any one, and a backslash before either makes it itself; every other
backslash is itself again.
"""

import re

from branchline.routing.cesql.tree import (
    All,
    Among,
    Any,
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
    Value,
    Xor,
)
from branchline.routing.cesql.tree import Arithmetic as Does
from branchline.routing.patterns import ANY_ONE, Pattern, like_pattern

_SYMBOL = re.compile(r"\\[%_]|[\s\S]")
_WILD = re.compile(r"[%_]")

# How tightly what a node is written as binds; an operand that binds less tightly stands in parentheses.
_LOGIC, _COMPARISON, _SUM, _PRODUCT, _POSTFIX, _PREFIX, _ATOM = range(7)


def unquoted(token: str) -> str:
    """The text that a literal, quotes included, stands for."""
    quote = token[0]
    return token[1:-1].replace("\\" + quote, quote)


def quoted(text: str) -> str:
    """A literal that stands for the text; raises ValueError if there is none."""
    for quote in "'\"":
        # An odd run of backslashes would take the quote after it into the text.
        if not re.search(rf"(?<!\\)(?:\\\\)*\\(?={quote}|\Z)", text):
            return quote + text.replace(quote, "\\" + quote) + quote
    raise ValueError(f"no CESQL literal stands for {text!a}")


def read_pattern(text: str) -> Pattern:
    """The pattern that the text after LIKE stands for."""
    if "\\" not in text:
        return like_pattern(text)
    pieces: list[list[str]] = [[]]
    for symbol in _SYMBOL.findall(text):
        if symbol == "%":
            pieces.append([])
        else:
            pieces[-1].append(ANY_ONE if symbol == "_" else symbol[-1])
    return Pattern.of(map("".join, pieces))


def write_pattern(pattern: Pattern) -> str:
    return "%".join(_WILD.sub(r"\\\g<0>", piece).replace(ANY_ONE, "_") for piece in pattern.pieces)


def write(node: Node) -> str:
    """The expression's text. Recursion is bounded by FILTER_MAX_DEPTH + CESQL_MAX_DEPTH."""
    match node:
        case Constant(value):
            return _write_value(value)
        case Identifier(name):
            return name
        case Exists(name):
            return f"EXISTS {name}"
        case Call(name, arguments):
            return f"{name}({', '.join(map(write, arguments))})"
        case Not(Like(term, pattern)):
            return f"{_within(term, _POSTFIX)} NOT LIKE {quoted(write_pattern(pattern))}"
        case Not(Among(left, elements)):
            return f"{_within(left, _POSTFIX)} NOT IN ({', '.join(map(write, elements))})"
        case Not(term):
            return f"NOT {_within(term, _PREFIX)}"
        case Negate(Constant(value) as constant) if type(value) is int and value >= 0:
            # Without parentheses it would be a negative constant.
            return f"-({write(constant)})"
        case Negate(term):
            return f"-{_within(term, _PREFIX)}"
        case Like(term, pattern):
            return f"{_within(term, _POSTFIX)} LIKE {quoted(write_pattern(pattern))}"
        case Among(left, elements):
            return f"{_within(left, _POSTFIX)} IN ({', '.join(map(write, elements))})"
        case Calculate(left, operator, right):
            binds = _binds(node)
            return f"{_within(left, binds)} {operator} {_within(right, binds + 1)}"
        case Compare(left, operator, right):
            return f"{_within(left, _COMPARISON)} {operator} {_within(right, _SUM)}"
        case All(terms):
            return " AND ".join(_within(term, _COMPARISON) for term in terms)
        case Any(terms):
            return " OR ".join(_within(term, _COMPARISON) for term in terms)
        case Xor(terms):
            return " XOR ".join(_within(term, _COMPARISON) for term in terms)


def _within(node: Node, binds: int) -> str:
    return write(node) if _binds(node) >= binds else f"({write(node)})"


def _binds(node: Node) -> int:
    match node:
        case All() | Any() | Xor():
            return _LOGIC
        case Compare():
            return _COMPARISON
        case Calculate(_, operator, _):
            return _SUM if operator in (Does.PLUS, Does.MINUS) else _PRODUCT
        case Like() | Among() | Not(Like() | Among()):
            return _POSTFIX
        case Not() | Negate():
            return _PREFIX
        case _:
            return _ATOM


def _write_value(value: Value) -> str:
    if isinstance(value, str):
        return quoted(value)
    return str(value).upper()
