"""The prefix in a header: it comes back as it was, damage is seen, and trimming only adds."""

import zlib
from typing import Any
from unittest.mock import patch

import pytest
from amounts import often
from filter_world import WORLD
from hypothesis import given
from hypothesis import strategies as st
from prefix_scripts import budgets, some_filters

from branchline.routing.bloom.bits import SIZE_MAX
from branchline.routing.bloom.travelling import UNTOLD, EventBits, map_bytes
from branchline.routing.covers import Cover
from branchline.routing.dimensions import Axis
from branchline.routing.event import Event
from branchline.routing.filters import Filter, Range
from branchline.routing.intervals import HIGHEST, Interval, before
from branchline.routing.overlay.topology import BROKER_NUMBER_MAX, TOPOLOGY_NUMBER_MAX
from branchline.routing.prefix import header as header_module
from branchline.routing.prefix.forwarding import Forwarder
from branchline.routing.prefix.header import HEADER_MAX_BYTES, KEYS_FIT, Header, decode, encode
from branchline.routing.prefix.keys import KEY_BYTES, Keys
from branchline.routing.prefix.matching import Entries
from branchline.routing.prefix.optimizer import Optimizer, Settings
from branchline.routing.prefix.trees import PartPrefix, Prefix, Trees
from branchline.routing.prefix.updates import Version


@st.composite
def every_entries(draw: st.DrawFn, most: int = 3) -> Entries:
    """A tree of child numbers: below every entry some more, in the order of their numbers."""
    made: list[tuple[int, int]] = []
    depth = draw(st.integers(0, 4))

    def below(level: int) -> None:
        for number in sorted(draw(st.sets(st.integers(0, 300), max_size=most))):
            made.append((level, number))
            if level < depth:
                below(level + 1)

    below(1)
    return tuple(made)


parts = st.builds(
    PartPrefix,
    st.builds(Version, st.integers(0, 2**60), st.integers(0, 2**30)),
    every_entries(),
    st.sets(st.integers(0, 2**20), max_size=10).map(lambda numbers: tuple(sorted(numbers))),
    st.booleans(),
    st.booleans(),
)


@st.composite
def every_keys(draw: st.DrawFn) -> Keys:
    """A list of keys, some certain, some doubtful, complete or not."""
    made = sorted(draw(st.sets(st.integers(0, 2**32 - 1), max_size=10)))
    doubtful = {key for key in made if draw(st.booleans())}
    return Keys(
        tuple(key for key in made if key not in doubtful),
        tuple(sorted(doubtful)),
        draw(st.none() | st.integers(0, 2**64 - 1)),
    )


@st.composite
def every_bits(draw: st.DrawFn) -> EventBits:
    """The Bloom filter of an event, with few bits set or many; or none."""
    size = draw(st.sampled_from((0, 1, 2, 3, 7, 14, SIZE_MAX)))
    if not size:
        return UNTOLD
    bits = draw(st.sets(st.integers(0, (1 << size) - 1), max_size=40))
    if size <= 7 and draw(st.booleans()):
        bits = set(range(1 << size)) - bits
    names, digest = draw(st.integers(0, 2**64 - 1)), draw(st.integers(0, 2**64 - 1))
    return EventBits(size, tuple(sorted(bits)), names, digest)


headers = st.builds(
    Header,
    st.builds(Prefix, st.lists(parts, max_size=3).map(tuple), st.booleans())
    | st.builds(Prefix, st.just(()), st.booleans(), every_keys())
    | st.builds(Prefix, st.just(()), st.booleans(), bloom=every_bits()),
    st.integers(0, 2**100),
    st.integers(0, TOPOLOGY_NUMBER_MAX),
    st.integers(0, 2**30),
)


def sealed(body: bytes) -> bytes:
    """The body with a right checksum."""
    return body + zlib.crc32(body).to_bytes(4, "little")


