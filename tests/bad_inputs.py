"""The catalogue of bad input: for each entrance the classes, an example of each, and what must become of it.

One oracle for all: an input is accepted and matched as the naive evaluator says, or rejected with one of our
codes and kept; nothing else is raised, nothing waits, and time and memory are bounded. The fast tests send
each through the pure parts, one test sends all of them through Kafka and Spark, and `docs/bad-input.md` has
what that one saw.
"""

import json
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from operator import xor
from typing import Any

from branchline.kafka.fields import COUNTED_MAX
from branchline.kafka.letters import encode_letter
from branchline.kafka.messages import LETTER_MAX_BYTES
from branchline.kafka.record import Headers
from branchline.routing.codes import Code
from branchline.routing.control import Identity, Number, Subscribed
from branchline.routing.dimensions import Axis
from branchline.routing.filters import Constraint, Contains, Range
from branchline.routing.intervals import HIGHEST, LOWEST, Interval, before, point
from branchline.routing.limits import (
    CONTROL_MAX_BYTES,
    EVENT_MAX_BYTES,
    EVENT_MAX_DEPTH,
    EVENT_MAX_FIELDS,
    EVENT_MAX_HEADER_BYTES,
    EVENT_MAX_HEADERS,
    FILTER_MAX_BYTES,
    HOPS_MAX,
    NUMBER_MAX_CHARS,
)
from branchline.routing.overlay.letters import Letter
from branchline.routing.overlay.topology import founded
from branchline.routing.prefix import telling
from branchline.routing.prefix.edges import Edge, edge_hash
from branchline.routing.prefix.header import Header, encode
from branchline.routing.prefix.trees import PartPrefix, Prefix
from branchline.routing.prefix.updates import Snapshot, Update, Version, digest_of_numbered
from branchline.routing.prefix.varints import put

BROKER = "main"
ORIGIN = "published.in.main:0:7:1700000000000"
"""Where a copy says that it was published."""

EVENT, HEADER, COPY = "in.<broker>", "in.<broker>, headers", "broker.<broker>"
CONTROL, FILTER = "control", "control, filters"
LINK, UPDATES = "link.<broker>", "rt-updates"
ENTRANCES = (EVENT, HEADER, COPY, CONTROL, FILTER, LINK, UPDATES)
"""Those on Kafka, in the order in which the page has them."""

DELIVERED = "matched as any other"
AFRESH = "matched afresh; dead-letters"
LETTER_EVENT, LETTER_NOTHING = "dead-letters, owed to all", "dead-letters"
LETTER_ONE = "dead-letters, owed to one subscriber; others get it"
LETTER_SCOPE = "dead-letters, owed to its scope"
REFUSED, REFUSED_LETTER = "refused on acks", "refused on acks; dead-letters"
IN_FORCE = "in force"
PASSED_OVER = "passed over"
NOT_TAKEN = "not taken by its topic"

JSON_TYPE = ("content-type", b"application/json")
STRUCTURED = ("content-type", b"application/cloudevents+json")
COLLIDING = 2**61 - 1
"""Multiples of it all have the hash 0 in Python."""

PROBES = {
    "one": "a = 1",
    "true": "a = TRUE",
    "beyond": "a = 9007199254740993",
    "about": "a > 9007199254740992",
    "dotted": '"a.b" = 1',
    "path": "a.b = 2",
    "empty": '"" = 1',
    "nul": '"a\0b" = 1',
    "twice": "a = 2",
    "choices": "x = 1 AND y = 2",
    "missing": "a IS MISSING",
    "wild": "t LIKE '%_b_c%' OR t LIKE '%_x_y%'",
    "header": "kafka.header.h = 'x'",
    "key": "kafka.key = 'in.<broker>: a name in dots'",
    "multiple": f"m IN ({', '.join(str(n * COLLIDING) for n in range(1000, 1040))})",
}
"""Subscriptions that tell apart what is easily taken for each other, by subscriber."""


Make = Callable[[], bytes | None] | bytes | None
"""A record's value, or what makes it, if it is large."""


@dataclass(frozen=True, slots=True)
class Bad:
    """A class of bad input, and one example of it."""

    entrance: str
    name: str
    make: Callable[[], bytes | None]
    code: Code | None
    where: str
    headers: Headers = ()
    keyed: bool = True
    """Whether the record's key may say which class it is."""
    unreadable_name: bool = False
    """Whether a header's name is no UTF-8, which our own client cannot write."""

    timestamp_ms: int | None = None
    """What the record says of its time, if that is what is bad about it."""

    @property
    def key(self) -> bytes | None:
        return f"{self.entrance}: {self.name}".encode() if self.keyed else None


def catalogue() -> list[Bad]:
    """All classes of all entrances on Kafka."""
    made = [*events(), *event_headers(), *copies(), *control(), *filters(), *letters(), *updates()]
    names = [(each.entrance, each.name) for each in made]
    assert len(set(names)) == len(names), "a class is there twice"
    return sorted(made, key=lambda each: ENTRANCES.index(each.entrance))


def _said(value: Any) -> Callable[[], bytes]:
    return lambda: json.dumps(value, ensure_ascii=False).encode()


def _bytes(value: bytes | None) -> Callable[[], bytes | None]:
    return lambda: value


