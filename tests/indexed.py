"""Random filters over every axis, events that lie where their ends do, and what an index must find.

The values are those that go wrong easily: numbers that no double holds, beside those that one does; texts
that differ in case only, fold to more letters than they have, or are the next to each other; words within
words.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from branchline.routing.addresses import Address
from branchline.routing.compiled.access import AccessIndex, Hits
from branchline.routing.compiled.index import GrowingIndex
from branchline.routing.compiled.paths import Paths
from branchline.routing.compiled.reading import rows_of
from branchline.routing.dimensions import NONE, Axis, kinds, number_value, prefix_range, ranks
from branchline.routing.event import Event
from branchline.routing.filters import Constraint, Contains, Contradiction, Filter, Range, conjoin
from branchline.routing.instants import Instant
from branchline.routing.intervals import HIGHEST, LOWEST, Interval, after, before, text_before, text_point
from branchline.routing.values import JsonValue, Kind

PATHS = (("a",), ("b",), ("c", "d"))
NUMBERS: tuple[int | float, ...] = (
    *(0, 1, -1, 0.1, -0.0, 2.5, 1e22, 1e23, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, -1e308),
    *(
        2**53 - 1,
        2**53,
        2**53 + 1,
        2**53 + 2,
        float(2**53),
        -(2**53) - 1,
        2**63,
        2**64 + 1,
        10**21,
        10**21 + 1,
    ),
    *(-(10**30), 10**30 + 1, 10**30 + 2, float(10**30), 10**308, 10**308 + 1, 123456789012345678, 0.1 + 0.2),
)
TEXTS = (
    *(
        "",
        "\0",
        "a",
        "a\0",
        "ab",
        "abc",
        "b",
        "ba",
        "A",
        "AB",
        "aB",
        "ß",
        "ss",
        "straße",
        "STRASSE",
        "ﬁ",
        "fi",
    ),
    *("İ", "i̇", "i", "é", "e", "𝄞", "\U0010ffff", "\ud7ff", "\ue000", "abcdefgh", "abcdefghi", "abcdefgg"),
    *("2026-11-16T12:00:00Z", "2026-11-16t13:00:00.000+01:00", "2026-11-16T12:00:00.5Z", "2026-11-16"),
    *("10.1.2.3", "10.1.2.4", "::ffff:10.1.2.3", "2001:db8::1", "010.1.2.3"),
)
WORDS = ("", "a", "b", "ab", "ba", "bc", "ss", "fi", "é", "𝄞", "s", "STRASSE", "abcdefgh", "cde", "\0")
INSTANTS = (Instant(1794830400, ""), Instant(1794830400, "5"), Instant(-62135596800, ""), NONE)
ADDRESSES = (Address(4, 0x0A010203), Address(4, 0x0A010204), Address(6, 1), Address(6, 2**128 - 1), NONE)
FOLDED = tuple(text.casefold() for text in TEXTS)
POOLS: dict[Axis, tuple[Any, ...]] = {
    Axis.NUMBER: tuple(map(number_value, NUMBERS)),
    Axis.TEXT: TEXTS,
    Axis.REVERSED: tuple(text[::-1] for text in TEXTS),
    Axis.FOLDED: FOLDED,
    Axis.FOLDED_REVERSED: tuple(text[::-1] for text in FOLDED),
    Axis.INSTANT: INSTANTS,
    Axis.ADDRESS: ADDRESSES,
}


def intervals(axis: Axis) -> st.SearchStrategy[Interval]:
    """Points, prefixes and ranges between any two values."""
    if axis is Axis.PRESENCE:
        return st.sampled_from([kinds(low, high) for low in Kind for high in Kind if low <= high])
    if axis is Axis.BOOLEAN:
        return st.sampled_from((ranks(0, 0, 1), ranks(1, 1, 1)))
    pool = st.sampled_from(POOLS[axis])
    if axis in (Axis.NUMBER, Axis.INSTANT, Axis.ADDRESS):
        points = pool.map(lambda value: Interval(before(value), after(value)))
        cuts = st.sampled_from((LOWEST, HIGHEST)) | st.builds(
            lambda cut, value: cut(value), st.sampled_from((before, after)), pool
        )
    else:
        points = pool.map(text_point) | pool.filter(bool).map(prefix_range)
        cuts = st.sampled_from((LOWEST, HIGHEST)) | pool.map(text_before) | pool.map(after)
    ranges = (
        st.tuples(cuts, cuts)
        .filter(lambda ends: ends[0] != ends[1])
        .map(lambda ends: Interval(*sorted(ends)))
    )
    return points | points | ranges


constraints: st.SearchStrategy[Constraint] = st.one_of(
    *(st.builds(Range, st.sampled_from(PATHS), st.just(axis), intervals(axis)) for axis in Axis),
    *(
        st.builds(Contains, st.sampled_from(PATHS), st.just(axis), st.sampled_from(words))
        for axis, words in ((Axis.TEXT, WORDS), (Axis.FOLDED, tuple(word.casefold() for word in WORDS)))
    ),
)
_conjunctions: st.SearchStrategy[Any] = st.lists(constraints, max_size=4).map(conjoin)
filters: st.SearchStrategy[Filter] = _conjunctions.filter(lambda each: not isinstance(each, Contradiction))
some_filters = st.lists(filters, max_size=30)

scalars: st.SearchStrategy[JsonValue] = st.one_of(
    st.sampled_from(NUMBERS),
    st.sampled_from(TEXTS),
    st.sampled_from((None, True, False)),
    st.builds(str.__add__, st.sampled_from(TEXTS), st.sampled_from(TEXTS)),
)
events: st.SearchStrategy[dict[str, JsonValue]] = st.fixed_dictionaries(
    {},
    optional={
        "a": scalars,
        "b": scalars | st.just({}),
        "c": scalars | st.fixed_dictionaries({}, optional={"d": scalars}),
    },
)
some_events = st.lists(events, min_size=1, max_size=12)


def expected(filters: Sequence[Filter], events: Sequence[dict[str, JsonValue]]) -> list[list[int]]:
    """For each event the places of the filters that it satisfies."""
    looked_at = [Event(attributes) for attributes in events]
    return [[place for place, each in enumerate(filters) if event.may_match((each,))] for event in looked_at]


def found(
    index: AccessIndex | GrowingIndex, paths: Paths, events: Sequence[dict[str, JsonValue]]
) -> list[list[int]]:
    """For each event what the index finds, in order."""
    return listed(index.match(rows_of(paths, events).scanned, len(events)))


def listed(hits: Hits) -> list[list[int]]:
    """For each event its rows, in order."""
    ends = hits.first.tolist()
    return [sorted(hits.row[start:end].tolist()) for start, end in pairwise(ends)]
