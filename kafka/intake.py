"""From the records of one micro-batch to what the shard decides about, and what nobody can use.

Decoding never raises for a record: what cannot be read is set aside with its rejection.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from branchline.kafka import headers as bl
from branchline.kafka.events import Event, decode_event
from branchline.kafka.messages import BadRequest, decode_change, decode_request
from branchline.kafka.record import Place, Record
from branchline.kafka.topics import Topics
from branchline.routing.codes import Code, Rejection
from branchline.routing.control import Change, Request
from branchline.routing.shard import EventBatch
from branchline.routing.values import JsonValue


@dataclass(frozen=True, slots=True)
class Arrival:
    """An event as read, where it was first published, and the one subscriber it is for (None: all)."""

    record: Record
    origin: Place
    only: str | None


@dataclass(slots=True)
class Intake:
    """One batch, decoded. Lists that belong together run in step."""

    control: list[Request | Change] = field(default_factory=list)
    control_records: list[Record] = field(default_factory=list)
    bad_control: list[tuple[Record, BadRequest]] = field(default_factory=list)
    attributes: list[dict[str, JsonValue]] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)
    bad_events: list[tuple[Arrival, Rejection]] = field(default_factory=list)
    opaque: int = 0

    def events(self) -> EventBatch:
        """The accepted events as columns."""
        return EventBatch(self.attributes, [arrival.only for arrival in self.arrivals])


def read_batch(topics: Topics, control: Iterable[Record], events: Iterable[Record]) -> Intake:
    """Decode a batch; the order within control and within events is kept."""
    intake = Intake()
    for record in control:
        message = _read_control(topics, record)
        if isinstance(message, BadRequest):
            intake.bad_control.append((record, message))
        else:
            intake.control.append(message)
            intake.control_records.append(record)
    for record in events:
        arrival, fault = _arrival(topics, record)
        # A retried event is what it was: matched as published, with the time of that.
        event = fault or decode_event(replace(record, place=arrival.origin))
        if isinstance(event, Event):
            intake.arrivals.append(arrival)
            intake.attributes.append(event.attributes)
            intake.opaque += event.opaque
        else:
            intake.bad_events.append((arrival, event))
    return intake


def _read_control(topics: Topics, record: Record) -> Request | Change | BadRequest:
    if record.place.topic == topics.control:
        return decode_request(record.value)
    change = decode_change(record.value)
    return BadRequest(change) if isinstance(change, Rejection) else change


def _arrival(topics: Topics, record: Record) -> tuple[Arrival, Rejection | None]:
    if not record.place.topic.startswith(topics.broker("")):
        return Arrival(record, record.place, None), None
    # Only our own processes write here, so here alone are headers of ours believed.
    only = bl.text(record.headers, bl.ONLY)
    origin = bl.read_place(bl.text(record.headers, bl.ORIGIN) or "")
    if origin is not None:
        return Arrival(record, origin, only), None
    return Arrival(record, record.place, only), Rejection(
        Code.ORIGIN_INVALID, f"a record on {record.place.topic} needs a {bl.ORIGIN} header as we write it"
    )
