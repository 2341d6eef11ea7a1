"""Expressions as SQL predicates: the inverse of reading them.

Whatever `sql.read` gives is read again from what `write` makes of it. That text may be longer than the one
first read (blanks, 1e15 written out), so close to FILTER_MAX_BYTES it may not fit.
"""

from typing import Any

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
    Or,
)

KEYWORDS = frozenset({"AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "IS", "NULL", "TRUE", "FALSE"})


def write(expression: Expression) -> str:
    """The expression's text. Recursion is bounded by FILTER_MAX_DEPTH."""
    match expression:
        case Anything():
            return "TRUE"
        case And(terms):
            return " AND ".join(_within(term, And | Or) for term in terms) or "TRUE"
        case Or(terms):
            return " OR ".join(_within(term, Or) for term in terms) or "NOT TRUE"
        case Not(Between() | In() | Like() | IsNull() as constraint):
            return _write_constraint(constraint, "NOT ")
        case Not(term):
            return f"NOT {_within(term, And | Or)}"
        case constraint:
            return _write_constraint(constraint, "")


def _within(term: Expression, looser: Any) -> str:
    return f"({write(term)})" if isinstance(term, looser) else write(term)


def _write_constraint(constraint: Constraint, negation: str) -> str:
    path = ".".join(_write_name(name) for name in constraint.path)
    match constraint:
        case Comparison(_, operator, value):
            return f"{path} {operator} {_write_literal(value)}"
        case Between(_, low, high):
            return f"{path} {negation}BETWEEN {_write_literal(low)} AND {_write_literal(high)}"
        case In(_, values):
            return f"{path} {negation}IN ({', '.join(map(_write_literal, values))})"
        case Like(_, pattern):
            return f"{path} {negation}LIKE {_write_literal(pattern)}"
        case IsNull():
            return f"{path} IS {negation}NULL"


def _write_name(name: str) -> str:
    # Outside ASCII, Python's identifiers are not quite the grammar's; quotes are always right.
    if name.isascii() and name.isidentifier() and name.upper() not in KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


def _write_literal(value: Literal) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value).upper() if isinstance(value, bool) else repr(value)
