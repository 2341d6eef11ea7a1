"""Subscriptions that are pending where filters go along a tree: until all is settled that was told of them.

What a home tells its neighbours for a subscription, or has told them before and stands for it, is known at
the end of the call that has handled the request. Then the subscription is *marked* with it, and in force as
soon as every neighbour has answered. Under another topology everything is told anew, and marked anew. Where
filters wait before they are placed, it is marked when all are that waited at the time.
"""

from dataclasses import replace

from branchline.routing.control import Identity
from branchline.routing.dissemination.links import Links
from branchline.routing.overlay.letters import Report
from branchline.routing.overlay.pending import Awaited, Pending
from branchline.routing.overlay.position import Position


class MarkedPending(Pending):
    """What a home waits for, in the order in which it was asked for."""

    def __init__(self, position: Position, links: Links) -> None:
        super().__init__(position)
        self._links = links

    def await_(self, awaited: Awaited) -> list[Awaited]:
        known = self.find(awaited.identity)
        if known is not None and known.number == awaited.number and awaited.marks is None:
            awaited = replace(awaited, marks=known.marks, after=known.after)
        if awaited.marks is None and not awaited.after:
            awaited = replace(awaited, after=self._links.table.given)
        return super().await_(awaited)

    def unmarked(self) -> list[Awaited]:
        """Those of which it is not known yet what they wait for, and can be by now."""
        placed = self._links.table.is_placed
        return [each for each in self.awaited() if each.marks is None and placed(each.after)]

    def settled(self) -> list[Awaited]:
        """A neighbour has answered; what is in force by that."""
        return self._complete(self.first(len(self)))

    def reconsider(self) -> list[Awaited]:
        for awaited in self.awaited():
            again = replace(awaited, marks=None, after=self._links.table.given)
            self._waiting[awaited.identity].awaited = again
        return []

    def hear(self, report: Report) -> list[Awaited]:
        return []

    def waits_for(self, identity: Identity) -> list[str]:
        """The neighbours whose answers are missing; the home itself, until it has told them."""
        awaited = self.find(identity)
        if awaited is None:
            return []
        return [self._position.name] if awaited.marks is None else self._links.missing(awaited.marks)
