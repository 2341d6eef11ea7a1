"""The last broker before a subscriber: who of those found is owed the event.

A cover may hold for more than its filter, and an owner may have been found in doubt. So a certain one is owed
the event if its filter has no residual or the residual is true; a doubtful one is if its whole filter
matches. `paper` delivery checks nothing: it shows what prefix forwarding alone lets through.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from branchline.routing.codes import Rejection
from branchline.routing.compiling import Compiled
from branchline.routing.event import Event
from branchline.routing.prefix.forwarding import Found
from branchline.routing.prefix.places import Owner


@dataclass(slots=True)
class Owed:
    """Who is owed an event, whom it could not be decided for, and what that took."""

    owners: set[Owner] = field(default_factory=set)
    undecided: dict[Owner, Rejection] = field(default_factory=dict)
    checks: int = 0
    """Filters that were evaluated on the event."""


def decide(found: Found, filters: Mapping[Owner, Compiled], event: Event, *, paper: bool = False) -> Owed:
    """Of the owners found, those whose filter matches."""
    owed = Owed()
    for owner in found.certain | found.doubtful:
        compiled = filters[owner]
        if paper or (owner in found.certain and compiled.exact):
            owed.owners.add(owner)
            continue
        owed.checks += 1
        verdict = compiled.matches(event)
        if isinstance(verdict, Rejection):
            owed.undecided[owner] = verdict
        elif verdict:
            owed.owners.add(owner)
    return owed