# Events


def events() -> Iterator[Bad]:
    deep, wide = EVENT_MAX_DEPTH + 1, EVENT_MAX_FIELDS + 1

    def bad(name: str, make: Make, code: Code, *headers: Any) -> Bad:
        return Bad(
            EVENT, name, _bytes(make) if isinstance(make, bytes) else make, code, LETTER_EVENT, tuple(headers)
        )

    def fine(name: str, make: Make, *headers: Any) -> Bad:
        return Bad(EVENT, name, make if callable(make) else _bytes(make), None, DELIVERED, tuple(headers))

    yield bad("a million levels", lambda: b"[" * 1_000_000, Code.EVENT_TOO_LARGE)
    yield bad("130,000 levels", lambda: b"[" * 130_000 + b"]" * 130_000, Code.JSON_TOO_DEEP)
    yield bad(f"{deep} levels", b'{"a":' * deep + b"1" + b"}" * deep, Code.JSON_TOO_DEEP)
    yield bad("an integer of 5,000 digits", b'{"a": ' + b"9" * 5_000 + b"}", Code.JSON_NUMBER)
    yield bad("a fraction of 5,000 digits", b'{"a": 0.' + b"9" * 5_000 + b"}", Code.JSON_NUMBER)
    yield bad("1e400", b'{"a": 1e400}', Code.JSON_NUMBER)
    yield bad("-1e400", b'{"a": -1e400}', Code.JSON_NUMBER)
    yield bad("an integer of 400 digits", b'{"a": ' + b"9" * NUMBER_MAX_CHARS + b"}", Code.JSON_NUMBER)
    yield bad("NaN, declared as JSON", b'{"a": NaN}', Code.JSON_INVALID, JSON_TYPE)
    yield bad("-Infinity, declared as JSON", b'{"a": -Infinity}', Code.JSON_INVALID, JSON_TYPE)
    yield fine("NaN, declared as nothing", b'{"a": NaN}')
    yield fine("true, which Python takes for 1", b'{"a": true}')
    yield fine("1.0, which is 1", b'{"a": 1.0}')
    yield fine("2^53 + 1, which no float is", b'{"a": 9007199254740993}')
    yield fine("2^53 as a float", b'{"a": 9007199254740992.0}')
    yield fine("a name twice", b'{"a": 1, "a": 2}')
    yield bad("not UTF-8, declared as JSON", b'{"a": "\xff"}', Code.JSON_INVALID, JSON_TYPE)
    yield fine("not UTF-8, declared as nothing", b'{"a": "\xff"}')
    yield bad("UTF-16, declared as JSON", '{"a": 1}'.encode("utf-16"), Code.JSON_INVALID, JSON_TYPE)
    yield fine("UTF-16, declared as nothing", '{"a": 1}'.encode("utf-16"))
    yield fine("a byte order mark", b'\xef\xbb\xbf{"a": 1}')
    yield bad("half a surrogate pair in a text", rb'{"a": "\ud800"}', Code.JSON_SURROGATE)
    yield bad("half a surrogate pair in a name", rb'{"\udfff": 1}', Code.JSON_SURROGATE)
    yield fine("a name of no characters", b'{"": 1}')
    yield fine("NUL in a name and a text", rb'{"a\u0000b": 1, "t": "\u0000"}')
    yield bad("a name of 50 kB", lambda: b'{"' + b"n" * 50_000 + b'": 1}', Code.JSON_NAME_TOO_LONG)
    yield fine("a name in dots", b'{"a.b": 1, "a": {"b": 2}}')
    yield bad("100,000 fields", lambda: _fields(100_000), Code.EVENT_TOO_LARGE)
    yield bad("20,000 fields", lambda: _fields(20_000), Code.JSON_TOO_MANY_FIELDS)
    yield bad(f"{wide} fields", lambda: _fields(wide), Code.JSON_TOO_MANY_FIELDS)
    yield bad("500,000 elements", lambda: _array([0] * 500_000), Code.EVENT_TOO_LARGE)
    yield bad("100,000 elements", lambda: _array([0] * 100_000), Code.JSON_TOO_MANY_FIELDS)
    yield bad("a byte too large", lambda: _text(EVENT_MAX_BYTES + 1), Code.EVENT_TOO_LARGE)
    yield bad("900 kB", lambda: _text(900_000), Code.EVENT_TOO_LARGE)
    yield fine("just not too large", lambda: _text(EVENT_MAX_BYTES))
    yield fine("no value (a tombstone)", None)
    yield fine("an empty value", b"")
    yield Bad(EVENT, "nothing at all", _bytes(None), Code.EVENT_EMPTY, LETTER_EVENT, keyed=False)
    yield fine("an array", b'[{"a": 1}]')
    yield fine("a text", b'"a"')
    yield fine("null", b"null")
    yield fine("truncated, declared as nothing", b'{"a": 1')
    yield bad("truncated, declared as JSON", b'{"a": 1', Code.JSON_INVALID, JSON_TYPE)
    yield bad("two documents, declared as JSON", b'{"a": 1}{"a": 2}', Code.JSON_INVALID, JSON_TYPE)
    yield fine("two documents, declared as nothing", b'{"a": 1}{"a": 2}')
    yield bad("16,000 multiples of 2^61 - 1", lambda: _multiples(16_000), Code.EVENT_TOO_LARGE)
    yield bad("10,000 multiples of 2^61 - 1", lambda: _multiples(10_000), Code.JSON_TOO_MANY_FIELDS)
    yield fine("900 multiples of 2^61 - 1", lambda: _multiples(900))
    yield fine("a text for patterns", lambda: _text(EVENT_MAX_BYTES, "t", "x"))
    yield Bad(
        EVENT,
        "arrays of 22,500 choices",
        _said({"x": [1] * 150, "y": [2] * 150}),
        Code.TOO_MANY_CHOICES,
        LETTER_ONE,
    )
    for name, time, where in (
        ("a time of 290,000,000 years ago", -(2**62), NOT_TAKEN),
        ("a time of 200 years ago", -4_500_000_000_000, NOT_TAKEN),
        ("a time in the year 2286", int(1e13), NOT_TAKEN),
        ("a time before 1970", -1_000_000_000_000, DELIVERED),
        ("no time", -1, DELIVERED),
    ):
        yield Bad(EVENT, name, _bytes(b'{"a": 1}'), None, where, timestamp_ms=time)
    yield bad("a CloudEvent without an id", b'{"specversion":"1.0"}', Code.CLOUDEVENT_INVALID, STRUCTURED)
    yield bad("a CloudEvent that is an array", b"[]", Code.CLOUDEVENT_INVALID, STRUCTURED)
    yield bad("a CloudEvent that is empty", b"", Code.JSON_INVALID, STRUCTURED)
    for name, more in (
        ("version 2.0", {"specversion": "2.0"}),
        ("an attribute that is an object", {"x": {}}),
        ("an attribute that is a fraction", {"x": 1.5}),
        ("data twice", {"data": 1, "data_base64": "eA=="}),
        ("data_base64 that is none", {"data_base64": "?"}),
    ):
        document = {"specversion": "1.0", "id": "1", "source": "s", "type": "t", **more}
        make = _said(document)
        yield bad(f"a CloudEvent: {name}", make, Code.CLOUDEVENT_INVALID, STRUCTURED)
    batch = ("content-type", b"application/cloudevents-batch+json")
    yield bad("a batch of CloudEvents", b"[]", Code.CONTENT_TYPE_UNSUPPORTED, batch)
    avro = ("content-type", b"application/cloudevents+avro")
    yield bad("a CloudEvent in Avro", b"\0\1", Code.CONTENT_TYPE_UNSUPPORTED, avro)


