"""Content is matched with k-d trees: for filters that ask for ranges of numbers, few attributes at a time.

A filter's ranges of numbers are a box, which stands in a tree (`kd_tree.py`, `kd_forest.py`). What else it
asks for is verified where its box was found. A filter without any range of numbers is asked beside the trees,
one after the other.

Cost: of an event, a walk in each tree and a look at each filter that has no box. So this is for numbers, and
for events that lie in few boxes; text is for other methods.
"""

from collections.abc import Mapping

from branchline.routing.event import Event
from branchline.routing.filters import Filter
from branchline.routing.methods.kd_forest import KdForest, box_of
from branchline.routing.methods.owning import Owning
from branchline.routing.methods.protocols import Interest, Matching
from branchline.routing.prefix.forwarding import Found, Wanted
from branchline.routing.prefix.places import Owner
from branchline.routing.prefix.trees import Trees


class KdMatching:
    """Filters and their owners, the filters in a forest of k-d trees."""

    def __init__(self) -> None:
        self._owning = Owning()
        self._forest = KdForest[Mapping[Owner, int]]()
        self._beside: dict[Filter, Mapping[Owner, int]] = {}
        """Those without a box."""

    def add(self, interest: Interest) -> None:
        for filter_ in interest.compiled.cover:
            is_there = filter_ in self._owning
            self._owning.add(filter_, interest.owner)
            if is_there:
                continue
            if box_of(filter_):
                self._forest.add(filter_, self._owning[filter_])
            else:
                self._beside[filter_] = self._owning[filter_]

    def remove(self, interest: Interest) -> None:
        for filter_ in interest.compiled.cover:
            self._owning.remove(filter_, interest.owner)
            if filter_ not in self._owning:
                if box_of(filter_):
                    self._forest.remove(filter_)
                else:
                    del self._beside[filter_]

    def match(self, event: Event, wanted: Wanted | None = None) -> Found:
        found = Found()
        holding = list(self._forest.holding(event))
        holding += [owners for filter_, owners in self._beside.items() if event.may_match((filter_,))]
        for owners in holding:
            found.certain.update(owners if wanted is None else (each for each in owners if each in wanted))
        if event.met_array:
            found.certain, found.doubtful = set(), found.certain
        found.counts = {**self._forest.counts, "kd_beside": len(self._beside)}
        return found

    def describe(self) -> str:
        """The trees, and how many filters are beside them."""
        return f"{self._forest.describe()}\n{len(self._beside)} filters without a box"


def make(number: int | None, trees: Trees) -> Matching:
    """Matching with k-d trees."""
    return KdMatching()
