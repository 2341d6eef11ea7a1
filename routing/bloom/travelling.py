"""The Bloom filter of an event as it travels, in place of a Forwarding Prefix Tree.

    size         1 byte: the logarithm of the number of bits, and 128 more if all of them follow; 0 if nothing
                 is told, and nothing follows
    names        8 bytes, lowest first: which groups the names of the event's attributes are in
    digest       8 bytes, lowest first: of the constraints on these that were known where the filter was made
    bits         those that are set: their count, then each less the one before it, less 1; or, if that is
                 shorter, all of them, eight a byte, lowest first

What is too long for a header is not told. With fewer bits than the event has, somebody would be missed;
without any, the next broker looks at the content.
"""

from dataclasses import dataclass

from branchline.routing.bloom.bits import NAME_GROUPS, SIZE_MAX
from branchline.routing.prefix.keys import DIGEST_BYTES
from branchline.routing.prefix.varints import put

MAPPED = 0x80
NAMES_BYTES = NAME_GROUPS // 8


@dataclass(frozen=True, slots=True)
class EventBits:
    """The bits of all constraints that an event satisfies, of those known where somebody looked at it."""

    size: int = 0
    """The logarithm of the number of bits in all; 0 if nothing is told."""
    bits: tuple[int, ...] = ()
    """Those that are set, ascending."""
    names: int = 0
    """A bit for each group that a name of the event's attributes is in."""
    digest: int = 0
    """The constraints that were known and may hold for these names, told from all other sets of them."""

    def is_possible(self) -> bool:
        """Whether it is as one is written."""
        return self.size <= SIZE_MAX and (not self.bits or self.bits[-1] < 1 << self.size)


UNTOLD = EventBits()
"""Nothing is known of what the event satisfies."""


def put_bits(out: bytearray, told: EventBits) -> None:
    """Append the filter, in the shorter of its two forms."""
    if not told.size:
        out.append(0)
        return
    listed = _listed(told.bits)
    is_mapped = len(listed) > map_bytes(told.size)
    out.append(told.size | (MAPPED if is_mapped else 0))
    out += told.names.to_bytes(NAMES_BYTES, "little") + told.digest.to_bytes(DIGEST_BYTES, "little")
    out += _mapped(told) if is_mapped else listed


def map_bytes(size: int) -> int:
    """How long a map of all bits is."""
    return (1 << size) + 7 >> 3


def read_map(data: bytes) -> tuple[int, ...]:
    """The bits that are set in a map of all."""
    return tuple(8 * at + place for at, byte in enumerate(data) if byte for place in _PLACES[byte])


def _mapped(told: EventBits) -> bytes:
    out = bytearray(map_bytes(told.size))
    for bit in told.bits:
        out[bit >> 3] |= 1 << (bit & 7)
    return bytes(out)


def _listed(bits: tuple[int, ...]) -> bytes:
    out = bytearray()
    put(out, len(bits))
    last = -1
    for bit in bits:
        put(out, bit - last - 1)
        last = bit
    return bytes(out)


_PLACES = [tuple(place for place in range(8) if byte >> place & 1) for byte in range(256)]
"""Which bits of a byte are set."""
