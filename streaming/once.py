"""The writer that delivers exactly once, to whoever reads committed records only.

A batch of a shard is one transaction, and its marker is written in it. Every attempt begins with a producer
of its own and `init_transactions`: that fences any earlier attempt, wherever it still runs, and settles what
it left undecided. Only then is the marker read, and it says for sure whether the batch stands already; if so,
nothing is written. An attempt that is fenced fails, and does not try again by itself: two copies of a job
would fence each other for ever.

All that takes place beside the operator, which is still at work then.

Two names take turns, batch by batch. After a commit Kafka has to close the transaction in every topic that it
wrote to; until it has, nobody gets the same name again, and the client asks only twice a second. Attempts at
one batch have the same name, so each fences the others, and none of an earlier batch can be undecided: Spark
begins a batch when the one before it stands. A straggler of an earlier batch finds its marker, or a later
one, and writes nothing.

A record that its topic refuses makes Kafka refuse the whole transaction. It is begun again without the
refused ones, whose dead letters are then part of it.
"""

import logging
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

from branchline.kafka.admin import message_limits
from branchline.kafka.cluster import Cluster
from branchline.kafka.dead_letters import Letter
from branchline.kafka.markers import KEY, Marker, encode_marker, marker_consumer, read_marker
from branchline.kafka.quarantine import Quarantine
from branchline.kafka.topics import Topics
from branchline.kafka.transactions import PURGED, connect, fatal_errors_as_they_are, is_fenced
from branchline.streaming.blocks import Block, Checksum
from branchline.streaming.failpoints import FailpointReached, reach
from branchline.streaming.lots import DeliveryLot, Lot, Lots, RecordLot, lot_of
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

INIT_TIMEOUT_S = 60.0
COMMIT_TIMEOUT_S = 60.0
TRANSACTION_TIMEOUT_MS = 120_000
"""A transaction that its job leaves behind, and never comes back to, holds up readers for so long."""

MARK_EVERY = 100
"""In every so many batches also a shard with nothing to write writes a marker: a lost one is noticed."""

SETTLE_S = 0.2
"""If so long nothing more is heard of a refused transaction, all is heard."""

ROUNDS = 3
"""So often a transaction is begun again without what was refused; then whole topics are left out."""

DOUBTS_MOST = 3
"""So often an attempt asks again what became of a commit; then it fails, and the next one asks."""

NAMES = 2
"""Transactional ids of a shard, which take turns."""

_consumers: dict[Cluster, Consumer] = {}
"""For reading markers: one per worker process and cluster."""


class JobFenced(SinkFailed):
    """Another copy of the job has written: this one must not go on."""

    MARK = "another copy of this job has written"
    """Says so in the text of any failure that it causes: between processes nothing else is kept."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One batch of one run of a query, as all its shards and attempts see it."""

    topic: str
    """Where the job's markers stand."""
    query: str
    run: str
    batch: int
    plan: str
    """Stands for what the batch is made of: another copy's batch of the same number has other input."""
    must_mark: bool = False
    """Whether also a shard that has nothing to write says that it was here."""
    committed: frozenset[int] = frozenset()
    """The shards for which this run has written something before."""

    def transactional_id(self, shard: int) -> str:
        """Whoever has it last is the only one that can write the batch of the shard."""
        return f"{self.topic}.{self.query}.{shard}.{self.batch % NAMES}"

    def is_written(self, shard: int, marker: Marker | None) -> bool:
        """Whether the marker says that the shard's batch stands; raises JobFenced if it is another copy's."""
        if marker is None or marker.query != self.query:
            written, ours = False, shard not in self.committed
        elif marker.batch < self.batch:
            written, ours = False, marker.run == self.run or shard not in self.committed
        else:
            written = ours = (marker.batch, marker.plan) == (self.batch, self.plan)
        if ours:
            return written
        raise JobFenced(f"{JobFenced.MARK}: shard {shard}, batch {self.batch}, last marker {marker}")


class _Doubt(Exception):
    """It is not known what became of a commit."""


@dataclass(frozen=True, slots=True)
class _Refused:
    """A record that was refused, by its number in the batch."""

    index: int
    code: int
    reason: str


