"""What matchers are measured with: filters and the events that they are for, the same for the same seed.

- `equalities`: three of 20 texts equal a value each; values are Zipf's, a hundred for each name;
- `equalities-range`: two of them, and one of 8 numbers lies in a tenth of its range;
- `gaussian-D`: a range on each of five numbers around a Gaussian centre; all are as wide as it takes for an
  event to match D per cent of the filters;
- `contains`: a text contains a word of a Zipf vocabulary; half of the filters have an equality as well;
- `cw`: the workload that forwarding by counting was measured with (`cw_workload.py`);
- `spellings`: filters in four spellings, three to five predicates each, compiled to their covers.

An event of the first two has twelve texts and four numbers, some 300 bytes. `nested` places each attribute
two objects down, in one of four groups. Events *with arrays* have the same values, but one of them is in an
array. *Awkward* events are the same and have its name twice, which compiled loops leave to the slow path.
"""

import gc
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from random import Random
from statistics import NormalDist

from branchline.ops.cw_workload import cw_event, cw_filters
from branchline.ops.spelled_filters import SPELLINGS, Spelled
from branchline.ops.workloads import Workload, Zipf, word
from branchline.routing.codes import Rejection
from branchline.routing.compiling import compile_filter
from branchline.routing.dimensions import Axis
from branchline.routing.expression import Path
from branchline.routing.filters import Constraint, Contains, Filter, Range
from branchline.routing.intervals import Interval, after, before, text_point
from branchline.routing.values import JsonValue

TEXTS, NUMBERS = 20, 8
"""Names of texts and of numbers; an event has 12 of the first and 4 of the others."""
VALUES = Zipf(100)
HIGHEST = 1_000
"""Numbers are from 0 to below this; a range is a tenth of it."""
GAUSSIANS = 5
DENSITIES = (0.1, 1, 10)
"""Per cent of the filters that an event matches."""
SPREAD = 50 / 3
WORDS_IN_EVENT = 12
VARIANTS = 5
"""Few, so that texts of `spellings` meet the events."""
ELEMENTS = 3
"""Of an array."""
GROUPS = 4


class Shape(StrEnum):
    """Where attributes are."""

    FLAT = "flat"
    NESTED = "nested"


Event = dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Matching:
    """A workload: how its filters and events are drawn. Filters name attributes as flat events have them."""

    filters: Callable[[str, int], list[Filter]]
    event: Callable[[Random], Event]
    nests: bool = True
    """Whether attributes may be placed elsewhere."""


def draw_filters(workload: Matching, count: int, seed: int, shape: Shape) -> list[Filter]:
    """So many filters. Of two counts, the filters of the smaller are the first of the larger."""
    collects = gc.isenabled()
    gc.disable()  # of millions of tuples none goes, and looking for such would take most of the time
    try:
        made = workload.filters(f"{seed} filters", count)
        return [_placed(each) for each in made] if shape is Shape.NESTED and workload.nests else made
    finally:
        if collects:
            gc.enable()


def draw_events(
    workload: Matching, count: int, seed: int, shape: Shape, awkward: float, arrays: float = 0.0
) -> list[bytes]:
    """So many events as JSON; this share of them is awkward, and this one of the others has arrays.

    Both are evenly spread.
    """
    random = Random(f"{seed} events")
    made: list[bytes] = []
    due = due_array = 0.0
    for number in range(count):
        event = workload.event(random)
        name = next(iter(event))
        due += awkward
        is_awkward = due >= 1
        due_array += 0 if is_awkward else arrays
        if is_awkward or due_array >= 1:
            due, due_array = (due - 1, due_array) if is_awkward else (due, due_array - 1)
            event[name] = [event[name]] * ELEMENTS
        if shape is Shape.NESTED and workload.nests:
            event = _nested(event)
        event["n"] = number
        text = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
        made.append((_twice(text, name) if is_awkward else text).encode())
    return made


def place(name: str) -> Path:
    """Where a nested event has what a flat one has at its top."""
    return "data", f"group{sum(map(ord, name)) % GROUPS}", name


def _placed(filter_: Filter) -> Filter:
    made = (each._replace(path=place(each.path[0])) for each in filter_)
    return tuple(sorted(made, key=lambda each: (each.path, each.axis)))


