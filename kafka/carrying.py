"""Writing what a bridge carries: batch by batch, each in one transaction with the marks of how far it is.

A record that the target refuses for good goes to the source's dead letters, is marked as done, and stops
nothing. One that is larger than its topic takes is not even tried; any other makes its transaction abort, and
the batch is cut in halves, in order, until the record is alone. The dead letter is written before the mark,
so it cannot be missed; if the process dies between the two, the next life meets that record first of its
partition, and looks whether its letter stands already.

Everything else that fails, fails whoever called, who then drops this carrier. The next one settles by
`init_transactions` what became of the last transaction, and only then reads the marks.
"""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping

from confluent_kafka import KafkaError, KafkaException, Message

from branchline.kafka import headers as bl
from branchline.kafka.admin import ensure_topics, list_topics, message_limits
from branchline.kafka.ends import Ends
from branchline.kafka.marks import Marks, Partition, encode_mark, encode_run, read_marks
from branchline.kafka.record import Headers, Place, Record
from branchline.kafka.returning import Returning
from branchline.kafka.topics import BRIDGE
from branchline.kafka.transactions import PURGED, fatal_errors_as_they_are

INIT_TIMEOUT_S = 20.0
COMMIT_TIMEOUT_S = 20.0
TRANSACTION_TIMEOUT_MS = 30_000
"""A transaction that its bridge leaves behind holds up who reads committed records for so long, at most."""

REFUSALS = {
    KafkaError.MSG_SIZE_TOO_LARGE,
    KafkaError.INVALID_MSG,
    KafkaError.INVALID_RECORD,
    KafkaError.INVALID_TIMESTAMP,
    KafkaError.RECORD_LIST_TOO_LARGE,
    KafkaError.POLICY_VIOLATION,
}
"""Errors that are about a record and would come again; anything else is waited out."""

BATCH_SIZE = 1_000_000
"""Bytes of one request's records, unless a topic takes less at once."""


