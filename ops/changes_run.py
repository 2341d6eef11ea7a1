"""Events and requests at set rates into a router that runs, and what is seen of both.

Whoever measures shares the machine with what is measured, so little is done here while the clock runs: a few
times in a hundred milliseconds what is due is handed to Kafka, a thread reads the acks, and nobody reads
what is delivered. When an event was delivered follows from Spark's word on its batches: what a batch takes is
delivered before it ends. With several partitions that is true of counts, and of single events nearly.
"""

import threading
import time
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import quantiles
from typing import Any

from confluent_kafka import TopicPartition
from pyspark.sql.streaming.query import StreamingQuery

from branchline.kafka.cluster import Cluster
from branchline.kafka.reading import READER_GROUP
from branchline.ops.changes_load import settled
from branchline.ops.pipeline_outbox import ends
from branchline.ops.pipeline_site import Batch, batches_of
from branchline.routing.control import Status

SLICE_S = 0.02
"""How often what is due is written."""
LOOK_S = 5.0
"""How often Spark is asked for its batches, of which it keeps a hundred."""
DRAIN_S = 120.0
"""What was written last is waited for so long at most."""
SAMPLED = 100
"""Every so many events, and the first and the last of each batch, stand for all."""
POLLED = 2_000
POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Spread:
    """Milliseconds: the middle, what nineteen of twenty stay below, the longest."""

    count: int = 0
    p50_ms: float = 0.0
    p95_ms: float = 0.0
    most_ms: float = 0.0

    @staticmethod
    def of(took_s: Sequence[float]) -> "Spread":
        """Of figures in seconds, in whatever order."""
        if not took_s:
            return Spread()
        cuts = quantiles(took_s, n=20, method="inclusive") if len(took_s) > 1 else [took_s[0]] * 19
        p50, p95, most = (round(each * 1e3, 1) for each in (cuts[9], cuts[18], max(took_s)))
        return Spread(len(took_s), p50, p95, most)


@dataclass(slots=True)
class Written:
    """When what was handed to Kafka, slice by slice: the counts so far, and the time."""

    times: list[float] = field(default_factory=list)
    events: list[int] = field(default_factory=list)
    requests: list[int] = field(default_factory=list)

    def when_request(self, number: int) -> float:
        return self.times[bisect_right(self.requests, number)]

    def when_event(self, number: int) -> float:
        return self.times[bisect_right(self.events, number)]


@dataclass(frozen=True, slots=True)
class Seen:
    """What one run gave, without its warm-up."""

    batches: Spread
    in_force: Spread
    """Of requests, until the ack was read that nothing comes after."""
    delivered: Spread
    """Of events, until the batch that took them was done."""
    events_per_s: float
    changes_per_s: float
    """As they were really written."""
    refused: int
    missing_acks: int
    missing_events: int


def drive(
    cluster: Cluster,
    query: StreamingQuery,
    topics: tuple[str, str, str],
    events: Sequence[bytes],
    requests: Sequence[bytes],
    seconds: float,
    warm_up_s: float,
) -> Seen:
    """Write both evenly over so many seconds and the warm-up; topics are for events, requests and acks."""
    entry, control, acks = topics
    reader = _Acks(cluster, acks, len(requests))
    batches = _Batches(query, entry)
    reader.start()
    written = _write(cluster, entry, control, events, requests, seconds + warm_up_s, batches)
    batches.wait(len(events))
    reader.wait()
    return _seen(written, batches.known, reader, written.times[0] + warm_up_s)


def _write(
    cluster: Cluster,
    entry: str,
    control: str,
    events: Sequence[bytes],
    requests: Sequence[bytes],
    seconds: float,
    batches: "_Batches",
) -> Written:
    producer: Any = cluster.producer(linger_ms=5)
    written = Written()
    slices = max(1, round(seconds / SLICE_S))
    started = looked = time.time()
    event = request = 0
    for number in range(1, slices + 1):
        wait = started + (number - 1) * SLICE_S - time.time()
        if wait > 0:
            time.sleep(wait)
        # Before they are handed over: what takes long there is part of what a client sees.
        written.times.append(time.time())
        for at in range(event, event := len(events) * number // slices):
            producer.produce(entry, events[at], b"%d" % (at % 1_000))
        for at in range(request, request := len(requests) * number // slices):
            producer.produce(control, requests[at])
        written.events.append(event)
        written.requests.append(request)
        producer.poll(0)
        if time.time() - looked > LOOK_S:
            looked = time.time()
            batches.look()
    producer.flush(DRAIN_S)
    return written


class _Batches:
    """What Spark has told of a query's batches with input."""

    def __init__(self, query: StreamingQuery, entry: str) -> None:
        self._query, self._entry = query, entry
        self._before = {each.number for each in batches_of(query, entry)}
        self.known: dict[int, Batch] = {}

    def look(self) -> None:
        for batch in batches_of(self._query, self._entry):
            if batch.number not in self._before:
                self.known[batch.number] = batch

    def wait(self, events: int) -> None:
        """Return when so many events have entered, or after a while."""
        deadline = time.monotonic() + DRAIN_S
        while time.monotonic() < deadline and self._query.exception() is None:
            self.look()
            if sum(each.entered for each in self.known.values()) >= events:
                return
            time.sleep(0.5)


class _Acks(threading.Thread):
    """Reads acks until all requests are settled, or for a while after `wait`."""

    def __init__(self, cluster: Cluster, topic: str, count: int) -> None:
        super().__init__(daemon=True)
        (end,) = ends(cluster, [TopicPartition(topic, 0)])
        self._consumer = cluster.consumer(group_id=READER_GROUP, fetch_wait_max_ms=50)
        self._consumer.assign([TopicPartition(topic, 0, end)])
        self._count = count
        self._deadline = float("inf")
        self.settled: dict[int, float] = {}
        self.refused = 0

    def run(self) -> None:
        while len(self.settled) < self._count and time.monotonic() < self._deadline:
            came = self._consumer.consume(POLLED, POLL_S)
            now = time.time()
            for number, status in settled([each.value() or b"" for each in came if each.error() is None]):
                self.settled.setdefault(number, now)
                self.refused += status is Status.REFUSED
        self._consumer.close()

    def wait(self) -> None:
        self._deadline = time.monotonic() + DRAIN_S
        self.join(2 * DRAIN_S)


def _seen(written: Written, batches: dict[int, Batch], reader: _Acks, since_s: float) -> Seen:
    """Of what was written, and of batches that began, after the warm-up."""
    took = [
        at - written.when_request(number)
        for number, at in reader.settled.items()
        if written.when_request(number) >= since_s
    ]
    ways: list[float] = []
    entered = 0
    for number in sorted(batches):
        batch = batches[number]
        last = min(entered + batch.entered, written.events[-1])
        sample = {*range(entered, last, SAMPLED), *range(max(entered, last - 1), last)}
        begun = [at for at in map(written.when_event, sample) if at >= since_s]
        ways += [batch.began_s + batch.took_s - at for at in begun]
        entered = last
    real_s = written.times[-1] - written.times[0] + SLICE_S
    return Seen(
        Spread.of([each.took_s for each in batches.values() if each.began_s >= since_s]),
        Spread.of(took),
        Spread.of(ways),
        round(written.events[-1] / real_s, 1),
        round(written.requests[-1] / real_s, 1),
        reader.refused,
        written.requests[-1] - len(reader.settled),
        written.events[-1] - entered,
    )
