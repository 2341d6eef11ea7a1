"""From the records of one micro-batch to what the shard decides about, and what nobody can use.

Decoding never raises for a record: what cannot be read is set aside with its rejection. Events stay
columns: those that enter are scanned where their bytes lie, once the shard says for which attributes
(`scanning.py`). A copy that a broker passed on was read where it entered, and what was found travels with it;
so it is read again only if somebody looks at its content. Many such copies are read as columns too
(`passed_on.py`), but for those that have anything unusual.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from branchline.kafka.arrivals import Arrivals, Received, read_passed, received
from branchline.kafka.event_columns import EventColumns
from branchline.kafka.explaining import Asked
from branchline.kafka.letters import decode_letter
from branchline.kafka.messages import BadRequest, Tick, decode_control
from branchline.kafka.record import Record
from branchline.kafka.speaking import spoken_by
from branchline.kafka.topics import OWN_CONTROL, Topics
from branchline.routing.codes import Code, Rejection
from branchline.routing.overlay.dividing import Arrival
from branchline.routing.overlay.explaining import Explain
from branchline.routing.prefix import telling
from branchline.routing.prefix.updates import Snapshot, Update
from branchline.routing.shard import Control, EventBatch

if TYPE_CHECKING:  # compiled loops are imported when the first batch needs them
    from branchline.kafka.scanning import Read
    from branchline.routing.compiled.paths import Paths
    from branchline.routing.overlay.sent import Sent

TOGETHER_FROM = 16
"""Copies from which on they are read as columns: for fewer the arrays take longer."""


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
    sent: "list[Sent]" = field(default_factory=list)
    """Copies that were read together, for each run of them."""
    scans: "list[Read]" = field(default_factory=list)
    scanned: set[int] = field(default_factory=set)
    """The indexes of the events that were scanned."""

    def events(self) -> EventBatch:
        """The events as columns."""
        return EventBatch(self.at, self.arrivals, self.entering, self.scan, self.sent)

    def scan(self, paths: "Paths", indexes: Sequence[int]) -> "Read":
        """Scan events for these paths, all as they were published."""
        from branchline.kafka.scanning import Scanner

        columns = self.columns.chosen([self.arrivals.rows[each] for each in indexes])
        came = self.arrivals.came
        for number, index in enumerate(indexes) if came.place else ():
            if index in came.place:
                columns.timestamps[number] = came.timestamps_ms[came.place[index]]
        found = Scanner(paths).scan(columns)
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
    start = 0
    for topic, same in groupby(columns.topics):
        rows = range(start, start + len(list(same)))
        name, start = _broker(topic), rows.stop
        if topic.startswith(passed_on):
            _take_passed_on(intake, name, rows)
        else:
            intake.entering.setdefault(name, []).extend(range(len(intake.at), len(intake.at) + len(rows)))
            _take(intake, name, rows)
    return intake


def _take(intake: Intake, name: str, rows: Sequence[int]) -> None:
    """These rows are events at the broker."""
    intake.at += [name] * len(rows)
    intake.arrivals.rows += rows


def _take_passed_on(intake: Intake, name: str, rows: range) -> None:
    """Take records that our own processes wrote: together if they are many, but for the unusual."""
    if len(rows) < TOGETHER_FROM:
        for row in rows:
            _take_one(intake, name, row)
        return
    from branchline.kafka.passed_on import read_passed_on
    from branchline.routing.overlay.sent import Sent

    read = read_passed_on(intake.columns.headers[rows.start : rows.stop])
    index: Sequence[int] = range(len(intake.at), len(intake.at) + len(rows))
    if len(read.rows) == len(rows):
        _take(intake, name, rows)
    else:
        usual, some = set((read.rows + rows.start).tolist()), []
        for row in rows:
            if row in usual:
                some.append(len(intake.at))
                _take(intake, name, [row])
            else:
                _take_one(intake, name, row)
        index = some
    intake.arrivals.came.add(index, read)
    if index:
        place = np.arange(index[0], index[-1] + 1) if isinstance(index, range) else np.array(index, np.int64)
        intake.sent.append(Sent(name, place, read.data, read.first, read.headers))


def _take_one(intake: Intake, name: str, row: int) -> None:
    """Take one such record by itself."""
    read = read_passed(intake.columns.record(row))
    if read.bad_header is not None:
        intake.bad_headers.append((read.arrival, read.bad_header))
    if read.fault is not None:
        intake.bad_events.append((read.arrival, read.fault))
        return
    intake.arrivals.made[len(intake.at)] = read.arrival
    _take(intake, name, [row])


def _read_control(
    topics: Topics, record: Record
) -> Control | Tick | BadRequest | Update | Snapshot | Rejection:
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


def _broker(topic: str) -> str:
    """The broker whose topic it is: a name without dots."""
    return topic.rpartition(".")[2]
