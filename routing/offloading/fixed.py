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
tests; clients make two for each fixed filter. How the set is linked is read off the table, without a test.
"""

from collections.abc import Iterable, Sequence
from itertools import chain

from branchline.routing.filters import Filter
from branchline.routing.offloading.layers import cut
from branchline.routing.offloading.messages import FIXED_MAX, Assignment, Between, Claim, Indices
from branchline.routing.offloading.rounds import reach
from branchline.routing.posets.graph import Graph, Source
from branchline.routing.posets.poset import Poset
from branchline.routing.posets.searching import Known, Place, covering, find_below, find_place, lowest
from branchline.routing.posets.subscribing import NOTHING, Subscribed, subscribe


class FixedSet:
    """A set that clients know of a table, and what their claims about it say of the table."""

    def __init__(self, table: Poset, numbers: Sequence[int], assignment: Assignment) -> None:
        """With the number in the table of each filter of the set."""
        assert len(numbers) == len(assignment.filters) <= FIXED_MAX, (
            f"a fixed set has at most {FIXED_MAX} filters"
        )
        self.assignment = assignment
        self.numbers = tuple(numbers)
        self.refuted = 0
        """Claims that proved false."""
        self._table = table
        self._above = reach(assignment.order)
        """For each place in the fixed set, all places above it."""
        self._below: list[set[int]] = [set() for _ in numbers]
        """And all below it."""
        for place, above in enumerate(self._above):
            for each in above:
                self._below[each].add(place)

    def __len__(self) -> int:
        """How many of its filters are still in the table."""
        return len(self._there(range(len(self.numbers))))

    def find_place(self, claim: Claim) -> Place:
        """Where a filter goes that is not in the table."""
        return find_place(self._table, claim.filter, self.known(claim))

    def known(self, claim: Claim) -> Known:
        """What is claimed, as far as it is true, and all that follows from it."""
        table, tests, filter_ = self._table, self._table.comparisons, claim.filter
        above, may_above = self._claimed(claim.above, self._above)
        below, may_below = self._claimed(claim.below, self._below)
        below -= above
        true_above = {each for each in above if tests.covers(table.entry(each).filter, filter_)}
        true_below = {each for each in below if tests.covers(filter_, table.entry(each).filter)}
        self.refuted += len(above) - len(true_above) + len(below) - len(true_below)
        fixed = self._there(range(len(self.numbers)))
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
            if not self._table.has(self.numbers[place]):
                nearest |= beyond[place]
        return self._there(nearest), self._there(given.union(*(beyond[each] for each in given)))

    def _there(self, places: Iterable[int]) -> set[int]:
        """The numbers of those places of the fixed set that are in the table."""
        return {number for place in places if self._table.has(number := self.numbers[place])}


class FixedRouter:
    """A table, and the set that clients know of it."""

    def __init__(self, table: Poset) -> None:
        self.table = table
        self.fixed = FixedSet(table, (), Assignment(0, (), ()))
        self._refuted = 0
        """Of the sets before."""

    @property
    def refuted(self) -> int:
        """Claims that proved false."""
        return self._refuted + self.fixed.refuted

    def assign(self, filters: Iterable[Filter]) -> Assignment:
        """Give clients another fixed set, of filters that are in the table; others are left out."""
        numbers = [number for each in filters if (number := self.table.number(each)) is not None]
        chosen = list(dict.fromkeys(numbers))
        self._refuted = self.refuted
        self.fixed = FixedSet(
            self.table, chosen, assignment_of(self.table, chosen, self.fixed.assignment.version + 1)
        )
        return self.fixed.assignment

    def subscribe(self, claim: Claim, source: Source) -> Subscribed:
        """A source asks for a filter, and says where it goes."""
        filter_, table, fixed = claim.filter, self.table, self.fixed
        if filter_ in table or claim.version != fixed.assignment.version:
            return subscribe(table, filter_, source)
        known = fixed.known(claim)
        above_all = covering(table, filter_, source, known)
        if any(source in table.entry(each).sources for each in above_all):
            return NOTHING
        above = lowest(table, above_all)
        below, covered = find_below(table, filter_, above, known)
        return Subscribed(True, tuple(table.give(table.insert(filter_, above, below), source, covered)))


def assignment_of(table: Graph, numbers: Sequence[int], version: int) -> Assignment:
    """A fixed set of these filters of a table, linked as the table says: a step for each of its links."""
    bit = {number: 1 << place for place, number in enumerate(numbers)}
    above: dict[int, int] = {}
    """For each filter of the table, the places of the set that lie above it."""
    for number in chain(*cut(table, max(1, len(table)))):
        found = 0
        for each in table.entry(number).above:
            found |= above[each] | bit.get(each, 0)
        above[number] = found
    right_above: list[list[int]] = []
    right_below: list[list[int]] = [[] for _ in numbers]
    for place, number in enumerate(numbers):
        all_above = list(_places(above[number]))
        beyond = 0
        for each in all_above:
            beyond |= above[numbers[each]]
        mine = [each for each in all_above if not beyond >> each & 1]
        right_above.append(mine)
        for each in mine:
            right_below[each].append(place)
    filters = tuple(table.entry(number).filter for number in numbers)
    links = zip(right_above, right_below, strict=True)
    return Assignment(version, filters, tuple(Between(tuple(up), tuple(down)) for up, down in links))


def _places(bits: int) -> Iterable[int]:
    while bits:
        lowest_bit = bits & -bits
        yield lowest_bit.bit_length() - 1
        bits ^= lowest_bit
