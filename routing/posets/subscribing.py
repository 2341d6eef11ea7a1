"""Subscriptions and unsubscriptions at a filters poset, and which neighbours are told of a filter.

A neighbour is told of what others than it ask for, and of nothing that is covered by what it is told already.
In a network without cycles, with the sources of a filter, that is: a filter that one neighbour alone asks for
goes to all but that one, any other goes to all; less those to whom something that covers it went.
"""

from collections.abc import Iterable, Set
from typing import NamedTuple

from branchline.routing.filters import Filter
from branchline.routing.posets.graph import Source
from branchline.routing.posets.poset import Poset
from branchline.routing.posets.searching import covering, find_below, find_place, lowest


class Subscribed(NamedTuple):
    """What a subscription changed."""

    changed: bool
    """Not, if the source already had a filter that covers it, or this one."""
    taken: tuple[Filter, ...] = ()
    """The filters that the source had before and that are covered now."""


NOTHING = Subscribed(False)


def subscribe(poset: Poset, filter_: Filter, source: Source) -> Subscribed:
    """A source asks for a filter."""
    number = poset.number(filter_)
    if number is not None:
        if any(source in poset.entry(each).sources for each in poset.all_above([number])):
            return NOTHING
        return Subscribed(True, tuple(poset.give(number, source, poset.all_below([number]))))
    known = covering(poset, filter_, source)
    if any(source in poset.entry(each).sources for each in known):
        return NOTHING
    above = lowest(poset, known)
    below, covered = find_below(poset, filter_, above)
    return Subscribed(True, tuple(poset.give(poset.insert(filter_, above, below), source, covered)))


def unsubscribe(poset: Poset, filter_: Filter, source: Source) -> tuple[Filter, ...]:
    """A source wants nothing any more that the filter covers; the filters that it asked for till now."""
    number = poset.number(filter_)
    if number is None:
        return tuple(poset.take(find_place(poset, filter_).covered, source))
    if source in poset.entry(number).sources:
        return tuple(poset.take([number], source))
    return tuple(poset.take(poset.all_below([number]), source))


def forwards(poset: Poset, filter_: Filter, neighbours: Set[Source]) -> frozenset[Source]:
    """The neighbours that have to be told of a filter of the table."""
    number = poset.number(filter_)
    return frozenset() if number is None else _forwards(poset, number, neighbours)


def told(poset: Poset, neighbour: Source) -> set[Filter]:
    """All that a neighbour has to be told of: the minimal cover of what others ask for."""
    found = set()
    pending = list(poset.roots)
    seen = set(pending)
    while pending:
        number = pending.pop()
        entry = poset.entry(number)
        if entry.sources != {neighbour}:
            if neighbour in _forwards(poset, number, {neighbour}):
                found.add(entry.filter)
        else:
            more = entry.below - seen
            seen |= more
            pending += more
    return found


def _forwards(poset: Poset, number: int, neighbours: Set[Source]) -> frozenset[Source]:
    entry = poset.entry(number)
    wanted = _sent(entry.sources, neighbours)
    if not entry.above:
        return wanted
    others = poset.all_above(entry.above)
    return wanted - _sent(_at_most_two(poset, others), neighbours)


def _at_most_two(poset: Poset, numbers: Iterable[int]) -> set[Source]:
    """The sources of these filters; two say as much as any more."""
    found: set[Source] = set()
    for each in numbers:
        found |= poset.entry(each).sources
        if len(found) > 1:
            break
    return found


def _sent(sources: Set[Source], neighbours: Set[Source]) -> frozenset[Source]:
    """To whom goes what these sources ask for."""
    return frozenset(neighbours) - (frozenset(sources) if len(sources) == 1 else frozenset())
