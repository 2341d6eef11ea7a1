"""From what a shard decided to the records that say so, in the order in which they must be written.

Topics are made before anything is written to them; `filters` knows a subscription before it is
acknowledged; acks come last, when all else that this shard writes is safely written.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from branchline.kafka import headers as bl
from branchline.kafka.dead_letters import OWES_NOTHING, encode_dead_letter, owed_to
from branchline.kafka.intake import Arrival, Intake
from branchline.kafka.messages import BadRequest, encode_ack, encode_change
from branchline.kafka.record import Headers, Record
from branchline.kafka.topics import Topics
from branchline.routing.codes import Rejection
from branchline.routing.control import Ack, Request, Status
from branchline.routing.shard import Outputs


class Step(IntEnum):
    """What to do with a dispatch, in the order in which they come."""

    CREATE = 0
    """Make the topic, if it is not there."""
    WRITE = 1
    ACK = 2
    """Write, but only after everything before is safely written."""


@dataclass(frozen=True, slots=True)
class Dispatch:
    """One thing to be done at Kafka; `id` is that of a delivery, and becomes its header."""

    step: Step
    topic: str
    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = ()
    id: str | None = None


def dispatch(
    topics: Topics, broker: str, leads: bool, now_ms: int, intake: Intake, outputs: Outputs
) -> Iterator[Dispatch]:
    """All that one batch of one shard has to be written."""
    for subscriber in outputs.subscribers:
        yield Dispatch(Step.CREATE, topics.out(subscriber))
    for change in outputs.filters:
        yield Dispatch(Step.WRITE, topics.filters, *encode_change(change))
    yield from _deliveries(topics, intake, outputs)
    for arrival, rejection in intake.bad_events:
        yield _dead_event(topics, arrival, rejection, arrival.only)
    for undecided in outputs.undecided:
        arrival = intake.arrivals[undecided.event]
        yield _dead_event(topics, arrival, undecided.rejection, undecided.subscriber)
    if leads:
        yield from _control_answers(topics, broker, now_ms, intake, outputs)


def _deliveries(topics: Topics, intake: Intake, outputs: Outputs) -> Iterator[Dispatch]:
    event = -1
    headers: Headers = ()
    for delivery in outputs.deliveries:
        arrival = intake.arrivals[delivery.event]
        if delivery.event != event:
            event, headers = delivery.event, bl.foreign(arrival.record.headers)
        yield Dispatch(
            Step.WRITE,
            topics.out(delivery.subscriber),
            arrival.record.key,
            arrival.record.value,
            headers,
            bl.delivery_id(arrival.origin, delivery.subscriber),
        )


def _control_answers(
    topics: Topics, broker: str, now_ms: int, intake: Intake, outputs: Outputs
) -> Iterator[Dispatch]:
    bad = list(intake.bad_control)
    bad += [(intake.control_records[index], BadRequest(why)) for index, why in outputs.unusable]
    for record, request in bad:
        letter = encode_dead_letter(record, request.rejection, OWES_NOTHING)
        yield Dispatch(Step.WRITE, topics.dead_letters, *letter)
    for ack in outputs.acks:
        yield _answer(topics, intake.control_records[ack.index], ack, now_ms)
    for record, request in bad:
        if record.place.topic == topics.control:
            refused = Ack(
                -1,
                Status.REFUSED,
                request.subscriber,
                request.id,
                broker,
                request=request.request,
                rejection=request.rejection,
            )
            yield _answer(topics, record, refused, now_ms)


def _answer(topics: Topics, record: Record, ack: Ack, now_ms: int) -> Dispatch:
    key = ack.subscriber.encode() if ack.subscriber is not None else None
    return Dispatch(Step.ACK, topics.acks, key, encode_ack(ack, record.place, now_ms))


def _dead_event(topics: Topics, arrival: Arrival, rejection: Rejection, subscriber: str | None) -> Dispatch:
    letter = encode_dead_letter(arrival.record, rejection, owed_to(subscriber), arrival.origin)
    return Dispatch(Step.WRITE, topics.dead_letters, *letter)


def count(intake: Intake, outputs: Outputs, leads: bool) -> dict[str, int]:
    """What happened in the batch, for statistics; control is counted by the leading shard alone."""
    bad_requests = len(intake.bad_control) if leads else 0
    requests = sum(isinstance(message, Request) for message in intake.control) if leads else 0
    return {
        "accepted": len(intake.arrivals),
        "opaque": intake.opaque,
        "rejected": len(intake.bad_events),
        "delivered": len(outputs.deliveries),
        "undecided": len(outputs.undecided),
        "requests": requests + bad_requests,
        "refused": sum(ack.status is Status.REFUSED for ack in outputs.acks) + bad_requests,
        "content_matches": len(intake.arrivals),
        "exact_checks": outputs.exact_checks,
    }
