"""The poset-derived forest: filters of which each has at most one above it, for quick inserts and deletes.

Theory of operation. A poset keeps every immediate pair; a forest keeps one way up for each filter. Below an
imaginary root, from which all trees hang, two things hold: a filter covers whatever lies below it, and no two
siblings cover each other (*sibling-pure*). The second holds at the imaginary root too, so that no tree can be
hung below another (*maximal*), and the roots are the minimal cover, as in a poset.

A filter goes down from the imaginary root: into a child that covers it, until there is none; children there
that it covers move below it. When a filter leaves, each child goes down again from where the filter hung,
with all that lies below it. A filter that is there already is found by its hash.

Variants. `plain` keeps each subscription until it ends: for local clients. With `interfaces` a source is kept
once on a way, as in a poset, as far as the way that the filter goes down shows it. `balanced` also keeps in
every node how often each source comes below it, and goes down where the filter's own source comes most: so
more of it is found to be covered. `non-redundant` looks with that index through the whole forest, so that
no filter of a source is covered by another of the same source.

Invariants: `checking.py`. Cost: an insert tests the children on one way down, a delete those that each child
of the filter meets on its way; the index costs a step for each filter above, for each source that moves.
"""

from collections import Counter
from collections.abc import Iterable, Set
from enum import StrEnum

from branchline.routing.filters import Filter
from branchline.routing.posets.graph import Graph, Source


class Variant(StrEnum):
    PLAIN = "plain"
    INTERFACES = "interfaces"
    BALANCED = "balanced"
    NON_REDUNDANT = "non-redundant"


INDEXED = frozenset({Variant.BALANCED, Variant.NON_REDUNDANT})


