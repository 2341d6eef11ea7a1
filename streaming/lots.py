"""The records of one block, as a writer handles them: by their number, deliveries and copies all together.

What is owed goes out without an object for each record. Kafka's word on a refused one comes with the event
and the topic, and one event goes to a topic once: so these say which record it was, and only then is an
`Output` made of it.
"""

from bisect import bisect_right
from collections.abc import Callable, Collection, Container, Iterator
from functools import partial
from typing import Any, Protocol

import numpy as np
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from branchline.kafka import headers as bl
from branchline.kafka.dispatch import Step, headers_of_copy
from branchline.kafka.header_cells import unpack_headers
from branchline.kafka.owed import Onward, Owed
from branchline.kafka.record import Headers
from branchline.kafka.topics import Topics
from branchline.streaming.blocks import Block, Records, unpack
from branchline.streaming.refusals import Output

EVENTS_PER_POLL = 256
"""So often Kafka's reports are asked for while an `Owed` goes out: each time costs as much as a record."""

Report = Callable[[int, KafkaError | None, Message | None], None]
"""Kafka's word on a delivery of the event of that number in the block."""


class Lot(Protocol):
    """Records that are to be written, numbered from 0."""

    def __len__(self) -> int: ...

    def output(self, index: int) -> Output:
        """The record of that number."""
        ...

    def topic(self, index: int) -> str:
        """Where it goes."""
        ...

    def of(self, topics: Container[str]) -> Iterator[int]:
        """The numbers of the records that go to these topics."""
        ...


class RecordLot:
    """Whatever is written record by record; topics that come and go are set apart."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self.to_remove = self._of_step(Step.REMOVE)
        self.to_create = self._of_step(Step.CREATE)
        kept = (Step.WRITE, Step.ACK)
        self._rows = [row for row, step in enumerate(records.steps) if step in kept]

    def __len__(self) -> int:
        return len(self._rows)

    def is_ack(self, index: int) -> bool:
        """Whether the record comes after everything before it is safely written."""
        return self._records.steps[self._rows[index]] == Step.ACK

    def output(self, index: int) -> Output:
        row, records = self._rows[index], self._records
        headers, delivery = unpack_headers(records.headers[row]), records.ids[row]
        if delivery is not None:
            headers = (*headers, (bl.ID, delivery))
        return Output(
            records.topics[row],
            records.keys[row],
            records.values[row],
            headers,
            None if delivery is None else delivery.decode(),
        )

    def topic(self, index: int) -> str:
        return self._records.topics[self._rows[index]]

    def of(self, topics: Container[str]) -> Iterator[int]:
        return (index for index, row in enumerate(self._rows) if self._records.topics[row] in topics)

    def _of_step(self, wanted: Step) -> list[str]:
        records = self._records
        return [topic for step, topic in zip(records.steps, records.topics, strict=True) if step == wanted]


class DeliveryLot:
    """What is owed, event by event."""

    def __init__(self, topics: Topics, owed: Owed) -> None:
        self._owed = owed
        self._topics = [self._topic(topics, name) for name in owed.names]
        self._endings = [f":{name}" for name in owed.names]
        self._first: list[int] = owed.first.tolist()
        self._subscriber: list[int] = owed.subscriber.tolist()

    def __len__(self) -> int:
        return len(self._subscriber)

    @property
    def events(self) -> int:
        return len(self._owed.keys)

    def event(self, index: int) -> int:
        """The event that a delivery is of; of the one after the last, the number of events."""
        return int(np.searchsorted(self._owed.first, index, "right")) - 1

    def index(self, event: int, topic: str | None) -> int:
        """The number of the event's delivery to the topic."""
        to = range(self._first[event], self._first[event + 1])
        return next(index for index in to if self._topics[self._subscriber[index]] == topic)

    def output(self, index: int) -> Output:
        event, owed = self.event(index), self._owed
        delivery = self._id(event, index)
        headers = (*unpack_headers(owed.headers[event]), *self._ours(event, index))
        return Output(self.topic(index), owed.keys[event], owed.values[event], headers, delivery)

    def topic(self, index: int) -> str:
        return self._topics[self._subscriber[index]]

    def of(self, topics: Container[str]) -> Iterator[int]:
        numbers = [number for number, topic in enumerate(self._topics) if topic in topics]
        return iter(np.flatnonzero(np.isin(self._owed.subscriber, numbers)).tolist())

    def _topic(self, topics: Topics, name: str) -> str:
        """Where what is for a name goes."""
        return topics.out(name)

    def _id(self, event: int, index: int) -> str | None:
        """The delivery's id; None for anything but a delivery."""
        return self._owed.origins[event] + self._endings[self._subscriber[index]]

    def _ours(self, event: int, index: int) -> Headers:
        """Our own headers."""
        delivery = self._owed.origins[event] + self._endings[self._subscriber[index]]
        return ((bl.ID, delivery.encode()),)

    def produce(
        self,
        producer: Producer,
        events: range,
        apart: Collection[str],
        report: Report,
        one: Callable[[int], None],
    ) -> None:
        """Queue the deliveries of these events, in order.

        Those for topics `apart`, and whatever is not taken at once, are left to `one`, by their number.
        """
        owed, topics = self._owed, self._topics
        first, subscriber = self._first, self._subscriber
        by_hand = {number for number, topic in enumerate(topics) if topic in apart}
        queue = producer.produce
        for event in events:
            key, value = owed.keys[event], owed.values[event]
            # Typed as less than what a producer takes.
            foreign: list[Any] = list(unpack_headers(owed.headers[event])) if owed.headers[event] else []
            on_delivery = partial(report, event)
            for index in range(first[event], first[event + 1]):
                number = subscriber[index]
                if number in by_hand:
                    one(index)
                    continue
                headers = [*foreign, *self._ours(event, index)]
                try:
                    queue(topics[number], value, key, -1, on_delivery, headers=headers)
                except (BufferError, KafkaException):
                    one(index)
            if event % EVENTS_PER_POLL == 0:
                producer.poll(0)


