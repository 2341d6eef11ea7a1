"""Who is interested in which events, asked for a whole batch at once.

However that is found, an owner is known by its *code* (`owners.py`), so that what is found is two columns of
numbers: events, and codes of owners. Here it is by an access index; `counted.py` counts.

The filters of one broker's places in a part stand in an index (`index.py`), each in a row; a row has owners.
Most filters have one owner, whose code stands in an array by row. For a filter of several, the codes
are an array of their own, made when an event first meets the filter and again after its owners have changed.

Places that were stored (`stored_places.py`) are the first rows, and their owners' numbers the first codes;
nothing is decoded before somebody asks for it.

Cost: of a change, what the index takes; of a batch, the match and a few passes over what was found.
"""

from collections.abc import Collection, Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from branchline.routing.compiled.index import GrowingIndex
from branchline.routing.compiled.owners import OwnerCodes
from branchline.routing.compiled.paths import Paths
from branchline.routing.compiled.spans import Scanned
from branchline.routing.filters import Filter
from branchline.routing.prefix.stored_places import Owner, StoredPlaces

_SEVERAL = -1
"""In place of a code: the row has several owners, or none is known yet."""


class Interests(Protocol):
    """Who is interested in the events of a batch, however that is found."""

    @property
    def paths(self) -> Paths:
        """Those that events must be scanned for."""
        ...

    @property
    def codes(self) -> int:
        """All codes are below this."""
        ...

    def owner(self, code: int) -> Owner:
        """Whose code it is."""
        ...

    def renewed(self) -> list[int]:
        """The codes whose owners have changed since this was last asked, or what they are interested in."""
        ...

    def match(self, scanned: Scanned, events: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Events, by number, and codes of owners that are interested in them, side by side."""
        ...


class IndexedInterests:
    """Owners by filter, in an access index."""

    def __init__(self, paths: Paths, stored: StoredPlaces | None = None) -> None:
        """Nobody's, or those of places that were stored."""
        self.paths = paths
        """Those that events must be scanned for."""
        self._stored = stored
        self._index = GrowingIndex(paths) if stored is None else _opened(stored, paths)
        self._rows: dict[Filter, int] = {}
        self._owners: dict[int, Mapping[Owner, int]] = {}
        """Of each row that was not stored, the owners: the places' own counter, which changes."""
        self._first_code = 0 if stored is None else stored.owner_count()
        self._codes = OwnerCodes(self._first_code)
        self._one: NDArray[np.int32] = np.full(0, _SEVERAL, np.int32)
        self._several: dict[int, NDArray[np.int32]] = {}
        self.hits = 0
        """Owners that were found so far, one for each filter."""
        if stored is not None:
            self._one = stored.only_owners(_SEVERAL)
            for row in stored.taken():
                self._index.remove(row)

    def __len__(self) -> int:
        """How many filters stand here."""
        return len(self._index)

    @property
    def codes(self) -> int:
        """All codes are below this."""
        return self._codes.bound

    def owner(self, code: int) -> Owner:
        """Whose code it is."""
        if code < self._first_code:
            assert self._stored is not None
            return self._stored.owner(code)
        return self._codes.owner(code)

    def renewed(self) -> list[int]:
        """The codes whose owners have changed since this was last asked, or what they are interested in."""
        return self._codes.renewed()

    def joined(self, filter_: Filter, owners: Mapping[Owner, int], owner: Owner) -> None:
        """The owner is one of the filter's from now on."""
        row = self._rows.get(filter_)
        if row is None:
            row = self._rows[filter_] = self._index.add(filter_)
            self._owners[row] = owners
            self._grow(row)
        code = self._codes.joined(owner)
        self._one[row] = code if len(owners) == 1 else _SEVERAL
        self._several.pop(row, None)

    def again(self, owner: Owner) -> None:
        """The owner has the same filter for another reason too."""
        self._codes.again(owner)

    def left(self, filter_: Filter, owners: Mapping[Owner, int], owner: Owner) -> None:
        """The owner is none of the filter's any more; a filter without owners is gone."""
        row = self._rows[filter_]
        self._codes.left(owner)
        self._several.pop(row, None)
        if owners:
            self._one[row] = self._codes[next(iter(owners))] if len(owners) == 1 else _SEVERAL
        else:
            del self._rows[filter_], self._owners[row]
            self._index.remove(row)

    def took(self, row: int) -> None:
        """Somebody else answers for a row that was stored."""
        self._index.remove(row)
        self._several.pop(row, None)

    def match(self, scanned: Scanned, events: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Who is interested in which of so many events: a pair for each filter."""
        hits = self._index.match(scanned, events)
        event = np.repeat(np.arange(events, dtype=np.int64), np.diff(hits.first))
        code = self._one[hits.row]
        several = np.flatnonzero(code == _SEVERAL)
        if len(several):
            found = [self._codes_of(row) for row in hits.row[several].tolist()]
            lengths = np.fromiter(map(len, found), np.int64, len(found))
            event = np.concatenate([np.delete(event, several), np.repeat(event[several], lengths)])
            code = np.concatenate([np.delete(code, several), *found])
        self.hits += len(code)
        return event, code

    def _codes_of(self, row: int) -> NDArray[np.int32]:
        found = self._several.get(row)
        if found is None:
            owners: Collection[Owner] | None = self._owners.get(row)
            if owners is None:
                assert self._stored is not None
                found = self._stored.owner_numbers(row)
            else:
                found = np.fromiter((self._codes[each] for each in owners), np.int32, len(owners))
            self._several[row] = found
        return found

    def _grow(self, row: int) -> None:
        if row >= len(self._one):
            longer = np.full(max(1024, 2 * row), _SEVERAL, np.int32)
            longer[: len(self._one)] = self._one
            self._one = longer


def _opened(stored: StoredPlaces, paths: Paths) -> GrowingIndex:
    """The index of all that were stored, by row."""
    if len(stored.index):
        return GrowingIndex.opened(stored.index, paths)
    index = GrowingIndex(paths)
    for row in range(len(stored)):
        index.add(stored.filter(row))
    return index
