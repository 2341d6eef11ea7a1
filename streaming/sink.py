"""The router's sink: writes a shard's output rows to Kafka from the executor that made them.

At least once. Rows come in the order of `dispatch`: topics that go, topics that come, then records, then
acks, which are written only when Kafka has confirmed everything before them. A record that its topic refuses
goes to dead letters with what is still owed, and stops nothing. Anything else that fails, fails the batch,
and Spark runs it again with the same input: repeats carry the same id.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from branchline.kafka import headers as bl
from branchline.kafka.admin import create_topics, remove_topics
from branchline.kafka.cluster import Cluster
from branchline.kafka.dead_letters import Letter, encode_dead_letter, owed_to, owed_to_scope
from branchline.kafka.dispatch import Step
from branchline.kafka.quarantine import Quarantine
from branchline.kafka.record import Headers, Place, Record
from branchline.kafka.topics import BROKER, OUT, Topics
from branchline.routing.codes import Code, Rejection
from branchline.routing.prefix.header import decode
from branchline.streaming.columns import COUNTS, NO_HEADERS, unpack_headers
from branchline.streaming.out_topics import OutTopics

SUMMARY = "summary string"
"""The schema of what the sink tells the driver: one JSON object per shard."""

FLUSH_TIMEOUT_S = 150.0
"""Longer than librdkafka's own limit for a message, so that its verdict always comes first."""

PRODUCER_SETTINGS: dict[str, Any] = {
    "linger_ms": 5,
    "message_timeout_ms": 120_000,
    "queue_buffering_max_messages": 200_000,
    # What fits is for the topic to say, not for the client: an event grows by our headers.
    "message_max_bytes": 2_000_000,
    # Only failures call back into Python.
    "delivery_report_only_error": True,
}

BATCH_REFUSALS = {
    KafkaError.MSG_SIZE_TOO_LARGE,
    KafkaError.INVALID_MSG,
    KafkaError.INVALID_RECORD,
    KafkaError.INVALID_TIMESTAMP,
    KafkaError.RECORD_LIST_TOO_LARGE,
}
"""Errors that one record may bring upon its whole batch: each is tried alone before it is given up."""

REFUSALS = BATCH_REFUSALS | {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.POLICY_VIOLATION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
}
"""Errors that are about one record or one topic and would come again: the record is diverted."""

_producers: dict[Cluster, Producer] = {}
"""One producer per worker process and cluster: connecting costs more than a batch."""

_quarantines: dict[tuple[Cluster, Topics], Quarantine] = {}
"""What the dead-letter topics take."""

_generations: dict[Cluster, int] = {}
"""Of which generation each producer is; see `out_topics.py`."""

_alone: dict[Cluster, set[str]] = {}
"""Topics that refused a batch: from then on their records are written one by one, so that a refusal hits
nobody else's and order is kept. Before that first time it may not be: what followed was written already."""


class SinkFailed(Exception):
    """Kafka did not confirm what a batch wrote; the batch must run again."""


