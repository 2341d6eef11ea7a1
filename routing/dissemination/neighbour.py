"""One neighbour on the spanning tree: what it has told, what it was told, and what it is owed."""

from typing import Final

from branchline.routing.dissemination.link_facts import Owed
from branchline.routing.dissemination.summaries import IdentitySummary, Summary
from branchline.routing.dissemination.telling import Stream
from branchline.routing.filters import EVERYTHING, Filter
from branchline.routing.posets.filed import Filed

ALL: Final = frozenset({EVERYTHING})
"""What somebody wants, and may send, of whom nothing is known."""


class Neighbour:
    """One neighbour on the tree."""

    def __init__(self, summary: Summary) -> None:
        self.summary = summary
        self.adverts: Summary = IdentitySummary()
        self.wanted: set[Filter] = set(ALL)
        self.advertised: set[Filter] = set(ALL)
        self.known = False
        """Whether the neighbour has told those two."""
        self.heard: tuple[Stream, int] | None = None
        self.coming: tuple[set[Filter], set[Filter]] | None = None
        """Of a table that is not whole yet, what has come so far."""
        self.sent: tuple[Stream, int] | None = None
        self.began_ms = 0
        """When the last stream began that is to be told anew."""
        self.settled = 0
        self.told: tuple[set[Filter], set[Filter]] = (set(), set())
        self.filed = Filed()
        """What was told of what is wanted, for whoever looks for what covers something; if it is inflated."""
        self.inflated = 0
        """How many filters were told, stand for nothing, and have been counted."""
        self.deflating = False
        self.changed = True
        """Whether there may be something to tell."""
        self._version = summary.version
        self.after = 0
        """The ordinal up to which filters must be placed before a stream begins."""
        self.unowed: list[tuple[int, int]] = []
        """Numbers of letters that were heard, with the ordinals that an answer waits for."""
        self.spared: dict[Filter, int] = {}
        """What was told and is wanted no longer, with the ordinals up to which it is not taken back."""
        self.owed_from = 0
        self.owed: list[Owed] = []

    def take_changed(self) -> bool:
        """Whether there may be something to tell since this was last asked, by whatever has changed."""
        before, self._version = self._version, self.summary.version
        changed, self.changed = self.changed, False
        return changed or before != self._version
