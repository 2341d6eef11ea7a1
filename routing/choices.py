"""The choices that an event with arrays stands for: one element of each array, for all paths at once.

The paths are laid together into a tree of names, so that two paths through one array share its choice.
What no path names is left out. Counting visits each value under the paths once, however many choices
there are. Recursion is bounded by EVENT_MAX_DEPTH.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import TypeAlias

from branchline.routing.codes import Code, Rejection
from branchline.routing.expression import Path
from branchline.routing.limits import MAX_CHOICES
from branchline.routing.values import MISSING, Found, JsonValue

_Names: TypeAlias = "dict[str, _Names]"
"""The paths laid together: each name leads to the names that follow it."""


def count_choices(paths: Iterable[Path], attributes: Mapping[str, JsonValue]) -> int:
    """How many single-valued events the event stands for, as far as these paths can tell."""
    return _count_members(_together(paths), attributes)


def each_choice(paths: Iterable[Path], attributes: Mapping[str, JsonValue]) -> Iterator[dict[str, Found]]:
    """The single-valued events, one after the other."""
    return _member_choices(_together(paths), attributes)


def too_many_choices(count: int) -> Rejection:
    """Why a filter is not evaluated on an event with so many choices."""
    reason = f"the arrays that the filter names allow {count} choices; the limit is {MAX_CHOICES}"
    return Rejection(Code.TOO_MANY_CHOICES, reason)


def _together(paths: Iterable[Path]) -> _Names:
    names: _Names = {}
    for path in paths:
        at = names
        for name in path:
            at = at.setdefault(name, {})
    return names


def _count(names: _Names, value: JsonValue) -> int:
    if isinstance(value, list):
        return sum(_count(names, element) for element in value) or 1
    if isinstance(value, dict):
        return _count_members(names, value)
    return 1


def _count_members(names: _Names, members: Mapping[str, JsonValue]) -> int:
    return math.prod(_count(below, members[name]) for name, below in names.items() if name in members)


def _choices(names: _Names, value: JsonValue) -> Iterator[Found]:
    if isinstance(value, list):
        for element in value:
            yield from _choices(names, element)
        if not value:
            yield MISSING
    elif isinstance(value, dict):
        yield from _member_choices(names, value)  # type: ignore[misc]  # MISSING is within, as in the event
    else:
        yield value


def _member_choices(names: _Names, members: Mapping[str, JsonValue]) -> Iterator[dict[str, Found]]:
    named = [name for name in names if name in members]
    for chosen in product(*(_choices(names[name], members[name]) for name in named)):
        yield dict(zip(named, chosen, strict=True))
