"""Events with arrays have a row for each choice, read from their bytes, and match as the definitions say."""

import json
from typing import Any

import bad_inputs as bad
import indexed
import json_texts as ours
import pytest
from amounts import often
from hypothesis import given
from hypothesis import strategies as st
from records_scanned import agrees, columns, record, registered

from branchline.kafka.record import Headers, Record
from branchline.kafka.scanning import Scanner
from branchline.routing.compiled.access import AccessIndex
from branchline.routing.compiled.paths import Paths
from branchline.routing.compiled.spans import ROWS_MAX
from branchline.routing.expression import Path
from branchline.routing.filters import Filter
from branchline.routing.limits import EVENT_MAX_DEPTH, EVENT_MAX_FIELDS
from branchline.routing.values import JsonValue

NAMES = ("a", "b", "items", "größe")
REQUIRED = {"id": "1", "source": "/shop", "type": "order", "specversion": "1.0"}
BINARY: Headers = tuple((f"ce_{name}", text.encode()) for name, text in REQUIRED.items())

names = st.sampled_from((*NAMES, "other"))
named = st.lists(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map(tuple), min_size=1, max_size=6)
spelled = st.sampled_from(("0", "-1.5e1", "7")).map(ours.Number) | st.sampled_from(("", "x", "größe\n", "𝄞"))
leaves = st.none() | st.booleans() | spelled


def members(inside: st.SearchStrategy[Any], repeating: bool, most: int = 4) -> st.SearchStrategy[Any]:
    """Objects before they are written, whose names may repeat or do not."""
    unique = None if repeating else (lambda pair: pair[0])
    return st.lists(st.tuples(names, inside), max_size=most, unique_by=unique).map(tuple)


