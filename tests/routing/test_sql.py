"""The SQL spelling: what it reads, what it writes, what it refuses and where."""

import pickle

import pytest
import strategies as our
from amounts import often
from filter_texts import expressions
from hypothesis import assume, example, given
from hypothesis import strategies as st

from branchline.routing import limits
from branchline.routing.addresses import Block
from branchline.routing.codes import Code, Rejection
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
)
from branchline.routing.instants import Instant
from branchline.routing.patterns import ANY_ONE, Pattern, containing, ending, exactly, starting
from branchline.routing.spellings import SPELLINGS, read_filter
from branchline.routing.spellings.cesql import parse
from branchline.routing.spellings.errors import FilterError
from branchline.routing.spellings.sql import read, write
from branchline.routing.spellings.sql_lexer import KEYWORDS, SOFT_KEYWORDS
from branchline.routing.values import SCALARS, Kind, Literal, Operator


def equal(name: str, value: Literal) -> Comparison:
    return Comparison((name,), Operator.EQ, value)


def is_null(*names: str) -> OfKind:
    return OfKind(names, NULLS)


def folded(name: str, text: str) -> Matches:
    return Matches((name,), exactly(text), Reading.FOLDED)


A, B, C = equal("a", 1), equal("b", 2), equal("c", 3)
NOON = Instant(1794830400, "")


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
        ("a NOT LIKE 'x%'", Not(Matches(("a",), starting("x")))),
        ("a IS NOT NULL", Not(is_null("a"))),
        ("TRUE", Anything()),
        ("true AND a=1", And((Anything(), A))),
        ("TRUE = a", equal("a", True)),
        ("a = false", equal("a", False)),
        ("a = 'it''s'", equal("a", "it's")),
        ("a = -9007199254740993", equal("a", -9007199254740993)),
        ("a = +1.5e2", equal("a", 150.0)),
        ("a = .5", equal("a", 0.5)),
        ("data.order.in IS NULL", is_null("data", "order", "in")),
        ('kafka.header."content-type" IS NULL', is_null("kafka", "header", "content-type")),
        ('data."a.b" IS NULL', is_null("data", "a.b")),
        ('"in"."say ""x""" IS NULL', is_null("in", 'say "x"')),
        ("größe.名前 IS NULL", is_null("größe", "名前")),
        ("a . b\n\tIS NULL", is_null("a", "b")),
        ("order = 1", equal("order", 1)),
        ("i\u017f = 1", equal("i\u017f", 1)),
    ],
)
def test_reads(text: str, expression: Expression) -> None:
    """Each form of the grammar gives the one tree that stands for it, types of literals included."""
    assert read(text) == expression
    assert repr(read(text)) == repr(expression)


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("a = b", CompareFields(("a",), Operator.EQ, ("b",))),
        ('a.b >= "c d".in', CompareFields(("a", "b"), Operator.GE, ("c d", "in"))),
        ("a = TIMESTAMP '2026-11-16T13:00:00.0+01:00'", equal("a", NOON)),
        ("TIMESTAMP '2026-11-16T12:00:00Z' < a", Comparison(("a",), Operator.GT, NOON)),
        ("a IN (TIMESTAMP '2026-11-16T12:00:00Z', 1)", In(("a",), (NOON, 1))),
        (
            "a BETWEEN TIMESTAMP '2026-11-16T12:00:00Z' AND timestamp '2026-11-16T12:00:00.5Z'",
            Between(("a",), NOON, Instant(NOON.seconds, "5")),
        ),
        ("a IN CIDR '10.1.2.3/8'", InBlock(("a",), Block(4, 10 << 24, 8))),
        ("a NOT IN CIDR '::/0'", Not(InBlock(("a",), Block(6, 0, 0)))),
        ("a LIKE 'x'", Matches(("a",), exactly("x"))),
        ("a LIKE '%_x'", Matches(("a",), Pattern((ANY_ONE, "x")))),
        ("a LIKE '!%!!!_%' ESCAPE '!'", Matches(("a",), starting("%!_"))),
        ("a LIKE '''''''%' ESCAPE ''''", Matches(("a",), exactly("'%"))),
        ("a LIKE '\\%'", Matches(("a",), starting("\\"))),
        ("a CONTAINS '%'", Matches(("a",), containing("%"))),
        ("a NOT CONTAINS 'x'", Not(Matches(("a",), containing("x")))),
        ("a STARTS WITH 'x'", Matches(("a",), starting("x"))),
        ("a NOT ENDS WITH 'x'", Not(Matches(("a",), ending("x")))),
        ("a CONTAINS ''", Matches(("a",), Pattern(("", "")))),
        ("a STARTS WITH '' AND a ENDS WITH ''", And((Matches(("a",), Pattern(("", ""))),) * 2)),
        ("a = 'Straße' IGNORE CASE", folded("a", "strasse")),
        ("a <> 'T' IGNORE CASE", Not(folded("a", "t"))),
        ("a IN ('T') IGNORE CASE", folded("a", "t")),
        ("a IN ('T', 'u') IGNORE CASE OR b=2", Or((folded("a", "t"), folded("a", "u"), B))),
        ("a NOT IN ('T', 'u') ignore case", Not(Or((folded("a", "t"), folded("a", "u"))))),
        ("a ILIKE 'T%'", Matches(("a",), starting("t"), Reading.FOLDED)),
        ("a NOT ILIKE 'TT%' ESCAPE 'T'", Not(Matches(("a",), starting("t"), Reading.FOLDED))),
        ("a LIKE 'T%' IGNORE CASE", Matches(("a",), starting("t"), Reading.FOLDED)),
        ("a CONTAINS 'T' IGNORE CASE", Matches(("a",), containing("t"), Reading.FOLDED)),
        ("a STARTS WITH 'T' IGNORE CASE", Matches(("a",), starting("t"), Reading.FOLDED)),
        ("a ENDS WITH 'T' IGNORE CASE", Matches(("a",), ending("t"), Reading.FOLDED)),
        ("a IS MISSING", OfKind(("a",), frozenset({Kind.MISSING}))),
        ("a IS JSON NULL", OfKind(("a",), frozenset({Kind.NULL}))),
        ("a IS NOT NUMBER", Not(OfKind(("a",), frozenset({Kind.NUMBER})))),
        ("a IS (BOOLEAN, number, Text)", OfKind(("a",), SCALARS)),
        ("a IS NOT (NULL, OBJECT)", Not(OfKind(("a",), NULLS | {Kind.OBJECT}))),
        ("EXISTS a.b", OfKind(("a", "b"), frozenset(Kind) - {Kind.MISSING})),
        ("NOT EXISTS a", Not(OfKind(("a",), frozenset(Kind) - {Kind.MISSING}))),
        ("a IS TRUE", IsTrue(equal("a", True))),
        ("a IS NOT FALSE", Not(IsTrue(equal("a", False)))),
        ("(a=1) IS TRUE", IsTrue(A)),
        ("(a=1 OR b=2) IS FALSE", IsTrue(Not(Or((A, B))))),
        ("NOT (a=1) IS NOT FALSE", Not(Not(IsTrue(Not(A))))),
        ("(a=1) IS UNKNOWN", And((Not(IsTrue(A)), Not(IsTrue(Not(A)))))),
        ("(a=1) IS NOT UNKNOWN", Not(And((Not(IsTrue(A)), Not(IsTrue(Not(A))))))),
        ("a HAS 1", Has(("a",), 1)),
        ("a NOT HAS 'x'", Not(Has(("a",), "x"))),
        ("a HAS ALL (1, 'x') AND b=2", And((Has(("a",), 1), Has(("a",), "x"), B))),
        ("a HAS ANY (1)", Has(("a",), 1)),
        ("a NOT HAS ANY (1, 2)", Not(Or((Has(("a",), 1), Has(("a",), 2))))),
        ("EVERY a = 1", Every(A)),
        ("EVERY a <> 1 AND b=2", And((Every(Comparison(("a",), Operator.NE, 1)), B))),
        ("EVERY a IN ('T') IGNORE CASE", Every(folded("a", "t"))),
        ("EVERY a IS NOT TEXT", Every(OfKind(("a",), frozenset(Kind) - {Kind.TEXT}))),
        ("NOT EVERY TEXT(a) LIKE '1%'", Not(Every(Matches(("a",), starting("1"), Reading.CANONICAL)))),
        ("TEXT(a.b) = '1'", Matches(("a", "b"), exactly("1"), Reading.CANONICAL)),
        ("TEXT(a) <> '1'", Not(Matches(("a",), exactly("1"), Reading.CANONICAL))),
        ("TEXT(text) NOT ENDS WITH '1'", Not(Matches(("text",), ending("1"), Reading.CANONICAL))),
        ("CESQL('a = ''x''')", Formula(parse("a = 'x'"))),
        ("CESQL('LENGTH(a) > 5')", Formula(parse("LENGTH(a) > 5"))),
        ("FALSE", Not(Anything())),
        ("FALSE OR FALSE = a", Or((Not(Anything()), equal("a", False)))),
    ],
)
def test_reads_beyond_plain_sql(text: str, expression: Expression) -> None:
    """The forms that other SQLs spell differently or not at all give the tree that stands for them."""
    assert read(text) == expression
    assert read(write(expression)) == expression


