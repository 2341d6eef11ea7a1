"""What the Tree Optimizer reads from `filters`, and how somebody wakes it or asks it for a snapshot.

Both are records on `filters` under keys of their own, of which compaction leaves one each: so the optimizer
has one input. Others who read `filters` find no change in them.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from confluent_kafka import Producer

from branchline.kafka.fields import FORMAT_VERSION, dump
from branchline.kafka.letters import decode_recorded
from branchline.kafka.messages import encode_tick
from branchline.kafka.record import Record
from branchline.kafka.topics import Topics
from branchline.routing.codes import Rejection
from branchline.routing.control import Change

TICK_KEY = b"tick"
SNAPSHOT_KEY = b"snapshot"


@dataclass(frozen=True, slots=True)
class Told:
    """What a batch of records on `filters` says to the Tree Optimizer."""

    changes: tuple[Change, ...]
    asked: bool
    """Somebody asked for a snapshot."""
    unreadable: int


def read_filters(records: Iterable[Record]) -> Told:
    """The changes in their order. A tombstone tells nothing: an end was told before it."""
    changes: list[Change] = []
    asked, unreadable = False, 0
    for record in records:
        if record.key == SNAPSHOT_KEY:
            asked = True
        elif record.key != TICK_KEY and record.value is not None:
            told = decode_recorded(record.value)
            if isinstance(told, Change):
                changes.append(told)
            else:
                # Trees get less precise by what cannot be read here, and nothing is lost.
                unreadable += isinstance(told, Rejection)
    return Told(tuple(changes), asked, unreadable)


def write_tick(producer: Producer, topics: Topics) -> None:
    """Wake the Tree Optimizer: something may be due though nothing changes."""
    producer.produce(topics.filters, encode_tick(), TICK_KEY)


def ask_snapshot(producer: Producer, topics: Topics) -> None:
    """Ask the Tree Optimizer for a snapshot: a router has missed an update."""
    producer.produce(topics.filters, dump({"version": FORMAT_VERSION, "op": "snapshot"}), SNAPSHOT_KEY)