def event_headers() -> Iterator[Bad]:
    required = (("ce_specversion", b"1.0"), ("ce_id", b"1"), ("ce_source", b"s"), ("ce_type", b"t"))

    def bad(name: str, code: Code, *headers: Any, value: bytes = b'{"a": 1}') -> Bad:
        return Bad(HEADER, name, _bytes(value), code, LETTER_EVENT, headers)

    def fine(name: str, *headers: Any, **more: Any) -> Bad:
        return Bad(HEADER, name, _bytes(b'{"a": 1}'), None, DELIVERED, headers, **more)

    many = tuple((f"h{number}", b"x") for number in range(5_000))
    yield bad(f"{EVENT_MAX_HEADERS + 1}", Code.HEADERS_TOO_MANY, *many[: EVENT_MAX_HEADERS + 1])
    yield bad("5,000", Code.HEADERS_TOO_MANY, *many)
    yield bad("more bytes than allowed", Code.HEADERS_TOO_LARGE, ("h", b"x" * EVENT_MAX_HEADER_BYTES))
    yield fine("a null value", ("h", None))
    yield fine("a value that is not UTF-8", ("h", b"\xff\xfe"))
    yield fine("a name that is not UTF-8", unreadable_name=True)
    yield fine("a name of no characters", ("", b"x"))
    yield fine("a name of 10 kB", ("n" * 10_000, b"x"))
    yield fine("a name twice", ("h", b"x"), ("h", b"y"))
    yield fine(
        "forged bl- headers",
        *(("bl-id", b"forged"), ("bl-origin", b"x"), ("bl-only", b"mallory"), ("bl-prefix", b"\xff")),
        ("bl-owed", b"nothing"),
    )
    yield bad("a CloudEvent without a type", Code.CLOUDEVENT_INVALID, *required[:3])
    yield bad("a CloudEvent's attribute twice", Code.CLOUDEVENT_INVALID, *required, required[1])
    yield bad("a CloudEvent's attribute not UTF-8", Code.CLOUDEVENT_INVALID, *required, ("ce_x", b"\xff"))
    yield bad("a CloudEvent's attribute called data", Code.CLOUDEVENT_INVALID, *required, ("ce_data", b"x"))
    long = ("ce_" + "x" * 10_000, b"")
    yield bad("a CloudEvent's attribute with a name of 10 kB", Code.CLOUDEVENT_INVALID, *required, long)
    yield bad("a CloudEvent with a broken payload", Code.JSON_INVALID, *required, JSON_TYPE, value=b'{"a"')
    yield fine("a content type that is not UTF-8", ("content-type", b"\xff"))


def _fields(count: int) -> bytes:
    return ("{" + ",".join(f'"{number:x}":0' for number in range(count)) + "}").encode()


