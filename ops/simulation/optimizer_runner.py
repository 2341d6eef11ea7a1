"""The Tree Optimizer's job as it is simulated: it reads `filters`, and tells all router jobs of the tree.

It reads what the first job writes; the others write the same. An update that is told to a job may be late or
never come, but no update overtakes another. A Tree Optimizer that starts anew begins a new life, with what
`filters` has.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from branchline.routing.control import Change, Identity
from branchline.routing.overlay.optimizing import TreeOptimizer
from branchline.routing.prefix.updates import Snapshot, Update

if TYPE_CHECKING:
    from branchline.ops.simulation.world import World


class OptimizerRunner:
    """A Tree Optimizer, what it has not read yet, and what is on its way from it."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.clocks: list[tuple[int, int]] = []
        """When an update was told, and which."""
        self._incarnation = 1
        self.trees = TreeOptimizer(self._incarnation, world.setting.trees)
        self._filters: dict[Identity, Change] = {}
        self._unread: list[Change] = []
        self._woken = False
        self._arrives_ms: dict[str, int] = {}
        """For each job, when the last that was told to it arrives."""

    def read(self, change: Change) -> None:
        """A change is on `filters`: handle it soon."""
        self._filters[change.identity] = change
        self._unread.append(change)
        self._wake(self.world.random.randint(1, self.world.setting.batch_ms))

    def tell_snapshot(self) -> None:
        """Tell everything that was told."""
        self._tell(list(self.trees.optimizer.snapshots()))

    def restart(self) -> None:
        """Begin a new life, with what `filters` has."""
        self._incarnation += 1
        self._unread = []
        self.trees = TreeOptimizer(self._incarnation, self.world.setting.trees)
        self._tell(self.trees.handle(self.world.now_ms, list(self._filters.values())))
        self.tell_snapshot()

    def _wake(self, delay_ms: int, *, background: bool = False) -> None:
        if not self._woken:
            self._woken = True
            self.world.later(delay_ms, self._run, background=background)

    def _run(self) -> None:
        self._woken = False
        unread, self._unread = self._unread, []
        self._tell(self.trees.handle(self.world.now_ms, unread))
        limit_ms = self.world.setting.trees.limit_ms
        if any(self.trees.optimizer.differences()) and limit_ms is not None:
            self._wake(limit_ms, background=True)

    def _tell(self, told: Sequence[Update | Snapshot]) -> None:
        world, faults = self.world, self.world.setting.faults
        for each in told:
            if isinstance(each, Update):
                world.counts["updates"] += 1
                self.clocks.append((world.now_ms, each.version.clock))
            for runner in world.runners:
                if faults.updates_lost and world.random.random() < faults.updates_lost:
                    world.counts["updates_lost"] += 1
                    continue
                delay_ms = world.random.randint(0, faults.updates_delay_ms)
                arrives_ms = max(self._arrives_ms.get(runner.name, 0), world.now_ms + delay_ms)
                self._arrives_ms[runner.name] = arrives_ms
                world.later(arrives_ms - world.now_ms, runner.update, each)
