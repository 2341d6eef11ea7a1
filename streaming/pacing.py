"""How many events the next batch may take, found out from what the last ones took.

Theory. A batch costs something by itself, and a request to Kafka for each topic that it writes to; what an
event costs besides is less than its share of these in a small batch. So a backlog is worked off fastest in
large batches. But nobody sees anything of a batch before it ends, and what comes meanwhile is in the next
one: an event, or a change of a subscription, is on its way for two batches at worst. Hence:

- Without a backlog a batch takes what came during the last one, whatever the limit. The limit is then for a
  burst: as many events as take half the goal, beside what a batch costs by itself. What has come at once is
  delivered in several batches, the first of it soon.
- With one, which is after two batches in a row that were full, most of what waits is late anyway, and the
  limit grows until a batch takes `BACKLOG_FACTOR` times as long. But not while subscriptions change: a change
  is not to wait for a backlog of events.
- Events of many bytes are bounded by these: a batch is several times in memory for a moment.

What a batch costs by itself is seen in small ones. On a machine that is short of everything that may be
seconds, and a small limit would then only make a backlog larger. So no limit is below `FIRST_LIMIT` in a
backlog, nor before it is known what a batch costs by itself.

What a batch takes for an event falls with its size, so a limit from the last batch's rate is reached from
below when it grows. What is not full says nothing of that rate; nor does the first one of a job, in which
workers and Java begin, if it is slow. A limit changes what is in a batch and nothing else: Spark logs a
batch's offsets before it runs, and a batch that is run again has the same.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

MOST_EVENTS = 100_000
"""What a batch may take, unless told otherwise: past that, an event costs hardly less."""

LATENCY_GOAL_MS = 2_000

LATENCY_GOAL_MOST_MS = 600_000
"""Ten minutes: nobody wants to wait for batches of five."""

EVENTS, BYTES = "batch_events", "batch_bytes"
"""What a shard counts of what it took, for here alone."""

FIRST_LIMIT = 20_000
"""Where a job begins, unless it is told of less, and the least in a backlog: less is too dear there."""

LEAST_LIMIT = 1_000
"""No batch takes long because of so few events, unless they are large."""

BATCH_BYTES = 64 * 1024 * 1024
"""What the events of a batch may come to: Spark, Arrow and Python each have a copy of it for a moment."""

BACKLOG_FACTOR = 20.0
"""How many times as long a batch may take in a backlog; most are done sooner, by far."""

FULL_SHARE = 0.45
"""A batch with so much of its limit may be full: a limit is of offsets, and a transaction takes one for
itself, so where each has one event, half of them are events. What is taken for full and is not, makes a limit
grow that nothing comes up to."""

BACKLOG_AFTER = 2
"""So many full batches in a row are a backlog, and not a burst."""

CALM_AFTER = 3
"""So many batches without a request, and changes of subscriptions are over for now."""

GROW_MOST, SHRINK_MOST = 4.0, 0.5
"""What one batch may change a limit by: a single slow one may be an accident."""

SHORTEST_S = 1e-3
"""No batch is shorter."""

SMALL_SHARE = 0.05
"""A batch with so little of its limit takes what a batch costs by itself."""

SIZE_KEPT = 0.9
"""How much of the size of large events is remembered from batch to batch: they may come again."""


@dataclass(frozen=True, slots=True)
class Took:
    """What a batch had, and how long it took."""

    events: int
    bytes: int
    """Of the events."""
    requests: int
    seconds: float


def taken(counts: Iterable[dict[str, Any]], seconds: float) -> Took:
    """What a batch had by what its shards counted, from which it is removed."""
    events = size = requests = 0
    for each in counts:
        events += each.pop(EVENTS)
        size += each.pop(BYTES)
        requests += each["requests"]
    return Took(events, size, requests, seconds)


class Pace:
    """The limit of events, batch by batch."""

    def __init__(self, most: int, goal_s: float) -> None:
        """Never more than `most`; the goal is for an event, and so for two batches."""
        self._most = most
        self._batch_s = goal_s / 2
        self._quiet = min(FIRST_LIMIT, most)
        """As many as should take half the goal."""
        self.limit = self._quiet
        self._size = 0.0
        self._fixed_s: float | None = None
        """What a batch costs by itself."""
        self._full, self._calm = 0, CALM_AFTER
        self._begun = False

    def after(self, took: Took) -> int:
        """The limit of the next batch, after this one."""
        self._full = self._full + 1 if took.events >= FULL_SHARE * self.limit else 0
        self._calm = 0 if took.requests else self._calm + 1
        is_backlog = self._full >= BACKLOG_AFTER
        self._learn(took)
        least = LEAST_LIMIT if self._fixed_s is not None and not is_backlog else FIRST_LIMIT
        if self._full and (self._begun or took.seconds < self._batch_s):
            self._quiet = self._bounded(_near(self._fitting(took), self._quiet), least)
        wanted: float = self._quiet
        if is_backlog and self._calm >= CALM_AFTER:
            room = BACKLOG_FACTOR * self._batch_s / max(took.seconds, SHORTEST_S)
            wanted = _near(self.limit * room, self.limit)
        self.limit = self._bounded(wanted, least)
        self._begun = self._begun or took.events > 0
        return self.limit

    def _learn(self, took: Took) -> None:
        """How large events are, and what a batch costs by itself."""
        if took.events:
            self._size = max(took.bytes / took.events, SIZE_KEPT * self._size)
        is_small = took.events <= SMALL_SHARE * self.limit and not took.requests
        if is_small and self._begun:
            before_s = took.seconds if self._fixed_s is None else self._fixed_s
            self._fixed_s = (before_s + took.seconds) / 2

    def _fitting(self, took: Took) -> float:
        """So many events take half the goal, as far as this batch tells."""
        events_s = max(took.seconds - (self._fixed_s or 0.0), SHORTEST_S)
        return took.events * self._batch_s / events_s

    def _bounded(self, wanted: float, least: int) -> int:
        most = min(self._most, BATCH_BYTES / self._size if self._size else self._most)
        return max(1, round(min(most, max(wanted, least))))


def _near(wanted: float, before: int) -> float:
    return min(max(wanted, SHRINK_MOST * before), GROW_MOST * before)
