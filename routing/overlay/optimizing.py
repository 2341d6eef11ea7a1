"""The Tree Optimizer as a state machine over `filters`: changes in, updates and snapshots out.

It folds the changes as every table does, whatever their order, and tells the optimizer of the trees
(`prefix/optimizer.py`) which covers have come and gone. The tree is only a vocabulary: what this misses,
repeats or tells late makes trees less precise, and nothing else.

One of them may be there for each part: all of them are told of all changes.

State that survives is a log: how a life began, and every call since that had something to say or to tell.
Calling again with the same gives the same trees, told at the same points. When the log has grown long, a new
life begins with what stands; brokers are told of it with a snapshot.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from branchline.routing.compiling import Compiled
from branchline.routing.control import Change
from branchline.routing.prefix import telling
from branchline.routing.prefix.optimizer import Optimizer, Settings
from branchline.routing.prefix.updates import Snapshot, Update
from branchline.routing.subscriptions import SubscriptionTable

RECORD_MAX_BYTES = 512 * 1024
"""Of one thing that is told: Kafka takes a megabyte by default."""


@dataclass(frozen=True, slots=True)
class Began:
    """A life of the optimizer, and what stood when it began."""

    incarnation: int
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class Called:
    """What the optimizer was called with."""

    now_ms: int
    changes: tuple[Change, ...] = ()
    asked: bool = False
    """Somebody asked for a snapshot."""


Entry: TypeAlias = Began | Called


class TreeOptimizer:
    """The subscriptions that `filters` has told of, and the trees of their filters."""

    def __init__(self, incarnation: int, settings: Settings | None = None, only: int | None = None) -> None:
        self._table = SubscriptionTable()
        self._settings = settings or Settings()
        self._only = only
        self.incarnation = incarnation
        self.optimizer = Optimizer(incarnation, settings, only)

    @classmethod
    def restored(cls, log: Iterable[Entry], settings: Settings, only: int | None) -> "TreeOptimizer | None":
        """The one that the log tells of; None if it is empty."""
        entries = iter(log)
        began = next(entries, None)
        if began is None:
            return None
        assert isinstance(began, Began), "a log begins with a life"
        restored = cls(began.incarnation, settings, only)
        restored._fold(began.changes)
        for called in entries:
            assert isinstance(called, Called), "a log is of one life"
            restored.call(called)
        return restored

    def began(self) -> Began:
        """A log that is as short as can be: a life after this one, which begins with what stands."""
        return Began(self.incarnation, tuple(self._table.changes()))

    def again(self, now_ms: int) -> "TreeOptimizer":
        """The next life."""
        anew = TreeOptimizer(max(now_ms, self.incarnation + 1), self._settings, self._only)
        anew._fold(self._table.changes())
        return anew

    def handle(self, now_ms: int, changes: Sequence[Change]) -> list[Update | Snapshot]:
        """Take in what `filters` has newly told; what brokers are to be told."""
        return self.call(Called(now_ms, tuple(changes)))

    def call(self, called: Called) -> list[Update | Snapshot]:
        """Take in what `filters` has newly told; what brokers are to be told."""
        self._fold(called.changes)
        self._fold(self._table.forgettable(called.now_ms))
        updates = self.optimizer.updates(called.now_ms)
        due = self.optimizer.snapshots_due(called.now_ms)
        if called.asked and not due:
            due = self.optimizer.snapshots()
        return [*updates, *(each for each in due if self._is_shown(each))]

    def _is_shown(self, snapshot: Snapshot) -> bool:
        """A life that has yet to tell of its filters shows nothing: brokers may know a fuller tree."""
        return bool(snapshot.version.clock) or self.optimizer.part(snapshot.part).waiting_since_ms is None

    def _fold(self, changes: Iterable[Change]) -> None:
        for change in changes:
            before = self._table.compiled(change.identity)
            # A change that cannot be read is told of by whoever wrote it; here it names no new place.
            if self._table.apply(change) is True:
                self._exchange(before, self._table.compiled(change.identity))

    def _exchange(self, before: Compiled | None, after: Compiled | None) -> None:
        if before is after:
            return
        # First the new one: a filter that both have must not leave the tree in between.
        if after is not None:
            self.optimizer.subscribe(after.cover)
        if before is not None:
            self.optimizer.unsubscribe(before.cover)

    def records(self, told: Iterable[Update | Snapshot]) -> list[bytes]:
        """What was just told, as records that Kafka takes.

        An update that is too large for one is told as a snapshot. So is the first one of a life: brokers
        that know an earlier life would see a gap.
        """
        records: list[bytes] = []
        whole: dict[int, None] = {}
        for each in told:
            record = b"" if isinstance(each, Snapshot) or each.version.clock == 1 else telling.encode(each)
            if 0 < len(record) <= RECORD_MAX_BYTES:
                records.append(record)
            else:
                whole[each.part] = None
        return records + [record for part in whole for record in self._snapshot(part)]

    def _snapshot(self, part: int) -> list[bytes]:
        size = self._settings.snapshot_edges
        while True:
            records = [telling.encode(piece) for piece in self.optimizer.part(part).snapshot(size)]
            if size == 1 or max(map(len, records)) <= RECORD_MAX_BYTES:
                return records
            size = max(1, size // 2)