class Carrier:
    """The one writer of a bridge at its target. `counts` is added to; `report` tells people."""

    def __init__(
        self, ends: Ends, source_id: str, run: str, counts: Counter[str], report: Callable[[str], None]
    ) -> None:
        self._ends, self._topics, self._source_id, self._run = ends, ends.topics, source_id, run
        self._counts, self._report = counts, report
        self._refusal: str | None = None
        self._failure: KafkaError | None = None
        self._sizes: dict[str, int] = {}
        """The partitions of the target's topics."""
        self._limits: dict[str, int] = {}
        """What those topics take at once, in bytes."""
        self._batch_size = BATCH_SIZE
        self.unreadable: set[Place] = set()
        """Records whose headers cannot be read."""
        self._touched: set[Partition] = set()
        """Partitions of which something was carried by this carrier."""
        ensure_topics(ends.target, {ends.mark_topic: BRIDGE})
        self._returning = Returning(ends.source, self._topics)
        self.marks = self._open().offsets
        """For each partition of the source, the next offset to carry."""
        self._transact([], {}, [encode_run(run, source_id)])

    def close(self) -> None:
        """Let go of both clusters; a transaction that is still open is the next carrier's to settle."""
        self._producer.purge()
        self._returning.close()

    def carry(self, records: list[Record], positions: Mapping[Partition, int]) -> None:
        """Carry a batch, exactly once; what the target refuses goes to the source's dead letters."""
        pieces = [records]
        if any(map(self._excess, records)):
            self._learn_limits()  # somebody may have raised one
            pieces = self._cut(records)
        while pieces:
            piece = pieces.pop()
            marks = positions if not pieces else _after(piece)
            refusal = self._excess(piece[0]) if len(piece) == 1 else None
            if refusal is None:
                refusal = self._transact(piece, marks)
                if refusal is None:
                    continue
                self._reopen()
            if len(piece) > 1:
                middle = len(piece) // 2
                pieces += [piece[middle:], piece[:middle]]
                continue
            self._return(piece[0], refusal)
            self._transact([], marks)

    def learn(self, topics: Collection[str]) -> None:
        """Ask the target how many partitions these topics have, and what they take."""
        self._sizes |= {
            name: count for name, count in list_topics(self._ends.target).items() if name in topics
        }
        self._learn_limits()
        if min(self._limits.values()) < self._batch_size:
            self._reopen()

    def _return(self, record: Record, refusal: str) -> None:
        place = record.place
        may_stand = (place.topic, place.partition) not in self._touched
        if self._returning.put(record, refusal, look_first=may_stand):
            where = f"{place.topic} {place.partition} {place.offset}"
            self._report(f"bridge: {where} is a dead letter now: {refusal}")
        self._counts["diverted"] += 1

    def _cut(self, records: list[Record]) -> list[list[Record]]:
        """The records in pieces, the last one first, each that is too large in one of its own."""
        pieces: list[list[Record]] = [[]]
        for record in records:
            if self._excess(record) is not None:
                pieces += [[record], []]
            else:
                pieces[-1].append(record)
        return [piece for piece in reversed(pieces) if piece]

    def _learn_limits(self) -> None:
        self._limits = message_limits(self._ends.target, self._sizes.keys())

    def _excess(self, record: Record) -> str | None:
        """Why a record can surely not be carried, if so: it is too large for its topic, or unreadable."""
        if record.place in self.unreadable:
            return "its headers have a name that is not UTF-8"
        size, limit = _bytes(record), self._limits[record.place.topic]
        return None if size <= limit else f"it has {size} bytes, and the topic takes at most {limit}"

    def _open(self) -> Marks:
        """Make a producer; the marks as they stand when no other can write any more."""
        self._batch_size = min([BATCH_SIZE, *self._limits.values()])
        self._producer = self._ends.target.producer(
            linger_ms=5,
            transactional_id=self._ends.transactional_id,
            transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
            message_timeout_ms=TRANSACTION_TIMEOUT_MS,
            # What fits is for the topic to say, not for the client.
            message_max_bytes=1_000_000_000,
            batch_size=self._batch_size,
            delivery_report_only_error=True,
            # What goes wrong comes back as an error; a line on a terminal only confuses.
            logger=logging.getLogger(__name__),
        )
        self._producer.init_transactions(INIT_TIMEOUT_S)
        # Only now: before, a transaction of an earlier producer could still be decided either way.
        return read_marks(self._ends.target, self._ends.mark_topic, self._source_id)

    def _reopen(self) -> None:
        """Go on with another producer: after a refusal, librdkafka's loses count of its records."""
        marks = self._open()
        if marks.run != self._run:
            raise KafkaException(KafkaError(KafkaError._FENCED))
        self.marks = marks.offsets

    def _transact(
        self,
        records: Iterable[Record],
        marks: Mapping[Partition, int],
        more: Iterable[tuple[bytes, bytes]] = (),
    ) -> str | None:
        """One transaction. Returns why a record of it was refused, in which case nothing was written."""
        with fatal_errors_as_they_are():
            return self._try_transact(records, marks, more)

    def _try_transact(
        self,
        records: Iterable[Record],
        marks: Mapping[Partition, int],
        more: Iterable[tuple[bytes, bytes]],
    ) -> str | None:
        producer = self._producer
        self._refusal = self._failure = None
        producer.begin_transaction()
        carried: Counter[str] = Counter()
        for record in records:
            headers = self._headers(record)
            if headers is None:
                carried["circular"] += 1
                continue
            carried["records"] += 1
            carried["bytes"] += len(record.value or b"") + len(record.key or b"")
            self._produce(record, headers)
        for partition, at in marks.items():
            self._send(self._ends.mark_topic, *encode_mark(partition, at, self._source_id))
        for key, value in more:
            self._send(self._ends.mark_topic, key, value)
        producer.flush(COMMIT_TIMEOUT_S)
        if self._refusal is not None:
            producer.abort_transaction(COMMIT_TIMEOUT_S)
            return self._refusal
        if self._failure is not None:
            raise KafkaException(self._failure)
        producer.commit_transaction(COMMIT_TIMEOUT_S)
        self.marks.update(marks)
        self._touched |= marks.keys()
        self._counts.update(carried)
        self._counts["transactions"] += 1
        return None

    def _headers(self, record: Record) -> Headers | None:
        """The headers to carry on, as they are. None if the record has been where it would go to."""
        if record.place.topic != self._topics.rt_updates:
            return record.headers
        path = [*filter(None, (bl.text(record.headers, bl.PATH) or "").split(",")), self._ends.source_name]
        if self._ends.target_name in path:
            return None
        kept = tuple(header for header in record.headers if header[0] != bl.PATH)
        return (*kept, (bl.PATH, ",".join(path).encode()))

    def _produce(self, record: Record, headers: Headers) -> None:
        place, count = record.place, self._sizes[record.place.topic]
        options: dict[str, int] = {"timestamp": place.timestamp_ms} if place.timestamp_ms > 0 else {}
        if place.partition < count:
            options["partition"] = place.partition
        elif record.key is None:
            # By key is no use here: those without one stay together, as they were.
            options["partition"] = place.partition % count
        self._send(place.topic, record.key, record.value, headers=list(headers), **options)

    def _send(self, topic: str, key: bytes | None, value: bytes | None, **options: object) -> None:
        while True:
            try:
                self._producer.produce(topic, value, key, on_delivery=self._note_delivery, **options)  # type: ignore[arg-type]
                self._producer.poll(0)
                return
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as error:
                # Refused before it was queued: as good as refused by the topic.
                self._note_delivery(error.args[0], None)
                return

    def _note_delivery(self, error: KafkaError | None, message: Message | None) -> None:
        if error is None or error.code() in PURGED:
            return
        if error.code() in REFUSALS:
            self._refusal = self._refusal or error.str()
        else:
            self._failure = self._failure or error


def _bytes(record: Record) -> int:
    """What a record takes at least: Kafka puts a little around it."""
    headers = sum(len(name.encode()) + len(value or b"") for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers


def _after(records: Iterable[Record]) -> dict[Partition, int]:
    return {(each.place.topic, each.place.partition): each.place.offset + 1 for each in records}
