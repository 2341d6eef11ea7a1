"""Reading many topics of subscribers at once: what came since a mark, and when."""

import time
from collections.abc import Callable, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import ClusterUnreachable
from branchline.kafka.reading import NO_LEADER_YET, READER_GROUP, RETRY_S
from branchline.ops.pipeline_load import Deliveries, Summed

POLL_S = 0.5
POLLED = 5_000
FETCH_WAIT_MS = 50
"""Each request names all topics: asking more often would be most of what Kafka has to do."""
STALL_S = 60.0
"""Without any record for so long, reading has come to a halt."""


def ends(cluster: Cluster, places: Sequence[TopicPartition]) -> list[int]:
    """The next offset of each partition."""
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    admin = cluster.admin()  # answers come only as long as it is there
    deadline = time.monotonic() + STALL_S
    while True:
        answers = admin.list_offsets(dict.fromkeys(places, latest), request_timeout=STALL_S)
        try:
            return [answers[place].result().offset for place in places]
        except KafkaException as error:
            # Topics that were made just now may have no leader yet.
            if error.args[0].code() not in NO_LEADER_YET or time.monotonic() > deadline:
                raise
            time.sleep(RETRY_S)


class Outbox:
    """Topics with one partition each, one for each subscriber."""

    def __init__(self, cluster: Cluster, topics: Sequence[str]) -> None:
        self._cluster = cluster
        self._topics = topics
        self._numbers = {topic: number for number, topic in enumerate(topics)}

    def one_in(self, every: int) -> "Outbox":
        """That of one subscriber in so many: the first one, and so on."""
        return Outbox(self._cluster, self._topics[::every])

    def __len__(self) -> int:
        return len(self._topics)

    def mark(self) -> list[int]:
        """Where the topics end now."""
        return ends(self._cluster, [TopicPartition(topic, 0) for topic in self._topics])

    def since(self, mark: Sequence[int]) -> Deliveries:
        """What committed records came since."""
        summed = Summed()
        consumer = self._open(mark, partition_eof=True)
        left = set(self._topics)
        deadline = time.monotonic() + STALL_S
        try:
            while left:
                messages = consumer.consume(POLLED, POLL_S)
                if messages:
                    deadline = time.monotonic() + STALL_S
                elif time.monotonic() > deadline:
                    raise ClusterUnreachable("reading what was delivered came to a halt", hint="try again")
                for message in messages:
                    topic, error = message.topic() or "", message.error()
                    if error is None:
                        summed.add(self._numbers[topic], message.value() or b"")
                    elif error.code() == KafkaError._PARTITION_EOF:
                        left.discard(topic)
                    else:
                        raise ClusterUnreachable(f"reading {topic} failed: {error.str()}", hint="try again")
        finally:
            consumer.close()
        return summed.made()

    def follow(
        self, mark: Sequence[int], came: Callable[[bytes, float], None], going_on: Callable[[], bool]
    ) -> None:
        """Call with the value of every record that comes and the time, for as long as is said."""
        consumer = self._open(mark, partition_eof=False)
        try:
            while going_on():
                message = consumer.poll(0.1)
                if message is not None and message.error() is None:
                    came(message.value() or b"", time.time())
        finally:
            consumer.close()

    def _open(self, mark: Sequence[int], *, partition_eof: bool) -> Consumer:
        consumer = self._cluster.consumer(
            group_id=READER_GROUP, enable_partition_eof=partition_eof, fetch_wait_max_ms=FETCH_WAIT_MS
        )
        places = zip(self._topics, mark, strict=True)
        consumer.assign([TopicPartition(topic, 0, offset) for topic, offset in places])
        return consumer
