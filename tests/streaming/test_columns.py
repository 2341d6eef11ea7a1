"""Headers survive being packed into cells."""

import json

import pytest
import strategies as our
from hypothesis import given
from hypothesis import strategies as st

from branchline.kafka.record import Headers
from branchline.streaming.columns import NO_HEADERS, pack_headers, unpack_headers

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
