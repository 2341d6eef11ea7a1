"""The headers that Branchline adds to records, and how they read.

All begin with `bl-`. On topics that publishers write, such headers come from outside: they are dropped.
On `broker.<broker>`, which only our own processes may write, they are obeyed.
"""

import re

from branchline.kafka.record import Headers, Place

_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}", re.ASCII)
"""What Kafka takes for the name of a topic."""

_NUMBER_END = 2**63
"""Partitions, offsets and times are below this."""

OURS = "bl-"
ID = "bl-id"
"""Identifies a delivery: the place of publication and the subscriber. The same on every repeat."""
ORIGIN = "bl-origin"
"""The place of publication of an event that was passed on or retried."""
ONLY = "bl-only"
"""The one subscriber that a retried event is for; absent if it is for all."""
PREFIX = "bl-prefix"
"""What the broker before found out about an event, and the homes that this copy answers for."""
PATH = "bl-path"
"""On an update of the tree that a bridge carried: the clusters that it has passed, joined by commas."""
CODE = "bl-code"
REASON = "bl-reason"
OWED = "bl-owed"
"""What a dead letter still owes: `event`, `subscriber:NAME`, `scope:HEX` or `nothing`."""
CUT = "bl-cut"
"""On a dead letter whose original was too large to keep: the full length and SHA-256 of its value."""


def foreign(headers: Headers) -> Headers:
    """The headers without ours: what a publisher may send, and what a subscriber gets as it was."""
    return tuple(header for header in headers if not header[0].startswith(OURS))


def values(headers: Headers, name: str) -> list[bytes | None]:
    """What all headers of that name hold."""
    return [value for header, value in headers if header == name]


def text(headers: Headers, name: str) -> str | None:
    """The first header of that name as text, or None."""
    for value in values(headers, name):
        if value is not None:
            return value.decode(errors="replace")
    return None


def delivery_id(origin: Place, subscriber: str) -> str:
    """The id of a delivery."""
    return f"{origin}:{subscriber}"


def read_delivery_id(delivery: str) -> tuple[Place, str] | None:
    """The place of publication and the subscriber, or None if the text is no id."""
    place, _, subscriber = delivery.rpartition(":")
    origin = read_place(place)
    return (origin, subscriber) if origin is not None and subscriber else None


def read_place(place: str) -> Place | None:
    """The inverse of `str(place)`, or None if the text is no place."""
    parts = place.split(":")
    if len(parts) != 4 or _TOPIC.fullmatch(parts[0]) is None:
        return None
    # The timestamp alone may be negative: Kafka writes -1 for a record without one.
    numbers = (*parts[1:3], parts[3].removeprefix("-"))
    if not all(number.isascii() and number.isdecimal() and len(number) < 20 for number in numbers):
        return None
    found = Place(parts[0], int(parts[1]), int(parts[2]), int(parts[3]))
    in_bounds = max(found.partition, found.offset, found.timestamp_ms) < _NUMBER_END
    return found if in_bounds and str(found) == place else None
