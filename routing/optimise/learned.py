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
counting (`selectivity.py`). One that no event of the sample satisfied is rare and not impossible: it borrows
too, at most half an event's share. Otherwise nothing would be lost by pruning what stands beside it.

What was learned decides which entries become simpler, and never what is owed to anybody: the worst that a
wrong count can do is to send an event for nothing.

Cost: of learning, the constraints counted times the events in the sample, once in a long while.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
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
        known = {each: counts.get(_digest(each)) for each in constraints}
        self._assumed = assumed
        self._shares, self._borrowed = shares(
            {each: count for each, count in known.items() if count is not None}, learned.events
        )

    def share(self, constraint: Constraint) -> float:
        known = self._shares.get(constraint)
        if known is None:
            known = self._borrowed.get(_form(constraint))
        return self._assumed.share(constraint) if known is None else known


def shares(
    counts: Mapping[Constraint, int], events: int
) -> tuple[dict[Constraint, float], dict[tuple[Dimension, str], float]]:
    """The share of each constraint of which so many events satisfied so many, and what others may borrow."""
    alike: dict[tuple[Dimension, str], list[int]] = {}
    for each, count in counts.items():
        alike.setdefault(_form(each), []).append(count)
    # As if half an event more had satisfied one of them, whichever.
    borrowed = {form: (sum(found) + 0.5) / (events * len(found)) for form, found in alike.items()}
    made = {
        each: count / events if count else min(0.5 / events, borrowed[_form(each)])
        for each, count in counts.items()
    }
    return made, {form: min(1.0, share) for form, share in borrowed.items()}


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
