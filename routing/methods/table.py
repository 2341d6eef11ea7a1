"""Every distinct filter is asked: O(filters) an event, and obviously right."""

from branchline.routing.event import Event
from branchline.routing.filters import Filter
from branchline.routing.methods.protocols import Interest, Matching
from branchline.routing.prefix.forwarding import Found, Wanted
from branchline.routing.prefix.places import Owner
from branchline.routing.prefix.trees import Trees


class TableMatching:
    """Filters and their owners, counted."""

    def __init__(self) -> None:
        self._owners: dict[Filter, dict[Owner, int]] = {}

    def add(self, interest: Interest) -> None:
        for filter_ in interest.compiled.cover:
            owners = self._owners.setdefault(filter_, {})
            owners[interest.owner] = owners.get(interest.owner, 0) + 1

    def remove(self, interest: Interest) -> None:
        owner = interest.owner
        for filter_ in interest.compiled.cover:
            owners = self._owners[filter_]
            owners[owner] -= 1
            if not owners[owner]:
                del owners[owner]
                if not owners:
                    del self._owners[filter_]

    def match(self, event: Event, wanted: Wanted | None = None) -> Found:
        found = Found()
        for filter_, owners in self._owners.items():
            if event.may_match((filter_,)):
                found.certain.update(each for each in owners if wanted is None or each in wanted)
        if event.met_array:
            found.certain, found.doubtful = set(), found.certain
        found.counts["filters_asked"] = len(self._owners)
        return found


def make(number: int | None, trees: Trees) -> Matching:
    """Matching without any index."""
    return TableMatching()
