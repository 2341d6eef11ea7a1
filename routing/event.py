"""An event as covers look at it: where its attributes lie on their dimensions, worked out once.

Cost: a look-up for each attribute and a reading for each axis that is asked for, the first time; after
that, each constraint is two comparisons.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from branchline.routing.covers import Cover
from branchline.routing.dimensions import Axis, position
from branchline.routing.expression import Path
from branchline.routing.filters import Contains, Filter
from branchline.routing.intervals import holds
from branchline.routing.values import MISSING, Found, JsonValue


class Event:
    """An event's attributes, and what is known of them.

    They may be given as a function, which is called when somebody looks at the event for the first time.
    """

    __slots__ = ("_attributes", "_positions", "_values", "residuals")

    def __init__(self, attributes: Mapping[str, JsonValue] | Callable[[], Mapping[str, JsonValue]]) -> None:
        self._attributes = attributes
        self.residuals = 0
        """How many residuals were evaluated for this event."""
        self._values: dict[Path, tuple[list[Found], bool]] = {}
        self._positions: dict[tuple[Path, Axis], list[Any]] = {}

    @property
    def attributes(self) -> Mapping[str, JsonValue]:
        """All of them."""
        if callable(self._attributes):
            self._attributes = self._attributes()
        return self._attributes

    def has_array(self, paths: Iterable[Path]) -> bool:
        """Whether one of the paths goes through an array or ends at one."""
        return any(self._look(path)[1] for path in paths)

    @property
    def met_array(self) -> bool:
        """Whether anything that was looked at so far goes through an array or ends at one."""
        return any(array for _, array in self._values.values())

    def positions(self, path: Path, axis: Axis) -> list[Any]:
        """Where the attribute's values lie on the axis; one for a single value, none if it has none there."""
        found = self._positions.get((path, axis))
        return self._place(path, axis) if found is None else found

    def may_match(self, cover: Cover) -> bool:
        """Whether the cover holds; with arrays, whether it does if each constraint may choose by itself."""
        return any(self._satisfies(filter_) for filter_ in cover)

    def _satisfies(self, filter_: Filter) -> bool:
        for constraint in filter_:
            path, axis, what = constraint
            positions = self.positions(path, axis)
            if type(constraint) is Contains:
                if not any(constraint.word in text for text in positions):
                    return False
            elif not any(holds(what, each) for each in positions):  # type: ignore[arg-type]
                return False
        return True

    def _place(self, path: Path, axis: Axis) -> list[Any]:
        found = [position(axis, value) for value in self._look(path)[0]]
        made = self._positions[path, axis] = [each for each in found if each is not None]
        return made

    def _look(self, path: Path) -> tuple[list[Found], bool]:
        """All values that the attribute may have, one without arrays, and whether there are arrays."""
        known = self._values.get(path)
        if known is None:
            known = self._values[path] = _values(path, self.attributes)
        return known


def _values(path: Path, attributes: Mapping[str, JsonValue]) -> tuple[list[Found], bool]:
    values: list[Found] = []
    array = False
    pending: list[tuple[Found, int]] = [(attributes.get(path[0], MISSING), 1)]
    while pending:
        value, depth = pending.pop()
        if isinstance(value, list):
            array = True
            # An empty array gives one choice, without a value.
            pending += [(element, depth) for element in value] or [(MISSING, depth)]
        elif depth == len(path):
            values.append(value)
        else:
            below = value.get(path[depth], MISSING) if isinstance(value, dict) else MISSING
            pending.append((below, depth + 1))
    return values, array
