"""What becomes of records that their topics refuse: a dead letter, with what is still owed."""

from collections.abc import Collection
from dataclasses import dataclass

from confluent_kafka import KafkaError

from branchline.kafka import headers as bl
from branchline.kafka.admin import list_topics
from branchline.kafka.cluster import Cluster
from branchline.kafka.dead_letters import Letter, encode_dead_letter, owed_to, owed_to_scope
from branchline.kafka.messages import encode_request
from branchline.kafka.record import Headers, Place, Record
from branchline.kafka.topics import BROKER, OUT, OWN_ACKS, Topics
from branchline.routing.codes import Code, Rejection
from branchline.routing.control import Operation, Request
from branchline.routing.prefix.header import decode

BATCH_REFUSALS = {
    KafkaError.MSG_SIZE_TOO_LARGE,
    KafkaError.INVALID_MSG,
    KafkaError.INVALID_RECORD,
    KafkaError.INVALID_TIMESTAMP,
    KafkaError.RECORD_LIST_TOO_LARGE,
}
"""Errors that one record may bring upon its whole batch: each is tried alone before it is given up."""

TOPIC_REFUSALS = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.POLICY_VIOLATION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
}
"""Errors that are about a whole topic."""

VANISHED = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC}
"""What is said of a topic that is not there."""

REFUSALS = BATCH_REFUSALS | TOPIC_REFUSALS
"""Errors that are about one record or one topic and would come again: the record is diverted."""


@dataclass(frozen=True, slots=True)
class Output:
    """A record that is to be written."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers
    delivery: str | None
    """The delivery's id; None for anything but a delivery."""

    def may_be_refused(self, topics: Topics) -> bool:
        """Whether the batch goes on without it: a delivery, a copy, an own answer. No other may miss."""
        return self.delivery is not None or topics.kind(self.topic) in (BROKER, OWN_ACKS)

    def may_be_dropped(self, topics: Topics) -> bool:
        """Whether nothing becomes of it if it is refused: an answer that nobody else may read."""
        return topics.kind(self.topic) is OWN_ACKS

    def origin(self) -> Place:
        """Where the event of a delivery or a copy was published."""
        return self._owed()[0]

    def dead_letter(self, reason: str) -> Letter:
        """Key, value and headers of the dead letter for it."""
        origin, owed = self._owed()
        rejection = Rejection(Code.OUTPUT_REFUSED, f"{self.topic} refused the record: {reason}")
        return encode_dead_letter(Record(origin, self.key, self.value, self.headers), rejection, owed)

    def size(self) -> int:
        """The bytes that it takes of what its topic allows at once, if it is sent by itself."""
        sizes = [_field(len(self.key)) if self.key is not None else 1]
        sizes.append(_field(len(self.value)) if self.value is not None else 1)
        for name, value in self.headers:
            sizes.append(_field(len(name.encode(errors="surrogatepass"))))
            sizes.append(_field(len(value)) if value is not None else 1)
        # Attributes, and the deltas of time and offset, which are none.
        body = 3 + _varint(len(self.headers)) + sum(sizes)
        return _BATCH_HEADER_BYTES + _field(body)

    def _owed(self) -> tuple[Place, str]:
        """Where the event was published, and to whom it is still owed."""
        if self.delivery is not None:
            found = bl.read_delivery_id(self.delivery)
            assert found is not None, "our own ids read back"
            return found[0], owed_to(found[1])
        origin = bl.read_place(bl.text(self.headers, bl.ORIGIN) or "")
        (prefix,) = bl.values(self.headers, bl.PREFIX)
        header = decode(prefix or b"")
        assert origin is not None and header is not None, "our own copies read back"
        return origin, owed_to_scope(header.scope)


def suspensions(cluster: Cluster, topics: Topics, missed: Collection[str]) -> list[Output]:
    """Requests to suspend the subscribers of topics that were missed, as far as they are really gone."""
    subscribers = {topic: topics.named(topic) for topic in missed if topics.kind(topic) is OUT}
    there = list_topics(cluster) if subscribers else {}
    return [
        Output(
            topics.control,
            subscriber.encode(),
            encode_request(Request(Operation.SUSPEND, subscriber, "", all=True)),
            (),
            None,
        )
        for topic, subscriber in sorted(subscribers.items())
        if topic not in there and subscriber is not None
    ]


_BATCH_HEADER_BYTES = 61
"""What Kafka puts before the records of a request."""


def _varint(number: int) -> int:
    """How many bytes a number takes in a record: Kafka writes them signed, seven bits in each."""
    return max(1, ((number << 1).bit_length() + 6) // 7)


def _field(length: int) -> int:
    return _varint(length) + length
