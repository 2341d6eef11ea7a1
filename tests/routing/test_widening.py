"""Filters whose alternatives multiply: their covers stay short, and what they match stays the same."""

import strategies as our
from amounts import often
from filter_texts import likely_events
from hypothesis import given
from hypothesis import strategies as st

from branchline.routing import filters
from branchline.routing.codes import Rejection
from branchline.routing.compiling import compile_expression
from branchline.routing.evaluate import evaluate
from branchline.routing.event import Event
from branchline.routing.expression import And, Expression, In, InBlock, Matches, Not, Or, Path, Reading
from branchline.routing.limits import COVER_MAX_FILTERS
from branchline.routing.patterns import containing, ending, exactly, starting
from branchline.routing.values import JsonValue

PATHS = (("a",), ("b",), ("c",), ("d", "e"))
TEXTS = (
    "a",
    "ab",
    "b",
    "ba",
    "K",
    "\u212a",
    "k",
    "\ufb01",
    "fi",
    "if",
    "xfi",
    "10.0.0.1",
    "10.9.0.1",
    "",
    "z",
)

numbers = st.builds(
    lambda first, step, count: tuple(range(first, first + step * count, step)),
    st.integers(-9, 9),
    st.integers(1, 4),
    st.integers(12, 16),
)
texts = st.builds(lambda first, last: TEXTS[first:last], st.integers(0, 2), st.integers(13, len(TEXTS)))
values = st.one_of(numbers, texts, st.builds(tuple.__add__, numbers, texts))
some_text = st.sampled_from(TEXTS)


def on(path: Path) -> st.SearchStrategy[Expression]:
    """Conditions on the attribute, most of them true of many values that are no one interval."""
    several = st.builds(In, st.just(path), values)
    form = st.sampled_from((exactly, starting, ending, containing))
    pattern = st.builds(lambda form, text: Matches(path, form(text)), form, some_text)
    folded = st.builds(lambda form, text: Matches(path, form(text).fold(), Reading.FOLDED), form, some_text)
    block = st.builds(InBlock, st.just(path), our.blocks)
    single: st.SearchStrategy[Expression] = several | several | pattern | folded | block
    return single | several | st.builds(Not, single)


def joined(
    join: type[And] | type[Or], terms: st.SearchStrategy[Expression], least: int, most: int
) -> st.SearchStrategy[Expression]:
    return st.lists(terms, min_size=least, max_size=most).map(lambda several: join(tuple(several)))


anywhere = st.sampled_from(PATHS).flatmap(on)
excluding = st.sampled_from(PATHS).flatmap(lambda path: joined(And, st.builds(Not, on(path)), 2, 3))
listed = [st.builds(In, st.just(path), values) for path in PATHS]
grids = st.tuples(listed[0], listed[1] | st.builds(Not, listed[1]), on(PATHS[2])).map(And)
products: st.SearchStrategy[Expression] = st.one_of(
    grids,
    grids,
    excluding,
    joined(And, joined(Or, anywhere, 2, 3), 2, 2),
    joined(Or, grids | anywhere, 2, 2),
)
meetings = products.flatmap(lambda made: st.tuples(st.just(made), likely_events(made)))


@often
@given(meetings)
def test_widened_covers_are_short_and_lose_nothing(meeting: tuple[Expression, dict[str, JsonValue]]) -> None:
    """However alternatives multiply, a cover fits, holds wherever the filter matches, of normal filters."""
    expression, attributes = meeting
    verdict = evaluate(expression, attributes)
    compiled = compile_expression(expression)
    if isinstance(compiled, Rejection):
        assert verdict is not True
        return
    assert len(compiled.cover) <= COVER_MAX_FILTERS
    assert compiled.matches(Event(attributes)) == verdict
    assert verdict is not True or Event(attributes).may_match(compiled.cover)
    assert tuple(map(filters.conjoin, compiled.cover)) == compiled.cover
