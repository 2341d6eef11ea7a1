"""The index of the filters beside the tree: which overflow numbers an event gives.

Each filter is filed under one of its constraints, the one that says most: a point if it has one, found by a
dictionary, else a range or a word, which all filters filed there are asked for. What was found so is then
checked as a whole. A filter without constraints is never beside the tree.

Cost: a look-up for each dimension that something is filed under, and a check for each filter found.
"""

from collections.abc import Iterator
from typing import Any

from branchline.routing.dimensions import Dimension
from branchline.routing.event import Event
from branchline.routing.filters import Constraint, Contains, Filter
from branchline.routing.intervals import is_point


class Beside:
    """Numbered filters, filed."""

    def __init__(self) -> None:
        self._filters: dict[int, Filter] = {}
        self._points: dict[Dimension, dict[Any, set[int]]] = {}
        self._others: dict[Dimension, dict[Constraint, set[int]]] = {}

    def __len__(self) -> int:
        return len(self._filters)

    def add(self, number: int, filter_: Filter) -> None:
        self._filters[number] = filter_
        access = max(filter_, key=_says)
        files: dict[Dimension, dict[Any, set[int]]] = self._points if _is_point(access) else self._others
        files.setdefault(access.dimension, {}).setdefault(_key(access), set()).add(number)

    def remove(self, number: int) -> None:
        access = max(self._filters.pop(number), key=_says)
        files: dict[Dimension, dict[Any, set[int]]] = self._points if _is_point(access) else self._others
        filed = files[access.dimension]
        filed[_key(access)].discard(number)
        if not filed[_key(access)]:
            del filed[_key(access)]
            if not filed:
                del files[access.dimension]

    def match(self, event: Event) -> list[int]:
        """The numbers of the filters that the event may satisfy, in order."""
        found = {number for number in self._candidates(event) if event.may_match((self._filters[number],))}
        return sorted(found)

    def _candidates(self, event: Event) -> Iterator[int]:
        for dimension, points in self._points.items():
            for position in event.positions(*dimension):
                yield from points.get(position, ())
        for dimension, others in self._others.items():
            positions = event.positions(*dimension)
            for position in positions:
                # Written out: this is asked of every filter filed under the dimension.
                start, end = (0, position, 0), (0, position, 1)
                for constraint, numbers in others.items():
                    what: Any = constraint[2]
                    if what in position if type(what) is str else what[0] <= start and end <= what[1]:
                        yield from numbers


def _is_point(constraint: Constraint) -> bool:
    return not isinstance(constraint, Contains) and is_point(constraint.interval)


def _key(constraint: Constraint) -> Any:
    """The value of a point, else the constraint itself."""
    if isinstance(constraint, Contains) or not is_point(constraint.interval):
        return constraint
    return constraint.interval.high[1]


def _says(constraint: Constraint) -> tuple[int, int]:
    """How much a constraint says: a point most, a long word or a range with two ends more than others."""
    if isinstance(constraint, Contains):
        return 1, len(constraint.word)
    if is_point(constraint.interval):
        return 3, 0
    return (2, 0) if all(len(cut) == 3 for cut in constraint.interval) else (0, 0)
