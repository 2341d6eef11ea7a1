"""What a broker and the subscribers that work for it write to each other, as JSON (`docs/messages.md`).

A task comes on the volunteer's acks, and its answer goes back as a control message. Filters stand in the
binary form in which brokers tell them (`exchanges.py`). Reading is strict. What an answer claims is not a
matter of its form: the broker checks it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from branchline.kafka.exchanges import filters_from_text, filters_text
from branchline.kafka.fields import (
    FORMAT_VERSION,
    UNFIT,
    boolean,
    check_known,
    counted,
    dump,
    items,
    name,
    text,
)
from branchline.kafka.jsontext import read_json
from branchline.kafka.record import Record
from branchline.routing.control import Status
from branchline.routing.offloading.assisting import Answering, Assist
from branchline.routing.offloading.messages import Answer, Between, Indices, Listed, Task
from branchline.routing.offloading.offloader import Work

ASSIST, ANSWER = "assist", "answer"
"""The operations."""

ANSWER_MAX_BYTES = 128 * 1024
"""An answer: to a round of full size about a whole slice, with everything related to everything."""
TASK_MAX_BYTES = 900 * 1024
"""A task: less than what a Kafka record holds by default. What does not fit is not given to anybody."""
TASK_MAX_FIELDS = 1_000

ASSIST_FIELDS = {"version", "op", "subscriber", "home", "for_ms", "stop", "request"}
ANSWER_FIELDS = {"version", "op", "subscriber", "home", "round", "slice", "above", "below", "order"}


def encode_assist(assist: Assist) -> bytes:
    """The control message of a subscriber that is ready to work, or is no longer."""
    return dump(
        {
            "version": FORMAT_VERSION,
            "op": ASSIST,
            "subscriber": assist.subscriber,
            "home": assist.home,
            "for_ms": assist.for_ms or None,
            "stop": True if not assist.for_ms else None,
            "request": assist.request,
        }
    )


def assist_from_fields(fields: Mapping[str, Any]) -> Assist:
    """The inverse; raises `UNFIT` on anything else."""
    check_known(fields, ASSIST_FIELDS)
    stops = "stop" in fields and boolean(fields["stop"])
    if stops == ("for_ms" in fields):
        raise ValueError('it takes either "for_ms" or "stop": true')
    for_ms = 0 if stops else counted(fields["for_ms"])
    if not stops and not for_ms:
        raise ValueError('"for_ms" is 0; "stop": true ends it')
    request = text(fields["request"]) if "request" in fields else None
    return Assist(name(fields["subscriber"]), name(fields["home"]), for_ms, request)


def encode_answering(done: Answering) -> bytes:
    """The control message of a subscriber that has done a task."""
    answer = done.answer
    return dump(
        {
            "version": FORMAT_VERSION,
            "op": ANSWER,
            "subscriber": answer.client,
            "home": done.home,
            "round": answer.round,
            "slice": answer.slice,
            **answer_fields(answer),
        }
    )


def answer_fields(answer: Answer) -> dict[str, Any]:
    """What an answer claims, as fields."""
    return {"above": answer.above, "below": answer.below, "order": answer.order}


def answering_from_fields(fields: Mapping[str, Any]) -> Answering:
    """The inverse; raises `UNFIT` on anything else."""
    check_known(fields, ANSWER_FIELDS)
    where = counted(fields["round"]), counted(fields["slice"]), name(fields["subscriber"])
    return Answering(Answer(*where, *claims_from_fields(fields)), name(fields["home"]))


def claims_from_fields(
    fields: Mapping[str, Any],
) -> tuple[tuple[Indices, ...], tuple[Indices, ...], tuple[Between, ...]]:
    """What an answer claims; raises `UNFIT` on anything else."""
    above, below = (tuple(_indices(each) for each in items(fields[part])) for part in ("above", "below"))
    return above, below, tuple(between_from(each) for each in items(fields["order"]))


def encode_work(work: Work, now_ms: int) -> bytes | None:
    """The record of a task; None if it has too many bytes for one."""
    task = work.dispatch.task
    encoded = dump(
        {
            "version": FORMAT_VERSION,
            "status": Status.TASK,
            "subscriber": work.dispatch.client,
            "home": work.home,
            "round": task.round,
            "slice": task.slice,
            "numbers": [each.number for each in task.table],
            "table": filters_text(each.filter for each in task.table),
            "batch": filters_text(task.batch),
            "at_ms": now_ms,
        }
    )
    return encoded if len(encoded) <= TASK_MAX_BYTES else None


def decode_task(record: Record, subscriber: str, home: str) -> Task | None:
    """The task for this subscriber in a record of acks; None if it is none that we can read."""
    fields = read_json(record.value or b"", TASK_MAX_FIELDS)
    if not isinstance(fields, dict) or fields.get("status") != Status.TASK:
        return None
    if (fields.get("subscriber"), fields.get("home")) != (subscriber, home):
        return None
    try:
        filters = filters_from_text(fields["table"])
        numbers: Sequence[int] = [counted(each) for each in items(fields["numbers"])]
        listed = tuple(map(Listed, numbers, filters))
        if len(numbers) != len(filters):
            return None
        return Task(
            counted(fields["round"]), counted(fields["slice"]), listed, filters_from_text(fields["batch"])
        )
    except UNFIT:
        return None


def _indices(value: Any) -> Indices:
    return tuple(counted(each) for each in items(value))


def between_from(value: Any) -> Between:
    """What is right above and right below; raises `UNFIT` on anything else."""
    above, below = items(value)
    return Between(_indices(above), _indices(below))
