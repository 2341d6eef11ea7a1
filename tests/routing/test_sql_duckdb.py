"""Filters on typed columns mean what DuckDB takes them for: an independent engine, three-valued alike.

Every predicate is evaluated over a table of random rows at once. DuckDB's text is written here, not by
`write`, with literals of the column's own type, so that its implicit casts do not come in.
"""

import random
from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pytest
import strategies as our
from amounts import often
from hypothesis import given
from hypothesis import strategies as st

from branchline.routing.evaluate import truth
from branchline.routing.expression import (
    NULLS,
    And,
    Anything,
    Between,
    CompareFields,
    Comparison,
    Constraint,
    Expression,
    In,
    IsTrue,
    Matches,
    Not,
    OfKind,
    Or,
    Reading,
)
from branchline.routing.instants import Instant, read_instant
from branchline.routing.limits import FILTER_MAX_BYTES
from branchline.routing.patterns import ANY_ONE, containing, ending, exactly, like_pattern, starting
from branchline.routing.spellings.sql import read, write
from branchline.routing.values import Literal, Operator, Truth

INTEGERS = (0, 1, 2, -1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63))
DOUBLES = (0.0, -0.0, 1.0, 1.5, -2.25, 0.1, 5e-324, 1e300, 9007199254740992.0)
TEXTS = ("", "a", "A", "ab", "aB", "ba", "b", "%", "_", "a%b", "a_b", "a\\b", "it's", "é", "𝄞", "\n")
MOMENTS = (
    "2026-11-16T12:00:00Z",
    "2026-11-16T13:00:00+01:00",
    "2026-11-16T12:00:00.000001Z",
    "2026-11-16T06:30:00.5-05:30",
    "1969-12-31T23:59:59.999999Z",
)
INSTANTS = tuple(instant for text in MOMENTS if (instant := read_instant(text)))

COLUMNS: dict[str, tuple[str, tuple[Any, ...], tuple[Literal, ...]]] = {
    "i1": ("BIGINT", INTEGERS, INTEGERS),
    "i2": ("BIGINT", INTEGERS, INTEGERS),
    "d1": ("DOUBLE", DOUBLES, DOUBLES),
    "d2": ("DOUBLE", DOUBLES, DOUBLES),
    "t1": ("VARCHAR", TEXTS, TEXTS),
    "t2": ("VARCHAR", TEXTS, TEXTS),
    "b": ("BOOLEAN", (False, True), (False, True)),
    "m": ("TIMESTAMPTZ", MOMENTS, INSTANTS),
}
"""Each column's type, the values that events have there, and the literals that filters compare it with."""


