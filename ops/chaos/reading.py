"""Reading several topics at once: where they end, all that is there, and what comes."""

import time
from collections.abc import Mapping, Sequence

from confluent_kafka import KafkaError, TopicPartition

from branchline.kafka.admin import list_topics
from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import ClusterUnreachable
from branchline.kafka.listing import offsets
from branchline.kafka.reading import READER_GROUP, to_record
from branchline.kafka.record import Record

READ_TIMEOUT_S = 60.0
POLL_S = 0.1
PIECE = 1_000
"""Records that are taken at once."""


def ends(cluster: Cluster, topics: Sequence[str]) -> dict[tuple[str, int], int]:
    """Where each partition of those topics that there are ends."""
    partitions = {name: count for name, count in list_topics(cluster).items() if name in topics}
    return {
        (name, number): end
        for name, places in offsets(cluster, partitions).items()
        for number, (_, end) in enumerate(places)
    }


def read_all(
    cluster: Cluster, topics: Sequence[str], since: Mapping[tuple[str, int], int] | None = None
) -> list[Record]:
    """Every record of all the topics, or those since some earlier `ends`, with one consumer."""
    consumer = cluster.consumer(group_id=READER_GROUP, enable_partition_eof=True, fetch_wait_max_ms=20)
    places = [
        TopicPartition(topic, number, (since or {}).get((topic, number), 0))
        for topic, number in ends(cluster, topics)
    ]
    consumer.assign(places)
    records, left = [], {(place.topic, place.partition) for place in places}
    try:
        deadline = time.monotonic() + READ_TIMEOUT_S
        while left:
            if time.monotonic() > deadline:
                raise ClusterUnreachable("reading came to a halt", hint="check the cluster")
            for message in consumer.consume(PIECE, timeout=POLL_S):
                error = message.error()
                if error is None:
                    records.append(to_record(message))
                elif error.code() == KafkaError._PARTITION_EOF:
                    left.discard((message.topic() or "", message.partition() or 0))
    finally:
        consumer.close()
    return records


class Tail:
    """A topic of one partition, read as it grows. A cluster that does not answer has nothing new."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._consumer = cluster.consumer(
            group_id=READER_GROUP, fetch_wait_max_ms=50, reconnect_backoff_max_ms=500
        )
        self._consumer.assign([TopicPartition(topic, 0, 0)])

    def new(self) -> list[Record]:
        """What has come since the last call, at once."""
        return [
            to_record(message)
            for message in self._consumer.consume(PIECE, timeout=0)
            if message.error() is None
        ]

    def close(self) -> None:
        self._consumer.close()
