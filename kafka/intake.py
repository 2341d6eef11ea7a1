"""From the records of one micro-batch to what the shard decides about, and what nobody can use.

Decoding never raises for a record: what cannot be read is set aside with its rejection. Events stay
columns: those that enter are scanned where their bytes lie, once the shard says for which attributes
(`scanning.py`). A copy that a broker passed on was read where it entered, and what was found travels with it;
so it is read again only if somebody looks at its content.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, overload

from branchline.kafka import headers as bl
from branchline.kafka.event_columns import EventColumns
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

if TYPE_CHECKING:  # compiled loops are imported when the first batch needs them
    from branchline.kafka.scanning import Read
    from branchline.routing.compiled.paths import Paths


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

    def known(self, event: Event) -> None:
        """The event, as somebody else has decoded it."""
        self._event = event

    def is_opaque(self) -> bool:
        """Whether it was read, and has a payload that filters cannot see."""
        return isinstance(self._event, Event) and self._event.opaque

    def attributes(self) -> dict[str, JsonValue] | Rejection:
        """What filters see, or why it cannot be read."""
        event = self.read()
        return event.attributes if isinstance(event, Event) else event


def received(arrival: Arrival) -> Received:
    """What an arrival that came through here is about."""
    assert isinstance(arrival.content, Received), "all arrivals of this job come from records"
    return arrival.content


class Arrivals(Sequence[Arrival]):
    """The arrivals of a batch, each made when somebody looks at it."""

    def __init__(self, columns: EventColumns | None = None) -> None:
        self._columns = columns or EventColumns()
        self.rows: list[int] = []
        """Which row of the columns each stands in."""
        self.made: dict[int, Arrival] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Arrivals) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    @overload
    def __getitem__(self, index: int) -> Arrival: ...

    @overload
    def __getitem__(self, index: slice) -> list[Arrival]: ...

    def __getitem__(self, index: int | slice) -> Arrival | list[Arrival]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        found = self.made.get(index)
        if found is None:
            record = self._columns.record(self.rows[index])
            found = self.made[index] = Arrival(Received(record, record.place))
        return found


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
    columns: EventColumns = field(default_factory=EventColumns)
    at: list[str] = field(default_factory=list)
    """The brokers that the events are at."""
    arrivals: Arrivals = field(default_factory=Arrivals)
    entering: dict[str, list[int]] = field(default_factory=dict)
    """For each broker, the indexes of the events that publishers wrote."""
    bad_events: list[tuple[Arrival, Rejection]] = field(default_factory=list)
    """Those that one of our own processes should have written, and did not."""
    bad_headers: list[tuple[Arrival, Rejection]] = field(default_factory=list)
    """Events that go on as if they entered here, because what came with them could not be read."""
    scans: "list[Read]" = field(default_factory=list)
    scanned: set[int] = field(default_factory=set)
    """The indexes of the events that were scanned."""

    def events(self) -> EventBatch:
        """The events as columns."""
        return EventBatch(self.at, self.arrivals, self.entering, self.scan)

    def scan(self, paths: "Paths", indexes: Sequence[int]) -> "Read":
        """Scan entering events for these paths."""
        from branchline.kafka.scanning import Scanner

        rows = [self.arrivals.rows[each] for each in indexes]
        found = Scanner(paths).scan(self.columns.chosen(rows))
        self.scans.append(found)
        self.scanned.update(indexes)
        for number, event in found.events.items():
            content = received(self.arrivals[indexes[number]])
            content.known(event)
        return found

    @property
    def opaque(self) -> int:
        """How many events were read so far whose payload filters cannot see."""
        others = (each for index, each in self.arrivals.made.items() if index not in self.scanned)
        read = sum(received(arrival).is_opaque() for arrival in others)
        return read + sum(int(each.opaque.sum()) for each in self.scans)


def read_batch(topics: Topics, control: Iterable[Record], events: EventColumns | Iterable[Record]) -> Intake:
    """Decode a batch; the order within control and within events is kept."""
    columns = events if isinstance(events, EventColumns) else EventColumns.of(events)
    intake = Intake(columns=columns, arrivals=Arrivals(columns))
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
    passed_on = topics.broker("")
    for row, topic in enumerate(columns.topics):
        index, name = len(intake.at), _broker(topic)
        if topic.startswith(passed_on):
            arrival, fault = _passed_on(columns.record(row), intake)
            if fault is not None:
                intake.bad_events.append((arrival, fault))
                continue
            intake.arrivals.made[index] = arrival
        else:
            intake.entering.setdefault(name, []).append(index)
        intake.at.append(name)
        intake.arrivals.rows.append(row)
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
    return decode_letter(_broker(record.place.topic), record.value)


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


def _broker(topic: str) -> str:
    """The broker whose topic it is: a name without dots."""
    return topic.rpartition(".")[2]
