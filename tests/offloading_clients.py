"""Clients of all kinds, and a router that is driven through its rounds with them."""

from collections.abc import Callable
from random import Random

from branchline.routing.filters import Filter
from branchline.routing.offloading.client import answer
from branchline.routing.offloading.messages import Answer, Between, Dispatch, Indices, Task
from branchline.routing.offloading.router import Router

Client = Callable[[Task, str], list[Answer]]
CLIENTS = ("a", "b", "c", "d")


def honest(task: Task, name: str) -> list[Answer]:
    return [answer(task, name)]


def silent(task: Task, name: str) -> list[Answer]:
    return []


def lying(random: Random) -> Client:
    """Claims anything of what it was given: what does not hold, nothing where something does, circles."""

    def some(numbers: list[int]) -> Indices:
        return tuple(sorted(random.sample(numbers, random.randint(0, len(numbers)))))

    def lie(task: Task, name: str) -> list[Answer]:
        numbers, places = [each.number for each in task.table], list(range(len(task.batch)))
        above, below = (tuple(some(numbers) for _ in places) for _ in range(2))
        order = tuple(Between(some(places), some(places)) for _ in places)
        return [Answer(task.round, task.slice, name, above, below, order)]

    return lie


def garbled(task: Task, name: str) -> list[Answer]:
    """Answers that fit no task: numbers that are not in it, too few of them, other rounds, repeats."""
    good = answer(task, name)
    none: tuple[Indices, ...] = tuple(() for _ in task.batch)
    outside = tuple((10**9,) for _ in task.batch)
    return [
        Answer(task.round, task.slice, name, outside, none, good.order),
        Answer(task.round, task.slice, name, none[1:], none, good.order),
        Answer(task.round + 1, task.slice, name, none, none, good.order),
        Answer(task.round, task.slice, "somebody else", none, none, good.order),
        Answer(task.round, -1, name, none, none, good.order),
        Answer(task.round, task.slice, name, none, none, tuple(Between((99,), ()) for _ in task.batch)),
        good,
        good,
        Answer(task.round, task.slice, name, none, none, good.order),
    ]


def run_round(router: Router, clients: dict[str, Client], random: Random | None = None) -> None:
    """One round, with the answers in any order; what has not come by then never comes."""
    router.prepare()
    tasks: list[Dispatch] = router.lay_out(list(clients))
    answers = [each for client, task in tasks for each in clients[client](task, client)]
    if random is not None:
        random.shuffle(answers)
    for each in answers:
        router.receive(each)
    router.insert()
    router.eliminate()


def subscribe_all(
    router: Router,
    asked: list[tuple[Filter, object]],
    clients: dict[str, Client],
    random: Random | None = None,
) -> None:
    """Subscriptions one after the other, rounds whenever there are enough, and for the rest at the end."""
    for filter_, source in asked:
        if router.subscribe(filter_, source):
            run_round(router, clients, random)
    while router.waiting:
        run_round(router, clients, random)
