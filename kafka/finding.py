"""Finding an event again: by the id of a delivery, by the place of a record, or as the last one of a broker.

A delivery, a copy and a dead letter all say where their event was first published; that record is the event.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace

from confluent_kafka import TopicPartition

from branchline.kafka import headers as bl
from branchline.kafka.admin import list_topics
from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import ConfigError, EventMissing, TopicMissing
from branchline.kafka.explaining import Asked
from branchline.kafka.reading import READER_GROUP, START_TIMEOUT_S, bounds, follow, read_to_end
from branchline.kafka.record import Record
from branchline.kafka.topics import BROKER, DEAD_LETTERS, ENTRY, OUT, Topics
from branchline.routing.prefix.header import decode

TAIL = 20
"""Offsets at the end of a partition that are looked at for its last record: some may hold none."""

HOW_NAMED = "name it by a delivery's bl-id, by topic:partition:offset, or use --last"


@dataclass(frozen=True, slots=True)
class Named:
    """An event as somebody names it; the subscriber if it is named by a delivery."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int | None = None
    subscriber: str | None = None

    def __str__(self) -> str:
        return f"{self.topic}:{self.partition}:{self.offset}"


def read_name(name: str) -> Named:
    """The event that a text names."""
    delivery = bl.read_delivery_id(name)
    place = delivery[0] if delivery is not None else bl.read_place(name)
    if place is None:
        place = bl.read_place(f"{name}:0")
        if place is None:
            raise ConfigError(f"{name!r} names no event", hint=HOW_NAMED)
        return Named(place.topic, place.partition, place.offset)
    subscriber = delivery[1] if delivery is not None else None
    return Named(place.topic, place.partition, place.offset, place.timestamp_ms, subscriber)


@dataclass(frozen=True, slots=True)
class FoundEvent:
    """An event, where it is, and the first question to ask about it."""

    cluster: Cluster
    asked: Asked


def find_event(clusters: Iterable[Cluster], topics: Topics, named: Named) -> FoundEvent:
    """Read the event from the first of the clusters that has it."""
    tried = list(clusters)
    cluster, record = _find_record(tried, named)
    kind, broker = topics.kind(named.topic), topics.named(named.topic)
    if kind is ENTRY:
        assert broker is not None, "an entry topic is a broker's"
        return FoundEvent(cluster, Asked(broker, record, subscriber=named.subscriber))
    if kind is BROKER:
        assert broker is not None, "a broker's topic names it"
        return FoundEvent(cluster, _copy(broker, record))
    origin = bl.text(record.headers, bl.ID if kind is OUT else bl.ORIGIN)
    if kind not in (OUT, DEAD_LETTERS) or origin is None:
        raise ConfigError(f"{named.topic} carries no events of {topics.namespace}", hint="check --namespace")
    first = read_name(origin)
    if topics.kind(first.topic) is not ENTRY:
        raise ConfigError(f"what was published at {first} is no event", hint=HOW_NAMED)
    return find_event(tried, topics, first)


def last_event(cluster: Cluster, topics: Topics, broker: str) -> FoundEvent:
    """The event that entered last at a broker."""
    topic = topics.entry(broker)
    hint = "check --broker and --namespace"
    records = list(read_to_end(cluster, topic, hint=hint, last=TAIL))
    if not records:
        raise EventMissing(f"{topic} has no event", hint="publish one: `branchline publish`")
    newest = max(records, key=lambda each: (each.place.timestamp_ms, each.place.partition, each.place.offset))
    return FoundEvent(cluster, Asked(broker, newest))


def _copy(broker: str, record: Record) -> Asked:
    """A copy between brokers: it is followed from where it is, with what it carries."""
    origin = bl.read_place(bl.text(record.headers, bl.ORIGIN) or "")
    told = bl.values(record.headers, bl.PREFIX)
    header = decode(told[0]) if len(told) == 1 and told[0] is not None else None
    return Asked(
        broker,
        record if origin is None else replace(record, place=origin),
        header,
        subscriber=bl.text(record.headers, bl.ONLY),
    )


def _find_record(clusters: list[Cluster], named: Named) -> tuple[Cluster, Record]:
    gone: EventMissing | None = None
    for cluster in clusters:
        partitions = list_topics(cluster).get(named.topic)
        if partitions is None:
            continue
        if named.partition >= partitions:
            raise ConfigError(
                f"{named.topic} has no partition {named.partition}", hint=f"it has {partitions}, from 0 on"
            )
        record = _read(cluster, named)
        if isinstance(record, Record):
            return cluster, record
        gone = record
    if gone is not None:
        raise gone
    where = ", ".join(cluster.bootstrap for cluster in clusters)
    raise TopicMissing(
        f"there is no topic {named.topic} at {where}",
        hint="check --namespace; if it is on another cluster, name that with --bootstrap or --clusters",
    )


def _read(cluster: Cluster, named: Named) -> Record | EventMissing:
    consumer = cluster.consumer(group_id=READER_GROUP, enable_partition_eof=True, fetch_wait_max_ms=50)
    try:
        place = TopicPartition(named.topic, named.partition)
        first, end = bounds(consumer, place)
        if not first <= named.offset < end:
            kept = f"{first} to {end - 1}" if first < end else "nothing"
            return EventMissing(
                f"there is no record at {named}; this partition keeps {kept}",
                hint="it may be older than the topic's retention",
            )
        place.offset = named.offset
        consumer.assign([place])
        deadline = time.monotonic() + START_TIMEOUT_S
        for record in follow(consumer):
            if record is not None or time.monotonic() > deadline:
                break
    finally:
        consumer.close()
    if record is None or record.place.offset != named.offset:
        return EventMissing(f"there is no record at {named}", hint="its transaction may have been aborted")
    if named.timestamp_ms not in (None, record.place.timestamp_ms):
        return EventMissing(
            f"the record at {named} was written at {record.place.timestamp_ms}, "
            f"and not at {named.timestamp_ms}",
            hint="the topic was made anew since, or this is another cluster: check --bootstrap",
        )
    return record
