"""The CESQL spelling: what it reads, what it writes, what it refuses and where."""

import time
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from branchline.routing import limits
from branchline.routing.cesql.text import quoted, unquoted
from branchline.routing.cesql.tree import (
    All,
    Among,
    Any,
    Arithmetic,
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
    Xor,
)
from branchline.routing.codes import Code
from branchline.routing.patterns import starting
from branchline.routing.spellings.cesql import parse, read, write
from branchline.routing.spellings.errors import FilterError
from branchline.routing.values import Operator

A, B, C = Identifier("a"), Identifier("b"), Identifier("c")
ONE, TWO = Constant(1), Constant(2)
EQ = Operator.EQ


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("a", A),
        ("orderId", Identifier("orderId")),
        ("1st", Identifier("1st")),
        ("007", Constant(7)),
        ("+7", Constant(7)),
        ("-7", Constant(-7)),
        ("- 7", Constant(-7)),
        ("-(7)", Negate(Constant(7))),
        ("--7", Negate(Constant(-7))),
        ("-a", Negate(A)),
        ("-2147483648", Constant(-(2**31))),
        ("tRuE", Constant(True)),
        ("'it\\'s'", Constant("it's")),
        ('"say \\"x\\" \'y\'"', Constant("say \"x\" 'y'")),
        ("'a\\\"b'", Constant('a\\"b')),
        ("'a\\\\'", Constant("a\\\\")),
        ("'a\\nb'", Constant("a\\nb")),
        ("''", Constant("")),
        ("a = 1", Compare(A, EQ, ONE)),
        ("a<>1", Compare(A, Operator.NE, ONE)),
        ("a!=1", Compare(A, Operator.NE, ONE)),
        ("a = 1 = 2", Compare(Compare(A, EQ, ONE), EQ, TWO)),
        ("a-1", Calculate(A, Arithmetic.MINUS, ONE)),
        ("a - -1", Calculate(A, Arithmetic.MINUS, Constant(-1))),
        ("a + 1 * 2", Calculate(A, Arithmetic.PLUS, Calculate(ONE, Arithmetic.TIMES, TWO))),
        ("a * 1 / 2", Calculate(Calculate(A, Arithmetic.TIMES, ONE), Arithmetic.DIVIDED, TWO)),
        ("NOT a = 1", Compare(Not(A), EQ, ONE)),
        ("NOT a LIKE 'x%'", Like(Not(A), starting("x"))),
        ("a NOT LIKE 'x%'", Not(Like(A, starting("x")))),
        ("1 + a LIKE 'x%'", Calculate(ONE, Arithmetic.PLUS, Like(A, starting("x")))),
        ("a IN (1, b, 'x')", Among(A, (ONE, B, Constant("x")))),
        ("a Not In (1)", Not(Among(A, (ONE,)))),
        ("exists a AND NOT EXISTS b", All((Exists("a"), Not(Exists("b"))))),
        ("a AND b AND c", All((A, B, C))),
        ("a AND (b AND c)", All((A, B, C))),
        ("a OR b AND c", All((Any((A, B)), C))),
        ("a AND b OR c", Any((All((A, B)), C))),
        ("a XOR b XOR c", Xor((A, B, C))),
        ("a XOR (b OR c)", Xor((A, Any((B, C))))),
        ("concat_ws(a, 1)", Call("CONCAT_WS", (A, ONE))),
        ("Nope()", Call("NOPE", ())),
        ("left(a, 1) = b", Compare(Call("LEFT", (A, ONE)), EQ, B)),
        ("(((a)))", A),
        ("inn", Identifier("inn")),
        ("a\n\t= 1", Compare(A, EQ, ONE)),
    ],
)
def test_parses(text: str, node: Node) -> None:
    """Each form of the grammar gives the one tree that stands for it, and what is written gives it again."""
    assert parse(text) == node
    assert repr(parse(text)) == repr(node)
    assert parse(write(node)) == node


