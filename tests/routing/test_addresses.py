"""Addresses and blocks are those of Python's ipaddress, in one order."""

import ipaddress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from branchline.routing.addresses import Address, Block, read_address, read_block

addresses = st.ip_addresses()
networks = st.one_of(
    st.builds(
        lambda address, length: ipaddress.ip_network((address, length), strict=False),
        st.ip_addresses(v=4),
        st.integers(0, 32),
    ),
    st.builds(
        lambda address, length: ipaddress.ip_network((address, length), strict=False),
        st.ip_addresses(v=6),
        st.integers(0, 128),
    ),
)


@given(addresses)
def test_reads_what_ipaddress_writes(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    """The short form, the long form and capitals name the same address."""
    expected = Address(address.version, int(address))
    for text in (str(address), address.exploded, str(address).upper()):
        assert read_address(text) == expected


@given(addresses, addresses)
def test_order(
    one: ipaddress.IPv4Address | ipaddress.IPv6Address, other: ipaddress.IPv4Address | ipaddress.IPv6Address
) -> None:
    """Every IPv4 address comes before every IPv6 one; within a family the numbers decide."""
    read_one, read_other = read_address(str(one)), read_address(str(other))
    assert read_one is not None and read_other is not None
    assert (read_one < read_other) is ((one.version, int(one)) < (other.version, int(other)))


@given(networks, st.data())
@example(ipaddress.ip_network("0.0.0.0/0"), None)
@example(ipaddress.ip_network("::/0"), None)
@example(ipaddress.ip_network("255.255.255.255/32"), None)
@example(ipaddress.ip_network("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128"), None)
def test_blocks(network: ipaddress.IPv4Network | ipaddress.IPv6Network, data: st.DataObject | None) -> None:
    """A block runs from its first to its last address, and its text is read again as the same block."""
    block = read_block(str(network))
    assert block is not None
    assert block.first == Address(network.version, int(network.network_address))
    assert block.last == Address(network.version, int(network.broadcast_address))
    assert read_block(str(block)) == block
    if data is not None:
        near = data.draw(st.integers(-2, 2)) + data.draw(
            st.sampled_from((int(network.network_address), int(network.broadcast_address)))
        )
        number = min(max(near, 0), 2**network.max_prefixlen - 1)
        within = type(network.network_address)(number) in network
        assert (block.first <= Address(network.version, number) <= block.last) is within


@given(networks, addresses)
def test_families_never_meet(
    network: ipaddress.IPv4Network | ipaddress.IPv6Network,
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    """An address lies between the ends of a block if and only if ipaddress says that it is in it."""
    block, read = read_block(str(network)), read_address(str(address))
    assert block is not None and read is not None
    assert (block.first <= read <= block.last) is (address in network)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10.1.2.3/8", Block(4, 10 << 24, 8)),
        ("10.0.0.0/08", Block(4, 10 << 24, 8)),
        ("10.1.2.3/32", Block(4, 0x0A010203, 32)),
        ("0.0.0.0/0", Block(4, 0, 0)),
        ("2001:DB8::1/32", Block(6, 0x20010DB8 << 96, 32)),
        ("::ffff:10.0.0.1/104", Block(6, 0xFFFF0A000000, 104)),
        ("::1/128", Block(6, 1, 128)),
    ],
)
def test_reads_blocks(text: str, expected: Block) -> None:
    """Bits beyond the length mean nothing; one address is a block of full length."""
    assert read_block(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "", "/", "/8", "10.0.0.0", "::1", "10.0.0.0/", "10.0.0.0/33", "::/129", "10.0.0.0/-1", "10.0.0.0/+8",
        "10.0.0.0/8/8", "10.0.0.0/ 8", " 10.0.0.0/8", "10.0.0.0/8 ", "10.0.0.0/٨", "10.0.0.0/255.0.0.0",
        "10.0.0.0/0.255.255.255", "10.0/8", "010.0.0.0/8", "fe80::1%eth0/64", "x/8", "10.0.0.0/8\n",
        "10.0.0.0/" + "0" * 5000 + "8", "10.0.0.0/" + "9" * 5000,
    ],
    ids=lambda text: text[:20],
)  # fmt: skip
def test_refuses_blocks(text: str) -> None:
    """A bare address, a mask, a length out of range and what is no address make no block."""
    assert read_block(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "", ".", ":", "1", "1.2.3", "1.2.3.4.5", "1.2.3.256", "1.2.3.-4", "010.0.0.1", "1.2.3.4 ", " 1.2.3.4",
        "0x1.2.3.4", "1.2.3.٤", "1.2.3.4/32", "fe80::1%eth0", "::%", ":::", "1::2::3", "12345::", "::g",
        "1:2:3:4:5:6:7", "::1\n", "[::1]", "::1/128", "16909060",
    ],
)  # fmt: skip
def test_refuses_addresses(text: str) -> None:
    """Text that is not exactly one address in the usual form names none."""
    assert read_address(text) is None


def test_an_ipv4_address_within_ipv6_is_ipv6() -> None:
    """`::ffff:10.0.0.1` is in no IPv4 block."""
    assert read_address("::ffff:10.0.0.1") == Address(6, 0xFFFF0A000001)


@given(st.text(max_size=20) | st.text("0123456789abf.:/%", max_size=24))
def test_any_text_is_read_or_not(text: str) -> None:
    """No text makes reading fail."""
    address, block = read_address(text), read_block(text)
    assert address is None or block is None
