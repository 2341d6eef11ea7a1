"""Putting a filter into a table by what clients claim, with a covering test for each claim that is used.

A claim that G covers F, if it is false and believed, hides F: nobody is told of it any more, and events are
lost. That goes for a claim that the new filter covers G as well. A claim that is missing makes a filter stand
higher than it need, which costs traffic and loses nothing. So what is claimed is verified before anything is
made of it, one test for each, and a claim that proves false is dropped as if it had never been made. What is
not claimed is believed. By the links, what lies beyond a filter that was verified is true without a test.

Cost: set operations on what is claimed, and a test for each link that is made and each claim that is refuted.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

from branchline.routing.filters import Filter
from branchline.routing.posets.forest import Forest, Variant
from branchline.routing.posets.graph import Graph, Source
from branchline.routing.posets.poset import Poset
from branchline.routing.posets.searching import find_place, highest, lowest


class Check(StrEnum):
    """What a router makes sure of by itself."""

    TRUST = "trust"
    """Nothing, as the thesis has it without checks: only where all clients are known to be honest."""
    LINKS = "links"
    """That whatever is linked covers: no event is lost, whatever clients say."""
    PLACES = "places"
    """Also that nothing right beside the place was left out; if something was, it is found by testing."""


@dataclass(slots=True)
class Claims:
    """What is claimed of one new filter: numbers of the table."""

    filter: Filter
    above: set[int] = field(default_factory=set)
    below: set[int] = field(default_factory=set)
    refuted: int = 0


class Placed(NamedTuple):
    """Where a filter goes, and for whom; for nobody, if all that ask have what covers it."""

    sources: list[Source]
    above: set[int]
    below: set[int]


NOWHERE = Placed([], set(), set())


class Placing(Protocol):
    def place(self, claims: Claims, sources: Iterable[Source]) -> Placed: ...


class Verifying:
    """Tests claims, and drops those that are false."""

    def __init__(self, table: Graph, check: Check) -> None:
        self._table = table
        self._check = check

    def above(self, claims: Claims, number: int) -> bool:
        """Whether what is claimed to cover the filter may be taken to."""
        if self._check is Check.TRUST or self._table.comparisons.covers(
            self._table.entry(number).filter, claims.filter
        ):
            return True
        claims.above.discard(number)
        claims.refuted += 1
        return False

    def below(self, claims: Claims, number: int) -> bool:
        """Whether the filter may be taken to cover what it is claimed to."""
        if self._check is Check.TRUST or self._table.comparisons.covers(
            claims.filter, self._table.entry(number).filter
        ):
            return True
        claims.below.discard(number)
        claims.refuted += 1
        return False


class PosetPlacing:
    """Between immediate predecessors and successors."""

    def __init__(self, poset: Poset, check: Check) -> None:
        self._poset = poset
        self._check = check
        self._verifying = Verifying(poset, check)

    def place(self, claims: Claims, sources: Iterable[Source]) -> Placed:
        wanting = [source for source in sources if not self._has(claims, source)]
        if not wanting:
            return NOWHERE
        # Nothing covers a filter and is covered by it but the filter itself.
        claims.below -= claims.above
        above, below = self._nearest_above(claims), self._nearest_below(claims)
        if self._check is Check.PLACES and self._left_out(claims.filter, above, below):
            above, below, _ = find_place(self._poset, claims.filter)
            beyond = self._poset.all_above(above)
            wanting = [
                each for each in wanting if not any(each in self._poset.entry(n).sources for n in beyond)
            ]
        return Placed(wanting, above, below) if wanting else NOWHERE

    def _has(self, claims: Claims, source: Source) -> bool:
        """Whether something that covers the filter has the source."""
        entry = self._poset.entry
        owned = [number for number in claims.above if source in entry(number).sources]
        return any(self._verifying.above(claims, number) for number in owned)

    def _nearest_above(self, claims: Claims) -> set[int]:
        """The lowest of what covers the filter; above what proves false, the next in line."""
        good: set[int] = set()
        pending = sorted(lowest(self._poset, claims.above))
        while pending:
            number = pending.pop()
            if self._verifying.above(claims, number):
                good.add(number)
            else:
                higher = self._poset.entry(number).above & claims.above
                pending += [n for n in sorted(higher) if claims.above.isdisjoint(self._poset.entry(n).below)]
        return good

    def _nearest_below(self, claims: Claims) -> set[int]:
        good: set[int] = set()
        pending = sorted(highest(self._poset, claims.below))
        while pending:
            number = pending.pop()
            if self._verifying.below(claims, number):
                good.add(number)
            else:
                lower = self._poset.entry(number).below & claims.below
                pending += [n for n in sorted(lower) if claims.below.isdisjoint(self._poset.entry(n).above)]
        return good

    def _left_out(self, filter_: Filter, above: set[int], below: set[int]) -> bool:
        """Whether something right below what is above, or among the roots, belongs above or below, too."""
        poset, tests = self._poset, self._poset.comparisons
        beside: set[int] = set().union(*(poset.entry(each).below for each in above)) if above else poset.roots
        for number in beside - above - below:
            other = poset.entry(number).filter
            if tests.covers(other, filter_) or tests.covers(filter_, other):
                return True
        return False


class ForestPlacing:
    """Down from the imaginary root."""

    def __init__(self, forest: Forest, check: Check) -> None:
        self._forest = forest
        self._check = check
        self._verifying = Verifying(forest, check)

    def place(self, claims: Claims, sources: Iterable[Source]) -> Placed:
        forest, verifying = self._forest, self._verifying
        wanting = list(sources)
        parent: int | None = None
        while wanting:
            covering = forest.children(parent) & claims.above
            above = next((each for each in covering if verifying.above(claims, each)), None)
            if above is None:
                break
            parent, wanting = above, self._without(wanting, [above])
        if self._check is Check.PLACES:
            parent, below = forest.way_down(claims.filter, parent)
            wanting = wanting if parent is None else self._without(wanting, forest.all_above([parent]))
        else:
            below = {each for each in forest.children(parent) & claims.below if verifying.below(claims, each)}
        return Placed(wanting, set() if parent is None else {parent}, below)

    def _without(self, sources: list[Source], above: Iterable[int]) -> list[Source]:
        """The sources that none of these filters has; in a plain forest each keeps all that it asks for."""
        if self._forest.variant is Variant.PLAIN:
            return sources
        known = [self._forest.entry(each).sources for each in above]
        return [source for source in sources if not any(source in each for each in known)]