class OnceWriter:
    """Takes all blocks of one shard's batch, and writes them in one transaction."""

    def __init__(self, cluster: Cluster, topics: Topics, out: OutTopics, turn: Turn, shard: int) -> None:
        self._cluster, self._topics, self._turn, self._shard = cluster, topics, turn, shard
        self._kept = TopicsKept(cluster, topics, out)
        self._to_remove: list[str] = []
        self._to_create: list[str] = []
        self._records = Lots()
        self._checksum = Checksum()
        self._diverted: dict[int, str] = {}
        """Which records are left out, and why; of all but answers there is then a dead letter."""
        self._alone: set[str] = set()
        """Topics whose records are sent one by one: Kafka refuses whole batches for one record in them."""
        self._suspensions: list[Output] = []
        """Requests to suspend subscribers whose topics are gone."""
        self._told = {"diverted": 0, "unanswered": 0, "skipped": 0, "differed": 0, "transactions": 0}
        self._beginning: Future[tuple[Producer, Marker | None]] | None = None

    def told(self) -> dict[str, Any]:
        """What only the sink can count."""
        return {**self._told, **self._kept.told}

    def prepare(self) -> None:
        """Begin in a thread, while the operator makes the first block."""
        beside = ThreadPoolExecutor(1, "sink")
        self._beginning = beside.submit(self._begin)
        beside.shutdown(wait=False)

    def take(self, block: Block) -> None:
        """The next block; nothing is written before all are there: an attempt may have to be repeated."""
        self._checksum.add(block)
        lot = lot_of(self._topics, block)
        if isinstance(lot, RecordLot):
            self._to_remove += lot.to_remove
            self._to_create += lot.to_create
        self._records.add(lot)

    def finish(self) -> None:
        """Return when the batch stands in Kafka, once, whoever wrote it."""
        beginning = self._beginning
        if not (len(self._records) or self._to_create or self._to_remove or self._turn.must_mark):
            # Whatever became of it, it must not go on behind the back of a later batch.
            wait([beginning] if beginning else [])
            return
        doubts = rounds = 0
        while True:
            producer, marker = self._begin() if beginning is None else beginning.result()
            beginning = None
            if self._turn.is_written(self._shard, marker):
                assert marker is not None, "a marker said so"
                self._skip(marker, own=doubts > 0)
                return
            try:
                refused = self._write(producer)
            except _Doubt as doubt:
                doubts += 1
                if doubts == DOUBTS_MOST:
                    raise SinkFailed(f"Kafka did not say what became of the batch: {doubt}") from None
                continue
            if not refused:
                left_out = len(self._diverted)
                diverted = len(self._letters())
                self._told |= {"transactions": 1, "diverted": diverted, "unanswered": left_out - diverted}
                return
            rounds += 1
            if rounds > ROUNDS + 1:
                raise SinkFailed(f"Kafka did not take the batch: {refused[0].reason}")
            self._divert(refused, whole_topics=rounds > ROUNDS)

    def _begin(self) -> tuple[Producer, Marker | None]:
        """A producer that nobody else can write beside, and the marker as it stands from now on."""
        reach("sink.before-init", self._shard)
        producer = self._cluster.producer(
            **{
                **PRODUCER_SETTINGS,
                "transactional_id": self._turn.transactional_id(self._shard),
                "transaction_timeout_ms": TRANSACTION_TIMEOUT_MS,
                "message_timeout_ms": TRANSACTION_TIMEOUT_MS,
                "reconnect_backoff_ms": 20,
                # What goes wrong comes back as an error; a line on a terminal only confuses.
                "logger": logging.getLogger(__name__),
            }
        )
        try:
            connect(producer, self._turn.topic, INIT_TIMEOUT_S)
            producer.init_transactions(INIT_TIMEOUT_S)
        except KafkaException as error:
            raise self._failed(error) from None
        reach("sink.after-init", self._shard)
        # Only now: before, a transaction of an earlier attempt could still be decided either way.
        return producer, self._marker()

    def _marker(self) -> Marker | None:
        consumer = _consumers.get(self._cluster)
        if consumer is None:
            consumer = _consumers[self._cluster] = marker_consumer(self._cluster)
        return read_marker(consumer, self._turn.topic, self._shard)

    def _write(self, producer: Producer) -> list[_Refused]:
        """One transaction. Returns what was refused of it, in which case nothing was written."""
        if self._to_create or self._to_remove:
            self._kept.settle(self._to_remove, self._to_create)
            self._to_create, self._to_remove = [], []
            missing = self._kept.missing
            self._diverted |= {
                index: missing[record.topic]
                for index, record in self._records.of(missing)
                if record.may_be_refused(self._topics)
            }
        fitting = quarantine(self._cluster, self._topics)
        transaction = _Transaction(producer, self._topics, self._shard, self._alone, fitting)
        try:
            with fatal_errors_as_they_are():
                return transaction.run(
                    self._records, self._diverted, self._suspensions, self._turn.topic, self._said()
                )
        except KafkaException as error:
            raise self._failed(error) from None

    def _letters(self) -> list[Output]:
        """The records that go to dead letters."""
        left_out = map(self._records.output, sorted(self._diverted))
        return [record for record in left_out if not record.may_be_dropped(self._topics)]

    def _said(self) -> Marker:
        places = tuple(str(record.origin()) for record in self._letters())
        turn = self._turn
        return Marker(
            turn.query,
            turn.run,
            turn.batch,
            turn.plan,
            len(self._records),
            self._checksum.value(),
            len(places),
            places,
        )

    def _failed(self, error: KafkaException) -> SinkFailed:
        reason: KafkaError = error.args[0]
        forget_quarantine(self._cluster, self._topics)
        if is_fenced(error):
            return SinkFailed(f"another attempt at the batch has begun: {reason.str()}")
        return SinkFailed(f"Kafka did not take the batch: {reason.str()}")

    def _skip(self, marker: Marker, own: bool) -> None:
        """The batch stands already: by an earlier attempt, or by this one, which did not hear of it."""
        same = (marker.rows, marker.checksum) == (len(self._records), self._checksum.value())
        if own:
            self._told |= {"transactions": 1, "diverted": marker.diverted}
        else:
            # Counted, not refused: another version of the program may say the same in other bytes.
            self._told |= {"skipped": 1, "differed": int(not same)}

    def _divert(self, refused: Sequence[_Refused], whole_topics: bool) -> None:
        """Leave out of the next round what was refused, as far as it is known what that was.

        Once a record is refused no more are taken, so the others that will be must be found otherwise.
        """
        topics: dict[str, str] = {}
        batches: dict[str, str] = {}
        to = {each.index: self._records.output(each.index).topic for each in refused}
        gone = {to[each.index] for each in refused if each.code in VANISHED}
        self._suspensions += suspensions(self._cluster, self._topics, gone)
        for each in refused:
            topic = to[each.index]
            if each.code not in BATCH_REFUSALS or whole_topics:
                topics[topic] = each.reason
            elif topic in self._alone:
                self._diverted[each.index] = each.reason
            else:
                batches[topic] = each.reason
        self._alone |= batches.keys()
        limits = message_limits(self._cluster, batches.keys()) if batches else {}
        for index, record in self._records.of(topics.keys() | limits.keys()):
            if record.topic in topics:
                self._diverted[index] = topics[record.topic]
            elif record.size() > limits[record.topic]:
                self._diverted[index] = batches[record.topic]


