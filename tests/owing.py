"""Deliveries as columns, from lists that a test can read."""

from collections.abc import Iterator, Sequence

import numpy as np

from branchline.kafka.header_cells import pack_headers, unpack_headers
from branchline.kafka.owed import Onward, Owed
from branchline.kafka.record import Headers, Place

Event = tuple[Place, bytes | None, bytes | None, Headers, Sequence[str]]
"""Where it was published, key, value, foreign headers, and the subscribers that it is owed to."""


def owed(events: Sequence[Event]) -> Owed:
    names = sorted({name for event in events for name in event[4]})
    number = {name: index for index, name in enumerate(names)}
    return Owed(
        [key for _, key, _, _, _ in events],
        [value for _, _, value, _, _ in events],
        [pack_headers(headers) for _, _, _, headers, _ in events],
        [str(origin) for origin, _, _, _, _ in events],
        np.cumsum([0, *(len(to) for _, _, _, _, to in events)], dtype=np.int64),
        np.array([number[name] for _, _, _, _, to in events for name in to], np.int32),
        names,
    )


def spelled_out(some: Owed) -> Iterator[tuple[str, bytes | None, bytes | None, Headers, list[str]]]:
    """The inverse, with origins as text."""
    for event in range(len(some.keys)):
        to = some.subscriber[some.first[event] : some.first[event + 1]].tolist()
        yield (
            some.origins[event],
            some.keys[event],
            some.values[event],
            unpack_headers(some.headers[event]),
            [some.names[number] for number in to],
        )


def onward(events: Sequence[Event], prefixes: Sequence[bytes]) -> Onward:
    """Events that go on to brokers in place of subscribers, with a header for each, in turn."""
    some = owed(events)
    headers = [prefixes[place % len(prefixes)] for place in range(len(some))]
    columns = (some.keys, some.values, some.headers, some.origins, some.first, some.subscriber, some.names)
    return Onward(*columns, headers)
