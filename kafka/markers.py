"""The markers of a router job: for each shard the last batch that stands in Kafka, whole.

They stand in `markers.<job>`, compacted, one partition per shard, and are written in the very transaction
that writes the batch. So whoever reads a marker after `init_transactions`, which settles what an earlier
attempt has left, knows whether a batch was written, and never has to guess.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, TopicPartition

from branchline.kafka.admin import ensure_topics, grow_topic, list_topics
from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import ClusterUnreachable, MarkersGone
from branchline.kafka.fields import FORMAT_VERSION, UNFIT, check_version, dump, integer, read_object
from branchline.kafka.reading import POLL_S, START_TIMEOUT_S, bounds
from branchline.kafka.topics import MARKERS
from branchline.routing.codes import Rejection

KEY = b"marker"
"""One key: of each partition, compaction keeps the last marker."""

MARKER_MAX_BYTES = 64 * 1024
DIVERTED_MOST = 100
"""Of so many diverted records the places are named; of all of them the number is."""

LAST = 8
"""So far back is looked first: each transaction ends with a record of Kafka's own."""


@dataclass(frozen=True, slots=True)
class Marker:
    """What the last transaction of a shard says of itself."""

    query: str
    run: str
    batch: int
    plan: str
    """Stands for what the batch is made of."""
    rows: int
    checksum: int
    """Of the rows that the batch had to write."""
    diverted: int = 0
    places: tuple[str, ...] = ()
    """Where the events of diverted records were published."""


_FIELDS = ("query", "run", "batch", "plan", "rows", "checksum", "diverted")


def encode_marker(marker: Marker) -> bytes:
    """A marker as the value of its record."""
    said = {name: getattr(marker, name) for name in _FIELDS}
    return dump({"version": FORMAT_VERSION, **said, "places": list(marker.places[:DIVERTED_MOST])})


def decode_marker(value: bytes | None, where: str) -> Marker:
    """The inverse; raises MarkersGone if that is no marker."""
    fields = read_object(value, MARKER_MAX_BYTES)
    try:
        if isinstance(fields, Rejection) or check_version(fields) is not None:
            raise ValueError
        return _marker(fields)
    except UNFIT:
        raise MarkersGone(
            f"the last record of {where} is no marker",
            hint="only the router job of this version may write there; find out who else does",
        ) from None


def _marker(fields: Mapping[str, object]) -> Marker:
    places = fields["places"]
    if not isinstance(places, list):
        raise ValueError
    batch, rows, checksum, diverted = (
        integer(fields[name]) for name in ("batch", "rows", "checksum", "diverted")
    )
    query, run, plan = (str(fields[name]) for name in ("query", "run", "plan"))
    return Marker(query, run, batch, plan, rows, checksum, diverted, tuple(map(str, places)))


def ensure_markers(cluster: Cluster, topic: str, shards: int) -> None:
    """Make the topic, with a partition for each shard."""
    ensure_topics(cluster, {topic: MARKERS})
    grow_topic(cluster, topic, shards)


def read_markers(cluster: Cluster, topic: str, shards: int) -> list[Marker | None]:
    """The marker of each shard; None where there is none, or no topic."""
    partitions = list_topics(cluster).get(topic, 0)
    consumer = marker_consumer(cluster)
    try:
        found = [read_marker(consumer, topic, shard) for shard in range(min(shards, partitions))]
    finally:
        consumer.close()
    return found + [None] * (shards - len(found))


def marker_consumer(cluster: Cluster) -> Consumer:
    """A consumer for `read_marker`; it may be used many times."""
    return cluster.consumer(group_id="branchline.markers", enable_partition_eof=True, fetch_wait_max_ms=20)


def read_marker(consumer: Consumer, topic: str, shard: int) -> Marker | None:
    """The last committed marker of a shard."""
    first, end = bounds(consumer, TopicPartition(topic, shard))
    back = LAST
    while True:
        start = max(first, end - back)
        value = _last(consumer, TopicPartition(topic, shard, start), end) if start < end else None
        if value is not None:
            return decode_marker(value, f"{topic}, partition {shard}")
        if start == first:
            return None
        back *= 32


def _last(consumer: Consumer, place: TopicPartition, end: int) -> bytes | None:
    """The value of the last committed record from the place on."""
    consumer.assign([place])
    try:
        found: bytes | None = None
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            message = consumer.poll(POLL_S)
            if message is None:
                if time.monotonic() > deadline:
                    raise ClusterUnreachable(
                        f"reading {place.topic} came to a halt", hint="check the cluster, then try again"
                    )
                continue
            error = message.error()
            if error is None:
                value = message.value()
                found = value if isinstance(value, bytes) else None
            elif error.code() == KafkaError._PARTITION_EOF:
                return found
            else:
                raise ClusterUnreachable(
                    f"reading {place.topic} failed: {error.str()}", hint="check the cluster"
                )
    finally:
        consumer.unassign()
