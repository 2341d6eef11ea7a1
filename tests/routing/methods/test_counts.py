"""What methods count is told: by names that are known."""

from collections import Counter
from random import Random

from every_method import EVERY_STRATEGY, every_name_once

from branchline.ops.simulation.drawing import random_event, random_filter
from branchline.routing.compiling import Compiled, compile_filter
from branchline.routing.control import Identity
from branchline.routing.dissemination.strategies import make_dissemination
from branchline.routing.event import Event
from branchline.routing.methods.counts import COUNTS
from branchline.routing.methods.naming import Methods, make_forwarding
from branchline.routing.methods.protocols import Interest, OnTree
from branchline.routing.prefix.trees import Trees

RARE = {"access_unindexed", "kd_waiting"}
"""Counted of events that nobody draws, and of filters that have only just come."""
BY_LINKS = {
    *("told_inflated", "told_deflated", "requests_answered"),
    *("events_unadvertised", "told_unadvertised"),
    *(name for name, (method, _) in COUNTS.items() if method in ("rto", "ff")),
}
"""Counted where neighbours are told and ask, or events enter, and not by a summary."""


def counted(methods: Methods) -> Counter[str]:
    """What is counted where events enter, and where copies of them come to another broker."""
    random, counts = Random(3), Counter[str]()
    first, second = (make_forwarding(methods, Trees()) for _ in range(2))
    late: list[Interest] = []
    for number in range(120):
        compiled = compile_filter("sql", random_filter(random))
        if isinstance(compiled, Compiled):
            identity = Identity("b", f"s{number}", "one")
            first.add(Interest(identity, compiled, "b"))
            late.append(Interest(identity, compiled, identity))
            if number % 10:
                second.add(late.pop())
    for place in range(10):
        while place == 5 and late:  # until now it had not heard of them
            second.add(late.pop())
        event = Event(random_event(random))
        entered = first.enter(event)
        found = first.find(entered, event)
        onward = first.onward(entered, found, "b")
        counts.update(found.counts)
        counts.update(second.find(onward, event).counts)
    return counts


def told(strategy: str) -> Counter[str]:
    """What is counted where a neighbour is told of many filters."""
    made, random = make_dissemination(strategy), Random(3)
    assert isinstance(made, OnTree)
    summary = made.summary()
    for _ in range(120):
        compiled = compile_filter("sql", random_filter(random))
        for filter_ in compiled.cover if isinstance(compiled, Compiled) else ():
            summary.add(filter_)
    summary.told()
    return summary.counts


def test_every_count_of_a_method_is_known_and_moves() -> None:
    """A name that no table has would be told to nobody; one that nobody counts would be told in vain."""
    counts: Counter[str] = Counter()
    for strategy in EVERY_STRATEGY:
        counts.update(told(strategy))
    for methods in every_name_once():
        counts.update(counted(methods))
    assert set(counts) <= set(COUNTS)
    assert {name for name, count in counts.items() if count} >= set(COUNTS) - RARE - BY_LINKS
