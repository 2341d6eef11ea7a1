"""A broker's places in one part as bytes that are read where they lie.

Each row is a filter: its owners, and its places with the clocks between which they hold. Beside the rows is
an index of places: for each node or number that anything stands at, those who do. What is asked for is
remembered, so a place that events come by often is read once.

A row that a change concerns is *taken*: whoever took it answers for it then. The buffer never changes.

Cost: finding who stands somewhere is a bisection, then a microsecond for each filter; opening is one pass for
the checksum.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Set
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from branchline.routing.control import Identity
from branchline.routing.filters import Filter
from branchline.routing.prefix.edges import ALIVE
from branchline.routing.prefix.keyed import (
    KEYED,
    Keyed,
    Kins,
    identity_key,
    identity_of,
    in_rows,
    pack_keyed,
    read_filters,
    read_kins,
    text_key,
)
from branchline.routing.prefix.layout import Facts, Kind, numbers, read, write

Owner: TypeAlias = Hashable
"""Whoever is interested: a home, a neighbour, a subscription."""

Stand: TypeAlias = tuple[int, bool, int, int]
"""Where a filter stands, whether exactly, since which clock, and until which."""

PlacesRow: TypeAlias = tuple[Filter, Mapping[Owner, int], list[Stand]]

_SECTIONS = (
    *KEYED,
    "owner_first",
    "owner_number",
    "owner_count",
    "owner_at",
    "stand_first",
    "stand_where",
    "stand_exact",
    "stand_since",
    "stand_until",
    "wheres",
    "where_first",
    "where_stand",
    "stand_row",
    "ended_clock",
    "ended_row",
    "outstanding",
    "kins",
    "owners",
    "index",
)

INDEXED_FROM = 500
"""So many filters are stored with an index: of fewer it is made while its loops would be loaded."""

_STILL = -1
"""Stands for `ALIVE`, which would need eight bytes."""
_HOME, _SUBSCRIPTION = b"\0", b"\1"


def pack_places(rows: Iterable[PlacesRow], stored: "StoredPlaces | None" = None) -> bytes:
    """These rows, and those that were stored and not taken since."""
    kins = Kins(() if stored is None else stored.kins)
    made = [(kins.filter(filter_), owners, stands) for filter_, owners, stands in rows]
    if stored is not None:
        made += [(stored.key(row), *stored.read(row)) for row in stored.rows()]
    made = [made[place] for place in in_rows([key for key, _, _ in made])]
    owner_numbers: dict[Owner, int] = {}
    columns: dict[str, array[int]] = {name: array("q") for name in _SECTIONS if name not in _BLOBS}
    columns["owner_first"].append(0)
    columns["stand_first"].append(0)
    at: list[tuple[int, int]] = []
    for row, (_, owners, stands) in enumerate(made):
        for owner, count in owners.items():
            columns["owner_number"].append(owner_numbers.setdefault(owner, len(owner_numbers)))
            columns["owner_count"].append(count)
        columns["owner_first"].append(len(columns["owner_number"]))
        for where, exact, since, until in stands:
            at.append((where, len(at)))
            columns["stand_row"].append(row)
            columns["stand_where"].append(where)
            columns["stand_exact"].append(exact)
            columns["stand_since"].append(since)
            columns["stand_until"].append(_STILL if until == ALIVE else until)
        columns["stand_first"].append(len(at))
        if not all(exact for _, exact, _, until in stands if until == ALIVE):
            columns["outstanding"].append(row)
    for clock, row in sorted((s[3], row) for row, each in enumerate(made) for s in each[2] if s[3] != ALIVE):
        columns["ended_clock"].append(clock)
        columns["ended_row"].append(row)
    for where, stand in sorted(at):
        if not columns["wheres"] or columns["wheres"][-1] != where:
            columns["where_first"].append(len(columns["where_stand"]))
            columns["wheres"].append(where)
        columns["where_stand"].append(stand)
    columns["where_first"].append(len(at))
    blob = bytearray()
    for owner in owner_numbers:
        columns["owner_at"].append(len(blob))
        blob += _encode_owner(owner)
    columns["owner_at"].append(len(blob))
    sections: dict[str, array[int] | bytes] = {name: numbers(cells) for name, cells in columns.items()}
    sections |= pack_keyed([key for key, _, _ in made], [b""] * len(made))
    sections |= {"kins": kins.packed(), "owners": bytes(blob)}
    sections["index"] = _pack_index([key for key, _, _ in made], kins)
    return write(Facts(0, len(made), 0), {name: sections[name] for name in _SECTIONS}, Kind.PLACES)


_BLOBS = (*KEYED, "kins", "owners", "index")


def _pack_index(keys: list[bytes], kins: Kins) -> bytes:
    """The filters, in the order of rows, as an index for batches; nothing if they are few."""
    if len(keys) < INDEXED_FROM:
        return b""
    # Compiled loops are imported when they are needed.
    from branchline.routing.compiled.index import GrowingIndex
    from branchline.routing.compiled.paths import Paths

    known = read_kins(memoryview(kins.packed()))
    index = GrowingIndex(Paths())
    for row, key in enumerate(keys):
        given = index.add(next(read_filters(memoryview(key), known)))
        assert given == row, "rows are given in order"
    return index.stored()


class StoredPlaces:
    """Places as they were stored, without those that were taken."""

    def __init__(self, buffer: memoryview) -> None:
        _, section = read(buffer, _SECTIONS, Kind.PLACES)
        self._section = section
        self._keyed = Keyed(*(section[name] for name in KEYED))
        self.kins = read_kins(section["kins"])
        self._kins = Kins(self.kins)
        self._taken: set[int] = set()
        self._owners: dict[int, Collection[Owner]] = {}
        self._known: dict[int, Owner] = {}
        self._found: dict[int, list[tuple[int, bool, int, int]]] = {}
        """What stands somewhere, for the places that were asked for: row, exact, since, until."""

    def __len__(self) -> int:
        """How many filters were stored."""
        return len(self._keyed)

    @property
    def index(self) -> memoryview:
        """The filters for whole batches, in the order of rows; nothing if they were few."""
        return self._section["index"]

    def taken(self) -> Collection[int]:
        """The rows that somebody else answers for."""
        return self._taken

    def owner_count(self) -> int:
        """How many owners there are; each has a number below this."""
        return len(self._section["owner_at"]) - 1

    def only_owners(self, several: int) -> NDArray[np.int32]:
        """For each row the number of its owner, or what stands for several."""
        first = np.asarray(self._section["owner_first"])
        numbered = np.asarray(self._section["owner_number"])
        found = np.full(len(self._keyed), several, np.int32)
        alone = np.flatnonzero(np.diff(first) == 1)
        found[alone] = numbered[first[alone]]
        return found

    def owner_numbers(self, row: int) -> NDArray[np.int32]:
        """The numbers of a row's owners."""
        first = self._section["owner_first"]
        return np.asarray(self._section["owner_number"][first[row] : first[row + 1]], np.int32)

    def now(self) -> tuple[dict[str, memoryview], Set[int]]:
        """The columns, to be read all at once, and the rows that were taken. What holds on ends below 0."""
        names = ("owner_first", "owner_number", "stand_row", "stand_where", "stand_exact", "stand_until")
        return {name: self._section[name] for name in names}, self._taken

    def left(self) -> int:
        """How many filters stand here."""
        return len(self._keyed) - len(self._taken)

    def rows(self) -> list[int]:
        """All that are left."""
        return [row for row in range(len(self._keyed)) if row not in self._taken]

    def find(self, filter_: Filter) -> int | None:
        """The row of a filter that is left."""
        key = self._kins.key(filter_)
        row = None if key is None else self._keyed.find(key)
        return None if row in self._taken else row

    def key(self, row: int) -> bytes:
        """The filter's bytes."""
        return bytes(self._keyed.row(row)[0])

    def filter(self, row: int) -> Filter:
        return next(read_filters(self._keyed.row(row)[0], self.kins))

    def standing(self, where: int, clock: int) -> Iterator[tuple[int, bool]]:
        """The rows that stand there at the clock, and whether exactly."""
        found = self._found.get(where)
        if found is None:
            found = self._found[where] = list(self._at(where))
        for row, exact, since, until in found:
            if since <= clock < until and row not in self._taken:
                yield row, exact

    def owners(self, row: int) -> Collection[Owner]:
        """Who has the filter."""
        found = self._owners.get(row)
        if found is None:
            numbered, first = self._section["owner_number"], self._section["owner_first"]
            found = tuple(self.owner(numbered[each]) for each in range(first[row], first[row + 1]))
            self._owners[row] = found
        return found

    def read(self, row: int) -> tuple[Counter[Owner], list[Stand]]:
        """The owners and places of a row."""
        section = self._section
        first = section["owner_first"]
        owned = range(first[row], first[row + 1])
        owners = Counter(
            {self.owner(section["owner_number"][each]): section["owner_count"][each] for each in owned}
        )
        first = section["stand_first"]
        return owners, [self._stand(stand) for stand in range(first[row], first[row + 1])]

    def take(self, row: int) -> tuple[Counter[Owner], list[Stand]]:
        """The owners and places of a row, for which somebody else answers from now on."""
        self._taken.add(row)
        self._owners.pop(row, None)
        return self.read(row)

    def concerned(self, nodes: Iterable[int], oldest: int) -> list[int]:
        """The rows that are outstanding, stand at one of the nodes, or have a place to be forgotten."""
        section = self._section
        found = {*section["outstanding"]}
        found.update(row for node in nodes for row, _, _, until in self._at(node) if until == ALIVE)
        found.update(section["ended_row"][: bisect_right(section["ended_clock"], oldest)])
        return sorted(found - self._taken)

    def _at(self, where: int) -> Iterator[tuple[int, bool, int, int]]:
        section = self._section
        place = bisect_left(section["wheres"], where)
        if place == len(section["wheres"]) or section["wheres"][place] != where:
            return
        first = section["where_first"]
        for stand in section["where_stand"][first[place] : first[place + 1]]:
            _, *rest = self._stand(stand)
            yield (section["stand_row"][stand], *rest)  # type: ignore[misc]

    def _stand(self, stand: int) -> Stand:
        section = self._section
        until = section["stand_until"][stand]
        return (
            section["stand_where"][stand],
            bool(section["stand_exact"][stand]),
            section["stand_since"][stand],
            ALIVE if until == _STILL else until,
        )

    def owner(self, number: int) -> Owner:
        """The owner of that number."""
        found = self._known.get(number)
        if found is None:
            at = self._section["owner_at"]
            found = self._known[number] = _decode_owner(self._section["owners"][at[number] : at[number + 1]])
        return found


def _encode_owner(owner: Owner) -> bytes:
    if isinstance(owner, Identity):
        return _SUBSCRIPTION + identity_key(owner)
    assert isinstance(owner, str), "an owner is a home or a subscription"
    return _HOME + text_key(owner)


def _decode_owner(data: memoryview) -> Owner:
    if data[:1] == _SUBSCRIPTION:
        return identity_of(data[1:])
    return str(data[1:], "utf-8", "surrogatepass")