def _array(elements: list[int], name: str = "a") -> bytes:
    return json.dumps({name: elements}, separators=(",", ":")).encode()


def _multiples(count: int) -> bytes:
    return _array([number * COLLIDING for number in range(1_000, 1_000 + count)], "m")


def _text(size: int, name: str = "a", character: str = "y") -> bytes:
    """An event of that many bytes that holds one long text."""
    around = len(json.dumps({name: ""}))
    return json.dumps({name: character * (size - around)}).encode()


# Copies between brokers


def copies() -> Iterator[Bad]:
    origin = ("bl-origin", ORIGIN.encode())
    good = encode(Header(Prefix(()), 1, 0, 1))
    flipped = bytes([*good[:3], good[3] ^ 4, *good[4:]])

    def copy(name: str, code: Code | None, where: str, *headers: Any, value: bytes = b'{"a": 1}') -> Bad:
        return Bad(COPY, name, _bytes(value), code, where, headers)

    def afresh(name: str, *prefix: bytes | None) -> Bad:
        told = (("bl-prefix", each) for each in prefix)
        return copy(f"bl-prefix: {name}", Code.HEADER_INVALID, AFRESH, origin, *told)

    def lost(name: str, *headers: Any) -> Bad:
        return copy(name, Code.ORIGIN_INVALID, LETTER_EVENT, *headers)

    yield lost("no bl-origin")
    yield lost("bl-origin: not one of ours", ("bl-origin", b"x"))
    yield lost("bl-origin: null", ("bl-origin", None))
    yield lost("bl-origin: not UTF-8", ("bl-origin", b"\xff:0:7:1"))
    yield lost("bl-origin: 300 kB", ("bl-origin", b"t" * 300_000 + b":0:7:1"))
    yield lost("bl-origin: an offset beyond 2^63", ("bl-origin", b"t:0:9999999999999999999:1"))
    yield afresh("a bit flipped", flipped)
    yield afresh("truncated", good[:-1])
    yield afresh("empty", b"")
    yield afresh("null", None)
    yield afresh("twice", good, good)
    yield afresh("right checksum, unknown format", sealed(b"\x09" + good[1:-4]))
    yield afresh("right checksum, a billion parts", sealed(b"\1\0\1\0\1\1" + varint(10**9)))
    yield afresh("right checksum, a number of 100 bytes", sealed(b"\1\0" + b"\xff" * 100 + b"\0"))
    yield afresh("right checksum, entries in disorder", sealed(b"\1\0\1\0\1\1\1\0\1\1\1\0\0"))
    yield afresh("right checksum, more brokers than can be", encode(Header(Prefix(()), 1 << 20_000, 0, 1)))
    yield afresh("right checksum, a topology that cannot be", encode(Header(Prefix(()), 1, 2**60, 1)))
    yield afresh("300 kB", sealed(b"\1\0\1\0" + varint(300_000) + b"\xff" * 300_000 + b"\0"))
    unknown = PartPrefix(Version(10**12, 3), ((1, 5), (2, 7)), (12, 99))
    for name, part in (
        ("a version that was never told", unknown),
        ("nodes that no tree has", PartPrefix(Version(0, 0), ((1, 5), (2, 7)), (12, 99))),
    ):
        header = ("bl-prefix", encode(Header(Prefix((part,)), 1, 0, 1)))
        yield copy(f"bl-prefix: {name}", None, "matched afresh", origin, header)
    hops = ("bl-prefix", encode(Header(Prefix(()), 1, 0, HOPS_MAX + 1)))
    yield copy("bl-prefix: too many hops", Code.HOPS_TOO_MANY, LETTER_SCOPE, origin, hops)
    nobody = ("bl-prefix", encode(Header(Prefix(()), 1 << 9, 0, 1)))
    yield copy("bl-prefix: for a broker that is not there", None, PASSED_OVER, origin, nobody)
    for name, only in (("not a name", b"E.V.E"), ("not UTF-8", b"\xff" * 10), ("300 kB", b"\xff" * 300_000)):
        yield copy(f"bl-only: {name}", Code.HEADER_INVALID, LETTER_EVENT, origin, ("bl-only", only))
    only = ("bl-only", b"one")
    yield Bad(
        COPY,
        "a retried event that is broken",
        _bytes(b'{"a": 1e400}'),
        Code.JSON_NUMBER,
        "dead-letters, owed to one subscriber",
        (origin, only),
    )


def sealed(body: bytes) -> bytes:
    """Bytes with their right checksum."""
    return body + zlib.crc32(body).to_bytes(4, "little")


def varint(number: int) -> bytes:
    out = bytearray()
    put(out, number)
    return bytes(out)


# Control


