"""Random filters of one or several ranges, as the thesis on offloading measured with.

The thesis says neither how ends are drawn nor from how many values. What is chosen here: both ends of a range
come from the distribution, over 10,000 whole numbers; or, with `widest`, the low end does and the width is
uniform up to that share of all values, so that less is covered. Gaussian ends lie about the middle, three
standard deviations to either end; of Zipf's, the k-th value is k times rarer than the first.

    [[ranges]]
    label = "2d uniform"
    distribution = "uniform"        # "gaussian", "zipf"
    dimensions = 2
    widest = 0.2                    # if left out, or 0, both ends are drawn
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from random import Random

import numpy as np
from numpy.typing import NDArray

from branchline.ops.simulation.config import Section
from branchline.ops.simulation.generators import Distribution
from branchline.ops.simulation.kind import Column
from branchline.routing.dimensions import Axis
from branchline.routing.filters import Filter, Range
from branchline.routing.intervals import Interval, after, before

RANGES = Column("ranges", str, "ranges")
VALUES = 10_000
DIMENSIONS_MAX = 8
UNIFORM, GAUSSIAN, ZIPF = "uniform", "gaussian", "zipf"


@dataclass(frozen=True, slots=True)
class Ranges:
    """How filters are drawn."""

    distribution: str = UNIFORM
    dimensions: int = 2
    widest: float = 0.0

    def filters(self, random: Random) -> Iterator[Filter]:
        """Filters without an end; one may come twice."""
        names = [(f"x{place}",) for place in range(self.dimensions)]
        while True:
            yield tuple(Range(name, Axis.NUMBER, self._interval(random)) for name in names)

    def _interval(self, random: Random) -> Interval:
        one = self._value(random)
        if not self.widest:
            low, high = sorted((one, self._value(random)))
        else:
            low, high = one, one + int(random.random() * self.widest * VALUES)
        return Interval(before(low), after(high))

    def _value(self, random: Random) -> int:
        if self.distribution == ZIPF:
            weights = _zipf()
            return bisect_left(weights, random.random() * weights[-1])
        drawn = Distribution(self.distribution).draw(random)
        return int(drawn * VALUES)


@cache
def _zipf() -> Sequence[float]:
    return list(accumulate(1 / rank for rank in range(1, VALUES + 1)))


def read_ranges(section: Section) -> Mapping[str, Ranges]:
    """The ranges by their labels."""
    found: dict[str, Ranges] = {}
    for each in section.sections("ranges"):
        label = each.text("label")
        if label in found:
            each.wrong("label", f"{label!r} is another's", "give each a label of its own")
        found[label] = Ranges(
            each.choice("distribution", (UNIFORM, GAUSSIAN, ZIPF)),
            each.integer("dimensions", 1, DIMENSIONS_MAX),
            each.number("widest", 0, 1, 0.0),
        )
        each.done()
    return found


Numbers = NDArray[np.int64]


def ends(filters: Sequence[Filter]) -> tuple[Numbers, Numbers]:
    """The low and the high ends of such filters, a row for each."""
    low = [[each[2][0][1] for each in filter_] for filter_ in filters]
    high = [[each[2][1][1] for each in filter_] for filter_ in filters]
    return np.asarray(low, np.int64), np.asarray(high, np.int64)


def minimal(filters: Sequence[Filter]) -> set[Filter]:
    """The filters that no other covers, by comparing all with all."""
    distinct = list(dict.fromkeys(filters))
    if not distinct:
        return set()
    low, high = ends(distinct)
    return {
        each
        for place, each in enumerate(distinct)
        if np.count_nonzero((low <= low[place]).all(1) & (high >= high[place]).all(1)) == 1
    }


def covered_share(filters: Sequence[Filter]) -> float:
    """Of all pairs of a filter and another, the share in which the one covers the other."""
    low, high = ends(filters)
    count = len(filters)
    pairs = sum(
        int(np.count_nonzero((low <= low[place]).all(1) & (high >= high[place]).all(1))) - 1
        for place in range(count)
    )
    return pairs / (count * (count - 1)) if count > 1 else 0.0
