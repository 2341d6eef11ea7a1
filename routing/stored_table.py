"""A table of subscriptions as bytes that are read where they lie.

Each row is a subscription: the change that stands, and of one that is in force its compiled cover. Beside the
rows are how many subscriptions each subscriber has at which homes, and which rows are its own; the ends in
the order of their times, and the leases of one home in the order of their ends.

    flag         one byte: ended, in force, or in force with an exact cover
    change       JSON, its length before it
    cover        its filters (`prefix/keyed.py`)

A row that changes is *taken*: from then on whoever took it answers for it. The buffer never changes.

Cost: finding is a bisection, and some microseconds to read the change; opening is one pass for the checksum.
"""

import json
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from branchline.routing.compiling import Compiled
from branchline.routing.control import Ended, Identity, Number, Subscribed
from branchline.routing.prefix.keyed import (
    KEYED,
    Keyed,
    Kins,
    identity_key,
    identity_of,
    in_rows,
    pack_keyed,
    read_kins,
    text_key,
)
from branchline.routing.prefix.layout import Facts, Kind, numbers, read, write
from branchline.routing.prefix.varints import put, take
from branchline.routing.recalling import Recalled

_OF_SUBSCRIBERS = tuple(f"subscriber_{name}" for name in KEYED)
_OWNED = tuple(f"owned_{name}" for name in KEYED)
_SECTIONS = (
    *KEYED,
    *_OF_SUBSCRIBERS,
    *_OWNED,
    "ended_at",
    "ended_row",
    "lease_end",
    "lease_row",
    "kins",
    "homes",
)

_ENDED, _INEXACT, _EXACT = range(3)


def pack_table(
    home: str,
    rows: Iterable[tuple[Subscribed | Ended, Compiled | None]],
    homes: Iterable[tuple[str, Counter[str]]],
    stored: "StoredTable | None" = None,
) -> bytes:
    """These rows and subscribers, and those that were stored and not taken since, with the home's leases."""
    kins = Kins(() if stored is None else stored.kins)
    keys: list[bytes] = []
    records: list[bytes] = []
    times: list[tuple[int | None, int | None]] = []
    in_force: Counter[str] = Counter()
    for change, compiled in rows:
        keys.append(identity_key(change.identity))
        records.append(_encode(change, compiled, kins))
        times.append(_times(change, home))
        in_force[change.identity.home] += compiled is not None
    for row in [] if stored is None else stored.rows():
        assert stored is not None
        change = stored.change(row)
        keys.append(identity_key(change.identity))
        records.append(stored.record(row))
        times.append(_times(change, home))
        in_force[change.identity.home] += isinstance(change, Subscribed)
    order = in_rows(keys)
    sections = pack_keyed([keys[place] for place in order], [records[place] for place in order])
    known = dict(homes)
    if stored is not None:
        known = dict(stored.subscribers()) | known
    sections |= _pack_subscribers(known)
    sections |= _pack_owned([keys[place] for place in order])
    ended = sorted((at, row) for row, place in enumerate(order) if (at := times[place][0]) is not None)
    leases = sorted((at, row) for row, place in enumerate(order) if (at := times[place][1]) is not None)
    for name, listed in (("ended_at", ended), ("lease_end", leases)):
        sections[name] = numbers(at for at, _ in listed)
    for name, listed in (("ended_row", ended), ("lease_row", leases)):
        sections[name] = numbers(row for _, row in listed)
    sections |= {"kins": kins.packed(), "homes": json.dumps(+in_force).encode()}
    return write(Facts(0, len(keys), 0), {name: sections[name] for name in _SECTIONS}, Kind.TABLE)


