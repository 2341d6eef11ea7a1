"""The bfposet: all constraints that a broker knows, which turn an event into its Bloom filter.

Theory of operation. Constraints are divided by dimension, and those of a dimension are ordered by covering
(`orders.py`). The event's Bloom filter has the bits of every known constraint that its content satisfies, and
no others. So a filter whose constraints are all known and satisfied has all its bits among the event's:
nobody is missed. One that is not satisfied may have them too, by chance.

A broker elsewhere may know other constraints. It can use the event's Bloom filter if it knows the same ones,
of those that may hold for the event at all: on attributes that it has, and on the presence of any. Names of
attributes are in one of 64 *groups*, and a bit set of those that the event's names are in travels along, with
a *digest*: the sum, without carry, of the checks of all known constraints on names of these groups and on
presence. It hangs on the constraints alone, and neither on who asks for them nor on how often. If it is the
same elsewhere, every constraint that the event satisfies was known where its Bloom filter was made.

Each constraint keeps its own bits only, where the thesis stores with each those of all that cover it too:
these would have to be made anew for all that is covered by one that comes or goes. So that nothing hangs on
what was there before, a constraint goes when the last filter that has it does: they are counted.

Cost: of an event, for each attribute some bisections, and a step for each constraint satisfied; of a new
constraint, a hash and some bisections.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from branchline.routing.bloom.bits import NAME_GROUPS, Imprint, Shape, imprint, name_group, name_groups
from branchline.routing.bloom.orders import Order, RangeOrder, WordOrder
from branchline.routing.bloom.travelling import EventBits
from branchline.routing.dimensions import Axis
from branchline.routing.event import Event
from branchline.routing.filters import Constraint, Filter
from branchline.routing.prefix.siblings import Kin, kin


@dataclass(slots=True)
class _Known:
    imprint: Imprint
    count: int = 1


class BfPoset:
    """Constraints, counted, and in what order they are."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self._digests = [0] * (NAME_GROUPS + 1)
        """Of the constraints of each group of names; the last one of those on presence."""
        self._known: dict[Constraint, _Known] = {}
        self._orders: dict[str, dict[Kin, Order]] = {}
        """By the first name of their paths: of an attribute that an event lacks, hardly anything holds."""
        self._presence: dict[Kin, Order] = {}
        """Those that also what is missing may satisfy."""

    def __len__(self) -> int:
        return len(self._known)

    def add(self, filter_: Filter) -> None:
        """From now on its constraints are known."""
        for constraint in filter_:
            known = self._known.get(constraint)
            if known is not None:
                known.count += 1
                continue
            made = imprint(constraint, self.shape)
            self._known[constraint] = _Known(made)
            self._digests[_group(constraint)] ^= made.check
            self._order(constraint).add(constraint, made.bits)

    def remove(self, filter_: Filter) -> None:
        """No longer on account of this filter."""
        for constraint in filter_:
            known = self._known[constraint]
            known.count -= 1
            if known.count:
                continue
            del self._known[constraint]
            self._digests[_group(constraint)] ^= known.imprint.check
            order = self._order(constraint)
            order.remove(constraint)
            if not order:
                self._forget(kin(constraint))

    def bits(self, filter_: Filter) -> tuple[int, ...]:
        """The Bloom filter of a filter whose constraints are known: the bits that are set, ascending."""
        known = self._known
        return tuple(sorted({bit for each in filter_ for bit in known[each].imprint.bits}))

    def of_event(self, event: Event) -> tuple[int, ...]:
        """The Bloom filter of an event: the bits that are set, ascending."""
        found: set[int] = set()
        names = event.attributes
        for name in names:
            if (orders := self._orders.get(name)) is not None:
                _collect(orders.items(), event, found)
        missing = ((each, order) for each, order in self._presence.items() if each[0][0] not in names)
        _collect(missing, event, found)
        return tuple(sorted(found))

    def digest(self, names: int) -> int:
        """Of the constraints that may hold for an event with names of these groups."""
        made = self._digests[-1]
        while names:
            made ^= self._digests[(names & -names).bit_length() - 1]
            names &= names - 1
        return made

    def told(self, event: Event) -> EventBits:
        """What travels with an event."""
        names = name_groups(event.attributes)
        return EventBits(self.shape.size, self.of_event(event), names, self.digest(names))

    def tells(self, told: EventBits) -> bool:
        """Whether these bits include those of every constraint here that the event satisfies."""
        return told.size == self.shape.size and told.digest == self.digest(told.names)

    def describe(self) -> str:
        """The constraints for people, each further in than one that covers it."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        everything = [pair for orders in self._orders.values() for pair in orders.items()]
        for _, order in sorted(everything, key=lambda pair: pair[0]):
            yield from order.describe()

    def _order(self, constraint: Constraint) -> Order:
        mine = kin(constraint)
        path, axis, are_words = mine
        orders = self._orders.setdefault(path[0], {})
        order = orders.get(mine)
        if order is None:
            order = orders[mine] = WordOrder() if are_words else RangeOrder(self.shape.hashes)
            if axis is Axis.PRESENCE:
                self._presence[mine] = order
        return order

    def _forget(self, mine: Kin) -> None:
        orders = self._orders[mine[0][0]]
        del orders[mine]
        self._presence.pop(mine, None)
        if not orders:
            del self._orders[mine[0][0]]


def _group(constraint: Constraint) -> int:
    return NAME_GROUPS if constraint.axis is Axis.PRESENCE else name_group(constraint.path[0])


def _collect(orders: "Iterable[tuple[Kin, Order]]", event: Event, into: set[int]) -> None:
    for (path, axis, _), order in orders:
        for position in event.positions(path, axis):
            order.collect(position, into)
