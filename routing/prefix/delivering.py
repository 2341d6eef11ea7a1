"""The last broker before a subscriber: who of those found is owed the event.

A cover may hold for more than its filter, and an owner may have been found in doubt. So a certain one is owed
the event if its filter has no residual or the residual is true; a doubtful one is if its whole filter
matches. `paper` delivery checks nothing: it shows what prefix forwarding alone lets through.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Protocol

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


class Filters(Protocol):
    """The filters of owners."""

    def __getitem__(self, owner: Owner, /) -> Compiled: ...


def decide(
    found: Found,
    filters: Filters,
    event: Event,
    *,
    paper: bool = False,
    alike: Callable[[Owner], Hashable] | None = None,
) -> Owed:
    """Of the owners found, those whose filter matches.

    Of owners that are alike it is enough if one matches: once that is known, no other one is evaluated. Those
    are taken in their order, so that as much is evaluated whoever asks.
    """
    owed = Owed()
    certain = {owner for owner in found.certain if filters[owner].exact}
    owed.owners = found.certain | found.doubtful if paper else certain
    if paper:
        return owed
    others = (found.certain | found.doubtful) - certain
    done = set(map(alike, certain)) if alike else set()
    for owner in sorted(others, key=str) if alike else others:
        if alike and alike(owner) in done:
            continue
        owed.checks += 1
        verdict = filters[owner].matches(event)
        if isinstance(verdict, Rejection):
            owed.undecided[owner] = verdict
        elif verdict:
            owed.owners.add(owner)
            if alike:
                done.add(alike(owner))
    return owed
