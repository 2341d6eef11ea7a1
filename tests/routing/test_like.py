"""LIKE agrees with its definition and stays cheap on every pattern."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from branchline.routing.like import like
from branchline.routing.limits import EVENT_MAX_BYTES, FILTER_MAX_BYTES


def obvious(text: str, pattern: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "%":
        return obvious(text, pattern[1:]) or (text != "" and obvious(text[1:], pattern))
    return text != "" and pattern[0] in ("_", text[0]) and obvious(text[1:], pattern[1:])


@given(st.text("ab_%", max_size=9), st.text("ab_%", max_size=9))
@example("ab", "a%b")
@example("aa", "a%a")
@example("a", "a%a")
@example("aab", "%a_%")
def test_agrees_with_the_obvious_definition(text: str, pattern: str) -> None:
    """LIKE is what the recursive definition says, for every short text and pattern."""
    assert like(text, pattern) == obvious(text, pattern)


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("", "", True),
        ("", "%", True),
        ("", "_", False),
        ("a\nb", "a_b", True),
        ("𝄞", "_", True),
        ("e\u0301", "_", False),
        ("A", "a", False),
        ("a.c", "a.c", True),
        ("abc", "a.c", False),
        ("[x]", "[x]", True),
        ("a\\", "a\\", True),
        ("aXbXc", "a%X%c", True),
        ("mississippi", "%iss_ss%", True),
        ("mississippi", "%iss_ssi", False),
    ],
)
def test_examples(text: str, pattern: str, expected: bool) -> None:
    """Case counts, _ is one code point, and nothing but % and _ has a meaning."""
    assert like(text, pattern) is expected


LONG = "a" * EVENT_MAX_BYTES
ROOM = FILTER_MAX_BYTES - 8


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("%" * ROOM, True),
        ("_" * ROOM, False),
        ("%_" * (ROOM // 2), True),
        ("_%" * (ROOM // 2) + "b", False),
        ("%" + "a_" * (ROOM // 2) + "b%", False),
        ("%" + "_" * ROOM + "b%", False),
        ("%" + "a" * ROOM + "b%", False),
        ("%a" * (ROOM // 2) + "%b%", False),
    ],
    ids=lambda value: value[:6] if isinstance(value, str) else None,
)
def test_hostile_patterns_on_the_longest_text_end(pattern: str, expected: bool) -> None:
    """No pattern that fits in a filter keeps LIKE busy on a text as large as an event."""
    assert like(LONG, pattern) is expected
