"""Filters in normal form: conjunctions of ranges on dimensions, and the algebra that routing stands on.

A filter is a tuple of constraints, sorted by dimension; it holds for a single-valued event if each of its
constraints does. The empty filter holds for every event. A constraint is a `Range`, an interval on one
dimension, or a `Contains`, a word that the text contains, which no interval can say.

Normal form (`conjoin`). The ranges on one dimension are intersected, so a dimension has one range, and:
- a range on an axis of one kind says that kind, so a range of presence beside it is dropped; a range that
  is the whole axis says nothing else, so it becomes a range of presence;
- where the text is known, whatever else is said of it is decided and dropped;
- a word that another word, the common prefix or the common suffix contains is dropped.
A conjunction that no event satisfies is a `Contradiction`, which names two sides that cannot both hold.
Two conjunctions of the same constraints, in any order, have the same normal form.

Algebra. `covers` and `overlaps` are decided dimension by dimension. That is exact where the dimensions of
two filters are independent; axes of one text are not quite (a text from `ab` to `ac` that ends with `x` is
not any text that does). There `covers` may miss a covering and `overlaps` may see one too many: both err
on the side that costs traffic and never loses an event. Cost: O(constraints of both).
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

from branchline.routing import intervals
from branchline.routing.dimensions import (
    KIND_INTERVALS,
    KIND_OF_AXIS,
    Axis,
    Dimension,
    common_prefix,
    prefix_range,
    text_position,
)
from branchline.routing.expression import Path
from branchline.routing.intervals import WHOLE, Interval, is_point, text_point
from branchline.routing.values import Kind


class Range(NamedTuple):
    """The attribute's position on the axis lies in the interval."""

    path: Path
    axis: Axis
    interval: Interval

    @property
    def dimension(self) -> Dimension:
        return Dimension(self.path, self.axis)


class Contains(NamedTuple):
    """The text, or the text with its case folded, contains the word. Sorts after the ranges of its axis."""

    path: Path
    axis: Axis
    word: str

    @property
    def dimension(self) -> Dimension:
        return Dimension(self.path, self.axis)


Constraint: TypeAlias = Range | Contains
Filter: TypeAlias = tuple[Constraint, ...]
EVERYTHING: Filter = ()


class Contradiction(NamedTuple):
    """Two constraints that no single value satisfies."""

    one: Constraint
    other: Constraint


def conjoin(constraints: Iterable[Constraint]) -> Filter | Contradiction:
    """The normal form of a conjunction."""
    ranges: dict[tuple[Path, Axis], Interval] = {}
    words: dict[Path, set[tuple[Axis, str]]] = {}
    crowded: set[Path] = set()
    seen: set[Path] = set()
    for constraint in constraints:
        path, axis, what = constraint
        key = (path, axis)
        if path in seen and key not in ranges:
            crowded.add(path)
        seen.add(path)
        if type(constraint) is Contains:
            words.setdefault(path, set()).add((axis, constraint.word))
            crowded.add(path)
            continue
        known = ranges.get(key)
        if known is None:
            ranges[key] = what  # type: ignore[assignment]
        else:
            both = intervals.intersect(known, what)  # type: ignore[arg-type]
            if both is None:
                return Contradiction(Range(path, axis, known), constraint)
            ranges[key] = both
    made: list[Constraint] = []
    for path in crowded:
        mine = {axis: ranges.pop((path, axis)) for axis in Axis if (path, axis) in ranges}
        settled = _settle(path, mine, words.get(path, set()))
        if isinstance(settled, Contradiction):
            return settled
        made += settled
    for (path, axis), interval in ranges.items():
        if interval == WHOLE or axis in _TURNED:
            made += _alone(path, axis, interval)
        else:
            made.append(Range(path, axis, interval))
    if len(made) > 1:
        made.sort(key=constraint_order)
    return tuple(made)


def constraint_order(constraint: Constraint) -> tuple[Any, ...]:
    """A key for the order of constraints: dimension by dimension, ranges before words."""
    return constraint[0], constraint[1], type(constraint) is Contains, constraint[2]


def filter_order(filter_: Filter) -> list[tuple[Any, ...]]:
    """A key for the order of filters."""
    return [constraint_order(each) for each in filter_]


def _alone(path: Path, axis: Axis, interval: Interval) -> list[Constraint]:
    """The only range of a path: a whole axis says no more than the kind."""
    if interval == WHOLE:
        kind = KIND_OF_AXIS[axis]
        return [] if kind is None else [Range(path, Axis.PRESENCE, KIND_INTERVALS[kind])]
    if axis in _TURNED and is_point(interval):
        return [Range(path, _TURNED[axis], text_point(interval.high[1][::-1]))]
    return [Range(path, axis, interval)]