def control() -> Iterator[Bad]:
    asked = {"version": 1, "op": "subscribe", "subscriber": "eve", "filter": "n = -1"}

    def raw(name: str, make: Make, code: Code = Code.CONTROL_INVALID) -> Bad:
        return Bad(CONTROL, name, make if callable(make) else _bytes(make), code, REFUSED_LETTER)

    def but(name: str, code: Code = Code.CONTROL_INVALID, where: str = REFUSED_LETTER, **fields: Any) -> Bad:
        said = {part: value for part, value in {**asked, **fields}.items() if value is not ...}
        return Bad(CONTROL, name, _said(said), code, where)

    yield raw("no value", None)
    yield raw("an empty value", b"")
    yield raw("not JSON", b"subscribe eve")
    yield raw("NaN", b'{"version": NaN}')
    yield raw("1e400", b'{"version": 1e400}')
    yield raw("an integer of 5,000 digits", b'{"version": ' + b"9" * 5_000 + b"}")
    yield raw("400,000 levels", lambda: b"[" * 400_000)
    yield raw("100,000 fields", lambda: _fields(70_000))
    yield raw("a million bytes", lambda: _text(1_000_000), Code.CONTROL_TOO_LARGE)
    yield raw("UTF-16", json.dumps(asked).encode("utf-16"))
    yield raw("not UTF-8", b'{"version": "\xff"}')
    yield raw("half a surrogate pair", rb'{"version": "\ud800"}')
    yield raw("truncated", json.dumps(asked).encode()[:-1])
    yield raw("two documents", json.dumps(asked).encode() * 2)
    yield raw("an array", b"[]")
    yield raw("a name of 50 kB", lambda: json.dumps({**asked, "n" * 20_000: 1}).encode())
    yield raw("a request that is too large", lambda: _text(CONTROL_MAX_BYTES + 1), Code.CONTROL_TOO_LARGE)
    for version in (2, "1", 1.5, True, None, []):
        yield but(f"version {json.dumps(version)}", Code.CONTROL_VERSION, version=version)
    yield but("no version", Code.CONTROL_VERSION, version=...)
    for operation in ("delete", "", 5, None, [], {"a": 1}):
        yield but(f"op {json.dumps(operation)}", Code.CONTROL_OPERATION, op=operation)
    yield but("no op", Code.CONTROL_OPERATION, op=...)
    yield but("no subscriber", subscriber=...)
    yield but("no filter", filter=...)
    yield but("an unknown field", lease=5)
    for part in ("subscriber", "id", "home", "spelling", "filter", "request"):
        yield but(f"{part} is a number", **{part: 5})
        yield but(f"{part} is null", **{part: None})
    for part in ("subscriber", "id", "home"):
        yield but(f"{part} in dots", Code.NAME_INVALID, **{part: "a.b"})
        yield but(f"{part} of 10 kB", Code.NAME_INVALID, **{part: "a" * 10_000})
        yield but(f"{part} of no characters", Code.NAME_INVALID, **{part: ""})
    yield but("a request id of 10 kB", request="r" * 10_000)
    yield but("a home that is not there", Code.HOME_UNKNOWN, REFUSED, home="nowhere")
    for name, lease in (("10^30", 10**30), ("0", 0), ("-1", -1)):
        yield but(f"a lease of {name}", Code.LEASE_INVALID, REFUSED, lease_ms=lease)
    yield but("a lease of 1.5", lease_ms=1.5)
    yield but("a lease that is true", lease_ms=True)
    yield raw("a lease that is NaN", json.dumps({**asked, "lease_ms": float("nan")}).encode())
    ending = {"op": "unsubscribe", "filter": ...}
    yield but("the end of what is not there", Code.SUBSCRIPTION_UNKNOWN, REFUSED, **ending)
    yield but("the end of all, and of one", **ending, all=True, id="x")
    yield but("the end of all that is false", **ending, all=False)
    renewing = {"op": "renew", "filter": ..., "lease_ms": 60_000}
    yield but("renewing what is not there", Code.SUBSCRIPTION_UNKNOWN, REFUSED, **renewing)
    advertising = {"op": "advertise", "subscriber": ..., "publisher": "eve"}
    yield but("advertising as a subscriber", op="advertise")
    yield but("advertising as nobody", **{**advertising, "publisher": ...})
    yield but("advertising nothing", **advertising, filter=...)
    yield but("a publisher that is a number", **{**advertising, "publisher": 5})
    yield but("a publisher in dots", Code.NAME_INVALID, **{**advertising, "publisher": "a.b"})
    yield but("advertising for a while", **advertising, lease_ms=60_000)
    yield but("advertising where nobody does", Code.ADVERTISEMENTS_UNUSED, REFUSED, **advertising)
    unadvertising = {**advertising, "op": "unadvertise", "filter": ...}
    yield but("the end of no advertisement", Code.ADVERTISEMENT_UNKNOWN, REFUSED, **unadvertising)
    yield but("a tick with more", subscriber=..., filter=..., op="tick", more=1)
    yield from _proposals()
    yield from _questions()