@pytest.mark.parametrize("word", sorted(SOFT_KEYWORDS))
def test_soft_keywords_are_names(word: str) -> None:
    """A word that is a keyword in some places only is a name wherever a name can stand."""
    name = word.lower()
    path = (name,)
    same = CompareFields(path, Operator.EQ, path)
    assert read(f"{name} = 'x'") == equal(name, "x")
    assert read(f"5 < {word}") == Comparison((word,), Operator.GT, 5)
    assert read(f"{name} = {name} AND ({name}={name})") == And((same, same))
    assert read(f"{name}.{word} IS NULL") == is_null(name, word)
    assert read(f"{name} CONTAINS 'x'") == Matches(path, containing("x"))
    assert read(f"{name} NOT STARTS WITH 'x'") == Not(Matches(path, starting("x")))
    assert read(f"{name} HAS ALL (1, 2)") == And((Has(path, 1), Has(path, 2)))
    assert read(f"EVERY {name} > TIMESTAMP '2026-11-16T12:00:00Z'") == Every(
        Comparison(path, Operator.GT, NOON)
    )
    assert read(f"NOT EXISTS {name}") == Not(OfKind(path, frozenset(Kind) - {Kind.MISSING}))
    assert read(f"TEXT({name}) LIKE 'x'") == Matches(path, exactly("x"), Reading.CANONICAL)
    assert read(f"{name} IN CIDR '::/0'") == InBlock(path, Block(6, 0, 0))
    assert read(f"{name} IN ('x') IGNORE CASE") == folded(name, "x")
    assert read(f"{name} IS TEXT") == OfKind(path, frozenset({Kind.TEXT}))


