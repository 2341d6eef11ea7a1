"""One table of all filters that neighbours are told of, and for each neighbour what it is told of them.

Theory of operation. With a summary for each link, a filter is compared with others once for each neighbour.
Here all filters that any neighbour is to hear of stand in one poset, from which no source eliminates
anything, so that a filter is placed once. What a neighbour sees of it is a *view*: which of the filters are
there for it to hear of (*present*), and which of these nothing else that is present covers; those it is told.
A filter throws a *shadow* if it is present or something above it is; what lies in a shadow is not told.
Whatever changes goes down the links as far as shadows change, and no test is made for it.

Filters that cover each other mean the same, and the first of them in their order hides the others; so hiding
is an order, and the poset is the same whatever came first. The filter of everything is above all others
without a test, and not in the poset.

With `waits`, a new filter is not placed at once but *waits*, under an ordinal, until somebody says where it
goes; meanwhile nobody is told of it. While it is *frozen*, nothing leaves the poset or those that wait.

Invariants: of each view, what is told are the filters that are present, placed and in no shadow; what no view
has leaves the table. Cost: placing is a search in the poset; a change in a view is a step for each filter
whose shadow changes, and each link below.
"""

from collections import Counter
from collections.abc import Iterable, Set

from branchline.routing.dissemination.summaries import hides
from branchline.routing.filters import EVERYTHING, Filter, filter_order
from branchline.routing.posets.comparing import Comparisons
from branchline.routing.posets.poset import Poset
from branchline.routing.posets.searching import find_place


class Hiding(Comparisons):
    """Compares filters by which of them stands for the other."""

    __slots__ = ()

    def covers(self, one: Filter, other: Filter) -> bool:
        self.tests += 1
        return hides(one, other)


class SharedTable:
    """The filters that any neighbour is to hear of."""

    def __init__(self, *, waits: bool = False) -> None:
        """With `waits`, somebody else places filters."""
        self.poset = Poset()
        self.poset.comparisons = Hiding()
        self.waits = waits
        self.waiting: dict[Filter, int] = {}
        """The filters that wait, in their order, and the ordinals of them."""
        self.given = 0
        """The last ordinal that was given."""
        self.frozen = False
        self.counts: Counter[str] = Counter()
        self._views: list[View] = []
        self._wanted: dict[Filter, int] = {}
        """In how many views a filter is present."""
        self._unwanted: dict[Filter, None] = {}
        """What is in no view any more, and has yet to leave."""

    def view(self) -> "View":
        """What one more neighbour is told, of nothing so far."""
        made = View(self)
        self._views.append(made)
        return made

    def is_placed(self, ordinal: int) -> bool:
        """Whether all filters up to this one are placed, or have left."""
        return not self.waiting or ordinal < next(iter(self.waiting.values()))

    # Placing

    def place(self, filter_: Filter, above: Set[int], below: Set[int]) -> int:
        """Put a filter between others; the number that it has now."""
        self.waiting.pop(filter_, None)
        number = self.poset.insert(filter_, above, below)
        self.poset.give(number, number, ())
        self.counts["table_placed"] += 1
        for view in self._views:
            view.update((number, *below))
        return number

    def place_by_tests(self, filter_: Filter) -> None:
        """Find out where a filter goes, and put it there."""
        above, below, _ = find_place(self.poset, filter_)
        self.place(filter_, above, below)
        self.count_tests()

    def place_all(self) -> None:
        """Find out where all filters go that wait."""
        for filter_ in list(self.waiting):
            self.place_by_tests(filter_)

    def count_tests(self) -> None:
        """Count the tests that were made so far."""
        self.counts["covering_tests"] += self.poset.comparisons.tests
        self.poset.comparisons.tests = 0

    def thaw(self) -> None:
        """Let go of what was kept only because the table was frozen."""
        self.frozen = False
        unwanted, self._unwanted = self._unwanted, {}
        # In an order that does not hang on how they came: they are linked anew around what has left.
        for filter_ in sorted(unwanted, key=filter_order):
            if filter_ not in self._wanted:
                self._leave(filter_)

    def restore(self, standing: Iterable[tuple[int, Filter, Iterable[int]]], following: int) -> None:
        """Be a table of these filters, which nobody wants yet, and frozen until it is known what waits."""
        known = list(standing)
        self.poset.restore(known, following)
        for number, _, _ in known:
            self.poset.give(number, number, ())
        self.frozen = True

    def queue(self, waiting: dict[Filter, int], given: int, *, frozen: bool) -> None:
        """All that is wanted is known: these filters wait."""
        self.waiting, self.given = waiting, given
        here = (self.poset.entry(number).filter for number in self.poset)
        self._unwanted = {each: None for each in (*here, *waiting) if each not in self._wanted}
        self.frozen = True
        if not frozen:
            self.thaw()

    # Views

    def want(self, filter_: Filter) -> None:
        """One more view has the filter."""
        self._wanted[filter_] = self._wanted.get(filter_, 0) + 1
        if filter_ in self.poset or filter_ in self.waiting:
            return
        if self.waits:
            self.given += 1
            self.waiting[filter_] = self.given
        else:
            self.place_by_tests(filter_)

    def unwant(self, filter_: Filter) -> None:
        """One view fewer has it."""
        self._wanted[filter_] -= 1
        if not self._wanted[filter_]:
            del self._wanted[filter_]
            if self.frozen:
                self._unwanted[filter_] = None
            else:
                self._leave(filter_)

    def forget(self, view: "View") -> None:
        """There is no such neighbour any more."""
        self._views.remove(view)

    def _leave(self, filter_: Filter) -> None:
        number = self.poset.number(filter_)
        if number is None:
            self.waiting.pop(filter_, None)
            return
        below = tuple(self.poset.entry(number).below)
        self.poset.take([number], number)
        for view in self._views:
            view.drop_number(number, below)


