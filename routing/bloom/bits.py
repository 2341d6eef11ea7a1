"""The bits of a constraint in a Bloom filter, and the group of a name, the same in every process.

A Bloom filter has m bits, a power of two, and each constraint sets k of them, which a hash of it gives; some
of the k may be the same. The same hash gives the *check*, of other bits than those, by which sets of
constraints are told apart (`bfposet.py`).
"""

import zlib
from collections.abc import Iterable
from typing import NamedTuple

from branchline.routing.filters import Constraint
from branchline.routing.prefix.edges import plain, stable_hash

SIZE_MAX = 16
"""Of the logarithm: beyond, a Bloom filter with many bits set is too long for a header by far."""
HASHES_MAX = 4
NAME_GROUPS = 64
"""Names of attributes are divided into so many."""
_CHECK_AT = SIZE_MAX * HASHES_MAX


class Shape(NamedTuple):
    """What Bloom filters must have in common to be compared."""

    size: int = 14
    """The logarithm of the number of bits, to the base 2."""
    hashes: int = 2
    """Bits that a constraint sets."""

    @property
    def bits(self) -> int:
        return 1 << self.size


class Imprint(NamedTuple):
    """What a constraint is known by."""

    bits: tuple[int, ...]
    check: int


def imprint(constraint: Constraint, shape: Shape) -> Imprint:
    """The bits and the check of a constraint."""
    made, mask = stable_hash(plain(constraint)), shape.bits - 1
    bits = tuple(made >> SIZE_MAX * place & mask for place in range(shape.hashes))
    return Imprint(bits, made >> _CHECK_AT)


def name_group(name: str) -> int:
    """Which group an attribute's name is in."""
    return zlib.crc32(name.encode("utf-8", "surrogatepass")) % NAME_GROUPS


def name_groups(names: Iterable[str]) -> int:
    """A bit for each group that one of the names is in."""
    groups = 0
    for name in names:
        groups |= 1 << name_group(name)
    return groups
