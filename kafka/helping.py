"""A subscriber that works for its home: it volunteers, does what tasks come, and renews until it is stopped.

Nobody hangs on it: what it says is verified, and what it does not say in time the broker finds out by itself.
"""

import time
import uuid
from collections.abc import Generator, Iterator
from dataclasses import dataclass

from confluent_kafka import Consumer, Producer

from branchline.kafka.asking import NO_ROUTER, WRITE_TIMEOUT_S, decode_answer
from branchline.kafka.assisting import decode_task, encode_answering, encode_assist
from branchline.kafka.cluster import Cluster
from branchline.kafka.reading import follow, open_topic
from branchline.kafka.record import Record
from branchline.kafka.topics import Topics
from branchline.routing.control import Status
from branchline.routing.dissemination.summaries import hides
from branchline.routing.offloading.assisting import Answering, Assist
from branchline.routing.offloading.client import answer
from branchline.routing.offloading.messages import Task

FOR_MS = 60_000
"""How long it volunteers at a time: for so long, at most, a broker hopes for one that is gone."""
RENEWED_AT = 3
"""The part of that time after which it volunteers anew."""


@dataclass(frozen=True, slots=True)
class Done:
    """A task that was done."""

    round: int
    slice: int
    filters: int
    """New filters that were compared."""
    table: int
    """Filters of the broker's table that they were compared with."""
    related: int
    """How many pairs were found, of which one covers the other."""


@dataclass(slots=True)
class Helper:
    """One subscriber that works for one broker."""

    cluster: Cluster
    topics: Topics
    subscriber: str
    home: str
    own: bool = False
    for_ms: int = FOR_MS

    def work(self) -> Generator[Done | None]:
        """What was done, as it is done; None whenever there is nothing, so that the caller can stop.

        Raises RequestRefused if the broker wants no help. To stop, close the iterator.
        """
        acks = self.topics.own_acks(self.subscriber) if self.own else self.topics.acks
        consumer = open_topic(self.cluster, acks, from_beginning=False, hint=NO_ROUTER)
        # An answer that comes twice does no harm.
        producer = self.cluster.producer(
            message_timeout_ms=int(WRITE_TIMEOUT_S * 1000), enable_idempotence=False, linger_ms=0
        )
        try:
            yield from self._work(consumer, producer)
        finally:
            self._write(producer, encode_assist(Assist(self.subscriber, self.home, 0)))
            producer.flush(WRITE_TIMEOUT_S)
            consumer.close()

    def _work(self, consumer: Consumer, producer: Producer) -> Iterator[Done | None]:
        renewed_s, asked = float("-inf"), ""
        for record in follow(consumer):
            if time.monotonic() - renewed_s > self.for_ms / 1000 / RENEWED_AT:
                renewed_s, asked = time.monotonic(), uuid.uuid4().hex
                self._write(producer, encode_assist(Assist(self.subscriber, self.home, self.for_ms, asked)))
                producer.flush(WRITE_TIMEOUT_S)
            task = None if record is None else decode_task(record, self.subscriber, self.home)
            if task is not None:
                yield self._do(task, producer)
            else:
                _check(record, asked)
                yield None

    def _do(self, task: Task, producer: Producer) -> Done:
        done = answer(task, self.subscriber, hides)
        self._write(producer, encode_answering(Answering(done, self.home)))
        related = sum(map(len, done.above)) + sum(map(len, done.below))
        return Done(task.round, task.slice, len(task.batch), len(task.table), related)

    def _write(self, producer: Producer, value: bytes) -> None:
        control = self.topics.own_control(self.subscriber) if self.own else self.topics.control
        producer.produce(control, value, self.subscriber)
        producer.poll(0)


def _check(record: Record | None, asked: str) -> None:
    """Raise if the broker has refused what was asked for last."""
    said = None if record is None else decode_answer(record)
    if said is not None and said.request == asked and said.status is Status.REFUSED:
        said.raise_if_refused()