class View:
    """What one neighbour is told: a summary that has its tests made for it."""

    def __init__(self, table: SharedTable) -> None:
        self.counts = table.counts
        self.version = 0
        self._table = table
        self._reasons: dict[Filter, int] = {}
        self._shadows: set[int] = set()
        """The numbers of those that are present, or below one that is."""
        self._hidden: set[int] = set()
        """The numbers of those that are present and not told."""
        self._told: set[Filter] = set()

    def add(self, filter_: Filter) -> None:
        self._reasons[filter_] = self._reasons.get(filter_, 0) + 1
        if self._reasons[filter_] > 1:
            self.counts["told_identical"] += 1
        elif filter_ == EVERYTHING:
            self.version += 1
        else:
            self._table.want(filter_)
            self._reconsider(filter_)

    def remove(self, filter_: Filter) -> None:
        self._reasons[filter_] -= 1
        if self._reasons[filter_]:
            return
        del self._reasons[filter_]
        if filter_ == EVERYTHING:
            self.version += 1
        else:
            self._reconsider(filter_)
            self._table.unwant(filter_)

    def told(self) -> Set[Filter]:
        return {EVERYTHING} if EVERYTHING in self._reasons else self._told

    def drop(self) -> None:
        for filter_, reasons in list(self._reasons.items()):
            for _ in range(reasons):
                self.remove(filter_)
        self._table.forget(self)

    def _reconsider(self, filter_: Filter) -> None:
        number = self._table.poset.number(filter_)
        if number is not None:
            self.update([number])

    def update(self, numbers: Iterable[int]) -> None:
        """See anew which of these are told, and whatever hangs on it below."""
        pending = list(numbers)
        while pending:
            number = pending.pop()
            entry = self._table.poset.entry(number)
            covered = not self._shadows.isdisjoint(entry.above)
            present = entry.filter in self._reasons
            if (covered and present) != (number in self._hidden):
                self._hidden ^= {number}
                self.counts["told_covered"] += covered and present
            if (present and not covered) != (entry.filter in self._told):
                self._told ^= {entry.filter}
                self.version += 1
            if (covered or present) != (number in self._shadows):
                self._shadows ^= {number}
                pending += entry.below

    def drop_number(self, number: int, below: Iterable[int]) -> None:
        """A filter that is present nowhere has left, and these were right below it."""
        self._shadows.discard(number)
        self.update(below)
