"""Asking for a topology: the newest stands on `filters`, the next is proposed on `control`.

A topology is told as a whole, so a proposal is made from the newest one that is known. If another operator
was faster it is refused, or, if two clusters have taken one each, the higher digest wins; so whoever proposes
looks at `filters` afterwards. Who answers changes with the brokers, and for a moment it may be nobody: a
proposal is written again, under its request id, until it is answered.
"""

import time
import uuid

from confluent_kafka import Consumer

from branchline.kafka.asking import NO_ROUTER, Answer, decode_answer
from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import PublishFailed, RequestRefused, WaitExpired
from branchline.kafka.letters import TOPOLOGY_KEY, decode_recorded, encode_recorded
from branchline.kafka.listing import NO_NAMESPACE
from branchline.kafka.messages import encode_proposal
from branchline.kafka.reading import follow, open_topic, read_to_end
from branchline.kafka.topics import Topics
from branchline.routing.codes import Code
from branchline.routing.control import Status
from branchline.routing.overlay.letters import Propose
from branchline.routing.overlay.topology import Topology

ASK_AGAIN_S = 8.0
"""After so long without an answer a proposal is written again: longer than a batch of a young job."""

WRITE_TIMEOUT_S = 30.0


def newest_topology(cluster: Cluster, topics: Topics) -> Topology | None:
    """The newest topology that `filters` has; None if it has none."""
    newest: Topology | None = None
    for record in read_to_end(cluster, topics.filters, hint=NO_NAMESPACE):
        if record.key != TOPOLOGY_KEY:
            continue
        told = decode_recorded(record.value)
        # Jobs that lag, and batches that are run again, write older ones.
        if isinstance(told, Topology) and (newest is None or told.order > newest.order):
            newest = told
    return newest


def record_first(cluster: Cluster, topics: Topics, topology: Topology) -> None:
    """Let `filters` have the topology that brokers begin with, unless it has one: no message tells of it."""
    if newest_topology(cluster, topics) is None:
        key, value = encode_recorded(topology)
        _write(cluster, topics.filters, value, key)


def propose(cluster: Cluster, topics: Topics, topology: Topology, timeout_s: float) -> Topology:
    """Ask for the topology and wait until it stands; the newest, which is it or was built on it.

    Raises RequestRefused if it is refused or another operator's stands in its place.
    """
    request = uuid.uuid4().hex
    value = encode_proposal(Propose(topology, request))
    consumer = open_topic(cluster, topics.acks, from_beginning=False, hint=NO_ROUTER)
    try:
        answer = _answered(cluster, topics, value, request, consumer, timeout_s)
    finally:
        consumer.close()
    newest = newest_topology(cluster, topics)
    if newest == topology:
        # Also if it was refused: then it had been taken, and the answer was to a repeat.
        return topology
    if newest is not None and newest.number >= topology.number:
        if answer.status is not Status.REFUSED and newest.number > topology.number:
            return newest
        raise superseded(newest)
    if answer.status is Status.REFUSED:
        raise RequestRefused(f"refused: {answer.reason}", code=answer.code or "")
    raise WaitExpired(
        f"topology {topology.number} was accepted, and {topics.filters} does not have it",
        hint="look at `branchline topology` and `branchline status`",
    )


def superseded(newest: Topology) -> RequestRefused:
    """The error of an operator whose topology is not the one that stands."""
    return RequestRefused(
        f"another operator's topology {newest.number} stands; nothing was changed by this command",
        code=Code.TOPOLOGY_INVALID.value,
        hint="look at it with `branchline topology`, then give the command again",
    )


def _answered(
    cluster: Cluster, topics: Topics, value: bytes, request: str, consumer: Consumer, timeout_s: float
) -> Answer:
    begun = written = time.monotonic()
    write_control(cluster, topics, value)
    for record in follow(consumer):
        answer = decode_answer(record) if record is not None else None
        if answer is not None and answer.request == request:
            return answer
        now = time.monotonic()
        if now - begun > timeout_s:
            raise WaitExpired(
                f"nobody has answered the proposal after {timeout_s:g} s",
                hint=f"it is written and may still be taken; {NO_ROUTER}",
            )
        if now - written > ASK_AGAIN_S:
            written = now
            write_control(cluster, topics, value)
    raise AssertionError("follow has no end")


def write_control(cluster: Cluster, topics: Topics, value: bytes) -> None:
    """Write an operator's message to `control`."""
    _write(cluster, topics.control, value)


def _write(cluster: Cluster, topic: str, value: bytes | None, key: bytes | None = None) -> None:
    # As for requests: a repeat does no harm, so it need not pay for idempotence.
    producer = cluster.producer(
        message_timeout_ms=int(WRITE_TIMEOUT_S * 1000), enable_idempotence=False, acks="all"
    )
    failures: list[str] = []
    producer.produce(
        topic, value, key, on_delivery=lambda error, _: failures.append(error.str()) if error else None
    )
    if producer.flush(WRITE_TIMEOUT_S + 5) or failures:
        reason = failures[0] if failures else "no answer from Kafka"
        raise PublishFailed(f"{topic} did not take the message: {reason}", hint="check the cluster")
