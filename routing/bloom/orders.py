"""The constraints of one dimension, ordered by covering, with their bits.

Ranges: points are found by their value; those that are open on one side are chains, and all others nest
(`nesting.py`). Words are a forest: a word is below one that is part of it, so a text that does not contain a
word is not asked for what is below it. Each kind of constraint has an order of its own, since what is asked
is only which of them hold: where a range of one kind covers one of another, nothing is to be gained by it.

Cost: of a range, some bisections. A word is compared with the siblings on each level that it goes down, and a
text with those below each word that it contains.
"""

from collections.abc import Iterator
from typing import Any, Protocol

from branchline.routing.bloom.nesting import Chain, Nesting
from branchline.routing.describing import describe_constraint
from branchline.routing.filters import Constraint, Contains, Range
from branchline.routing.intervals import HIGHEST, LOWEST, Interval, is_point


class Order(Protocol):
    """Constraints that are compared with each other."""

    def __len__(self) -> int: ...

    def add(self, constraint: Constraint, bits: tuple[int, ...]) -> None:
        """A constraint that was not there."""
        ...

    def remove(self, constraint: Constraint) -> None: ...

    def collect(self, position: Any, into: set[int]) -> None:
        """Add the bits of all constraints that hold there."""
        ...

    def describe(self) -> Iterator[str]:
        """The constraints, each further in than one that covers it."""
        ...


class RangeOrder:
    """The ranges of a dimension."""

    def __init__(self, hashes: int) -> None:
        self._points: dict[Any, tuple[tuple[int, ...], Constraint]] = {}
        self._rising = Chain(hashes)
        """Without an end."""
        self._falling = Chain(hashes)
        """Without a start, but with an end."""
        self._nesting = Nesting()
        self._any: Constraint | None = None

    def __len__(self) -> int:
        return len(self._points) + len(self._rising) + len(self._falling) + len(self._nesting)

    def add(self, constraint: Constraint, bits: tuple[int, ...]) -> None:
        interval = _interval(constraint)
        self._any = constraint
        if is_point(interval):
            self._points[interval.high[1]] = bits, constraint
        elif interval.high == HIGHEST:
            self._rising.add(interval.low, bits)
        elif interval.low == LOWEST:
            self._falling.add(interval.high, bits)
        else:
            self._nesting.add(interval, bits)

    def remove(self, constraint: Constraint) -> None:
        interval = _interval(constraint)
        if is_point(interval):
            del self._points[interval.high[1]]
        elif interval.high == HIGHEST:
            self._rising.remove(interval.low)
        elif interval.low == LOWEST:
            self._falling.remove(interval.high)
        else:
            self._nesting.remove(interval)

    def collect(self, position: Any, into: set[int]) -> None:
        if self._points and (found := self._points.get(position)) is not None:
            into.update(found[0])
        if self._rising:
            into.update(self._rising.until((0, position, 0)))
        if self._falling:
            into.update(self._falling.since((0, position, 1)))
        if self._nesting:
            self._nesting.collect(position, into)

    def describe(self) -> Iterator[str]:
        for level, cut in enumerate(self._rising):
            yield self._described(level, Interval(cut, HIGHEST))
        for level, cut in enumerate(reversed(list(self._falling))):
            yield self._described(level, Interval(LOWEST, cut))
        for level, interval in self._nesting.nested():
            yield self._described(level - 1, interval)
        yield from sorted(describe_constraint(constraint) for _, constraint in self._points.values())

    def _described(self, level: int, interval: Interval) -> str:
        assert self._any is not None, "there is one"
        return "  " * level + describe_constraint(Range(self._any.path, self._any.axis, interval))


class WordOrder:
    """The words of a dimension."""

    def __init__(self) -> None:
        self._top = _Word(None, ())
        self._words: dict[Constraint, _Word] = {}

    def __len__(self) -> int:
        return len(self._words)

    def add(self, constraint: Constraint, bits: tuple[int, ...]) -> None:
        assert isinstance(constraint, Contains)
        made = self._words[constraint] = _Word(constraint, bits)
        self._place(made, self._top)

    def remove(self, constraint: Constraint) -> None:
        gone = self._words.pop(constraint)
        assert gone.parent is not None, "what is in a forest has something above it"
        gone.parent.below.remove(gone)
        for child in gone.below:
            self._place(child, gone.parent)

    def collect(self, position: Any, into: set[int]) -> None:
        pending = [self._top]
        while pending:
            for child in pending.pop().below:
                if child.text in position:
                    into.update(child.bits)
                    pending.append(child)

    def describe(self) -> Iterator[str]:
        pending = [(0, child) for child in reversed(self._top.below)]
        while pending:
            level, word = pending.pop()
            assert word.constraint is not None
            yield "  " * level + describe_constraint(word.constraint)
            pending += [(level + 1, child) for child in reversed(word.below)]

    @staticmethod
    def _place(word: "_Word", above: "_Word") -> None:
        while (part := next((each for each in above.below if each.text in word.text), None)) is not None:
            above = part
        covered = [each for each in above.below if word.text in each.text]
        for each in covered:
            above.below.remove(each)
            each.parent = word
        word.below += covered
        word.parent = above
        above.below.append(word)


class _Word:
    __slots__ = ("below", "bits", "constraint", "parent", "text")

    def __init__(self, constraint: Contains | None, bits: tuple[int, ...]) -> None:
        self.constraint, self.bits = constraint, bits
        self.text = "" if constraint is None else constraint.word
        self.parent: _Word | None = None
        self.below: list[_Word] = []


def _interval(constraint: Constraint) -> Interval:
    assert isinstance(constraint, Range)
    return constraint.interval
