"""Every distinct filter is asked: O(filters) an event, and obviously right."""

from branchline.routing.event import Event
from branchline.routing.methods.owning import Owning
from branchline.routing.methods.protocols import Interest, Matching
from branchline.routing.prefix.forwarding import Found, Wanted
from branchline.routing.prefix.trees import Trees


class TableMatching:
    """Filters and their owners, counted."""

    def __init__(self) -> None:
        self._owning = Owning()

    def add(self, interest: Interest) -> None:
        for filter_ in interest.compiled.cover:
            self._owning.add(filter_, interest.owner)

    def remove(self, interest: Interest) -> None:
        for filter_ in interest.compiled.cover:
            self._owning.remove(filter_, interest.owner)

    def match(self, event: Event, wanted: Wanted | None = None) -> Found:
        found = Found()
        for filter_, owners in self._owning.items():
            if event.may_match((filter_,)):
                found.certain.update(each for each in owners if wanted is None or each in wanted)
        if event.met_array:
            found.certain, found.doubtful = set(), found.certain
        found.counts["filters_asked"] = len(self._owning)
        return found


def make(number: int | None, trees: Trees) -> Matching:
    """Matching without any index."""
    return TableMatching()
