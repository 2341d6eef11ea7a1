"""Asking a broker to refresh its table: written to `control`, answered on `acks` when all have replied.

No broker looks at a clock for it. Whoever asks does: when its time is over it writes that the broker is to
wait no longer, and the answer then says who did not reply.
"""

import time
import uuid

from confluent_kafka import Consumer

from branchline.kafka.asking import NO_ROUTER, Answer, decode_answer
from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import WaitExpired
from branchline.kafka.messages import encode_refresh
from branchline.kafka.proposing import write_control
from branchline.kafka.reading import follow, open_topic
from branchline.kafka.topics import Topics
from branchline.routing.control import Status
from branchline.routing.overlay.letters import Refresh

GIVEN_UP_WITHIN_S = 15.0
"""For the broker to answer once it waits no longer: a batch or two of a busy job."""


def refresh(
    cluster: Cluster, topics: Topics, broker: str, timeout_s: float, *, give_up: bool = False
) -> Answer:
    """Ask the broker, and give up after the time-out; its answer. With `give_up`, do only that."""
    asked = Refresh(broker, int(timeout_s * 1000), uuid.uuid4().hex, give_up)
    final = Status.ACCEPTED if give_up else Status.REFRESHED
    consumer = open_topic(cluster, topics.acks, from_beginning=False, hint=NO_ROUTER)
    try:
        write_control(cluster, topics, encode_refresh(asked))
        answer = _answered(consumer, asked, final, timeout_s)
        if answer is None and not give_up:
            write_control(cluster, topics, encode_refresh(Refresh(broker, 0, give_up=True)))
            answer = _answered(consumer, asked, final, GIVEN_UP_WITHIN_S)
    finally:
        consumer.close()
    if answer is None:
        raise WaitExpired(f"{broker} has not answered after {timeout_s:g} s", hint=NO_ROUTER)
    answer.raise_if_refused()
    return answer


def _answered(consumer: Consumer, asked: Refresh, final: Status, timeout_s: float) -> Answer | None:
    """The last answer, or a refusal; None if it does not come in time."""
    deadline = time.monotonic() + timeout_s
    for record in follow(consumer):
        answer = decode_answer(record) if record is not None else None
        if (
            answer is not None
            and answer.request == asked.request
            and answer.status in (final, Status.REFUSED)
        ):
            return answer
        if time.monotonic() > deadline:
            return None
    raise AssertionError("follow has no end")
