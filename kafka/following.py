"""Following a real event: each job is asked what it would do with it, until all copies are followed.

`follow_event` decides whom to ask next, and takes the asking itself from outside; `Jobs` asks on Kafka.
"""

import json
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from types import TracebackType
from typing import Self, TypeAlias

from confluent_kafka import Consumer, Producer

from branchline.kafka.asking import NO_ROUTER, WRITE_TIMEOUT_S
from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import (
    BranchlineError,
    ConfigError,
    PublishFailed,
    RequestRefused,
    WaitExpired,
)
from branchline.kafka.events import decode_event
from branchline.kafka.explaining import (
    EXPLAIN,
    EXPLAIN_MAX_BYTES,
    Asked,
    encode_asked,
    explained_from_fields,
)
from branchline.kafka.fields import UNFIT
from branchline.kafka.reading import follow, open_topic
from branchline.kafka.record import Record
from branchline.kafka.topics import Topics
from branchline.routing.codes import Rejection
from branchline.routing.limits import HOPS_MAX
from branchline.routing.overlay.explaining import Explained, Explanation, joined
from branchline.routing.overlay.hops import Hop

Ask: TypeAlias = Callable[[str | None, Sequence[Asked]], Sequence[Explained | str]]
"""Asks the jobs on a cluster, by its name or (None) where the first question was asked. An answer for each
question in its order, or a text that says why there is none."""

Homes: TypeAlias = Callable[[], Iterable[tuple[str, str | None]]]
"""Where else the homes of the subscriber can be looked up, with their clusters."""


@dataclass(slots=True)
class _Way:
    """What is known so far of an event's way."""

    ask: Ask
    record: Record
    subscriber: str | None
    answers: list[Explained] = field(default_factory=list)
    unasked: dict[str, str] = field(default_factory=dict)

    def go(self, asked: Iterable[tuple[str | None, Asked]]) -> list[tuple[str | None, Asked]]:
        """Ask, all questions for one cluster at once; what is to be asked next."""
        onward: list[tuple[str | None, Asked]] = []
        in_order = sorted(asked, key=lambda each: each[0] or "")
        for cluster, group in groupby(in_order, key=lambda each: each[0]):
            questions = [question for _, question in group]
            for question, answer in zip(questions, self.ask(cluster, questions), strict=True):
                if isinstance(answer, Explained) and answer.refused is None:
                    self.answers.append(answer)
                    onward += self.onward(answer)
                else:
                    refused = answer.refused if isinstance(answer, Explained) else None
                    self.unasked.setdefault(question.broker, refused.reason if refused else str(answer))
        return onward

    def onward(self, answer: Explained) -> list[tuple[str | None, Asked]]:
        return [
            (
                self.name(each.cluster),
                Asked(each.to, self.record, each.header, each.sender, self.subscriber),
            )
            for each in answer.onward
        ]

    def name(self, cluster: str | None) -> str | None:
        """The cluster as `ask` knows it: the first that answered has no name there."""
        return None if cluster == self.answers[0].cluster else cluster


def follow_event(ask: Ask, first: Asked, homes: Homes = tuple) -> Explanation:
    """Ask about the event where it is, then wherever it goes on, and last at the homes of the subscriber.

    That the first question is not answered is an error; what else cannot be asked is told.
    """
    way = _Way(ask, first.record, first.subscriber)
    [answer] = ask(None, [first])
    if isinstance(answer, str):
        raise WaitExpired(answer, hint="see `branchline status`")
    if answer.refused is not None:
        raise RequestRefused(f"refused: {answer.refused.reason}", code=answer.refused.code)
    way.answers.append(answer)
    pending = way.onward(answer)
    for _ in range(HOPS_MAX):
        pending = way.go(pending)
    for _, question in pending:
        way.unasked.setdefault(question.broker, "it was asked about too often")
    if first.subscriber is not None and not any(each.delivered for each in way.answers):
        told = {home: way.name(cluster) for each in way.answers for home, cluster in each.homes}
        if not told:
            told = {home: None if cluster is None else way.name(cluster) for home, cluster in homes()}
        heard = {denial.subscription.home for each in way.answers for denial in each.denials}
        way.go(
            (cluster, replace(first, broker=home, header=None, sender=None, follow=False))
            for home, cluster in sorted(told.items())
            if home not in heard
        )
    return joined(way.answers, first.subscriber, way.unasked.items())


