"""Jobs that are started anew with other methods while events are on their way."""

from collections import Counter
from dataclasses import replace

from every_method import EVERY_METHODS

from branchline.ops.simulation.runner import Runner
from branchline.ops.simulation.scripts import Script

SEEDS = range(12)
STEPS = 60


class Migrating(Script):
    """A script in which jobs come back from their logs with methods that they did not have before."""

    def _publish(self) -> None:
        super()._publish()
        if self._random.random() < 0.4:
            self._migrate(self._random.choice(self.world.runners))

    def _migrate(self, runner: Runner) -> None:
        before = runner.job.methods
        drawn = self._random.choice(EVERY_METHODS)
        after = replace(before, forwarding=drawn.forwarding, matching=drawn.matching)
        runner.job = replace(runner.job, methods=after)
        runner.restore()
        counts = self.world.counts
        counts["migrations"] += after != before
        counts["migrations_in_flight"] += after != before and sum(self.world._flying.values()) > 0
        counts[f"{before.forwarding} to {after.forwarding}"] += 1


def test_nothing_is_lost_or_comes_twice_when_methods_change() -> None:
    """Whatever faults there are, topologies and subscriptions that come and go: the history is clean."""
    counts: Counter[str] = Counter()
    for seed in SEEDS:
        played = Migrating(seed).play(STEPS)
        assert played.clean, played.describe()
        counts.update(played.counts)
    assert counts["migrations_in_flight"] > len(SEEDS), "copies of another method were under way"
    assert counts["prefix to rematch"] and counts["rematch to prefix"]
    assert counts["afresh_matches"], "copies of another method are matched afresh"
