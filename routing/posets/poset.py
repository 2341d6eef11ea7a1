"""Siena's filters poset: distinct filters, who asked for each, and which filter covers which immediately.

Theory of operation. Covering is a partial order of filters. The poset is the graph of its *immediate* pairs:
there is a link from G down to F if G covers F and no third filter lies between them. So G covers F exactly if
a way leads down from G to F, and the filters without one above them, the *roots*, are the minimal cover: what
the rest of the network has to be told. Each filter has its *sources*, the interfaces that asked for it.

A source is kept once on every way: what it asks for while a filter that covers it has that source changes
nothing, and what it asked for before is dropped for a filter of its own that covers it. A filter without
sources leaves the table. An unsubscription therefore ends all that its filter covers from that source; local
clients, whose subscriptions end one by one, are better kept in a forest (`combined.py`).

Search (`searching.py`). Predecessors are found depth first from the roots, going on below what covers the
filter; the lowest of them are immediate. Successors are found breadth first below one immediate predecessor,
going on below what is not covered. Where fewer filters than that begins with ask for what the filter asks for
(`filed.py`), these are tested in its place: nothing else covers it, or is covered. What is already there is
found by its hash, and what lies below a filter by the links alone.

Invariants, which `checking.py` asks of a table: links are just the immediate pairs; roots are what nothing
covers; every filter has a source; two filters of one source do not cover each other.

Cost. Inserting tests the roots, all that lies right below whatever covers the filter, and what lies below one
predecessor; or, if they are fewer, those that ask for the same values. Deleting makes no test: ways up tell
which links are needed in its place.
"""

from collections.abc import Iterable, Set

from branchline.routing.filters import Filter
from branchline.routing.posets.filed import Filed
from branchline.routing.posets.graph import Entry, Graph


class Poset(Graph):
    """Filters and their immediate covering."""

    def __init__(self) -> None:
        super().__init__()
        self.filed = Filed()
        """All filters of the table."""

    def insert(self, filter_: Filter, above: Set[int], below: Set[int]) -> int:
        """Put a new filter, without a source yet, between what is right above it and what is right below."""
        self.filed.add(filter_)
        return super().insert(filter_, above, below)

    def restore(self, standing: Iterable[tuple[int, Filter, Iterable[int]]], following: int) -> None:
        """Be a graph of these filters under these numbers, each with what is right above it."""
        known = list(standing)
        self.filed = Filed()
        for _, filter_, _ in known:
            self.filed.add(filter_)
        super().restore(known, following)

    def _unhook(self, number: int) -> Entry:
        entry = super()._unhook(number)
        self.filed.remove(entry.filter)
        return entry

    def _remove(self, number: int) -> None:
        entry = self._unhook(number)
        for each in entry.below:
            self._relink(each, entry.above)

    def _relink(self, number: int, above: set[int]) -> None:
        """Link a filter to those of these that no other way leads up to."""
        entry = self._entries[number]
        missing = above - self.all_above(entry.above) if entry.above else above
        for each in missing:
            self._entries[each].below.add(number)
        entry.above |= missing
        if not entry.above:
            self.roots.add(number)
