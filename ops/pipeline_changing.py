"""Subscriptions that come and go at a set rate, while something else is measured.

One subscriber asks for what no event is, and takes it back. So all is done that a change costs, and nobody is
owed anything by it.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from branchline.kafka.cluster import Cluster
from branchline.kafka.messages import encode_request
from branchline.kafka.topics import Topics
from branchline.routing.control import Operation, Request

SUBSCRIBER = "changing"
FILTER = "n < 0"
"""Events are numbered from 0 on."""


@contextmanager
def changing(cluster: Cluster, topics: Topics, home: str, rate: float) -> Iterator[None]:
    """So many requests a second are written until this is left; none for 0."""
    if not rate:
        yield
        return
    enough = threading.Event()
    thread = threading.Thread(target=_write, args=(cluster, topics, home, rate, enough), daemon=True)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()


def _write(cluster: Cluster, topics: Topics, home: str, rate: float, enough: threading.Event) -> None:
    producer: Any = cluster.producer(linger_ms=0, enable_idempotence=False)
    for number in count():
        if enough.wait(1 / rate):
            break
        operation = Operation.UNSUBSCRIBE if number % 2 else Operation.SUBSCRIBE
        filter_ = "" if number % 2 else FILTER
        request = Request(
            operation, SUBSCRIBER, f"c{number // 2}", home, filter=filter_, request=f"c{number}"
        )
        producer.produce(topics.control, encode_request(request))
        producer.poll(0)
    producer.flush(60)