@often
@given(headers, st.data())
def test_a_header_comes_back_as_it_was_or_not_at_all(header: Header, data: st.DataObject) -> None:
    """Decoding gives what was encoded; no flipped bit, no lost byte and no further byte goes unnoticed."""
    whole = encode(header)
    assert len(whole) <= HEADER_MAX_BYTES
    assert decode(whole) == header
    bit = data.draw(st.integers(0, 8 * len(whole) - 1))
    flipped = bytearray(whole)
    flipped[bit // 8] ^= 1 << bit % 8
    assert decode(bytes(flipped)) is None
    length = data.draw(st.integers(0, len(whole) - 1))
    assert decode(whole[:length]) is None
    assert decode(whole[length + 1 :]) is None
    assert decode(whole + data.draw(st.binary(min_size=1, max_size=8))) is None


def test_every_bit_of_one_header_matters() -> None:
    """Flip any, and it is no header."""
    part = PartPrefix(Version(7, 300), ((1, 0), (2, 5), (2, 200), (1, 3)), (1, 9, 400), True, False)
    whole = encode(Header(Prefix((part, part), True), 0b1011, 5))
    for bit in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        assert decode(bytes(flipped)) is None
    for length in range(len(whole)):
        assert decode(whole[:length]) is None


@often
@given(headers, st.data())
def test_a_right_checksum_is_not_enough(header: Header, data: st.DataObject) -> None:
    """Bytes with another body and its checksum are no header, or one that encodes to just these bytes."""
    body = bytearray(encode(header)[:-4])
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    length = data.draw(st.integers(0, len(body)))
    for changed in (sealed(bytes(body)), sealed(bytes(body[:length])), sealed(bytes(body) + b"\0")):
        decoded = decode(changed)
        assert decoded is None or encode(decoded) == changed


@often
@given(st.binary(max_size=40))
def test_random_bytes_are_no_header_or_just_one(body: bytes) -> None:
    """Whatever comes, decoding gives a header that encodes to the same, or none; it never raises."""
    assert decode(body) is None
    heads = (b"", b"\1\0", b"\1\0\0\0\1\0\7\1", b"\2\2\0\0\0", b"\2\0\0\0\0\1\1")
    heads += (b"\3\0\0\0\0", b"\3\0\0\0\0\4namenameabcdefgh", b"\3\0\0\0\0\x83namenameabcdefgh")
    for data in (sealed(head + body) for head in heads):
        decoded = decode(data)
        assert decoded is None or encode(decoded) == data


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\1",
        b"\4\0\0\0\0\0",
        b"\0\0\0\0\0\0",
        b"\1\2\0\0\0\0",
        b"\1\0\0\0\0\0\0",
        b"\1\0\0\x80\0\0\0",
        b"\1\0" + b"\x80" * 11 + b"\1\0\0",
        b"\1\0\0\0\1\0\0",
        b"\1\0\0\0\5\1\0",
        b"\1\0\0\0\0\xff\xff\3",
        b"\1\0\0\0\0\1\4\0\0\0\0",
        b"\1\0\0\0\0\1\0\0\0\1\3\0",
        b"\1\0\0\0\0\1\0\0\0\1\0\0",
        b"\1\0\0\0\0\1\0\0\0\2\1\1\0",
        b"\1\0\0\0\0\1\0\0\0\0\1",
        b"\2\4\0\0\0\0\0",
        b"\2\0\0\0\0\1\0abc",
        b"\2\0\0\0\0\2\0abcdabcd",
        b"\2\0\0\0\0\2\0abczabcd",
        b"\2\0\0\0\0\1\1abcdabcd",
        b"\2\2\0\0\0\0\0abcdefg",
        b"\2\0\0\0\0\0\0abcdefgh",
        b"\3\2\0\0\0\0",
        b"\3\0\0\0\0\x80",
        b"\3\0\0\0\0\0\0",
        b"\3\0\0\0\0\x11namenameabcdefgh\0",
        b"\3\0\0\0\0\4namenameabcdefg",
        b"\3\0\0\0\0\4namenameabcdefgh\2\0",
        b"\3\0\0\0\0\4namenameabcdefgh\1\x10",
        b"\3\0\0\0\0\4namenameabcdefgh\2\7\x08",
        b"\3\0\0\0\0\4namenameabcdefgh\3\0\0\0",
        b"\3\0\0\0\0\x84namenameabcdefgh\0\1",
        b"\3\0\0\0\0\x84namenameabcdefgh\7",
        b"\3\0\0\0\0\x82namenameabcdefgh\x1f",
    ],
    ids=[
        "nothing",
        "no flags",
        "later format",
        "no format",
        "unknown flag",
        "trailing byte",
        "overlong number",
        "endless number",
        "scope with an empty byte",
        "scope cut short",
        "more parts than bytes",
        "unknown flag of a part",
        "entries below that do not follow",
        "a sibling that does not follow",
        "an entry behind the last one",
        "a number that does not follow",
        "unknown flag beside keys",
        "a key cut short",
        "a key twice",
        "keys out of order",
        "a key both certain and in doubt",
        "a digest cut short",
        "a digest of a list that is not complete",
        "unknown flag beside a Bloom filter",
        "a map of no bits",
        "bits of a Bloom filter that is not told",
        "a Bloom filter that is too large",
        "a digest of constraints cut short",
        "a bit that does not follow",
        "a bit beyond the last",
        "a bit beyond the last, after another",
        "a list of bits longer than a map",
        "a map of bits longer than a list",
        "a map of bits cut short",
        "a map with a bit beyond the last",
    ],
)
def test_bodies_that_nobody_writes(body: bytes) -> None:
    """With a right checksum they are still no header."""
    assert decode(sealed(body)) is None


def _network(filters: list[Cover], settings: Settings) -> tuple[Forwarder, Forwarder]:
    """A broker where events enter and one that has all subscriptions, with the tree for them."""
    optimizer = Optimizer(1, settings)
    here, there = Forwarder(Trees(settings.parts)), Forwarder(Trees(settings.parts))
    for number, made in enumerate(filters):
        optimizer.subscribe(made)
        there.subscribe(made, number)
    for update in optimizer.updates(0):
        here.trees.apply(update)
        there.trees.apply(update)
    return here, there