def _proposals() -> Iterator[Bad]:
    stands = {
        "number": 2,
        "brokers": [{"name": BROKER, "number": 0, "cluster": "main", "since": 1}],
        "links": [],
        "retired": [],
    }

    def proposal(name: str, code: Code, where: str, **fields: Any) -> Bad:
        said = {part: value for part, value in {**stands, **fields}.items() if value is not ...}
        message = {"version": 1, "op": "topology", "topology": said}
        return Bad(CONTROL, f"a topology: {name}", _said(message), code, where)

    invalid, cannot = (Code.CONTROL_INVALID, REFUSED_LETTER), (Code.TOPOLOGY_INVALID, REFUSED)
    broker = stands["brokers"][0]  # type: ignore[index]
    yield proposal("no brokers", *cannot, brokers=[])
    yield proposal("without brokers", *invalid, brokers=...)
    yield proposal("a number beyond 2^53", *invalid, number=2**60)
    yield proposal("an old number", *cannot, number=1)
    yield proposal("a broker's number beyond its limit", *invalid, brokers=[{**broker, "number": 10**6}])
    yield proposal("a broker with another number", *cannot, brokers=[{**broker, "number": 5}])
    yield proposal("a broker twice", *cannot, brokers=[broker, broker])
    yield proposal("a link to nobody", *cannot, links=[{"between": ["main", "nowhere"], "cost": 1}])
    yield proposal("a link that costs 10^30", *invalid, links=[{"between": ["a", "b"], "cost": 10**30}])
    yield proposal("a link of three", *invalid, links=[{"between": ["a", "b", "c"], "cost": 1}])
    yield proposal("3,000 brokers that hang nowhere", *cannot, brokers=_crowd(3_000))
    message = {"version": 1, "op": "topology", "topology": "x" * LETTER_MAX_BYTES}
    yield Bad(CONTROL, "a topology: too large", _said(message), Code.CONTROL_TOO_LARGE, REFUSED_LETTER)


def _crowd(count: int) -> list[dict[str, Any]]:
    members = founded([BROKER, *(f"b{number}" for number in range(1, count))]).members
    return [
        {"name": each.name, "number": each.number, "cluster": each.cluster, "since": min(each.number + 1, 2)}
        for each in members
    ]


def _questions() -> Iterator[Bad]:
    asked = {"version": 1, "op": "explain", "broker": BROKER, "place": ORIGIN}

    def question(name: str, **fields: Any) -> Bad:
        said = {part: value for part, value in {**asked, **fields}.items() if value is not ...}
        message = f"a question: {name}"
        return Bad(CONTROL, message, _said(said), Code.CONTROL_INVALID, REFUSED_LETTER)

    yield question("no place", place=...)
    yield question("a place that is none", place="here")
    yield question("a key that is not base64", key="?")
    yield question("headers that are none", headers=[["x"]])
    yield question("a prefix that is none", prefix=b64encode(b"x" * 50).decode())
    yield Bad(
        CONTROL,
        "a question: about an event that cannot be read",
        _said({**asked, "value": b64encode(b'{"a": 1e400}').decode()}),
        None,
        "explained on acks",
    )


# Filters


def filters() -> Iterator[Bad]:
    def filter_(name: str, text: str, code: Code | None, spelling: str = "sql") -> Bad:
        subscriber = "filter-" + "".join(each for each in name.lower() if each.isalnum())[:40]
        said = {"version": 1, "op": "subscribe", "subscriber": subscriber, "spelling": spelling}
        where = REFUSED if code is not None else IN_FORCE
        return Bad(FILTER, name, _said({**said, "filter": text}), code, where)

    big, room = 2 * NUMBER_MAX_CHARS, FILTER_MAX_BYTES
    yield filter_("empty", "", Code.FILTER_SYNTAX)
    yield filter_("not a filter", "price <", Code.FILTER_SYNTAX)
    yield filter_("an unknown spelling", "TRUE", Code.SPELLING_UNKNOWN, "sqlite")
    yield filter_("two types in BETWEEN", "a BETWEEN 1 AND 'x'", Code.FILTER_TYPE)
    yield filter_("a byte too long", "a = '" + "x" * (room - 5) + "'", Code.FILTER_TOO_LONG)
    yield filter_("nine levels", _nested(9), Code.FILTER_TOO_DEEP)
    yield filter_("1,000 parentheses", "(" * 1_000 + "a = 1" + ")" * 1_000, None)
    yield filter_("1,000 NOT", "NOT " * 1_000 + "a = 1", Code.FILTER_TOO_DEEP)
    yield filter_("101 values", f"a IN ({', '.join(map(str, range(101)))})", Code.FILTER_TOO_MANY_VALUES)
    lists = " OR ".join(f"a{n} IN ({', '.join(map(str, range(90)))})" for n in range(3))
    yield filter_("270 values in lists", lists, Code.FILTER_TOO_MANY_CONSTRAINTS)
    yield filter_("300 constraints", " OR ".join(["a = 1"] * 300), Code.FILTER_TOO_MANY_CONSTRAINTS)
    yield filter_("33 searches", " OR ".join(["a LIKE '%x_y%'"] * 33), Code.FILTER_TOO_MANY_WILDCARDS)
    yield filter_("a thousand stars", "a LIKE '" + "%x" * 1_000 + "'", None)
    yield filter_("a product of ten lists", _product(10), None)
    yield filter_("a contradiction", "a = 1 AND a = 2", Code.FILTER_UNSATISFIABLE)
    yield filter_("a name of 300 bytes", "x" * 300 + " = 1", Code.FILTER_NAME_TOO_LONG)
    yield filter_("1e400", "a = 1e400", Code.FILTER_NUMBER)
    yield filter_("an integer of 800 digits", f"a = {'9' * big}", Code.FILTER_NUMBER)
    yield filter_("an integer of 400 digits", f"a = {'9' * NUMBER_MAX_CHARS}", None)
    yield filter_("half a surrogate pair", r'{"a": ["\ud800"]}', Code.FILTER_SYNTAX, "eventbridge")
    yield filter_("80 multiples of 2^61 - 1", _among_multiples(80), None)
    yield filter_("EventBridge: 1,000 levels", '{"a":' * 700 + "1", Code.FILTER_TOO_DEEP, "eventbridge")
    yield filter_("EventBridge: NaN", '{"a": [NaN]}', Code.FILTER_SYNTAX, "eventbridge")
    yield filter_("EventBridge: 1e400", '{"a": [1e400]}', Code.FILTER_NUMBER, "eventbridge")
    stars = json.dumps({"a": [{"wildcard": "*x" * 100}]})
    yield filter_("EventBridge: a hundred stars", stars, None, "eventbridge")
    yield filter_("CloudEvents: a number", "5", Code.FILTER_TYPE, "cloudevents")
    yield filter_("CloudEvents: an unknown one", '{"regex": {"a": "x"}}', Code.FILTER_SYNTAX, "cloudevents")
    digits = json.dumps({"exact": {"a": "9" * 400}})
    yield filter_("CloudEvents: 400 digits", digits, None, "cloudevents")
    yield filter_("CESQL: 400 digits", f"a LIKE '{'9' * 400}'", None, "cesql")
    yield filter_("CESQL: an integer beyond 32 bits", "a = 99999999999", Code.FILTER_NUMBER, "cesql")
    yield filter_("CESQL: 1,000 levels", "ABS(" * 900 + "1", Code.FILTER_SYNTAX, "cesql")
    yield filter_("CESQL: a text of gigabytes", f"LENGTH({_concat(8)}) > 5", None, "cesql")


