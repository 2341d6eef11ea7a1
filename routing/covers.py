"""Covers: disjunctions of filters, kept short.

A cover is a tuple of filters in normal form, sorted; it holds for an event if one of them does. No filter
in it covers another, and no two differ only in ranges of one dimension that touch: those are joined. So
`a < 5 OR a >= 5` is one filter, and `a IS NULL OR a IS NOT NULL` is the filter without constraints.

A cover has at most COVER_MAX_FILTERS filters. Where it would have more, it is *widened*: two filters are
replaced by one that covers both, again and again, until it fits, in the order of what that costs in
precision: first joining two neighbouring ranges of one dimension, closest first, then dropping constraints,
the weakest first. A widened cover holds for more than was asked, never for less. What is done depends on
the set of filters alone, not on the order in which they came.

Cost: joining sorts the filters once for each dimension; covering is tested between filters of different
shapes only. Both see at most a few times COVER_MAX_FILTERS filters.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from itertools import chain, groupby, pairwise, product
from typing import NamedTuple, TypeAlias

from branchline.routing import filters, intervals, spans
from branchline.routing.dimensions import Axis, Dimension, shared_length
from branchline.routing.expression import Path
from branchline.routing.filters import Constraint, Contains, Contradiction, Filter, Range, conjoin
from branchline.routing.intervals import Interval, is_point
from branchline.routing.limits import COVER_MAX_FILTERS

Cover: TypeAlias = tuple[Filter, ...]

NOTHING: Cover = ()
ALL: Cover = (filters.EVERYTHING,)


class Conjunction(NamedTuple):
    """The conjunction of several covers: which of them had to be widened, and why it is empty if it is."""

    cover: Cover
    widened: frozenset[int]
    contradiction: Contradiction | None


def disjoin(found: Iterable[Filter]) -> Cover:
    """The disjunction of filters in normal form."""
    distinct = set(found)
    if len(distinct) < 2:
        return tuple(distinct)
    if filters.EVERYTHING in distinct:
        return ALL
    if len(paths := _paths(distinct)) == 1 and spans.is_spans(distinct):
        united = spans.unite(paths.pop(), distinct)
        if united is not None:
            return united
    while True:
        before = len(distinct)
        for dimension in sorted({constraint.dimension for each in distinct for constraint in each}):
            distinct = _joined(dimension, distinct)
        distinct = _absorbed(distinct)
        if len(distinct) == before:
            return tuple(sorted(distinct, key=_order))


def _order(filter_: Filter) -> list[tuple[object, ...]]:
    return [(path, axis, type(each) is Contains, what) for each in filter_ for path, axis, what in (each,)]


def _joined(dimension: Dimension, found: set[Filter]) -> set[Filter]:
    """Join the filters that differ in their range of this dimension only, where the ranges touch."""
    groups: dict[Filter, list[tuple[Interval, Filter]]] = {}
    made: set[Filter] = set()
    for each in found:
        place = _range_at(dimension, each)
        if place is None:
            made.add(each)
        else:
            rest = each[:place] + each[place + 1 :]
            groups.setdefault(rest, []).append((each[place][2], each))  # type: ignore[arg-type]
    for rest, ranges in groups.items():
        joined = intervals.joined([interval for interval, _ in ranges])
        if len(joined) == len(ranges):
            made.update(each for _, each in ranges)
            continue
        for interval in joined:
            both = conjoin((*rest, Range(*dimension, interval)))
            assert not isinstance(both, Contradiction)
            made.add(both)
    return made


def _range_at(dimension: Dimension, filter_: Filter) -> int | None:
    path, axis = dimension
    for place, constraint in enumerate(filter_):
        if constraint[1] is axis and constraint[0] == path and type(constraint) is Range:
            return place
    return None


def _absorbed(found: set[Filter]) -> set[Filter]:
    """Drop the filters that another one covers."""
    if len(found) > COVER_MAX_FILTERS:
        return found  # it is widened next, which asks again
    ordered = [(each, {constraint[0] for constraint in each}) for each in sorted(found, key=_order)]
    return {
        one
        for place, (one, its) in enumerate(ordered)
        if not any(
            others <= its and filters.covers(other, one) and (at < place or not filters.covers(one, other))
            for at, (other, others) in enumerate(ordered)
            if at != place
        )
    }


def conjoin_covers(covers: Sequence[Cover]) -> Conjunction:
    """The conjunction of covers, widened where it would be too long.

    First each attribute by itself: what several parts say of one is intersected, so that
    `a <> 1 AND a <> 2 AND …` stays short. Then the product over attributes, and last the parts that speak
    of several at once.
    """
    own: dict[Path, dict[Cover, frozenset[int]]] = {}
    mixed: dict[Cover, frozenset[int]] = {}
    for index, cover in enumerate(covers):
        source = frozenset({index})
        if not cover:
            return Conjunction(NOTHING, frozenset(), None)
        if len(cover) == 1:
            for path, group in groupby(cover[0], key=_path):
                _note(own.setdefault(path, {}), (tuple(group),), source)
        elif len(paths := _paths(cover)) == 1:
            _note(own.setdefault(paths.pop(), {}), cover, source)
        else:
            _note(mixed, cover, source)
    widened: frozenset[int] = frozenset()
    parts: list[_Sourced] = []
    for path in sorted(own):
        if len(own[path]) == 1:
            parts += own[path].items()
            continue
        together = _of_one_path(own[path])
        if isinstance(together, Contradiction):
            return Conjunction(NOTHING, frozenset(), together)
        sources = frozenset().union(*own[path].values())
        parts.append((together.cover, sources))
        if together.widened:
            widened |= sources
    made, cut = _product(parts)
    widened |= cut
    everybody = frozenset(range(len(covers)))
    for cover, sources in sorted(mixed.items(), key=lambda each: [_order(filter_) for filter_ in each[0]]):
        both = _bounded(made, cover)
        if isinstance(both, Contradiction):
            return Conjunction(NOTHING, widened, both)
        made = both.cover
        if both.widened:
            widened = everybody if both.of_one else widened | sources
    return Conjunction(made, widened, None)


_Sourced: TypeAlias = tuple[Cover, frozenset[int]]


def _note(covers: dict[Cover, frozenset[int]], cover: Cover, source: frozenset[int]) -> None:
    """A cover that comes twice says nothing the second time."""
    covers[cover] = covers.get(cover, frozenset()) | source


class _Bounded(NamedTuple):
    """An intersection that was kept short, and what had to be widened for it."""

    cover: Cover
    widened: bool = False
    of_one: bool = False
    """Not only the second of the two was widened."""


def _of_one_path(covers: Collection[Cover]) -> _Bounded | Contradiction:
    """The conjunction of covers that speak of one attribute only.

    First those of the same axes, of which each intersection is about as long as its longer side; then these
    with each other. In each round the shortest come first, so that what is longer is cut down at once.
    """
    usual = _of_one_path_as_spans(sorted(covers, key=len))
    if usual is not None:
        return usual
    rounds: dict[frozenset[Axis], list[Cover]] = {}
    for cover in covers:
        rounds.setdefault(frozenset(each[1] for one in cover for each in one), []).append(cover)
    widened = False
    found: list[Cover] = []
    for group in (*rounds.values(), found):
        made = ALL
        for cover in sorted(group, key=lambda cover: (len(cover), [_order(one) for one in cover])):
            both = _bounded(made, cover)
            if isinstance(both, Contradiction):
                return both
            made, widened = both.cover, widened or both.widened
        found.append(made)
    return _Bounded(found[-1], widened)


def _of_one_path_as_spans(covers: list[Cover]) -> _Bounded | Contradiction | None:
    """The same where all are single ranges: what they have in common needs no order and no bound."""
    if not all(map(spans.is_spans, covers)):
        return None
    made = covers[0]
    for cover in covers[1:]:
        found = spans.intersect(made, cover)
        if found is None:
            return None
        if not found:
            return Contradiction(made[0][0], cover[0][0])
        made = tuple(found)
    return _Bounded(tuple(sorted(made, key=_order)))


def _bounded(one: Cover, other: Cover) -> _Bounded | Contradiction:
    """The intersection, for which both sides are widened until it cannot be too much work."""
    if _paths(one).isdisjoint(_paths(other)):
        # The product is as long as it looks, so the second side, which came later, fits itself in.
        fitting = widen(other, max(1, COVER_MAX_FILTERS // len(one)))
        return _Bounded(_product_of(one, fitting), len(fitting) < len(other))
    widened = of_one = False
    while len(one) * len(other) > 4 * COVER_MAX_FILTERS and not _are_spans(one, other):
        widened = True
        if len(other) >= len(one):
            other = _halved(other)
        else:
            one, of_one = _halved(one), True
    both = _intersected(one, other)
    if isinstance(both, Contradiction):
        return both
    if len(both) > COVER_MAX_FILTERS and not _are_spans(one, other):
        return _Bounded(widen(both, COVER_MAX_FILTERS), True, True)
    return _Bounded(both, widened, of_one)


def _are_spans(one: Cover, other: Cover) -> bool:
    """Whether both are single ranges of one dimension, of which no product is made."""
    return len({each[:2] for cover in (one, other) for filter_ in cover for each in filter_}) == 1 and all(
        spans.is_spans(cover) for cover in (one, other)
    )


def _intersected(one: Cover, other: Cover) -> Cover | Contradiction:
    """The filters that hold where both covers do, at least one; or why there is none."""
    if len(one) == 1 and len(other) == 1:
        both = conjoin((*one[0], *other[0]))
        return both if isinstance(both, Contradiction) else (both,)
    if spans.is_spans(one) and spans.is_spans(other) and len(_paths((*one, *other))) == 1:
        common = spans.intersect(one, other)
        if common is not None:
            return tuple(sorted(common, key=_order)) if common else Contradiction(one[0][0], other[0][0])
    found: list[Filter] = []
    contradiction: Contradiction | None = None
    for mine in one:
        for theirs in other:
            both = conjoin((*mine, *theirs))
            if isinstance(both, Contradiction):
                contradiction = contradiction or both
            else:
                found.append(both)
    return disjoin(found) if found or contradiction is None else contradiction


def _product_of(one: Cover, other: Cover) -> Cover:
    """The conjunction of two covers of different attributes: in normal form if they are."""
    made = [tuple(sorted(mine + theirs, key=_path)) for mine in one for theirs in other]
    return tuple(sorted(made, key=_order))


def _product(parts: list[_Sourced]) -> tuple[Cover, frozenset[int]]:
    """The conjunction of covers of different attributes, in order: normal form if they are."""
    widened: frozenset[int] = frozenset()
    while math.prod(len(cover) for cover, _ in parts) > COVER_MAX_FILTERS:
        # The longest gives way: joining neighbours of many costs less than joining those of few.
        longest = max(range(len(parts)), key=lambda place: len(parts[place][0]))
        cover, sources = parts[longest]
        parts[longest] = _halved(cover), sources
        widened |= sources
    made = [tuple(chain(*choice)) for choice in product(*(cover for cover, _ in parts))]
    return tuple(sorted(made, key=_order) if len(made) > 1 else made), widened


def _halved(cover: Cover) -> Cover:
    return widen(cover, (len(cover) + 1) // 2)


def _paths(cover: Iterable[Filter]) -> set[Path]:
    return {constraint[0] for filter_ in cover for constraint in filter_}


def _path(constraint: Constraint) -> Path:
    return constraint[0]


def widen(cover: Cover, most: int) -> Cover:
    """A cover of at most so many filters that covers this one."""
    found = list(cover)
    while len(found) > most:
        pairs = sorted(
            (_cost(one, other, both := _hull(one, other)), place, both)
            for place, (one, other) in enumerate(pairwise(found))
        )
        used: set[int] = set()
        replaced: dict[int, Filter] = {}
        for _, place, both in pairs[: len(found) - most]:
            if place not in used and place + 1 not in used:
                used |= {place, place + 1}
                replaced[place] = both
        kept = [each for place, each in enumerate(found) if place not in used]
        found = list(disjoin([*kept, *replaced.values()]))
    return tuple(found)


def _hull(one: Filter, other: Filter) -> Filter:
    """The narrowest filter that covers both and is not longer than either."""
    theirs = {each.dimension: each for each in other if isinstance(each, Range)}
    words = {each for each in other if isinstance(each, Contains)}
    made: list[Constraint] = []
    for mine in one:
        if isinstance(mine, Contains):
            if mine in words:
                made.append(mine)
        elif mine.dimension in theirs:
            both = intervals.hull(mine.interval, theirs[mine.dimension].interval)
            made.append(Range(mine.path, mine.axis, both))
    hull = conjoin(made)
    assert not isinstance(hull, Contradiction)
    return hull


def _cost(one: Filter, other: Filter, hull: Filter) -> tuple[float, float]:
    """How much precision two filters lose in their hull, and how far apart they are."""
    kept = sum(map(_weight, hull))
    return sum(map(_weight, one)) + sum(map(_weight, other)) - 2 * kept, sum(map(_width, hull))


def _weight(constraint: Constraint) -> float:
    """How much a constraint says, roughly: a point much, a range with two ends less, with one end little."""
    if isinstance(constraint, Contains):
        return 2
    if constraint.axis is Axis.PRESENCE:
        return 0.5
    if is_point(constraint.interval) or constraint.axis is Axis.BOOLEAN:
        return 4
    ends = (len(cut) == 3 for cut in constraint.interval)
    return 3 if all(ends) else 1


def _width(constraint: Constraint) -> float:
    """How wide a range is, to choose between hulls of one weight: by number, or by what texts share."""
    if isinstance(constraint, Contains) or not all(len(cut) == 3 for cut in constraint.interval):
        return 0
    low, high = constraint.interval.low[1], constraint.interval.high[1]
    if isinstance(low, str):
        shared = shared_length(low, high)
        return 1 / (1 + shared)
    if isinstance(low, int | float):
        try:
            return float(high - low)
        except OverflowError:
            return float("inf")
    return 0
