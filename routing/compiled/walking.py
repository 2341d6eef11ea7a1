"""The one content match of many events: what each of them follows in the Routing Tree.

The same as `Trees.enter` gives, for single-valued events: for each part the FPT and the numbers of the
filters beside the tree.

The constraints of all parts and the filters beside them are ranked together, so an event is ranked once. A
new version of a part lays out everything anew; of nodes and filters only those that are new are looked at in
Python.

Cost: what `descending.py` and, for the filters beside the tree, `access.py` say. A new version takes a
microsecond for each node that is new, and a fraction of that for all others.
"""

from collections.abc import Sequence
from operator import itemgetter

import numpy as np

from branchline.routing.compiled.access import AccessIndex
from branchline.routing.compiled.bounds import Ranked, ranked
from branchline.routing.compiled.branches import Edges, branches, edges_of
from branchline.routing.compiled.descending import NO_HEIGHT, Met, descend, places
from branchline.routing.compiled.filing import filed
from branchline.routing.compiled.gathering import Gathering
from branchline.routing.compiled.kernels import kernel
from branchline.routing.compiled.names import grown
from branchline.routing.compiled.paths import Paths
from branchline.routing.compiled.prefixes import Bytes, Flags, Ints, Longs, Prefixes, firsts, frozen, runs
from branchline.routing.compiled.ranking import Cells, rank
from branchline.routing.compiled.spans import Scanned
from branchline.routing.filters import Filter
from branchline.routing.prefix import trees as reference
from branchline.routing.prefix.edges import ALIVE
from branchline.routing.prefix.trees import Trees
from branchline.routing.prefix.updates import Version
from branchline.routing.prefix.vocabulary import Vocabulary

_SPARE_GATHERED = 1_000
"""Filters that nobody has any more and that are not worth gathering the others anew for."""


class _Part:
    """What is known of one part: which of the gathered filters each node's constraint is."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._tree = vocabulary.tree
        self._of_node = np.zeros(0, np.int64)

    def ids(self, edges: Edges, gathered: "_Gathered") -> Longs:
        """Of each edge's child the constraint, as a filter of its own."""
        tree = self.vocabulary.tree
        if tree is not self._tree:
            self._tree, self._of_node = tree, np.zeros(0, np.int64)
        self._of_node = grown(self._of_node, tree.size(), -1)
        for child in edges.child[self._of_node[edges.child] < 0].tolist():
            self._of_node[child] = gathered.id((tree.constraint(child),))
        return self._of_node[edges.child]


class _Gathered:
    """Distinct filters, flattened."""

    def __init__(self) -> None:
        self.gathering = Gathering()
        self._ids: dict[Filter, int] = {}

    def id(self, filter_: Filter) -> int:
        found = self._ids.get(filter_)
        if found is None:
            found = self._ids[filter_] = len(self.gathering)
            self.gathering.add(filter_)
        return found


