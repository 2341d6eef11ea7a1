"""The values of a history: what an observer saw happen, in order, and what a check of it finds.

A history is a sequence of entries. The place in the sequence is the time, and the only one there is, so
whoever writes a history down must put each entry on the safe side of what it speaks of:

- what somebody *does* (`Wrote`, `Published`, `Lapsing`, `Unsteady`) stands before anything that can come of
  it. An observer that waits for Kafka's answer enters the event where it was sent, not where the answer came;
- what somebody *learns* (`Acked`, `Read`, `Undecided`, `Settled`, `Steady`) stands after it was so, and acks
  of one subscription, and reads of one subscriber and stream, in the order in which they were written.
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from branchline.routing.control import Identity, Status
from branchline.routing.evaluate import Attributes

SHOWN = 3
"""How many findings of each kind are told to people: one broken thing gives many alike."""


@dataclass(frozen=True, slots=True)
class Wrote:
    """A subscriber wrote a request. Written again with the same id it is a retry: the same request."""

    identity: Identity
    spelling: str
    filter: str | None
    """What is subscribed to, newly or in place of what stood; None to unsubscribe."""
    request: str
    """Names the request among all that are written for the subscription."""


@dataclass(frozen=True, slots=True)
class Lapsing:
    """From now on the home may hold the lease to be over, unless a renewal is acknowledged after this.

    The renewal makes this as if it had never been: when the new lease runs out, another one is entered.
    An end that nobody asked for, as by a broker that leaves, is entered in the same way before it can come.
    """

    identity: Identity


@dataclass(frozen=True, slots=True)
class Acked:
    """An ack of the home was seen."""

    identity: Identity
    status: Status
    request: str | None = None
    """The request that it answers; None for the newest one written that it can speak of."""


@dataclass(frozen=True, slots=True)
class Published:
    """An event was published."""

    event: Hashable
    """Names the event in this history. No two have the same name."""
    attributes: Attributes
    stream: Hashable = None
    """Within what order is promised: entry topic and record key. None: no order is promised."""
    acknowledged: bool = True
    """Kafka has it for certain. If not, nobody can say: it is owed to nobody, but may be delivered."""


@dataclass(frozen=True, slots=True)
class Read:
    """The subscriber's topic has a record of the event."""

    subscriber: str
    event: Hashable
    repeat: bool = False
    """Whoever carried it knows that it may be a repeat, as of a batch run again."""


@dataclass(frozen=True, slots=True)
class Undecided:
    """A dead letter says that none of the subscriber's filters matched and one could not be evaluated."""

    subscriber: str
    event: Hashable


@dataclass(frozen=True, slots=True)
class Settled:
    """Nothing is on its way: whatever was published or written so far has been handled and answered."""


@dataclass(frozen=True, slots=True)
class Unsteady:
    """The topology is about to change: from now on no order is promised."""


@dataclass(frozen=True, slots=True)
class Steady:
    """The topology holds again, everywhere. A history begins steady."""


Entry: TypeAlias = Wrote | Lapsing | Acked | Published | Read | Undecided | Settled | Unsteady | Steady


class Kind(StrEnum):
    """What can be wrong with a history."""

    LOST = "lost"
    """Owed to a subscriber, and never read by it."""
    MISROUTED = "misrouted"
    """Read by a subscriber that cannot have wanted it, or never published at all."""
    DUPLICATED = "duplicated"
    """Read more than once, without an excuse."""
    OUT_OF_ORDER = "out of order"
    """Read after a later event of its stream."""
    STUCK = "stuck"
    """A request without an answer, or one that was accepted and never came into force."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, and the entries that prove it."""

    kind: Kind
    subscriber: str
    positions: tuple[int, ...]
    """Where the proof stands in the history, ascending."""
    sentence: str
    """What happened, for people; #7 is the entry at position 7."""
    event: Hashable = None
    """The event that it happened to; None if the finding is of a request."""
    identity: Identity | None = None
    """The subscription that proves it; None if it needs none."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is wrong with a history, and how much of it could have been wrong."""

    lost: tuple[Finding, ...] = ()
    misrouted: tuple[Finding, ...] = ()
    duplicated: tuple[Finding, ...] = ()
    out_of_order: tuple[Finding, ...] = ()
    stuck: tuple[Finding, ...] = ()
    events: int = 0
    """Events published."""
    requests: int = 0
    """Requests written, each counted once however often it was."""
    reads: int = 0
    owed: int = 0
    """Pairs of an event and a subscriber that it is owed to: each would have been found missing."""
    optional: int = 0
    """Pairs that were read or undecided, and rightly so, though nothing was owed."""
    ordered: int = 0
    """First reads that could have been out of order: not the first ones of their stream and steady period."""
    strays: int = 0
    """Acks that answer nothing written so far. Many of them are a sign of an observer that misses things."""

    @property
    def clean(self) -> bool:
        return next(self.findings(), None) is None

    def findings(self) -> Iterator[Finding]:
        """All that is wrong, kind by kind."""
        for found in (self.lost, self.misrouted, self.duplicated, self.out_of_order, self.stuck):
            yield from found

    def describe(self) -> str:
        """The verdict for people: counts, and the first findings of each kind."""
        found: dict[Kind, list[Finding]] = {}
        for finding in self.findings():
            found.setdefault(finding.kind, []).append(finding)
        wrong = ", ".join(f"{len(alike)} {kind}" for kind, alike in found.items()) or "clean"
        lines = [
            f"{wrong}; checked {self.requests} requests, {self.events} events, {self.reads} reads: "
            f"{self.owed} owed, {self.optional} optional, {self.ordered} in order, {self.strays} stray acks"
        ]
        for kind, alike in found.items():
            lines += [f"{kind}: {finding.sentence}" for finding in alike[:SHOWN]]
            if len(alike) > SHOWN:
                lines.append(f"{kind}: and {len(alike) - SHOWN} more")
        return "\n".join(lines)
