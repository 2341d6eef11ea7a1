"""The prefix of an event as the bytes of a header: compact, versioned, and strict in decoding.

    version      1 byte: 1
    flags        1 byte: 1 if the event has arrays
    hops         how many links this copy has crossed
    topology     number of the topology that the scope was divided under
    scope        the homes that this copy still answers for: a bit set, length first
    parts        count, then for each: flags (1 cut by height, 2 more numbers than travel), incarnation,
                 clock, entries (count first), numbers (count first, then ascending, less the one before)
    checksum     CRC-32 of all before it, 4 bytes

All numbers are unsigned varints, seven bits a byte, lowest first. An entry is one: what its child number is
above its elder sibling's, two bits to the left; bit 1 says that entries below it follow, bit 0 that it is the
last of its siblings. So the levels need no room.

Version 2 has a list of keys (`keys.py`) in place of the parts, and one flag more: 2 if the list is complete.
Version 3 has the event's Bloom filter (`bloom/travelling.py`) in place of the parts.

Decoding gives exactly what was encoded, or None: for other bytes, however they came about, no prefix has
them. Whoever gets None matches the event afresh, so a damaged header costs time and never an event.
"""

import zlib
from collections.abc import Iterator
from typing import NamedTuple

from branchline.routing.bloom.bits import SIZE_MAX
from branchline.routing.bloom.travelling import (
    MAPPED,
    NAMES_BYTES,
    UNTOLD,
    EventBits,
    map_bytes,
    put_bits,
    read_map,
)
from branchline.routing.overlay.topology import BROKER_NUMBER_MAX, TOPOLOGY_NUMBER_MAX
from branchline.routing.prefix.keys import DIGEST_BYTES, KEY_BYTES, Keys, put_keys, read_keys
from branchline.routing.prefix.matching import Entries
from branchline.routing.prefix.trees import PartPrefix, Prefix
from branchline.routing.prefix.updates import Version
from branchline.routing.prefix.varints import MAX_BITS, put

FORMAT_VERSION = 1
KEYS_VERSION = 2
BLOOM_VERSION = 3
HEADER_MAX_BYTES = 4 * 1024
"""What travels with an event beside its own bytes; a larger prefix is trimmed, which only adds."""

