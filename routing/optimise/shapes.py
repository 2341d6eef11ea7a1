"""Filters as whole numbers, sorted by shape: which of them covers which is then asked of many at once.

Theory of operation. A filter's *shape* says on which dimensions it has a range, a point or a word. Filters of
one shape are rows of an array: for each dimension the ranks of the two cuts of its interval, among all cuts
that are named on it. One filter covers another if, on each dimension that it speaks of, the other is known to
lie within its range. What the other is known to say there is its own range; or the kind that a range on
another axis implies, if presence is asked for; or where a text that is known lies on that axis
(`filters.covers` is the law, and this is the same for whole columns).

Filters that may cover others are found by an index: those of a shape lie together by their points, which the
other must have too, and within that by the low end of their first range, which must not be above the other's.
A word is found among all pieces of what the other's text is known to contain.

Cost: sorting, O(constraints · log); a search looks at the rows with the same points and a lower first end, in
arrays. Nothing is quadratic but filters of one shape that have ranges only, and their pairs are compared at
some hundred millions a second.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from branchline.routing.dimensions import KIND_INTERVALS, KIND_OF_AXIS, Axis, text_position
from branchline.routing.expression import Path
from branchline.routing.filters import Contains, Filter, Range, covers, known_texts
from branchline.routing.intervals import Cut, Interval, is_point, point, text_point
from branchline.routing.values import Kind

Numbers: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]

_PAIRS_AT_ONCE = 2_000_000
"""Memory, some tens of megabytes, against how often Python is asked."""
FEW_PAIRS = 16
"""So many are compared one by one, which takes less than to make the arrays."""
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
"""An odd number whose multiples lie far apart: the golden ratio of 64 bits."""


class Side(NamedTuple):
    """What a shape says of one dimension."""

    path: Path
    axis: Axis
    how: str
    """`range`, `point` or `word`."""


Shape: TypeAlias = tuple[Side, ...]


def shape_of(filter_: Filter) -> Shape:
    """On which dimensions the filter says what."""
    return tuple(
        Side(
            each.path,
            each.axis,
            "word" if type(each) is Contains else "point" if is_point(each[2]) else "range",  # type: ignore[arg-type]
        )
        for each in filter_
    )


class Ranks:
    """The cuts that filters name on each dimension, numbered in their order."""

    def __init__(self, filters: Sequence[Filter]) -> None:
        found: dict[tuple[Path, Axis], set[Cut]] = {}
        for filter_ in filters:
            for each in filter_:
                if type(each) is Range:
                    found.setdefault((each.path, each.axis), set()).update(each.interval)
        self._cuts = {dimension: sorted(cuts) for dimension, cuts in found.items()}
        self._known = {
            dimension: {cut: 2 * place + 1 for place, cut in enumerate(cuts)}
            for dimension, cuts in self._cuts.items()
        }

    def of(self, dimension: tuple[Path, Axis], cuts: Sequence[Cut]) -> Numbers:
        """Odd for a cut that is named there, even for one that lies between two."""
        known, all_of_them = self._known[dimension], self._cuts[dimension]
        found = (known.get(cut) or 2 * bisect_left(all_of_them, cut) for cut in cuts)
        return np.fromiter(found, np.int64, len(cuts))


Columns: TypeAlias = tuple[Numbers, Numbers]
"""The low and the high ends of ranges."""


class Group:
    """The filters of one shape."""

    def __init__(self, shape: Shape, numbers: Sequence[int], filters: Sequence[Filter], ranks: Ranks) -> None:
        self.shape = shape
        self.paths = frozenset(side.path for side in shape)
        self.numbers = np.asarray(numbers, np.int64)
        """Which of all filters they are."""
        self._filters = filters
        self._ranks = ranks
        self._columns: dict[tuple[Path, Axis], Columns | None] = {}

    def __len__(self) -> int:
        return len(self.numbers)

    def widest(self, most: int) -> "Group":
        """Those of them, so many, whose ranges go over the most cuts."""
        width = np.zeros(len(self.numbers), np.int64)
        for side in self.shape:
            columns = self.columns(side.path, side.axis) if side.how == "range" else None
            if columns is not None:
                width += columns[1] - columns[0]
        rows = np.argsort(-width, kind="stable")[:most].tolist()
        return Group(
            self.shape, self.numbers[rows].tolist(), [self._filters[row] for row in rows], self._ranks
        )

    def columns(self, path: Path, axis: Axis) -> Columns | None:
        """What is known of where each of them lies on a dimension; None if nothing is."""
        key = (path, axis)
        if key not in self._columns:
            found = self._known_on(path, axis)
            self._columns[key] = (
                None
                if found is None
                else (
                    self._ranks.of(key, [each.low for each in found]),
                    self._ranks.of(key, [each.high for each in found]),
                )
            )
        return self._columns[key]

    def _known_on(self, path: Path, axis: Axis) -> list[Interval] | None:
        for place, side in enumerate(self.shape):
            if side.path != path:
                continue
            if side.axis is axis and side.how != "word":
                return [each[place][2] for each in self._filters]  # type: ignore[misc]
            if axis is Axis.PRESENCE:
                kind = KIND_OF_AXIS[side.axis]
                assert kind is not None, "a dimension has one range"
                return [KIND_INTERVALS[kind]] * len(self._filters)
            if side.axis is Axis.TEXT and side.how == "point" and KIND_OF_AXIS[axis] is Kind.TEXT:
                texts: list[str] = [each[place][2][1][1] for each in self._filters]
                return [_point_on(axis, text) for text in texts]
        return None

    def covers_of(self, other: "Group", hiding: Flags, hidden: Flags, few: int) -> Numbers:
        """Which filters of the other group are covered by one of these that may hide others.

        No two that may are the same filter, or each would hide the other. Few pairs are compared one by one.
        """
        open_ones = np.flatnonzero(~hidden[other.numbers])
        if len(self) * len(open_ones) <= few:
            found = self._pairs_of(other, open_ones, hiding)
        elif any(side.how == "word" for side in self.shape):
            found = self._words_of(other, open_ones, hiding)
        else:
            found = self._boxes_of(other, open_ones, hiding)
        return other.numbers[found]

    # Few, one by one

    def _pairs_of(self, other: "Group", open_ones: Numbers, hiding: Flags) -> Numbers:
        rows = [row for row in open_ones.tolist() if self._hides(range(len(self)), other, row, hiding)]
        return np.asarray(rows, np.int64)

    def _hides(self, mine: Iterable[int], other: "Group", row: int, hiding: Flags) -> bool:
        """Whether one of these rows covers the other's row, which then hides nothing any more."""
        number, theirs = other.numbers[row], other._filters[row]
        for each in mine:
            one = self.numbers[each]
            if one != number and hiding[one] and covers(self._filters[each], theirs):
                hiding[number] = False
                return True
        return False

    # Ranges only

    @cached_property
    def _index(self) -> "_Index":
        columns = [self.columns(side.path, side.axis) for side in self.shape]
        points = [side.how == "point" for side in self.shape]
        return _Index([each for each in columns if each is not None], points, len(self.numbers))

    def _boxes_of(self, other: "Group", open_ones: Numbers, hiding: Flags) -> Numbers:
        columns: list[Columns] = []
        for side in self.shape:
            known = other.columns(side.path, side.axis)
            if known is None:
                return open_ones[:0]
            columns.append((known[0][open_ones], known[1][open_ones]))
        mine, theirs = self.numbers, other.numbers[open_ones]
        found = self._index.covered(columns, len(open_ones), hiding[mine], mine, theirs)
        return open_ones[found]

    # Words too

    @cached_property
    def _by_word(self) -> dict[str, list[int]]:
        place = next(place for place, side in enumerate(self.shape) if side.how == "word")
        made: dict[str, list[int]] = {}
        for row, filter_ in enumerate(self._filters):
            word = filter_[place]
            assert type(word) is Contains
            made.setdefault(word.word, []).append(row)
        return made

    def _words_of(self, other: "Group", open_ones: Numbers, hiding: Flags) -> Numbers:
        side = next(side for side in self.shape if side.how == "word")
        lengths = sorted({len(word) for word in self._by_word})
        found: list[int] = []
        for row in open_ones.tolist():
            theirs = other._filters[row]
            pieces = {
                text[start : start + length]
                for text in known_texts(theirs, side.path, side.axis)
                for length in lengths
                for start in range(len(text) - length + 1)
            }
            mine = [each for piece in sorted(pieces) for each in self._by_word.get(piece, ())]
            if self._hides(mine, other, row, hiding):
                found.append(row)
        return np.asarray(found, np.int64)