_TURNED = {Axis.REVERSED: Axis.TEXT, Axis.FOLDED_REVERSED: Axis.FOLDED}


def _settle(
    path: Path, ranges: dict[Axis, Interval], words: set[tuple[Axis, str]]
) -> list[Constraint] | Contradiction:
    """What several constraints on one path come to."""
    sides: list[Constraint] = [Range(path, axis, interval) for axis, interval in ranges.items()]
    sides += [Contains(path, axis, word) for axis, word in sorted(words)]
    kind: Kind | None = None
    for side in sides:
        if side.axis is not Axis.PRESENCE:
            if kind is not None and kind is not KIND_OF_AXIS[side.axis]:
                return Contradiction(_first_of(kind, sides), side)
            kind = KIND_OF_AXIS[side.axis]
    presence = ranges.pop(Axis.PRESENCE, WHOLE)
    if kind is None:
        return _alone(path, Axis.PRESENCE, presence)
    if not intervals.overlaps(presence, KIND_INTERVALS[kind]):
        return Contradiction(Range(path, Axis.PRESENCE, presence), _first_of(kind, sides))
    ranges = {axis: interval for axis, interval in ranges.items() if interval != WHOLE}
    if kind is Kind.TEXT and (len(ranges) > 1 or words):
        return _settle_text(path, ranges, words)
    if not ranges:
        return [Range(path, Axis.PRESENCE, KIND_INTERVALS[kind])]
    return [each for axis, interval in ranges.items() for each in _alone(path, axis, interval)]


def _first_of(kind: Kind, sides: list[Constraint]) -> Constraint:
    return next(side for side in sides if KIND_OF_AXIS[side.axis] is kind)


def _settle_text(
    path: Path, ranges: dict[Axis, Interval], words: set[tuple[Axis, str]]
) -> list[Constraint] | Contradiction:
    for turned, axis in _TURNED.items():
        if turned in ranges and is_point(ranges[turned]):
            whole = text_point(ranges[turned].high[1][::-1])
            both = intervals.intersect(whole, ranges.get(axis, WHOLE))
            if both is None:
                return Contradiction(Range(path, axis, whole), Range(path, axis, ranges[axis]))
            ranges[axis] = both
            del ranges[turned]
    for axis in (Axis.TEXT, Axis.FOLDED):
        interval = ranges.get(axis)
        if interval is not None and is_point(interval):
            fault = _decided(path, axis, interval, ranges, words)
            if fault is not None:
                return fault
    for plain, folded in ((Axis.TEXT, Axis.FOLDED), (Axis.REVERSED, Axis.FOLDED_REVERSED)):
        if plain in ranges and folded in ranges:
            # Case folding works character by character, so a prefix folds to a prefix, read in its direction.
            start = prefix_range(_folded(plain, common_prefix(ranges[plain])))
            if not intervals.overlaps(start, ranges[folded]):
                return Contradiction(Range(path, plain, ranges[plain]), Range(path, folded, ranges[folded]))
    made: list[Constraint] = [Range(path, axis, interval) for axis, interval in ranges.items()]
    return [*made, *(Contains(path, *word) for word in words if not _implied(word, ranges, words))]


def _folded(axis: Axis, part: str) -> str:
    """A part of the text with its case folded, read backwards if the axis is."""
    return part[::-1].casefold()[::-1] if axis in _TURNED else part.casefold()


def _decided(
    path: Path, axis: Axis, interval: Interval, ranges: dict[Axis, Interval], words: set[tuple[Axis, str]]
) -> Contradiction | None:
    """Check what is said of a text that is known, or known but for its case, and drop what that decides."""
    text: str = interval.high[1]
    known = Range(path, axis, interval)
    decides = _BY_TEXT if axis is Axis.TEXT else _BY_FOLDED
    for other in decides & ranges.keys():
        if not intervals.holds(ranges[other], text_position(other, text)):
            return Contradiction(known, Range(path, other, ranges[other]))
        del ranges[other]
    for word in sorted(words):
        # A word of the text as it is, folded, is a word of the folded text; that it is one decides nothing.
        wanted = word[1] if axis is Axis.TEXT and word[0] is Axis.TEXT else word[1].casefold()
        if wanted not in (text if axis is word[0] else text.casefold()):
            return Contradiction(known, Contains(path, *word))
        if axis is Axis.TEXT or word[0] is Axis.FOLDED:
            words.discard(word)
    return None


