"""Which of many intervals on one dimension hold a position.

Intervals are kept by what they are:
- a point is found by its value;
- those with one end stand in the order of that end, so that the ones that hold are the first so many, or the
  last: a bisection, and nothing is looked at that does not hold;
- those with two ends hang on a segment tree. All their cuts in order divide the dimension into pieces; a node
  stands for a run of pieces, and an interval hangs on the few nodes that together are its pieces. The nodes
  from a position's piece up to the root have exactly the intervals that hold it.

Cost: O(log intervals + those that hold); memory O(log intervals) for each interval with two ends, O(1) for
others. Never changed after it was made.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Any

from branchline.routing.intervals import HIGHEST, LOWEST, Cut, Interval, is_point


class RangeIndex:
    """Different intervals of one dimension, each with a number."""

    def __init__(self, ranges: Iterable[tuple[Interval, int]]) -> None:
        self._everywhere: list[int] = []
        self._points: dict[Any, int] = {}
        ups: list[tuple[Cut, int]] = []
        downs: list[tuple[Cut, int]] = []
        between: list[tuple[Interval, int]] = []
        for interval, number in ranges:
            low, high = interval
            if is_point(interval):
                self._points[high[1]] = number
            elif low == LOWEST and high == HIGHEST:
                self._everywhere.append(number)
            elif low == LOWEST:
                downs.append((high, number))
            elif high == HIGHEST:
                ups.append((low, number))
            else:
                between.append((interval, number))
        self._up_lows, self._ups = _in_order(ups)
        self._down_highs, self._downs = _in_order(downs)
        self._cuts, self._nodes = _segments(between)

    def satisfied(self, position: Any) -> list[int]:
        """The numbers of the intervals that hold the position, each once."""
        found = self._everywhere.copy()
        point = self._points.get(position)
        if point is not None:
            found.append(point)
        start, end = (0, position, 0), (0, position, 1)
        if self._ups:
            found += self._ups[: bisect_right(self._up_lows, start)]
        if self._downs:
            found += self._downs[bisect_left(self._down_highs, end) :]
        if self._cuts:
            node = bisect_right(self._cuts, start) + len(self._cuts) + 1
            while node:
                found += self._nodes.get(node, ())
                node >>= 1
        return found

    def describe(self) -> str:
        return (
            f"{len(self._points)} points, {len(self._ups)} from and {len(self._downs)} up to an end,"
            f" {len(self._cuts)} cuts of those with two ends"
        )


def _in_order(ends: list[tuple[Cut, int]]) -> tuple[list[Cut], list[int]]:
    ends.sort()
    return [cut for cut, _ in ends], [number for _, number in ends]


def _segments(between: list[tuple[Interval, int]]) -> tuple[list[Cut], dict[int, list[int]]]:
    """The cuts in order, and the nodes that have intervals. Piece p lies before cut p; leaves are pieces."""
    cuts = sorted({cut for interval, _ in between for cut in interval})
    places = {cut: place for place, cut in enumerate(cuts)}
    leaves = len(cuts) + 1
    nodes: dict[int, list[int]] = {}
    for (low, high), number in between:
        left, right = places[low] + 1 + leaves, places[high] + 1 + leaves
        while left < right:
            if left & 1:
                nodes.setdefault(left, []).append(number)
                left += 1
            if right & 1:
                right -= 1
                nodes.setdefault(right, []).append(number)
            left >>= 1
            right >>= 1
    return cuts, nodes
