"""Rules of telling along a tree taken out, one by one, to show that the history checker misses each."""

from collections.abc import Callable

import pytest

from branchline.routing.control import Identity
from branchline.routing.dissemination import links, neighbour
from branchline.routing.dissemination.link_facts import Owed
from branchline.routing.dissemination.links import Links
from branchline.routing.dissemination.marking import MarkedPending
from branchline.routing.dissemination.summaries import CoveringSummary
from branchline.routing.dissemination.telling import Told
from branchline.routing.filters import Filter
from branchline.routing.overlay.topology import Topology

Patch = pytest.MonkeyPatch
Plant = Callable[[Patch], None]


def believe_in_silence(patch: Patch) -> None:
    """A neighbour that has told nothing yet is sent nothing."""
    patch.setattr(links, "ALL", frozenset())
    patch.setattr(neighbour, "ALL", frozenset())


def trust_old_tables(patch: Patch) -> None:
    """After a change of links, a neighbour's table stands for homes that it has told nothing of."""
    rebase = Links.rebase

    def trusting(self: Links, before: Topology | None) -> None:
        known = {name: set(link.wanted) for name, link in self._links.items() if link.known}
        rebase(self, before)
        for name, wanted in known.items():
            if name in self._links:
                self._replace(name, wanted, set(), known=True)

    patch.setattr(Links, "rebase", trusting)


def answer_at_once(patch: Patch) -> None:
    """A broker settles what it was told before anybody further on knows of it."""
    owing = Links.owing
    patch.setattr(Links, "owing", lambda self: [Owed(each.to, each.number, ()) for each in owing(self)])


def ack_too_early(patch: Patch) -> None:
    """In force as soon as accepted."""

    def waits_for(self: MarkedPending, identity: Identity) -> list[str]:
        return []

    patch.setattr(MarkedPending, "waits_for", waits_for)


def leave_hidden_what_was_hidden(patch: Patch) -> None:
    """What a filter had hidden is not told when it goes."""

    def remove(self: CoveringSummary, filter_: Filter) -> None:
        self._reasons[filter_] -= 1
        if not self._reasons[filter_]:
            del self._reasons[filter_]
            if self._hider.pop(filter_, None) is None:
                self._told.remove(filter_)

    patch.setattr(CoveringSummary, "remove", remove)


def obey_a_second_time(patch: Patch) -> None:
    """A letter that comes again, late, undoes what was told since."""
    accepts = Links.accepts

    def lax(self: Links, sender: str, told: Told) -> bool | None:
        accepted = accepts(self, sender, told)
        link = self._links.get(sender)
        again = link is not None and link.heard is not None and link.heard[0] == told.stream
        return True if accepted is False and again and not told.whole else accepted

    patch.setattr(Links, "accepts", lax)


BUGS: list[Plant] = [
    believe_in_silence,
    trust_old_tables,
    answer_at_once,
    ack_too_early,
    leave_hidden_what_was_hidden,
    obey_a_second_time,
]