def _nested(levels: int) -> str:
    text = "a = 1"
    for level in range(levels):
        text = f"({text} {('AND', 'OR')[level % 2]} b = {level})"
    return text


def _product(lists: int) -> str:
    return " AND ".join(f"f{n} IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)" for n in range(lists))


def _among_multiples(count: int) -> str:
    return f"m IN ({', '.join(str(number * COLLIDING) for number in range(1_000, 1_000 + count))})"


def _concat(levels: int) -> str:
    text = "a"
    for _ in range(levels):
        text = f"CONCAT({text}, {text})"
    return text


# Letters


def letters() -> Iterator[Bad]:
    identity = Identity("main", "gus", "default")
    change = Subscribed(identity, Number(5, 2), "sql", "a = 1")
    ((_, good),) = encode_letter(Letter(BROKER, "elsewhere", change))
    fields = json.loads(good)

    def raw(name: str, make: Make, code: Code = Code.CONTROL_INVALID) -> Bad:
        return Bad(LINK, name, make if callable(make) else _bytes(make), code, LETTER_NOTHING)

    def but(name: str, code: Code = Code.CONTROL_INVALID, **changed: Any) -> Bad:
        said = {part: value for part, value in {**fields, **changed}.items() if value is not ...}
        return raw(name, _said(said), code)

    yield raw("no value", None)
    yield raw("not JSON", b"\x00\x01")
    yield raw("truncated", good[:-1])
    yield raw("500,000 levels", lambda: b"[" * 500_000)
    yield raw("too large", lambda: _text(LETTER_MAX_BYTES + 1), Code.CONTROL_TOO_LARGE)
    yield raw("too many fields", lambda: _fields(50_000))
    yield raw("an array", b"[]")
    yield but("version 2", Code.CONTROL_VERSION, version=2)
    yield but("no sender", **{"from": ...})
    yield but("a sender in dots", **{"from": "a.b"})
    yield but("an unknown state", state="unheard")
    yield but("no state", state=...)
    yield but("a state that is a list", state=[])
    yield but("an unknown field", more=1)
    yield but("a subscriber in dots", subscriber="a.b")
    yield but("a number of 10^30", number=[10**30, 1])
    yield but("a number of one part", number=[5])
    yield but("a negative number", number=[-1, 1])
    yield but("a lease that ends at 10^300", until_ms=10**300)
    yield but("a time beyond 2^53", lease_ms=COUNTED_MAX + 1)
    yield but("request ids that are numbers", requests=[1])
    yield but("a filter that cannot be read", Code.FILTER_SYNTAX, filter="a =")
    yield but("a filter in an unknown spelling", Code.SPELLING_UNKNOWN, spelling="sqlite")
    report = {"version": 1, "from": "elsewhere", "state": "report", "home": "main", "reporter": "elsewhere"}
    for name, more in (
        ("no topology", {"has": []}),
        ("a topology of one part", {"topology": [1], "has": []}),
        ("a digest of 10^30", {"topology": [1, 10**30], "has": []}),
        ("subscriptions that are none", {"topology": [1, 1], "has": [[]]}),
        ("subscriptions that are an object", {"topology": [1, 1], "has": {}}),
    ):
        yield raw(f"a report: {name}", _said({**report, **more}))
    told = {"version": 1, "from": "elsewhere", "state": "topology", "retired": []}
    yield raw(
        "a topology: no brokers",
        _said({**told, "number": 9, "brokers": [], "links": []}),
        Code.TOPOLOGY_INVALID,
    )
    yield raw("a topology: a number of 10^30", _said({**told, "number": 10**30, "brokers": [], "links": []}))
    forgotten = {"state": "forgotten", "spelling": ..., "filter": ..., "requests": ...}
    yield but("what is told to nobody", **forgotten)


