"""Where a filter goes in a poset: what covers it and what it covers, found by covering tests."""

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


def find_place(poset: Poset, filter_: Filter) -> Place:
    """The place of a filter that is not in the poset."""
    above = lowest(poset, covering(poset, filter_))
    return Place(above, *find_below(poset, filter_, above))


def covering(poset: Poset, filter_: Filter, source: Source | None = None) -> set[int]:
    """All that covers the filter, found depth first; with a source, only until one that has it."""
    found: set[int] = set()
    pending = list(poset.roots)
    seen = set(pending)
    tests = poset.comparisons
    while pending:
        number = pending.pop()
        entry = poset.entry(number)
        if tests.covers(entry.filter, filter_):
            found.add(number)
            if source is not None and source in entry.sources:
                break
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


def find_below(poset: Poset, filter_: Filter, above: set[int]) -> tuple[set[int], set[int]]:
    """The immediate successors, found breadth first, and all that is covered.

    Whatever the filter covers, each of its predecessors covers: it is enough to look below one.
    """
    level = min((poset.entry(each).below for each in sorted(above)), key=len) if above else poset.roots
    seen = set(level)
    met: set[int] = set()
    tests = poset.comparisons
    while level:
        after: set[int] = set()
        for number in level:
            entry = poset.entry(number)
            if tests.covers(filter_, entry.filter):
                met.add(number)
            else:
                after |= entry.below
        level = after - seen
        seen |= level
    covered = poset.all_below(met)
    return {number for number in met if poset.entry(number).above.isdisjoint(covered)}, covered