class _Transaction:
    """Sends a batch's records and its marker as one."""

    def __init__(
        self, producer: Producer, topics: Topics, shard: int, alone: set[str], fitting: Quarantine
    ) -> None:
        self._producer, self._topics, self._shard, self._alone = producer, topics, shard, alone
        self._fitting = fitting
        self._refused: list[_Refused] = []
        self._failure: KafkaError | None = None

    def run(
        self,
        records: Lots,
        diverted: dict[int, str],
        more: list[Output],
        marker_topic: str,
        marker: Marker,
    ) -> list[_Refused]:
        """Returns what was refused, in which case nothing was written."""
        self._producer.begin_transaction()
        stopped: KafkaException | None = None
        try:
            self._send_all(records, diverted)
            for record in more:
                self._send(record, None)
            marking = Output(marker_topic, KEY, encode_marker(marker), (), None)
            self._send(marking, None, partition=self._shard)
        except KafkaException as error:
            # After a refusal the transaction takes nothing more.
            stopped = error
        left = self._settle(stopped is not None)
        reach("sink.after-produce", self._shard)
        if self._failure is not None:
            raise KafkaException(self._failure)
        if self._refused:
            self._producer.abort_transaction(COMMIT_TIMEOUT_S)
            return self._refused
        if stopped is not None:
            raise stopped
        if left:
            raise SinkFailed(f"{left} records not confirmed after {FLUSH_TIMEOUT_S:.0f} s")
        self._commit()
        reach("sink.after-commit", self._shard)
        return []

    def _settle(self, stopped: bool = False) -> int:
        """Wait for Kafka's word on everything; how many records are without.

        What a refused transaction still has in its queue is never sent, and not waited for.
        """
        deadline = time.monotonic() + FLUSH_TIMEOUT_S
        before, left = -1, len(self._producer)
        while left and time.monotonic() < deadline:
            if left == before and (stopped or self._refused or self._failure is not None):
                break
            before, left = left, self._producer.flush(SETTLE_S)
        return left

    def _send_all(self, records: Lots, diverted: dict[int, str]) -> None:
        middle = len(records) // 2
        for base, lot in records:
            half = middle - base
            if 0 <= half < len(lot):
                self._send_lot(base, lot, diverted, 0, half)
                reach("sink.during-produce", self._shard)
                self._send_lot(base, lot, diverted, half, len(lot))
            else:
                self._send_lot(base, lot, diverted, 0, len(lot))

    def _send_lot(self, base: int, lot: Lot, diverted: dict[int, str], start: int, stop: int) -> None:
        one = partial(self._send_one, base, lot, diverted)
        if isinstance(lot, DeliveryLot):
            events = range(lot.event(start), lot.event(stop))
            left_out = {lot.topic(index - base) for index in diverted if 0 <= index - base < len(lot)}
            report = partial(self._note_owed, base, lot)
            lot.produce(self._producer, events, self._alone | left_out, report, one)
        else:
            for index in range(start, stop):
                one(index)

    def _send_one(self, base: int, lot: Lot, diverted: dict[int, str], index: int) -> None:
        record, reason = lot.output(index), diverted.get(base + index)
        if reason is not None and record.may_be_dropped(self._topics):
            return
        if reason is not None:
            self._send_letter(record.dead_letter(reason))
        elif record.topic == self._topics.dead_letters:
            self._send_letter((record.key, record.value, record.headers))
        else:
            self._send(record, base + index if record.may_be_refused(self._topics) else None)
            if record.topic in self._alone:
                self._settle()

    def _send_letter(self, letter: Letter) -> None:
        """A dead letter is made to fit: one that were refused would be so again, attempt after attempt."""
        self._send(Output(self._topics.dead_letters, *self._fitting.fit(letter), None), None)
        if self._fitting.one_by_one:
            self._settle()

    def _commit(self) -> None:
        try:
            reach("sink.commit-not-sent", self._shard)
            self._producer.commit_transaction(COMMIT_TIMEOUT_S)
            reach("sink.commit-not-heard", self._shard)
        except KafkaException as error:
            reason: KafkaError = error.args[0]
            if is_fenced(error) or reason.txn_requires_abort():
                raise
            raise _Doubt(reason.str()) from None
        except FailpointReached as lost:
            raise _Doubt(str(lost)) from None

    def _send(self, record: Output, index: int | None, partition: int = -1) -> None:
        """Queue a record; one with an index may be refused, any other must not. -1: by its key."""
        headers: Any = list(record.headers)  # typed as less than it takes
        report = partial(self._note, index)
        while True:
            try:
                self._producer.produce(
                    record.topic, record.value, record.key, partition, report, headers=headers
                )
                return
            except BufferError:
                self._producer.flush(ROOM_TIMEOUT_S)
            except KafkaException as error:
                if error.args[0].code() not in REFUSALS:
                    raise
                # Refused before it was queued: as good as refused by the topic.
                report(error.args[0], None)
                return

    def _note_owed(
        self, base: int, lot: DeliveryLot, event: int, error: KafkaError | None, message: Message | None
    ) -> None:
        if error is not None and message is not None:
            self._note(base + lot.index(event, message.topic()), error, message)

    def _note(self, index: int | None, error: KafkaError | None, message: Message | None) -> None:
        if error is None or error.code() in PURGED:
            return
        if index is not None and error.code() in REFUSALS:
            self._refused.append(_Refused(index, error.code(), error.str()))
        else:
            self._failure = self._failure or error
