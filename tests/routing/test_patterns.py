"""Patterns agree with their definition, have one normal form, and stay cheap on every text."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from branchline.routing import patterns as patterns_module
from branchline.routing.limits import EVENT_MAX_BYTES, FILTER_MAX_BYTES
from branchline.routing.patterns import (
    ANY_ONE,
    BadEscape,
    Pattern,
    containing,
    ending,
    exactly,
    fits,
    like_pattern,
    starting,
)


def like(text: str, pattern: str) -> bool:
    return fits(text, like_pattern(pattern))


def obvious(text: str, pattern: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "%":
        return obvious(text, pattern[1:]) or (text != "" and obvious(text[1:], pattern))
    return text != "" and pattern[0] in ("_", text[0]) and obvious(text[1:], pattern[1:])


short = st.text("ab_%", max_size=9)
pieces = st.lists(st.text("ab" + ANY_ONE, max_size=3), min_size=1, max_size=4)
patterns = pieces.map(Pattern.of)


@given(short, short)
@example("ab", "a%b")
@example("aa", "a%a")
@example("a", "a%a")
@example("aab", "%a_%")
@example("ab", "%_%a")
@example("ba", "_%_%")
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
        ("a\\b", "a\\%", True),
        ("aXbXc", "a%X%c", True),
        ("mississippi", "%iss_ss%", True),
        ("mississippi", "%iss_ssi", False),
        ("aba", "ab%ba", False),
        ("abba", "ab%ba", True),
    ],
)
def test_examples(text: str, pattern: str, expected: bool) -> None:
    """Case counts, _ is one code point, and nothing but % and _ has a meaning."""
    assert like(text, pattern) is expected


@given(short.map(lambda text: text.replace("_", "").replace("%", "")), st.text("ab", max_size=9))
def test_words_are_what_they_say(part: str, text: str) -> None:
    """The patterns that STARTS WITH, ENDS WITH and CONTAINS make are Python's words for them."""
    assert fits(text, exactly(part)) == (text == part)
    assert fits(text, starting(part)) == text.startswith(part)
    assert fits(text, ending(part)) == text.endswith(part)
    assert fits(text, containing(part)) == (part in text)
    for pattern in (exactly(part), starting(part), ending(part), containing(part)):
        assert Pattern.of(pattern.pieces) == pattern


@given(pieces, st.text("ab", max_size=8))
def test_normalising_keeps_the_meaning(pieces: list[str], text: str) -> None:
    """The normal form fits the same texts as the pieces that it was made of."""
    spelled = "%".join(pieces).replace(ANY_ONE, "_")
    assert fits(text, Pattern.of(pieces)) == obvious(text, spelled)


@given(patterns)
def test_the_normal_form_is_normal(pattern: Pattern) -> None:
    """It is its own normal form, has no empty piece within and no ANY_ONE after a run."""
    assert Pattern.of(pattern.pieces) == pattern
    assert all(pattern.pieces[1:-1])
    assert not any(piece.startswith(ANY_ONE) for piece in pattern.pieces[1:])


@given(short)
def test_order_and_number_of_runs_do_not_matter(pattern: str) -> None:
    """Runs beside runs and ANY_ONE on either side of a run are one pattern, equal and of one hash."""
    doubled = like_pattern(pattern.replace("%", "%%"))
    turned = like_pattern(pattern.replace("_%", "%_"))
    assert like_pattern(pattern) == doubled == turned
    assert len({like_pattern(pattern), doubled, turned}) == 1


TEXTS = [""]
for _ in range(5):
    TEXTS += [text + letter for text in TEXTS if len(text) == len(TEXTS[-1]) for letter in "abc"]


@given(st.text("a_%", max_size=4), st.text("a_%", max_size=4))
def test_different_patterns_tell_some_text_apart(one: str, other: str) -> None:
    """Two patterns are equal if and only if they fit the same texts, so equal filters are found equal."""
    same = all(obvious(text, one) == obvious(text, other) for text in TEXTS)
    assert (like_pattern(one) == like_pattern(other)) is same


