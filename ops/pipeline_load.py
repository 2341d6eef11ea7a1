"""What a pipeline is measured with: subscriptions, events, and what must come out.

The filters of a workload are dealt out to subscribers in turn. What they are owed is worked out by matching
alone, without Kafka: a subscriber is owed an event once, however many of its filters match.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from branchline.ops.matchers import BATCH, AccessMatcher, columns_of
from branchline.ops.matching_workloads import MATCHING, Shape, draw_events, draw_filters
from branchline.ops.sql_texts import sql_text
from branchline.routing.filters import Filter


@dataclass(frozen=True, slots=True)
class Deliveries:
    """How many records there are in subscribers' topics, and a checksum over them in whatever order."""

    count: int
    checksum: str

    def __str__(self) -> str:
        return f"{self.count:,} records with checksum {self.checksum}"


class Summed:
    """Deliveries, one after the other."""

    def __init__(self) -> None:
        self._count = self._sum = 0

    def add(self, subscriber: int, value: bytes) -> None:
        self._count += 1
        self._sum += zlib.crc32(value, zlib.crc32(b"%d:" % subscriber))

    def made(self) -> Deliveries:
        return Deliveries(self._count, f"{self._sum & 0xFFFFFFFFFFFFFFFF:016x}")


@dataclass(frozen=True, slots=True)
class Load:
    """Subscriptions and events."""

    filters: list[Filter]
    subscribers: int
    events: list[bytes]

    @classmethod
    def drawn(
        cls, workload: str, filters: int, subscribers: int, events: int, slow_share: float, seed: int
    ) -> "Load":
        return cls(
            draw_filters(MATCHING[workload], filters, seed, Shape.FLAT),
            subscribers,
            draw_events(MATCHING[workload], events, seed, Shape.FLAT, slow_share),
        )

    def subscriptions(self) -> Iterator[tuple[int, str]]:
        """Whose each is, and its text."""
        for number, filter_ in enumerate(self.filters):
            yield number % self.subscribers, sql_text(filter_)

    def owed(self, every: int = 1) -> tuple[Deliveries, float]:
        """What subscribers are owed of all events, and the share of these that compiled loops leave.

        Of one subscriber in so many, if less than all are asked for.
        """
        matcher = AccessMatcher(self.filters)
        summed, slow = Summed(), 0
        for at in range(0, len(self.events), BATCH):
            part = self.events[at : at + BATCH]
            (first, found), left = matcher.match(columns_of(part))
            slow += left
            event = np.repeat(np.arange(len(part)), np.diff(first))
            subscriber = found % self.subscribers
            is_asked = subscriber % every == 0
            pairs = np.unique(event[is_asked] * self.subscribers + subscriber[is_asked])
            numbers, owners = (each.tolist() for each in np.divmod(pairs, self.subscribers))
            for number, owner in zip(numbers, owners, strict=True):
                summed.add(owner, part[number])
        return summed.made(), slow / len(self.events)
