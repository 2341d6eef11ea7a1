"""Clients of a simulated router: one that works as clients do and is timed, and all others in arrays.

The clients of a round work at the same time, so what it takes is what the slowest takes. That is one with the
largest slice, and all of that size have as much to do. So one of them makes its tests one by one, with a
clock running; what the others would answer is found for all at once, by comparing the ends of ranges. Both
must say the same.
"""

import time
from collections.abc import Sequence

import numpy as np

from branchline.ops.simulation.structures_ranges import Numbers, ends
from branchline.routing.filters import Filter
from branchline.routing.offloading.client import answer
from branchline.routing.offloading.messages import Answer, Dispatch, Indices, Listed


class Fleet:
    """All clients together."""

    def __init__(self, most: int, dimensions: int) -> None:
        self._low = np.full((most, dimensions), np.iinfo(np.int64).max)
        self._high = np.full((most, dimensions), np.iinfo(np.int64).min)
        self._slice = np.full(most, -1)
        self._most = 0
        """The highest number so far, and one."""
        self._known: dict[int, tuple[Listed, ...]] = {}
        self.longest_s = 0.0
        """What the slowest client has taken, in all rounds."""
        self.tests = 0
        """Covering tests of all clients."""
        self.differed = 0
        """Rounds in which the client that was timed says something else than the arrays."""

    def work(self, dispatches: Sequence[Dispatch]) -> list[Answer]:
        """The answers to all tasks of a round."""
        if not dispatches:
            return []
        largest = max(dispatches, key=lambda each: len(each.task.table))
        begin = time.process_time()
        timed = answer(largest.task, largest.client)
        self.longest_s += time.process_time() - begin
        batch = largest.task.batch
        self._learn(dispatches)
        above, below = self._found(batch)
        none: tuple[Indices, ...] = ((),) * len(batch)
        answers = []
        for client, task in dispatches:
            self.tests += 2 * len(batch) * len(task.table) + len(batch) * (len(batch) - 1)
            answers.append(
                Answer(
                    task.round,
                    task.slice,
                    client,
                    above.get(task.slice, none),
                    below.get(task.slice, none),
                    timed.order,
                )
            )
        self.differed += timed != next(
            each for each in answers if (each.client, each.slice) == (timed.client, timed.slice)
        )
        return answers

    def _learn(self, dispatches: Sequence[Dispatch]) -> None:
        """Note where in which slice each filter lies; what a slice lists stays the same object if it can."""
        there = {}
        for _, task in dispatches:
            there[task.slice] = task.table
            if self._known.get(task.slice) is task.table:
                continue
            numbers = [each.number for each in task.table]
            self._most = max(self._most, 1 + max(numbers))
            self._low[numbers], self._high[numbers] = ends([each.filter for each in task.table])
            self._slice[numbers] = task.slice
        for number, table in self._known.items():
            if there.get(number) is not table:
                gone = [each.number for each in table if self._slice[each.number] == number]
                left = {each.number for each in there.get(number, ())}
                self._slice[[each for each in gone if each not in left]] = -1
        self._known = there

    def _found(self, batch: Sequence[Filter]) -> tuple[dict[int, tuple[Indices, ...]], ...]:
        low, high = ends(batch)
        above: dict[int, list[list[int]]] = {}
        below: dict[int, list[list[int]]] = {}
        lows, highs = self._low[: self._most], self._high[: self._most]
        there = self._slice[: self._most] >= 0
        for place in range(len(batch)):
            covering = (lows <= low[place]).all(1) & (highs >= high[place]).all(1) & there
            covered = (lows >= low[place]).all(1) & (highs <= high[place]).all(1) & there
            self._share(above, np.flatnonzero(covering), place, len(batch))
            self._share(below, np.flatnonzero(covered), place, len(batch))
        return tuple(
            {number: tuple(map(tuple, lists)) for number, lists in each.items()} for each in (above, below)
        )

    def _share(self, into: dict[int, list[list[int]]], numbers: Numbers, place: int, count: int) -> None:
        for number, part in zip(numbers.tolist(), self._slice[numbers].tolist(), strict=True):
            lists = into.get(part)
            if lists is None:
                lists = into[part] = [[] for _ in range(count)]
            lists[place].append(number)
