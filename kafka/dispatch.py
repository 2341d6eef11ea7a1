"""From what a shard decided to the records that say so, in the order in which they must be written.

Topics are made before anything is written to them; `filters` knows a subscription before neighbours are
told of it and before it is acknowledged: so letters and acks come last, when all else that this shard writes
is safely written.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise

import numpy as np

from branchline.kafka import headers as bl
from branchline.kafka.arrivals import Arrivals, received
from branchline.kafka.assisting import encode_work
from branchline.kafka.claiming import encode_given
from branchline.kafka.dead_letters import OWES_NOTHING, encode_dead_letter, owed_to, owed_to_scope
from branchline.kafka.explaining import encode_explained
from branchline.kafka.header_cells import pack_headers, unpack_headers
from branchline.kafka.intake import Intake
from branchline.kafka.letters import encode_letter, encode_recorded
from branchline.kafka.messages import encode_ack
from branchline.kafka.owed import Onward, Owed
from branchline.kafka.record import Headers, Place
from branchline.kafka.topics import OWN_ACKS, Topics
from branchline.routing.codes import Rejection
from branchline.routing.control import Ack, Request, Status
from branchline.routing.methods.counts import COUNTS as METHOD_COUNTS
from branchline.routing.offloading.assisting import Helping
from branchline.routing.offloading.offloader import Work
from branchline.routing.overlay.dividing import Arrival
from branchline.routing.overlay.letters import Propose, Refresh
from branchline.routing.overlay.topology import Topology
from branchline.routing.shard import Outputs


class Step(IntEnum):
    """What to do with a dispatch, in the order in which they come."""

    REMOVE = 0
    """Remove the topic, if it is there."""
    CREATE = 1
    """Make the topic, if it is not there."""
    WRITE = 2
    ACK = 3
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
) -> Iterator[Dispatch | Owed]:
    """All that one batch of one shard has to be written; deliveries and copies as columns."""
    for subscriber in outputs.removed:
        yield Dispatch(Step.REMOVE, topics.out(subscriber))
    for subscriber in outputs.subscribers:
        yield Dispatch(Step.CREATE, topics.out(subscriber))
    answers = list(_answers(topics, broker, now_ms, intake, outputs)) if leads else []
    for topic in topics.of_kind(OWN_ACKS, {each.topic for each in answers}):
        # An operator makes it with the rights of its subscriber; here it is made if it is gone.
        yield Dispatch(Step.CREATE, topic)
    for neighbour in sorted({each.to for each in outputs.letters if isinstance(each.body, Topology)}):
        # Whoever becomes a neighbour is told of the topology first; its own job may not run yet.
        yield from (Dispatch(Step.CREATE, topic) for topic in topics.of_neighbour(neighbour))
    for recorded in outputs.filters:
        yield Dispatch(Step.WRITE, topics.filters, *encode_recorded(recorded))
    if outputs.deliveries:
        yield _owed_events(intake, outputs)
    if outputs.forwarded:
        yield _copied_events(intake, outputs)
    arrivals = _Arrivals(intake.arrivals, outputs.released)
    yield from _dead_events(topics, arrivals, intake, outputs)
    if leads:
        yield from _of_control(topics, intake, outputs)
    yield from answers


def one_by_one(topics: Topics, items: Iterable[Dispatch | Owed]) -> Iterator[Dispatch]:
    """The same with a dispatch for every delivery and every copy."""
    for item in items:
        if isinstance(item, Dispatch):
            yield item
            continue
        for event, (start, end) in enumerate(pairwise(item.first.tolist())):
            headers = unpack_headers(item.headers[event])
            key, value, origin = item.keys[event], item.values[event], item.origins[event]
            for place in range(start, end):
                name = item.names[item.subscriber[place]]
                if isinstance(item, Onward):
                    all_of_them = headers + headers_of_copy(origin, item.prefixes[place])
                    yield Dispatch(Step.WRITE, topics.broker(name), key, value, all_of_them)
                else:
                    yield Dispatch(Step.WRITE, topics.out(name), key, value, headers, f"{origin}:{name}")


def headers_of_copy(origin: str, prefix: bytes) -> Headers:
    """Our own headers of a copy."""
    return ((bl.ORIGIN, origin.encode()), (bl.PREFIX, prefix))


_ASKED = (Request, Propose, Refresh, Helping)


class _Arrivals:
    """The arrivals of a batch, then those that were held and are released by it, as the shard counts them."""

    def __init__(self, batch: Arrivals, released: Sequence[Arrival]) -> None:
        self._batch, self._released = batch, released

    def __getitem__(self, event: int) -> Arrival:
        beyond = event - len(self._batch)
        return self._batch[event] if beyond < 0 else self._released[beyond]


def _owed_events(intake: Intake, outputs: Outputs) -> Owed:
    """The deliveries, event by event."""
    owed = outputs.deliveries
    starts = np.flatnonzero(np.diff(owed.events, prepend=-1))
    contents = _contents(intake, outputs, owed.events[starts].tolist())
    return Owed(*contents, np.append(starts, len(owed)), owed.subscribers, owed.names)


def _copied_events(intake: Intake, outputs: Outputs) -> Onward:
    """The copies, event by event."""
    copies = outputs.forwarded
    starts = np.flatnonzero(np.diff(copies.events, prepend=-1))
    contents = _contents(intake, outputs, copies.events[starts].tolist())
    return Onward(*contents, np.append(starts, len(copies)), copies.to, copies.names, copies.encoded())


def _contents(
    intake: Intake, outputs: Outputs, events: Sequence[int]
) -> tuple[list[bytes | None], list[bytes | None], list[bytes], list[str]]:
    """Keys, values, foreign headers and origins of these events, as columns."""
    columns, rows, batch = intake.columns, intake.arrivals.rows, len(intake.arrivals)
    known = intake.arrivals.came
    keys: list[bytes | None] = []
    values: list[bytes | None] = []
    headers: list[bytes] = []
    origins: list[str] = []
    for event in events:
        came = known.place.get(event)
        if came is not None or (event < batch and event not in intake.arrivals.made):
            row = rows[event]
            keys.append(columns.keys[row])
            values.append(columns.values[row])
            headers.append(foreign_cell(columns.headers[row]) if came is None else known.foreign[came])
            origins.append(str(columns.place(row)) if came is None else known.origins[came])
        else:
            content = received(_Arrivals(intake.arrivals, outputs.released)[event])
            keys.append(content.record.key)
            values.append(content.record.value)
            headers.append(pack_headers(bl.foreign(content.record.headers)))
            origins.append(str(content.origin))
    return keys, values, headers, origins


def foreign_cell(cell: bytes) -> bytes:
    """A cell of headers without ours."""
    if bl.OURS.encode() not in cell:
        return cell
    return pack_headers(bl.foreign(unpack_headers(cell)))


def _dead_events(topics: Topics, arrivals: _Arrivals, intake: Intake, outputs: Outputs) -> Iterator[Dispatch]:
    for arrival, rejection in intake.bad_headers:
        yield _dead_event(topics, arrival, rejection, OWES_NOTHING)
    for arrival, rejection in intake.bad_events:
        scope = None if arrival.header is None else arrival.header.scope
        yield _dead_event(topics, arrival, rejection, _owed(arrival, scope))
    for refused in outputs.refused:
        arrival = arrivals[refused.event]
        # What did not get in is owed as it came, not to those who are there by now.
        scope = None if refused.unread or refused.outside else refused.scope
        yield _dead_event(topics, arrival, refused.rejection, _owed(arrival, scope))
    for undecided in outputs.undecided:
        arrival = arrivals[undecided.event]
        yield _dead_event(topics, arrival, undecided.rejection, owed_to(undecided.subscriber))


def _owed(arrival: Arrival, scope: int | None) -> str:
    """To whom an event is owed that did not get further; without a scope, to all that its own one names."""
    if arrival.only is not None or scope is None:
        return owed_to(arrival.only)
    return owed_to_scope(scope)


def _dead_event(topics: Topics, arrival: Arrival, rejection: Rejection, owed: str) -> Dispatch:
    content = received(arrival)
    letter = encode_dead_letter(content.record, rejection, owed, content.origin)
    return Dispatch(Step.WRITE, topics.dead_letters, *letter)


def _of_control(topics: Topics, intake: Intake, outputs: Outputs) -> Iterator[Dispatch]:
    bad = [(record, request.rejection) for record, request in intake.bad_control]
    bad += intake.bad_told
    bad += [(intake.control_records[index], why) for index, why in outputs.unusable]
    for record, rejection in bad:
        letter = encode_dead_letter(record, rejection, OWES_NOTHING)
        yield Dispatch(Step.WRITE, topics.dead_letters, *letter)
    for told in outputs.letters:
        for key, value in encode_letter(told):
            yield Dispatch(Step.ACK, topics.link(told.to), key, value)


def _answers(
    topics: Topics, broker: str, now_ms: int, intake: Intake, outputs: Outputs
) -> Iterator[Dispatch]:
    for work in outputs.work:
        if isinstance(work, Work):
            client, value = work.dispatch.client, encode_work(work, now_ms)
        else:
            client, value = work.subscriber, encode_given(work, now_ms)
        if value is not None:
            topic = topics.own_acks(client) if work.own else topics.acks
            yield Dispatch(Step.ACK, topic, client.encode(), value)
    for ack in outputs.acks:
        asked = None if ack.index is None else intake.control_records[ack.index].place
        yield _answer(topics, acks_of(topics, ack), asked, ack, now_ms)
    for answer in outputs.explanations:
        asked = None if answer.index is None else intake.control_records[answer.index].place
        topic = topics.acks if asked is None else topics.acks_for(asked.topic)
        yield Dispatch(Step.ACK, topic, None, encode_explained(answer, asked, now_ms))
    for record, request in intake.bad_control:
        refused = Ack(
            None,
            Status.REFUSED,
            request.subscriber,
            request.id,
            broker,
            request=request.request,
            rejection=request.rejection,
            advert=request.advert,
        )
        # By the topic that was written to: of whom the message speaks is nothing to go by.
        yield _answer(topics, topics.acks_for(record.place.topic), record.place, refused, now_ms)


def acks_of(topics: Topics, ack: Ack) -> str:
    """Where an ack of a home is written."""
    return topics.own_acks(ack.subscriber) if ack.own and ack.subscriber is not None else topics.acks


def _answer(topics: Topics, topic: str, asked: Place | None, ack: Ack, now_ms: int) -> Dispatch:
    key = ack.subscriber.encode() if ack.subscriber is not None else None
    return Dispatch(Step.ACK, topic, key, encode_ack(ack, asked, now_ms))


def count(intake: Intake, outputs: Outputs, leads: bool) -> dict[str, int]:
    """What happened in the batch, for statistics; control is counted by the leading shard alone."""
    bad_requests = len(intake.bad_control) if leads else 0
    requests = sum(isinstance(message, _ASKED) for message in intake.control) if leads else 0
    # Whatever was made without being asked for was passed on, or retried.
    alone = (each for index, each in intake.arrivals.made.items() if index not in intake.arrivals.came.place)
    passed = sum(arrival.header is not None and arrival.header.hops > 0 for arrival in alone)
    passed += sum(int((sent.headers.hops > 0).sum()) for sent in intake.sent)
    unread = sum(refused.unread or refused.outside for refused in outputs.refused)
    counts = outputs.counts
    return {
        "accepted": len(intake.arrivals) - passed - unread,
        "opaque": intake.opaque,
        "rejected": len(intake.bad_events) + unread,
        "delivered": len(outputs.deliveries),
        "undecided": len(outputs.undecided),
        "passed": passed,
        "forwarded": len(outputs.forwarded),
        "held": counts["held"],
        "released": len(outputs.released),
        "stranded": len(outputs.refused) - unread,
        "requests": requests + bad_requests,
        "refused": sum(ack.status is Status.REFUSED for ack in outputs.acks) + bad_requests,
        "letters": len(outputs.letters),
        "updates": counts["updates_applied"],
        "updates_missed": counts["updates_gap"],
        "content_matches": counts["content_matches"],
        "afresh_matches": counts["afresh_matches"],
        "exact_checks": counts["exact_checks"],
        "older_walks": counts["older_walks"],
        "scanned": len(intake.scanned),
        "slow": sum(each.slow for each in intake.scans),
        **{name: counts[name] for name in METHOD_COUNTS if name in counts},
    }