class Forest(Graph):
    """Filters in trees, and their sources."""

    def __init__(self, variant: Variant = Variant.PLAIN) -> None:
        super().__init__()
        self.variant = variant
        self._index: dict[int, Counter[Source]] | None = {} if variant in INDEXED else None
        """For each filter, how many at or below it have which source."""

    def children(self, parent: int | None) -> set[int]:
        """What hangs right below a filter, or below the imaginary root."""
        return self.roots if parent is None else self._entries[parent].below

    def parent(self, number: int) -> int | None:
        return next(iter(self._entries[number].above), None)

    # Subscriptions

    def subscribe(self, filter_: Filter, source: Source) -> bool:
        """A source asks for a filter. Not so, if that changes nothing."""
        number = self._numbers.get(filter_)
        if self.variant is Variant.PLAIN:
            return self._subscribe_plain(filter_, number, source)
        if self._redundant(filter_, source):
            return False
        if number is None:
            parent, below = self.way_down(filter_, None, source)
            if parent is not None and source in self._entries[parent].sources:
                return False
            number = self.insert(filter_, set() if parent is None else {parent}, below)
        elif any(source in self._entries[each].sources for each in self.all_above([number])):
            return False
        self.give(number, source, self.covered(number, source))
        return True

    def unsubscribe(self, filter_: Filter, source: Source) -> bool:
        """A source no longer asks for just this filter. Not so, if it did not."""
        number = self._numbers.get(filter_)
        return number is not None and bool(self.take([number], source))

    def _subscribe_plain(self, filter_: Filter, number: int | None, source: Source) -> bool:
        if number is None:
            parent, below = self.way_down(filter_, None)
            number = self.insert(filter_, set() if parent is None else {parent}, below)
        elif source in self._entries[number].sources:
            return False
        self.give(number, source, ())
        return True

    # Search

    def way_down(
        self, filter_: Filter, parent: int | None, source: Source = None
    ) -> tuple[int | None, set[int]]:
        """Where a filter goes from here down, and the children there that it covers.

        With a source, the way ends at a filter that has it.
        """
        while True:
            above, below = self._related(filter_, parent)
            if not above:
                return parent, below
            parent = self._choose(above, source)
            if source is not None and source in self._entries[parent].sources:
                return parent, set()

    def _related(self, filter_: Filter, parent: int | None) -> tuple[list[int], set[int]]:
        """The children that cover a filter, one unless there is a choice to be made; or those it covers."""
        above: list[int] = []
        below: set[int] = set()
        tests = self.comparisons
        for each in self.children(parent):
            other = self._entries[each].filter
            # Siblings are pure: where one is covered, none covers.
            if not below and tests.covers(other, filter_):
                above.append(each)
                if self._index is None:
                    break
            elif not above and tests.covers(filter_, other):
                below.add(each)
        return above, below

    def _choose(self, children: list[int], source: Source) -> int:
        """Of several that cover a filter, the one with most of its source below; else the first."""
        index = self._index
        if index is None or len(children) == 1:
            return children[0]
        return max(children, key=lambda each: (index[each][source], -each))

    def _redundant(self, filter_: Filter, source: Source) -> bool:
        """Whether a filter of the source covers this one, looked for where the index says that there is one.

        Only the variant without redundance asks.
        """
        if self.variant is not Variant.NON_REDUNDANT:
            return False
        assert self._index is not None
        pending = list(self.roots)
        while pending:
            number = pending.pop()
            if self._index[number][source]:
                entry = self._entries[number]
                if entry.filter == filter_ or self.comparisons.covers(entry.filter, filter_):
                    if source in entry.sources:
                        return True
                    pending += entry.below
        return False

    def covered(self, number: int, source: Source) -> Set[int]:
        """What a filter covers that the source is to be taken off: what lies below, or all there is."""
        if self.variant is not Variant.NON_REDUNDANT:
            return self.all_below([number])
        assert self._index is not None
        filter_ = self._entries[number].filter
        found: set[int] = set()
        pending = list(self.roots)
        while pending:
            each = pending.pop()
            if self._index[each][source]:
                entry = self._entries[each]
                if each == number or self.comparisons.covers(filter_, entry.filter):
                    found |= self.all_below([each])
                else:
                    pending += entry.below
        return found

    # Changes

    def insert(self, filter_: Filter, above: Set[int], below: Set[int]) -> int:
        assert len(above) <= 1, "a filter of a forest hangs below one other"
        number = super().insert(filter_, above, below)
        if self._index is not None:
            self._index[number] = sum((self._index[each] for each in below), Counter())
        return number

    def give(self, number: int, source: Source, covered: Iterable[int]) -> list[Filter]:
        if source not in self._entries[number].sources:
            self._count(number, Counter({source: 1}), 1)
        return super().give(number, source, covered)

    def take(self, numbers: Iterable[int], source: Source) -> list[Filter]:
        numbers = [each for each in numbers if source in self._entries[each].sources]
        for each in numbers:
            self._count(each, Counter({source: 1}), -1)
        return super().take(numbers, source)

    def _remove(self, number: int) -> None:
        if self._index is not None:
            below = self._index.pop(number)
            for each in self._entries[number].above:
                self._count(each, below, -1)
        entry = self._unhook(number)
        parent = next(iter(entry.above), None)
        pending = [(each, parent) for each in entry.below]
        while pending:
            child, at = pending.pop()
            pending += self._hang(child, at)

    def _hang(self, number: int, parent: int | None) -> list[tuple[int, int]]:
        """Hang a filter, with all below it, where it goes from here down; what then goes below it."""
        entry = self._entries[number]
        parent, covered = self.way_down(entry.filter, parent)
        for each in covered:
            self._cut(each, parent)
        self.children(parent).add(number)
        if parent is not None:
            entry.above.add(parent)
            if self._index is not None:
                self._count(parent, self._index[number], 1)
        self._touch((number, *covered))
        return [(each, number) for each in covered]

    def _cut(self, number: int, parent: int | None) -> None:
        self.children(parent).discard(number)
        if parent is not None:
            self._entries[number].above.discard(parent)
            if self._index is not None:
                self._count(parent, self._index[number], -1)

    def _count(self, number: int, sources: Counter[Source], sign: int) -> None:
        """Sources came to or left what lies at or below a filter."""
        if self._index is None:
            return
        at: int | None = number
        while at is not None:
            counts = self._index[at]
            for source, count in sources.items():
                counts[source] += sign * count
                if not counts[source]:
                    del counts[source]
            at = self.parent(at)

    def index(self, number: int) -> dict[Source, int]:
        """How many filters at or below this one have which source, if that is kept."""
        return {} if self._index is None else dict(self._index[number])
