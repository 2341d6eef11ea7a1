"""Where a filter goes in a poset: what covers it and what it covers, found by covering tests."""

from collections.abc import Set
from typing import NamedTuple

from branchline.routing.filters import Filter
from branchline.routing.posets.graph import Source
from branchline.routing.posets.poset import Poset


class Place(NamedTuple):
    """Between which filters a filter goes."""

    above: set[int]
    """Its immediate predecessors."""
    below: set[int]
    """Its immediate successors."""
    covered: set[int]
    """All that it covers."""


class Known(NamedTuple):
    """What needs no test, in numbers of the poset."""

    above: Set[int] = frozenset()
    """What covers the filter, and all that covers one of these."""
    below: Set[int] = frozenset()
    """What the filter covers, and all that one of these covers."""
    not_above: Set[int] = frozenset()
    """What does not cover the filter; nor does anything below."""
    not_below: Set[int] = frozenset()
    """What the filter does not cover."""


UNKNOWN = Known()


def find_place(poset: Poset, filter_: Filter, known: Known = UNKNOWN) -> Place:
    """The place of a filter that is not in the poset."""
    above = lowest(poset, covering(poset, filter_, known=known))
    return Place(above, *find_below(poset, filter_, above, known))


def covering(poset: Poset, filter_: Filter, source: Source | None = None, known: Known = UNKNOWN) -> set[int]:
    """All that covers the filter; with a source, only until one is found that has it."""
    found = set(known.above)
    if source is not None and any(source in poset.entry(each).sources for each in found):
        return found
    seen = found | known.not_above | known.below
    few = poset.filed.count_wider(filter_) < len(poset.roots)
    if few:
        first = set(poset.numbers(poset.filed.wider(filter_)))
    else:
        first = poset.roots.union(*(poset.entry(each).below for each in known.above))
    pending = list(first - seen)
    seen.update(pending)
    while pending:
        number = pending.pop()
        entry = poset.entry(number)
        if poset.comparisons.covers(entry.filter, filter_):
            found.add(number)
            if source is not None and source in entry.sources:
                break
            if not few:
                more = entry.below - seen
                seen |= more
                pending += more
    return found


def lowest(poset: Poset, covering_: set[int]) -> set[int]:
    """Of all that covers a filter, what does so immediately: nothing that covers it lies below."""
    return {number for number in covering_ if poset.entry(number).below.isdisjoint(covering_)}


def highest(poset: Poset, covered: set[int]) -> set[int]:
    """Of all that a filter covers, what it covers immediately."""
    return {number for number in covered if poset.entry(number).above.isdisjoint(covered)}


def find_below(
    poset: Poset, filter_: Filter, above: set[int], known: Known = UNKNOWN
) -> tuple[set[int], set[int]]:
    """The immediate successors, and all that is covered.

    Whatever the filter covers, each of its predecessors covers: it is enough to look below one.
    """

    def is_below(number: int) -> bool:
        return number in known.below or (
            number not in known.not_below and poset.comparisons.covers(filter_, poset.entry(number).filter)
        )

    level = min((poset.entry(each).below for each in sorted(above)), key=len) if above else poset.roots
    if poset.filed.count_narrower(filter_) < len(level):
        few = poset.numbers(poset.filed.narrower(filter_))
        covered = {each for each in few if is_below(each)}
        return highest(poset, covered), covered
    seen = set(level)
    met: set[int] = set()
    while level:
        after: set[int] = set()
        for number in level:
            if is_below(number):
                met.add(number)
            else:
                after |= poset.entry(number).below
        level = after - seen
        seen |= level
    covered = poset.all_below(met)
    return highest(poset, covered), covered
