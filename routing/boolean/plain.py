"""Boolean matching as it is told: an index of predicates, and who needs which.

Theory of operation. Matching has two steps. The *predicate index* finds the predicates that an event fulfils:
of each dimension, points by a dictionary, other ranges one by one, words in one pass. The *association table*
then says in which trees each of them stands, and how often; each adds that to the tree's count. Only a tree
whose count has come to the least number that it can hold with is a *candidate*, and evaluated.

A predicate is there once, however many trees have it. This is the form for few trees, and for those that came
lately; `tiers.py` does the same with arrays.

Cost: of an event, the ranges of its dimensions, the associations of what is fulfilled, and the candidates; of
a change, the leaves of its tree.
"""

from collections.abc import Iterator
from typing import Any

from branchline.routing.boolean.trees import Node, Predicate, holds, least, leaves
from branchline.routing.boolean.words import Words
from branchline.routing.dimensions import Dimension
from branchline.routing.event import Event
from branchline.routing.filters import Contains
from branchline.routing.intervals import Interval, is_point


class PlainTrees:
    """Trees by number."""

    def __init__(self) -> None:
        self._trees: dict[int, Node] = {}
        self._least: dict[int, int] = {}
        self._associations: dict[int, dict[int, int]] = {}
        """For each predicate, by number, the trees that it stands in, and how often."""
        self._predicates: dict[int, Predicate] = {}
        self._numbers: dict[Predicate, int] = {}
        self._points: dict[Dimension, dict[Any, int]] = {}
        self._ranges: dict[Dimension, dict[int, Interval]] = {}
        self._words: dict[Dimension, Words] = {}

    def __len__(self) -> int:
        return len(self._trees)

    def __contains__(self, number: int) -> bool:
        return number in self._trees

    def trees(self) -> Iterator[tuple[int, Node]]:
        """All of them, with their numbers."""
        return iter(self._trees.items())

    def add(self, number: int, tree: Node, predicates: "dict[Predicate, int]") -> None:
        """Add a tree under a number; its predicates have the numbers that are given."""
        self._trees[number], self._least[number] = tree, least(tree)
        for predicate in leaves(tree):
            each = predicates[predicate]
            if each not in self._predicates:
                self._file(predicate, each)
            needs = self._associations.setdefault(each, {})
            needs[number] = needs.get(number, 0) + 1

    def remove(self, number: int) -> None:
        """Take the tree of this number away."""
        del self._least[number]
        for predicate in leaves(self._trees.pop(number)):
            each = self._numbers.get(predicate)
            if each is not None:
                self._associations[each].pop(number, None)
                if not self._associations[each]:
                    self._unfile(predicate, each)

    def match(self, event: Event) -> "tuple[set[int], list[int], int]":
        """The predicates that are fulfilled, the trees that hold, and how many were evaluated for that."""
        fulfilled = set(self._fulfilled(event))
        counts: dict[int, int] = {}
        for predicate in fulfilled:
            for tree, times in self._associations[predicate].items():
                counts[tree] = counts.get(tree, 0) + times
        candidates = [tree for tree, count in counts.items() if count >= self._least[tree]]
        known = {self._predicates[each] for each in fulfilled}
        held = [tree for tree in candidates if holds(self._trees[tree], known.__contains__)]
        return fulfilled, held, len(candidates)

    def _fulfilled(self, event: Event) -> Iterator[int]:
        for dimension, points in self._points.items():
            for position in event.positions(*dimension):
                if position in points:
                    yield points[position]
        for dimension, ranges in self._ranges.items():
            for position in event.positions(*dimension):
                start, end = (0, position, 0), (0, position, 1)
                yield from (each for each, what in ranges.items() if what[0] <= start and end <= what[1])
        for dimension, words in self._words.items():
            for text in event.positions(*dimension):
                yield from words.within(text)

    def _file(self, predicate: Predicate, number: int) -> None:
        self._predicates[number], self._numbers[predicate] = predicate, number
        dimension = predicate.dimension
        if isinstance(predicate, Contains):
            self._words.setdefault(dimension, Words()).add(predicate.word, number)
        elif is_point(predicate.interval):
            self._points.setdefault(dimension, {})[predicate.interval.high[1]] = number
        else:
            self._ranges.setdefault(dimension, {})[number] = predicate.interval

    def _unfile(self, predicate: Predicate, number: int) -> None:
        del self._predicates[number], self._numbers[predicate], self._associations[number]
        dimension = predicate.dimension
        if isinstance(predicate, Contains):
            files: Any = self._words
            files[dimension].remove(predicate.word)
        elif is_point(predicate.interval):
            files = self._points
            del files[dimension][predicate.interval.high[1]]
        else:
            files = self._ranges
            del files[dimension][number]
        if not len(files[dimension]):
            del files[dimension]
