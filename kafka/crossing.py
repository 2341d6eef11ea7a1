"""One life of a bridge: from `init_transactions` to the first thing that goes wrong.

Theory of operation. A crossing reads committed records of the source, batch by batch, and has each batch
written to the target in one transaction, together with the marks that say how far it is (`carrying.py`). It
learns where to begin from the marks, and only after `init_transactions`: until then a transaction of an
earlier life may still be decided. Anything unexpected, above all a commit of which nobody knows whether it
went through, ends this life; the next one asks Kafka again. So a record is carried exactly once for whoever
reads committed records, whatever dies and whenever.

What is carried follows the newest topology on the source's `filters`, which is read along with the rest.
"""

import time
from collections import Counter
from collections.abc import Callable

from confluent_kafka import KafkaError, Message, TopicPartition

from branchline.kafka.admin import cluster_id, ensure_topics, list_topics
from branchline.kafka.carrying import Carrier
from branchline.kafka.ends import Ends
from branchline.kafka.errors import ConfigError, SourceGap
from branchline.kafka.letters import TOPOLOGY_KEY, decode_recorded
from branchline.kafka.marks import Partition
from branchline.kafka.reading import READER_GROUP, bounds, read_to_end, to_bare_record, to_record
from branchline.kafka.record import Record
from branchline.kafka.topics import RT_UPDATES
from branchline.routing.overlay.topology import Topology

BATCH_RECORDS = 5_000
BATCH_BYTES = 8 * 1024 * 1024
BATCH_S = 0.25
"""What one transaction carries at most, and how long it may be collected."""

CHUNK_RECORDS, CHUNK_S = 500, 0.01
"""What is read at once."""

IDLE_S = 0.1
"""How long a crossing waits for a first record: what a stop may be late by."""

PROBE_TIMEOUT_S = 5.0

LOOK_EVERY_S, LOOK_AGAIN_S = 5.0, 1.0
"""How often the source's topics are looked at, and how often while one that is wanted is not there."""


class Again(Exception):
    """A life is over; where the next one begins, it will know more."""


