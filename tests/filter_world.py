"""A small world of events, and random filters whose ends lie between its values.

Whatever two of these filters have in common, or do not, shows in some event of the world: so brute force over
it is the truth.
"""

from itertools import product
from typing import Any

from hypothesis import strategies as st

from branchline.routing.dimensions import Axis, kinds, prefix_range, ranks
from branchline.routing.event import Event
from branchline.routing.filters import Constraint, Contains, Contradiction, Filter, Range, conjoin
from branchline.routing.intervals import HIGHEST, LOWEST, Interval, after, before, text_before, text_point
from branchline.routing.values import Kind

A, B = ("a",), ("b",)
NUMBERS = (-1, 0, 0.5, 1, 1.5, 2, 3)
TEXTS = ("", "\0", "a", "a\0", "ab", "abc", "b", "ba", "c", "A", "AB", "ﬁ", "fi")
VALUES: tuple[Any, ...] = (None, True, False, *NUMBERS, *TEXTS, {})
WORLD = [
    Event({**({"a": a} if a != () else {}), **({"b": b} if b != () else {})})
    for a, b in product((*VALUES, ()), ((), None, True, 0, 1, "a", {}))
]


def ends(cuts: list[tuple[Any, ...]]) -> st.SearchStrategy[Interval]:
    pool = [LOWEST, *cuts, HIGHEST]
    return st.sampled_from([Interval(low, high) for low in pool for high in pool if low < high])


number_ranges = ends([cut(value) for value in (0, 1, 2) for cut in (before, after)])
text_ranges = ends([cut(text) for text in ("", "a", "ab", "b") for cut in (text_before, after)])
presence = st.sampled_from([kinds(low, high) for low in Kind for high in Kind if low <= high])
independent: st.SearchStrategy[Constraint] = st.one_of(
    st.builds(Range, st.just(A), st.just(Axis.NUMBER), number_ranges),
    st.builds(Range, st.just(A), st.just(Axis.TEXT), text_ranges),
    st.builds(Range, st.just(A), st.just(Axis.BOOLEAN), st.sampled_from((ranks(0, 0, 1), ranks(1, 1, 1)))),
    st.builds(Range, st.sampled_from((A, B)), st.just(Axis.PRESENCE), presence),
    st.builds(
        Range,
        st.just(B),
        st.just(Axis.NUMBER),
        st.sampled_from([Interval(LOWEST, after(0)), Interval(after(0), HIGHEST)]),
    ),
)
words = st.sampled_from(("a", "b", "ab", "bc", "fi"))
dependent: st.SearchStrategy[Constraint] = st.one_of(
    independent,
    st.builds(Range, st.just(A), st.just(Axis.REVERSED), words.map(lambda word: prefix_range(word[::-1]))),
    st.builds(Range, st.just(A), st.sampled_from((Axis.FOLDED, Axis.REVERSED)), words.map(text_point)),
    st.builds(Range, st.just(A), st.just(Axis.FOLDED), words.map(prefix_range)),
    st.builds(
        Range, st.just(A), st.just(Axis.FOLDED_REVERSED), words.map(lambda word: prefix_range(word[::-1]))
    ),
    # Folded, it is two letters.
    st.builds(Range, st.just(A), st.just(Axis.REVERSED), st.just(prefix_range("ﬁ"))),
    st.builds(Contains, st.just(A), st.sampled_from((Axis.TEXT, Axis.FOLDED)), words),
)


def conjunctions(constraints: st.SearchStrategy[Constraint]) -> st.SearchStrategy[list[Constraint]]:
    return st.lists(constraints, max_size=4)


def normal(constraints: st.SearchStrategy[Constraint]) -> st.SearchStrategy[Filter]:
    made = conjunctions(constraints).map(conjoin)
    return made.filter(lambda each: not isinstance(each, Contradiction))  # type: ignore[return-value]
