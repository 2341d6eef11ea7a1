"""From the records of one micro-batch to what the shard decides about, and what nobody can use.

Decoding never raises for a record: what cannot be read is set aside with its rejection. An event is read
where it enters. A copy that a broker passed on was read there, and what was found travels with it; so it is
read again only if somebody looks at its content.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from branchline.kafka import headers as bl
from branchline.kafka.events import Event, decode_event
from branchline.kafka.explaining import Asked
from branchline.kafka.letters import decode_letter
from branchline.kafka.messages import BadRequest, Tick, decode_control
from branchline.kafka.record import Place, Record
from branchline.kafka.speaking import spoken_by
from branchline.kafka.topics import OWN_CONTROL, Topics, is_name
from branchline.routing.codes import Code, Rejection
from branchline.routing.control import Request
from branchline.routing.overlay.dividing import Arrival
from branchline.routing.overlay.explaining import Explain
from branchline.routing.overlay.letters import Letter, Propose
from branchline.routing.prefix import telling
from branchline.routing.prefix.header import Header, decode
from branchline.routing.prefix.updates import Snapshot, Update
from branchline.routing.shard import Control, EventBatch
from branchline.routing.values import JsonValue


@dataclass(slots=True)
class Received:
    """An event as read, and where it was first published."""

    record: Record
    origin: Place
    _event: Event | Rejection | None = field(default=None, compare=False, repr=False)

    def read(self) -> Event | Rejection:
        """The event, decoded when this is asked for the first time."""
        if self._event is None:
            # A retried event is what it was: matched as published, with the time of that.
            self._event = decode_event(replace(self.record, place=self.origin))
        return self._event

    def attributes(self) -> dict[str, JsonValue] | Rejection:
        """What filters see, or why it cannot be read."""
        event = self.read()
        return event.attributes if isinstance(event, Event) else event


def received(arrival: Arrival) -> Received:
    """What an arrival that came through here is about."""
    assert isinstance(arrival.content, Received), "all arrivals of this job come from records"
    return arrival.content


@dataclass(slots=True)
class Intake:
    """One batch, decoded. Lists that belong together run in step."""

    updates: list[Update | Snapshot] = field(default_factory=list)
    control: list[Control] = field(default_factory=list)
    control_records: list[Record] = field(default_factory=list)
    bad_control: list[tuple[Record, BadRequest]] = field(default_factory=list)
    """What was written to `control`, or to a subscriber's own, and is no request there."""
    bad_told: list[tuple[Record, Rejection]] = field(default_factory=list)
    """Letters and updates of the tree that cannot be read; nobody waits for an answer."""
    at: list[str] = field(default_factory=list)
    """The brokers that the events are at."""
    arrivals: list[Arrival] = field(default_factory=list)
    bad_events: list[tuple[Arrival, Rejection]] = field(default_factory=list)
    bad_headers: list[tuple[Arrival, Rejection]] = field(default_factory=list)
    """Events that go on as if they entered here, because what came with them could not be read."""
    opaque: int = 0

    def events(self) -> EventBatch:
        """The accepted events as columns."""
        return EventBatch(self.at, self.arrivals)


def read_batch(topics: Topics, control: Iterable[Record], events: Iterable[Record]) -> Intake:
    """Decode a batch; the order within control and within events is kept."""
    intake = Intake()
    for record in control:
        message = _read_control(topics, record)
        if isinstance(message, BadRequest):
            intake.bad_control.append((record, message))
        elif isinstance(message, Rejection):
            intake.bad_told.append((record, message))
        elif isinstance(message, Update | Snapshot):
            intake.updates.append(message)
        elif not isinstance(message, Tick):
            intake.control.append(message)
            intake.control_records.append(record)
    for record in events:
        _read_event(topics, record, intake)
    return intake


def _read_control(
    topics: Topics, record: Record
) -> Request | Propose | Explain | Tick | BadRequest | Letter | Update | Snapshot | Rejection:
    own = topics.kind(record.place.topic) is OWN_CONTROL
    if own or record.place.topic == topics.control:
        message = decode_control(record.value)
        if own:
            # Who wrote it is what the topic says, whatever the message does.
            message = spoken_by(topics.named(record.place.topic) or "", message)
        return question(message) if isinstance(message, Asked) else message
    if record.place.topic == topics.rt_updates:
        return telling.decode(record.value or b"") or Rejection(
            Code.CONTROL_INVALID, "not an update of the Routing Tree as we write it"
        )
    return decode_letter(_broker(record), record.value)


def question(asked: Asked) -> Explain:
    """What is asked about an event, as routing takes it: the event is read as it would be if it came."""
    return Explain(
        asked.broker,
        Received(asked.record, asked.record.place),
        asked.header,
        asked.sender,
        asked.subscriber,
        asked.follow,
        asked.request,
    )


def _read_event(topics: Topics, record: Record, intake: Intake) -> None:
    if record.place.topic.startswith(topics.broker("")):
        arrival, fault = _passed_on(record, intake)
    else:
        arrival, fault = Arrival(Received(record, record.place)), None
    content = received(arrival)
    if fault is None and arrival.header is None:
        event = content.read()
        fault = event if isinstance(event, Rejection) else None
        intake.opaque += isinstance(event, Event) and event.opaque
    if fault is not None:
        intake.bad_events.append((arrival, fault))
    else:
        intake.at.append(_broker(record))
        intake.arrivals.append(arrival)


def _passed_on(record: Record, intake: Intake) -> tuple[Arrival, Rejection | None]:
    """A record that one of our own processes wrote: here alone are headers of ours believed."""
    header = _header(record)
    only = bl.text(record.headers, bl.ONLY)
    origin = bl.read_place(bl.text(record.headers, bl.ORIGIN) or "")
    content = Received(record, record.place if origin is None else origin)
    is_for = only if only is None or is_name(only) else None
    arrival = Arrival(content, None if isinstance(header, Rejection) else header, is_for)
    if isinstance(header, Rejection):
        intake.bad_headers.append((arrival, header))
    if origin is None:
        return arrival, Rejection(
            Code.ORIGIN_INVALID, f"a record on {record.place.topic} needs a {bl.ORIGIN} header as we write it"
        )
    if is_for != only:
        # It is for somebody, and we cannot know for whom: it is kept for all.
        return arrival, Rejection(Code.HEADER_INVALID, f"the {bl.ONLY} header names no subscriber")
    return arrival, None


def _header(record: Record) -> Header | Rejection | None:
    """What the broker before told; None if there was none before."""
    told = bl.values(record.headers, bl.PREFIX)
    if not told:
        return None
    header = decode(told[0]) if len(told) == 1 and told[0] is not None else None
    return header or Rejection(
        Code.HEADER_INVALID, f"the {bl.PREFIX} header is not as we write it; the event is matched afresh"
    )


def _broker(record: Record) -> str:
    """The broker whose topic it is: a name without dots."""
    return record.place.topic.rpartition(".")[2]
