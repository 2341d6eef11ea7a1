"""Records that lie in a buffer and are found by their keys, and filters as such records.

Rows are sorted by a hash of their keys, so that a key is found by bisection; keys of one hash are compared.
The hash is a digest: nobody can choose names that all fall on one row.

A filter is the count of its constraints, and each constraint with its length before it; the kin that they
refer to stand in one table for all filters that are stored together. A table that goes on from an earlier one
numbers what that had in the same way, so bytes made with the one mean the same with the other.

Cost: finding is a digest and a bisection, two microseconds; a filter some three for each constraint.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b

from branchline.routing.control import Identity
from branchline.routing.filters import Filter
from branchline.routing.prefix.encoding import decode_constraint, decode_kin, encode_constraint, encode_kin
from branchline.routing.prefix.layout import numbers
from branchline.routing.prefix.siblings import Kin, kin
from branchline.routing.prefix.varints import put, take

KEYED = ("hashes", "record_at", "records")
"""The sections of keyed records."""


def _hash(key: bytes) -> int:
    return int.from_bytes(blake2b(key, digest_size=8).digest(), "little", signed=True)


def in_rows(keys: Sequence[bytes]) -> list[int]:
    """Which of the keys stands in which row."""
    hashes = list(map(_hash, keys))
    return sorted(range(len(keys)), key=hashes.__getitem__)


def pack_keyed(keys: Iterable[bytes], records: Iterable[bytes]) -> "dict[str, array[int] | bytes]":
    """The sections of records whose keys are in the order of rows."""
    hashes: list[int] = []
    out = bytearray()
    at = [0]
    for key, record in zip(keys, records, strict=True):
        hashes.append(_hash(key))
        put(out, len(key))
        out += key
        out += record
        at.append(len(out))
    return {"hashes": array("q", hashes), "record_at": numbers(at), "records": bytes(out)}


class Keyed:
    """Records where they lie."""

    __slots__ = ("_at", "_hashes", "_records")

    def __init__(self, hashes: memoryview, at: memoryview, records: memoryview) -> None:
        self._hashes, self._at, self._records = hashes, at, records

    def __len__(self) -> int:
        return len(self._hashes)

    def find(self, key: bytes) -> int | None:
        """The row of the key."""
        wanted = _hash(key)
        row = bisect_left(self._hashes, wanted)
        while row < len(self._hashes) and self._hashes[row] == wanted:
            if self.row(row)[0] == key:
                return row
            row += 1
        return None

    def row(self, row: int) -> tuple[memoryview, memoryview]:
        """The row's key, and the rest of its record."""
        length, start = take(self._records, self._at[row])
        end = start + length
        return self._records[start:end], self._records[end : self._at[row + 1]]


class Kins:
    """The table of kin that stored filters refer to, as it grows."""

    def __init__(self, known: Iterable[Kin] = ()) -> None:
        self._numbers = {each: place for place, each in enumerate(known)}

    def filter(self, filter_: Filter) -> bytes:
        """The filter's bytes."""
        out = bytearray()
        put(out, len(filter_))
        for constraint in filter_:
            mine = kin(constraint)
            number = self._numbers.setdefault(mine, len(self._numbers))
            data = encode_constraint(constraint, number)
            put(out, len(data))
            out += data
        return bytes(out)

    def key(self, filter_: Filter) -> bytes | None:
        """The filter's bytes if all its kin are in the table; else no stored filter is this one."""
        return self.filter(filter_) if all(kin(each) in self._numbers for each in filter_) else None

    def packed(self) -> bytes:
        """The table."""
        return b"".join(map(encode_kin, self._numbers))


def read_kins(data: memoryview) -> list[Kin]:
    """The table of kin."""
    kins: list[Kin] = []
    at = 0
    while at < len(data):
        each, at = decode_kin(data, at)
        kins.append(each)
    return kins


def read_filters(data: memoryview, kins: list[Kin]) -> Iterator[Filter]:
    """Filters that lie one behind the other."""
    at = 0
    while at < len(data):
        count, at = take(data, at)
        made = []
        for _ in range(count):
            length, at = take(data, at)
            made.append(decode_constraint(data, at, kins))
            at += length
        yield tuple(made)


def identity_key(identity: Identity) -> bytes:
    """A subscription's identity as a key."""
    out = bytearray()
    for name in identity:
        data = name.encode("utf-8", "surrogatepass")
        put(out, len(data))
        out += data
    return bytes(out)


def identity_of(key: memoryview) -> Identity:
    """The inverse."""
    names = []
    at = 0
    for _ in Identity._fields:
        length, at = take(key, at)
        names.append(str(key[at : at + length], "utf-8", "surrogatepass"))
        at += length
    return Identity(*names)


def text_key(text: str) -> bytes:
    """A name as a key."""
    return text.encode("utf-8", "surrogatepass")
