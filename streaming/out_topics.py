"""The topics of subscribers: how they are made, and when they are removed.

Theory of operation. The sink of the leading shard removes a topic in the order of its batches, and those of
all shards make it anew when its subscriber comes back. A producer that has written to the topic before
remembers it; told that it is gone, it would refuse what comes for the new one. So each removal begins a new
*generation*: from the next batch on, every worker writes with a producer that has never heard of the old
topic. The driver counts generations for as long as it lives, and no worker outlives it.
"""

from dataclasses import dataclass, replace

from branchline.kafka.errors import ConfigError
from branchline.kafka.topics import OUT, TopicKind

PARTITIONS_MOST = 1_000
"""More would slow down every consumer, and Kafka itself."""

REPLICATION_MOST = 32
"""More copies than anybody keeps."""

RETENTION_MIN_MS = 1_000
"""Kept for less, deliveries would be gone before they can be read."""

REMOVE_AFTER_MIN_MS = 1_000
"""Removed sooner, a topic could be gone before its subscriber knows that it has unsubscribed."""

DURATION_MOST_MS = 100 * 366 * 24 * 60 * 60 * 1000
"""A hundred years: for longer than that, leave the setting out."""


@dataclass(frozen=True, slots=True)
class OutTopics:
    """The settings of a job; a topic that is there stays as it was made."""

    partitions: int = OUT.partitions
    replication: int | None = None
    """None for the cluster's own default."""
    retention_ms: int | None = OUT.retention_ms
    remove_after_ms: int | None = None
    """After the end of the subscriber's last subscription; None for never."""

    def __post_init__(self) -> None:
        for name, value, least, most in (
            ("out_partitions", self.partitions, 1, PARTITIONS_MOST),
            ("out_replication", self.replication, 1, REPLICATION_MOST),
            ("out_retention", self.retention_ms, RETENTION_MIN_MS, DURATION_MOST_MS),
            ("remove_topics_after", self.remove_after_ms, REMOVE_AFTER_MIN_MS, DURATION_MOST_MS),
        ):
            if value is not None and not least <= value <= most:
                unit = " ms" if least > 1 else ""
                raise ConfigError(f"{name} is {value:,}{unit}", hint=f"use {least:,}{unit} to {most:,}{unit}")

    def kind(self) -> TopicKind:
        """What a topic is made with."""
        return replace(
            OUT,
            partitions=self.partitions,
            replication=OUT.replication if self.replication is None else self.replication,
            retention_ms=OUT.retention_ms if self.retention_ms is None else self.retention_ms,
        )


_generation = 0


def generation() -> int:
    """The generation of producers that a batch is written with."""
    return _generation


def begin_generation() -> None:
    """Topics were removed: producers that know them are not to be used any more."""
    global _generation
    _generation += 1
