"""Brokers in a line, in one shard, through which events are sent: for measuring.

What a broker forwards becomes the records that the next one reads, with the headers that Kafka would carry.
What a broker takes is told apart by stages. Where events enter these are `scan` (JSON bytes to spans),
`match` (the index of all filters), `walk` (along the Routing Tree) and `write` (headers); at later brokers
`records` (finding our headers in what Kafka carries), `decode` (checksums and limits), `follow`, `divide` and
`write`.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from branchline.kafka import headers as bl
from branchline.kafka import passed_on
from branchline.kafka.event_columns import EventColumns
from branchline.kafka.header_cells import pack_headers
from branchline.kafka.intake import Intake, read_batch
from branchline.kafka.scanning import Scanner
from branchline.kafka.topics import Topics
from branchline.ops.stages import Place, Stages
from branchline.routing.codes import Rejection
from branchline.routing.compiled.following import Follower
from branchline.routing.compiled.header_writing import Written
from branchline.routing.compiled.interests import IndexedInterests
from branchline.routing.compiled.walking import Walker
from branchline.routing.compiling import Compiled, compile_filter
from branchline.routing.control import Identity, Number, Subscribed
from branchline.routing.event import Event
from branchline.routing.overlay import copying, passing
from branchline.routing.overlay.topology import founded, link
from branchline.routing.prefix.optimizer import Optimizer, Settings
from branchline.routing.shard import Job, Outputs, Shard, ShardState
from branchline.routing.values import JsonValue

PER_SUBSCRIBER = 10
_TOPICS = Topics()
_STAGES: dict[str, list[Place]] = {
    "scan": [(Scanner, "scan")],
    "match": [(IndexedInterests, "match")],
    "walk": [(Walker, "walk")],
    "records": [(passed_on, "read_passed_on")],
    "decode": [(passed_on, "read_headers")],
    "follow": [(Follower, "find")],
    "divide": [(passing, "divide")],
    "write": [(copying, "write_headers"), (passing, "write_onward"), (Written, "slices")],
}
STAGES = (*_STAGES, "rest")

Owed = tuple[int, str]
"""The number of an event, and the subscriber that it is owed to."""


class Line:
    """Brokers in a line, with these filters at home at each of them in turn, and a tree of all filters."""

    def __init__(self, texts: Sequence[str], brokers: int) -> None:
        self._names = [f"broker{number}" for number in range(brokers)]
        topology = founded(self._names, [link(*each) for each in pairwise(self._names)])
        optimizer = Optimizer(1, Settings(limit_ms=0))
        self._filters: dict[str, list[Compiled]] = {}
        facts = []
        for number, text in enumerate(texts):
            compiled = compile_filter("sql", text)
            assert not isinstance(compiled, Rejection), "the workloads' filters are filters"
            optimizer.subscribe(compiled.cover)
            home = self._names[number % brokers]
            subscriber = f"{home}-{number // brokers // PER_SUBSCRIBER}"
            self._filters.setdefault(subscriber, []).append(compiled)
            identity = Identity(home, subscriber, f"filter{number}")
            change = Subscribed(identity, Number(1, number + 1), "sql", text, (f"request{number}",))
            facts += [(name, change) for name in self._names]
        optimizer.updates(0)
        state = ShardState(tuple(optimizer.snapshots()), tuple(facts))
        self._shard = Shard(Job(tuple(self._names), topology), 0, [state])

    def values(self, events: Sequence[Mapping[str, JsonValue]]) -> list[bytes]:
        """The events as publishers write them."""
        return [json.dumps(event).encode() for event in events]

    def expected(self, events: Sequence[Mapping[str, JsonValue]]) -> Iterator[Owed]:
        """Who is owed what, found by trying every filter."""
        for number, attributes in enumerate(events):
            event = Event(dict(attributes))
            for subscriber, filters in self._filters.items():
                if any(each.matches(event) is True for each in filters):
                    yield number, subscriber

    def send(self, values: Sequence[bytes]) -> Iterator[tuple[dict[str, Any], list[Owed]]]:
        """Send events along the line: of each broker what it took, and what is owed there."""
        columns = EventColumns(
            [_TOPICS.entry(self._names[0])] * len(values),
            [0] * len(values),
            list(range(len(values))),
            [0] * len(values),
            [None] * len(values),
            values,
            [b""] * len(values),
        )
        numbers = list(range(len(values)))
        for hop, name in enumerate(self._names, 1):
            with Stages(_STAGES) as stages:
                began = time.process_time()
                intake = read_batch(_TOPICS, [], columns)
                outputs = self._shard.handle(1, (), (), intake.events())
                took_s = time.process_time() - began
            parts_s = stages.took_s | {"rest": took_s - sum(stages.took_s.values())}
            sizes = list(map(len, outputs.forwarded.encoded()))
            row: dict[str, Any] = {
                "hop": hop,
                "copies": len(columns),
                "us_per_copy": took_s * 1e6 / max(len(columns), 1),
                "owed": len(outputs.deliveries),
                "afresh": outputs.counts["afresh_matches"],
                "exact_checks": outputs.counts["exact_checks"],
            }
            row["stages_us"] = {stage: s * 1e6 / max(len(columns), 1) for stage, s in parts_s.items()}
            if sizes:
                row |= {"fpt_bytes": round(sum(sizes) / len(sizes), 1), "fpt_bytes_max": max(sizes)}
            yield row, [(numbers[each.event], each.subscriber) for each in outputs.deliveries]
            following = self._names[hop] if hop < len(self._names) else None
            numbers = [numbers[each] for each in outputs.forwarded.events.tolist()]
            columns = _sent(intake, outputs, _TOPICS.broker(following or name))


def _sent(intake: Intake, outputs: Outputs, topic: str) -> EventColumns:
    """What the next broker reads."""
    events, columns, came = outputs.forwarded.events.tolist(), intake.columns, intake.arrivals.came
    rows = [intake.arrivals.rows[event] for event in events]
    headers = []
    for event, row, header in zip(events, rows, outputs.forwarded.encoded(), strict=True):
        place = came.place.get(event)
        origin = str(columns.place(row)) if place is None else came.origins[place]
        headers.append(pack_headers(((bl.ORIGIN, origin.encode()), (bl.PREFIX, header))))
    count = len(events)
    return EventColumns(
        [topic] * count,
        [0] * count,
        list(range(count)),
        [0] * count,
        [columns.keys[row] for row in rows],
        [columns.values[row] for row in rows],
        headers,
    )