class StoredTable:
    """A table as it was stored, without the rows that were taken."""

    def __init__(self, buffer: memoryview) -> None:
        _, self._section = read(buffer, _SECTIONS, Kind.TABLE)
        self._keyed = Keyed(*(self._section[name] for name in KEYED))
        self._subscribers = Keyed(*(self._section[name] for name in _OF_SUBSCRIBERS))
        self._owned = Keyed(*(self._section[name] for name in _OWNED))
        self.kins = read_kins(self._section["kins"])
        self.in_force: Counter[str] = Counter(json.loads(bytes(self._section["homes"])))
        """How many subscriptions were in force at each home."""
        self._taken: set[int] = set()
        self._first_end = 0
        """All ends before this place are taken."""
        self._recalled: dict[Identity, Recalled] = {}

    def rows(self) -> list[int]:
        """All that are left."""
        return [row for row in range(len(self._keyed)) if row not in self._taken]

    def find(self, identity: Identity) -> int | None:
        """The row of a subscription that is left."""
        row = self._keyed.find(identity_key(identity))
        return None if row in self._taken else row

    def take(self, identity: Identity) -> None:
        """Somebody else answers for the subscription from now on."""
        row = self.find(identity)
        if row is not None:
            self._taken.add(row)
            self._recalled.pop(identity, None)

    def change(self, row: int) -> Subscribed | Ended:
        """The change that stands."""
        key, record = self._keyed.row(row)
        length, at = take(record, 1)
        return _decode(identity_of(key), record[0], json.loads(bytes(record[at : at + length])))

    def compiled(self, identity: Identity) -> Recalled | None:
        """The filter of a subscription that is in force and left."""
        known = self._recalled.get(identity)
        if known is not None:
            return known
        row = self.find(identity)
        record = None if row is None else self._keyed.row(row)[1]
        if record is None or record[0] == _ENDED:
            return None
        length, at = take(record, 1)
        fields = json.loads(bytes(record[at : at + length]))
        paths = frozenset(tuple(path) for path in fields[8])
        known = Recalled((fields[2], fields[3]), record[0] == _EXACT, paths, record[at + length :], self.kins)
        self._recalled[identity] = known
        return known

    def record(self, row: int) -> bytes:
        """The row as it lies here."""
        return bytes(self._keyed.row(row)[1])

    def homes(self, subscriber: str) -> Counter[str]:
        """At which homes a subscriber had subscriptions, and how many."""
        row = self._subscribers.find(text_key(subscriber))
        return Counter() if row is None else Counter(json.loads(bytes(self._subscribers.row(row)[1])))

    def of(self, subscriber: str) -> list[Identity]:
        """A subscriber's subscriptions that are left, ended ones too."""
        place = self._owned.find(text_key(subscriber))
        rows = [] if place is None else json.loads(bytes(self._owned.row(place)[1]))
        return [identity_of(self._keyed.row(row)[0]) for row in rows if row not in self._taken]

    def subscribers(self) -> Iterator[tuple[str, Counter[str]]]:
        """All of them."""
        for row in range(len(self._subscribers)):
            key, homes = self._subscribers.row(row)
            yield str(key, "utf-8", "surrogatepass"), Counter(json.loads(bytes(homes)))

    def ended_until(self, at_ms: int) -> Iterator[Ended]:
        """The ends at or before a time that are left."""
        until = bisect_right(self._section["ended_at"], at_ms)
        rows = self._section["ended_row"]
        while self._first_end < until and rows[self._first_end] in self._taken:
            self._first_end += 1
        for row in rows[self._first_end : until]:
            if row not in self._taken:
                change = self.change(row)
                assert isinstance(change, Ended)
                yield change

    def leases(self) -> int:
        """How many leases there were."""
        return len(self._section["lease_end"])

    def lease(self, place: int) -> tuple[int, Identity]:
        """When the lease at this place, of all homes' in the order of their ends, was to end, and whose."""
        row = self._section["lease_row"][place]
        return self._section["lease_end"][place], identity_of(self._keyed.row(row)[0])

    def lease_end(self, place: int) -> int:
        """The same without whose."""
        end: int = self._section["lease_end"][place]
        return end


def _times(change: Subscribed | Ended, home: str) -> tuple[int | None, int | None]:
    """When it ended, or when its lease at the home is to end."""
    if isinstance(change, Ended):
        return change.at_ms, None
    return None, change.until_ms if change.identity.home == home else None


def _encode(change: Subscribed | Ended, compiled: Compiled | None, kins: Kins) -> bytes:
    fields: list[Any] = [*change.number]
    cover = b""
    flag = _ENDED
    if isinstance(change, Ended):
        fields += [change.at_ms, change.requests, change.expired, change.revision, change.own]
    else:
        assert compiled is not None, "what is in force has a filter"
        flag = _EXACT if compiled.exact else _INEXACT
        fields += [change.spelling, change.filter, change.requests, change.revision]
        fields += [change.lease_ms, change.until_ms, sorted(compiled.paths), change.own]
        cover = b"".join(map(kins.filter, compiled.cover))
    data = json.dumps(fields, separators=(",", ":")).encode()
    out = bytearray([flag])
    put(out, len(data))
    return bytes(out) + data + cover


def _decode(identity: Identity, flag: int, fields: list[Any]) -> Subscribed | Ended:
    number, rest = Number(*fields[:2]), fields[2:]
    if flag == _ENDED:
        at_ms, requests, expired, revision, own = rest
        return Ended(identity, number, at_ms, tuple(requests), expired, revision, own)
    spelling, text, requests, revision, lease_ms, until_ms, _, own = rest
    return Subscribed(identity, number, spelling, text, tuple(requests), revision, lease_ms, until_ms, own)


def _pack_subscribers(known: dict[str, Counter[str]]) -> "dict[str, array[int] | bytes]":
    names = [name for name, homes in known.items() if homes]
    names = [names[place] for place in in_rows(list(map(text_key, names)))]
    packed = pack_keyed(map(text_key, names), (json.dumps(known[name]).encode() for name in names))
    return {f"subscriber_{name}": cells for name, cells in packed.items()}


def _pack_owned(keys: list[bytes]) -> "dict[str, array[int] | bytes]":
    """For each subscriber the rows of its subscriptions, given the rows' keys."""
    owned: dict[str, list[int]] = {}
    for row, key in enumerate(keys):
        owned.setdefault(identity_of(memoryview(key)).subscriber, []).append(row)
    names = list(owned)
    names = [names[place] for place in in_rows(list(map(text_key, names)))]
    packed = pack_keyed(map(text_key, names), (json.dumps(owned[name]).encode() for name in names))
    return {f"owned_{name}": cells for name, cells in packed.items()}
