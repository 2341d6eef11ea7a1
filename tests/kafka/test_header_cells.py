"""Headers as one cell of bytes."""

import pytest
import strategies as our
from hypothesis import given
from hypothesis import strategies as st

from branchline.kafka.header_cells import pack_headers, unpack_headers
from branchline.kafka.record import Headers

headers = st.lists(st.tuples(st.text(max_size=8), our.contents), max_size=6).map(tuple)


@given(our.foreign_headers | our.forged_headers | headers)
def test_headers_come_back_as_they_were(some: Headers) -> None:
    """Names that repeat, are empty or no UTF-8, and null and empty values, in their order."""
    assert unpack_headers(pack_headers(some)) == some


def test_the_form_is_fixed() -> None:
    """Length and name, length and value, the highest byte first; a null value has all bits set."""
    assert pack_headers(()) == b""
    assert pack_headers((("é", b"x"), ("n", None), ("", b""))) == (
        b"\0\0\0\2\xc3\xa9\0\0\0\1x" + b"\0\0\0\1n\xff\xff\xff\xff" + b"\0\0\0\0\0\0\0\0"
    )


@pytest.mark.parametrize(
    "cell", [b"\0\0\0", b"\0\0\0\1", b"\0\0\0\1n", b"\0\0\0\1n\0\0\0\2x", b"\xff\xff\xff\xff"]
)
def test_a_cell_that_is_none_is_our_fault(cell: bytes) -> None:
    """Reading it raises: nothing that a publisher sends makes such a cell."""
    with pytest.raises(ValueError, match=r"cell|header"):
        unpack_headers(cell)