@pytest.mark.parametrize(
    ("text", "code", "column", "word"),
    [
        ("", Code.FILTER_SYNTAX, 1, "empty"),
        ("a =", Code.FILTER_SYNTAX, 4, "ends too early"),
        ("a = = b", Code.FILTER_SYNTAX, 5, "an attribute, a value"),
        ("a b", Code.FILTER_SYNTAX, 3, "AND, OR"),
        ("a LIKE 5", Code.FILTER_SYNTAX, 8, "text in quotes"),
        ("a LIKE b", Code.FILTER_SYNTAX, 8, "text in quotes"),
        ("a IN ()", Code.FILTER_SYNTAX, 7, "an attribute, a value"),
        ("a IN 5", Code.FILTER_SYNTAX, 6, "parenthesis"),
        ("EXISTS 'a'", Code.FILTER_SYNTAX, 8, "an attribute"),
        ("in = 1", Code.FILTER_SYNTAX, 1, "keyword"),
        ("a = 'x", Code.FILTER_SYNTAX, 5, "closing quote"),
        ("a = 'it''s'", Code.FILTER_SYNTAX, 5, "\\'"),
        ("a = 'x\\'", Code.FILTER_SYNTAX, 5, "closing quote"),
        ("order_id = 1", Code.FILTER_SYNTAX, 1, "ASCII"),
        ("größe = 1", Code.FILTER_SYNTAX, 1, "ASCII"),
        ("a = 1.5", Code.FILTER_SYNTAX, 5, "integer"),
        ("a.b = 1", Code.FILTER_SYNTAX, 2, "paths"),
        ("a = 2147483648", Code.FILTER_NUMBER, 5, "2147483647"),
        ("a = -2147483649", Code.FILTER_NUMBER, 6, "-2147483648"),
        (f"a = {'9' * 999}", Code.FILTER_NUMBER, 5, "…"),
        ("a = 1 AND NOPE(b)", Code.FILTER_SYNTAX, 11, "CONCAT_WS"),
        ("a = LENGTH(1, 2)", Code.FILTER_SYNTAX, 5, "2 arguments"),
        (" LENGTH(a)", Code.FILTER_TYPE, 2, "Integer"),
        ("CONCAT(a)", Code.FILTER_TYPE, 1, "String"),
        ("-a", Code.FILTER_TYPE, 1, "Integer"),
        ("1", Code.FILTER_TYPE, 1, "Integer"),
        ("'true'", Code.FILTER_TYPE, 1, "String"),
        (f"{'a' * 257} = 1", Code.FILTER_NAME_TOO_LONG, 1, "256"),
        (f"a IN ({', '.join(['1'] * 101)})", Code.FILTER_TOO_MANY_VALUES, 3, "101"),
        ("NOT " * 9 + "a", Code.FILTER_TOO_DEEP, 1, "8"),
        ("a" + " AND a OR a" * 5, Code.FILTER_TOO_DEEP, 47, "parentheses"),
        ("a = 1" + " + 1" * limits.CESQL_MAX_DEPTH, Code.FILTER_TOO_DEEP, 3, "64"),
        ("\ud800", Code.FILTER_SYNTAX, 1, "surrogate"),
        ("a" * (limits.FILTER_MAX_BYTES + 1), Code.FILTER_TOO_LONG, 1, "4096"),
    ],
)
def test_refuses(text: str, code: Code, column: int, word: str) -> None:
    """What is no filter is refused with a code, at its place, for a reason that helps."""
    with pytest.raises(FilterError) as caught:
        read(text)
    assert (caught.value.rejection.code, caught.value.column) == (code, column)
    assert word in caught.value.rejection.reason


@pytest.mark.parametrize(
    "piece", ["(", "-", "NOT ", "1+", "a OR ", "a AND b OR ", "LEFT(", "a IN (", "'", "a=1 XOR ", "\\"]
)
def test_long_texts_are_quick(piece: str) -> None:
    """The longest texts of one repeated piece are read or refused at once, whatever the piece nests."""
    text = (piece * limits.FILTER_MAX_BYTES)[: limits.FILTER_MAX_BYTES - 1]
    start = time.process_time()
    for tail in ("", "a", ")"):
        with suppress(FilterError):
            read(text + tail)
    assert time.process_time() - start < 2


def test_chains_are_flat() -> None:
    """A chain as long as a filter can be, and parentheses that say nothing, are no nesting."""
    read(" AND ".join(["a=b"] * 500))
    read(" OR ".join(["a='b'"] * 400))
    assert read("(" * 2000 + "a = 'x'" + ")" * 2000) == read("a = 'x'")


WORDS = (
    "a", "b", "1", "-", "+", "*", "/", "%", "(", ")", ",", "=", "<>", "<", ">=", "'t'", '"u"', "'5'", "'",
    '"', "\\", "AND", "OR", "XOR", "NOT", "IN", "LIKE", "EXISTS", "TRUE", "false", "LENGTH(", "CONCAT_WS(",
    "NOPE(", "a_b", "2147483648", "1.5", "\n", "\ud800", "é", "\0",
)  # fmt: skip


@given(st.text(max_size=40) | st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join))
@example("a = 'x' AND\n")
@example("'\\")
def test_any_text_is_read_or_refused_at_a_place_in_it(text: str) -> None:
    """Reading gives an expression, and a tree that round-trips, or a FilterError at a place in the text."""
    try:
        read(text)
    except FilterError as error:
        lines = text.split("\n")
        assert 1 <= error.line <= len(lines)
        assert 1 <= error.column <= len(lines[error.line - 1]) + 1
    try:
        node = parse(text)
    except FilterError:
        return
    assert parse(write(node)) == node


@given(st.text("a%_\\'\"", max_size=8), st.sampled_from("'\""))
def test_every_text_that_is_read_can_be_written(inside: str, quote: str) -> None:
    """The text of any literal that the grammar takes has a literal that stands for it."""
    try:
        node = parse(quote + inside + quote)
    except FilterError:
        return
    if isinstance(node, Constant) and isinstance(node.value, str):
        assert unquoted(quoted(node.value)) == node.value
        assert parse(quoted(node.value)) == node
        like = parse(f"a LIKE {quoted(node.value)}")
        assert parse(write(like)) == like


def test_some_texts_cannot_be_written() -> None:
    """A text with a lone backslash before both quotes has no literal, and is not written as another one."""
    assert quoted("a\\'") == '"a\\\'"'
    with pytest.raises(ValueError, match="literal"):
        quoted("\\' \\\"")
