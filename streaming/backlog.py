"""How much of what was there when a job started it has handled: what a person waits for to the end of.

A job that has been down, is new or was rebuilt finds more events than one batch takes. What comes while it
works is not counted: the end of that nobody knows. Control is no part of it either: it has a source without a
limit, so every batch takes all of it.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

Positions: TypeAlias = Mapping[str, Mapping[str, int]]
"""The next offset of each partition, by topic."""

TELL_EVERY_S = 5.0


class Backlog:
    """What was there at the start, and how far the job is with it."""

    def __init__(self, ends: Positions, batch: int, now_s: float) -> None:
        """The ends of the event topics at the start; less than a batch is no backlog."""
        self._ends = ends
        self._batch = batch
        self._began_s = self._told_s = self._now_s = now_s
        self._begun: int | None = None
        """The sum of the positions from which the job began; None until it has done a batch."""
        self._records = self._handled = 0
        self._done = False

    @property
    def is_begun(self) -> bool:
        """Whether it is known from where the job began."""
        return self._begun is not None

    def look(self, positions: Positions, rows: int, now_s: float) -> str | None:
        """The job is this far; `rows` is what its first batch read. A line for people, if it is time."""
        if self._done or not positions.keys() & self._ends.keys():
            return None
        if self._begun is None:
            self._begun = self._sum(positions, clip=False) - rows
            self._records = self._sum(self._ends, clip=False) - self._begun
            self._done = self._records <= self._batch
        self._handled = min(self._sum(positions, clip=True) - self._begun, self._records)
        self._now_s = now_s
        if self._done:
            return None
        if self._handled >= self._records:
            self._done = True
            spent_s = now_s - self._began_s
            return f"caught up: {self._records:,} events that were there at the start, in {spent_s:.0f} s"
        if now_s - self._told_s < TELL_EVERY_S:
            return None
        self._told_s = now_s
        fields = self.fields()
        assert fields is not None
        left = "" if fields["left_s"] is None else f", about {_duration(fields['left_s'])} left"
        return (
            f"{self._handled:,} of {self._records:,} events that were there at the start are handled, "
            f"{fields['rate']:,} a second{left}"
        )

    def fields(self) -> dict[str, Any] | None:
        """For the statistics; None if there is no backlog, or not any more."""
        if self._done or self._begun is None:
            return None
        rate = self._handled / max(self._now_s - self._began_s, 0.001)
        left_s = round((self._records - self._handled) / rate, 1) if rate > 0 else None
        return {"records": self._records, "handled": self._handled, "rate": round(rate), "left_s": left_s}

    def _sum(self, positions: Positions, *, clip: bool) -> int:
        """Of the partitions that there were at the start; with `clip`, up to their ends of then."""
        return sum(
            min(positions.get(topic, {}).get(partition, 0), end)
            if clip
            else positions.get(topic, {}).get(partition, 0)
            for topic, partitions in self._ends.items()
            for partition, end in partitions.items()
        )


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7_200 else f"{seconds / 3600:.1f} h"
