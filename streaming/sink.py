"""The router's sink: writes a shard's blocks to Kafka from the executor that made them.

What is in them comes in the order of `dispatch`: topics that go, topics that come, then records, then acks. A
record that its topic refuses goes to dead letters with what is still owed, and stops nothing. Anything else
that fails, fails the batch, and Spark runs it again with the same input.

Here is the writer that delivers at least once: acks are written only when Kafka has confirmed everything
before them, and repeats carry the same id. `once.py` has the one that delivers exactly once.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Protocol

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from pyspark import TaskContext

from branchline.kafka.cluster import Cluster
from branchline.kafka.dead_letters import Letter
from branchline.kafka.topics import Topics
from branchline.streaming.blocks import Block, BlockKind
from branchline.streaming.garbage import spare
from branchline.streaming.lots import DeliveryLot, RecordLot, lot_of
from branchline.streaming.once import OnceWriter, Turn
from branchline.streaming.out_topics import OutTopics
from branchline.streaming.refusals import BATCH_REFUSALS, REFUSALS, VANISHED, Output, suspensions
from branchline.streaming.writing import (
    FLUSH_TIMEOUT_S,
    PRODUCER_SETTINGS,
    ROOM_TIMEOUT_S,
    SinkFailed,
    TopicsKept,
    forget_quarantine,
    quarantine,
)

SUMMARY = "summary string"
"""The schema of what the sink tells the driver: one JSON object per shard."""

_producers: dict[Cluster, Producer] = {}
"""One producer per worker process and cluster: connecting costs more than a batch."""

_generations: dict[Cluster, int] = {}
"""Of which generation each producer is; see `out_topics.py`."""

_alone: dict[Cluster, set[str]] = {}
"""Topics that refused a batch: from then on their records are written one by one, so that a refusal hits
nobody else's and order is kept. Before that first time it may not be: what followed was written already."""


class Writer(Protocol):
    """Writes one partition's blocks within one batch."""

    def take(self, block: Block) -> None:
        """The next block."""
        ...

    def finish(self) -> None:
        """Return when Kafka has confirmed everything."""
        ...

    def told(self) -> dict[str, Any]:
        """What only the sink can count."""
        ...


