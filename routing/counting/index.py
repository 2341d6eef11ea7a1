"""The left side of a forwarding table: from an event to the constraints that it satisfies.

The first stage is by name: the paths that constraints are on are laid together by their names, and the
event's attributes are walked along them, so that what nobody asks for costs a look-up and no more. Then by
type: for each reading of a value that is asked for there is an index of its own. Texts as they are, and texts
with their case folded, each have one for all their operators (`texts.py`); everything else, presence,
Booleans, numbers, instants and addresses, has ordered intervals (`ranges.py`).

A constraint on presence may hold for what is missing. Attributes with such a constraint are looked at in
every event.

With arrays each constraint may be satisfied by another element, and is met once; `Event.met_array` tells.

Cost: O(names of the event + what its attributes satisfy), and what each index takes. Never changed after it
was made.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from branchline.routing.counting.ranges import RangeIndex
from branchline.routing.counting.texts import TextIndex, prefix_of
from branchline.routing.dimensions import Axis
from branchline.routing.event import Event
from branchline.routing.expression import Path
from branchline.routing.filters import Constraint, Contains
from branchline.routing.intervals import Interval, holds
from branchline.routing.values import JsonValue, Kind


class _Index(Protocol):
    def satisfied(self, position: Any, /) -> list[int]: ...

    def describe(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Attribute:
    """What is asked of one attribute: for each reading an index."""

    path: Path
    readings: list[tuple[Axis, _Index]]

    def satisfied(self, event: Event) -> list[int]:
        """The constraints on the attribute that hold, each once."""
        found: list[int] = []
        for axis, index in self.readings:
            positions = event.positions(self.path, axis)
            if len(positions) == 1:
                found += index.satisfied(positions[0])
            else:
                found += dict.fromkeys(each for one in positions for each in index.satisfied(one))
        return found


@dataclass(slots=True)
class _Name:
    """A name of a path: the attribute that ends there, and the names below."""

    attribute: Attribute | None = None
    below: "dict[str, _Name]" = field(default_factory=dict)


def needs_value(constraint: Constraint) -> bool:
    """Whether the constraint holds for no event that lacks its attribute."""
    if isinstance(constraint, Contains) or constraint.axis is not Axis.PRESENCE:
        return True
    return not holds(constraint.interval, int(Kind.MISSING))


class ConstraintIndex:
    """Different constraints, numbered from 0 on."""

    def __init__(self, constraints: Sequence[Constraint]) -> None:
        of_path: dict[Path, list[tuple[Constraint, int]]] = {}
        for number, constraint in enumerate(constraints):
            of_path.setdefault(constraint.path, []).append((constraint, number))
        self._names = _Name()
        self._always: list[Attribute] = []
        """Those that may be satisfied by being missing."""
        for path, mine in of_path.items():
            name = self._names
            for each in path:
                name = name.below.setdefault(each, _Name())
            name.attribute = Attribute(path, _readings(mine))
            if not all(needs_value(constraint) for constraint, _ in mine):
                self._always.append(name.attribute)

    def met(self, event: Event) -> dict[Path, Attribute]:
        """The attributes of the event that are asked for."""
        found: dict[Path, Attribute] = {}
        pending: list[tuple[_Name, Mapping[str, JsonValue]]] = [(self._names, event.attributes)]
        while pending:
            above, members = pending.pop()
            for each, value in members.items():
                name = above.below.get(each)
                if name is None:
                    continue
                if name.attribute is not None:
                    found[name.attribute.path] = name.attribute
                if name.below:
                    pending += ((name, below) for below in _objects(value))
        return found

    def looked_at(self, met: Mapping[Path, Attribute]) -> Iterable[Attribute]:
        """All attributes that may satisfy something, given those that the event has."""
        return (*met.values(), *(each for each in self._always if each.path not in met))

    def describe(self) -> str:
        """For each path and reading what its index has."""
        lines: list[str] = []
        pending = [self._names]
        while pending:
            name = pending.pop()
            if name.attribute is not None:
                path = ".".join(name.attribute.path)
                lines += [
                    f"{path} as {axis.name.lower()}: {index.describe()}"
                    for axis, index in name.attribute.readings
                ]
            pending += reversed(name.below.values())
        return "\n".join(lines)


_READ_AS = {Axis.REVERSED: Axis.TEXT, Axis.FOLDED_REVERSED: Axis.FOLDED}
"""What a suffix is looked for in."""


def _readings(constraints: Iterable[tuple[Constraint, int]]) -> list[tuple[Axis, _Index]]:
    """The indexes of the constraints on one path."""
    ranges: dict[Axis, list[tuple[Interval, int]]] = {}
    suffixes: dict[Axis, dict[str, int]] = {}
    words: dict[Axis, dict[str, int]] = {}
    for constraint, number in constraints:
        axis = constraint.axis
        if isinstance(constraint, Contains):
            words.setdefault(axis, {})[constraint.word] = number
            continue
        turned = prefix_of(constraint.interval) if axis in _READ_AS else None
        if turned is not None:
            suffixes.setdefault(_READ_AS[axis], {})[turned[::-1]] = number
        else:
            ranges.setdefault(axis, []).append((constraint.interval, number))
    made: list[tuple[Axis, _Index]] = []
    for axis in Axis:
        mine = ranges.get(axis, [])
        if axis in (Axis.TEXT, Axis.FOLDED) and (mine or axis in suffixes or axis in words):
            made.append((axis, TextIndex(mine, suffixes.get(axis, {}), words.get(axis, {}))))
        elif mine:
            made.append((axis, RangeIndex(mine)))
    return made


def _objects(value: JsonValue) -> list[Mapping[str, JsonValue]]:
    """The objects that a value is, or that an array has, arrays within it included."""
    found: list[Mapping[str, JsonValue]] = []
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, dict):
            found.append(each)
        elif isinstance(each, list):
            pending += each
    return found
