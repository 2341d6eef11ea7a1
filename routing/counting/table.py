"""A forwarding table, matched by counting.

Theory of operation. An *interface* has a predicate, which is a disjunction of filters; a filter is a
conjunction of constraints. An index finds the constraints that an event satisfies (`index.py`); each adds one
to the counters of its filters. A filter whose counter comes to its size matches, and so does its interface:
its other filters are not counted any more. When all interfaces are decided, the rest of the event is not
looked at. Equal constraints of different filters are one.

One bit set has the interfaces that are done or excluded. It begins with those that the selectivity table
rules out (`selectivity.py`). Those that nobody wants are put into it when one of their filters is first
counted: there may be as many interfaces as subscriptions, most of which the event never comes near.

A table is a dictionary: made for looking up, and never changed. Whoever keeps one tells it which of its
filters still stand; it asks when one matches. That a filter is gone leaves determinants as they are: they
hold for all filters of an interface, so for fewer too.

Invariant: an interface is found if and only if one of its standing filters holds (with arrays: if each of the
filter's constraints holds for some element).

Cost: of making it a few µs a constraint; of an event O(constraints satisfied + filters counted), and
interfaces / 8 bytes to be cleared.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from branchline.routing.counting.index import Attribute, ConstraintIndex
from branchline.routing.counting.selectivity import Selectivity
from branchline.routing.event import Event
from branchline.routing.filters import Constraint, Filter
from branchline.routing.prefix.forwarding import Found, Wanted
from branchline.routing.prefix.places import Owner

EXCLUDED, COUNTED, EARLY = "interfaces_excluded", "constraints_counted", "interfaces_early"
"""What is counted for each event: the interfaces that the selectivity table rules out; how often a counter of
a filter goes up; the interfaces that are found while attributes of the event are still left to look at."""

Stands = Callable[[Owner, Filter], bool]


class CountingTable:
    """Filters of interfaces, ready to be counted. An interface is an owner."""

    def __init__(self, pairs: Iterable[tuple[Owner, Filter]], rounds: int) -> None:
        self._interfaces: dict[Owner, int] = {}
        self._owners: list[Owner] = []
        self._filters: list[Filter] = []
        self._interface: list[int] = []
        """For each filter its interface."""
        self._always: list[int] = []
        """The filters without constraints."""
        numbers: dict[Constraint, int] = {}
        self._counted: list[list[int]] = []
        """For each constraint its filters."""
        of_interface: list[list[Filter]] = []
        for owner, filter_ in pairs:
            interface = self._interfaces.setdefault(owner, len(of_interface))
            if interface == len(of_interface):
                self._owners.append(owner)
                of_interface.append([])
            of_interface[interface].append(filter_)
            if not filter_:
                self._always.append(len(self._filters))
            for constraint in filter_:
                number = numbers.setdefault(constraint, len(self._counted))
                if number == len(self._counted):
                    self._counted.append([])
                self._counted[number].append(len(self._filters))
            self._filters.append(filter_)
            self._interface.append(interface)
        self._index = ConstraintIndex(list(numbers))
        self._selectivity = Selectivity(of_interface, rounds)

    def __len__(self) -> int:
        return len(self._filters)

    @property
    def constraints(self) -> int:
        """How many there are in all filters."""
        return sum(map(len, self._filters))

    def pairs(self) -> Iterable[tuple[Owner, Filter]]:
        """All that it was made of."""
        return zip(map(self._owners.__getitem__, self._interface), self._filters, strict=True)

    def find(self, event: Event, wanted: Wanted | None, stands: Stands, found: Found) -> None:
        """Add the interfaces that the event matches, of those that are wanted, to those found for certain."""
        met = self._index.met(event)
        excluded = self._selectivity.excluded(met)
        done = _Done(len(self._owners), excluded)
        for owner in found.certain:
            if owner in self._interfaces:
                done.add(self._interfaces[owner])
        attributes = tuple(self._index.looked_at(met))
        counted, early = self._count(event, attributes, wanted, stands, done, found)
        add_counts(found, excluded.bit_count(), counted, early)

    def _count(
        self,
        event: Event,
        attributes: Sequence[Attribute],
        wanted: Wanted | None,
        stands: Stands,
        done: "_Done",
        found: Found,
    ) -> tuple[int, int]:
        """Count, until everybody is decided: how often, and how many were found early."""
        interfaces, owners, filters, bits = self._interface, self._owners, self._filters, done.bits
        counters: dict[int, int] = {}
        asked: set[int] = set()
        counted = early = 0
        left = len(attributes)
        waiting: Iterable[int] = self._always
        while True:
            for filter_ in waiting:
                interface = interfaces[filter_]
                if bits[interface >> 3] >> (interface & 7) & 1:
                    continue
                owner, size = owners[interface], len(filters[filter_])
                count = counters[filter_] = counters.get(filter_, 0) + 1
                counted += size > 0
                if count == 1 and wanted is not None and interface not in asked:
                    asked.add(interface)
                    if owner not in wanted:
                        done.add(interface)
                        continue
                if count >= size and stands(owner, filters[filter_]):
                    found.certain.add(owner)
                    done.add(interface)
                    early += left > 0
                    if not done.left or (wanted is not None and wanted.enough(found)):
                        return counted, early
            if not left or not done.left:
                return counted, early
            satisfied = attributes[len(attributes) - left].satisfied(event)
            waiting = chain.from_iterable(map(self._counted.__getitem__, satisfied))
            left -= 1

    def describe(self) -> str:
        """How many there are of everything, the names that are asked first, and the index."""
        return "\n".join(
            [
                f"{len(self._owners)} interfaces, {len(self)} filters, {self.constraints} constraints,"
                f" {len(self._counted)} of them different",
                f"asked first: {self._selectivity.describe() or 'nothing'}",
                self._index.describe(),
            ]
        )


class _Done:
    """The interfaces that are done or excluded."""

    __slots__ = ("bits", "left")

    def __init__(self, size: int, excluded: int) -> None:
        self.bits = bytearray(excluded.to_bytes((size + 7) // 8, "little"))
        self.left = size - excluded.bit_count()

    def add(self, interface: int) -> None:
        bit = 1 << (interface & 7)
        self.left -= not self.bits[interface >> 3] & bit
        self.bits[interface >> 3] |= bit


def add_counts(found: Found, excluded: int, counted: int, early: int) -> None:
    """Add to what was counted for an event."""
    for name, count in ((EXCLUDED, excluded), (COUNTED, counted), (EARLY, early)):
        found.counts[name] = found.counts.get(name, 0) + count
