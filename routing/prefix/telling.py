"""What the Tree Optimizer tells, as bytes: compact, versioned, and strict in decoding.

    version      1 byte: 1
    kind         1 byte: 0 an update, 1 a piece of a snapshot
    part, incarnation, clock
    kins         count, then the rows that constraints refer to, in the order in which they first come
    update       digests before and after, 16 bytes each; edges that died (count, then parent and number);
                 edges that were born; filters that got numbers; numbers that are no more (count first)
    snapshot     digest, 16 bytes; piece, pieces; edges; filters with their numbers
    checksum     CRC-32 of all before it, 4 bytes

Numbers are varints, lowest bits first. An edge is parent, number, child and a constraint; a constraint its
length and then its bytes (`encoding.py`), of length 0 where there is none; a filter its number, a count and
its constraints.

Decoding gives exactly what was encoded, or None: for other bytes, however they came about, nothing was told.
Nor is it for what no optimizer tells (`possible.py`): a constraint that no filter has, a number out of all
bounds. Cost: linear in the bytes; decoding encodes once more, to compare.
"""

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from branchline.routing.filters import Constraint, Filter
from branchline.routing.prefix.edges import Edge
from branchline.routing.prefix.encoding import decode_constraint, decode_kin, encode_constraint, encode_kin
from branchline.routing.prefix.possible import is_constraint, is_filter
from branchline.routing.prefix.siblings import Kin, kin
from branchline.routing.prefix.updates import Snapshot, Update, Version
from branchline.routing.prefix.varints import put, take

FORMAT_VERSION = 1

NUMBER_END = 2**53
"""Incarnations, which are times, clocks and numbers of nodes and edges are below this."""

PIECES_MAX = 16_384
"""Pieces of a snapshot. An optimizer tells thousands of edges in one, and has some millions at most."""

_UPDATE, _SNAPSHOT = 0, 1
_DIGEST_BYTES = 16
_CHECKSUM_BYTES = 4

_Thing = TypeVar("_Thing")


def encode(told: Update | Snapshot) -> bytes:
    """The bytes of what is told."""
    is_update = isinstance(told, Update)
    out = bytearray([FORMAT_VERSION, _UPDATE if is_update else _SNAPSHOT])
    for number in (told.part, *told.version):
        put(out, number)
    kins = {each: place for place, each in enumerate(dict.fromkeys(map(kin, _constraints(told))))}
    put(out, len(kins))
    for row in kins:
        out += encode_kin(row)
    writer = _Writer(out, kins)
    if isinstance(told, Update):
        writer.digest(told.digest_before)
        writer.digest(told.digest)
        writer.numbers([number for edge in told.died for number in edge], len(told.died))
        writer.edges(told.born)
        writer.numbered(told.numbered)
        writer.numbers(told.unnumbered, len(told.unnumbered))
    else:
        writer.digest(told.digest)
        put(out, told.piece)
        put(out, told.pieces)
        writer.edges(told.edges)
        writer.numbered(told.numbered)
    return bytes(out) + _checksum(out)


def decode(data: bytes) -> Update | Snapshot | None:
    """What encodes to these bytes, None if nothing does."""
    body, checksum = data[:-_CHECKSUM_BYTES], data[-_CHECKSUM_BYTES:]
    if len(body) < 2 or checksum != _checksum(body):
        return None
    try:
        told = _Reader(memoryview(body)).told()
    except (IndexError, ValueError, struct.error):
        return None
    return told if encode(told) == data else None


def _checksum(body: bytes | bytearray) -> bytes:
    return zlib.crc32(body).to_bytes(_CHECKSUM_BYTES, "little")


def _constraints(told: Update | Snapshot) -> Iterator[Constraint]:
    edges = told.born if isinstance(told, Update) else told.edges
    yield from (edge.constraint for edge in edges if edge.constraint is not None)
    yield from (constraint for _, filter_ in told.numbered for constraint in filter_)


