"""Asking a home broker: requests go to `control`, answers come on `acks`; or on the subscriber's own."""

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import ConfigError, PublishFailed, RequestRefused, WaitExpired
from branchline.kafka.fields import UNFIT, integer, text
from branchline.kafka.jsontext import read_json
from branchline.kafka.messages import encode_request, number_from
from branchline.kafka.reading import follow, open_topic
from branchline.kafka.record import Record
from branchline.kafka.topics import Topics
from branchline.routing.control import ADVERTISING, Number, Request, Status

NO_ROUTER = (
    "is the router running? Start it with `branchline up` or `branchline router`; see `branchline status`"
)

WRITE_TIMEOUT_S = 30.0
"""For Kafka to take the requests."""

ANSWER_MAX_FIELDS = 1_000_000
"""Leaf fields of an answer: an explanation may have many, and its bytes are bounded by Kafka."""

_SAID = ("code", "reason", "note")


@dataclass(frozen=True, slots=True)
class Answer:
    """An ack as its asker sees it."""

    status: Status
    subscriber: str
    id: str
    request: str
    number: Number | None = None
    code: str | None = None
    reason: str | None = None
    line: int | None = None
    column: int | None = None
    note: str | None = None

    def raise_if_refused(self) -> None:
        """Turn a refusal into an error."""
        if self.status is Status.REFUSED:
            raise RequestRefused(
                f"refused: {self.reason}", code=self.code or "", line=self.line, column=self.column
            )


def ask(
    cluster: Cluster,
    topics: Topics,
    requests: Sequence[Request],
    wait: Status | None = Status.IN_FORCE,
    timeout_s: float = 30.0,
    progress: Callable[[int], None] = lambda answered: None,
    *,
    own: bool = False,
) -> list[Answer]:
    """Write the requests and wait for each to be refused, ended, or as far as `wait` says.

    Answers come in the order of the requests. With `wait` None nothing is waited for, and there are none.
    With `own`, all of them are one subscriber's, and are asked and answered on its own topics.
    """
    control, acks, hint = topics.control, topics.acks, NO_ROUTER
    if own:
        subscriber = one_subscriber(requests)
        control, acks = topics.own_control(subscriber), topics.own_acks(subscriber)
        hint = f"an operator makes it: branchline acl subscriber {subscriber} --principal User:NAME --apply"
    # Each has an id of its own, by which its answers are known and its repeats are harmless.
    named = [replace(request, request=request.request or uuid.uuid4().hex) for request in requests]
    consumer = open_topic(cluster, acks, from_beginning=False, hint=hint)
    try:
        _write(cluster, control, named)
        if wait is None:
            return []
        waiting = {request.request: request for request in named}
        answers: dict[str | None, Answer] = {}
        deadline = time.monotonic() + timeout_s
        for record in follow(consumer):
            answer = decode_answer(record) if record is not None else None
            asked = waiting.get(answer.request) if answer is not None else None
            if answer is not None and asked is not None and _settles(asked, answer, wait):
                answers[answer.request] = answer
                del waiting[answer.request]
                progress(len(answers))
            if not waiting:
                break
            if time.monotonic() > deadline:
                first = next(iter(waiting.values()))
                asker = "publisher" if first.operation in ADVERTISING else "subscriber"
                raise WaitExpired(
                    f"{len(waiting)} of {len(named)} requests not {wait} after {timeout_s:g} s, "
                    f"the first for {asker} {first.subscriber!r}, id {first.id or 'all'!r}",
                    hint=f"the requests are written and will be handled; {NO_ROUTER}",
                )
        return [answers[request.request] for request in named]
    finally:
        consumer.close()


def one_subscriber(requests: Sequence[Request]) -> str:
    """Whose the requests are; raises ConfigError if they are several subscribers'."""
    first, *others = sorted({request.subscriber for request in requests})
    if others:
        raise ConfigError(
            f"a subscriber speaks for itself alone on its own control topic, and these are for {first!r} and "
            f"{others[0]!r}",
            hint="leave out --own-control, or ask for each by itself",
        )
    return first


def decode_answer(record: Record) -> Answer | None:
    """The ack in a record, or None if it is not one that we can read."""
    fields = read_json(record.value or b"", ANSWER_MAX_FIELDS)
    if not isinstance(fields, dict):
        return None
    try:
        number = fields.get("number")
        line, column = (integer(fields[name]) if name in fields else None for name in ("line", "column"))
        code, reason, note = (text(fields[name]) if name in fields else None for name in _SAID)
        return Answer(
            Status(text(fields["status"])),
            text(fields.get("subscriber", fields.get("publisher", ""))),
            text(fields.get("id", "")),
            text(fields.get("request", "")),
            number_from(number) if number else None,
            code,
            reason,
            line,
            column,
            note,
        )
    except UNFIT:
        return None


def _settles(request: Request, answer: Answer, wait: Status) -> bool:
    if answer.status is Status.REPLACED:
        return False
    # Of the answers to a request for the end of all, the one that names none of them is the last.
    if request.all and answer.id:
        return False
    return answer.status is not Status.ACCEPTED or wait is Status.ACCEPTED


def _write(cluster: Cluster, control: str, requests: Sequence[Request]) -> None:
    # A request that is written twice does no harm, so it need not pay for idempotence: that costs half a
    # second before the first record. One in flight at a time keeps the order.
    producer = cluster.producer(
        message_timeout_ms=int(WRITE_TIMEOUT_S * 1000), enable_idempotence=False, acks="all", max_in_flight=1
    )
    failures: list[str] = []
    for request in requests:
        producer.produce(
            control,
            encode_request(request),
            request.subscriber,
            on_delivery=lambda error, _: failures.append(error.str()) if error else None,
        )
        producer.poll(0)
    left = producer.flush(WRITE_TIMEOUT_S + 5)
    if failures or left:
        reason = failures[0] if failures else "no answer from Kafka"
        raise PublishFailed(
            f"{left + len(failures)} requests were not written: {reason}", hint="check the cluster"
        )
