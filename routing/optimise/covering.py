"""Covering: an entry that matches only what another of the same owner matches is left out.

Theory of operation. Siena keeps filters in a poset, the graph of immediate covering; what is asked of an
event on behalf of one neighbour are its roots. Here only the roots are needed, and no order below them: a
filter is *hidden* if another one that is not hidden covers it. Whoever hides is not hidden at that time, so
at the end each hidden filter is covered by one that is left; and no filter that is left covers another, since
each pair was compared while both were there. Nothing but redundance is lost: covering is exact.

An entry with a tree is hidden if each filter of its cover is. It hides none: its tree may match less.

Filters are compared shape by shape (`shapes.py`), first with those of their own: there the widest come
first, since they hide most. A shape is filed under two of its attributes, those that fewest shapes have; it
can cover only shapes that have all of its attributes, and so those two.

Cost: what the comparisons of shapes take, and O(shapes · shapes that share two attributes).
"""

from collections import Counter
from collections.abc import Sequence
from itertools import chain, combinations, islice

import numpy as np

from branchline.routing.expression import Path
from branchline.routing.filters import Filter
from branchline.routing.optimise.entries import Entry, separate
from branchline.routing.optimise.protocols import Optimisation, Selectivity, Smaller
from branchline.routing.optimise.shapes import FEW_PAIRS, Flags, Group, Ranks, Shape, shape_of

WIDEST = 200
"""Filters of one shape that are compared with all others of it before the rest is."""


class Covering:
    """Leave out what another entry covers."""

    def __init__(self, few_pairs: int = FEW_PAIRS) -> None:
        self._few_pairs = few_pairs

    def optimise(self, entries: Sequence[Entry], selectivity: Selectivity) -> Smaller:
        entries = separate(entries)
        filters = [filter_ for entry in entries for filter_ in entry.cover]
        hiding = np.asarray([entry.tree is None for entry in entries for _ in entry.cover], np.bool_)
        hidden = iter(covered(filters, hiding, self._few_pairs).tolist())
        left = [entry for entry in entries if not all(list(islice(hidden, len(entry.cover))))]
        return Smaller(left, {"filters_hidden": len(entries) - len(left)})


def covered(filters: Sequence[Filter], hiding: Flags, few: int = FEW_PAIRS) -> Flags:
    """Which filters are covered by others that may hide them, and that stay."""
    ranks = Ranks(filters)
    of_shape: dict[Shape, list[int]] = {}
    for number, filter_ in enumerate(filters):
        of_shape.setdefault(shape_of(filter_), []).append(number)
    groups = [
        Group(shape, numbers, [filters[each] for each in numbers], ranks)
        for shape, numbers in sorted(of_shape.items())
    ]
    hidden, hiding = np.zeros(len(filters), np.bool_), hiding.copy()

    def compare(one: Group, other: Group) -> None:
        found = one.covers_of(other, hiding, hidden, few)
        hidden[found] = True
        hiding[found] = False

    for group in groups:
        if len(group) > WIDEST:
            compare(group.widest(WIDEST), group)
        compare(group, group)
    filed = _filed(groups)
    for number, group in enumerate(groups):
        for key in chain.from_iterable(combinations(sorted(group.paths), few) for few in range(3)):
            for each in filed.get(key, ()):
                if each != number and groups[each].paths <= group.paths:
                    compare(groups[each], group)
    return hidden


def _filed(groups: Sequence[Group]) -> dict[tuple[Path, ...], list[int]]:
    """The groups by the two of their attributes that fewest have, or by as many as there are."""
    frequent = Counter(path for group in groups for path in group.paths)
    filed: dict[tuple[Path, ...], list[int]] = {}
    for number, group in enumerate(groups):
        rarest = sorted(group.paths, key=lambda path: (frequent[path], path))[:2]
        filed.setdefault(tuple(sorted(rarest)), []).append(number)
    return filed


def make(number: int | None) -> Optimisation:
    return Covering()
