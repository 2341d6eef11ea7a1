"""Headers of whole batches: read and written as the reference does, to the byte."""

import zlib
from collections.abc import Sequence
from itertools import pairwise
from random import Random
from unittest.mock import patch

import numpy as np
from amounts import often
from hypothesis import given
from hypothesis import strategies as st
from random_prefixes import some_headers

from branchline.routing.bloom.travelling import UNTOLD, EventBits
from branchline.routing.compiled.checksums import crc32
from branchline.routing.compiled.header_reading import Headers, read_headers
from branchline.routing.compiled.header_writing import Copies, Written, write_headers, write_onward
from branchline.routing.compiled.prefixes import Prefixes, firsts, flat
from branchline.routing.overlay.topology import TOPOLOGY_NUMBER_MAX
from branchline.routing.prefix import header as header_module
from branchline.routing.prefix.header import Header, decode, encode
from branchline.routing.prefix.keys import Keys
from branchline.routing.prefix.trees import PartPrefix, Prefix
from branchline.routing.prefix.updates import Version

seeds = st.integers(0, 2**32)
"""Headers are drawn from a seed, which is much quicker than to have Hypothesis draw each number."""


def in_one(rows: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """The rows one after the other, and where each begins."""
    return np.frombuffer(b"".join(rows) or b"", np.uint8), firsts([len(row) for row in rows])


def read(rows: Sequence[bytes]) -> Headers:
    return read_headers(*in_one(rows))


def header(found: Headers, row: int) -> Header:
    """A row that was read, as the reference has it."""
    return Header(
        found.prefixes.prefix(row), int(found.scope[row]), int(found.topology[row]), int(found.hops[row])
    )


def copies(rows: Sequence[int], told: Sequence[Header]) -> Copies:
    return Copies(
        np.array(rows, np.int64),
        np.array([each.scope for each in told], np.uint64),
        np.array([each.topology for each in told], np.int64),
        np.array([each.hops for each in told], np.int64),
    )


def pieces(written: Written) -> list[bytes]:
    whole, first = written.data.tobytes(), written.first.tolist()
    return [whole[low:high] for low, high in pairwise(first)]


def sealed(body: bytes) -> bytes:
    """The body with a right checksum."""
    return body + zlib.crc32(body).to_bytes(4, "little")


def check(rows: Sequence[bytes]) -> Headers:
    """What was read is what the reference reads; what it refuses was not read."""
    found = read(rows)
    for row, data in enumerate(rows):
        if found.ok[row]:
            assert header(found, row) == decode(data)
        else:
            assert found.prefixes.part_first[row] == found.prefixes.part_first[row + 1]
    return found


@given(st.binary(max_size=70))
def test_checksums_are_those_of_zlib(data: bytes) -> None:
    """Of any bytes, from any place on."""
    array = np.frombuffer(data, np.uint8)
    for start in range(min(3, len(data) + 1)):
        assert crc32(array, start, len(data)) == zlib.crc32(data[start:])


@often
@given(seeds)
def test_headers_come_back_as_they_were(seed: int) -> None:
    """Whatever fits is read, and is what was written."""
    found = check([encode(each) for each in some_headers(Random(seed), 10)])
    assert found.ok.all()


@often
@given(seeds)
def test_damage_is_left_to_the_reference(seed: int) -> None:
    """Other bytes, also with a right checksum, are read only if the reference reads them, and alike.

    What stands in the rows beside them is read as before.
    """
    source = Random(seed)
    rows = [encode(each) for each in some_headers(source, 5)]
    changed: list[bytes] = []
    for row in rows:
        body = bytearray(row[:-4])
        for _ in range(source.randint(1, 3)):
            body[source.randrange(len(body))] = source.choice((0, 1, 2, 0x80, source.randrange(256)))
        length = source.randrange(len(body))
        changed += [bytes(body), bytes(body[:length]), bytes(body) + b"\0", row[:length]]
    found = check([*rows, *map(sealed, changed), *changed, rows[0]])
    assert found.ok[: len(rows)].all()
    assert found.ok[-1]
    assert not found.ok[len(rows) + len(changed) : -1].any()


@often
@given(st.lists(st.binary(max_size=40), max_size=5))
def test_random_bodies_are_read_as_the_reference_reads_them(bodies: list[bytes]) -> None:
    """Whatever comes: it is the same, or is not read."""
    heads = (b"", b"\1\0", b"\1\1\0\0\0\1\0\1\1", b"\1\0\0\0\1\7\2\3\1\1")
    check([sealed(head + body) for body in bodies for head in heads])


def test_what_does_not_fit_is_left_to_the_reference() -> None:
    """A scope beyond 64 homes, numbers beyond their sizes: only the reference reads them."""
    part = PartPrefix(Version(1, 1), ())
    told = [
        Header(Prefix((part,)), scope=2**64),
        Header(Prefix((PartPrefix(Version(2**63, 1), ()),))),
        Header(Prefix((PartPrefix(Version(1, 2**69), ()),))),
        Header(Prefix((PartPrefix(Version(1, 1), ((1, 2**31),)),))),
        Header(Prefix((PartPrefix(Version(1, 1), ((1, 2**62), (1, 2**63))),))),
        Header(Prefix((PartPrefix(Version(1, 1), (), (2**62, 2**63)),))),
        Header(Prefix((part,)), hops=2**63),
    ]
    rows = [encode(each) for each in told]
    assert [decode(row) for row in rows] == told
    assert not check(rows).ok.any()
    edges = [
        Header(Prefix((PartPrefix(Version(2**63 - 1, 1), ((1, 2**31 - 1),), (2**62 - 1,)),)), 2**64 - 1),
        Header(Prefix((part,)), topology=TOPOLOGY_NUMBER_MAX, hops=2**63 - 1),
    ]
    assert check([encode(each) for each in edges]).ok.all()


def test_keys_and_bloom_filters_are_left_to_the_reference() -> None:
    """Only the first version is read here; a row with keys or bits is not, and those beside it are."""
    plain = encode(Header(Prefix((PartPrefix(Version(1, 1), ()),)), 5, 1, 1))
    keys = [Keys(), Keys((1, 2), (3,)), Keys((), (), 0), Keys((7,), (), 2**64 - 1)]
    bits = [UNTOLD, EventBits(14, (1, 2, 700), 7, 8), EventBits(3, tuple(range(8)), 0, 2**64 - 1)]
    rows = [encode(Header(Prefix((), keys=each), 5, 1, 1)) for each in keys]
    rows += [encode(Header(Prefix((), bloom=each), 5, 1, 1)) for each in bits]
    assert check([plain, *rows, plain]).ok.tolist() == [True, *[False] * len(rows), True]


def test_no_rows_are_read_and_written() -> None:
    """A batch may be empty, and a row too."""
    assert len(read([]).ok) == 0
    assert read([b"", b""]).ok.tolist() == [False, False]
    assert pieces(write_headers(flat([]), copies([], []))) == []


@often
@given(seeds)
def test_headers_are_written_as_the_reference_writes_them(seed: int) -> None:
    """Each copy, in any order and number of them, to the byte."""
    source = Random(seed)
    told = some_headers(source, 5)
    rows = source.choices(range(len(told)), k=8)
    wanted = [told[row] for row in rows]
    written = write_headers(flat([each.prefix for each in told]), copies(rows, wanted))
    assert written.ok.all()
    assert pieces(written) == [encode(each) for each in wanted]


@often
@given(seeds)
def test_what_goes_on_has_the_same_prefix(seed: int) -> None:
    """A copy has the prefix that came, and a scope, topology and hops of its own."""
    source = Random(seed)
    told, heads = some_headers(source, 5), some_headers(source, 8)
    rows = source.choices(range(len(told)), k=len(heads))
    came = in_one([encode(each) for each in told])
    written = write_onward(*came, read_headers(*came), copies(rows, heads))
    assert written.ok.all()
    expected = [each._replace(prefix=told[row].prefix) for row, each in zip(rows, heads, strict=True)]
    assert pieces(written) == [encode(each) for each in expected]


def test_what_is_too_large_is_left_to_the_reference() -> None:
    """It is not written, and those around it are; to the byte, what just fits is."""
    small = Header(Prefix((PartPrefix(Version(1, 1), ((1, 1),)),)))
    large = Header(Prefix((PartPrefix(Version(1, 1), tuple((1, number) for number in range(4_074))),)))
    larger = Header(Prefix((PartPrefix(Version(1, 1), tuple((1, number) for number in range(4_090))),)))
    told = [small, large, larger, small]
    limit = header_module.HEADER_MAX_BYTES
    assert len(encode(large)) <= limit
    written = write_headers(flat([each.prefix for each in told]), copies(range(4), told))
    assert written.ok.tolist() == [True, True, False, True]
    assert pieces(written) == [encode(small), encode(large), b"", encode(small)]
    with patch.object(header_module, "HEADER_MAX_BYTES", 2 * limit):
        source = in_one([encode(each) for each in told])
    found = read_headers(*source)
    assert found.ok.all()
    onward = write_onward(*source, found, copies(range(4), told))
    assert onward.ok.tolist() == [True, True, False, True]
    assert pieces(onward) == pieces(written)


def test_prefixes_come_back_from_their_arrays() -> None:
    """What is flat is what it was made of."""
    part = PartPrefix(Version(3, 4), ((1, 0), (2, 7), (1, 9)), (1, 5), True, True)
    told = [Prefix(()), Prefix((part, PartPrefix(Version(1, 2), ())), True), Prefix((part,))]
    made: Prefixes = flat(told)
    assert [made.prefix(row) for row in range(made.rows)] == told
