"""The SQL spelling: what it reads, what it writes, what it refuses and where."""

import pickle

import pytest
import strategies as our
from hypothesis import assume, example, given
from hypothesis import strategies as st

from branchline.routing import limits
from branchline.routing.codes import Code, Rejection
from branchline.routing.expression import (
    And,
    Anything,
    Between,
    Comparison,
    Expression,
    In,
    IsNull,
    Like,
    Not,
    Operator,
    Or,
    Path,
)
from branchline.routing.spellings import SPELLINGS, read_filter
from branchline.routing.spellings.errors import FilterError
from branchline.routing.spellings.sql import read, write


def equal(name: str, value: str | int | float | bool) -> Comparison:
    return Comparison((name,), Operator.EQ, value)


A, B, C = equal("a", 1), equal("b", 2), equal("c", 3)


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("a = 1", A),
        ("1 = a", A),
        ("a != 1", Comparison(("a",), Operator.NE, 1)),
        ("5 <= a", Comparison(("a",), Operator.GE, 5)),
        ("5 > a", Comparison(("a",), Operator.LT, 5)),
        ("a=1 OR b=2 AND c=3", Or((A, And((B, C))))),
        ("(a=1 OR b=2) AND c=3", And((Or((A, B)), C))),
        ("a=1 AND (b=2 AND c=3)", And((A, B, C))),
        ("NOT a=1 AND b=2", And((Not(A), B))),
        ("not (a=1 and b=2)", Not(And((A, B)))),
        ("a IN (1, 'x', TRUE)", In(("a",), (1, "x", True))),
        ("a NOT IN (1)", Not(In(("a",), (1,)))),
        ("a BETWEEN 1 AND 2 AND b=2", And((Between(("a",), 1, 2), B))),
        ("a Not Between 'x' And 'y'", Not(Between(("a",), "x", "y"))),
        ("a NOT LIKE 'x%'", Not(Like(("a",), "x%"))),
        ("a IS NOT NULL", Not(IsNull(("a",)))),
        ("TRUE", Anything()),
        ("true AND a=1", And((Anything(), A))),
        ("TRUE = a", equal("a", True)),
        ("a = false", equal("a", False)),
        ("a = 'it''s'", equal("a", "it's")),
        ("a = -9007199254740993", equal("a", -9007199254740993)),
        ("a = +1.5e2", equal("a", 150.0)),
        ("a = .5", equal("a", 0.5)),
        ("data.order.in IS NULL", IsNull(("data", "order", "in"))),
        ('kafka.header."content-type" IS NULL', IsNull(("kafka", "header", "content-type"))),
        ('data."a.b" IS NULL', IsNull(("data", "a.b"))),
        ('"in"."say ""x""" IS NULL', IsNull(("in", 'say "x"'))),
        ("größe.名前 IS NULL", IsNull(("größe", "名前"))),
        ("a . b\n\tIS NULL", IsNull(("a", "b"))),
        ("order = 1", equal("order", 1)),
        ("i\u017f = 1", equal("i\u017f", 1)),
    ],
)
def test_reads(text: str, expression: Expression) -> None:
    """Each form of the grammar gives the one tree that stands for it, types of literals included."""
    assert read(text) == expression
    assert repr(read(text)) == repr(expression)


@given(our.expressions(our.constraints(our.paths())))
def test_read_is_the_inverse_of_write(expression: Expression) -> None:
    """Whatever is written is read again as the same expression, types of literals included."""
    text = write(expression)
    assume(len(text.encode()) <= limits.FILTER_MAX_BYTES)
    again = read(text)
    assert again == expression
    assert repr(again) == repr(expression)


@given(
    st.lists(st.text(max_size=8), min_size=1, max_size=3).map(tuple),
    st.one_of(st.text(max_size=20), st.integers(), st.floats(allow_nan=False, allow_infinity=False)),
)
def test_any_name_and_any_value_can_be_written(path: Path, value: str | int | float) -> None:
    """Every path and every literal can be spelled, whatever characters or digits they have."""
    expression = Comparison(path, Operator.EQ, value)
    assert repr(read(write(expression))) == repr(expression)


WORDS = (
    "a", "b.c", '"x y"', ".", ",", "(", ")", "=", "<>", "<", ">=", "1", "-2.5", "1e999", "'t'", "'", '"',
    "AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "IS", "NULL", "TRUE", "FALSE",
    "\n", "%", "\ud800", "é", "\0",
)  # fmt: skip


@given(st.text(max_size=40) | st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join))
@example("a = 1e999")
@example("\ud800")
def test_any_text_is_read_or_refused_at_a_place_in_it(text: str) -> None:
    """Reading gives an expression that round-trips, or a FilterError that points into the text."""
    try:
        expression = read(text)
    except FilterError as error:
        lines = text.split("\n")
        assert 1 <= error.line <= len(lines)
        assert 1 <= error.column <= len(lines[error.line - 1]) + 1
        assert error.rejection == read_filter("sql", text)
        error.show(text)
    else:
        assert read(write(expression)) == expression


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("", 1, "TRUE"),
        ("  ", 1, "TRUE"),
        ("a", 2, "ends too early"),
        ("a =", 4, "expected a value"),
        ("a = b", 5, "single quotes"),
        ('a = "b"', 5, "single quotes"),
        ("a = NULL", 5, "IS NULL"),
        ("NULL = a", 1, "IS NULL"),
        ("a IN (1, NULL)", 10, "IS NULL"),
        ("a IN ()", 7, "expected a value"),
        ("a IN (1,)", 9, "expected a value"),
        ("a IN 1", 6, "opening parenthesis"),
        ("a LIKE 5", 8, "text in single quotes"),
        ("a = 1 OR OR b = 2", 10, "a condition"),
        ("in = 5", 1, 'written "in"'),
        ("(a = 1", 7, "AND, OR or a closing parenthesis"),
        ("a = 1)", 6, "AND, OR or the end of the filter"),
        ("a = 'x''y", 5, "no closing quote"),
        ('"a = 1', 1, "no closing quote"),
        ("a = 12abc", 5, "not a number"),
        ("a = 1.2.3", 5, "not a number"),
        ("é = ~", 5, "'~' means nothing"),
        ("a NOT = 1", 7, "BETWEEN, IN or LIKE"),
        ("a IS 5", 6, "NOT or NULL"),
        ("a..b = 1", 3, "a name"),
        ("a = '\ud800'", 6, "surrogate"),
    ],
)
def test_syntax_errors_say_where_and_what(text: str, column: int, words: str) -> None:
    """A mistake is named in words, at the column of the word that is wrong."""
    with pytest.raises(FilterError) as caught:
        read(text)
    assert caught.value.rejection.code == Code.FILTER_SYNTAX
    assert (caught.value.line, caught.value.column) == (1, column)
    assert words in caught.value.rejection.reason