def sink(
    cluster: Cluster, namespace: str, out: OutTopics | None = None, generation: int = 0
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`: writes all rows of a partition, and yields one summary per shard."""
    settings = out or OutTopics()

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        writer = _Writer(cluster, Topics(namespace), settings, generation)
        for batch in batches:
            writer.write(batch)
        writer.settle()
        # Told only now: the driver's statistics must not run ahead of Kafka.
        yield pa.RecordBatch.from_pydict(
            {"summary": [json.dumps({**counts, **writer.told}) for counts in writer.counts]},
            schema=pa.schema([("summary", pa.string())]),
        )

    return write


@dataclass(frozen=True, slots=True)
class _Refusal:
    """A delivery, or a copy for a neighbour, that its topic did not take, and why."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers
    delivery: str | None
    """The delivery's id; None for a copy."""
    code: int | None
    reason: str


class _Writer:
    """Writes one partition's rows within one batch."""

    def __init__(self, cluster: Cluster, topics: Topics, out: OutTopics, generation: int) -> None:
        self._cluster = cluster
        self._topics = topics
        self._out = out
        self._producer = _producer(cluster, generation)
        self._quarantine = _quarantine(cluster, topics)
        self._alone = _alone.setdefault(cluster, set())
        self._to_remove: list[str] = []
        self._to_create: list[str] = []
        self._no_topic: dict[str, str] = {}
        self._refused: list[_Refusal] = []
        self._failure: str | None = None
        self._acking = False
        self.counts: list[dict[str, Any]] = []
        self.told = {"diverted": 0, "removed": 0, "not_removed": 0}
        """What only the sink can count."""

    def write(self, batch: pa.RecordBatch) -> None:
        columns = (batch.column(index).to_pylist() for index in range(batch.num_columns))
        for step, topic, key, value, headers, delivery in zip(*columns, strict=True):
            if step == COUNTS:
                self.counts.append(json.loads(value))
            elif step == Step.REMOVE:
                self._to_remove.append(topic)
            elif step == Step.CREATE:
                self._to_create.append(topic)
            else:
                self._settle_topics()
                if step == Step.ACK and not self._acking:
                    self.settle()
                    self._acking = True
                self._write(topic, key, value, _headers(headers, delivery), delivery)

    def settle(self) -> None:
        """Return when Kafka has confirmed everything so far, refused records in dead letters."""
        self._settle_topics()
        self._flush()
        refused, self._refused = self._refused, []
        for refusal in refused:
            self._try_alone(refusal)
        if refused:
            self._flush()

    def _try_alone(self, refusal: _Refusal) -> None:
        """Write a refused record by itself: Kafka refuses whole batches for one record in them."""
        if refusal.code in BATCH_REFUSALS:
            self._alone.add(refusal.topic)
            record = (refusal.topic, refusal.key, refusal.value, refusal.headers)
            self._produce(*record, partial(self._report, *record, refusal.delivery))
            self._flush()
            if not self._refused:
                return
            refusal = self._refused.pop()
        self._divert(refusal)

    def _write(
        self, topic: str, key: bytes | None, value: bytes | None, headers: Headers, delivery: str | None
    ) -> None:
        record = (topic, key, value, headers)
        if topic == self._topics.dead_letters:
            self._write_letter((key, value, headers))
        elif delivery is None and self._topics.kind(topic) is not BROKER:
            self._produce(*record, self._report_fatal)
        elif topic in self._no_topic:
            self._refused.append(_Refusal(*record, delivery, None, self._no_topic[topic]))
        else:
            self._produce(*record, partial(self._report, *record, delivery))
            if topic in self._alone:
                self._flush()

    def _produce(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        report: Callable[[KafkaError | None, Message | None], None],
    ) -> None:
        while True:
            try:
                self._producer.produce(topic, value, key, headers=list(headers), on_delivery=report)
                self._producer.poll(0)
                return
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as error:
                # Refused before it was queued: as good as refused by the topic.
                report(error.args[0], None)
                return

    def _report(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        delivery: str | None,
        error: KafkaError | None,
        message: Message | None,
    ) -> None:
        if error is None:
            return
        if error.code() in REFUSALS:
            self._refused.append(_Refusal(topic, key, value, headers, delivery, error.code(), error.str()))
        else:
            self._failure = f"{topic}: {error.str()}"

    def _report_fatal(self, error: KafkaError | None, message: Message | None) -> None:
        if error is not None:
            self._failure = f"{message.topic() if message else 'a record'}: {error.str()}"

    def _divert(self, refusal: _Refusal) -> None:
        origin, owed = _owed(refusal)
        rejection = Rejection(Code.OUTPUT_REFUSED, f"{refusal.topic} refused the record: {refusal.reason}")
        record = Record(origin, refusal.key, refusal.value, refusal.headers)
        self._write_letter(encode_dead_letter(record, rejection, owed))
        self.told["diverted"] += 1

    def _write_letter(self, letter: Letter) -> None:
        """A dead letter is made to fit: one that were refused would be so again, batch after batch."""
        self._produce(self._topics.dead_letters, *self._quarantine.fit(letter), self._report_fatal)
        if self._quarantine.one_by_one:
            self._flush()

    def _flush(self) -> None:
        left = self._producer.flush(FLUSH_TIMEOUT_S)
        if self._failure is None and left:
            self._failure = f"{left} records not confirmed after {FLUSH_TIMEOUT_S:.0f} s"
        if self._failure is not None:
            # What is still queued must not go out behind the back of the next attempt's records.
            _producers.pop(self._cluster, None)
            # The dead-letter topic may take less than it did.
            _quarantines.pop((self._cluster, self._topics), None)
            self._producer.purge()
            raise SinkFailed(f"Kafka did not take the batch: {self._failure}")

    def _settle_topics(self) -> None:
        if self._to_remove:
            failed = remove_topics(self._cluster, self._to_remove)
            self.told["not_removed"] += len(failed)
            self.told["removed"] += len(self._to_remove) - len(failed)
            self._to_remove = []
        if self._to_create:
            kinds = {topic: self._topics.kind(topic) or OUT for topic in self._to_create}
            wanted = {topic: self._out.kind() if kind is OUT else kind for topic, kind in kinds.items()}
            self._to_create = []
            removes = self._out.remove_after_ms is not None
            self._no_topic |= create_topics(self._cluster, wanted, removed_lately=removes)


def _owed(refusal: _Refusal) -> tuple[Place, str]:
    """Where the event of a refused record was published, and to whom it is still owed."""
    if refusal.delivery is not None:
        found = bl.read_delivery_id(refusal.delivery)
        assert found is not None, "our own ids read back"
        return found[0], owed_to(found[1])
    origin = bl.read_place(bl.text(refusal.headers, bl.ORIGIN) or "")
    (prefix,) = bl.values(refusal.headers, bl.PREFIX)
    header = decode(prefix or b"")
    assert origin is not None and header is not None, "our own copies read back"
    return origin, owed_to_scope(header.scope)


def _headers(cell: str, delivery: str | None) -> Headers:
    headers = () if cell == NO_HEADERS else unpack_headers(cell)
    return headers if delivery is None else (*headers, (bl.ID, delivery.encode()))


def _quarantine(cluster: Cluster, topics: Topics) -> Quarantine:
    return _quarantines.setdefault((cluster, topics), Quarantine(cluster, topics.dead_letters))


def _producer(cluster: Cluster, generation: int) -> Producer:
    producer = _producers.get(cluster)
    if producer is None or _generations.get(cluster, 0) != generation:
        producer = _producers[cluster] = cluster.producer(**PRODUCER_SETTINGS)
        _generations[cluster] = generation
    return producer
