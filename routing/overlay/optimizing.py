"""The Tree Optimizer as a state machine over `filters`: changes in, updates and snapshots out.

It folds the changes as every table does, whatever their order, and tells the optimizer of the trees
(`prefix/optimizer.py`) which covers have come and gone. The tree is only a vocabulary: what this misses,
repeats or tells late makes trees less precise, and nothing else.
"""

from collections.abc import Iterable

from branchline.routing.compiling import Compiled
from branchline.routing.control import Change
from branchline.routing.prefix.optimizer import Optimizer, Settings
from branchline.routing.prefix.updates import Snapshot, Update
from branchline.routing.subscriptions import SubscriptionTable


class TreeOptimizer:
    """The subscriptions that `filters` has told of, and the trees of their filters."""

    def __init__(self, incarnation: int, settings: Settings | None = None) -> None:
        self._table = SubscriptionTable()
        self.optimizer = Optimizer(incarnation, settings)

    def handle(self, now_ms: int, changes: Iterable[Change]) -> list[Update | Snapshot]:
        """Take in what `filters` has newly told; what brokers are to be told."""
        for change in changes:
            before = self._table.compiled(change.identity)
            # A change that cannot be read is told of by whoever wrote it; here it names no new place.
            if self._table.apply(change) is True:
                self._exchange(before, self._table.compiled(change.identity))
        return [*self.optimizer.updates(now_ms), *self.optimizer.snapshots_due(now_ms)]

    def _exchange(self, before: Compiled | None, after: Compiled | None) -> None:
        if before is after:
            return
        # First the new one: a filter that both have must not leave the tree in between.
        if after is not None:
            self.optimizer.subscribe(after.cover)
        if before is not None:
            self.optimizer.unsubscribe(before.cover)