# Updates of the tree


def updates() -> Iterator[Bad]:
    number = Range(("a",), Axis.NUMBER, point(5))
    good = _snapshot([Edge(0, 0, 1, number)])
    whole = telling.encode(good)

    def no(name: str, make: Make) -> Bad:
        value = make if callable(make) else _bytes(make)
        return Bad(UPDATES, name, value, Code.CONTROL_INVALID, LETTER_NOTHING)

    def over(name: str, told: Update | Snapshot) -> Bad:
        return Bad(UPDATES, name, lambda: telling.encode(told), None, PASSED_OVER)

    def impossible(name: str, constraint: Constraint) -> Bad:
        return no(f"right checksum: {name}", lambda: telling.encode(_snapshot([Edge(0, 0, 1, constraint)])))

    yield no("no value", None)
    yield no("empty", b"")
    yield no("JSON", b"{}")
    yield no("truncated", whole[:-3])
    yield no("a bit flipped", bytes([*whole[:9], whole[9] ^ 1, *whole[10:]]))
    yield no("right checksum: an unknown format", sealed(b"\x07" + whole[1:-4]))
    yield no("right checksum: an unknown kind", sealed(whole[:1] + b"\x09" + whole[2:-4]))
    counted = b"\1\1\0\1\1\0" + b"\0" * 16 + b"\0\1" + varint(10**9)
    yield no("right checksum: a billion edges", sealed(counted))
    yield no("right checksum: a number of a megabyte", lambda: sealed(b"\1\0\0" + b"\xff" * 900_000))
    yield no("right checksum: bytes too many", sealed(whole[:-4] + b"\0"))
    yield no("right checksum: an incarnation beyond 2^53", _encoded(good, version=Version(2**60, 1)))
    yield no("right checksum: piece 5 of 2", _encoded(good, piece=5, pieces=2))
    yield no("right checksum: a billion pieces", _encoded(good, pieces=10**9))
    yield impossible("a number that is a text", Range(("a",), Axis.NUMBER, point("x")))
    yield impossible("a text that is a number", Range(("a",), Axis.TEXT, Interval(before(5), HIGHEST)))
    yield impossible("a number that is NaN", Range(("a",), Axis.NUMBER, point(float("nan"))))
    yield impossible("a number of 5,000 digits", Range(("a",), Axis.NUMBER, point(10**5_000)))
    yield impossible("a path of no names", Range((), Axis.NUMBER, point(5)))
    backwards = Range(("a",), Axis.NUMBER, Interval(before(9), before(3)))
    yield impossible("a range that ends before it starts", backwards)
    yield impossible("an empty range", Range(("a",), Axis.NUMBER, Interval(HIGHEST, LOWEST)))
    yield impossible("a word on an axis that has none", Contains(("a",), Axis.NUMBER, "x"))
    yield impossible("half a surrogate pair", Contains(("a",), Axis.TEXT, "\ud800"))
    yield no("right checksum: a filter that says nothing", _encoded(_snapshot([], [(1, ())])))
    yield over("a part that is not there", _snapshot([], part=5))
    yield over("a gap", Update(0, Version(1, 7), 0, 0, (), (), (), ()))
    yield over("a wrong digest", _snapshot([Edge(0, 0, 1, number)], digest=5))
    yield over("a node below itself", _snapshot([Edge(1, 0, 1, number)]))
    yield over("a node below nothing", _snapshot([Edge(7, 0, 1, number)]))
    yield over("the root below a node", _snapshot([Edge(0, 0, 1, number), Edge(1, 0, 0, number)]))
    yield over("a node of which nothing is known", _snapshot([Edge(0, 0, 1, None)]))
    yield over("node number 10^12", _snapshot([Edge(0, 0, 10**12, number)]))
    yield over("a node in two places", _snapshot([Edge(0, 0, 1, number), Edge(0, 1, 1, number)]))
    wide = Range(("a",), Axis.NUMBER, Interval(before(1), before(9)))
    yield over("siblings that overlap", _snapshot([Edge(0, 0, 1, number), Edge(0, 1, 2, wide)]))


def _snapshot(
    edges: list[Edge],
    numbered: list[tuple[int, tuple[Constraint, ...]]] | None = None,
    part: int = 0,
    digest: int | None = None,
) -> Snapshot:
    """A snapshot with its right digest."""
    beside = tuple(numbered or ())
    if digest is None:
        # Python writes no integer of so many digits as text; then nobody can know what is right.
        digest = 0
        if not any(map(_is_long, edges)):
            digest = reduce(xor, map(edge_hash, edges), digest_of_numbered(beside))
    return Snapshot(part, Version(10**12, 1), digest, 0, 1, tuple(edges), beside)


def _is_long(edge: Edge) -> bool:
    value = edge.constraint[2] if edge.constraint is not None else None
    cut = value[0] if isinstance(value, Interval) else ()
    return len(cut) == 3 and isinstance(cut[1], int) and cut[1].bit_length() > 10_000


def _encoded(snapshot: Snapshot, **changed: Any) -> bytes:
    return telling.encode(replace(snapshot, **changed))
