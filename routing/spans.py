"""Covers of one attribute in which every filter is one range: what nearly all constraints come to.

They are so frequent that they have their own short ways to the same normal form as `covers.py` gives. A
range of presence and a range on another axis have nothing in common unless presence includes that axis's
kind, and then they have the latter. Two axes of text do depend on each other: there these functions give
None, and the general way is taken.
"""

from collections.abc import Iterable

from branchline.routing import intervals
from branchline.routing.dimensions import KIND_INTERVALS, KIND_OF_AXIS, Axis
from branchline.routing.expression import Path
from branchline.routing.filters import EVERYTHING, Filter, Range
from branchline.routing.intervals import WHOLE, Interval
from branchline.routing.values import Kind

_PRESENCE, _NUMBER = Axis.PRESENCE, Axis.NUMBER


def is_spans(cover: Iterable[Filter]) -> bool:
    """Whether every filter is one range."""
    return all(len(filter_) == 1 and type(filter_[0]) is Range for filter_ in cover)


def unite(path: Path, found: Iterable[Filter]) -> tuple[Filter, ...] | None:
    """The disjunction of single ranges of one attribute."""
    axes: dict[Axis, list[Interval]] = {}
    for (constraint,) in found:
        axes.setdefault(constraint[1], []).append(constraint[2])  # type: ignore[arg-type]
    if sum(axis > _NUMBER for axis in axes) > 1:
        return None
    presence = axes.pop(_PRESENCE, [])
    for axis, ranges in axes.items():
        if len(ranges) > 1:
            axes[axis] = ranges = intervals.joined(ranges)
        if ranges[0] == WHOLE:
            presence.append(KIND_INTERVALS[_kind(axis)])
    if len(presence) > 1:
        presence = intervals.joined(presence)
    if presence and presence[0] == WHOLE:
        return (EVERYTHING,)
    made: list[Filter] = [(Range(path, _PRESENCE, each),) for each in presence]
    for axis in sorted(axes):
        kind = KIND_INTERVALS[_kind(axis)]
        if not any(intervals.covers(each, kind) for each in presence):
            made += [(Range(path, axis, each),) for each in axes[axis]]
    return tuple(made)


def intersect(one: Iterable[Filter], other: Iterable[Filter]) -> list[Filter] | None:
    """The conjunction of two disjunctions of single ranges of one attribute, both in normal form."""
    found: list[Filter] = []
    for (mine,) in one:
        for (theirs,) in other:
            if mine[1] is theirs[1]:
                both = intervals.intersect(mine[2], theirs[2])  # type: ignore[arg-type]
                if both is not None:
                    found.append((Range(mine[0], mine[1], both),))
            elif mine[1] is _PRESENCE or theirs[1] is _PRESENCE:
                presence, narrow = (mine, theirs) if mine[1] is _PRESENCE else (theirs, mine)
                kind = KIND_INTERVALS[_kind(narrow[1])]
                if intervals.covers(presence[2], kind):  # type: ignore[arg-type]
                    found.append((narrow,))
            elif _kind(mine[1]) is _kind(theirs[1]):
                return None
    return found


def _kind(axis: Axis) -> Kind:
    kind = KIND_OF_AXIS[axis]
    assert kind is not None, "presence is of no kind"
    return kind
