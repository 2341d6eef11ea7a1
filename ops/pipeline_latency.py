"""How long events are on their way at a set rate: from when they are handed to Kafka until they are read.

Events are published one by one at the rate, and one reader follows the topics of some subscribers, which
stand for all: with each request librdkafka names every topic that it reads, and Kafka looks at each, so
following a thousand would take a third of a core from what is measured. Afterwards it is counted what all of
them have. Those of the first seconds are not timed: a young Java compiles, and a query's first batch takes
seconds.
"""

import json
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import quantiles
from typing import Any

from branchline.kafka.cluster import Cluster
from branchline.ops.pipeline_load import Load
from branchline.ops.pipeline_outbox import Outbox

FOLLOWED = 100
"""Subscribers that stand for all: each is owed as much as any other."""

DRAIN_S = 60.0
"""What was published last is waited for so long at most."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds of the deliveries that were counted."""

    p50_ms: float
    p95_ms: float
    most_ms: float
    deliveries: int
    rate: float
    """Events a second that were really published."""
    missing: int
    """Deliveries that had not come when nobody waited for them any more."""


def measure_latency(
    cluster: Cluster,
    entry: str,
    outbox: Outbox,
    load: Load,
    rate: float,
    warm_up_s: float,
    seconds: float,
) -> Latency:
    """Publish at the rate for so long, and say how long deliveries took."""
    wanted = min(len(load.events), round(rate * (warm_up_s + seconds)))
    counted_from = min(round(rate * warm_up_s), wanted // 2)
    part = replace(load, events=load.events[:wanted])
    every = max(1, len(outbox) // FOLLOWED)
    (owed, _), (in_all, _) = part.owed(every), part.owed()
    sent: dict[int, float] = {}
    took: dict[bool, list[float]] = {True: [], False: []}
    published = threading.Event()
    deadline = time.time() + wanted / rate + DRAIN_S

    def came(value: bytes, now: float) -> None:
        number = json.loads(value)["n"]
        if number in sent:
            took[number >= counted_from].append(now - sent[number])

    def going_on() -> bool:
        missing = len(took[True]) + len(took[False]) < owed.count
        return not published.is_set() or (missing and time.time() < deadline)

    mark, followed = outbox.mark(), outbox.one_in(every)
    reader = threading.Thread(target=followed.follow, args=(mark[::every], came, going_on), daemon=True)
    reader.start()
    started = time.time()
    _publish(cluster, entry, load.events[:wanted], rate, sent)
    real = wanted / (time.time() - started)
    published.set()
    reader.join(2 * DRAIN_S)
    missing = owed.count - len(took[True]) - len(took[False])
    while not missing and (left := in_all.count - outbox.since(mark).count) > 0:
        missing = left if time.time() > deadline else 0
    return _latency(sorted(took[True]), real, missing)


def _publish(
    cluster: Cluster, entry: str, events: Sequence[bytes], rate: float, sent: dict[int, float]
) -> None:
    producer: Any = cluster.producer(linger_ms=0)
    started = time.monotonic()
    for number, event in enumerate(events):
        wait = started + number / rate - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        sent[number] = time.time()
        producer.produce(entry, event, b"%d" % (number % 1_000))
        producer.poll(0)
    producer.flush(60)


def _latency(took: Sequence[float], rate: float, missing: int) -> Latency:
    if len(took) < 2:
        return Latency(0, 0, 0, len(took), round(rate, 1), missing)
    cuts = quantiles(took, n=100, method="inclusive")
    p50, p95, most = (round(each * 1e3, 1) for each in (cuts[49], cuts[94], took[-1]))
    return Latency(p50, p95, most, len(took), round(rate, 1), missing)
