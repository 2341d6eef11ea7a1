"""Input chosen to cost much: twice as much of it costs about twice as much, and one event is never dear.

What is measured is CPU time as a ratio, the best of a few runs each, so that a busy machine changes nothing;
what grows with the square would be fourfold.
"""

import gc
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from bad_inputs import COLLIDING, sealed

from branchline.kafka.jsontext import read_json
from branchline.routing.codes import Code, Rejection
from branchline.routing.compiling import Compiled, compile_filter
from branchline.routing.control import Operation, Request
from branchline.routing.dimensions import LONG, Long, number_value
from branchline.routing.evaluate import evaluate
from branchline.routing.event import Event
from branchline.routing.expression import constraints
from branchline.routing.filters import Filter
from branchline.routing.limits import EVENT_MAX_BYTES, MAX_CHOICES, MAX_STEPS
from branchline.routing.patterns import Pattern, fits
from branchline.routing.prefix import telling
from branchline.routing.prefix.beside import Beside
from branchline.routing.prefix.places import Places
from branchline.routing.prefix.vocabulary import Vocabulary
from branchline.routing.shard import EventBatch, Shard, alone
from branchline.routing.verdicts import why_not

GROWTH_MAX = 3.0
"""What doubling the input may cost: twice, a logarithm, and room for a busy machine."""

MEASURED_MIN_S = 0.01
"""What is over sooner is done several times."""

ONE_EVENT_MAX_S = 1.0
"""What one filter may take on one event, at worst and on a slow machine."""


def cpu_s(run: Callable[[], object], times: int = 3) -> float:
    """The least CPU time of a few runs, without looking for garbage among what other tests left."""
    took = []
    gc.disable()
    for _ in range(times):
        began = time.process_time()
        run()
        took.append(time.process_time() - began)
    gc.enable()
    return min(took)


def growth(run: Callable[[int], object], size: int) -> float:
    """How much more twice the size costs, on the average of three doublings.

    Sizes by turns, so that a machine that gets busy slows both; and so often that a cold cache is no matter.
    """
    repeats = 1 + int(MEASURED_MIN_S / cpu_s(lambda: run(size)))

    def took(of_size: int, times: int) -> float:
        return cpu_s(lambda: [run(of_size) for _ in range(times)], 1) / times

    once, eightfold = zip(*((took(size, repeats), took(8 * size, 1)) for _ in range(4)), strict=True)
    return float((min(eightfold) / min(once)) ** (1 / 3))


def covers(text: str) -> list[Filter]:
    compiled = compile_filter("sql", text)
    assert isinstance(compiled, Compiled)
    return list(compiled.cover)


def test_filters_on_numbers_of_one_hash_cost_no_more_than_others() -> None:
    """Thousands of subscriptions to multiples of 2^61 - 1: the table and the tree grow as with other
    numbers.
    """

    def subscribe(count: int) -> None:
        compile_filter.cache_clear()
        requests = [
            Request(Operation.SUBSCRIBE, "eve", f"s{n}", filter=f"m = {(n + 1_000) * COLLIDING}")
            for n in range(count)
        ]
        Shard(alone("main"), 0).handle(1, [], requests, EventBatch())

    assert growth(subscribe, 100) < GROWTH_MAX


def test_places_of_filters_on_numbers_of_one_hash_are_found_at_once() -> None:
    """As keys of dictionaries, which is where Python's own integers would collide."""
    filters = [covers(f"m = {(n + 1_000) * COLLIDING}")[0] for n in range(4_000)]

    def place(count: int) -> None:
        places = Places(Vocabulary(0))
        for each in filters[:count]:
            places.add(each, "home")

    assert growth(place, 500) < GROWTH_MAX


@pytest.mark.parametrize("number", [LONG, -LONG, 10**30 + 1, COLLIDING * 10**4, 10**300 + 1, 2**80])
def test_a_long_number_is_the_number_that_it_is(number: int) -> None:
    """It compares as it did, a filter on it finds it, and no other hash can be aimed at."""
    value = number_value(number)
    assert value == number and not value < number and number_value(value) == value
    assert hash(number_value(number)) == hash(value)
    (filter_,) = covers(f"m = {number}")
    beside = Beside()
    beside.add(7, filter_)
    for found in (number, float(number) if abs(number) < 10**300 and float(number) == number else number):
        assert beside.match(Event({"m": found})) == [7]
    assert beside.match(Event({"m": number + 1})) == []
    assert isinstance(value, float | Long)


def test_numbers_of_one_hash_in_an_event_cost_no_more_than_others() -> None:
    """A thousand of them, which is all that an event may have, against a list of them."""
    filter_ = compile_filter("sql", f"m IN ({', '.join(str(n * COLLIDING) for n in range(1_000, 1_090))})")
    assert isinstance(filter_, Compiled)
    event = {"m": [n * COLLIDING for n in range(2_000, 2_999)]}
    assert cpu_s(lambda: filter_.matches(Event(event))) < ONE_EVENT_MAX_S
    assert filter_.matches(Event({"m": [*event["m"], 1_050 * COLLIDING]})) is True


