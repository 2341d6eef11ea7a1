"""Subscribers of a simulated world that spare brokers work: rightly, wrongly, late, or not at all.

Which it is hangs on the name alone. Whatever they do, nobody must miss anything by it.
"""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from branchline.routing.compiling import Compiled, compile_filter
from branchline.routing.control import Operation, Request
from branchline.routing.dissemination.summaries import hides
from branchline.routing.offloading.assigner import Given
from branchline.routing.offloading.client import answer, claimed
from branchline.routing.offloading.messages import Answer, Between, Claimed, Dispatch, Indices, Task
from branchline.routing.offloading.offloader import TIMEOUT_MS

KINDS = ("honest", "lying", "silent", "honest", "late", "garbled")
COUNT = 2 * len(KINDS)

Say = Callable[[int, Answer], None]
"""Has an answer written after so many milliseconds."""


def kind_of(name: str) -> str:
    """What a helper is like: `h0`, `h1` and so on are of all kinds in turn."""
    return KINDS[int(name[1:]) % len(KINDS)]


class Helpers:
    """All of them; `honest` ones may have any name."""

    def __init__(self, seed: int, *, honest: bool = False) -> None:
        self._random = Random(f"helpers {seed}")
        self._honest = honest

    def work(self, dispatch: Dispatch, say: Say) -> None:
        """A task has come to one of them."""
        name, task = dispatch
        delay_ms, good = self._random.randint(0, 200), answer(task, name, hides)
        match KINDS[0] if self._honest else kind_of(name):
            case "honest":
                say(delay_ms, good)
            case "late":
                say(TIMEOUT_MS + delay_ms, good)
            case "lying":
                say(delay_ms, self._lie(task, name))
            case "garbled":
                for each in self._garbled(task, name, good):
                    say(delay_ms, each)

    def _lie(self, task: Task, name: str) -> Answer:
        """Claims anything of what it was given: what does not hold, nothing where something does, circles."""
        numbers, places = [each.number for each in task.table], list(range(len(task.batch)))
        above, below = (tuple(self._some(numbers) for _ in places) for _ in range(2))
        order = tuple(Between(self._some(places), self._some(places)) for _ in places)
        return Answer(task.round, task.slice, name, above, below, order)

    def _some(self, numbers: list[int]) -> Indices:
        return tuple(sorted(self._random.sample(numbers, self._random.randint(0, len(numbers)))))

    def _garbled(self, task: Task, name: str, good: Answer) -> list[Answer]:
        """Answers that fit no task, and then the right one, twice."""
        none: tuple[Indices, ...] = tuple(() for _ in task.batch)
        outside = tuple((10**9,) for _ in task.batch)
        wrong = Answer(task.round, task.slice, name, outside, none, good.order)
        short = Answer(task.round, task.slice, name, none[1:], none, good.order)
        other = Answer(task.round + 1, task.slice, name, none, none, good.order)
        return [wrong, short, other, good, good]


class Claimants:
    """Subscribers that say where their filters go in a fixed set: all rightly, or every other one."""

    def __init__(self, seed: int, *, honest: bool = False) -> None:
        self._random = Random(f"claimants {seed}")
        self._honest = honest
        self._known: dict[str, Given] = {}

    def learn(self, given: Given) -> None:
        """One has been told the fixed set of its home."""
        self._known[given.subscriber] = given

    def claiming(self, request: Request) -> Request:
        """The request with what its subscriber claims, if it knows a set; that may be out of date."""
        known = self._known.get(request.subscriber)
        if known is None or request.operation is not Operation.SUBSCRIBE or known.home != request.home:
            return request
        compiled = compile_filter(request.spelling, request.filter)
        if not isinstance(compiled, Compiled):
            return request
        right = claimed(known.assignment, compiled.cover, hides)
        if not self._honest and int(request.subscriber[-1]) % 2:
            right = self._wrong(right, len(known.assignment.filters))
        return replace(request, claimed=right)

    def _wrong(self, right: Claimed, size: int) -> Claimed:
        """Some of what does not hold, places that are in no set, and now and then a place too few."""
        places = [Between(self._some(size), self._some(size)) for _ in right.places]
        return Claimed(right.version, tuple(places[self._random.random() < 0.1 :]))

    def _some(self, size: int) -> Indices:
        return tuple(self._random.choices(range(size + 2), k=self._random.randint(0, 3)))
