"""The workload that forwarding by counting was measured with, by Carzaniga and Wolf.

Messages have 1 to 19 attributes and filters 1 to 9 constraints, of 1,000 names with Zipf's weights. Half of
the names are of integers: 60 % of their constraints are =, 20 % each < and >, of 100 values. The others are
of texts, of 1,000 words: 35 % =, 15 % each prefix, suffix and substring, 10 % each < and >. A million filters
are five million constraints. Constraints that are equal are one object, and filters may be equal, as there.

Drawn in bulk: a million filters one by one would take longer than matching them.
"""

from functools import lru_cache
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from branchline.ops.workloads import spelled
from branchline.routing.dimensions import Axis, prefix_range
from branchline.routing.filters import Constraint, Contains, Filter, Range
from branchline.routing.intervals import (
    HIGHEST,
    LOWEST,
    Interval,
    after,
    before,
    point,
    text_before,
    text_point,
)
from branchline.routing.values import JsonValue

NAMES, INTEGERS, WORDS = 1_000, 100, 1_000
MOST_CONSTRAINTS, MOST_ATTRIBUTES = 9, 19
PART = 3
"""Characters of a word in a prefix, suffix or substring."""
BLOCK = 1_000
"""Filters that are drawn at a time."""

_EQUAL, _BELOW, _ABOVE, _PREFIX, _SUFFIX, _PART = range(6)
_OF_INTEGERS = np.array([0.6, 0.8, 1.0])
_OF_TEXTS = np.array([0.35, 0.45, 0.55, 0.70, 0.85, 1.0])
_CUMULATED = np.cumsum(1 / np.arange(1, NAMES + 1))
_WEIGHTS = [float(each) for each in _CUMULATED]
_NAMES = [f"{'text' if rank % 2 == 0 else 'integer'}{rank}" for rank in range(NAMES)]
_WORDS = [spelled(5_000 + 330 * rank) for rank in range(WORDS)]  # of three syllables


class Drawn(NamedTuple):
    """A block of filters before they are chosen: more constraints than they have, in the order of drawing."""

    names: NDArray[np.int64]
    operators: NDArray[np.int64]
    values: NDArray[np.int64]
    lengths: NDArray[np.int64]
    """Of each filter; its constraints are the next so many of different names."""


def draw_block(seed: str, block: int) -> Drawn:
    """What the block of this number is made of."""
    draw = np.random.default_rng([block, *seed.encode()])
    drawn = BLOCK * MOST_CONSTRAINTS * 2
    names = np.searchsorted(_CUMULATED, draw.random(drawn) * _CUMULATED[-1], side="right")
    chances = draw.random(drawn)
    operators = np.where(
        names % 2 == 0, np.searchsorted(_OF_TEXTS, chances), np.searchsorted(_OF_INTEGERS, chances)
    )
    values = draw.integers(0, np.where(names % 2 == 0, WORDS, INTEGERS))
    return Drawn(names, operators, values, draw.integers(1, MOST_CONSTRAINTS + 1, BLOCK))


def cw_filters(seed: str, count: int) -> list[Filter]:
    """So many filters; the first are the same however many are drawn."""
    made: list[Filter] = []
    block = 0
    while len(made) < count:
        made += _block(draw_block(seed, block))
        block += 1
    return made[:count]


def _block(drawn: Drawn) -> list[Filter]:
    """A thousand filters; a filter has a name once only."""
    source = zip(drawn.names.tolist(), drawn.operators.tolist(), drawn.values.tolist(), strict=True)
    made: list[Filter] = []
    for length in drawn.lengths.tolist():
        chosen: dict[str, Constraint] = {}
        while len(chosen) < length:
            rank, operator, value = next(source)
            name = _NAMES[rank]
            if name not in chosen:
                chosen[name] = cw_constraint(rank, operator, value)
        made.append(tuple([chosen[name] for name in sorted(chosen)]))
    return made


@lru_cache(None)
def cw_constraint(rank: int, operator: int, value: int) -> Constraint:
    """The constraint on the name of a rank, half of which are of texts, with a value or word of a number."""
    if rank % 2:
        return Range((_NAMES[rank],), Axis.NUMBER, _interval(operator, value))
    text = _WORDS[value]
    if operator == _PART:
        return Contains((_NAMES[rank],), Axis.TEXT, text[1 : 1 + PART])
    if operator == _SUFFIX:
        return Range((_NAMES[rank],), Axis.REVERSED, prefix_range(text[-PART:][::-1]))
    if operator == _PREFIX:
        return Range((_NAMES[rank],), Axis.TEXT, prefix_range(text[:PART]))
    return Range((_NAMES[rank],), Axis.TEXT, _text_interval(operator, text))


@lru_cache(None)
def _interval(operator: int, value: int) -> Interval:
    if operator == _EQUAL:
        return point(value)
    return Interval(LOWEST, before(value)) if operator == _BELOW else Interval(after(value), HIGHEST)


@lru_cache(None)
def _text_interval(operator: int, text: str) -> Interval:
    if operator == _EQUAL:
        return text_point(text)
    if operator == _BELOW:
        return Interval(LOWEST, text_before(text))
    return Interval((0, text, 1), HIGHEST)


def cw_event(random: Random) -> dict[str, JsonValue]:
    """A message."""
    wanted = random.randint(1, MOST_ATTRIBUTES)
    event: dict[str, JsonValue] = {}
    while len(event) < wanted:
        rank = random.choices(range(NAMES), cum_weights=_WEIGHTS)[0]
        event[_NAMES[rank]] = random.randrange(INTEGERS) if rank % 2 else random.choice(_WORDS)
    return event
