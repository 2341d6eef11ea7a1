"""Our own parsing loop against lark's, over the same tables, the same lexer and the same builder."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lark import Lark
from lark.exceptions import UnexpectedToken

from branchline.routing.codes import Code, Rejection
from branchline.routing.spellings import cesql, sql
from branchline.routing.spellings.errors import FilterError
from branchline.routing.spellings.lexing import Token
from branchline.routing.spellings.parsing import Parser

BOTH = pytest.mark.parametrize("parser", [sql.parser(), cesql.parser()], ids=["sql", "cesql"])

# Words of both spellings: each parser refuses some of the other's. Parts that fit together are drawn as one,
# so that not only short texts are filters.
WORDS = (
    "a", "b.c", "text", "'t'", "'u%'", "5", "-", "+", "*", "(", ")", ",", ".", "=", "<>", "!=", "<", "AND",
    "OR", "XOR", "NOT", "IN", "LIKE", "EXISTS", "TRUE", "IS", "NULL", "BETWEEN", "UNKNOWN", "HAS", "ANY",
    "IGNORE CASE", "LENGTH(", "CONCAT_WS(", "'", '"', "&", "1.5", "é", "a = 't'", "a LIKE 'u%'", "EXISTS a",
    "a NOT IN (1, 't')", "(a = 5)", "(a = 5 OR b = 't')", "(TRUE)", "TEXT(a) = 't'", "a BETWEEN 1 AND 2",
    "a IS NOT (NULL, TEXT)", "LENGTH(a) = 5", "a + 1 = 5", "NOT a = 't'", "CESQL('EXISTS a')",
    "(NOT (NOT (NOT (NOT a = 5))))",
)  # fmt: skip
JOINED = ("a = 't'", "NOT (b <> 5)", "(a IN (1, 't') OR EXISTS b)", "a LIKE 'u%'", "b NOT LIKE '_'", "(TRUE)")

some_words = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
filters = st.lists(st.sampled_from(JOINED), min_size=1, max_size=5).map(" AND ".join)
texts = st.one_of(some_words, filters, st.builds("{} {}".format, filters, some_words))


def outcome(parse: Callable[[str], Any], text: str) -> tuple[Any, ...]:
    """What parsing gives, or all that an error message is made of."""
    try:
        return "made", parse(text)
    except FilterError as error:
        return "refused", error.rejection
    except UnexpectedToken as error:
        return "unexpected", error.token.type, error.token.value, error.token.start_pos, error.accepts


@BOTH
@given(texts)
def test_parses_as_lark_does(parser: Parser, text: str) -> None:
    """Every text gives what lark's own loop gives: the same piece, refusal, or unexpected token."""
    assert outcome(parser.parse, text) == outcome(parser.lark.parse, text)


@BOTH
@given(filters)
def test_lark_parses_only_what_cannot_be_parsed(parser: Parser, text: str) -> None:
    """Lark is asked for mistakes: a filter never takes the time of a second parse."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Lark, "parse", lambda *_: pytest.fail("lark was asked"))
        assert outcome(parser.parse, text)[0] == "made"


@pytest.mark.parametrize(
    ("read", "text", "line", "column"),
    [
        (sql.read, "a = 1\n AND b = &", 2, 10),
        (cesql.read, "a = 1\n AND b = &", 2, 10),
        (sql.read, "a = 1 AND\n\n", 1, 10),
        (cesql.read, "a = 1 AND\n\n", 1, 10),
        (cesql.read, "a = 1\n\tAND NOPE(b)", 2, 6),
    ],
)
def test_places_count_lines(read: Callable[[str], Any], text: str, line: int, column: int) -> None:
    """A mistake is told at its line and column, the end of the text behind its last word."""
    with pytest.raises(FilterError) as caught:
        read(text)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_a_token_knows_its_place() -> None:
    """A token refuses at its own place, or at one within it."""
    token = Token("STRING", "'it'", 5, "a =\n 'it'")
    assert token.refusal(Code.FILTER_SYNTAX, "no").rejection == Rejection(Code.FILTER_SYNTAX, "no", 2, 2)
    assert token.refusal(Code.FILTER_SYNTAX, "no", 2).rejection == Rejection(Code.FILTER_SYNTAX, "no", 2, 4)
