"""What both sinks need: how they produce, how topics come and go, and how they fail."""

from collections.abc import Collection
from typing import Any

from branchline.kafka.admin import create_topics, remove_topics
from branchline.kafka.cluster import Cluster
from branchline.kafka.quarantine import Quarantine
from branchline.kafka.topics import OUT, Topics
from branchline.streaming.out_topics import OutTopics

FLUSH_TIMEOUT_S = 150.0
"""Longer than librdkafka's own limit for a message, so that its verdict always comes first."""

ROOM_TIMEOUT_S = 0.1
"""So long a full queue is given to empty before the next record is tried again."""

PRODUCER_SETTINGS: dict[str, Any] = {
    # Longer than a batch takes: the client sends each topic's records in a request of its own, so all of a
    # batch are to go in one. The flush at its end waits for nothing.
    "linger_ms": 500,
    "batch_num_messages": 100_000,
    "message_timeout_ms": 120_000,
    "queue_buffering_max_messages": 200_000,
    # What fits is for the topic to say, not for the client: an event grows by our headers.
    "message_max_bytes": 2_000_000,
    # So long a topic that is not known may still be on its way; then it is taken for gone.
    "topic_metadata_propagation_max_ms": 10_000,
    # Only failures call back into Python.
    "delivery_report_only_error": True,
}


_quarantines: dict[tuple[Cluster, Topics], Quarantine] = {}


def quarantine(cluster: Cluster, topics: Topics) -> Quarantine:
    """What makes dead letters fit their topic; asked for what that takes once in a worker's life."""
    return _quarantines.setdefault((cluster, topics), Quarantine(cluster, topics.dead_letters))


def forget_quarantine(cluster: Cluster, topics: Topics) -> None:
    """A batch failed: the topic may take less than it did."""
    _quarantines.pop((cluster, topics), None)


class SinkFailed(Exception):
    """Kafka did not confirm what a batch wrote; the batch must run again."""


class TopicsKept:
    """Makes and removes the topics of one shard's batch, and counts it."""

    def __init__(self, cluster: Cluster, topics: Topics, out: OutTopics) -> None:
        self._cluster, self._topics, self._out = cluster, topics, out
        self.missing: dict[str, str] = {}
        """Topics that could not be made, and why."""
        self.told = {"removed": 0, "not_removed": 0}

    def settle(self, to_remove: Collection[str], to_create: Collection[str]) -> None:
        """Remove the ones, then make the others."""
        if to_remove:
            failed = remove_topics(self._cluster, to_remove)
            self.told["not_removed"] += len(failed)
            self.told["removed"] += len(to_remove) - len(failed)
        if to_create:
            kinds = {topic: self._topics.kind(topic) or OUT for topic in to_create}
            wanted = {topic: self._out.kind() if kind is OUT else kind for topic, kind in kinds.items()}
            removes = self._out.remove_after_ms is not None
            self.missing |= create_topics(self._cluster, wanted, removed_lately=removes)
