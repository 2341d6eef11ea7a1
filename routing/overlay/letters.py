"""What brokers tell each other, one letter at a time, in order on each link.

A letter is for one broker and comes from a neighbour, or from the broker itself. A *change* is flooded: who
learns something from it tells all neighbours but the teller. A *report* goes hop by hop to the home of what
it reports. A *topology* goes to all old and new neighbours. *Complete* follows when a new neighbour was told
everything. *Expire* is what a home tells itself, so that all its shards end a lease at the same point; so is
*learned* (`optimise/learned.py`), so that all shards go by the same, and *due*, when a round of offloading is
to begin or to end (`offloading/offloader.py`).

Where filters go along a tree, neighbours tell each other summaries in place of changes, and answer
(`dissemination/telling.py`); where tables only grow, they also ask each other what is still wanted
(`dissemination/pulling.py`).
"""

from dataclasses import dataclass
from typing import TypeAlias

from branchline.routing.control import Ended, Identity, Number, Subscribed
from branchline.routing.dissemination.pulling import Pull, Reply
from branchline.routing.dissemination.telling import Ask, Settled, Told
from branchline.routing.optimise.learned import Learned
from branchline.routing.overlay.topology import Topology


@dataclass(frozen=True, slots=True)
class Report:
    """A broker has these subscriptions of a home, at least as new as these numbers."""

    home: str
    reporter: str
    topology: tuple[int, int]
    """The order of the reporter's topology when it had them."""
    has: tuple[tuple[Identity, Number], ...]


@dataclass(frozen=True, slots=True)
class Complete:
    """The sender has told everything it knew when it became a neighbour, or had joined itself."""


@dataclass(frozen=True, slots=True)
class Expire:
    """The lease of the subscription, as it stood under this number until then, is over."""

    identity: Identity
    number: Number
    until_ms: int


@dataclass(frozen=True, slots=True)
class Due:
    """From a broker to itself: it is time for something that all its shards are to do at the same point."""


@dataclass(frozen=True, slots=True)
class Propose:
    """An operator asks for this topology."""

    topology: Topology
    request: str | None = None


@dataclass(frozen=True, slots=True)
class Refresh:
    """An operator asks a broker to find out what is still wanted behind its links."""

    broker: str
    timeout_ms: int
    """How long the operator is going to wait."""
    request: str | None = None
    give_up: bool = False
    """Rather than to begin, the broker is to wait no longer, whoever has issued what it waits for."""


Body: TypeAlias = (
    Subscribed
    | Ended
    | Report
    | Topology
    | Complete
    | Expire
    | Due
    | Learned
    | Told
    | Settled
    | Ask
    | Pull
    | Reply
)


@dataclass(frozen=True, slots=True)
class Letter:
    """Something told to one broker."""

    to: str
    sender: str
    body: Body
