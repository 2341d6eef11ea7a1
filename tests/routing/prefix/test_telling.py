"""What the Tree Optimizer tells, as bytes: it comes back as it was, and anything else is nothing."""

import zlib
from typing import Any

import pytest
from amounts import often
from filter_world import dependent, normal
from hypothesis import given
from hypothesis import strategies as st
from prefix_runs import Run
from prefix_scripts import Script, cover, scripts, seeded, some_filters

from branchline.routing.addresses import read_address
from branchline.routing.dimensions import Axis
from branchline.routing.filters import Contains, Range
from branchline.routing.instants import Instant
from branchline.routing.intervals import HIGHEST, LOWEST, Interval, after, before
from branchline.routing.prefix.edges import Edge
from branchline.routing.prefix.optimizer import Optimizer, Settings
from branchline.routing.prefix.telling import decode, encode
from branchline.routing.prefix.trees import Trees
from branchline.routing.prefix.updates import Snapshot, Update, Version


class Heard(Run):
    """A script in which all that is told is told as bytes."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.told: list[bytes] = []

    def _read(self, broker: Any) -> None:
        told = broker.told[0]
        data = encode(told)
        read = decode(data)
        assert read == told
        assert read is not None and types(read) == types(told)
        broker.told[0] = read
        self.told.append(data)
        super()._read(broker)


def types(told: Update | Snapshot) -> list[str]:
    """What equality does not tell apart: 1 from 1.0, a range from a tuple."""
    return [repr(part) for part in (told.numbered, told.born if isinstance(told, Update) else told.edges)]


@often
@given(scripts(normal(dependent)) | scripts(some_filters))
def test_brokers_that_read_bytes_find_who_is_owed(script: Script) -> None:
    """Whatever an optimizer tells comes back as it was, and brokers do with it what they did with it."""
    Heard(script).play()


@pytest.mark.parametrize("seed", range(12))
def test_trees_rebuilt_from_bytes_are_equal(seed: int) -> None:
    """What makes equal trees of empty ones still does after a way through bytes."""
    for broker in Heard(seeded(seed)).play().brokers:
        trees = broker.forwarder.trees
        again = Trees(len(trees.vocabularies), broker.height)
        for told in trees.told():
            read = decode(encode(told))
            assert read is not None
            again.apply(read)
        assert [each.describe().partition("versions")[0] for each in again.vocabularies] == [
            each.describe().partition("versions")[0] for each in trees.vocabularies
        ]
        assert [each.digest for each in again.vocabularies] == [each.digest for each in trees.vocabularies]


def sealed(body: bytes) -> bytes:
    """The body with a right checksum."""
    return body + zlib.crc32(body).to_bytes(4, "little")


def some_told() -> list[Update | Snapshot]:
    optimizer = Optimizer(3, Settings(threshold=0.0, nodes_per_filter=0, spare_nodes=4, snapshot_edges=2))
    for text in ("a < 5 AND b = 'x'", "a BETWEEN 2 AND 9.5", "b LIKE '%y%'", "a IN (1, 2, 3, 4)", "TRUE"):
        optimizer.subscribe(cover(text))
    first = optimizer.updates(1)
    optimizer.unsubscribe(cover("a < 5 AND b = 'x'"))
    optimizer.unsubscribe(cover("a IN (1, 2, 3, 4)"))
    return [*first, *optimizer.updates(2), *optimizer.snapshots()]


TOLD = some_told()


def test_the_examples_have_everything() -> None:
    """Or the tests of damage would show nothing."""
    updates = [each for each in TOLD if isinstance(each, Update)]
    assert any(each.died for each in updates) and any(each.unnumbered for each in updates)
    assert any(each.born for each in updates) and any(each.numbered for each in updates)
    assert any(isinstance(each, Snapshot) and each.pieces > 1 for each in TOLD)


@pytest.mark.parametrize("told", TOLD)
def test_every_bit_matters(told: Update | Snapshot) -> None:
    """Flip one, lose a byte or add one, and nothing was told."""
    whole = encode(told)
    assert decode(whole) == told
    for bit in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        assert decode(bytes(flipped)) is None
    for length in range(len(whole)):
        assert decode(whole[:length]) is None
    assert decode(whole + b"\0") is None


@often
@given(st.sampled_from(TOLD), st.data())
def test_a_right_checksum_is_not_enough(told: Update | Snapshot, data: st.DataObject) -> None:
    """Bytes with another body and its checksum are nothing, or something that encodes to just these bytes."""
    body = bytearray(encode(told)[:-4])
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    length = data.draw(st.integers(0, len(body)))
    for changed in (sealed(bytes(body)), sealed(bytes(body[:length])), sealed(bytes(body) + b"\0")):
        decoded = decode(changed)
        assert decoded is None or encode(decoded) == changed


@often
@given(st.binary(max_size=60))
def test_random_bytes_are_nothing_or_just_one_thing(body: bytes) -> None:
    """Whatever comes, decoding never raises."""
    assert decode(body) is None
    for data in (sealed(body), sealed(b"\1\0" + body), sealed(b"\1\1\0\7\1\1" + body)):
        decoded = decode(data)
        assert decoded is None or encode(decoded) == data


def test_every_kind_of_value_comes_back_with_its_type() -> None:
    """Numbers of any size, floats, texts, moments, addresses, open ends, words, and no constraint at all."""
    address = read_address("10.1.2.3")
    assert address is not None
    ends = [
        (Axis.NUMBER, 1),
        (Axis.NUMBER, 1.0),
        (Axis.NUMBER, -(10**30)),
        (Axis.TEXT, "größe"),
        (Axis.INSTANT, Instant(-1, "999")),
        (Axis.ADDRESS, address),
    ]
    ranges = [
        Range(("a", "b.c"), axis, interval)
        for axis, value in ends
        for interval in (
            Interval(before(value), after(value)),
            Interval(LOWEST, before(value)),
            Interval(after(value), HIGHEST),
        )
    ]
    constraints = [*ranges, Contains(("a",), Axis.TEXT, "word")]
    edges = tuple(Edge(0, number, number + 1, each) for number, each in enumerate(constraints))
    numbered = tuple((2**40 + number, (each,)) for number, each in enumerate(constraints))
    moved = Edge(3, 2**33, 4, None)
    version = Version(2**50, 2**40)
    for told in (
        Update(9, version, 2**128 - 1, 0, ((1, 2), (3, 4)), (*edges, moved), numbered, (5, 2**50)),
        Snapshot(0, version, 1, 2, 7, edges, numbered),
        Update(0, Version(0, 1), 0, 0, (), (), (), ()),
        Snapshot(0, Version(0, 1), 0, 0, 1, (), ()),
    ):
        read = decode(encode(told))
        assert read == told
        assert read is not None and types(read) == types(told)
