"""Jobs that are started anew with other methods while events are on their way."""

from collections import Counter
from dataclasses import replace
from itertools import permutations

from every_method import EVERY_METHODS

from branchline.ops.simulation.runner import Runner
from branchline.ops.simulation.scripts import Script
from branchline.routing.methods.naming import FORWARDING, OPTIMISATIONS, Methods, misfit

SEEDS = range(12)
STEPS = 60


def _name(methods: Methods) -> str:
    return methods.forwarding.partition("(")[0]


class Migrating(Script):
    """A script in which jobs come back from their logs with methods that they did not have before."""

    def _publish(self) -> None:
        super()._publish()
        if self._random.random() < 0.6:
            self._migrate(self._random.choice(self.world.runners))

    def _migrate(self, runner: Runner) -> None:
        before = runner.job.methods
        forwarding = self._random.choice([name for name in FORWARDING if name != _name(before)])
        drawn = self._random.choice([each for each in EVERY_METHODS if _name(each) == forwarding])
        names = tuple(name for name in OPTIMISATIONS if self._random.random() < 0.5)
        names = names if misfit(replace(drawn, optimise=names)) is None else ()
        after = replace(before, forwarding=drawn.forwarding, matching=drawn.matching, optimise=names)
        runner.job = replace(runner.job, methods=after)
        runner.restore()
        counts = self.world.counts
        counts["migrations"] += after != before
        counts["migrations_in_flight"] += after != before and sum(self.world._flying.values()) > 0
        counts[f"{_name(before)} to {_name(after)}"] += 1


def test_nothing_is_lost_or_comes_twice_when_methods_change() -> None:
    """Whatever faults there are, topologies and subscriptions that come and go: the history is clean."""
    counts: Counter[str] = Counter()
    for seed in SEEDS:
        played = Migrating(seed).play(STEPS)
        assert played.clean, played.describe()
        counts.update(played.counts)
    assert counts["migrations_in_flight"] > len(SEEDS), "copies of another method were under way"
    assert all(counts[f"{one} to {other}"] for one, other in permutations(FORWARDING, 2)), counts
    assert counts["afresh_matches"], "copies of another method are matched afresh"
