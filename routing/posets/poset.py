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
going on below what is not covered. What is already there is found by its hash, and what lies below a filter
by the links alone. To pass over what has nothing in common with the filter would save one test in a hundred,
and cost more than it saves.

Invariants, which `checking.py` asks of a table: links are just the immediate pairs; roots are what nothing
covers; every filter has a source; two filters of one source do not cover each other.

Cost. Inserting tests the roots, all that lies right below whatever covers the filter, and what lies below one
predecessor. Deleting makes no test: ways up tell which links are needed in its place.
"""

from branchline.routing.posets.graph import Graph


class Poset(Graph):
    """Filters and their immediate covering."""

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
