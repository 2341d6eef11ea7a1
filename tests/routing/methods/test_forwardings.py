"""Every forwarding, with every matching it goes with, delivers the same: what each event is owed, once.

One script is played in many overlays: any two of methods, topology, number of shards, jobs and batches come
together in one of them. Its filters and events meet often, and every change settles before events are
published, so the oracle can say for each event who gets it. Other scripts, in which nothing settles and much
goes wrong, are left to the history checker.
"""

from functools import cache
from random import Random
from typing import NamedTuple

import pytest
from every_method import EVERY_METHODS, pairwise_rows

from branchline.ops.simulation.drawing import random_event, random_filter
from branchline.ops.simulation.scripts import play_all
from branchline.ops.simulation.setting import Faults, Setting
from branchline.ops.simulation.world import World
from branchline.routing.checking import check
from branchline.routing.compiling import Compiled, compile_filter
from branchline.routing.control import Identity, Operation, Request
from branchline.routing.evaluate import evaluate
from branchline.routing.expression import Expression
from branchline.routing.history import Read
from branchline.routing.methods.naming import Methods
from branchline.routing.overlay.topology import Topology, founded, link
from branchline.routing.prefix.optimizer import Settings
from branchline.routing.values import JsonValue

BROKERS = ("b0", "b1", "b2", "b3", "b4")
ROUNDS = 12
FAULTY_STEPS = 15


def linked(*pairs: str) -> Topology:
    return founded(BROKERS, [link(f"b{one}", f"b{other}") for one, other in map(tuple, pairs)])


TOPOLOGIES = {
    "line": linked("01", "12", "23", "34"),
    "star": linked("02", "12", "32", "42"),
    "ring": linked("01", "12", "23", "34", "40"),
    "tree": linked("01", "02", "13", "14"),
}


class Row(NamedTuple):
    """How the script is played."""

    methods: Methods
    topology: str
    shards: int
    jobs: str
    batches_from: int | None

    def setting(self) -> Setting:
        jobs = {"one": (BROKERS,), "several": (BROKERS[:1], BROKERS[1:3], BROKERS[3:])}[self.jobs]
        return Setting(
            TOPOLOGIES[self.topology],
            jobs,
            shards=self.shards,
            methods=replaced(self.methods, self.batches_from),
            trees=Settings(threshold=0.0, spare_nodes=40),
            faults=Faults(5),
        )

    def __str__(self) -> str:
        together = "single" if self.batches_from is None else "batches"
        named = (self.methods.forwarding, self.methods.matching, self.topology, str(self.shards), self.jobs)
        return "-".join((*named, together))


def replaced(methods: Methods, batches_from: int | None) -> Methods:
    return Methods(methods.forwarding, methods.matching, methods.dissemination, batches_from=batches_from)


ROWS = [
    Row(*row)
    for row in pairwise_rows(EVERY_METHODS, sorted(TOPOLOGIES), (1, 3), ("one", "several"), (None, 0))
]


# The script


class Change(NamedTuple):
    """A subscription's new filter; None for its end."""

    identity: Identity
    filter: str | None


class Publication(NamedTuple):
    broker: str
    attributes: dict[str, JsonValue]
    key: str | None


@cache
def script() -> list[tuple[list[Change], list[Publication]]]:
    """Rounds of changes, and events after each."""
    random = Random("forwardings")
    homes = {f"s{number}": BROKERS[number % len(BROKERS)] for number in range(7)}
    made = []
    for _ in range(ROUNDS):
        changes = []
        for _ in range(4):
            subscriber = random.choice(sorted(homes))
            identity = Identity(homes[subscriber], subscriber, random.choice(("one", "two")))
            changes.append(Change(identity, random_filter(random) if random.random() < 0.8 else None))
        events = [
            Publication(random.choice(BROKERS), random_event(random), random.choice(("k", "l", None)))
            for _ in range(10)
        ]
        made.append((changes, events))
    return made


@cache
def owed() -> list[tuple[int, str]]:
    """Who gets which event of the script, as the oracle has it."""
    standing: dict[Identity, Expression] = {}
    found: set[tuple[int, str]] = set()
    number = 0
    for changes, events in script():
        for identity, text in changes:
            compiled = None if text is None else compile_filter("sql", text)
            if compiled is None:
                standing.pop(identity, None)
            elif isinstance(compiled, Compiled):  # of one that is refused, what was before stays
                standing[identity] = compiled.expression
        for event in events:
            found |= {
                (number, identity.subscriber)
                for identity, expression in standing.items()
                if evaluate(expression, event.attributes) is True
            }
            number += 1
    return sorted(found)


def played(setting: Setting) -> World:
    """The script, where everything settles."""
    world = World(setting, 1)
    asked = 0
    for changes, events in script():
        for identity, text in changes:
            operation = Operation.UNSUBSCRIBE if text is None else Operation.SUBSCRIBE
            named = (identity.subscriber, identity.id, identity.home)
            world.ask(Request(operation, *named, filter=text or "", request=f"r{asked}"))
            asked += 1
        world.settle()
        for event in events:
            world.publish(*event)
        world.settle()
    assert world.failures == []
    return world


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_every_forwarding_delivers_what_is_owed(row: Row) -> None:
    """Each event reaches those whose filters match it, once, by whatever methods and wherever it enters."""
    world = played(row.setting())
    verdict = check(world.history, repeats="none")
    assert verdict.clean, verdict.describe()
    found = sorted((entry.event, entry.subscriber) for entry in world.history if isinstance(entry, Read))
    assert found == owed()


@pytest.mark.parametrize("methods", EVERY_METHODS, ids=lambda each: f"{each.forwarding}-{each.matching}")
def test_every_forwarding_is_clean_whatever_goes_wrong(methods: Methods) -> None:
    """Nothing is lost, misrouted or stuck where subscriptions, topologies and jobs come and go."""
    seed = EVERY_METHODS.index(methods)
    for batches_from in (None, 0):
        wrong, counts = play_all((seed, seed + 1), FAULTY_STEPS, methods=replaced(methods, batches_from))
        assert not wrong, "\n\n".join(wrong)
        assert counts["published"]


def test_the_script_is_not_idle() -> None:
    """Events are owed to several, to one, and to nobody; any two choices of a row come together."""
    reached = {event for event, _ in owed()}
    events = sum(len(each) for _, each in script())
    assert 20 < len(reached) < events < len(owed())
    assert {row.topology for row in ROWS} == set(TOPOLOGIES)
    for methods in EVERY_METHODS:
        mine = [row for row in ROWS if row.methods == methods]
        assert {row.shards for row in mine} == {1, 3} and {row.batches_from for row in mine} == {None, 0}