class CopyLot(DeliveryLot):
    """What goes on to other brokers, event by event."""

    def __init__(self, topics: Topics, onward: Onward) -> None:
        super().__init__(topics, onward)
        self._prefixes = onward.prefixes

    def _topic(self, topics: Topics, name: str) -> str:
        return topics.broker(name)

    def _id(self, event: int, index: int) -> None:
        return None

    def _ours(self, event: int, index: int) -> Headers:
        return headers_of_copy(self._owed.origins[event], self._prefixes[index])


def lot_of(topics: Topics, block: Block) -> RecordLot | DeliveryLot:
    """The records of a block."""
    unpacked = unpack(block)
    if isinstance(unpacked, Records):
        return RecordLot(unpacked)
    return CopyLot(topics, unpacked) if isinstance(unpacked, Onward) else DeliveryLot(topics, unpacked)


class Lots:
    """One lot after another, their records numbered through."""

    def __init__(self) -> None:
        self._lots: list[Lot] = []
        self._bases: list[int] = []
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[tuple[int, Lot]]:
        """The number of each lot's first record, and the lot."""
        return zip(self._bases, self._lots, strict=True)

    def add(self, lot: Lot) -> None:
        """The next lot."""
        if len(lot):
            self._lots.append(lot)
            self._bases.append(self._length)
            self._length += len(lot)

    def output(self, index: int) -> Output:
        """The record of that number."""
        which = bisect_right(self._bases, index) - 1
        return self._lots[which].output(index - self._bases[which])

    def of(self, topics: Container[str]) -> Iterator[tuple[int, Output]]:
        """The records that go to these topics, with their numbers."""
        for base, lot in self:
            for index in lot.of(topics):
                yield base + index, lot.output(index)
