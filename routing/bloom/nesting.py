"""Intervals of one dimension, ordered by covering, so that those which hold a value are found at once.

Theory of operation. A forest: whatever is below an interval is covered by it, and of siblings none covers
another. So siblings that are sorted by their low cuts are sorted by their high cuts too, and those that hold
a value lie side by side: between the first that ends behind it and the last that starts before it. Whatever
holds a value is reached, since all above it do.

A new interval goes below one that covers it, as far down as there is one, and takes over the siblings that
it covers. What was below one that goes is put in again from there. Which tree comes of it hangs on the order
in which intervals came; what is found does not.

Cost: a bisection for each interval found, and for each level that a new one goes down.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any

from branchline.routing.intervals import WHOLE, Cut, Interval


class _Node:
    __slots__ = ("bits", "highs", "interval", "lows", "nodes", "parent")

    def __init__(self, interval: Interval, bits: tuple[int, ...]) -> None:
        self.interval, self.bits = interval, bits
        self.parent: _Node | None = None
        self.nodes: list[_Node] = []
        self.lows: list[Cut] = []
        self.highs: list[Cut] = []

    def put(self, place: int, child: "_Node") -> None:
        child.parent = self
        self.nodes.insert(place, child)
        self.lows.insert(place, child.interval.low)
        self.highs.insert(place, child.interval.high)

    def take(self, first: int, last: int) -> "list[_Node]":
        taken = self.nodes[first:last]
        del self.nodes[first:last], self.lows[first:last], self.highs[first:last]
        return taken


class Nesting:
    """Different intervals, and the bits of each."""

    def __init__(self) -> None:
        self._top = _Node(WHOLE, ())
        self._nodes: dict[Interval, _Node] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def add(self, interval: Interval, bits: tuple[int, ...]) -> None:
        node = self._nodes[interval] = _Node(interval, bits)
        self._place(node, self._top)

    def remove(self, interval: Interval) -> None:
        node = self._nodes.pop(interval)
        parent = node.parent
        assert parent is not None, "what is in a forest has something above it"
        place = bisect_left(parent.lows, interval.low)
        parent.take(place, place + 1)
        for child in node.nodes:
            self._place(child, parent)

    def collect(self, value: Any, into: set[int]) -> None:
        """Add the bits of all intervals that hold the value."""
        start, end = (0, value, 0), (0, value, 1)
        pending = [self._top]
        while pending:
            node = pending.pop()
            for child in node.nodes[bisect_left(node.highs, end) : bisect_right(node.lows, start)]:
                into.update(child.bits)
                if child.nodes:
                    pending.append(child)

    def nested(self) -> Iterator[tuple[int, Interval]]:
        """All intervals with their levels, each behind those above it."""
        pending = [(1, node) for node in reversed(self._top.nodes)]
        while pending:
            level, node = pending.pop()
            yield level, node.interval
            pending += [(level + 1, child) for child in reversed(node.nodes)]

    @staticmethod
    def _place(node: _Node, above: _Node) -> None:
        """Put the node, with all below it, somewhere below another one that covers it."""
        pending = [(node, above)]
        while pending:
            node, above = pending.pop()
            low, high = node.interval
            while (place := bisect_right(above.lows, low)) and above.highs[place - 1] >= high:
                above = above.nodes[place - 1]
            first = bisect_left(above.lows, low)
            covered = above.take(first, max(first, bisect_right(above.highs, high)))
            above.put(first, node)
            # The node may have some below it already, which these are to be compared with.
            pending += [(each, node) for each in covered]


class Chain:
    """Intervals without an end on one side: each covers all that end, or start, before it.

    Their bits lie one behind the other in that order, so the narrowest one that holds a value brings those of
    all that cover it as one slice.
    """

    __slots__ = ("_bits", "_cuts", "_hashes")

    def __init__(self, hashes: int) -> None:
        self._cuts: list[Cut] = []
        self._bits: list[int] = []
        self._hashes = hashes

    def __len__(self) -> int:
        return len(self._cuts)

    def __iter__(self) -> Iterator[Cut]:
        return iter(self._cuts)

    def add(self, cut: Cut, bits: tuple[int, ...]) -> None:
        place = bisect_left(self._cuts, cut)
        self._cuts.insert(place, cut)
        self._bits[self._hashes * place : self._hashes * place] = bits

    def remove(self, cut: Cut) -> None:
        place = bisect_left(self._cuts, cut)
        del self._cuts[place], self._bits[self._hashes * place : self._hashes * (place + 1)]

    def until(self, cut: Cut) -> list[int]:
        """The bits of those that start no later."""
        return self._bits[: self._hashes * bisect_right(self._cuts, cut)]

    def since(self, cut: Cut) -> list[int]:
        """The bits of those that end no earlier."""
        return self._bits[self._hashes * bisect_left(self._cuts, cut) :]
