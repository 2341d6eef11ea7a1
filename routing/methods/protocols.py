"""What a method must offer, so that a configuration chooses and comparisons run on one workload.

*Forwarding* finds who is interested at a broker, from what travelled with the event. *Matching* is how
content is matched where forwarding has to. *Dissemination* says which neighbours hear of a change, or of what
stands for it.

A method is one file of this package and one line in `naming.py`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from branchline.routing.boolean.trees import Node
from branchline.routing.compiling import Compiled
from branchline.routing.control import Ended, Identity, Subscribed
from branchline.routing.dissemination.shared import SharedTable
from branchline.routing.dissemination.summaries import Summary
from branchline.routing.event import Event
from branchline.routing.limits import LINGER_MS
from branchline.routing.prefix.forwarding import Found, Wanted
from branchline.routing.prefix.places import Owner
from branchline.routing.prefix.trees import Prefix

if TYPE_CHECKING:  # compiled loops are imported when the first batch needs them
    from branchline.routing.compiled.interests import Interests
    from branchline.routing.compiled.paths import Paths
    from branchline.routing.optimise.learned import Learned


@dataclass(frozen=True, slots=True)
class Interest:
    """What one subscription asks for, and on whose account a broker keeps it."""

    identity: Identity
    compiled: Compiled
    owner: Owner
    """Its identity where it is at home; its home everywhere else."""
    tree: Node | None = None
    """What a matching that evaluates trees of predicates asks in place of the expression, if that is said."""


class Interested(Protocol):
    """Who is interested in what."""

    def add(self, interest: Interest) -> None:
        """From now on there is this interest."""
        ...

    def remove(self, interest: Interest) -> None:
        """There no longer is. Its owner may still be interested in the same for another reason."""
        ...


class Sought(Wanted, Protocol):
    """Who is looked for where an event is divided."""

    @property
    def hops(self) -> Mapping[str, str]:
        """The homes elsewhere that are looked for, and the neighbours through which they are reached."""
        ...

    @property
    def local(self) -> bool:
        """Whether any subscription here is looked for."""
        ...


class Forwarding(Interested, Protocol):
    """How a broker finds who is interested in an event."""

    def stored(self) -> list[bytes] | None:
        """All that it was told of interests, as bytes; None if it cannot be opened again."""
        ...

    def enter(self, event: Event) -> Prefix:
        """What travels with an event from where it enters; unmatched, if nothing does."""
        ...

    def find(self, prefix: Prefix, event: Event, wanted: Sought | None = None) -> Found:
        """Who of those wanted is interested. The event is looked at only to match it afresh."""
        ...

    def onward(self, prefix: Prefix, found: Found, to: str) -> Prefix:
        """What travels with the copy to this neighbour, now that this was found."""
        ...


@runtime_checkable
class Indexed(Protocol):
    """A forwarding or a matching that may have the same interests in an index for whole batches."""

    def interests(self, paths: "Paths") -> "Sequence[Interests] | None":
        """The index, of events that are scanned for these paths; None if events are to be matched singly."""
        ...

    def taken(self, events: int) -> Mapping[str, int]:
        """What methods count of it: since this was last asked, for a batch of so many events."""
        ...


class Matching(Interested, Protocol):
    """How a broker matches an event's content."""

    def match(self, event: Event, wanted: Wanted | None = None) -> Found:
        """Who of those wanted is interested: certain where the owner's cover holds, doubtful where it may."""
        ...


class Learner(Protocol):
    """Something that goes by what it has learned of events."""

    def is_due(self) -> bool:
        """Whether it is time to learn."""
        ...

    def sampled(self, events: Sequence[Event]) -> "Learned":
        """What these events teach."""
        ...

    def learn(self, learned: "Learned") -> None:
        """Go by this from now on."""
        ...


@runtime_checkable
class Learning(Protocol):
    """A forwarding that may have something to learn."""

    def learner(self) -> Learner | None:
        """Who learns for it, if anybody does."""
        ...


class Dissemination(Protocol):
    """Who is told of a change."""

    def tell(
        self, change: Subscribed | Ended, teller: str | None, neighbours: Sequence[str]
    ) -> Iterable[tuple[str, Subscribed | Ended]]:
        """To whom to tell what, now that this was learned from the teller, None for oneself."""
        ...

    def tell_all(self, known: Iterable[Subscribed | Ended]) -> Iterable[Subscribed | Ended]:
        """What to tell a new neighbour, of all that is known."""
        ...


class Offloading(Enum):
    """How subscribers find out for a broker which filters cover which."""

    ROUNDS = "rto"
    """Those that have volunteered compare what is new with the table."""
    FIXED = "ff"
    """With a subscription they say where its filters go in a set that they know."""


@dataclass(frozen=True, slots=True)
class OnTree:
    """Filters go along a spanning tree, and neighbours are told a summary of what is wanted behind a link."""

    summary: Callable[[], Summary]
    """Makes one that holds nothing yet."""
    advertising: bool = False
    """Whether neighbours are told only what overlaps what is advertised on their side, and publishers must
    advertise what they send."""
    inflating: bool = False
    """Whether what is gone is taken back only from whoever asks."""
    counting: bool = False
    """Whether publishers may advertise, and what enters without that is only counted."""
    linger_ms: int = LINGER_MS
    """How long what was advertised goes on pulling subscriptions after its end."""
    table: SharedTable | None = None
    """One for all neighbours, if they share one."""
    offloading: Offloading | None = None
    """How subscribers take part in finding out where filters go in it."""
    size: int | None = None
    """For how many others a filter waits then; or how many a fixed set has."""

    @property
    def takes_adverts(self) -> bool:
        """Whether publishers may advertise."""
        return self.advertising or self.counting