KEYS_FIT = (HEADER_MAX_BYTES - 64 - BROKER_NUMBER_MAX // 8) // KEY_BYTES
"""Keys that fit beside the longest scope; of a list that is too long, so many are kept."""

DECODED_MAX_BYTES = 4 * HEADER_MAX_BYTES
"""What is longer was not written by us: the longest scope takes 2 KiB, and what is left of a part when it is
trimmed some twenty bytes."""

_ARRAYS, _COMPLETE = 1, 2
_CUT, _MANY = 1, 2


class Header(NamedTuple):
    """What one broker tells the next about an event."""

    prefix: Prefix
    scope: int = 0
    topology: int = 0
    hops: int = 0


def encode(header: Header) -> bytes:
    """The header's bytes; a prefix that is too large is trimmed first."""
    for prefix in _trimmed(header.prefix):
        data = _encode(header._replace(prefix=prefix))
        if len(data) <= HEADER_MAX_BYTES:
            break
    return data


def decode(data: bytes) -> Header | None:
    """The header that encodes to these bytes, None if there is none."""
    if not 6 <= len(data) <= DECODED_MAX_BYTES or zlib.crc32(data[:-4]).to_bytes(4, "little") != data[-4:]:
        return None
    try:
        header = _Reader(data[:-4]).header()
    except _Damaged:
        return None
    return header if _encode(header) == data else None


def _trimmed(prefix: Prefix) -> Iterator[Prefix]:
    """The prefix, then what is left of it if that is too large: each finds what the one before it does."""
    if prefix.bloom is not None:
        return iter((prefix, Prefix((), prefix.arrays, bloom=UNTOLD)))
    return _ever_smaller(prefix) if prefix.keys is None else _ever_fewer(prefix)


def _ever_smaller(prefix: Prefix) -> Iterator[Prefix]:
    """The prefix, then without numbers, then cut ever lower: each finds what the one before it does."""
    yield prefix
    fewer = tuple(
        PartPrefix(part.version, part.entries, (), part.cut, part.many or bool(part.numbers))
        for part in prefix.parts
    )
    deepest = max((level for part in fewer for level, _ in part.entries), default=0)
    for height in range(deepest, -1, -1):
        yield Prefix(tuple(_cut(part, height) for part in fewer), prefix.arrays)


def _ever_fewer(prefix: Prefix) -> Iterator[Prefix]:
    """The keys, then as many as always find room, then none."""
    assert prefix.keys is not None
    yield prefix
    for most in (KEYS_FIT, 0):
        yield Prefix((), prefix.arrays, prefix.keys.cut(most))


def _cut(part: PartPrefix, height: int) -> PartPrefix:
    kept = tuple(entry for entry in part.entries if entry[0] <= height)
    return PartPrefix(part.version, kept, (), part.cut or len(kept) < len(part.entries), part.many)


def _encode(header: Header) -> bytes:
    prefix, scope, topology, hops = header
    keys, bloom = prefix.keys, prefix.bloom
    told = (bool(prefix.parts), keys is not None, bloom is not None)
    assert sum(told) <= 1, "an FPT travels, or keys do, or a Bloom filter does"
    flags = _ARRAYS if prefix.arrays else 0
    if bloom is not None:
        out = bytearray([BLOOM_VERSION, flags])
    elif keys is not None:
        out = bytearray([KEYS_VERSION, flags | (_COMPLETE if keys.complete else 0)])
    else:
        out = bytearray([FORMAT_VERSION, flags])
    put(out, hops)
    put(out, topology)
    bits = scope.to_bytes((scope.bit_length() + 7) // 8, "little")
    put(out, len(bits))
    out += bits
    if bloom is not None:
        put_bits(out, bloom)
    elif keys is not None:
        put_keys(out, keys)
    else:
        _put_parts(out, prefix)
    return bytes(out) + zlib.crc32(out).to_bytes(4, "little")


def _put_parts(out: bytearray, prefix: Prefix) -> None:
    put(out, len(prefix.parts))
    for part in prefix.parts:
        out.append((_CUT if part.cut else 0) | (_MANY if part.many else 0))
        put(out, part.version.incarnation)
        put(out, part.version.clock)
        put(out, len(part.entries))
        out += encode_entries(part.entries)
        put(out, len(part.numbers))
        last = -1
        for number in part.numbers:
            put(out, number - last - 1)
            last = number


def encode_entries(entries: Entries) -> bytes:
    """The entries' bytes, without their count."""
    out = bytearray()
    elder: list[int] = []
    lasts = _last_of_their_siblings(entries)
    for place, (level, number) in enumerate(entries):
        del elder[level:]
        below = place + 1 < len(entries) and entries[place + 1][0] > level
        above = elder[level - 1] if len(elder) == level else -1
        put(out, (number - above - 1) << 2 | below << 1 | lasts[place])
        del elder[level - 1 :]
        elder.append(number)
    return bytes(out)


def decode_entries(data: bytes, count: int) -> Entries:
    """So many entries that encode to these bytes."""
    return _Reader(data).entries(count)


def _last_of_their_siblings(entries: Entries) -> list[bool]:
    """For each entry, whether no younger sibling follows; told from the end, where that is known."""
    lasts: list[bool] = []
    followed: list[bool] = []
    for level, _ in reversed(entries):
        del followed[level + 1 :]
        followed += [False] * (level + 1 - len(followed))
        lasts.append(not followed[level])
        followed[level] = True
    return lasts[::-1]


class _Damaged(Exception):
    """These bytes are no header."""


class _Reader:
    """Reads the parts of a header one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def header(self) -> Header:
        version, flags = self._byte(), self._byte()
        if version not in (FORMAT_VERSION, KEYS_VERSION, BLOOM_VERSION):
            raise _Damaged
        hops = self._number()
        topology = self._number()
        scope = int.from_bytes(self._bytes(self._number()), "little")
        arrays = bool(flags & _ARRAYS)
        if version == KEYS_VERSION:
            prefix = Prefix((), arrays, self._keys(complete=bool(flags & _COMPLETE)))
        elif version == BLOOM_VERSION:
            prefix = Prefix((), arrays, bloom=self._bloom())
        else:
            prefix = Prefix(tuple(self._part() for _ in range(self._count())), arrays)
        if self._at != len(self._data):
            raise _Damaged
        if topology > TOPOLOGY_NUMBER_MAX or scope.bit_length() > BROKER_NUMBER_MAX + 1:
            raise _Damaged
        return Header(prefix, scope, topology, hops)

    def _keys(self, *, complete: bool) -> Keys:
        certain, doubtful = self._count(), self._count()
        data = self._bytes((certain + doubtful) * KEY_BYTES)
        digest = int.from_bytes(self._bytes(DIGEST_BYTES), "little") if complete else None
        keys = read_keys(data, certain, digest)
        if not keys.is_possible():
            raise _Damaged
        return keys

    def _bloom(self) -> EventBits:
        size = self._byte()
        if not size:
            return UNTOLD
        is_mapped, size = size >= MAPPED, size % MAPPED
        if size > SIZE_MAX:
            raise _Damaged
        names = int.from_bytes(self._bytes(NAMES_BYTES), "little")
        digest = int.from_bytes(self._bytes(DIGEST_BYTES), "little")
        bits = read_map(self._bytes(map_bytes(size))) if is_mapped else self._ascending()
        told = EventBits(size, bits, names, digest)
        if not told.is_possible():
            raise _Damaged
        return told

    def _part(self) -> PartPrefix:
        flags = self._byte()
        version = Version(self._number(), self._number())
        entries = self.entries(self._count())
        numbers = self._ascending()
        return PartPrefix(version, entries, numbers, bool(flags & _CUT), bool(flags & _MANY))

    def _ascending(self) -> tuple[int, ...]:
        """Their count, and numbers that each are less the one before."""
        numbers: list[int] = []
        last = -1
        for _ in range(self._count()):
            last += self._number() + 1
            numbers.append(last)
        return tuple(numbers)

    def entries(self, count: int) -> Entries:
        entries: list[tuple[int, int]] = []
        numbers: list[int] = [-1]
        done: list[bool] = []
        for _ in range(count):
            packed = self._number()
            if not numbers:
                raise _Damaged
            numbers[-1] += (packed >> 2) + 1
            entries.append((len(numbers), numbers[-1]))
            done[len(numbers) - 1 :] = [bool(packed & 1)]
            if packed & 2:
                numbers.append(-1)
            else:
                while numbers and done[len(numbers) - 1]:
                    numbers.pop()
        if numbers and entries:
            raise _Damaged
        return tuple(entries)

    def _count(self) -> int:
        """How many things follow, each of at least a byte."""
        count = self._number()
        if count > len(self._data) - self._at:
            raise _Damaged
        return count

    def _number(self) -> int:
        number = shift = 0
        while True:
            byte = self._byte()
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7
            if shift >= MAX_BITS:
                raise _Damaged

    def _byte(self) -> int:
        if self._at >= len(self._data):
            raise _Damaged
        self._at += 1
        return self._data[self._at - 1]

    def _bytes(self, count: int) -> bytes:
        if count > len(self._data) - self._at:
            raise _Damaged
        self._at += count
        return self._data[self._at - count : self._at]