def check_trimmed(here: Forwarder, there: Forwarder, attributes: dict[str, Any], size: int) -> Prefix:
    """The header fits, decodes, and finds everybody that the whole prefix does; the decoded prefix."""
    prefix = here.enter(Event(attributes))
    data = encode(Header(prefix, 5, 6, 7))
    assert len(data) <= size
    decoded = decode(data)
    assert decoded is not None
    assert decoded[1:] == (5, 6, 7)
    whole, trimmed = there.find(prefix, Event({})), there.find(decoded.prefix, Event({}))
    assert not trimmed.afresh
    assert trimmed.certain | trimmed.doubtful >= whole.certain | whole.doubtful
    assert trimmed.certain <= whole.certain
    return decoded.prefix


@often
@given(
    st.lists(some_filters, min_size=3, max_size=12),
    budgets,
    st.integers(1, 3),
    st.sampled_from(WORLD),
    st.integers(0, 8),
)
def test_trimming_only_adds(
    filters: list[Filter], budget: tuple[int, int, int], parts: int, event: Event, room: int
) -> None:
    """Whatever is left out of a header that would be too large, the others find no less with it."""
    here, there = _network([(each,) for each in filters], Settings(parts, 0, 0, 0.5, *budget))
    smallest = 11 + 5 * parts
    with patch.object(header_module, "HEADER_MAX_BYTES", smallest + room):
        check_trimmed(here, there, dict(event.attributes), smallest + room)


def test_four_kibibytes_are_not_exceeded() -> None:
    """Of a large tree of which all matches, the prefix is cut lower, and the flag says so."""
    at_least_0 = Interval(before(0), HIGHEST)
    filters = [
        tuple(Range((name,), Axis.NUMBER, at_least_0) for name in (f"a{n}", f"b{n}")) for n in range(2_500)
    ]
    here, there = _network([(each,) for each in filters], Settings(1, 0, 0))
    names = [constraint.path[0] for filter_ in filters for constraint in filter_]
    left = check_trimmed(here, there, dict.fromkeys(names, 9), HEADER_MAX_BYTES)
    assert left.parts[0].entries
    assert left.parts[0].cut


@often
@given(every_keys(), st.integers(0, 12))
def test_a_list_of_keys_that_is_cut_is_not_complete(keys: Keys, most: int) -> None:
    """Of a list so many are left, the certain ones first; if one is left out, it no longer says all."""
    left = keys.cut(most)
    assert len(left) == min(most, len(keys))
    assert set(left.certain) <= set(keys.certain)
    assert set(left.doubtful) <= set(keys.doubtful)
    assert left.is_possible()
    assert left.complete is (keys.complete and most >= len(keys))
    assert left == keys or not left.doubtful or left.certain == keys.certain


def test_more_keys_than_fit_are_cut() -> None:
    """Beside the longest scope too, a header stays within its size, and decodes to keys that were there."""
    for scope, most in ((1, HEADER_MAX_BYTES // KEY_BYTES - 10), (1 << BROKER_NUMBER_MAX, KEYS_FIT)):
        for count in (most, 1_500):
            keys = Keys(tuple(range(count)), (), 2**63)
            data = encode(Header(Prefix((), keys=keys), scope, 1, 1))
            assert len(data) <= HEADER_MAX_BYTES
            decoded = decode(data)
            assert decoded is not None
            left = decoded.prefix.keys
            assert left is not None
            assert left == (keys if count == most else keys.cut(KEYS_FIT))
            assert left.complete is (count == most)


@often
@given(every_bits())
def test_a_bloom_filter_takes_no_more_than_a_byte_a_bit_or_a_map(told: EventBits) -> None:
    """Whichever is shorter, where bits lie close; a few bytes are all that is added."""
    size = len(encode(Header(Prefix((), bloom=told))))
    assert size <= 32 + map_bytes(told.size)
    assert size <= 32 + 3 * len(told.bits)


def test_a_bloom_filter_that_is_too_long_is_not_told() -> None:
    """So its reader looks at the content, and nobody is missed."""
    every_third = tuple(range(0, 1 << SIZE_MAX, 3))
    for bits, fits in ((every_third[:1_000], True), (every_third, False)):
        header = Header(Prefix((), bloom=EventBits(SIZE_MAX, bits, 7, 8)), 1, 2, 3)
        data = encode(header)
        assert len(data) <= HEADER_MAX_BYTES
        decoded = decode(data)
        assert decoded == (header if fits else header._replace(prefix=Prefix((), bloom=UNTOLD)))
        assert decoded.prefix.matched


def test_an_empty_header_is_small() -> None:
    """A prefix of one part in which nothing matched takes no more than a few bytes."""
    assert len(encode(Header(Prefix((PartPrefix(Version(1, 1), ()),))))) < 16
