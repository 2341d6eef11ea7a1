"""Subscriptions that were found in doubt for copies of a batch, checked all together.

The copies are scanned, and matched with the index that events which enter are matched with: what matches a
cover that is exact matches the filter. What is decided and counted is what `prefix/delivering.py` decides and
counts: of the subscriptions of one subscriber, in their order, as many are checked as it takes to find one
that matches.

Cost: the scan and the match of the copies in doubt; a few passes over what matched, and a look-up in Python
for each owner that did.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from branchline.routing.compiled.interests import Interests
from branchline.routing.compiled.prefixes import Flags, Ints, Longs
from branchline.routing.compiled.standing import Owners
from branchline.routing.overlay.scan import Scan

Check = Callable[[Sequence[int]], tuple[Sequence[Interests], Scan]]
"""Scans the copies at these indexes, and gives the broker's interests to match them with."""


class Doubts(NamedTuple):
    """Rows and subscriptions, side by side: none of their subscribers gets the row's event for certain."""

    row: Longs
    code: Ints
    """As the owners have it."""
    subscriber: Ints

    def of(self, which: Flags) -> "Doubts":
        """Some of them."""
        return Doubts(self.row[which], self.code[which], self.subscriber[which])


class Decided(NamedTuple):
    """What checking gave."""

    left: Longs
    """Rows that nobody can decide by an index: with arrays, with too many choices, or unreadable."""
    row: Longs
    subscriber: Ints
    """To whom rows are owed beside, side by side."""
    exact_checks: int
    refuted: int


def decide(doubts: Doubts, owners: Owners, index: Longs, check: Check) -> Decided:
    """Check all of them; a row's copy is at its index in the batch."""
    rows, number = np.unique(doubts.row, return_inverse=True)
    interests, scan = check(index[rows].tolist())
    is_left = scan.arrays.copy()
    is_left[[*scan.rejected, *scan.unrowed]] = True
    matches = np.isin(*_pairs(doubts.code, number, owners, interests, scan))
    kept = ~is_left[number]
    return Decided(rows[is_left], *_asked(doubts.of(kept), matches[kept], owners))


def _pairs(
    code: Ints, number: Longs, owners: Owners, interests: Sequence[Interests], scan: Scan
) -> tuple[Longs, Longs]:
    """Scanned copies and owners as one number each: those in doubt, and those that match."""
    size = np.int64(len(owners.table))
    hits: list[Longs] = [np.empty(0, np.int64)]
    for each in interests:
        event, found = each.match(scan.scanned, len(scan.arrays))
        met, place = np.unique(found, return_inverse=True)
        codes = [owners.find(each.owner(one)) for one in met.tolist()]
        known = np.array([-1 if one is None else one for one in codes], np.int64)[place]
        hits.append((event * size + known)[known >= 0])
    return number * size + code, np.concatenate(hits)


def _asked(doubts: Doubts, matches: Flags, owners: Owners) -> tuple[Longs, Ints, int, int]:
    """Ask the subscriptions of each row and subscriber until one of them matches."""
    order = np.lexsort((_places(doubts.code, owners), doubts.subscriber, doubts.row))
    row, subscriber, matches = doubts.row[order], doubts.subscriber[order], matches[order]
    begins = np.ones(len(row), np.bool_)
    begins[1:] = (row[1:] != row[:-1]) | (subscriber[1:] != subscriber[:-1])
    before: Longs = np.cumsum(matches, dtype=np.int64) - matches
    of_group = np.flatnonzero(begins)[np.cumsum(begins, dtype=np.int64) - 1]
    asked: Flags = before == before[of_group]
    owed = asked & matches
    return row[owed], subscriber[owed], int(asked.sum()), int(begins.sum() - owed.sum())


def _places(code: Ints, owners: Owners) -> Longs:
    """The places of these subscriptions among each other, in the order in which they are checked."""
    met, place = np.unique(code, return_inverse=True)
    texts = [str(owners.table[each]) for each in met.tolist()]
    places = np.empty(len(met), np.int64)
    places[sorted(range(len(met)), key=texts.__getitem__)] = np.arange(len(met))
    return places[place]
