"""Bytes that lie one after the other are a sequence like any other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from branchline.routing.slices import Slices


@given(st.lists(st.binary(max_size=4)), st.integers(-9, 9), st.integers(-9, 9))
def test_slices_are_what_they_were_cut_from(cells: list[bytes], start: int, stop: int) -> None:
    """Each by itself, all of them, and any piece; also of pieces, which begin somewhere in the data."""
    first = np.cumsum([0, *map(len, cells)])
    made = Slices(np.frombuffer(b"".join(cells), np.uint8), first)
    for some, expected in ((made, cells), (made[start:stop], cells[start:stop])):
        assert some == expected and len(some) == len(expected)
        assert [some[place] for place in range(-len(some), len(some))] == 2 * expected
        assert some.whole() == b"".join(expected)
        assert some.lengths().tolist() == list(map(len, expected))
        for beyond in (len(some), -len(some) - 1):
            with pytest.raises(IndexError):
                some[beyond]