NESTED = "a = 1"
for level in range(limits.FILTER_MAX_DEPTH):
    NESTED = f"b = 2 {'AND' if level % 2 else 'OR'} ({NESTED})"
LONGEST_NAME = "é" * (limits.NAME_MAX_BYTES // 2)


@pytest.mark.parametrize(
    ("fits", "exceeds", "code", "column"),
    [
        ("a = 1".ljust(4096), "a = 1".ljust(4097), Code.FILTER_TOO_LONG, 1),
        (f"a = {'9' * 400}", f"a = {'9' * 401}", Code.FILTER_NUMBER, 5),
        ("a = 1e308", "a = -1e309", Code.FILTER_NUMBER, 5),
        (f"a IN (1{', 1' * 99})", f"a IN (1{', 1' * 100})", Code.FILTER_TOO_MANY_VALUES, 307),
        (f"a.{LONGEST_NAME} = 1", f"a.{LONGEST_NAME}x = 1", Code.FILTER_NAME_TOO_LONG, 3),
        (f"{'NOT ' * 8}a = 1", f"{'NOT ' * 9}a = 1", Code.FILTER_TOO_DEEP, 1),
        (NESTED, f"NOT ({NESTED})", Code.FILTER_TOO_DEEP, 1),
        ("a BETWEEN 1 AND 2.5", "a BETWEEN 1 AND TRUE", Code.FILTER_TYPE, 17),
        ("a BETWEEN 'x' AND 'y'", "a BETWEEN 'x' AND 5", Code.FILTER_TYPE, 19),
    ],
    ids=lambda value: value[:12] if isinstance(value, str) else None,
)
def test_limits(fits: str, exceeds: str, code: Code, column: int) -> None:
    """What reaches a limit is read; one more is refused with its own code, at its place."""
    read(fits)
    with pytest.raises(FilterError) as caught:
        read(exceeds)
    assert (caught.value.rejection.code, caught.value.line, caught.value.column) == (code, 1, column)


def test_limit_and_actual_value_are_named() -> None:
    """A refused filter's author learns the limit and how far beyond it the filter is."""
    refused = read_filter("sql", "é" * 3000)
    assert isinstance(refused, Rejection)
    assert "6000" in refused.reason and "4096" in refused.reason


@pytest.mark.parametrize(
    "text",
    ["(" * 2000 + "a = 1" + ")" * 2000, "(" * 4096, "NOT " * 1000 + "a = 1", "(a=1 AND(b=2 OR " * 250,
     "''" * 2000, "(" * 1_000_000, "a = '" + "%" * 4090, "a" + ".a" * 2040, "-" * 4096,
     "a IN (" + "1," * 2000],
    ids=lambda text: text[:12],
)  # fmt: skip
def test_hostile_texts_end(text: str) -> None:
    """Depth and repetition exhaust neither the stack nor the reader's patience."""
    assert read_filter("sql", text) is not None


def test_redundant_parentheses_are_no_depth() -> None:
    """Parentheses that change nothing leave no trace in the tree, nor do those around more of the same."""
    assert read("(" * 500 + "a = 1" + ")" * 500) == A
    assert read("(" * 50 + "a = 1" + " AND b = 2)" * 50) == And((A, *[B] * 50))


def test_error_shows_the_line_and_survives_pickling() -> None:
    """The caret stands under the column, control characters are blanks, and no part is lost on the way."""
    text = "a = 1 AND\n\tb\x1b= ~"
    with pytest.raises(FilterError) as caught:
        read(text)
    error = pickle.loads(pickle.dumps(caught.value))
    assert error.rejection == caught.value.rejection
    message, line, caret = error.show(text).split("\n")
    assert message.startswith("line 2, column 3: ")
    assert message.endswith("(filter-syntax)")
    assert line == "   b = ~"
    assert caret == "    ^"


def test_long_lines_are_shown_in_part() -> None:
    """Of a long line the part around the place is shown, and the caret is still under it."""
    text = "a = 1 AND " * 50 + "~" + " OR b = 2" * 50
    with pytest.raises(FilterError) as caught:
        read(text)
    _, line, caret = caught.value.show(text).split("\n")
    assert len(line) < 110
    assert line[caret.index("^")] == "~"


def test_spellings_by_name() -> None:
    """A spelling is found by its name; an unknown one is refused with the names of the known."""
    assert set(SPELLINGS) == {"sql"}
    assert read_filter("sql", "a = 1") == A
    refused = read_filter("xpath", "a = 1")
    assert isinstance(refused, Rejection)
    assert refused.code == Code.SPELLING_UNKNOWN
    assert "sql" in refused.reason
