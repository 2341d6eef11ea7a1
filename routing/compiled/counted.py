"""Who is interested in which events of a batch, by counting in flat tables.

Theory of operation. As in the plain form (`methods/counting.py`), there are tiers (`tiers.py`); each is
flat (`counting.py`), and its interfaces are owners. What is *fresh* becomes one the next time that somebody
asks for the interests. A filter that an owner leaves is muted in its table: no count is its size any more.
When most of what the tables have is muted, all are made anew.

An owner may be found in several tables, and for several rows of an event with arrays; each pair is given
once.

Cost: of a change, some µs a constraint in the long run, as often as the tables grow severalfold; of a batch,
what the tables take, and 4 bytes for each filter of each to begin with.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from branchline.routing.compiled.counting import CountingIndex, FlatTable
from branchline.routing.compiled.memory import Ints
from branchline.routing.compiled.owners import OwnerCodes
from branchline.routing.compiled.paths import Paths
from branchline.routing.compiled.spans import Scanned
from branchline.routing.filters import Filter
from branchline.routing.prefix.places import Owner
from branchline.routing.tiers import tiers_kept

MUTED_MIN = 4096
"""Filters that may be muted before tables are made anew for it."""


@dataclass(slots=True, eq=False)
class _Tier:
    """A table, whose filters it has, by number, and the codes of its interfaces."""

    table: FlatTable
    pairs: list[tuple[Owner, Filter]]
    codes: Ints

    def __len__(self) -> int:
        return len(self.pairs)


class CountedInterests:
    """Owners by filter, in tables that count."""

    def __init__(self, paths: Paths, rounds: int) -> None:
        """Nobody's; with so many rounds of the selectivity table."""
        self.paths = paths
        self.taken: Counter[str] = Counter()
        """What was counted so far."""
        self._rounds = rounds
        self._codes = OwnerCodes()
        self._fresh: dict[tuple[Owner, Filter], None] = {}
        self._filed: dict[tuple[Owner, Filter], tuple[_Tier, int]] = {}
        self._tiers: list[_Tier] = []
        """The largest first."""

    def __len__(self) -> int:
        """How many filters of owners there are."""
        return len(self._fresh) + len(self._filed)

    @property
    def codes(self) -> int:
        return self._codes.bound

    def owner(self, code: int) -> Owner:
        return self._codes.owner(code)

    def renewed(self) -> list[int]:
        return self._codes.renewed()

    def joined(self, filter_: Filter, owner: Owner) -> None:
        """The owner is interested in what the filter holds for."""
        self._codes.joined(owner)
        self._fresh[owner, filter_] = None

    def again(self, owner: Owner) -> None:
        """The owner has the same filter for another reason too."""
        self._codes.again(owner)

    def left(self, filter_: Filter, owner: Owner) -> None:
        """The owner is not interested in it any more."""
        pair = owner, filter_
        if pair in self._fresh:
            del self._fresh[pair]
        else:
            tier, number = self._filed.pop(pair)
            tier.table.mute(number)
        self._codes.left(owner)

    def settle(self) -> None:
        """File what is fresh, before events are scanned: a table names the paths that it asks about."""
        muted = sum(map(len, self._tiers)) - len(self._filed)
        if muted > max(MUTED_MIN, len(self)):
            self._file(0)
        elif self._fresh:
            self._file(tiers_kept([len(tier) for tier in self._tiers], len(self._fresh)))

    def _file(self, kept: int) -> None:
        """Keep so many tables, and make one of all that is in the others and fresh."""
        pairs = [
            pair
            for tier in self._tiers[kept:]
            for number, pair in enumerate(tier.pairs)
            if self._filed.get(pair) == (tier, number)
        ]
        pairs += self._fresh
        del self._tiers[kept:]
        self._fresh = {}
        if pairs:
            tier = self._made(pairs)
            self._tiers.append(tier)
            self._filed.update((pair, (tier, number)) for number, pair in enumerate(pairs))

    def _made(self, pairs: list[tuple[Owner, Filter]]) -> _Tier:
        codes, interface = np.unique([self._codes[owner] for owner, _ in pairs], return_inverse=True)
        index = CountingIndex.of((filter_ for _, filter_ in pairs), self.paths)
        table = FlatTable(index, interface.astype(np.int32), len(codes), self._rounds)
        return _Tier(table, pairs, codes.astype(np.int32))

    def match(self, scanned: Scanned, events: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Who is interested in which of so many events: each pair once."""
        assert not self._fresh, "what is fresh was filed before events were scanned"
        bound = np.int64(max(1, self.codes))
        pairs = np.unique(np.concatenate([np.zeros(0, np.int64), *self._found(scanned, bound)]))
        return pairs // bound, (pairs % bound).astype(np.int32)

    def _found(self, scanned: Scanned, bound: np.int64) -> Iterable[NDArray[np.int64]]:
        """Events and codes, as one number each."""
        for tier in self._tiers:
            counted = tier.table.match(scanned)
            self.taken["constraints_counted"] += counted.counted
            self.taken["interfaces_excluded"] += counted.excluded
            self.taken["interfaces_early"] += counted.early
            event = np.repeat(scanned.event, np.diff(counted.first)).astype(np.int64)
            yield event * bound + tier.codes[tier.table.interface[counted.filter]]

    def describe(self) -> str:
        """How many filters there are, and in which tables."""
        sizes = ", ".join(f"{len(tier):,}" for tier in self._tiers)
        fresh = f"{len(self._fresh)} of them fresh"
        return f"{len(self)} filters of owners, {fresh}; tables of {sizes or 'none'}"