def test_json_is_read_in_linear_time() -> None:
    """Deep, wide, long, or all brackets: twice the bytes, about twice the time."""
    for unit in (b"[", b'{"a":', b'"', b'"\\', b"[[]],", b"9", b'"a":1,'):
        assert growth(partial(_read_many, unit), 25_000 // len(unit)) < GROWTH_MAX, unit


def _read_many(unit: bytes, count: int) -> object:
    return read_json(b"[" + unit * count)


def test_an_update_is_read_in_linear_time() -> None:
    """A number of a megabyte is none; before it is known, no more is done than to look at its first bytes."""
    data = sealed(b"\1\0\0" + b"\xff" * 900_000)
    assert cpu_s(lambda: telling.decode(data)) < 0.1


BIG = "xy" * (EVENT_MAX_BYTES // 2)
DEAR = {
    "32 searches": ("sql", " OR ".join(f"b LIKE '%_x{'x' * (n + 1)}_%'" for n in range(32)), {"b": BIG}),
    "a long search": ("sql", "b LIKE '%" + "xy_y" * 900 + "z_%'", {"b": BIG}),
    "a thousand runs": ("sql", "b LIKE '" + "%x_x" * 900 + "'", {"b": BIG}),
    "180 patterns": ("sql", " OR ".join(f"b LIKE '%y{n}%z%'" for n in range(180)), {"b": BIG}),
    "folding beside arrays": (
        "sql",
        "a = 5 AND c = 5 AND (" + " OR ".join(f"b LIKE 'y{n}%' IGNORE CASE" for n in range(20)) + ")",
        {"a": [1] * 90, "c": [2] * 100, "b": BIG},
    ),
    "EVERY beside arrays": (
        "sql",
        " AND ".join(["(a < c OR d > 5)", *(f"EVERY e < {n}" for n in range(20))]),
        {"a": [1] * 90, "c": [0] * 100, "e": [2] * 800},
    ),
    "240 constraints on 9,000 choices": (
        "sql",
        " OR ".join(["a < c", *(f"a = {n + 1_000}" for n in range(240))]),
        {"a": [1] * 90, "c": [0] * 100},
    ),
    "CESQL texts": ("cesql", " OR ".join(f"UPPER(CONCAT(b,b,b,b)) = 'A{n}'" for n in range(99)), {"b": BIG}),
    "CESQL texts beside arrays": (
        "cesql",
        " OR ".join("UPPER(CONCAT(b,b,b,b)) = a" for _ in range(9)),
        {"b": BIG, "a": ["q"] * 900},
    ),
    "moments": (
        "sql",
        " OR ".join(f"b < TIMESTAMP '2026-11-16T12:00:{n:02}Z'" for n in range(60)),
        {"b": "2026-11-16T12:00:59." + "9" * 200_000 + "Z"},
    ),
}


@pytest.mark.parametrize("name", DEAR)
def test_no_filter_is_dear_on_any_event(name: str) -> None:
    """It is evaluated within bounds, or the event is kept for that subscriber: never given up in silence."""
    spelling, text, event = DEAR[name]
    compiled = compile_filter(spelling, text)
    assert isinstance(compiled, Compiled), compiled
    for run in (
        lambda: evaluate(compiled.expression, event),
        lambda: compiled.matches(Event(event)),
        lambda: why_not(compiled.expression, event),
    ):
        took = cpu_s(run, 1)
        assert took < 2 * ONE_EVENT_MAX_S, f"{took:.2f} s"


def test_what_takes_too_many_steps_is_kept_for_the_subscriber() -> None:
    """Choices times constraints: at the limit it is evaluated, beyond that undecided, with the numbers."""
    many = 200
    text = " OR ".join(["a < c", *(f"a = {n + 1_000}" for n in range(many - 1))])
    compiled = compile_filter("sql", text)
    assert isinstance(compiled, Compiled)
    assert sum(1 for _ in constraints(compiled.expression)) == many
    most = MAX_STEPS // many
    assert most < MAX_CHOICES
    arrays: dict[str, Any] = {"a": [5] * (most // 50), "c": [1] * 50}
    assert compiled.matches(Event(arrays)) is False
    arrays["a"].append(5)
    undecided = compiled.matches(Event(arrays))
    assert isinstance(undecided, Rejection) and undecided.code is Code.TOO_MANY_CHOICES
    assert str(MAX_STEPS) in undecided.reason and str((most + 50) * many) in undecided.reason


def test_a_pattern_of_many_stars_grows_with_its_length_and_not_with_its_choices() -> None:
    """Twice the stars, about twice the time, on a text that almost fits."""
    text = "x" * 20_000 + "y"

    def match(stars: int) -> bool:
        return fits(text, Pattern(("", *["x"] * stars, "z")))

    match(10)
    assert growth(match, 1_000) < GROWTH_MAX
