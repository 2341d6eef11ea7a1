"""Events as they arrive: what was read of a record, and when it is read.

An arrival is made of its record when somebody looks at it. So a batch whose events stay columns makes none.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, overload

from branchline.kafka import headers as bl
from branchline.kafka.event_columns import EventColumns
from branchline.kafka.events import Event, decode_event
from branchline.kafka.record import Place, Record
from branchline.kafka.topics import is_name
from branchline.routing.codes import Code, Rejection
from branchline.routing.overlay.dividing import Arrival
from branchline.routing.prefix.header import Header, decode
from branchline.routing.values import JsonValue

if TYPE_CHECKING:  # compiled loops are imported when the first batch needs them
    from branchline.kafka.passed_on import PassedOn


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


@dataclass(slots=True)
class Came:
    """What is known of copies that were read together."""

    place: dict[int, int] = field(default_factory=dict)
    """By the index of an arrival, where in the columns below it stands."""
    origins: list[str] = field(default_factory=list)
    timestamps_ms: list[int] = field(default_factory=list)
    """Of the origins."""
    foreign: list[bytes] = field(default_factory=list)
    """Cells of foreign headers."""

    def add(self, index: Sequence[int], read: "PassedOn") -> None:
        """These have come, under these indexes."""
        self.place.update(zip(index, range(len(self.origins), len(self.origins) + len(index)), strict=True))
        self.origins += read.origins
        self.timestamps_ms += read.timestamps.tolist()
        self.foreign += read.foreign


class Arrivals(Sequence[Arrival]):
    """The arrivals of a batch, each made when somebody looks at it."""

    def __init__(self, columns: EventColumns | None = None) -> None:
        self._columns = columns or EventColumns()
        self.rows: list[int] = []
        """Which row of the columns each stands in."""
        self.made: dict[int, Arrival] = {}
        self.came = Came()

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
            if index in self.came.place:
                found = read_passed(record).arrival
            else:
                found = Arrival(Received(record, record.place))
            self.made[index] = found
        return found


class Passed(NamedTuple):
    """A record that one of our own processes wrote, as it was read."""

    arrival: Arrival
    bad_header: Rejection | None
    """Why what came with it could not be read, if it could not."""
    fault: Rejection | None
    """Why it is nothing that one of ours should have written, if it is not."""


def read_passed(record: Record) -> Passed:
    """A record that one of our own processes wrote: here alone are headers of ours believed."""
    header = _header(record)
    only = bl.text(record.headers, bl.ONLY)
    origin = bl.read_place(bl.text(record.headers, bl.ORIGIN) or "")
    content = Received(record, record.place if origin is None else origin)
    is_for = only if only is None or is_name(only) else None
    bad = header if isinstance(header, Rejection) else None
    arrival = Arrival(content, None if isinstance(header, Rejection) else header, is_for)
    fault = None
    if origin is None:
        fault = Rejection(
            Code.ORIGIN_INVALID, f"a record on {record.place.topic} needs a {bl.ORIGIN} header as we write it"
        )
    elif is_for != only:
        # It is for somebody, and we cannot know for whom: it is kept for all.
        fault = Rejection(Code.HEADER_INVALID, f"the {bl.ONLY} header names no subscriber")
    return Passed(arrival, bad, fault)


def _header(record: Record) -> Header | Rejection | None:
    """What the broker before told; None if there was none before."""
    told = bl.values(record.headers, bl.PREFIX)
    if not told:
        return None
    header = decode(told[0]) if len(told) == 1 and told[0] is not None else None
    return header or Rejection(
        Code.HEADER_INVALID, f"the {bl.PREFIX} header is not as we write it; the event is matched afresh"
    )
