"""Facts: all that a broker remembers, one at a time.

Theory of operation. Handling a message decides on facts, each of which is obeyed at once and written down;
obeying them again, in order, gives the same broker. So a log of facts is a broker's state, and a snapshot is
a shorter list of facts that makes an equal broker. Letters, acks and copies of events are what a broker says
meanwhile; they leave no trace but the facts.

Some facts are also told between brokers, or are numbers and topologies as they are; those that are a broker's
own matter are here.
"""

from dataclasses import dataclass
from typing import TypeAlias

from branchline.routing.control import Change, Number
from branchline.routing.dissemination.adverts import AdvertFact
from branchline.routing.dissemination.link_facts import LinkFact
from branchline.routing.dissemination.pulling import PullFact
from branchline.routing.offloading.facts import OffloadFact
from branchline.routing.optimise.learned import Learned
from branchline.routing.overlay.dividing import Arrival
from branchline.routing.overlay.letters import Complete, Report
from branchline.routing.overlay.pending import Awaited
from branchline.routing.overlay.topology import Topology


@dataclass(frozen=True, slots=True)
class Held:
    """An arrival that waits for a newer topology."""

    arrival: Arrival


@dataclass(frozen=True, slots=True)
class Released:
    """What was held and need not be any more has gone its way."""


@dataclass(frozen=True, slots=True)
class Lapsed:
    """All leases that end at or before this have been told to expire."""

    until_ms: int


@dataclass(frozen=True, slots=True)
class Limited:
    """From the next call with control on, a subscriber may have so many subscriptions."""

    subscriptions: int


@dataclass(frozen=True, slots=True)
class Vacant:
    """Since then none of the subscriber's subscriptions stands, and its topic is still there."""

    subscriber: str
    since_ms: int
    own: bool = False
    """Its last request came by its own control topic."""


@dataclass(frozen=True, slots=True)
class Removed:
    """The topic of a subscriber that was vacant is nobody's concern any more."""

    subscriber: str


@dataclass(frozen=True, slots=True)
class Kept:
    """A report that waits for a newer topology, which its home is in."""

    report: Report


Fact: TypeAlias = (
    Change
    | Number
    | Topology
    | Awaited
    | Report
    | Kept
    | Complete
    | Lapsed
    | Limited
    | Vacant
    | Removed
    | Held
    | Released
    | Learned
    | LinkFact
    | AdvertFact
    | PullFact
    | OffloadFact
)

OWN = (Held, Released, Lapsed)
"""Facts of one shard alone: which events it holds, and whom it told to expire. All others all shards obey."""
