"""A workload of good and broken events with readable filters, and what the oracle says of it.

Ten ways to be broken, each with the code that it must be rejected with. Everything is made from a seed.
"""

import json
import os
import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from branchline.kafka.events import Event, decode_event
from branchline.kafka.headers import foreign
from branchline.kafka.record import Headers, Place, Record
from branchline.routing.codes import Code, Rejection
from branchline.routing.control import Operation, Request
from branchline.routing.evaluate import evaluate
from branchline.routing.limits import EVENT_MAX_BYTES, EVENT_MAX_DEPTH, EVENT_MAX_FIELDS, EVENT_MAX_HEADERS
from branchline.routing.spellings import read_filter

# A part of the full size every day; all of it by `make soak-spine`.
EVENTS = int(os.environ.get("BRANCHLINE_TEST_EVENTS", "2000"))
SUBSCRIPTIONS, SEED = 50, 20

JSON: Headers = (("content-type", b"application/json"),)
CITIES = ("BCN", "DUB", "IAD", "MAD", "MEX", "SIN")


@dataclass(frozen=True)
class Published:
    key: bytes | None
    value: bytes | None
    headers: Headers = ()

    def read(self) -> Event | Rejection:
        # None of the filters speaks of the timestamp, so any will do.
        return decode_event(Record(Place("in", 0, 0, 0), self.key, self.value, self.headers))


@dataclass
class Workload:
    events: list[Published]
    filters: dict[tuple[str, str], str]
    """By subscriber and id."""
    expected: dict[str, list[Published]] = field(default_factory=dict)
    """What each subscriber must get, in the order of publication."""
    broken: list[tuple[Code, Published]] = field(default_factory=list)

    def requests(self) -> list[Request]:
        return [
            Request(Operation.SUBSCRIBE, subscriber, id, filter=text)
            for (subscriber, id), text in self.filters.items()
        ]

    def subscribers(self) -> list[str]:
        return sorted({subscriber for subscriber, _ in self.filters})

    def deliveries(self) -> int:
        return sum(map(len, self.expected.values()))

    def check(self, delivered: Mapping[str, Sequence[Record]]) -> None:
        """Each subscriber has exactly what it must have, in the order of publication for each key."""
        assert len(self.expected) >= 20, "or the workload shows nothing"
        for subscriber, expected in self.expected.items():
            got = delivered[subscriber]
            assert Counter((record.key, record.value, foreign(record.headers)) for record in got) == Counter(
                (event.key, event.value, event.headers) for event in expected
            )
            for key in {event.key for event in expected} - {None}:
                in_order = [event.value for event in expected if event.key == key]
                assert [record.value for record in got if record.key == key] == in_order


BROKEN: dict[Code, Published] = {
    Code.EVENT_EMPTY: Published(None, None),
    Code.EVENT_TOO_LARGE: Published(b"big", b'"' + b"x" * EVENT_MAX_BYTES + b'"'),
    Code.HEADERS_TOO_MANY: Published(
        b"h", b"{}", tuple((f"h{n}", b"") for n in range(EVENT_MAX_HEADERS + 1))
    ),
    Code.CONTENT_TYPE_UNSUPPORTED: Published(
        b"avro", b"\x00\x01", (("content-type", b"application/cloudevents+avro"),)
    ),
    Code.CLOUDEVENT_INVALID: Published(b"ce", b"{}", (("ce_specversion", b"1.0"), ("ce_type", b"flight"))),
    Code.JSON_INVALID: Published(b"cut", b'{"type": "flight", "price": 4', JSON),
    Code.JSON_TOO_DEEP: Published(b"deep", b"[" * (EVENT_MAX_DEPTH + 1) + b"]" * (EVENT_MAX_DEPTH + 1)),
    Code.JSON_TOO_MANY_FIELDS: Published(
        b"wide", json.dumps({f"f{n}": n for n in range(EVENT_MAX_FIELDS + 1)}).encode()
    ),
    Code.JSON_NUMBER: Published(b"inf", b'{"type": "flight", "price": 1e400}'),
    Code.JSON_SURROGATE: Published(b"half", b'{"type": "flight", "origin": "\\ud800"}'),
}


