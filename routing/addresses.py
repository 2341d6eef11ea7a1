"""IP addresses and blocks of them (CIDR), in one order: every IPv4 address before every IPv6 one.

The two families never meet: `::ffff:10.0.0.1` is an IPv6 address and in no IPv4 block. Bits of a block
beyond its length may be set (`10.1.2.3/8`) and mean nothing. Octets with leading zeros (`010.0.0.1`) and
scoped addresses (`fe80::1%eth0`) are no addresses: programs disagree about what they mean.
"""

from ipaddress import AddressValueError, IPv4Address, IPv6Address, ip_network
from typing import NamedTuple


class Address(NamedTuple):
    """The family, 4 or 6, and the address as a number."""

    version: int
    number: int


class Block(NamedTuple):
    """All addresses of one family that share their first `length` bits, from `low` on."""

    version: int
    low: int
    length: int

    @property
    def first(self) -> Address:
        return Address(self.version, self.low)

    @property
    def last(self) -> Address:
        bits = 32 if self.version == 4 else 128
        return Address(self.version, self.low | (1 << (bits - self.length)) - 1)

    def __str__(self) -> str:
        address = IPv4Address(self.low) if self.version == 4 else IPv6Address(self.low)
        return f"{address}/{self.length}"


def read_address(text: str) -> Address | None:
    """The address that the text names, None if it names none."""
    try:
        if ":" not in text:
            return Address(4, int(IPv4Address(text)))
        return None if "%" in text else Address(6, int(IPv6Address(text)))
    except AddressValueError:
        return None


def read_block(text: str) -> Block | None:
    """The block that the text names, None if it names none; a bare address is none."""
    address, slash, length = text.partition("/")
    if not slash or not (length.isascii() and length.isdigit()) or read_address(address) is None:
        return None
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        return None
    return Block(network.version, int(network.network_address), network.prefixlen)
