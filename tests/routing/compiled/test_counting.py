"""Counting in flat arrays finds what counting in dictionaries and brute force find."""

from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from indexed import constraints, expected, some_events
from indexed import filters as any_filter

from branchline.ops.matching_workloads import MATCHING
from branchline.routing.choices import each_choice
from branchline.routing.compiled.counting import Counted, CountingIndex, FlatTable
from branchline.routing.compiled.paths import Paths
from branchline.routing.compiled.reading import rows_of
from branchline.routing.counting.table import CountingTable
from branchline.routing.event import Event
from branchline.routing.filters import Filter
from branchline.routing.prefix.forwarding import Found
from branchline.routing.values import JsonValue

Events = list[dict[str, JsonValue]]
many_filters = st.lists(any_filter, min_size=6, max_size=40)


def found_by(table: FlatTable, counted: Counted) -> list[set[int]]:
    """For each row its interfaces; each was found once."""
    made = []
    for start, end in pairwise(counted.first.tolist()):
        interfaces = table.interface[counted.filter[start:end]].tolist()
        made.append(set(interfaces))
        assert len(interfaces) == len(made[-1])
    return made


@given(many_filters, st.integers(1, 4), some_events, st.sampled_from((0, 1, 10)), st.data())
def test_it_finds_what_brute_force_and_dictionaries_find(
    filters: list[Filter], interfaces: int, events: Events, rounds: int, data: st.DataObject
) -> None:
    """The interfaces that have a filter that holds and are not closed; as many are ruled out."""
    paths = Paths()
    interface = [place % interfaces for place in range(len(filters))]
    count = min(interfaces, len(filters))
    table = FlatTable(CountingIndex.of(filters, paths), np.array(interface, np.int32), count, rounds)
    closed = sorted(data.draw(st.sets(st.sampled_from(range(count))))) if count else []
    scanned = rows_of(paths, events).scanned
    everything = [{interface[each] for each in found} for found in expected(filters, events)]
    assert found_by(table, table.match(scanned)) == everything
    assert found_by(table, table.match(scanned, closed=closed)) == [
        each.difference(closed) for each in everything
    ]
    plain = CountingTable(zip(interface, filters, strict=True), rounds)
    excluded = []
    for attributes in events:
        found = Found()
        plain.find(Event(attributes), None, lambda owner, filter_: True, found)
        excluded.append(found.counts["interfaces_excluded"])
    assert table.match(scanned).excluded == sum(excluded)


@given(st.lists(constraints.map(lambda each: (each,)), max_size=40), some_events)
def test_single_constraints_that_are_in_no_normal_form(filters: list[Filter], events: Events) -> None:
    """Whatever a constraint says, whole axes and empty words included, is counted."""
    paths = Paths()
    index = CountingIndex.of(filters, paths)
    table = FlatTable(index, np.arange(len(filters), dtype=np.int32), len(filters), 3)
    found = found_by(table, table.match(rows_of(paths, events).scanned))
    assert [sorted(each) for each in found] == expected(filters, events)


@pytest.mark.parametrize("name", ["equalities-range", "gaussian-10", "contains", "cw", "spellings"])
@pytest.mark.parametrize("interfaces", [3, 1_500])
def test_many_filters_of_the_shapes_that_are_measured(name: str, interfaces: int) -> None:
    """Of few interfaces and of many, with more found than there was room for, in any number of rounds."""
    random = Random(7)
    filters = MATCHING[name].filters("7", 1_500)
    events = [MATCHING[name].event(random) for _ in range(20)]
    paths = Paths()
    interface = np.arange(len(filters), dtype=np.int32) % interfaces
    table = FlatTable(CountingIndex.of(filters, paths), interface, interfaces, 20)
    scanned = rows_of(paths, events).scanned
    brute = [set(interface[each].tolist()) for each in expected(filters, events)]
    results = [table.match(scanned, rounds) for rounds in (0, 1, 20)]
    assert [found_by(table, each) for each in results] == [brute] * 3
    excluded, counted = [each.excluded for each in results], [each.counted for each in results]
    assert excluded == sorted(excluded) and counted == sorted(counted, reverse=True)
    assert table.nbytes > 0 and table.index.constraints == sum(map(len, filters))


def test_an_event_with_arrays_has_a_row_for_each_choice() -> None:
    """What some choice of elements satisfies is found in its row."""
    filters = MATCHING["gaussian-10"].filters("1", 100)
    attributes: dict[str, JsonValue] = {"number0": [0, 30], "number1": [1, -20], "number2": 3}
    attributes |= {"number3": 0, "number4": [5]}
    paths = Paths()
    index = CountingIndex.of(filters, paths)
    table = FlatTable(index, np.arange(100, dtype=np.int32), 100, 10)
    found = found_by(table, table.match(rows_of(paths, [attributes]).scanned))
    choices = [dict(each) for each in each_choice(list(paths), attributes)]
    assert len(found) == len(choices) == 4
    assert sorted(map(sorted, found)) == sorted(expected(filters, choices))  # type: ignore[arg-type]


def test_nothing_and_nobody() -> None:
    """A table of no filters finds nobody, and one of filters without constraints everybody."""
    paths = Paths()
    nobody = FlatTable(CountingIndex.of([], paths), np.zeros(0, np.int32), 0, 10)
    assert found_by(nobody, nobody.match(rows_of(paths, [{"a": 1}]).scanned)) == [set()]
    everybody = FlatTable(CountingIndex.of([(), ()], paths), np.arange(2, dtype=np.int32), 2, 10)
    assert found_by(everybody, everybody.match(rows_of(paths, [{"a": 1}, {}]).scanned)) == [{0, 1}] * 2
