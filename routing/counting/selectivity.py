"""The selectivity table: which interfaces an event cannot match because of what it lacks.

An attribute is a *determinant* of an interface if every filter of the interface has a constraint on it that
no event without the attribute satisfies. So if the event lacks it, the interface is ruled out before anything
is counted. A constraint that may hold for what is missing (`x IS NULL`) makes no determinant.

The table has for each name the interfaces that it is a determinant of, as a bit set, those with most
interfaces first: the most selective ones. Only the first so many *rounds* are asked; each further one rules
out fewer, and costs the same.

Cost: of making it O(constraints); of an event one look-up and one union of bit sets a round.
"""

from collections import Counter
from collections.abc import Collection, Container, Iterable

from branchline.routing.counting.index import needs_value
from branchline.routing.expression import Path
from branchline.routing.filters import Filter


class Selectivity:
    """The most selective names of a table of interfaces."""

    def __init__(self, interfaces: Iterable[Collection[Filter]], rounds: int) -> None:
        """Of the filters of each interface, which are numbered from 0 on; each has some."""
        of_path: dict[Path, list[int]] = {}
        for interface, filters in enumerate(interfaces):
            counts = Counter(path for filter_ in filters for path in _needed(filter_))
            for path, count in counts.items():
                if count == len(filters):
                    of_path.setdefault(path, []).append(interface)
        # Of equally selective names, which comes first must not depend on anything but the names.
        order = sorted(of_path, key=lambda path: (-len(of_path[path]), path))
        self._rounds = [(path, _bits(of_path[path])) for path in order[:rounds]]

    def excluded(self, names: Container[Path]) -> int:
        """The interfaces that an event with these attributes cannot match, as a bit set."""
        found = 0
        for path, interfaces in self._rounds:
            if path not in names:
                found |= interfaces
        return found

    def describe(self) -> str:
        """The names that are asked, with how many interfaces need them."""
        return ", ".join(f"{'.'.join(path)} ({bits.bit_count()})" for path, bits in self._rounds)


def _needed(filter_: Filter) -> set[Path]:
    return {constraint.path for constraint in filter_ if needs_value(constraint)}


def _bits(numbers: list[int]) -> int:
    """The bit set of these numbers, which ascend; made in bytes, since setting a bit copies a number."""
    made = bytearray((numbers[-1] >> 3) + 1)
    for each in numbers:
        made[each >> 3] |= 1 << (each & 7)
    return int.from_bytes(made, "little")