class _Writer:
    """Appends the parts of what is told one after the other."""

    def __init__(self, out: bytearray, kins: dict[Kin, int]) -> None:
        self._out = out
        self._kins = kins

    def digest(self, digest: int) -> None:
        self._out += digest.to_bytes(_DIGEST_BYTES, "little")

    def numbers(self, numbers: Iterable[int], count: int) -> None:
        put(self._out, count)
        for number in numbers:
            put(self._out, number)

    def edges(self, edges: tuple[Edge, ...]) -> None:
        put(self._out, len(edges))
        for parent, number, child, constraint in edges:
            put(self._out, parent)
            put(self._out, number)
            put(self._out, child)
            self._constraint(constraint)

    def numbered(self, numbered: tuple[tuple[int, Filter], ...]) -> None:
        put(self._out, len(numbered))
        for number, filter_ in numbered:
            put(self._out, number)
            put(self._out, len(filter_))
            for constraint in filter_:
                self._constraint(constraint)

    def _constraint(self, constraint: Constraint | None) -> None:
        encoded = b"" if constraint is None else encode_constraint(constraint, self._kins[kin(constraint)])
        put(self._out, len(encoded))
        self._out += encoded


class _Reader:
    """Reads the parts of what is told one after the other; raises if they are not there."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._at = 2
        self._kins: list[Kin] = []

    def told(self) -> Update | Snapshot:
        version, kind = self._data[:2]
        if version != FORMAT_VERSION or kind not in (_UPDATE, _SNAPSHOT):
            raise ValueError("another format or kind")
        part, which = self._number(), Version(self._number(), self._number())
        self._kins = list(self._several(self._kin))
        told = self._update(part, which) if kind == _UPDATE else self._snapshot(part, which)
        if self._at != len(self._data):
            raise ValueError("more bytes than were told")
        return told

    def _update(self, part: int, version: Version) -> Update:
        return Update(
            part,
            version,
            self._digest(),
            self._digest(),
            self._several(lambda: (self._number(), self._number())),
            self._several(self._edge),
            self._several(self._numbered),
            self._several(self._number),
        )

    def _snapshot(self, part: int, version: Version) -> Snapshot:
        digest, piece, pieces = self._digest(), self._number(), self._number()
        if not piece < pieces <= PIECES_MAX:
            raise ValueError("not a piece of a snapshot")
        edges, numbered = self._several(self._edge), self._several(self._numbered)
        return Snapshot(part, version, digest, piece, pieces, edges, numbered)

    def _several(self, read: Callable[[], _Thing]) -> tuple[_Thing, ...]:
        return tuple(read() for _ in range(self._number()))

    def _edge(self) -> Edge:
        return Edge(self._number(), self._number(), self._number(), self._constraint())

    def _numbered(self) -> tuple[int, Filter]:
        number = self._number()
        constraints = self._several(self._constraint)
        filter_ = tuple(each for each in constraints if each is not None)
        if len(filter_) < len(constraints):
            raise ValueError("a filter of which a constraint is missing")
        if not is_filter(filter_):
            raise ValueError("not a filter that is beside a tree")
        return number, filter_

    def _constraint(self) -> Constraint | None:
        length = self._number()
        data = self._take(length)
        if not length:
            return None
        constraint = decode_constraint(data, 0, self._kins)
        if not is_constraint(constraint):
            raise ValueError("a constraint that no filter has")
        return constraint

    def _kin(self) -> Kin:
        found, self._at = decode_kin(self._data, self._at)
        return found

    def _digest(self) -> int:
        return int.from_bytes(self._take(_DIGEST_BYTES), "little")

    def _number(self) -> int:
        number, self._at = take(self._data, self._at)
        if number >= NUMBER_END:
            raise ValueError("a number that is out of all bounds")
        return number

    def _take(self, length: int) -> memoryview:
        if length > len(self._data) - self._at:
            raise ValueError("fewer bytes than were told")
        self._at += length
        return self._data[self._at - length : self._at]