def _nested(event: Event) -> Event:
    groups: dict[str, JsonValue] = {}
    for name, value in event.items():
        _, group, _ = place(name)
        held = groups.setdefault(group, {})
        assert isinstance(held, dict)
        held[name] = value
    return {"data": groups}


def _twice(text: str, name: str) -> str:
    """The same event with a name twice, of which the last one counts."""
    return text.replace(f'"{name}":', f'"{name}":[],"{name}":', 1)


def _distinct(constraints: Callable[[Random], list[Constraint]]) -> Callable[[str, int], list[Filter]]:
    source = Workload(constraints, lambda random: {})

    def draw(seed: str, count: int) -> list[Filter]:
        return list(islice(source.filters(Random(seed)), count))

    return draw


def _text(number: int) -> str:
    return f"text{number:02}"


def _number(number: int) -> str:
    return f"number{number}"


def _equal(number: int, random: Random) -> Constraint:
    return Range((_text(number),), Axis.TEXT, text_point(f"value{VALUES.draw(random)}"))


def _equalities(random: Random) -> list[Constraint]:
    return [_equal(number, random) for number in random.sample(range(TEXTS), 3)]


def _equalities_range(random: Random) -> list[Constraint]:
    made = [_equal(number, random) for number in random.sample(range(TEXTS), 2)]
    low = random.randrange(HIGHEST * 9 // 10)
    interval = Interval(before(low), after(low + HIGHEST // 10))
    return [*made, Range((_number(random.randrange(NUMBERS)),), Axis.NUMBER, interval)]


def _event_of_both(random: Random) -> Event:
    event: Event = {
        _text(number): f"value{VALUES.draw(random)}" for number in random.sample(range(TEXTS), 12)
    }
    for number in random.sample(range(NUMBERS), 4):
        event[_number(number)] = random.randrange(HIGHEST)
    return event


def _gaussian(density: float) -> Matching:
    # An event lies in a range if its distance to the centre, also Gaussian, is at most half the width.
    share = (density / 100) ** (1 / GAUSSIANS)
    half = NormalDist(0, SPREAD * 2**0.5).inv_cdf((1 + share) / 2)

    def constraints(random: Random) -> list[Constraint]:
        made: list[Constraint] = []
        for number in range(GAUSSIANS):
            centre = random.gauss(0, SPREAD)
            interval = Interval(before(round(centre - half, 2)), after(round(centre + half, 2)))
            made.append(Range((_number(number),), Axis.NUMBER, interval))
        return made

    def event(random: Random) -> Event:
        return {_number(number): round(random.gauss(0, SPREAD), 2) for number in range(GAUSSIANS)}

    return Matching(_distinct(constraints), event)


def _contains(random: Random) -> list[Constraint]:
    made: list[Constraint] = [Contains(("query",), Axis.TEXT, word(random))]
    if random.random() < 0.5:
        made.append(_equal(random.randrange(TEXTS), random))
    return made


def _event_of_words(random: Random) -> Event:
    # First the attributes that may become arrays: a text that is searched is none.
    texts: Event = {_text(number): f"value{VALUES.draw(random)}" for number in random.sample(range(TEXTS), 6)}
    return {**texts, "query": " ".join(word(random) for _ in range(WORDS_IN_EVENT))}


def _spelled(seed: str, count: int) -> list[Filter]:
    """The filters of the covers, as many as asked for."""
    return list(islice(_covers(seed), count))


def _covers(seed: str) -> Iterator[Filter]:
    spelled = Spelled(VARIANTS)
    sources = [(spelling, spelled.texts(spelling, Random(f"{seed} {spelling}"))) for spelling in SPELLINGS]
    while True:
        for spelling, texts in sources:
            compiled = compile_filter(spelling, next(texts))
            assert not isinstance(compiled, Rejection) and compiled.exact, "as they are drawn, all are exact"
            yield from compiled.cover


MATCHING: Mapping[str, Matching] = {
    "equalities": Matching(_distinct(_equalities), _event_of_both),
    "equalities-range": Matching(_distinct(_equalities_range), _event_of_both),
    **{f"gaussian-{density}": _gaussian(density) for density in DENSITIES},
    "contains": Matching(_distinct(_contains), _event_of_words),
    "cw": Matching(cw_filters, cw_event),
    "spellings": Matching(_spelled, Spelled(VARIANTS).event, nests=False),
}
