"""A client that knows the fixed sets of homes, and claims where the filters of its subscriptions go in them.

A set is asked for when it is first needed, and again when it was known for a while: what is claimed of an old
one is of no use to the home, and does no harm.
"""

import time
import uuid
from dataclasses import dataclass, field, replace

from branchline.kafka.asking import NO_ROUTER, WRITE_TIMEOUT_S, decode_answer
from branchline.kafka.claiming import decode_given, encode_ask_set
from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import ConfigError, PublishFailed, WaitExpired
from branchline.kafka.messages import encode_request
from branchline.kafka.reading import follow, open_topic
from branchline.kafka.topics import Topics
from branchline.routing.compiling import Compiled, compile_filter
from branchline.routing.control import Request
from branchline.routing.dissemination.summaries import hides
from branchline.routing.limits import CONTROL_MAX_BYTES
from branchline.routing.offloading.assisting import AskSet
from branchline.routing.offloading.client import claimed
from branchline.routing.offloading.messages import Assignment

KNOWN_FOR_S = 60.0
"""How long a set is used before it is asked for again."""


@dataclass(slots=True)
class FixedSets:
    """What one client knows."""

    cluster: Cluster
    topics: Topics
    own: bool = False
    known_for_s: float = KNOWN_FOR_S
    _known: dict[str, tuple[float, Assignment]] = field(default_factory=dict)

    def claiming(self, request: Request, timeout_s: float = 30.0) -> Request:
        """The request to subscribe, with claims if its home has given out a set.

        Raises RequestRefused if the home gives out none. A filter that cannot be read is left to the home.
        """
        if request.home is None:
            raise ConfigError("who claims where a filter goes needs a home", hint="name it: --home main")
        compiled = compile_filter(request.spelling, request.filter)
        if not isinstance(compiled, Compiled):
            return request
        assignment = self._set_of(request.home, request.subscriber, timeout_s)
        claiming = replace(request, claimed=claimed(assignment, compiled.cover, hides))
        return claiming if len(encode_request(claiming)) <= CONTROL_MAX_BYTES else request

    def _set_of(self, home: str, subscriber: str, timeout_s: float) -> Assignment:
        since_s, known = self._known.get(home, (float("-inf"), None))
        if known is None or time.monotonic() - since_s > self.known_for_s:
            known = self._ask(AskSet(subscriber, home, uuid.uuid4().hex), timeout_s)
            self._known[home] = time.monotonic(), known
        return known

    def _ask(self, asked: AskSet, timeout_s: float) -> Assignment:
        topics, subscriber = self.topics, asked.subscriber
        control = topics.own_control(subscriber) if self.own else topics.control
        acks = topics.own_acks(subscriber) if self.own else topics.acks
        consumer = open_topic(self.cluster, acks, from_beginning=False, hint=NO_ROUTER)
        try:
            self._write(control, asked)
            deadline_s = time.monotonic() + timeout_s
            for record in follow(consumer):
                if record is not None:
                    given = decode_given(record, asked.request or "")
                    if given is not None:
                        return given
                    answer = decode_answer(record)
                    if answer is not None and answer.request == asked.request:
                        answer.raise_if_refused()
                if time.monotonic() > deadline_s:
                    break
            raise WaitExpired(f"{asked.home!r} has told no fixed set after {timeout_s:g} s", hint=NO_ROUTER)
        finally:
            consumer.close()

    def _write(self, control: str, asked: AskSet) -> None:
        producer = self.cluster.producer(
            message_timeout_ms=int(WRITE_TIMEOUT_S * 1000), enable_idempotence=False, linger_ms=0
        )
        failures: list[str] = []
        producer.produce(
            control,
            encode_ask_set(asked),
            asked.subscriber,
            on_delivery=lambda error, _: failures.append(error.str()) if error else None,
        )
        if producer.flush(WRITE_TIMEOUT_S + 5) or failures:
            reason = failures[0] if failures else "no answer from Kafka"
            raise PublishFailed(f"nobody could be asked for a fixed set: {reason}", hint="check the cluster")