def documents(repeating: bool) -> st.SearchStrategy[Any]:
    """Arrays of scalars, of objects, of arrays and of all of them, wherever a value may be."""

    def larger(smaller: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.lists(smaller, max_size=4) | members(smaller, repeating) | st.lists(members(smaller, False))

    return members(st.recursive(leaves, larger, max_leaves=15), repeating)


def enveloped(data: bytes, declared: bool) -> list[Record]:
    """The same payload in all modes."""
    envelope = json.dumps(REQUIRED | ({"datacontenttype": "text/xml"} if not declared else {})).encode()
    structured = envelope.removesuffix(b"}") + b', "data": ' + data + b', "subject": "a"}'
    return [
        record(data),
        record(data, (*BINARY, ("h", b"x")) + ((bad.JSON_TYPE,) if declared else ())),
        record(structured, (bad.STRUCTURED,)),
    ]


def with_data(paths: list[Path]) -> Paths:
    """The paths, also as a payload has them, and some of what surrounds it."""
    below = [("data", *path) for path in paths]
    return registered([*paths, *below, ("subject",), ("kafka", "key"), ("kafka", "header", "h"), ("id",)])


@often
@given(st.lists(ours.written(documents(repeating=True)), max_size=3), named, st.booleans())
def test_events_with_arrays_are_read_as_the_reference_reads_them(
    sent: list[bytes], paths: list[Path], declared: bool
) -> None:
    """In all modes, beside one another, also if names repeat or a payload turns out to be opaque."""
    agrees(with_data(paths), [each for data in sent for each in enveloped(data, declared)])


@often
@given(st.lists(ours.written(documents(repeating=False)), max_size=4), named)
def test_only_what_has_too_many_choices_goes_the_slow_way(sent: list[bytes], paths: list[Path]) -> None:
    """If no name comes twice in one object, whatever the arrays are in and have in them."""
    read = agrees(with_data(paths), [each for data in sent for each in enveloped(data, True)])
    assert read.slow == len(read.unrowed)


ones = [1] * 32
LIMITS: dict[str, tuple[JsonValue, JsonValue]] = {
    "elements": ({"a": [1] * ROWS_MAX}, {"a": [1] * (ROWS_MAX + 1)}),
    "empty arrays": ({"a": [[]] * ROWS_MAX, "b": []}, {"a": [[]] * (ROWS_MAX + 1)}),
    "elements that no path names": ({"items": [1] * ROWS_MAX}, {"items": [{}] * (ROWS_MAX + 1)}),
    "arrays that multiply": ({"a": [1] * 8, "b": [2] * 8}, {"a": [1] * 13, "b": [2] * 5}),
    "arrays in objects in an array": (
        {"items": [{"a": ones}, {"b": ones}]},
        {"items": [{"a": ones}, {"b": ones}, {}]},
    ),
    "that multiply there": (
        {"items": [{"a": [1] * 7, "b": [1] * 9}, 1]},
        {"items": [{"a": [1] * 8, "b": [1] * 8}, 1]},
    ),
    "arrays in arrays": ({"a": [ones, [[1], ones[1:]]]}, {"a": [ones, [[1], ones]]}),
}


@pytest.mark.parametrize("name", LIMITS)
def test_choices_are_counted_exactly(name: str) -> None:
    """At the limit an event has rows that the kernels made; above it has none, and is counted as slow."""
    paths = registered([("a",), ("b",), ("items", "a"), ("items", "b"), ("n",)])
    at, above = ({**each, "n": 1} for each in LIMITS[name] if isinstance(each, dict))
    sent = [record(json.dumps(each).encode()) for each in ({"a": 1}, at, above, {"n": 2})]
    read = agrees(paths, sent)
    assert read.scanned.event.tolist() == [0, *[1] * ROWS_MAX, 3]
    assert read.unrowed == [2] and list(read.events) == [2]


@pytest.mark.parametrize(
    "text",
    [
        '{"a": [1, 2], "a": 3}',
        '{"a": 1, "a": [2, 3]}',
        '{"b": [1], "a": 1, "a": 2}',
        '{"items": [{"a": 1, "a": 2}, {"a": 3}]}',
        '{"items": [{"a": 1}], "items": [{"b": 1}, {"a": 2}]}',
        '{"items": [{"items": {"a": 1}, "items": {"a": 2}}]}',
    ],
)
def test_a_name_twice_beside_an_array_is_left_to_the_reference(text: str) -> None:
    """The last one counts, wherever it is, and the event is counted as slow."""
    paths = registered([("a",), ("b",), ("items", "a"), ("items", "b"), ("items", "items", "a")])
    assert agrees(paths, [record(text.encode()), record(b'{"a": [1, 2]}')]).slow == 1


def test_limits_hold_within_arrays() -> None:
    """Levels and fields are counted on through arrays that paths name."""
    levels = [
        b'{"a":' + b"[" * depth + b"]" * depth + b"}" for depth in (EVENT_MAX_DEPTH - 1, EVENT_MAX_DEPTH)
    ]
    fields = [
        json.dumps({"items": [{"z": [0] * count, "a": 1}, [], {}]}).encode()
        for count in (EVENT_MAX_FIELDS - 3, EVENT_MAX_FIELDS - 2)
    ]
    read = agrees(registered([("a",), ("items", "a")]), list(map(record, (*levels, *fields))))
    assert sorted(read.rejected) == [1, 3]
    assert read.slow == 2


scalars = indexed.scalars
elements = scalars | st.lists(scalars, max_size=2)
values = scalars | st.lists(elements, max_size=3)
objects = st.fixed_dictionaries({}, optional={"d": values})
events: st.SearchStrategy[dict[str, JsonValue]] = st.fixed_dictionaries(
    {}, optional={"a": values, "b": values, "c": values | objects | st.lists(scalars | objects, max_size=3)}
)


@often
@given(indexed.some_filters, st.lists(events, min_size=1, max_size=6))
def test_filters_find_what_one_of_the_choices_satisfies(
    filters: list[Filter], sent: list[dict[str, JsonValue]]
) -> None:
    """From bytes to filters, the same as trying each filter on each choice."""
    paths = Paths()
    index = AccessIndex.of(filters, paths)
    read = Scanner(paths).scan(columns([record(json.dumps(each).encode()) for each in sent]))
    found = indexed.listed(index.match(read.scanned, len(sent)))
    for number, each in enumerate(indexed.expected(filters, sent)):
        assert found[number] == ([] if number in read.unrowed else each)
