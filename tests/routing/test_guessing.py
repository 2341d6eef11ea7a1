"""Guessing a filter's spelling: what one reader accepts is read as that one's, and nothing is an error."""

import pytest
import strategies as our
from hypothesis import given
from hypothesis import strategies as st

from branchline.routing.expression import Expression
from branchline.routing.spellings import SPELLINGS
from branchline.routing.spellings.guessing import guess
from branchline.routing.spellings.sql import write

JSON_PIECES = (
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    '"',
    '"exact"',
    '"any"',
    '"type"',
    '"x"',
    "1",
    "null",
    " ",
    "\n",
    "\\ud800",
)


@given(st.text() | st.lists(st.sampled_from(JSON_PIECES), max_size=12).map("".join))
def test_every_text_is_in_some_spelling(text: str) -> None:
    """Whatever the text, a known spelling is named and nothing is raised."""
    assert guess(text) in SPELLINGS


@given(our.expressions())
def test_what_sql_writes_is_taken_for_sql(expression: Expression) -> None:
    """SQL comes first of the two that are no JSON."""
    assert guess(write(expression)) == "sql"


@pytest.mark.parametrize(
    ("text", "spelling"),
    [
        ("price < 100", "sql"),
        ("type = 'order'", "sql"),
        ("a = 1 XOR b = 2", "cesql"),
        ("ABS(price) = 1", "cesql"),
        ("LENGTH(type) > 3", "cesql"),
        ('type = "order" AND LEFT(subject, 2) = \'x\'', "cesql"),
        ('{"exact": {"type": "order"}}', "cloudevents"),
        (' \n[{"prefix": {"type": "or"}}]', "cloudevents"),
        ("[]", "cloudevents"),
        ('{"type": ["order"]}', "eventbridge"),
        ('{"exact": ["order"]}', "eventbridge"),
        ('{"sql": {"price": [{"numeric": [">", 1]}]}}', "eventbridge"),
    ],
)  # fmt: skip
def test_a_text_is_what_reads_it(text: str, spelling: str) -> None:
    """A text that one spelling alone accepts is in that one; both dialects' names may be fields."""
    assert guess(text) == spelling


@pytest.mark.parametrize(
    ("text", "spelling"),
    [
        ("", "sql"),
        ("price <", "sql"),
        ("NO_SUCH_FUNCTION(price) = 1", "sql"),
        ("[", "cloudevents"),
        ('[{"type": ["order"]}]', "cloudevents"),
        ("{}", "cloudevents"),
        ('{"exact": {"type": 1}}', "cloudevents"),
        ('{"exact": {"type": "a"}, "prefix": {"type": "a"}}', "cloudevents"),
        ('{"exact": {"type": ', "cloudevents"),
        ('{"type": "order"}', "eventbridge"),
        ('{"exact": {"type": "a"}, "type": ["a"]}', "eventbridge"),
        ('{"type": [', "eventbridge"),
        ('{"a":' * 100_000, "eventbridge"),
        ("[" * 100_000, "cloudevents"),
        ('{"type": ["\ud800"]}', "eventbridge"),
        ("(" * 100_000, "sql"),
        (f'{{"type": [{"9" * 5000}]}}', "eventbridge"),
    ],
    ids=lambda value: value[:30].encode(errors="replace").decode(),
)
def test_a_text_that_nothing_reads_is_what_was_likely_meant(text: str, spelling: str) -> None:
    """By its first character, and of two JSON spellings by the names of its object."""
    assert guess(text) == spelling
