"""How a stored tree lies in its bytes: a head, a directory, and sections that can be read where they are.

What else is stored beside a tree (`Kind`) lies in the same way.

    head         magic, format version, byte order, how many sections; CRC-32 of all that follows it; the
                 number of bytes in all, the digest of the tree, living nodes, oldest version that is kept
    directory    for each section the code of its type and how many cells it has
    sections     arrays in the machine's own byte order, each at a multiple of 8 bytes

An array of whole numbers has cells of 4 bytes if they fit, else of 8. Bytes that are not exactly what was
written are refused (`UnreadableTree`): of another format or byte order, cut short, longer, or changed.

Cost: reading takes one pass for the checksum, some 1 ms for each 2 MB, and nothing else that grows.
"""

import struct
import sys
import zlib
from array import array
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import NamedTuple

FORMAT_VERSION = 1

_ORDER = {"little": 0, "big": 1}[sys.byteorder]
_HEAD = struct.Struct("<4sBBHI")
_FACTS = struct.Struct("<Q16sQQ")
_SECTION = struct.Struct("<c7xQ")
_ALIGNMENT = 8
_SMALL_MAX = 2**31 - 1


class UnreadableTree(Exception):
    """These bytes are not a tree that was stored, or no longer."""


class Kind(Enum):
    """What is stored, by the bytes that it begins with."""

    TREE = b"BLrt"
    VOCABULARY = b"BLvo"
    PLACES = b"BLpl"
    TABLE = b"BLta"
    INDEX = b"BLai"
    GROWING = b"BLgi"


class Facts(NamedTuple):
    """What is known of a stored tree beside its sections."""

    digest: int
    nodes: int
    oldest: int


def numbers(values: Iterable[int]) -> "array[int]":
    """Whole numbers as a section, no wider than they need."""
    wide = array("q", values)
    fits = not wide or (min(wide) >= -_SMALL_MAX and max(wide) <= _SMALL_MAX)
    return array("i", wide) if fits else wide


def write(facts: Facts, sections: Mapping[str, "array[int] | bytes"], kind: Kind = Kind.TREE) -> bytes:
    """The bytes of a stored tree. Sections are known by their order, so their names are not written."""
    directory = b""
    body = bytearray()
    for cells in sections.values():
        code, data = ("B", cells) if isinstance(cells, bytes) else (cells.typecode, cells.tobytes())
        directory += _SECTION.pack(code.encode(), len(cells))
        body += data
        body += bytes(-len(body) % _ALIGNMENT)
    size = _HEAD.size + _FACTS.size + len(directory) + 4 + len(body)
    checked = b"".join(
        (
            _FACTS.pack(size, facts.digest.to_bytes(16, "little"), facts.nodes, facts.oldest),
            directory,
            bytes(4),  # what comes before the sections is a multiple of 8 bytes long
            body,
        )
    )
    return _HEAD.pack(kind.value, FORMAT_VERSION, _ORDER, len(sections), zlib.crc32(checked)) + checked


def read(
    data: memoryview, names: Iterable[str], kind: Kind = Kind.TREE
) -> tuple[Facts, dict[str, memoryview]]:
    """The facts, and the sections under their names, as they lie in the buffer."""
    names = tuple(names)
    data = data.cast("B")
    if len(data) < _HEAD.size + _FACTS.size:
        raise UnreadableTree(f"{len(data)} bytes are no stored tree")
    magic, version, order, count, checksum = _HEAD.unpack_from(data)
    if magic != kind.value:
        raise UnreadableTree("the bytes are no stored tree: they begin with something else")
    if version != FORMAT_VERSION:
        raise UnreadableTree(f"the tree is stored in format {version}; this reads format {FORMAT_VERSION}")
    if order != _ORDER:
        raise UnreadableTree("the tree was stored on a machine of the other byte order")
    size, digest, nodes, oldest = _FACTS.unpack_from(data, _HEAD.size)
    if size != len(data):
        raise UnreadableTree(f"the stored tree has {size} bytes, and here are {len(data)}")
    if zlib.crc32(data[_HEAD.size :]) != checksum or count != len(names):
        raise UnreadableTree("the stored tree is damaged: its checksum differs")
    found: dict[str, memoryview] = {}
    directory = _HEAD.size + _FACTS.size
    at = directory + count * _SECTION.size + 4
    for place, name in enumerate(names):
        code, cells = _SECTION.unpack_from(data, directory + place * _SECTION.size)
        width = struct.calcsize(code)
        found[name] = data[at : at + cells * width].cast(code.decode())
        at += cells * width + -(cells * width) % _ALIGNMENT
    return Facts(int.from_bytes(digest, "little"), nodes, oldest), found
