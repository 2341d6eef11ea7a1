"""Filters filed by what they ask for, so that those that nobody would cover are not compared.

Who covers a filter asks for nothing that the filter does not ask for, and for a value only if the filter asks
for that value. So each filter is filed under one of its *keys*, an attribute or better an attribute with its
value, and whatever covers another one is under a key that the other one has too; and under all of its keys,
so that whatever a filter covers is under each key of that one.

They come in the order in which they were filed, so how many are compared hangs on nothing else.

Cost: a few entries of dictionaries for each constraint. Where all filters ask for ranges of the same
attributes, and no values, none is passed over.
"""

from collections.abc import Iterator, Set
from typing import TypeAlias

from branchline.routing.dimensions import Axis
from branchline.routing.filters import Constraint, Filter, Range
from branchline.routing.intervals import is_point

_Key: TypeAlias = tuple[object, ...]
_Some: TypeAlias = dict[Filter, None]
_POINTED = frozenset({Axis.NUMBER, Axis.TEXT, Axis.BOOLEAN})
"""Axes on which a point is said by the same point alone."""


class Filed:
    """Filters, by what others can only cover or be covered by if they share it."""

    def __init__(self) -> None:
        self._filters: _Some = {}
        self._wider: dict[_Key, _Some] = {}
        """Each under one of its keys: who is covered by it has that key too."""
        self._narrower: dict[_Key, _Some] = {}
        """Each under all of its keys: who covers it has only such."""

    @property
    def filters(self) -> Set[Filter]:
        return self._filters.keys()

    def add(self, filter_: Filter) -> None:
        self._filters[filter_] = None
        self._wider.setdefault(_filed_under(filter_), {})[filter_] = None
        for key in _keys(filter_):
            self._narrower.setdefault(key, {})[filter_] = None

    def remove(self, filter_: Filter) -> None:
        self._filters.pop(filter_, None)
        _discard(self._wider, _filed_under(filter_), filter_)
        for key in _keys(filter_):
            _discard(self._narrower, key, filter_)

    def wider(self, filter_: Filter) -> Iterator[Filter]:
        """All that may cover it, other ones."""
        for each in self._sharing(filter_):
            yield from (one for one in each if one != filter_)

    def count_wider(self, filter_: Filter) -> int:
        """How many these are at most."""
        return sum(map(len, self._sharing(filter_)))

    def narrower(self, filter_: Filter) -> list[Filter]:
        """All that it may cover, other ones."""
        return [each for each in self._fewest(filter_) if each != filter_]

    def count_narrower(self, filter_: Filter) -> int:
        """How many these are at most."""
        return len(self._fewest(filter_))

    def _sharing(self, filter_: Filter) -> Iterator[_Some]:
        for key in dict.fromkeys(((), *_keys(filter_))):
            yield self._wider.get(key, {})

    def _fewest(self, filter_: Filter) -> _Some:
        if not filter_:
            return self._filters
        return min((self._narrower.get(_key(each), {}) for each in filter_), key=len)


def _key(constraint: Constraint) -> _Key:
    """What every constraint that says this one has among its own keys."""
    if isinstance(constraint, Range) and constraint.axis in _POINTED and is_point(constraint.interval):
        return constraint.path, constraint.axis, constraint.interval.high[1]
    return (constraint.path,)


def _keys(filter_: Filter) -> Iterator[_Key]:
    for constraint in filter_:
        yield (constraint.path,)
        key = _key(constraint)
        if len(key) > 1:
            yield key


def _filed_under(filter_: Filter) -> _Key:
    return max(map(_key, filter_), key=len, default=())


def _discard(filed: dict[_Key, _Some], key: _Key, filter_: Filter) -> None:
    mine = filed.get(key)
    if mine is not None:
        mine.pop(filter_, None)
        if not mine:
            del filed[key]
