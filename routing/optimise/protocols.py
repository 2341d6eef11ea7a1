"""What an optimisation of a table is: it makes fewer or simpler entries that match at least the same events.

Theory of operation. Of another home a broker only asks whether an event must go there. So all that is kept
for one home is one disjunction, and whoever finds other entries for it that match at least as much may put
them in their place: an event that is sent for nothing is found out where it arrives, one that is not sent is
lost. Subscriptions of the broker's own subscribers are never touched: those must be told apart.

An optimisation is a pure function of the entries of one owner, as a set: it gives the same, in the same
order, whatever the order in which interests came and went. So a broker that was rebuilt has the same table as
one that grew.

An optimisation is one file of this package with a `make`, and one line in `methods/naming.py`.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from branchline.routing.filters import Constraint
from branchline.routing.optimise.entries import Entry


class Selectivity(Protocol):
    """How selective constraints are. Whatever it says, no event is lost; more may be sent for nothing."""

    def share(self, constraint: Constraint) -> float:
        """The share of events, from 0 to 1, that satisfy the constraint."""
        ...


class Smaller(NamedTuple):
    """What an optimisation made of the entries of an owner."""

    entries: Sequence[Entry]
    """In the order of `entries.in_order`."""
    counts: Mapping[str, int]
    """What was saved, by names that say what of."""


class Optimisation(Protocol):
    """One way to make the entries of an owner fewer or simpler."""

    def optimise(self, entries: Sequence[Entry], selectivity: Selectivity) -> Smaller:
        """Entries that together match whatever these match. They come in the order of `in_order`."""
        ...