def unaskable(asked: Asked) -> Explanation | None:
    """The explanation of an event that is too large to ask about: it is none, as jobs would read it."""
    size = len(encode_asked(asked))
    if size <= EXPLAIN_MAX_BYTES:
        return None
    event = decode_event(asked.record)
    if not isinstance(event, Rejection):
        raise ConfigError(
            f"the question would have {size} bytes; the limit is {EXPLAIN_MAX_BYTES}",
            hint="the event's key or headers are too large to ask about it",
        )
    why = f"rejected ({event.code}): {event.reason}"
    hop = Hop(asked.broker, None, None, (), "it is read, and is no event", stopped=why)
    return Explanation((hop,), asked.subscriber, None if asked.subscriber is None else False)


class Jobs:
    """The jobs on several clusters, as those who can be asked. Use it as a context manager."""

    def __init__(
        self,
        first: Cluster,
        topics: Topics,
        clusters: Mapping[str, Cluster],
        timeout_s: float = 30.0,
        progress: Callable[[str], None] = lambda what: None,
    ) -> None:
        self._first, self._clusters, self._topics = first, clusters, topics
        self._timeout_s, self._progress = timeout_s, progress
        self._lines: dict[str | None, tuple[Consumer, Producer]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for consumer, _ in self._lines.values():
            consumer.close()

    def ask(self, cluster: str | None, asked: Sequence[Asked]) -> list[Explained | str]:
        """An `Ask`. Where the first question is asked, what goes wrong is an error; elsewhere it is told."""
        where = self._first if cluster is None else self._clusters.get(cluster)
        if where is None:
            return [f"the cluster {cluster!r} is not known here; name it in --clusters"] * len(asked)
        self._progress(f"asking at {where.bootstrap} about {', '.join(each.broker for each in asked)}")
        try:
            return self._ask(cluster, where, asked)
        except BranchlineError as error:
            if cluster is None:
                raise
            return [str(error)] * len(asked)

    def _ask(self, name: str | None, where: Cluster, asked: Sequence[Asked]) -> list[Explained | str]:
        named = [replace(each, request=uuid.uuid4().hex) for each in asked]
        consumer, producer = self._line(name, where)
        failures: list[str] = []
        for each in named:
            producer.produce(
                self._topics.control,
                encode_asked(each),
                EXPLAIN,
                on_delivery=lambda error, _: failures.append(error.str()) if error else None,
            )
        if producer.flush(WRITE_TIMEOUT_S + 5) or failures:
            reason = failures[0] if failures else "no answer from Kafka"
            raise PublishFailed(f"the question was not written: {reason}", hint="check the cluster")
        answers: dict[str | None, Explained] = {}
        wanted = {each.request for each in named}
        deadline = time.monotonic() + self._timeout_s
        for record in follow(consumer):
            answer = _answer(record) if record is not None else None
            if answer is not None and answer.request in wanted:
                answers.setdefault(answer.request, answer)
            if len(answers) == len(wanted) or time.monotonic() > deadline:
                break
        silent = f"no job answered within {self._timeout_s:g} s; {NO_ROUTER}"
        return [answers.get(each.request, silent) for each in named]

    def _line(self, name: str | None, where: Cluster) -> tuple[Consumer, Producer]:
        if name not in self._lines:
            # Opened before anything is asked, so that no answer is missed.
            consumer = open_topic(where, self._topics.acks, from_beginning=False, hint=NO_ROUTER)
            producer = where.producer(
                message_timeout_ms=int(WRITE_TIMEOUT_S * 1000), enable_idempotence=False, acks="all"
            )
            self._lines[name] = (consumer, producer)
        return self._lines[name]


def _answer(record: Record) -> Explained | None:
    """The answer in an ack, None if it is another one or cannot be read."""
    try:
        return explained_from_fields(json.loads(record.value or b""))
    except (*UNFIT, AttributeError):
        return None
