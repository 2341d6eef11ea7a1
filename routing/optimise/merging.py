"""Perfect merging: filters that together are one filter become one.

Theory of operation. Two filters that say the same but on one dimension, where their ranges overlap or touch,
are one filter with the ranges joined: `a = 1 AND b < 5` and `a = 1 AND b BETWEEN 5 AND 9` are `a = 1 AND b <=
9`. Nothing is matched that was not. Filters are grouped by what is left of them without a dimension, and the
ranges of a group are joined in one pass; then the next dimension, and again those dimensions on which a new
filter has come up, until nothing can be joined. What is joined on one dimension hangs on the set of filters
alone, and the dimensions are taken in their order, so the result does too.

It need not be the shortest that there is: to find that is a hard problem. Entries with trees are left alone.

Cost: O(constraints) for each dimension of a filter, the first time; a dimension is looked at again only if
filters on it were joined, of which there are fewer each time.
"""

from collections.abc import Iterable, Sequence

from branchline.routing import intervals
from branchline.routing.dimensions import Dimension
from branchline.routing.filters import Contradiction, Filter, Range, conjoin
from branchline.routing.intervals import Interval
from branchline.routing.optimise.entries import Entry, in_order, plain, separate
from branchline.routing.optimise.protocols import Optimisation, Selectivity, Smaller


class Merging:
    """Join filters that differ on one dimension, where together they are one range."""

    learns = False

    def optimise(self, entries: Sequence[Entry], selectivity: Selectivity) -> Smaller:
        entries = separate(entries)
        trees = [entry for entry in entries if entry.tree is not None]
        merged = merge(entry.cover[0] for entry in entries if entry.tree is None)
        made = in_order([*trees, *map(plain, merged)])
        return Smaller(made, {"filters_merged": len(entries) - len(made)})


def merge(filters: Iterable[Filter]) -> set[Filter]:
    """Filters that hold together for just what these do, of which no two can be joined."""
    left = _Left()
    for filter_ in filters:
        left.add(filter_)
    while left.dimensions:
        for dimension in sorted(left.dimensions):
            left.dimensions.discard(dimension)
            left.join(dimension)
    return left.filters


class _Left:
    """Filters that are left, and dimensions on which some might be joined."""

    def __init__(self) -> None:
        self.filters: set[Filter] = set()
        self.dimensions: set[Dimension] = set()
        self._on: dict[Dimension, set[Filter]] = {}

    def add(self, filter_: Filter) -> None:
        if filter_ not in self.filters:
            self.filters.add(filter_)
            for each in filter_:
                if isinstance(each, Range):
                    self._on.setdefault(each.dimension, set()).add(filter_)
                    self.dimensions.add(each.dimension)

    def _drop(self, filter_: Filter) -> None:
        self.filters.discard(filter_)
        for each in filter_:
            if isinstance(each, Range):
                self._on[each.dimension].discard(filter_)

    def join(self, dimension: Dimension) -> None:
        """Join what differs on this dimension only and touches there."""
        groups: dict[Filter, dict[Interval, Filter]] = {}
        for filter_ in self._on[dimension]:
            rest, interval = without(filter_, dimension)
            groups.setdefault(rest, {})[interval] = filter_
        for rest, ranges in groups.items():
            joined = set(intervals.joined(list(ranges)))
            if len(joined) < len(ranges):
                for interval in ranges.keys() - joined:
                    self._drop(ranges[interval])
                for interval in joined - ranges.keys():
                    both = conjoin((*rest, Range(*dimension, interval)))
                    assert not isinstance(both, Contradiction), "what is wider holds for what was there"
                    self.add(both)


def without(filter_: Filter, dimension: Dimension) -> tuple[Filter, Interval]:
    """What is left of a filter without its range on a dimension, and that range."""
    for place, each in enumerate(filter_):
        if isinstance(each, Range) and each.axis is dimension.axis and each.path == dimension.path:
            return filter_[:place] + filter_[place + 1 :], each.interval
    raise AssertionError("filters are filed by their dimensions")


def make(number: int | None) -> Optimisation:
    return Merging()
