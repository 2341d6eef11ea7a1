"""Markers read back as they were written, and what is none is told apart."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from branchline.kafka.errors import MarkersGone
from branchline.kafka.markers import DIVERTED_MOST, Marker, decode_marker, encode_marker

numbers = st.integers(0, 2**53)
markers = st.builds(
    Marker,
    st.uuids().map(str),
    st.uuids().map(lambda each: each.hex),
    numbers,
    st.text(max_size=32),
    numbers,
    st.integers(0, 2**32 - 1),
    numbers,
    st.lists(st.text(max_size=20), max_size=DIVERTED_MOST).map(tuple),
)


@given(markers)
def test_a_marker_reads_back(marker: Marker) -> None:
    assert decode_marker(encode_marker(marker), "markers") == marker


@given(st.binary() | st.sampled_from([b"{}", b"[]", b'{"version":1}', b'{"version":2,"batch":1}']))
def test_what_is_no_marker_is_refused(value: bytes) -> None:
    """Taking it for none would write a batch twice, taking it for one would lose it."""
    with pytest.raises(MarkersGone, match="is no marker"):
        decode_marker(value, "markers")


def test_the_documented_marker_is_one() -> None:
    text = Path("docs/messages.md").read_text()
    (example,) = re.findall(r"```json marker\n(.*?)```", text, re.DOTALL)
    assert decode_marker(example.encode(), "docs").batch == 17