@pytest.mark.parametrize("word", sorted(KEYWORDS))
def test_keywords_are_names_after_a_dot_and_in_quotes(word: str) -> None:
    """A keyword that is one everywhere begins a path only in quotes, and is a plain name after a dot."""
    assert read(f'a.{word}."{word}" = 1') == Comparison(("a", word, word), Operator.EQ, 1)
    assert read(f'"{word}" = a') == CompareFields((word,), Operator.EQ, ("a",))
    with pytest.raises(FilterError):
        read(f"{word}.a = 1")


def written_again(expression: Expression) -> None:
    text = write(expression)
    assume(len(text.encode()) <= limits.FILTER_MAX_BYTES)
    again = read(text)
    assert again == expression
    assert repr(again) == repr(expression)


@often
@given(our.expressions(our.constraints(our.paths())))
@example(Every(OfKind(("a",), frozenset())))
@example(Every(OfKind(("a",), frozenset(Kind))))
@example(Or((A, *(folded("a", str(number)) for number in range(201)), B)))
@example(And((*(Has(("a",), number) for number in range(101)), Has(("b",), 1))))
def test_read_is_the_inverse_of_write(expression: Expression) -> None:
    """Whatever is written is read again as the same expression, types of literals included."""
    written_again(expression)


@often
@given(expressions)
def test_filters_in_other_spellings_can_be_written(expression: Expression) -> None:
    """What came from any spelling is written as SQL and read again as the same, within the limits."""
    text = write(expression)
    assume(len(text.encode()) <= limits.FILTER_MAX_BYTES)
    again = read_filter("sql", text)
    if isinstance(again, Rejection):
        assert again.code in (Code.FILTER_TOO_DEEP, Code.FILTER_TOO_MANY_VALUES)
    else:
        assert repr(again) == repr(expression)


