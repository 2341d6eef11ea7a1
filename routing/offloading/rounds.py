"""One round of RTO as the router sees it: what was asked of whom, what came back, and what to make of it.

Answers of clients to the same slice are sorted, so that those that say the same are equal and have one hash:
the one that came more often than any other counts. Where none did, or nothing came, the router finds out by
itself. What counts is no more than claimed: `placing.py` verifies it.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import TypeVar

from branchline.routing.filters import Filter
from branchline.routing.offloading.client import Covers, compare, order_of
from branchline.routing.offloading.messages import Answer, Between, Dispatch, Task
from branchline.routing.offloading.placing import Claims

T = TypeVar("T")


class Round:
    """The tasks of a batch, and the answers to them."""

    def __init__(self, number: int, batch: tuple[Filter, ...]) -> None:
        self.number = number
        self.batch = batch
        self._tasks: dict[int, Task] = {}
        self._asked: dict[int, set[str]] = {}
        self._answers: dict[int, list[Answer]] = {}
        self._waiting = 0
        self._places = frozenset(range(len(batch)))
        self._sound: tuple[Between, ...] = ()
        """An order that was found to speak of places in the batch."""
        self.computed = 0
        """Slices that the router had to compare by itself."""

    def ask(self, task: Task, clients: Sequence[str]) -> list[Dispatch]:
        """Have a slice compared by some clients."""
        self._tasks[task.slice] = task
        self._asked[task.slice] = set(clients)
        self._answers[task.slice] = []
        self._waiting += len(clients)
        return [Dispatch(client, task) for client in clients]

    @property
    def complete(self) -> bool:
        """Whether every client has answered."""
        return not self._waiting

    def receive(self, answer: Answer) -> bool:
        """Take an answer. Not so, if it was not asked for, came before, or does not answer the task."""
        if not self.fits(answer):
            return False
        self._asked[answer.slice].discard(answer.client)
        self._waiting -= 1
        self._answers[answer.slice].append(answer)
        return True

    def fits(self, answer: Answer) -> bool:
        """Whether an answer was asked for, is the first one, and answers the task."""
        asked = self._asked.get(answer.slice, set())
        return answer.round == self.number and answer.client in asked and self._fits(answer)

    def answers(self) -> list[Answer]:
        """All that were taken; of each slice in their order."""
        return [each for answers in self._answers.values() for each in answers]

    def dispatches(self) -> list[Dispatch]:
        """What is asked of those who have not answered."""
        return [
            Dispatch(client, self._tasks[number])
            for number, clients in self._asked.items()
            for client in sorted(clients)
        ]

    def silent(self) -> set[str]:
        """Those who have not answered all that they were asked."""
        return set().union(*self._asked.values())

    @property
    def slices(self) -> int:
        """How many there are."""
        return len(self._tasks)

    def _fits(self, answer: Answer) -> bool:
        count = len(self.batch)
        if not len(answer.above) == len(answer.below) == len(answer.order) == count:
            return False
        if answer.order != self._sound:
            if not all(self._places.issuperset(chain(*each)) for each in answer.order):
                return False
            # Nearly all answers of a round have the same order.
            self._sound = answer.order
        said = set(chain(*answer.above, *answer.below))
        return not said or said.issubset(each.number for each in self._tasks[answer.slice].table)

    def claims(self, covers: Covers) -> list[Claims]:
        """For each filter of the batch, what is claimed of it and the table."""
        made = [Claims(each) for each in self.batch]
        for number, task in self._tasks.items():
            answers = self._answers[number]
            chosen = most_frequent([(each.above, each.below) for each in answers])
            if chosen is None:
                self.computed += 1
                chosen = compare(self.batch, task.table, covers)
            for claims, above, below in zip(made, *chosen, strict=True):
                # Of most slices, nothing is above or below.
                if above:
                    claims.above.update(above)
                if below:
                    claims.below.update(below)
        return made

    def order(self, covers: Covers) -> tuple[Between, ...]:
        """The poset of the batch, as is claimed."""
        claimed = [each.order for answers in self._answers.values() for each in answers]
        chosen = most_frequent(claimed)
        return order_of(self.batch, covers) if chosen is None else chosen


def most_frequent(given: Sequence[T]) -> T | None:
    """What came more often than anything else; None if nothing did."""
    if len(given) == 1:
        return given[0]
    ranked = Counter(given).most_common(2)
    if not ranked or (len(ranked) == 2 and ranked[0][1] == ranked[1][1]):
        return None
    return ranked[0][0]


def reach(order: Sequence[Between]) -> list[set[int]]:
    """For each place, all places that the order has above it; it may have been made up, and be circular."""
    found: list[set[int]] = []
    for place, between in enumerate(order):
        above = set(between.above)
        pending = list(above)
        while pending:
            more = set(order[pending.pop()].above) - above
            above |= more
            pending += more
        found.append(above - {place})
    return found


def from_above(above: Sequence[set[int]]) -> list[int]:
    """The places, what is above first. In a true order, what is above has less above it."""
    return sorted(range(len(above)), key=lambda place: (len(above[place]), place))


def in_turn(clients: Sequence[str], start: int, copies: int) -> list[str]:
    """So many different clients, from one on."""
    count = len(clients)
    return [clients[(start + step) % count] for step in range(min(copies, count))]
