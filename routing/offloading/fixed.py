"""Fixed filtersets: clients know some filters of the table, and say where a new one goes among them.

Theory of operation. With an assignment, clients get a fixed set of filters. A subscription comes with its
immediate predecessors and successors in that set. Those that are claimed are verified, a test each, and then
the links of the table say more: all that lies above a predecessor covers the filter, all that lies below a
successor is covered by it. Of the fixed set, what is not claimed is believed not to be related, and with it
what lies below a filter that does not cover the new one, and above one that it does not cover. The router
tests the three sets that are left: what may cover the filter beside what is known to, what lies between, and
what it may cover beside what it is known to.

Invariants: as with `router.py`, an honest client changes nothing but the number of tests; a false claim is
refuted, and one that is left out makes the filter stand higher than it need.

For a fixed filter that has left the table stand the next ones in the set. An old version of the set is not
used: the filter is then placed by tests alone. Cost: the more of the table the fixed set has, the fewer
tests; clients make two for each fixed filter.
"""

from collections.abc import Iterable
from typing import NamedTuple

from branchline.routing.filters import Filter
from branchline.routing.offloading.client import order_of
from branchline.routing.offloading.messages import FIXED_MAX, Assignment, Claim, Indices
from branchline.routing.offloading.rounds import reach
from branchline.routing.posets.graph import Source
from branchline.routing.posets.poset import Poset
from branchline.routing.posets.searching import lowest
from branchline.routing.posets.subscribing import NOTHING, Subscribed, subscribe


class Known(NamedTuple):
    """What claims and links say of a filter, in numbers of the table."""

    above: set[int]
    below: set[int]
    not_above: set[int]
    """Of the fixed set, what does not cover the filter; nor does anything below."""
    not_below: set[int]
    """What the filter does not cover."""


class FixedRouter:
    """A table, and the set that clients know of it."""

    def __init__(self, table: Poset) -> None:
        self.table = table
        self.assignment = Assignment(0, (), ())
        self.refuted = 0
        self._numbers: list[int] = []
        """For each place in the fixed set, the number of the filter in the table."""
        self._above: list[set[int]] = []
        """For each place in the fixed set, all places above it."""
        self._below: list[set[int]] = []

    def assign(self, filters: Iterable[Filter]) -> Assignment:
        """Give clients another fixed set, of filters that are in the table; others are left out."""
        numbers = {each: number for each in filters if (number := self.table.number(each)) is not None}
        chosen = tuple(numbers)
        assert len(chosen) <= FIXED_MAX, f"a fixed set has at most {FIXED_MAX} filters"
        self.assignment = Assignment(self.assignment.version + 1, chosen, order_of(chosen))
        self._numbers = list(numbers.values())
        self._above = reach(self.assignment.order)
        self._below = [
            {each for each, above in enumerate(self._above) if place in above} for place in range(len(chosen))
        ]
        return self.assignment

    def subscribe(self, claim: Claim, source: Source) -> Subscribed:
        """A source asks for a filter, and says where it goes."""
        filter_, table = claim.filter, self.table
        if filter_ in table or claim.version != self.assignment.version:
            return subscribe(table, filter_, source)
        known = self._known(claim)
        covering = self._covering(filter_, known, source)
        if any(source in table.entry(each).sources for each in covering):
            return NOTHING
        above = lowest(table, covering)
        below, covered = self._covered(filter_, known, above)
        return Subscribed(True, tuple(table.give(table.insert(filter_, above, below), source, covered)))

    def _known(self, claim: Claim) -> Known:
        table, tests, filter_ = self.table, self.table.comparisons, claim.filter
        above, may_above = self._claimed(claim.above, self._above)
        below, may_below = self._claimed(claim.below, self._below)
        below -= above
        true_above = {each for each in above if tests.covers(table.entry(each).filter, filter_)}
        true_below = {each for each in below if tests.covers(filter_, table.entry(each).filter)}
        self.refuted += len(above) - len(true_above) + len(below) - len(true_below)
        fixed = self._there(range(len(self._numbers)))
        return Known(
            table.all_above(true_above),
            table.all_below(true_below),
            fixed - may_above,
            table.all_above(fixed - may_below),
        )

    def _claimed(self, places: Indices, beyond: list[set[int]]) -> tuple[set[int], set[int]]:
        """The numbers of what is claimed, and of all that follows of the fixed set.

        For what has left the table stands all that lies beyond it.
        """
        given = {each for each in places if 0 <= each < len(beyond)}
        nearest = set(given)
        for place in given:
            if not self.table.has(self._numbers[place]):
                nearest |= beyond[place]
        return self._there(nearest), self._there(given.union(*(beyond[each] for each in given)))

    def _there(self, places: Iterable[int]) -> set[int]:
        """The numbers of those places of the fixed set that are in the table."""
        return {number for place in places if self.table.has(number := self._numbers[place])}

    def _covering(self, filter_: Filter, known: Known, source: Source) -> set[int]:
        """All that covers the filter: what is known to, and what tests find right below that."""
        table = self.table
        found = set(known.above)
        if any(source in table.entry(each).sources for each in found):
            return found
        seen = found | known.not_above | known.below
        pending = list(table.roots.union(*(table.entry(each).below for each in known.above)) - seen)
        seen.update(pending)
        while pending:
            number = pending.pop()
            entry = table.entry(number)
            if table.comparisons.covers(entry.filter, filter_):
                found.add(number)
                if source in entry.sources:
                    break
                more = entry.below - seen
                seen |= more
                pending += more
        return found

    def _covered(self, filter_: Filter, known: Known, above: set[int]) -> tuple[set[int], set[int]]:
        """The immediate successors, and all that the filter covers."""
        table = self.table
        level = min((table.entry(each).below for each in above), key=len) if above else table.roots
        seen = set(level)
        met: set[int] = set()
        while level:
            after: set[int] = set()
            for number in level:
                entry = table.entry(number)
                if number in known.below or (
                    number not in known.not_below and table.comparisons.covers(filter_, entry.filter)
                ):
                    met.add(number)
                else:
                    after |= entry.below
            level = after - seen
            seen |= level
        covered = table.all_below(met)
        return {number for number in met if table.entry(number).above.isdisjoint(covered)}, covered
