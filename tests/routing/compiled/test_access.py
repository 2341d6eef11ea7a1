"""The access index finds the filters that brute force finds."""

from random import Random

import numpy as np
import pytest
from filter_texts import pairs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from indexed import constraints, events, expected, found, listed, some_events, some_filters

from branchline.ops.matching_workloads import MATCHING
from branchline.routing.codes import Rejection
from branchline.routing.compiled import blocks, filing
from branchline.routing.compiled.access import AccessIndex
from branchline.routing.compiled.paths import Paths
from branchline.routing.compiled.reading import rows_of
from branchline.routing.compiling import compile_filter
from branchline.routing.filters import Filter
from branchline.routing.prefix.layout import UnreadableTree
from branchline.routing.values import JsonValue


@pytest.fixture(params=["as it is", "small"])
def sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With all that is filed otherwise where it is much, also where it is little."""
    if request.param == "small":
        for limit, value in (("BLOCK_MIN", 2), ("LIST_MAX", 1), ("WIDE_SHARE", 0)):
            monkeypatch.setattr(filing, limit, value)
        monkeypatch.setattr(blocks, "BUCKETS", 3)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(some_filters, some_events)
def test_it_finds_what_brute_force_finds(
    sizes: None, filters: list[Filter], events: list[dict[str, JsonValue]]
) -> None:
    """For every event the filters that it satisfies, each once; also after storing and opening."""
    paths, others = Paths(), Paths()
    others.add(("elsewhere",))
    index = AccessIndex.of(filters, paths)
    assert found(index, paths, events) == expected(filters, events)
    opened = AccessIndex.opened(memoryview(index.stored()), others)
    assert found(opened, others, events) == expected(filters, events)
    assert len(opened) == len(filters)
    assert opened.nbytes == index.nbytes or len(others) != len(paths)


@given(st.lists(constraints.map(lambda each: (each,)), max_size=40), some_events)
def test_single_constraints_that_are_in_no_normal_form(
    filters: list[Filter], events: list[dict[str, JsonValue]]
) -> None:
    """Whatever a constraint says, whole axes and empty words included, is found."""
    paths = Paths()
    index = AccessIndex.of(filters, paths)
    assert found(index, paths, events) == expected(filters, events)


@pytest.mark.parametrize("spelling", ["sql", "cloudevents", "eventbridge"])
@given(st.data())
def test_covers_of_every_spelling(spelling: str, data: st.DataObject) -> None:
    """The filters of covers as they are compiled, and events made for them."""
    drawn = data.draw(st.lists(pairs(spelling, arrays=False), min_size=1, max_size=4))
    compiled = [compile_filter(spelling, text) for text, _ in drawn]
    filters = [each for one in compiled if not isinstance(one, Rejection) for each in one.cover]
    events = [event for _, event in drawn]
    paths = Paths()
    index = AccessIndex.of(filters, paths)
    assert found(index, paths, events) == expected(filters, events)


@pytest.mark.parametrize("name", ["equalities-range", "gaussian-1", "contains", "cw"])
def test_many_filters_of_the_shapes_that_are_measured(sizes: None, name: str) -> None:
    """Long lists, pairs, segments, blocks: all are used and give the same."""
    random = Random(7)
    filters = MATCHING[name].filters("7", 1500)
    events = [MATCHING[name].event(random) for _ in range(20)]
    paths = Paths()
    index = AccessIndex.of(filters, paths)
    assert found(index, paths, events) == expected(filters, events)
    assert f"{len(filters)} filters" in index.describe()


@given(some_filters, st.lists(events, min_size=1, max_size=6), st.data())
def test_an_event_of_several_rows_matches_what_one_of_them_does(
    filters: list[Filter], events: list[dict[str, JsonValue]], data: st.DataObject
) -> None:
    """Each filter once; events without rows match nothing."""
    count = len(events)
    of_rows = sorted(data.draw(st.lists(st.integers(0, 4), min_size=count, max_size=count)))
    paths = Paths()
    index = AccessIndex.of(filters, paths)
    scanned = rows_of(paths, events).scanned
    scanned.event[:] = of_rows
    wanted: list[set[int]] = [set() for _ in range(6)]
    for event, rows in zip(of_rows, expected(filters, events), strict=True):
        wanted[event].update(rows)
    assert listed(index.match(scanned, 6)) == [sorted(each) for each in wanted]


def test_many_hits_find_room() -> None:
    """More matches than were reckoned with are found all the same."""
    paths = Paths()
    index = AccessIndex.of([()] * 3000, paths)
    hits = index.match(rows_of(paths, [{}, {"a": 1}]).scanned, 2)
    assert listed(hits) == [list(range(3000))] * 2


def test_damaged_bytes_are_refused() -> None:
    """A stored index that was changed is none."""
    data = bytearray(AccessIndex.of([()], Paths()).stored())
    data[-1] ^= 1
    with pytest.raises(UnreadableTree):
        AccessIndex.opened(memoryview(data), Paths())


def test_no_events_and_no_filters() -> None:
    """Nothing gives nothing."""
    paths = Paths()
    index = AccessIndex.of([], paths)
    assert listed(index.match(rows_of(paths, []).scanned, 0)) == []
    assert listed(index.match(rows_of(paths, [{"a": 1}]).scanned, 1)) == [[]]
    assert np.array_equal(index.first, [0])
