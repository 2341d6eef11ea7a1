"""Summaries: what a neighbour is told, of all that is wanted on this side of the link.

A summary holds a set of filters, each for one reason or more, and gives the set that stands for them: every
event that one of them matches, one of the told matches too. What it gives hangs on the set alone, and not on
how it came about; so a broker that was made anew from its state tells the same as one that never stopped.

- *identity* tells each different filter once;
- *covering* tells those that no other one covers; filters that cover each other mean the same, and the first
  of them in their order is told. What hides another is told itself, so nothing hangs on what is hidden;
- *merged* tells what merging makes of those: perfect merging matches no more, imperfect a little.

Cost: identity O(1) a change. Covering: comparisons with the told filters that share a point with it, or an
attribute; if one goes that hid others, the same for each of them. Merged: all that is told, once after a
change.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Set
from typing import NamedTuple, Protocol

from branchline.routing.filters import Filter, covers, filter_order
from branchline.routing.posets.filed import Filed


class Summary(Protocol):
    """What stands for a set of filters."""

    counts: Counter[str]
    """What was spared so far, by how."""

    @property
    def version(self) -> int:
        """Raised whenever something else is told by what has happened elsewhere."""
        ...

    def add(self, filter_: Filter) -> None:
        """There is one reason more for this filter."""
        ...

    def remove(self, filter_: Filter) -> None:
        """There is one less."""
        ...

    def told(self) -> Set[Filter]:
        """What stands for all of them."""
        ...

    def drop(self) -> None:
        """Nobody is told any of it any more."""
        ...


class Alone:
    """A summary that hangs on nothing but its own filters."""

    version = 0

    def drop(self) -> None:
        """There is nobody else to know of it."""


class IdentitySummary(Alone):
    """Each filter once."""

    def __init__(self) -> None:
        self._reasons: dict[Filter, int] = {}
        self.counts: Counter[str] = Counter()

    def add(self, filter_: Filter) -> None:
        self._reasons[filter_] = self._reasons.get(filter_, 0) + 1
        self.counts["told_identical"] += self._reasons[filter_] > 1

    def remove(self, filter_: Filter) -> None:
        self._reasons[filter_] -= 1
        if not self._reasons[filter_]:
            del self._reasons[filter_]

    def told(self) -> Set[Filter]:
        return self._reasons.keys()


class CoveringSummary(Alone):
    """Those that no other one covers."""

    def __init__(self) -> None:
        self._reasons: dict[Filter, int] = {}
        self._told = Filed()
        self._hider: dict[Filter, Filter] = {}
        """For each filter that is hidden, one that is told and covers it."""
        self._hides: dict[Filter, set[Filter]] = {}
        self.counts: Counter[str] = Counter()

    def add(self, filter_: Filter) -> None:
        self._reasons[filter_] = self._reasons.get(filter_, 0) + 1
        if self._reasons[filter_] > 1:
            self.counts["told_identical"] += 1
        else:
            self._place(filter_)

    def remove(self, filter_: Filter) -> None:
        self._reasons[filter_] -= 1
        if self._reasons[filter_]:
            return
        del self._reasons[filter_]
        hider = self._hider.pop(filter_, None)
        if hider is not None:
            self._hides[hider].discard(filter_)
            return
        self._told.remove(filter_)
        for hidden in self._hides.pop(filter_, ()):
            del self._hider[hidden]
            self._place(hidden)

    def told(self) -> Set[Filter]:
        return self._told.filters

    def _place(self, filter_: Filter) -> None:
        """Hide the filter behind one that is told, or tell it and hide what it covers."""
        pending = [filter_]
        while pending:
            placed = pending.pop()
            hider = next((each for each in self._told.wider(placed) if self._hides_it(each, placed)), None)
            if hider is not None:
                self._hide(placed, hider)
                continue
            beneath = [each for each in self._told.narrower(placed) if self._hides_it(placed, each)]
            self._told.add(placed)
            for each in beneath:
                self._told.remove(each)
                self._hide(each, placed)
                for hidden in self._hides.pop(each, ()):
                    del self._hider[hidden]
                    pending.append(hidden)

    def _hides_it(self, one: Filter, other: Filter) -> bool:
        self.counts["covering_tests"] += 1
        return hides(one, other)

    def _hide(self, filter_: Filter, hider: Filter) -> None:
        self.counts["told_covered"] += 1
        self._hider[filter_] = hider
        self._hides.setdefault(hider, set()).add(filter_)


class Merging(NamedTuple):
    """What is made of a set of filters, so that it matches at least the same."""

    merge: Callable[[Set[Filter]], Set[Filter]]
    counts: str
    """The name under which is counted what is spared."""
    size: Callable[[Set[Filter]], int] = len
    """In what that is counted: in filters, unless another measure is given."""


class MergedSummary:
    """What merging makes of what another summary tells."""

    def __init__(self, below: Summary, mergings: Iterable[Merging]) -> None:
        """With mergings, one after the other."""
        self._below = below
        self._mergings = list(mergings)
        self._merged: Set[Filter] | None = None
        self._merged_of = below.version
        self.counts = below.counts

    @property
    def version(self) -> int:
        return self._below.version

    def add(self, filter_: Filter) -> None:
        self._below.add(filter_)
        self._merged = None

    def remove(self, filter_: Filter) -> None:
        self._below.remove(filter_)
        self._merged = None

    def told(self) -> Set[Filter]:
        if self._merged is None or self._merged_of != self.version:
            self._merged_of, made = self.version, self._below.told()
            for merging in self._mergings:
                before, made = made, merging.merge(made)
                self.counts[merging.counts] += merging.size(before) - merging.size(made)
            self._merged = made
        return self._merged

    def drop(self) -> None:
        self._below.drop()


def hides(one: Filter, other: Filter) -> bool:
    """Whether one stands for the other: it covers it, and comes first if they mean the same."""
    if not covers(one, other):
        return False
    return not covers(other, one) or filter_order(one) < filter_order(other)