def rows(count: int, seed: int = 7) -> list[tuple[Any, ...]]:
    chance = random.Random(seed)
    pools = [(*values, *[None] * (len(values) // 3 + 1)) for _, values, _ in COLUMNS.values()]
    return [tuple(chance.choice(pool) for pool in pools) for _ in range(count)]


ROWS = rows(60)
# NULL is an attribute that is null in every other event, and one that is missing in the rest.
EVENTS = [
    {name: value for name, value in zip(COLUMNS, row, strict=True) if value is not None or number % 2}
    for number, row in enumerate(ROWS)
]


Ask = Callable[[str], list[Truth]]
"""A predicate's truth in each row, as DuckDB has it."""


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    with duckdb.connect(":memory:", config={"threads": 1}) as database:
        columns = ", ".join(f"{name} {type_}" for name, (type_, _, _) in COLUMNS.items())
        database.execute(f"CREATE TABLE event (number BIGINT, {columns})")
        marks = ", ".join("?" * (1 + len(COLUMNS)))
        for number, row in enumerate(ROWS):
            database.execute(f"INSERT INTO event VALUES ({marks})", [number, *row])

        def rows(predicate: str) -> list[Truth]:
            found = database.execute(f"SELECT {predicate} FROM event ORDER BY number").fetchall()
            return [truth for (truth,) in found]

        yield rows


def on_column(name: str) -> st.SearchStrategy[Constraint]:
    path = st.just((name,))
    value = st.sampled_from(COLUMNS[name][2])
    return st.one_of(
        st.builds(Comparison, path, st.sampled_from(Operator), value),
        st.builds(Between, path, value, value),
        st.builds(In, path, st.lists(value, min_size=1, max_size=4).map(tuple)),
        st.builds(OfKind, path, st.just(NULLS)),
    )


ascii_texts = st.sampled_from([text for text in TEXTS if text.isascii()])
any_texts = st.sampled_from(TEXTS)


def patterns(texts: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    forms = [texts.map(form) for form in (exactly, starting, ending, containing)]
    return st.one_of(st.text("aAb%_", max_size=5).map(like_pattern), *forms)


text_columns = st.sampled_from((("t1",), ("t2",)))
constraints: st.SearchStrategy[Constraint] = st.one_of(
    *map(on_column, COLUMNS),
    st.builds(Matches, text_columns, patterns(any_texts)),
    patterns(ascii_texts).flatmap(
        lambda pattern: st.builds(Matches, text_columns, st.just(pattern.fold()), st.just(Reading.FOLDED))
    ),
    st.builds(
        lambda kind, operator, ends: CompareFields((kind + ends[0],), operator, (kind + ends[1],)),
        st.sampled_from("idt"),
        st.sampled_from(Operator),
        st.sampled_from(("12", "21", "11")),
    ),
)


def in_duckdb(expression: Expression) -> str:
    """The predicate as DuckDB reads it, with every parenthesis written."""
    match expression:
        case Anything():
            return "TRUE"
        case And(terms):
            return "(" + " AND ".join(map(in_duckdb, terms)) + ")"
        case Or(terms):
            return "(" + " OR ".join(map(in_duckdb, terms)) + ")"
        case Not(term):
            return f"(NOT {in_duckdb(term)})"
        case IsTrue(term):
            return f"({in_duckdb(term)} IS TRUE)"
        case Comparison((name,), operator, value):
            return f"({name} {operator} {literal(value)})"
        case Between((name,), low, high):
            return f"({name} BETWEEN {literal(low)} AND {literal(high)})"
        case In((name,), values):
            return f"({name} IN ({', '.join(map(literal, values))}))"
        case OfKind((name,), _):
            return f"({name} IS NULL)"
        case CompareFields((name,), operator, (other,)):
            return f"({name} {operator} {other})"
        case Matches((name,), pattern, Reading.TEXT):
            return matching(name, pattern.pieces)
        case Matches((name,), pattern, Reading.FOLDED):
            return f"({name} ILIKE {like(pattern.pieces)})"
        case other:
            raise NotImplementedError(other)


def matching(name: str, pieces: tuple[str, ...]) -> str:
    match pieces:
        case (text, "") if ANY_ONE not in text:
            return f"starts_with({name}, {literal(text)})"
        case ("", text) if ANY_ONE not in text:
            return f"suffix({name}, {literal(text)})"
        case ("", text, "") if ANY_ONE not in text:
            return f"contains({name}, {literal(text)})"
        case _:
            return f"({name} LIKE {like(pieces)})"


def like(pieces: tuple[str, ...]) -> str:
    escaped = [piece.replace("!", "!!").replace("%", "!%").replace("_", "!_") for piece in pieces]
    plain = tuple(escaped) == pieces
    return literal("%".join(escaped).replace(ANY_ONE, "_")) + ("" if plain else " ESCAPE '!'")


def literal(value: Literal) -> str:
    match value:
        case bool():
            return str(value).upper()
        case int():
            return f"({value})::BIGINT"
        case float():
            return f"({value!r})::DOUBLE"
        case Instant():
            return f"TIMESTAMPTZ '{value}'"
        case _:
            return "'" + value.replace("'", "''") + "'"


@often
@given(expression=our.expressions(constraints))
def test_agrees_with_duckdb(ask: Ask, expression: Expression) -> None:
    """Written and read again, a filter is true, false or unknown of each row as in DuckDB."""
    text = write(expression)
    again = read(text) if len(text.encode()) <= FILTER_MAX_BYTES else expression
    assert [truth(again, event, event) for event in EVENTS] == ask(in_duckdb(expression))


@pytest.mark.parametrize(
    "text",
    [
        "i1 = 1 OR i2 = 1 AND NOT b = TRUE OR d1 > 0.5",
        "NOT i1 = 1 AND i2 <> 1",
        "NOT (i1 = 1 AND i2 <> 1)",
        "1 < i1 AND i1 != i2",
        "i1 NOT IN (1, 2) AND t1 NOT LIKE '%a%' AND i2 NOT BETWEEN 0 AND 1",
        "t1 LIKE 'a!%%' ESCAPE '!' OR t1 LIKE '__' OR t2 ILIKE 'A_'",
        "(i1 = 1 OR b = FALSE) IS TRUE",
        "(i1 = 1 OR b = FALSE) IS NOT TRUE",
        "(i1 = 1 AND b = FALSE) IS FALSE",
        "(i1 = 1 AND b = FALSE) IS NOT FALSE",
        "(i1 = 1 AND b = FALSE) IS UNKNOWN",
        "(i1 = 1 AND b = FALSE) IS NOT UNKNOWN",
        "NOT (i1 = 1) IS TRUE",
        "b IS TRUE OR b IS NOT FALSE AND i1 IS NOT NULL",
        "TRUE AND i1 = 1 OR FALSE",
        "t1 < t2 AND d1 >= d2",
    ],
)
def test_the_same_text_is_the_same_predicate(ask: Ask, text: str) -> None:
    """What both languages can spell has the same precedence and the same truth in both."""
    filter_ = read(text)
    assert [truth(filter_, event, event) for event in EVENTS] == ask(text)
