"""Predicates in the order in which a tier looks them up, and where an event stands among them.

On each dimension the cuts of all ranges are sorted; a value lies behind `r` of them, its *rank*, and a range
from cut i to cut j holds for the ranks i + 1 to j. Ranges stand dimension by dimension, in the order of their
low ends; words stand behind them.

Cost: to make it, two sorts. Of an event, a bisection for each dimension that it has.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from branchline.routing.boolean.forest import Flags, Ints
from branchline.routing.boolean.trees import Predicate
from branchline.routing.boolean.words import Words
from branchline.routing.dimensions import Dimension
from branchline.routing.event import Event
from branchline.routing.filters import Contains, Range
from branchline.routing.intervals import Cut


class Ranked(NamedTuple):
    """The ranges of one dimension, from the first to before the end, and cuts in order, theirs among them."""

    first: int
    end: int
    dimension: Dimension
    cuts: Sequence[Cut]


class Ordered:
    """Predicates, each at a place."""

    def __init__(
        self, number: Ints, ranks: Sequence[Ranked], low: Ints, high: Ints, contains: Sequence[Contains]
    ) -> None:
        self.number = number
        """For each place the number of its predicate, wherever that is from."""
        self.ranks = ranks
        self.low, self.high = low, high
        """For each range the numbers of its cuts on its dimension."""
        self._contains = contains
        self._words: dict[Dimension, Words] = {}
        for place, each in enumerate(contains, low.size):
            self._words.setdefault(each.dimension, Words()).add(each.word, place)

    def __len__(self) -> int:
        return len(self.number)

    def only(self, used: Flags) -> "Ordered":
        """Those whose numbers are used, among the same cuts."""
        kept = used[self.number]
        ranges, words = kept[: self.low.size], kept[self.low.size :]
        before = np.concatenate([[0], np.cumsum(ranges)])
        ranks = [
            each._replace(first=int(before[each.first]), end=int(before[each.end])) for each in self.ranks
        ]
        return Ordered(
            self.number[kept],
            [each for each in ranks if each.first < each.end],
            self.low[ranges],
            self.high[ranges],
            [each for each, is_kept in zip(self._contains, words.tolist(), strict=True) if is_kept],
        )

    def where(self, event: Event) -> Iterator[int]:
        """Of each dimension that the event has, its first place and its end, and the event's rank."""
        for first, end, dimension, cuts in self.ranks:
            for position in event.positions(*dimension):
                yield first
                yield end
                yield bisect_right(cuts, (0, position, 0))

    def contained(self, event: Event) -> Iterator[int]:
        """The places of words that the event contains."""
        for dimension, words in self._words.items():
            for text in event.positions(*dimension):
                yield from words.within(text)


def ordered(predicates: Sequence[Predicate]) -> Ordered:
    """These predicates, which are numbered as they stand here."""
    of_dimension: dict[Dimension, list[tuple[Range, int]]] = {}
    words: list[tuple[Contains, int]] = []
    for number, predicate in enumerate(predicates):
        if isinstance(predicate, Contains):
            words.append((predicate, number))
        else:
            of_dimension.setdefault(predicate.dimension, []).append((predicate, number))
    ranked: list[Ranked] = []
    numbers: list[int] = []
    low: list[int] = []
    high: list[int] = []
    for dimension, mine in of_dimension.items():
        mine.sort(key=lambda each: each[0].interval)
        cuts = sorted({cut for each, _ in mine for cut in each.interval})
        ranked.append(Ranked(len(numbers), len(numbers) + len(mine), dimension, cuts))
        numbers += [number for _, number in mine]
        low += [bisect_left(cuts, each.interval.low) for each, _ in mine]
        high += [bisect_left(cuts, each.interval.high) for each, _ in mine]
    numbers += [number for _, number in words]
    contains = [each for each, _ in words]
    made = (np.array(each, np.int32) for each in (numbers, low, high))
    number_, low_, high_ = made
    return Ordered(number_, ranked, low_, high_, contains)