class Crossing:
    """Carries from the source to the target. `counts` is added to; `report` tells people."""

    def __init__(
        self,
        ends: Ends,
        run: str,
        counts: Counter[str],
        report: Callable[[str], None],
        *,
        skip_lost: bool = False,
    ) -> None:
        self._ends, self._topics, self._report = ends, ends.topics, report
        self._skip_lost = skip_lost
        self._topology: Topology | None = None
        self.positions: dict[Partition, int] = {}
        """The next offset to carry of each partition that is carried."""
        self._at_end: set[Partition] = set()
        self._looked_s = 0.0
        self._missing = False
        self._carrier = Carrier(ends, _distinct_id(ends), run, counts, report)
        self._consumer = ends.source.consumer(
            # Nothing is committed under it: the consumer is told where to read.
            group_id=READER_GROUP,
            auto_offset_reset="error",
            enable_partition_eof=True,
            fetch_wait_max_ms=50,
        )
        try:
            self._filters_at = self._read_filters()
            self._look()
        except BaseException:
            self.close()
            raise

    @property
    def brokers(self) -> list[str]:
        """The brokers that the newest topology has on the target."""
        members = self._topology.members if self._topology is not None else ()
        return [member.name for member in members if member.cluster == self._ends.target_name]

    @property
    def is_done(self) -> bool:
        """Whether all that is there has been carried."""
        return self._at_end >= self.positions.keys()

    def lag(self) -> dict[str, int]:
        """By topic, how many offsets lie between what was carried and the end, as far as was heard of."""
        lag: Counter[str] = Counter()
        for (topic, number), at in self.positions.items():
            _, end = self._consumer.get_watermark_offsets(TopicPartition(topic, number), cached=True)
            lag[topic] += max(end - at, 0) if (topic, number) not in self._at_end else 0
        return dict(lag)

    def step(self) -> None:
        """Carry what has come, or wait a little for something."""
        if time.monotonic() - self._looked_s > (LOOK_AGAIN_S if self._missing else LOOK_EVERY_S):
            self._look()
        records, positions = self._read()
        moved = {each: at for each, at in positions.items() if at > self._carrier.marks.get(each, -1)}
        if moved:
            self._carrier.carry(records, moved)
        self.positions = {**self.positions, **positions}

    def close(self) -> None:
        """Let go of both clusters."""
        self._carrier.close()
        self._consumer.close()

    # Where to read

    def _read_filters(self) -> int:
        """Find the newest topology; where `filters` goes on."""
        at = 0
        for record in read_to_end(
            self._ends.source, self._topics.filters, hint="a router makes its topics when it starts"
        ):
            self._hear(record)
            at = record.place.offset + 1
        return at

    def _hear(self, record: Record) -> bool:
        """Whether a record of `filters` tells of a newer topology."""
        told = decode_recorded(record.value) if record.key == TOPOLOGY_KEY else None
        if not isinstance(told, Topology) or (self._topology and told.order <= self._topology.order):
            return False
        self._topology = told
        return True

    def _look(self) -> None:
        """Find the partitions to carry, of all topics that are there by now."""
        there = list_topics(self._ends.source, PROBE_TIMEOUT_S)
        wanted = {self._topics.rt_updates: RT_UPDATES}
        for broker in self.brokers:
            wanted |= self._topics.of_neighbour(broker)
        self._missing = not wanted.keys() <= there.keys()
        self._looked_s = time.monotonic()
        found = [(topic, number) for topic in wanted if topic in there for number in range(there[topic])]
        added = [each for each in found if each not in self.positions]
        if not added:
            return
        ensure_topics(self._ends.target, {topic: wanted[topic] for topic, _ in added})
        self._carrier.learn({topic for topic, _ in added})
        self.positions = {**self.positions, **{each: self._beginning(each) for each in added}}
        # Whatever was fetched and not handed over is fetched again.
        self._at_end.clear()
        places = {**self.positions, (self._topics.filters, 0): self._filters_at}
        self._consumer.assign([TopicPartition(*each, at) for each, at in places.items()])
        names = sorted({topic.removeprefix(f"{self._ends.namespace}.") for topic, _ in added})
        self._report(f"bridge: carrying {', '.join(names)}")

    def _beginning(self, partition: Partition) -> int:
        """Where to begin with a partition; raises SourceGap if what should come next is gone."""
        topic, number = partition
        first, end = bounds(self._consumer, TopicPartition(topic, number))
        mark = self._carrier.marks.get(partition)
        if first <= (mark or 0) <= end:
            return mark or 0
        where = f"partition {number} of {topic} at {self._ends.source_name}"
        if mark is not None and mark > end:
            gone = f"{where} was carried up to offset {mark} and ends at {end}: it was made anew or cut off"
        else:
            gone = f"{where} begins with offset {first}, and {mark or 0} to {first - 1} were never carried"
        # Of the tree a later snapshot tells everything again; of mail nothing does.
        if not self._skip_lost and topic != self._topics.rt_updates:
            raise SourceGap(
                gone,
                hint="what is gone cannot be carried any more; --skip-lost goes on with what is there. Keep "
                "the source's topics for longer than a bridge may stand still",
            )
        self._report(f"bridge: {gone}; going on with offset {first}")
        self._carrier.marks.pop(partition, None)
        return first

    # Reading

    def _read(self) -> tuple[list[Record], dict[Partition, int]]:
        """The next batch, and where each of its partitions then stands."""
        records: list[Record] = []
        positions: dict[Partition, int] = {}
        size = taken = 0
        first = self._consumer.poll(IDLE_S)
        deadline = time.monotonic() + BATCH_S
        messages = [] if first is None else [first]
        while messages:
            for message in messages:
                partition = (message.topic() or "", message.partition() or 0)
                error = message.error()
                if error is not None:
                    self._note_end(error, message, partition, positions)
                    continue
                record = self._record(message)
                if partition not in self.positions:
                    self._filters_at = record.place.offset + 1
                    if self._hear(record):
                        self._looked_s = 0.0
                    continue
                self._at_end.discard(partition)
                positions[partition] = record.place.offset + 1
                records.append(record)
                size += len(record.value or b"") + len(record.key or b"")
            taken += len(messages)
            full = taken >= BATCH_RECORDS or size >= BATCH_BYTES or time.monotonic() > deadline
            messages = [] if full else self._consumer.consume(CHUNK_RECORDS, CHUNK_S)
        return records, positions

    def _record(self, message: Message) -> Record:
        try:
            return to_record(message)
        except (SystemError, UnicodeDecodeError):
            # The client cannot say what the headers are, so they cannot be carried as they are.
            bare = to_bare_record(message)
            self._carrier.unreadable.add(bare.place)
            return bare

    def _note_end(
        self, error: KafkaError, message: Message, partition: Partition, positions: dict[Partition, int]
    ) -> None:
        if error.code() != KafkaError._PARTITION_EOF:
            # Also if the offset is gone: where the next life begins, it says what is missing.
            raise Again(f"reading {partition[0]} failed: {error.str()}")
        if partition in self.positions:
            self._at_end.add(partition)
            # After the last record may stand ends of transactions: these count as read too.
            at = positions.get(partition, self.positions[partition])
            positions[partition] = max(message.offset() or 0, at)


def _distinct_id(ends: Ends) -> str:
    """The source cluster's id, if the target is not the same cluster."""
    source_id = cluster_id(ends.source, PROBE_TIMEOUT_S)
    if source_id == cluster_id(ends.target, PROBE_TIMEOUT_S):
        raise ConfigError(
            f"{ends.source_name} and {ends.target_name} are one Kafka cluster, {source_id}",
            hint="a bridge joins two; check --clusters",
        )
    return source_id