class Walker:
    """The newest version of all parts, compiled for matching."""

    def __init__(self, trees: Trees, paths: Paths) -> None:
        """The paths that constraints name are added to the paths, now and whenever a tree has changed."""
        self._trees = trees
        self._paths = paths
        self._versions: list[Version] = []
        self._gather_anew()
        self.catch_up()

    def catch_up(self) -> None:
        """Go on to the newest versions. Rows must be scanned for the paths that there are then."""
        versions = [vocabulary.version for vocabulary in self._trees.vocabularies]
        if versions == self._versions:
            return
        lives = [edges_of(vocabulary.tree) for vocabulary in self._trees.vocabularies]
        beside = [_living(vocabulary) for vocabulary in self._trees.vocabularies]
        most = sum(len(edges.child) for edges in lives) + sum(map(len, beside))
        if len(self._gathered.gathering) > 2 * most + _SPARE_GATHERED:
            self._gather_anew()
        ids = [part.ids(edges, self._gathered) for part, edges in zip(self._parts, lives, strict=True)]
        of_beside = [self._gathered.id(filter_) for numbers in beside for _, filter_ in numbers]
        found = ranked(self._gathered.gathering.parts(), self._paths)
        self._bounds = found.bounds
        self._places = places(found.bounds)
        self._branches = [
            branches(
                edges,
                part.vocabulary.tree.size(),
                found.bounds,
                *(column[found.first[mine]] for column in (found.slot, found.low, found.high)),
            )
            for part, edges, mine in zip(self._parts, lives, ids, strict=True)
        ]
        self._numbers = np.array([number for numbers in beside for number, _ in numbers], np.int64)
        self._number_first = firsts(list(map(len, beside)))
        chosen = _chosen(found, np.array(of_beside, np.int64))
        self._beside = AccessIndex.laid(chosen.bounds, chosen.first, filed(chosen))
        self._versions = versions

    def walk(self, scanned: Scanned, single: Flags) -> Prefixes:
        """What single-valued events give; an event that is none, or has no row, has no parts.

        The rows of events stand in the order of events.
        """
        cells = rank(self._bounds, scanned)
        rows = np.searchsorted(scanned.event, np.arange(len(single)))
        has_one = np.bincount(scanned.event, minlength=len(single)) == 1
        rows = rows[single & has_one].astype(np.int64)
        height = NO_HEIGHT if self._trees.height is None else self._trees.height
        met = Met(
            frozen(cells.first),
            frozen(cells.dimension),
            frozen(cells.rank),
            frozen(cells.word_first),
            frozen(cells.word),
        )
        walked = [descend(each, met, rows, self._places, height) for each in self._branches]
        parts = len(walked)
        numbers, many = self._number(scanned, cells, rows)
        incarnations = np.array([version.incarnation for version in self._versions], np.int64)
        clocks = np.array([version.clock for version in self._versions], np.int64)
        return Prefixes(
            np.zeros(len(single), np.bool_),
            firsts((single & has_one).astype(np.int64) * parts),
            np.tile(incarnations, len(rows)),
            np.tile(clocks, len(rows)),
            np.stack([cut for _, _, _, cut in walked], 1).ravel(),
            many,
            *_side_by_side([each[:3] for each in walked]),
            *numbers,
        )

    def _gather_anew(self) -> None:
        self._gathered = _Gathered()
        self._parts = [_Part(vocabulary) for vocabulary in self._trees.vocabularies]

    def _number(self, scanned: Scanned, cells: Cells, rows: Longs) -> tuple[tuple[Longs, Longs], Flags]:
        """The overflow numbers of each row and part, and where there were more than travel."""
        if not len(self._numbers):
            size = len(rows) * len(self._parts)
            return (np.zeros(size + 1, np.int64), np.zeros(0, np.int64)), np.zeros(size, np.bool_)
        events = int(scanned.event.max(initial=-1)) + 1
        hits = self._beside.hits(cells, scanned.event, events)
        first, beside, many = _numbered(
            hits.first,
            hits.row,
            scanned.event[rows],
            self._numbers,
            self._number_first,
            reference.NUMBERS_MAX,
        )
        return (first, beside), many


def _living(vocabulary: Vocabulary) -> list[tuple[int, Filter]]:
    """The filters beside the tree, by number."""
    found = [(number, each.filter) for number, each in vocabulary.numbered.items() if each.died == ALIVE]
    return sorted(found, key=itemgetter(0))


def _chosen(found: Ranked, filters: Longs) -> Ranked:
    """Some of the filters."""
    first = found.first.astype(np.int64)
    counts = first[filters + 1] - first[filters]
    places = runs(first[filters], counts)
    return Ranked(
        found.bounds,
        firsts(counts).astype(np.int32),
        found.slot[places],
        found.low[places],
        found.high[places],
    )


def _side_by_side(walked: Sequence[tuple[Bytes, Longs, Longs]]) -> tuple[Bytes, Longs, Longs, Longs]:
    """The entries of all parts, how many each row has in each part, and where they begin and end."""
    before = firsts([len(data) for data, _, _ in walked])[:-1]
    first = np.stack([part + start for (_, part, _), start in zip(walked, before, strict=True)], 1)
    return (
        np.concatenate([data for data, _, _ in walked]),
        np.stack([entries for _, _, entries in walked], 1).ravel(),
        first[:-1].ravel(),
        first[1:].ravel(),
    )


@kernel
def _numbered(
    first: Longs, row: Ints, events: Ints, numbers: Longs, number_first: Longs, most: int
) -> tuple[Longs, Longs, Flags]:
    """The numbers that were hit, for each of the events and each part, ascending."""
    parts = len(number_first) - 1
    made, many = np.zeros(len(events) * parts + 1, np.int64), np.zeros(len(events) * parts, np.bool_)
    beside = np.empty(len(row), np.int64)
    count = which = 0
    for event in events:
        hits = np.sort(row[first[event] : first[event + 1]])
        place = 0
        for part in range(parts):
            begin = place
            while place < len(hits) and hits[place] < number_first[part + 1]:
                place += 1
            many[which] = place - begin > most
            if not many[which]:
                for hit in range(begin, place):
                    beside[count] = numbers[hits[hit]]
                    count += 1
            which += 1
            made[which] = count
    return made, beside[:count], many
