"""Rows from decoded attributes: one for each choice, as the definitions say."""

from dataclasses import replace

import numpy as np
import strategies as our
from amounts import often
from hypothesis import given
from hypothesis import strategies as st
from spans_read import expected_rows, read_rows

from branchline.routing.compiled.paths import Paths
from branchline.routing.compiled.reading import rows_of
from branchline.routing.compiled.spans import ROWS_MAX, joined
from branchline.routing.event import Event
from branchline.routing.expression import Path
from branchline.routing.values import JsonValue

some_events = st.lists(our.events(), max_size=4)
some_paths = st.lists(our.paths(), max_size=8)


def registered(named: list[Path]) -> Paths:
    paths = Paths()
    for path in named:
        paths.add(path)
    return paths


@often
@given(some_paths, some_events)
def test_rows_are_the_choices(named: list[Path], events: list[dict[str, JsonValue]]) -> None:
    """Values at all paths, arrays noticed wherever a path meets one, and too many choices reported."""
    paths = registered(named)
    made = rows_of(paths, events)
    rows = read_rows(made.scanned, len(events))
    for index, event in enumerate(events):
        expected = expected_rows(paths, event)
        assert (index in made.unrowed) is (expected is None)
        assert sorted(rows[index], key=repr) == sorted(expected or [], key=repr)
        assert bool(made.arrays[index]) is Event(event).has_array(paths)


def test_an_event_has_as_many_rows_as_choices_up_to_a_limit() -> None:
    """Arrays multiply; an empty one is a choice without a value."""
    paths = registered([("a",), ("b",), ("c", "d")])
    full: dict[str, JsonValue] = {"a": [1] * 8, "b": [2] * 8, "c": [], "e": [3] * 100}
    made = rows_of(paths, [full, {**full, "c": [{"d": 1}, {}]}, {"a": []}])
    assert np.bincount(made.scanned.event, minlength=3).tolist() == [ROWS_MAX, 0, 1]
    assert made.unrowed == [1]
    assert made.arrays.tolist() == [True, True, True]


@given(some_paths, some_events, some_events)
def test_parts_are_joined_in_the_order_of_events(
    named: list[Path], even: list[dict[str, JsonValue]], odd: list[dict[str, JsonValue]]
) -> None:
    """Whichever part an event's rows come from, they stay together and as they were."""
    paths = registered(named)
    one, two = rows_of(paths, even).scanned, rows_of(paths, odd).scanned
    parts = [replace(one, event=one.event * 2), replace(two, event=two.event * 2 + 1)]
    rows = read_rows(joined(parts), 2 * max(len(even), len(odd)))
    assert rows[::2][: len(even)] == read_rows(one, len(even))
    assert rows[1::2][: len(odd)] == read_rows(two, len(odd))
