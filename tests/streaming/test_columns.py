"""Headers and state survive being packed into cells."""

import json

import pytest
import strategies as our
from hypothesis import given
from hypothesis import strategies as st

from branchline.kafka.record import Headers
from branchline.routing.control import Ended, Forgotten, Identity, Number, Subscribed
from branchline.routing.shard import ShardState
from branchline.streaming.columns import NO_HEADERS, pack_headers, unpack_headers
from branchline.streaming.state import pack, unpack

any_headers = st.lists(st.tuples(our.texts | st.sampled_from(["a", "a", ""]), our.contents), max_size=6).map(
    tuple
)

HEADERS: Headers = (
    ("trace", b"abc"),
    ("trace", b""),
    ("none", None),
    ("größe", b"\xff\xfe\x00"),
    ('say "x"\n', "größe".encode()),
)
SPARKS_JSON = (
    '[{"key":"trace","value":"YWJj"},{"key":"trace","value":""},{"key":"none"},'
    '{"key":"größe","value":"//4A"},{"key":"say \\"x\\"\\n","value":"Z3LDtsOfZQ=="}]'
)
"""What Spark's `to_json` makes of HEADERS: compact, nulls left out, bytes in base64, text unescaped."""


@given(any_headers)
def test_headers_survive_packing(headers: Headers) -> None:
    """Null, empty and non-UTF-8 values, repeated names and their order come back as they were."""
    assert unpack_headers(pack_headers(headers)) == headers


@pytest.mark.parametrize("value", [None, b"", b"\x00", b"\xff\xfe", "größe".encode(), b"x" * 10_000])
def test_a_null_value_is_not_an_empty_one(value: bytes | None) -> None:
    """Each kind of value comes back as itself, and beside another of the same name."""
    headers = (("h", value), ("h", b"other"), ("h", value))
    assert unpack_headers(pack_headers(headers)) == headers


def test_no_headers_are_one_fixed_cell() -> None:
    """An empty tuple, and Spark's empty list, are the constant that the sink looks for."""
    assert pack_headers(()) == NO_HEADERS
    assert unpack_headers(NO_HEADERS) == ()


def test_what_spark_writes_is_read() -> None:
    """A cell made by `to_json` gives the headers that it was made from."""
    assert unpack_headers(SPARKS_JSON) == HEADERS


def test_what_we_write_is_what_spark_writes() -> None:
    """Our cell and Spark's are the same JSON document."""
    assert json.loads(pack_headers(HEADERS)) == json.loads(SPARKS_JSON)


# State


request_ids = st.lists(our.texts, max_size=3).map(tuple)
identities = st.builds(Identity, our.legal_names, our.legal_names, our.legal_names)
changes = st.one_of(
    st.builds(Subscribed, identities, our.numbers, our.texts, our.texts, request_ids),
    st.builds(Ended, identities, our.numbers, st.integers(0, 2**50), request_ids),
    st.builds(Forgotten, identities, our.numbers),
)
states = st.builds(ShardState, st.none() | our.numbers, st.lists(changes, max_size=4).map(tuple))


@given(states)
def test_state_survives_packing(state: ShardState) -> None:
    """Numbers, and every kind of change in its order, come back equal and of the same types."""
    read = unpack(pack(state))
    assert read == state
    assert read.number is None or isinstance(read.number, Number)
    assert [type(change) for change in read.changes] == [type(change) for change in state.changes]


@given(states)
def test_packing_is_the_same_to_the_byte(state: ShardState) -> None:
    """Equal states give equal bytes, so that a replay writes what was written before."""
    assert pack(unpack(pack(state))) == pack(state)


def test_an_empty_state_survives_packing() -> None:
    """No number and no changes."""
    assert unpack(pack(ShardState())) == ShardState()