any_text = st.text(max_size=12) | st.text("ab'%_\\!\n\0É", max_size=8)
any_pattern = st.lists(
    st.tuples(any_text, st.sampled_from(("", ANY_ONE))).map("".join), min_size=1, max_size=4
).map(Pattern.of)


@given(any_pattern, st.sampled_from(Reading), st.booleans())
def test_any_pattern_can_be_written(pattern: Pattern, reading: Reading, negated: bool) -> None:
    """Wildcards, quotes, escapes and control characters in a pattern's text are written and read again."""
    made = Matches(("a",), pattern.fold() if reading is Reading.FOLDED else pattern, reading)
    written_again(Not(made) if negated else made)
    written_again(Every(made))


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (exactly("x"), "a LIKE 'x'"),
        (starting("x%"), "a STARTS WITH 'x%'"),
        (ending("_'"), "a ENDS WITH '_'''"),
        (containing("\\"), "a CONTAINS '\\'"),
        (containing(""), "a LIKE '%'"),
        (Pattern((f"a{ANY_ONE}", "\\b")), "a LIKE 'a_%\\b'"),
        (Pattern(("a%", "\\b")), "a LIKE 'a\\%%\\\\b' ESCAPE '\\'"),
    ],
)
def test_patterns_are_written_plainly(pattern: Pattern, text: str) -> None:
    """LIKE is written only where no word says it, and an escape only where one is needed."""
    assert write(Matches(("a",), pattern)) == text


