"""What a broker has learned of events: how many of a sample satisfied which constraints.

Theory of operation. The leading shard of a broker looks at a sample of the events of one batch, counts for
the constraints that most entries of other homes have how many events satisfy them, and tells that to its own
broker in a letter. All shards obey it when it is read: what was learned is a fact, so that a table goes by
nothing but facts, and a broker that was rebuilt has the same one. Nothing is counted from one batch to the
next, so there is nothing to remember in between.

It is time to learn when nothing was learned yet, and again when there are twice as many entries, or half as
many, as there were then. A batch of few events says little, and is let go by. If a batch is run again, or the
next one comes before the letter was read, the same number is learned again; only the first one is obeyed.

Constraints are known by a digest, so that what is told has a fixed size. One that was not counted borrows the
mean share of those that were on its dimension and of its form; if there are none, what is assumed without any
counting (`selectivity.py`).

What was learned decides which entries become simpler, and never what is owed to anybody: the worst that a
wrong count can do is to send an event for nothing.

Cost: of learning, the constraints counted times the events in the sample, once in a long while.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from statistics import fmean
from struct import Struct
from typing import TypeVar

from branchline.routing.dimensions import Dimension
from branchline.routing.event import Event
from branchline.routing.filters import Constraint, Contains
from branchline.routing.intervals import is_point
from branchline.routing.optimise.protocols import Selectivity

SAMPLE_LEAST = 20
"""Events of a batch below which nothing is learned from it."""
SAMPLE_MOST = 400
"""Events that are looked at, spread over the batch."""
COUNTED_MOST = 2_000
"""Constraints that are counted: a letter of 26 KiB, and less than a second."""

T = TypeVar("T")

_DIGEST_BYTES = 8
_COUNTED = Struct(f"<{_DIGEST_BYTES}sH")


@dataclass(frozen=True, slots=True)
class Learned:
    """How many events of a sample satisfied which constraints."""

    number: int
    """The first time is 1."""
    events: int
    """How many were looked at."""
    entries: int
    """How many entries there were."""
    counted: bytes
    """Digests of constraints, in order, each with how many events satisfied it."""


def is_due(known: Learned | None, entries: int) -> bool:
    """Whether it is time to learn, now that there are so many entries."""
    if known is None:
        return entries > 0
    return not known.entries <= 2 * entries <= 4 * known.entries


def sample(events: Sequence[T]) -> Sequence[T]:
    """The events that are looked at; none if there are too few."""
    if len(events) < SAMPLE_LEAST:
        return ()
    return events[:: -(-len(events) // SAMPLE_MOST)]


def learn(number: int, entries: int, used: Counter[Constraint], events: Sequence[Event]) -> Learned:
    """Count, of the constraints that are used most, how many events satisfy each."""
    known = sorted((-count, _digest(each), each) for each, count in used.items())[:COUNTED_MOST]
    counts = {
        digest: sum(event.may_match(((constraint,),)) for event in events) for _, digest, constraint in known
    }
    return Learned(
        number, len(events), entries, b"".join(_COUNTED.pack(*each) for each in sorted(counts.items()))
    )


def readable(counted: bytes) -> bytes:
    """The bytes, if they are such counts; raises ValueError if not."""
    if len(counted) % _COUNTED.size or len(counted) > COUNTED_MOST * _COUNTED.size:
        raise ValueError("these are no counts")
    return counted


class Counted:
    """The shares that were learned, and what is borrowed or assumed for other constraints."""

    def __init__(self, learned: Learned, constraints: Iterable[Constraint], assumed: Selectivity) -> None:
        """For these constraints; others borrow from them too."""
        counts = dict(_COUNTED.iter_unpack(learned.counted))
        self._assumed = assumed
        self._shares: dict[Constraint, float] = {}
        alike: dict[tuple[Dimension, str], list[float]] = {}
        for each in sorted(set(constraints), key=_digest):
            count = counts.get(_digest(each))
            if count is not None:
                share = self._shares[each] = count / learned.events
                alike.setdefault(_form(each), []).append(share)
        self._borrowed = {form: fmean(shares) for form, shares in alike.items()}

    def share(self, constraint: Constraint) -> float:
        known = self._shares.get(constraint)
        if known is None:
            known = self._borrowed.get(_form(constraint))
        return self._assumed.share(constraint) if known is None else known


def _digest(constraint: Constraint) -> bytes:
    path, axis, what = constraint
    return blake2b(repr((path, int(axis), tuple(what))).encode(), digest_size=_DIGEST_BYTES).digest()


def _form(constraint: Constraint) -> tuple[Dimension, str]:
    """What constraints that borrow from each other have in common."""
    if isinstance(constraint, Contains):
        return constraint.dimension, "word"
    if is_point(constraint.interval):
        return constraint.dimension, "point"
    low, high = (len(cut) == 3 for cut in constraint.interval)
    return constraint.dimension, f"{'from' if low else ''} {'to' if high else ''}"
