"""Content is matched with the access index that batches go through, at every broker, one event or many.

The index (`compiled/access.py`) files each filter under the constraint, or pair of equalities, that fewest
events should satisfy, and checks the rest only of those that are filed under what the event has. Filters come
and go through tiers (`compiled/index.py`); owners are found by code (`compiled/interests.py`).

An event becomes rows of cells first, one for each choice of its arrays. One with more choices than rows
are made for is asked filter by filter; that is rare, and the answer is the same.

An event that enters among many is matched with them in one pass (`overlay/entering.py`), and so are copies
that come together (`overlay/rematching.py`). Then the paths that filters name are numbered by whoever scans
the batch, for all brokers of a shard; before that, by this index for itself.

Cost: of one event, the rows and what every call of a compiled loop takes, some 0.1 ms, then a few ns for
each filter that is filed under what the event has; of one of many, the latter.
"""

from collections.abc import Mapping

from branchline.routing.compiled.interests import IndexedInterests
from branchline.routing.compiled.paths import Paths
from branchline.routing.compiled.reading import rows_of
from branchline.routing.event import Event
from branchline.routing.methods.owning import Owning
from branchline.routing.methods.protocols import Interest, Matching
from branchline.routing.prefix.forwarding import Found, Wanted
from branchline.routing.prefix.places import Owner
from branchline.routing.prefix.trees import Trees

PATHS_KEPT = 50_000
"""Paths that this index has numbered for itself, from which on it is made anew if most are named no more."""


class AccessMatching:
    """Filters and their owners in an access index."""

    def __init__(self) -> None:
        self._owning = Owning()
        self._interests: IndexedInterests | None = None
        self._alone = True
        """Nobody has asked for the interests: paths are numbered here."""
        self._paths_kept = PATHS_KEPT

    def add(self, interest: Interest) -> None:
        for filter_ in interest.compiled.cover:
            is_new = self._owning.add(filter_, interest.owner)
            if self._interests is None:
                continue
            if is_new:
                self._interests.joined(filter_, self._owning[filter_], interest.owner)
            else:
                self._interests.again(interest.owner)

    def remove(self, interest: Interest) -> None:
        for filter_ in interest.compiled.cover:
            left = self._owning.remove(filter_, interest.owner)
            if left is not None and self._interests is not None:
                self._interests.left(filter_, left, interest.owner)

    def match(self, event: Event, wanted: Wanted | None = None) -> Found:
        interests = self._ready()
        rows = rows_of(interests.paths, (event.attributes,))
        if rows.unrowed:
            owners, hits = self._one_by_one(event), {"access_unindexed": 1}
        else:
            _, codes = interests.match(rows.scanned, 1)
            owners = {interests.owner(code) for code in codes.tolist()}
            hits = {"access_hits": len(codes)}
        if wanted is not None:
            owners = {owner for owner in owners if owner in wanted}
        in_doubt = bool(rows.arrays[0])
        return Found(set() if in_doubt else owners, owners if in_doubt else set(), counts=hits)

    def interests(self, paths: Paths) -> list[IndexedInterests]:
        """Who is interested in the events of a batch, which is scanned for these paths."""
        if self._interests is None or self._interests.paths is not paths:
            self._interests = self._made(paths)
            self._alone = False
        return [self._interests]

    def taken(self, events: int) -> Mapping[str, int]:
        """What the last batch took: owners found."""
        if self._interests is None:
            return {}
        hits, self._interests.hits = self._interests.hits, 0
        return {"access_hits": hits}

    def describe(self) -> str:
        """How many filters there are, for people."""
        return f"{len(self._owning)} filters in an access index"

    def _ready(self) -> IndexedInterests:
        """The interests, with paths that are for the most part still named."""
        found = self._interests
        if found is None or (self._alone and len(found.paths) > self._paths_kept):
            found = self._interests = self._made(Paths())
            self._paths_kept = max(PATHS_KEPT, 2 * len(found.paths))
        if self._alone:
            # Only whoever matches batches reads which owners have changed, and there is nobody.
            found.renewed()
        return found

    def _made(self, paths: Paths) -> IndexedInterests:
        made = IndexedInterests(paths)
        for filter_, owners in self._owning.items():
            for owner in owners:
                made.joined(filter_, owners, owner)
        return made

    def _one_by_one(self, event: Event) -> set[Owner]:
        return {
            owner
            for filter_, owners in self._owning.items()
            if event.may_match((filter_,))
            for owner in owners
        }


def make(number: int | None, trees: Trees) -> Matching:
    """Matching with an index of access predicates."""
    return AccessMatching()
