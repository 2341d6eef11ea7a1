"""The indexes of counting find what asking one by one finds."""

import pytest
from counted import events_with_arrays
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from indexed import POOLS, TEXTS, WORDS, constraints, intervals

from branchline.routing.counting import texts
from branchline.routing.counting.index import ConstraintIndex
from branchline.routing.counting.ranges import RangeIndex
from branchline.routing.counting.texts import TextIndex, prefix_of
from branchline.routing.dimensions import Axis, prefix_range
from branchline.routing.event import Event
from branchline.routing.filters import Constraint
from branchline.routing.intervals import Interval, holds
from branchline.routing.values import JsonValue

ORDERED = (Axis.NUMBER, Axis.TEXT, Axis.INSTANT, Axis.ADDRESS)
ranged = st.sampled_from(ORDERED).flatmap(
    lambda axis: st.tuples(
        st.lists(intervals(axis), min_size=8, max_size=20, unique=True), st.just(POOLS[axis])
    )
)


@given(ranged)
def test_ranges(given: tuple[list[Interval], tuple[object, ...]]) -> None:
    """Each interval that holds a position, once; wherever intervals may begin and end."""
    ranges, positions = given
    index = RangeIndex([(interval, place) for place, interval in enumerate(ranges)])
    for position in positions:
        expected = [place for place, interval in enumerate(ranges) if holds(interval, position)]
        assert sorted(index.satisfied(position)) == expected


some_texts = st.sampled_from(TEXTS) | st.text("ab", max_size=12)
parts = st.sampled_from(WORDS) | st.text("ab", max_size=4)


@pytest.fixture(params=["as it is", "short"])
def parts_max(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With parts that are too long for the trie also where they are not."""
    if request.param == "short":
        monkeypatch.setattr(texts, "PART_MAX", 2)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        intervals(Axis.TEXT) | st.text("ab", min_size=1, max_size=3).map(prefix_range),
        min_size=4,
        max_size=12,
        unique=True,
    ),
    st.sets(parts.filter(bool), min_size=2, max_size=8),
    st.just(set()) | st.sets(parts, min_size=2, max_size=8),
    st.lists(some_texts, min_size=5, max_size=10),
)
def test_all_operators_on_texts(
    parts_max: None, ranges: list[Interval], suffixes: set[str], words: set[str], looked_at: list[str]
) -> None:
    """Equal, before, behind, prefix, suffix and substring: each that holds, once."""
    asked = [
        *((interval, lambda text, interval=interval: holds(interval, text)) for interval in ranges),
        *((suffix, lambda text, suffix=suffix: text.endswith(suffix)) for suffix in sorted(suffixes)),
        *((word, lambda text, word=word: word in text) for word in sorted(words)),
    ]
    of_suffixes, of_words = len(ranges), len(ranges) + len(suffixes)
    index = TextIndex(
        [(interval, place) for place, interval in enumerate(ranges)],
        {suffix: place for place, suffix in enumerate(sorted(suffixes), of_suffixes)},
        {word: place for place, word in enumerate(sorted(words), of_words)},
    )
    for text in (*TEXTS, *looked_at):
        expected = [place for place, (_, is_true) in enumerate(asked) if is_true(text)]
        assert sorted(index.satisfied(text)) == expected


@given(intervals(Axis.TEXT), some_texts)
def test_a_prefix_is_known_by_its_interval(interval: Interval, text: str) -> None:
    """Whoever begins with it is in the interval, and nobody else."""
    prefix = prefix_of(interval)
    if prefix is not None:
        assert holds(interval, text) is text.startswith(prefix)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(constraints, max_size=20, unique=True), events_with_arrays)
def test_constraints_of_every_kind(
    parts_max: None, asked: list[Constraint], attributes: dict[str, JsonValue]
) -> None:
    """Those that some element satisfies, each once; what is missing satisfies what asks for that."""
    index, event = ConstraintIndex(asked), Event(attributes)
    looked_at = index.looked_at(index.met(event))
    found = [each for attribute in looked_at for each in attribute.satisfied(event)]
    assert sorted(found) == [
        place for place, each in enumerate(asked) if Event(attributes).may_match(((each,),))
    ]