@pytest.mark.parametrize(
    ("pattern", "escape", "expected"),
    [
        ("a!%", "!", exactly("a%")),
        ("!_%", "!", starting("_")),
        ("!!%", "!", starting("!")),
        ("%%a", "%", exactly("%a")),
        ("%a", "%", None),
        ("%%%_", "%", exactly("%_")),
        ("__a%", "_", starting("_a")),
        ("a!", "!", None),
        ("!a", "!", None),
        ("a!!", "!", exactly("a!")),
        ("𝄞%x", "𝄞", exactly("%x")),
    ],
)
def test_escapes(pattern: str, escape: str, expected: Pattern | None) -> None:
    """After the escape character %, _ and itself are plain, and nothing else may follow it."""
    if expected is None:
        with pytest.raises(BadEscape):
            like_pattern(pattern, escape)
    else:
        assert like_pattern(pattern, escape) == expected


@pytest.mark.parametrize(("pattern", "offset"), [("!", 0), ("ab!c", 2), ("!!!", 2), ("!%!_!", 4)])
def test_a_bad_escape_knows_its_place(pattern: str, offset: int) -> None:
    """What is refused is the escape character that escapes nothing; leniently, it is itself."""
    with pytest.raises(BadEscape) as caught:
        like_pattern(pattern, "!")
    assert caught.value.offset == offset
    spelled = pattern.replace("!!", "\0").replace("!%", "\1").replace("!_", "\2")
    plain = spelled.replace("\0", "!").replace("\1", "%").replace("\2", "_")
    assert like_pattern(pattern, "!", lenient=True) == exactly(plain)


@given(st.text("ab!%_", max_size=9))
def test_every_text_can_be_escaped(text: str) -> None:
    """With every special character escaped, a pattern fits its own text alone."""
    escaped = "".join("!" + symbol if symbol in "!%_" else symbol for symbol in text)
    assert like_pattern(escaped, "!") == exactly(text)


@given(patterns, st.lists(st.text("abß", max_size=2), min_size=3, max_size=3), st.sampled_from("abß"))
def test_what_fits_has_the_prefix_suffix_and_words(pattern: Pattern, runs: list[str], one: str) -> None:
    """An index may look for a pattern's prefix, suffix and words: every text that fits has them."""
    first, *rest = pattern.pieces
    text = (first + "".join(run + piece for run, piece in zip(runs, rest, strict=False))).replace(
        ANY_ONE, one
    )
    assert fits(text, pattern)
    assert text.startswith(pattern.prefix)
    assert text.endswith(pattern.suffix)
    assert all(word in text for word in pattern.words)
    assert ANY_ONE not in pattern.prefix + pattern.suffix + "".join(pattern.words)


@given(pieces)
def test_prefix_suffix_and_words_say_all_that_is_plain(pieces: list[str]) -> None:
    """No plain part of a pattern is forgotten: each is the prefix, the suffix or a word."""
    pattern = Pattern.of(pieces)
    plain = {part for piece in pattern.pieces for part in piece.split(ANY_ONE) if part}
    assert plain <= pattern.words | {pattern.prefix, pattern.suffix}


@given(st.lists(st.text("aBßİς" + ANY_ONE, max_size=3), min_size=1, max_size=3).map(Pattern.of))
@example(Pattern(("ẞ", "ŉ")))
def test_folding_is_done_once(pattern: Pattern) -> None:
    """A folded pattern is folded and normal, and fits what its own case-folded text is."""
    once = pattern.fold()
    assert once.fold() == once == Pattern.of(once.pieces)
    sample = "".join(pattern.pieces).replace(ANY_ONE, "x")
    assert fits(sample, pattern)
    assert fits(sample.casefold(), once)


@given(short, short)
@example("ab" * 3, "%_b%_%b")
def test_trying_all_places_at_once_agrees_with_going_through(text: str, pattern: str) -> None:
    """Long texts are searched in another way, which finds the same at the same place."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(patterns_module, "_LONG_CHARS", 1)
        assert like(text, pattern) == obvious(text, pattern)


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
