"""A Kafka record as it was read, and the place where it was read."""

from dataclasses import dataclass

Headers = tuple[tuple[str, bytes | None], ...]
"""Header names and values in their order; a name may come more than once, a value may be null."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where and when a record was published: what its identity is made from."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int

    def __str__(self) -> str:
        # Topic names cannot hold a colon, so this reads back without doubt.
        return f"{self.topic}:{self.partition}:{self.offset}:{self.timestamp_ms}"


@dataclass(frozen=True, slots=True)
class Record:
    place: Place
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