def sink(
    cluster: Cluster,
    namespace: str,
    out: OutTopics | None = None,
    generation: int = 0,
    turn: Turn | None = None,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`: writes all rows of a partition, and yields one summary per shard.

    With a turn everything is written exactly once, otherwise at least once.
    """
    settings = out or OutTopics()

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spare()
        topics = Topics(namespace)
        context = TaskContext.get()
        # The operator's own state partition, whatever number the core gives the shard.
        shard = 0 if context is None else context.partitionId()
        writer: Writer
        if turn is None:
            writer = AtLeastOnceWriter(cluster, topics, settings, generation)
        else:
            writer = once = OnceWriter(cluster, topics, settings, turn, shard)
            once.prepare()
        counts = [json.loads(value) for value in write_rows(writer, batches)]
        # Told only now: the driver's statistics must not run ahead of Kafka.
        summary = {"shard": shard, "told": writer.told(), "counts": counts}
        yield pa.RecordBatch.from_pydict(
            {"summary": [json.dumps(summary)]}, schema=pa.schema([("summary", pa.string())])
        )

    return write


def write_rows(writer: Writer, batches: Iterable[pa.RecordBatch]) -> list[bytes]:
    """Hand all blocks to the writer; what is for the driver alone is returned."""
    counts: list[bytes] = []
    for batch in batches:
        for kind, data in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            if kind == BlockKind.COUNTS:
                counts.append(data)
            else:
                writer.take(Block(BlockKind(kind), data))
    writer.finish()
    return counts


class AtLeastOnceWriter:
    """Writes as blocks come, with a producer that the worker process keeps."""

    def __init__(self, cluster: Cluster, topics: Topics, out: OutTopics, generation: int) -> None:
        self._cluster = cluster
        self._topics = topics
        self._kept = TopicsKept(cluster, topics, out)
        self._producer = _producer(cluster, generation)
        self._quarantine = quarantine(cluster, topics)
        self._alone = _alone.setdefault(cluster, set())
        self._to_remove: list[str] = []
        self._to_create: list[str] = []
        self._refused: list[tuple[Output, int | None, str]] = []
        self._failure: str | None = None
        self._acking = False
        self._counts = {"diverted": 0, "unanswered": 0}

    def told(self) -> dict[str, Any]:
        """What only the sink can count."""
        return {**self._counts, **self._kept.told}

    def take(self, block: Block) -> None:
        """The next block."""
        lot = lot_of(self._topics, block)
        if isinstance(lot, RecordLot):
            self._to_remove += lot.to_remove
            self._to_create += lot.to_create
        if not len(lot):
            return
        self._settle_topics()
        if isinstance(lot, DeliveryLot):
            apart = self._alone | self._kept.missing.keys()
            report, one = partial(self._report_owed, lot), partial(self._write_one, lot)
            lot.produce(self._producer, range(lot.events), apart, report, one)
        else:
            for index in range(len(lot)):
                if lot.is_ack(index) and not self._acking:
                    self.finish()
                    self._acking = True
                self._write(lot.output(index))

    def finish(self) -> None:
        """Return when Kafka has confirmed everything so far, refused records in dead letters."""
        self._settle_topics()
        self._flush()
        refused, self._refused = self._refused, []
        for record, code, reason in refused:
            self._try_alone(record, code, reason)
        gone = {record.topic for record, code, _ in refused if code in VANISHED}
        for request in suspensions(self._cluster, self._topics, gone):
            self._produce(request, self._report_fatal)
        if refused:
            self._flush()

    def _settle_topics(self) -> None:
        if self._to_remove or self._to_create:
            self._kept.settle(self._to_remove, self._to_create)
            self._to_remove, self._to_create = [], []

    def _try_alone(self, record: Output, code: int | None, reason: str) -> None:
        """Write a refused record by itself: Kafka refuses whole batches for one record in them."""
        if code in BATCH_REFUSALS:
            self._alone.add(record.topic)
            self._produce(record, partial(self._report, record))
            self._flush()
            if not self._refused:
                return
            _, _, reason = self._refused.pop()
        if record.may_be_dropped(self._topics):
            self._counts["unanswered"] += 1
            return
        self._write_letter(record.dead_letter(reason))
        self._counts["diverted"] += 1

    def _write_letter(self, letter: Letter) -> None:
        """A dead letter is made to fit: one that were refused would be so again, batch after batch."""
        fitting = self._quarantine.fit(letter)
        self._produce(Output(self._topics.dead_letters, *fitting, None), self._report_fatal)
        if self._quarantine.one_by_one:
            self._flush()

    def _write_one(self, lot: DeliveryLot, index: int) -> None:
        self._write(lot.output(index))

    def _write(self, record: Output) -> None:
        if record.topic == self._topics.dead_letters:
            self._write_letter((record.key, record.value, record.headers))
        elif not record.may_be_refused(self._topics):
            self._produce(record, self._report_fatal)
        elif record.topic in self._kept.missing:
            self._refused.append((record, None, self._kept.missing[record.topic]))
        else:
            self._produce(record, partial(self._report, record))
            if record.topic in self._alone:
                self._flush()

    def _produce(self, record: Output, report: Callable[[KafkaError | None, Message | None], None]) -> None:
        while True:
            try:
                self._producer.produce(
                    record.topic, record.value, record.key, headers=list(record.headers), on_delivery=report
                )
                return
            except BufferError:
                # Which, unlike asking for reports, makes room at once: nothing lingers.
                self._producer.flush(ROOM_TIMEOUT_S)
            except KafkaException as error:
                # Refused before it was queued: as good as refused by the topic.
                report(error.args[0], None)
                return

    def _report(self, record: Output, error: KafkaError | None, message: Message | None) -> None:
        if error is None:
            return
        if error.code() in REFUSALS:
            self._refused.append((record, error.code(), error.str()))
        else:
            self._failure = f"{record.topic}: {error.str()}"

    def _report_owed(
        self, lot: DeliveryLot, event: int, error: KafkaError | None, message: Message | None
    ) -> None:
        if error is not None and message is not None:
            self._report(lot.output(lot.index(event, message.topic())), error, message)

    def _report_fatal(self, error: KafkaError | None, message: Message | None) -> None:
        if error is not None:
            self._failure = f"{message.topic() if message else 'a record'}: {error.str()}"

    def _flush(self) -> None:
        left = self._producer.flush(FLUSH_TIMEOUT_S)
        if self._failure is None and left:
            self._failure = f"{left} records not confirmed after {FLUSH_TIMEOUT_S:.0f} s"
        if self._failure is not None:
            # What is still queued must not go out behind the back of the next attempt's records.
            _producers.pop(self._cluster, None)
            # The dead-letter topic may take less than it did.
            forget_quarantine(self._cluster, self._topics)
            self._producer.purge()
            raise SinkFailed(f"Kafka did not take the batch: {self._failure}")


def _producer(cluster: Cluster, generation: int) -> Producer:
    producer = _producers.get(cluster)
    if producer is None or _generations.get(cluster, 0) != generation:
        producer = _producers[cluster] = cluster.producer(**PRODUCER_SETTINGS)
        _generations[cluster] = generation
    return producer
