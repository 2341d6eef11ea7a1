"""Expressions as SQL predicates: the inverse of reading them.

Whatever a reader gives is read again from what `write` makes of it. That text may be longer than the one
first read (blanks, 1e15 written out), so close to FILTER_MAX_BYTES it may not fit.
"""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from branchline.routing.cesql.text import write as write_cesql
from branchline.routing.expression import (
    NULLS,
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
    Reading,
    SingleConstraint,
)
from branchline.routing.instants import Instant
from branchline.routing.limits import FILTER_MAX_IN_VALUES
from branchline.routing.patterns import ANY_ONE, Pattern
from branchline.routing.spellings.sql_lexer import KEYWORDS
from branchline.routing.values import Kind, Literal, Operator

_EXISTING = frozenset(Kind) - {Kind.MISSING}
_WILD = "%_"
_ESCAPE = "\\"


def write(expression: Expression) -> str:
    """The expression's text. Recursion is bounded by the expression's reader."""
    match expression:
        case Anything():
            return "TRUE"
        case Not(Anything()):
            return "FALSE"
        case And((Not(IsTrue(one)), Not(IsTrue(Not(other))))) if one == other and not isinstance(one, IsTrue):
            return f"({write(one)}) IS UNKNOWN"
        case And(terms):
            return " AND ".join(_terms(And, terms, And | Or)) or "TRUE"
        case Or(terms):
            return " OR ".join(_terms(Or, terms, Or)) or "FALSE"
        case Not(IsTrue(term)):
            return _is_true(term, "NOT ")
        case IsTrue(term):
            return _is_true(term, "")
        case Not(Has(path, value)):
            return f"{write_path(path)} NOT HAS {write_literal(value)}"
        case Not(Between() | In() | Matches() | InBlock() | OfKind() as constraint):
            return _single(constraint, "NOT ")
        case Not(term):
            return f"NOT {_within(term, And | Or)}"
        case CompareFields(path, operator, other):
            return f"{write_path(path)} {operator} {write_path(other)}"
        case Has(path, value):
            return f"{write_path(path)} HAS {write_literal(value)}"
        case Every(OfKind(path, kinds)):
            return f"EVERY {_every_kind(path, kinds)}"
        case Every(constraint):
            return f"EVERY {_single(constraint, '')}"
        case Formula(root):
            return f"CESQL({write_literal(write_cesql(root))})"
        case constraint:
            return _single(constraint, "")


def _within(term: Expression, looser: Any) -> str:
    return f"({write(term)})" if isinstance(term, looser) else write(term)


def _is_true(term: Expression, negation: str) -> str:
    """IS TRUE of the term. One of IS NOT TRUE stays one: as IS FALSE it would count as a level more."""
    match term:
        case Comparison(path, Operator.EQ, bool(value)):
            return f"{write_path(path)} IS {negation}{write_literal(value)}"
        case Not(inner) if not isinstance(inner, IsTrue):
            return f"({write(inner)}) IS {negation}FALSE"
        case _:
            return f"({write(term)}) IS {negation}TRUE"


def _terms(join: type[And] | type[Or], terms: tuple[Expression, ...], looser: Any) -> Iterator[str]:
    """The terms' texts. Those that a list makes become one again: apart, they could be too long to read."""

    def listed(term: Expression) -> tuple[str, Path] | None:
        match term:
            case Has(path, _):
                return ("HAS ALL" if join is And else "HAS ANY"), path
            case Matches(path, Pattern((text,)), Reading.FOLDED) if join is Or and ANY_ONE not in text:
                return "IN", path
            case _:
                return None

    for form, group in groupby(terms, listed):
        several = list(group)
        if form is None or len(several) == 1:
            yield from (_within(term, looser) for term in several)
            continue
        word, path = form
        for start in range(0, len(several), FILTER_MAX_IN_VALUES):
            values = ", ".join(map(_listed_value, several[start : start + FILTER_MAX_IN_VALUES]))
            yield f"{write_path(path)} {word} ({values}){' IGNORE CASE' if word == 'IN' else ''}"


def _listed_value(term: Expression) -> str:
    if isinstance(term, Has):
        return write_literal(term.value)
    assert isinstance(term, Matches)
    return write_literal(term.pattern.prefix)


def _single(constraint: SingleConstraint, negation: str) -> str:
    path = write_path(constraint.path)
    match constraint:
        case Comparison(_, operator, value):
            return f"{path} {operator} {write_literal(value)}"
        case Between(_, low, high):
            return f"{path} {negation}BETWEEN {write_literal(low)} AND {write_literal(high)}"
        case In(_, values):
            return f"{path} {negation}IN ({', '.join(map(write_literal, values))})"
        case InBlock(_, block):
            return f"{path} {negation}IN CIDR {write_literal(str(block))}"
        case Matches(_, pattern, reading):
            subject = f"TEXT({path})" if reading is Reading.CANONICAL else path
            folding = " IGNORE CASE" if reading is Reading.FOLDED else ""
            return f"{subject} {_fitting(pattern, reading, negation)}{folding}"
        case OfKind(_, kinds) if kinds == _EXISTING:
            return f"{negation}EXISTS {path}"
        case OfKind(_, kinds):
            return f"{path} IS {negation}{_kinds(kinds)}"


def _fitting(pattern: Pattern, reading: Reading, negation: str) -> str:
    match pattern.pieces:
        case (text,) if reading is not Reading.TEXT and ANY_ONE not in text:
            return f"{'<>' if negation else '='} {write_literal(text)}"
        case (text, "") if text and ANY_ONE not in text:
            return f"{negation}STARTS WITH {write_literal(text)}"
        case ("", text) if text and ANY_ONE not in text:
            return f"{negation}ENDS WITH {write_literal(text)}"
        case ("", text, "") if ANY_ONE not in text:
            return f"{negation}CONTAINS {write_literal(text)}"
        case pieces:
            return f"{negation}LIKE {_like(pieces)}"


def _like(pieces: tuple[str, ...]) -> str:
    ending = ""
    if any(wild in piece for piece in pieces for wild in _WILD):
        ending = f" ESCAPE {write_literal(_ESCAPE)}"
        for symbol in (_ESCAPE, *_WILD):
            pieces = tuple(piece.replace(symbol, _ESCAPE + symbol) for piece in pieces)
    return write_literal("%".join(pieces).replace(ANY_ONE, "_")) + ending


def _every_kind(path: Path, kinds: frozenset[Kind]) -> str:
    """EVERY takes IS NOT for the other kinds. It is shorter for many, and the only way to say none."""
    others = frozenset(Kind) - kinds
    if (others and len(others) < len(kinds)) or not kinds:
        return f"{write_path(path)} IS NOT {_kinds(others)}"
    return f"{write_path(path)} IS {_kinds(kinds)}"


def _kinds(kinds: frozenset[Kind]) -> str:
    words = ["NULL"] if kinds >= NULLS else []
    others = sorted(kinds - NULLS if words else kinds)
    words += ["JSON NULL" if kind is Kind.NULL else kind.name for kind in others]
    return words[0] if len(words) == 1 else f"({', '.join(words)})"


def write_path(path: Path) -> str:
    return ".".join(map(_name, path))


def _name(name: str) -> str:
    # Outside ASCII, Python's identifiers are not quite the grammar's; quotes are always right.
    if name.isascii() and name.isidentifier() and name.upper() not in KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


def write_literal(value: Literal) -> str:
    match value:
        case str():
            return "'" + value.replace("'", "''") + "'"
        case bool():
            return str(value).upper()
        case Instant():
            return f"TIMESTAMP '{value}'"
        case _:
            return repr(value)
