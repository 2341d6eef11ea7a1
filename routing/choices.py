"""The choices that an event with arrays stands for: one element of each array, for all paths at once.

The paths are laid together into a tree of names, so that two paths through one array share its choice.
What no path names is left out. Counting visits each value under the paths once, however many choices
there are. Recursion is bounded by EVENT_MAX_DEPTH.

Each choice is a pass over the whole filter. So the passes are bounded too, in steps: one for each constraint,
each value of a list counted; of a CESQL expression, which may make long texts anew in every pass, one for
each of its nodes and for each thousand code points that it could make.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import TypeAlias

from branchline.routing.cesql.tree import nodes
from branchline.routing.codes import Code, Rejection
from branchline.routing.expression import Expression, Formula, In, Path, constraints, named_paths
from branchline.routing.limits import CESQL_MAX_TEXT_CHARS, MAX_CHOICES, MAX_STEPS
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


def too_many_steps(
    expression: Expression, choices: int, attributes: Mapping[str, JsonValue]
) -> Rejection | None:
    """Why so many choices are too many for such a filter, if they are."""
    steps = choices * sum(_steps(each, attributes) for each in constraints(expression))
    if steps <= MAX_STEPS:
        return None
    reason = (
        f"the arrays that the filter names allow {choices} choices, which take {steps} steps "
        f"with this filter; the limit is {MAX_STEPS}"
    )
    return Rejection(Code.TOO_MANY_CHOICES, reason)


def _steps(constraint: object, attributes: Mapping[str, JsonValue]) -> int:
    if isinstance(constraint, In):
        return len(constraint.values)
    if not isinstance(constraint, Formula):
        return 1
    size = sum(1 for _ in nodes(constraint.root))
    longest = max((_longest(attributes.get(name)) for (name,) in named_paths(constraint)), default=0)
    return size * (1 + min(size * longest, CESQL_MAX_TEXT_CHARS) // 1_000)


def _longest(value: JsonValue) -> int:
    """Code points of the longest text in an attribute's value."""
    longest = 0
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, str):
            longest = max(longest, len(each))
        elif isinstance(each, list):
            pending += each
    return longest


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
