"""Reading topics: all that is there now, or as it comes."""

import time
from collections.abc import Iterator
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from branchline.kafka.admin import list_topics
from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import ClusterUnreachable, TopicMissing
from branchline.kafka.record import Headers, Place, Record

POLL_S = 0.2
"""How long one poll may wait: what a deadline or a Ctrl-C may be late by."""

START_TIMEOUT_S = 20.0
"""For the first answer about where a topic ends."""

RETRY_S = 0.05

NO_LEADER_YET = {
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_PARTITION,
}

READER_GROUP = "branchline.reader"


def to_record(message: Message) -> Record:
    """A message as we handle it."""
    given: Any = message.headers() or ()  # typed as more than it ever is
    return to_bare_record(message, tuple((name, _bytes(value)) for name, value in given))


def to_readable_record(message: Message) -> Record:
    """A message without its headers if the client cannot read them: a name may be no UTF-8."""
    try:
        return to_record(message)
    except (SystemError, UnicodeDecodeError):
        return to_bare_record(message)


def to_bare_record(message: Message, headers: Headers = ()) -> Record:
    """A message with these headers in place of its own, which may be such that no client can read them."""
    timestamp_ms = message.timestamp()[1]
    place = Place(message.topic() or "", message.partition() or 0, message.offset() or 0, timestamp_ms)
    return Record(place, _bytes(message.key()), _bytes(message.value()), headers)


def _bytes(part: bytes | str | None) -> bytes | None:
    return part.encode() if isinstance(part, str) else part


def open_topic(
    cluster: Cluster, topic: str, *, from_beginning: bool, hint: str, last: int | None = None
) -> Consumer:
    """A consumer that stands at the beginning or at the end of every partition of the topic.

    With `last`, it stands at most so many records before each partition's end.
    """
    partitions = list_topics(cluster).get(topic)
    if partitions is None:
        raise TopicMissing(f"there is no topic {topic} at {cluster.bootstrap}", hint=hint)
    consumer = cluster.consumer(
        # Nothing is ever committed under it: the consumer is told where to read.
        group_id=READER_GROUP,
        enable_partition_eof=True,
        fetch_wait_max_ms=50,
    )
    places = []
    for partition in range(partitions):
        place = TopicPartition(topic, partition)
        # Resolved now, so that nothing written after this call is missed.
        first, end = bounds(consumer, place)
        place.offset = first if from_beginning else max(first, end - (last or 0))
        places.append(place)
    consumer.assign(places)
    return consumer


def bounds(consumer: Consumer, place: TopicPartition) -> tuple[int, int]:
    """The first and the next offset of a partition."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            return consumer.get_watermark_offsets(place, timeout=START_TIMEOUT_S)
        except KafkaException as error:
            # A topic that was made just now may have no leader yet.
            if error.args[0].code() not in NO_LEADER_YET or time.monotonic() > deadline:
                raise ClusterUnreachable(
                    f"no answer about {place.topic}: {error.args[0].str()}", hint="check the cluster"
                ) from None
            time.sleep(RETRY_S)


def read_to_end(cluster: Cluster, topic: str, *, hint: str, last: int | None = None) -> Iterator[Record]:
    """Every record of the topic up to where it ends now, or only the last ones."""
    consumer = open_topic(cluster, topic, from_beginning=last is None, hint=hint, last=last)
    try:
        # A topic that is being written to may come to its end more than once.
        left = {(place.topic, place.partition) for place in consumer.assignment()}
        deadline = time.monotonic() + START_TIMEOUT_S
        while left:
            message = consumer.poll(POLL_S)
            if message is not None:
                deadline = time.monotonic() + START_TIMEOUT_S
                if _is_end(message):
                    left.discard((message.topic(), message.partition()))
                else:
                    yield to_readable_record(message)
            elif time.monotonic() > deadline:
                raise ClusterUnreachable(
                    f"reading {topic} at {cluster.bootstrap} came to a halt",
                    hint="check the cluster, then try again",
                )
    finally:
        consumer.close()


def follow(consumer: Consumer) -> Iterator[Record | None]:
    """Records as they come; None whenever there is none, so that the caller can look at the time."""
    while True:
        message = consumer.poll(POLL_S)
        yield None if message is None or _is_end(message) else to_readable_record(message)


def _is_end(message: Message) -> bool:
    error = message.error()
    if error is None:
        return False
    if error.code() == KafkaError._PARTITION_EOF:
        return True
    if error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):
        raise TopicMissing(f"topic {message.topic()} is gone", hint="see `branchline status`")
    raise ClusterUnreachable(f"reading {message.topic()} failed: {error.str()}", hint="check the cluster")