@given(our.expressions(depth=5))
@example(read("(" * 8 + "a = 1" + ") IS NOT TRUE" * 8))
@example(read("(" * 6 + "a = 1" + ") IS TRUE" * 5 + ") IS UNKNOWN"))
@example(read("(" * 4 + "a = 1" + ") IS NOT FALSE" * 4))
def test_what_was_read_can_be_read_again(expression: Expression) -> None:
    """Writing nests a filter no deeper than it was: near the limit too, its text is read again."""
    try:
        again = read(write(expression))
    except FilterError as error:
        assert error.rejection.code in (Code.FILTER_TOO_LONG, Code.FILTER_TOO_DEEP)
    else:
        assert again == expression == read(write(again))


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
    *sorted(KEYWORDS | SOFT_KEYWORDS), "TEXT(", "CESQL('", "TIMESTAMP '2026-11-16T12:00:00Z'", "IGNORE CASE",
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
        ("a = NULL", 5, "IS NULL"),
        ("NULL = a", 1, "IS NULL"),
        ("a IN (1, NULL)", 10, "IS NULL"),
        ("a IN ()", 7, "expected a value, found ); a list has at least one value"),
        ("a IN (1,)", 9, "no comma follows the last value"),
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
        ("a NOT = 1", 7, "BETWEEN, CONTAINS, HAS, IN, LIKE, STARTS WITH or ENDS WITH"),
        ("a IS 5", 6, "a kind (NULL, MISSING,"),
        ("a == 1", 4, "one ="),
        ("a = 1 && b = 2", 7, "written AND"),
        ("a = 1 || b = 2", 7, "written OR"),
        ("! a = 1", 1, "written NOT"),
        ("a = 1;", 6, "ends without it"),
        ("a[0] = 1", 2, "parentheses"),
        ("a = `b`", 5, "double quotes"),
        ('a LIKE "b"', 8, "double quotes are for names"),
        ("a LIKE b", 8, "text stands in single quotes"),
        ('a IN ("b")', 7, "double quotes are for names"),
        ("a AND b = 1", 3, "IS TRUE"),
        ("NOT a", 6, "IS TRUE"),
        ("(a) IS TRUE", 3, "IS TRUE"),
        ("a IS UNKNOWN", 6, "in parentheses"),
        ("(a = 1) IS NULL", 12, "TRUE, FALSE"),
        ("a IS (NULL,)", 12, "last value"),
        ("a STARTS 'x'", 10, "expected WITH"),
        ("a LIKE IGNORE CASE", 8, "IGNORE follows the text"),
        ("a LIKE ESCAPE '!'", 8, "ESCAPE follows the text"),
        ("a = 'x' IGNORE", 15, "expected CASE"),
        ("a < 'x' IGNORE CASE", 3, "goes with = and <>"),
        ("a LIKE 'x' ESCAPE ''", 19, "one character"),
        ("a LIKE 'x' ESCAPE 'ab'", 19, "one character"),
        ("a LIKE 'x!y' ESCAPE '!'", 10, "must come %, _ or itself"),
        ("a LIKE '''x!' ESCAPE '!'", 12, "must come %, _ or itself"),
        ("a HAS (1, 2)", 7, "HAS ALL or HAS ANY"),
        ("EVERY a NOT LIKE 'x'", 9, "NOT EVERY"),
        ("EVERY a <> 'x' IGNORE CASE", 9, "NOT EVERY"),
        ("EVERY NOT a = 1", 1, "NOT EVERY"),
        ("EVERY a HAS 1", 1, "a condition on one value"),
        ("EVERY a IN ('x', 'y') IGNORE CASE", 1, "a condition on one value"),
        ("EVERY EVERY a = 1", 1, "a condition on one value"),
        ("TEXT(a) > 'x'", 9, "goes with = and <>"),
        ("TEXT(a) ILIKE 'x'", 9, "counts case"),
        ("TEXT(a) = 5", 11, "text in single quotes"),
        ("a = TIMESTAMP '2026-11-16'", 15, "RFC 3339"),
        ("a IN CIDR '10.0.0.1'", 11, "'10.0.0.0/8'"),
        ("CESQL('a =')", 11, "in CESQL: the filter ends too early"),
        ("CESQL('''x'' = = a')", 16, "in CESQL: expected"),
        ("CESQL('')", 8, "in CESQL: the filter is empty"),
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
        (f"a HAS ALL (1{', 1' * 99})", f"a HAS ALL (1{', 1' * 100})", Code.FILTER_TOO_MANY_VALUES, 312),
        ("(" * 8 + "a=1" + ") IS TRUE" * 8, "(" * 9 + "a=1" + ") IS TRUE" * 9, Code.FILTER_TOO_DEEP, 87),
        ("(" * 8 + "a=1" + ") IS NOT TRUE" * 8, f"({'NOT ' * 8}a=1) IS NOT TRUE", Code.FILTER_TOO_DEEP, 39),
        (
            "((a=1) IS UNKNOWN) IS UNKNOWN",
            "(((a=1) IS UNKNOWN) IS UNKNOWN) IS UNKNOWN",
            Code.FILTER_TOO_DEEP,
            33,
        ),
        (f"{'NOT ' * 7}a IS FALSE", f"{'NOT ' * 7}(a = 1) IS FALSE", Code.FILTER_TOO_DEEP, 1),
        ("a = 'x' IGNORE CASE", "a = 5 IGNORE CASE", Code.FILTER_TYPE, 5),
        ("a IN ('x') IGNORE CASE", "a IN ('x', TRUE) IGNORE CASE", Code.FILTER_TYPE, 12),
        (
            "a BETWEEN TIMESTAMP '2026-11-16T12:00:00Z' AND TIMESTAMP '2026-11-16T12:00:00Z'",
            "a BETWEEN TIMESTAMP '2026-11-16T12:00:00Z' AND '2026-11-16T12:00:00Z'",
            Code.FILTER_TYPE,
            48,
        ),
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
     "a IN (" + "1," * 2000, "EVERY " * 600 + "a = 1", "(" * 200 + "a=1" + ") IS UNKNOWN" * 200,
     "TEXT(" * 800, "CESQL(''" * 500, "a LIKE '" + "_%" * 2000 + "'", "a IS (" + "NULL," * 800,
     "a = 1" + " " * 4090 + "~"],
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
    assert "sql" in SPELLINGS
    assert read_filter("sql", "a = 1") == A
    refused = read_filter("xpath", "a = 1")
    assert isinstance(refused, Rejection)
    assert refused.code == Code.SPELLING_UNKNOWN
    assert "sql" in refused.reason
