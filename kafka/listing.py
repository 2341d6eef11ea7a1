"""What the compacted and the statistics topics tell: standing subscriptions, and the jobs' last words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import TopicPartition

from branchline.kafka.cluster import Cluster
from branchline.kafka.jsontext import read_json, utf8_text
from branchline.kafka.letters import decode_recorded
from branchline.kafka.reading import READER_GROUP, bounds, read_to_end
from branchline.kafka.topics import Topics
from branchline.routing.control import Ended, Identity, Subscribed
from branchline.routing.dissemination.adverts import Advertised, Unadvertised
from branchline.routing.overlay.topology import Topology

NO_NAMESPACE = "check --namespace; a router makes its topics when it starts"

STATS_TAIL = 200
"""Last records of `stats` that are looked at: more than there are jobs, few enough to read at once."""

STATS_MAX_FIELDS = 1_000_000
"""Leaf fields of statistics: positions have one for each partition, and its bytes are bounded by Kafka."""


@dataclass(frozen=True, slots=True)
class Known:
    """What `filters` has."""

    subscriptions: list[Subscribed]
    """Those in force, by subscriber and id."""
    topology: Topology | None = None
    """The newest that the brokers have been told of; None for a broker that began alone, and stayed so."""
    advertisements: Sequence[Advertised] = ()
    """Those that stand, by home, publisher and id."""


def list_subscriptions(cluster: Cluster, topics: Topics) -> list[Subscribed]:
    """The subscriptions in force, by subscriber and id, as `filters` has them."""
    return read_filters(cluster, topics).subscriptions


def read_filters(cluster: Cluster, topics: Topics) -> Known:
    """All that `filters` has."""
    newest: dict[Identity, Subscribed | Ended] = {}
    adverts: dict[Identity, Advertised | Unadvertised] = {}
    topology: Topology | None = None
    for record in read_to_end(cluster, topics.filters, hint=NO_NAMESPACE):
        if record.value is None:
            continue
        change = decode_recorded(record.value)
        if isinstance(change, Topology) and (topology is None or change.order >= topology.order):
            topology = change
        if isinstance(change, Advertised | Unadvertised):
            before = adverts.get(change.identity)
            if before is None or change.order >= before.order:
                adverts[change.identity] = change
        if not isinstance(change, Subscribed | Ended):
            continue
        known = newest.get(change.identity)
        # A batch that is run again writes its changes again: an older one means nothing.
        if known is None or change.order >= known.order:
            newest[change.identity] = change
    standing = {identity: change for identity, change in newest.items() if isinstance(change, Subscribed)}
    in_order = sorted(standing, key=lambda each: each[1:] + each[:1])
    advertised = [change for _, change in sorted(adverts.items()) if isinstance(change, Advertised)]
    return Known([standing[identity] for identity in in_order], topology, advertised)


def last_stats(cluster: Cluster, topics: Topics) -> dict[str, dict[str, Any]]:
    """The newest statistics of each job, by the record's key."""
    found: dict[str, dict[str, Any]] = {}
    for record in read_to_end(cluster, topics.stats, hint=NO_NAMESPACE, last=STATS_TAIL):
        key, said = utf8_text(record.key or b""), read_json(record.value or b"", STATS_MAX_FIELDS)
        if key is not None and isinstance(said, dict):
            found[key] = said
    return found


def offsets(cluster: Cluster, partitions: Mapping[str, int]) -> dict[str, list[tuple[int, int]]]:
    """For each topic, given with its number of partitions: the first and the next offset of each."""
    consumer = cluster.consumer(group_id=READER_GROUP)
    try:
        return {
            name: [bounds(consumer, TopicPartition(name, partition)) for partition in range(count)]
            for name, count in partitions.items()
        }
    finally:
        consumer.close()