def _point_on(axis: Axis, text: str) -> Interval:
    """Where a text lies on one of the axes of text."""
    where = text_position(axis, text)
    return text_point(where) if type(where) is str else point(where)


class _Index:
    """Rows of ranges, filed by their points and then by the low end of their first range."""

    def __init__(self, columns: Sequence[Columns], points: Sequence[bool], rows: int) -> None:
        self._columns, self._points = columns, points
        self._first = next((place for place, is_one in enumerate(points) if not is_one), None)
        codes, lows = self._filed(columns, rows)
        self._order = np.lexsort((lows, codes))
        self._codes, self._starts = np.unique(codes[self._order], return_index=True)
        places = np.searchsorted(self._codes, codes[self._order])
        self._keys = places << 32 | lows[self._order]

    def _filed(self, columns: Sequence[Columns], rows: int) -> tuple[NDArray[np.uint64], Numbers]:
        codes = np.zeros(rows, np.uint64)
        for (low, _), is_one in zip(columns, self._points, strict=True):
            if is_one:
                codes = (codes + low.astype(np.uint64)) * _SPREAD
        lows = np.zeros(rows, np.int64) if self._first is None else columns[self._first][0]
        return codes, lows

    def covered(
        self, columns: Sequence[Columns], rows: int, hiding: Flags, mine: Numbers, theirs: Numbers
    ) -> Numbers:
        """Of these rows, those that a row of the index covers which may, and is another filter."""
        codes, lows = self._filed(columns, rows)
        places = np.minimum(np.searchsorted(self._codes, codes), len(self._codes) - 1)
        starts = self._starts[places]
        ends = np.searchsorted(self._keys, places << 32 | lows, side="right")
        counts = np.where(self._codes[places] == codes, np.maximum(ends - starts, 0), 0)
        found = np.zeros(rows, np.bool_)
        for first, last in _chunks(counts):
            some = counts[first:last]
            row = np.repeat(np.arange(first, last), some)
            before = np.cumsum(some) - some
            place = np.arange(len(row)) - np.repeat(before - starts[first:last], some)
            other = self._order[place]
            keep = hiding[other] & (mine[other] != theirs[row])
            row, other = row[keep], other[keep]
            for (low, high), (their_low, their_high) in zip(self._columns, columns, strict=True):
                keep = (low[other] <= their_low[row]) & (their_high[row] <= high[other])
                row, other = row[keep], other[keep]
            found[row] = True
        return np.flatnonzero(found)


def _chunks(counts: Numbers) -> list[tuple[int, int]]:
    """Runs of rows that are not too many pairs at once, but for a single row."""
    ends = np.cumsum(counts)
    made: list[tuple[int, int]] = []
    first = 0
    while first < len(counts):
        done = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, done + _PAIRS_AT_ONCE, side="right")))
        made.append((first, last))
        first = last
    return made