def make_workload(events: int, subscriptions: int, seed: int) -> Workload:
    """`events` events, a fifth of them broken, and `subscriptions` filters over half as many subscribers."""
    draw = random.Random(seed)
    filters = {
        (f"sub-{number // 2}", f"id-{number % 2}"): _filter(draw, number) for number in range(subscriptions)
    }
    published = [_broken(draw, n) if n % 5 == 4 else _good(draw, n) for n in range(events)]
    workload = Workload(published, filters)
    parsed = {name: read_filter("sql", text) for name, text in filters.items()}
    expected: dict[str, list[Published]] = defaultdict(list)
    for event in published:
        read = event.read()
        if isinstance(read, Rejection):
            workload.broken.append((read.code, event))
            continue
        matched = {
            subscriber
            for (subscriber, _), expression in parsed.items()
            if not isinstance(expression, Rejection) and evaluate(expression, read.attributes) is True
        }
        for subscriber in matched:
            expected[subscriber].append(event)
    workload.expected = dict(expected)
    return workload


def _filter(draw: random.Random, number: int) -> str:
    low = draw.randint(0, 900)
    return (
        f"type = 'flight' AND price BETWEEN {low} AND {low + 60}",
        f"origin = '{draw.choice(CITIES)}' AND price < {low // 4 + 20}",
        f"data.order.total > {low} AND data.order.lines.sku = 'sku-{draw.randint(0, 30)}'",
        f"origin LIKE '{draw.choice('BDIMS')}%' AND NOT (price > {low // 3} OR destination IN ('MAD','SIN'))",
        f"kafka.header.region = 'r{number % 40}' AND (data IS NULL OR data.order.total <= 300)",
    )[number % 5]


def _good(draw: random.Random, number: int) -> Published:
    key = None if draw.random() < 0.1 else f"key-{draw.randint(0, 199)}".encode()
    kind = draw.random()
    if kind < 0.6:
        origin, destination = draw.sample(CITIES, 2)
        flight = {
            "type": "flight",
            "origin": origin,
            "destination": destination,
            "price": draw.choice([draw.randint(0, 999), round(draw.uniform(0, 999), 2), None, "free"]),
            "n": number,
        }
        return Published(key, json.dumps(flight).encode(), (("region", b"r%d" % draw.randint(0, 39)),))
    order = {
        "total": draw.randint(0, 1200),
        "lines": [
            {"sku": f"sku-{draw.randint(0, 30)}", "qty": draw.randint(1, 9)}
            for _ in range(draw.randint(0, 4))
        ],
        "n": number,
    }
    if kind < 0.8:
        attributes = {"specversion": "1.0", "id": str(number), "source": "/shop", "type": "order"}
        headers = tuple((f"ce_{name}", value.encode()) for name, value in attributes.items())
        return Published(key, json.dumps({"order": order}).encode(), (*headers, *JSON))
    if kind < 0.95:
        envelope = {"specversion": "1.0", "id": str(number), "source": "/shop", "type": "order"}
        envelope_bytes = json.dumps({**envelope, "data": {"order": order}}).encode()
        return Published(key, envelope_bytes, (("content-type", b"application/cloudevents+json"),))
    return Published(key, b"\x00opaque %d" % number, (("region", b"r%d" % draw.randint(0, 39)),))


def _broken(draw: random.Random, number: int) -> Published:
    codes = list(BROKEN)
    code = codes[number // 5 % len(codes)]
    if code is Code.EVENT_TOO_LARGE and number % 500 != 9:
        code = Code.JSON_NUMBER  # large ones are as broken as the rest, but cost the test its time
    event = BROKEN[code]
    return Published(event.key, event.value, event.headers)