_BY_TEXT = frozenset(axis for axis in Axis if KIND_OF_AXIS[axis] is Kind.TEXT) - {Axis.TEXT}
_BY_FOLDED = frozenset({Axis.FOLDED_REVERSED})


def _implied(word: tuple[Axis, str], ranges: dict[Axis, Interval], words: set[tuple[Axis, str]]) -> bool:
    """Whether the rest says that the text contains the word."""
    return any(word[1] in known for known in _known_parts(word[0], ranges, words - {word}))


def _known_parts(
    axis: Axis, ranges: dict[Axis, Interval], words: Iterable[tuple[Axis, str]]
) -> Iterator[str]:
    """What the text, or the folded text, is known to contain."""
    for each in (Axis.TEXT, Axis.REVERSED, Axis.FOLDED, Axis.FOLDED_REVERSED):
        interval = ranges.get(each)
        if interval is not None and (axis is Axis.FOLDED or each in (Axis.TEXT, Axis.REVERSED)):
            part = common_prefix(interval)
            part = part[::-1] if each in _TURNED else part
            yield part.casefold() if axis is Axis.FOLDED else part
    for other, word in words:
        if axis is other:
            yield word
        elif axis is Axis.FOLDED:
            yield word.casefold()


def known_texts(filter_: Filter, path: Path, axis: Axis) -> Iterator[str]:
    """What the attribute's text, or folded text, contains whenever the filter holds."""
    said = [constraint for constraint in filter_ if constraint.path == path]
    ranges = {each.axis: each.interval for each in said if isinstance(each, Range)}
    return _known_parts(axis, ranges, [(each.axis, each.word) for each in said if isinstance(each, Contains)])


def covers(one: Filter, other: Filter) -> bool:
    """Whether every event that the other holds for is one that this holds for."""
    return all(any(_says(theirs, mine) for theirs in other if theirs.path == mine.path) for mine in one)


def _says(given: Constraint, wanted: Constraint) -> bool:
    """Whether one constraint implies another on the same path."""
    if type(wanted) is Contains:
        if type(given) is Contains:
            ranges, words = {}, [(given.axis, given.word)]
        else:
            ranges, words = {given.axis: given.interval}, []  # type: ignore[union-attr]
        return any(wanted.word in part for part in _known_parts(wanted.axis, ranges, words))
    interval: Interval = wanted[2]  # type: ignore[assignment]
    if wanted.axis is Axis.PRESENCE and given.axis is not Axis.PRESENCE:
        kind = KIND_OF_AXIS[given.axis]
        return kind is not None and intervals.covers(interval, KIND_INTERVALS[kind])
    if type(given) is Contains:
        return False
    known: Interval = given[2]  # type: ignore[assignment]
    if given.axis is wanted.axis:
        return intervals.covers(interval, known)
    if given.axis is Axis.TEXT and wanted.axis in _BY_TEXT and is_point(known):
        return intervals.holds(interval, text_position(wanted.axis, known.high[1]))
    return False


def intersect(one: Filter, other: Filter) -> Filter | None:
    """The filter that holds where both do, None if that is nowhere."""
    both = conjoin((*one, *other))
    return None if isinstance(both, Contradiction) else both


def overlaps(one: Filter, other: Filter) -> bool:
    """Whether some event may satisfy both."""
    return intersect(one, other) is not None


def outside(constraint: Range) -> list[Range]:
    """Every value of the attribute that does not satisfy the range, as ranges that do not overlap."""
    path, axis, interval = constraint
    rest = [Range(path, axis, gap) for gap in intervals.gaps([interval])]
    kind = KIND_OF_AXIS[axis]
    if kind is not None:
        others = intervals.gaps([KIND_INTERVALS[kind]])
        rest += [Range(path, Axis.PRESENCE, gap) for gap in others]
    return rest


def difference(one: Filter, other: Filter) -> list[Filter] | None:
    """What one holds for and the other does not, as filters that do not overlap; None if it cannot be said.

    It cannot where the other has a `Contains` that is not implied: what does not contain is no interval.
    """
    pieces: list[Filter] = []
    within: Filter = one
    for constraint in other:
        if covers((constraint,), within):
            continue
        if isinstance(constraint, Contains):
            return None
        for piece in outside(constraint):
            part = intersect(within, (piece,))
            if part is not None:
                pieces.append(part)
        rest = intersect(within, (constraint,))
        if rest is None:
            return pieces
        within = rest
    return pieces
