"""Random scripts with every strategy: nothing is lost, misrouted or stuck, whatever goes wrong.

And rules of telling along a tree taken out, each of which the history checker must miss.
"""

from dataclasses import replace

import link_bugs
import pytest
from every_method import EVERY_STRATEGY, pairwise_rows
from link_bugs import Plant

from branchline.ops.simulation.scripts import Script, play, play_all
from branchline.ops.simulation.setting import Faults, Setting
from branchline.ops.simulation.world import World
from branchline.routing.checking import check
from branchline.routing.control import Operation, Request
from branchline.routing.history import Kind
from branchline.routing.methods.naming import Methods
from branchline.routing.overlay.topology import founded, link

STEPS = 25
WAYS = (("prefix", "tree"), ("rematch", "table"), ("partial-reuse(2)", "table"), ("rematch", "access"))
ROWS = [Methods(*way, told) for way, told in pairwise_rows(WAYS, EVERY_STRATEGY)]
COVERING = Methods("rematch", "table", "covering")


@pytest.mark.parametrize("methods", ROWS, ids=lambda each: f"{each.forwarding}-{each.dissemination}")
def test_scripts_are_clean_with_every_strategy(methods: Methods) -> None:
    """Batches that crash, jobs that start anew, brokers that come and go, links that change."""
    first = 2 * ROWS.index(methods)
    wrong, counts = play_all(range(first, first + 2), STEPS, methods=methods)
    assert not wrong, "\n\n".join(wrong)
    assert counts["letters"]


def test_an_ack_waits_for_what_stands_for_the_subscription() -> None:
    """A filter that another one covers is in force when that one is, and is told to nobody itself."""
    line = founded(["a", "b", "c"], [link("a", "b"), link("b", "c")])
    world = World(Setting(line, (("a",), ("b",), ("c",)), methods=COVERING, faults=Faults(50)), 1)

    def subscribe(id_: str, filter_: str) -> None:
        world.ask(Request(Operation.SUBSCRIBE, "ann", id_, "a", filter=filter_, request=id_))

    subscribe("wide", "x > 1")
    subscribe("narrow", "x > 5")
    assert world.counts["acks_in-force"] == 0
    world.settle()
    assert world.counts["acks_in-force"] == 2
    before = world.counts["letters"]
    subscribe("narrower", "x = 7")
    world.settle()
    assert world.counts["acks_in-force"] == 3
    assert world.counts["letters"] == before, "what stands for it is known everywhere"


def test_what_was_hidden_is_told_in_the_same_step() -> None:
    """While events flow, a filter that hid another one ends: the other one misses none of them."""
    line = founded(["a", "b", "c"], [link("a", "b"), link("b", "c")])
    world = World(Setting(line, (("a",), ("b",), ("c",)), methods=COVERING, faults=Faults(30)), 3)
    for subscriber, filter_ in (("wide", "x > 1"), ("narrow", "x > 5")):
        world.ask(Request(Operation.SUBSCRIBE, subscriber, "one", "a", filter=filter_, request=subscriber))
    world.settle()
    for number in range(60):
        if number == 20:
            world.ask(Request(Operation.UNSUBSCRIBE, "wide", "one", "a", request="end"))
        world.publish("c", {"x": 7}, "k")
        world.advance(world.now_ms + 7)
    world.settle()
    verdict = check(world.history)
    assert verdict.clean, verdict.describe()
    assert verdict.owed >= 60


class Switching(Script):
    """A script in which jobs come back with another strategy along the tree."""

    def _publish(self) -> None:
        super()._publish()
        if self._random.random() < 0.3:
            runner = self._random.choice(self.world.runners)
            told = self._random.choice(EVERY_STRATEGY)
            runner.job = replace(runner.job, methods=replace(runner.job.methods, dissemination=told))
            runner.restore()
            self.world.counts["switches"] += 1


def test_a_job_goes_on_with_another_strategy() -> None:
    """Its neighbours are told what differs, and nobody misses anything meanwhile."""
    switches = 0
    for seed in range(4):
        played = Switching(seed, methods=COVERING).play(40)
        assert played.clean, played.describe()
        switches += played.counts["switches"]
    assert switches > 4


BUGS: list[tuple[Plant, int]] = [
    (link_bugs.believe_in_silence, 12),
    (link_bugs.trust_old_tables, 79),
    (link_bugs.answer_at_once, 38),
    (link_bugs.ack_too_early, 13),
    (link_bugs.leave_hidden_what_was_hidden, 1),
    (link_bugs.obey_a_second_time, 11),
]
"""The bug, and a seed whose script finds it."""


@pytest.mark.parametrize(("plant", "seed"), BUGS, ids=[plant.__name__ for plant, _ in BUGS])
def test_the_checker_finds_a_planted_bug(plant: Plant, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody misses an event; without the bug the same script is clean."""
    assert play(seed, 40, methods=COVERING).clean
    plant(monkeypatch)
    found = {finding.kind for finding in play(seed, 40, methods=COVERING).verdict.findings()}
    assert Kind.LOST in found, plant.__doc__


def test_every_planted_bug_is_looked_for() -> None:
    """None is left out."""
    assert [plant for plant, _ in BUGS] == link_bugs.BUGS
