"""A record's headers as one cell of bytes: a batch has a column of them, and no object for each header.

For each header in order: the length of the name as four bytes, the highest first, the name as UTF-8, the
length of the value in the same way, the value. A null value has the length `NULL` and no bytes. No headers
are no bytes.

Names that a client handed over as surrogates, because they were no UTF-8, stay what they are. Whoever makes a
cell by other means must keep to the form: one that does not is a fault of ours, and reading it raises.
"""

from itertools import chain
from struct import Struct

from branchline.kafka.record import Headers

NULL = 0xFFFFFFFF
"""Stands where the length of a value would, for a header that has none. Kafka's own limit is far below."""

_LENGTH = Struct(">I")
_NULL = _LENGTH.pack(NULL)


def pack_headers(headers: Headers) -> bytes:
    """The cell of these headers."""
    return b"".join(chain.from_iterable(map(_parts, headers)))


def unpack_headers(cell: bytes) -> Headers:
    """The headers of a cell."""
    headers: list[tuple[str, bytes | None]] = []
    at = 0
    while at < len(cell):
        name, at = _part(cell, at)
        value, at = _part(cell, at)
        if name is None:
            raise ValueError("a header without a name")
        headers.append((name.decode(errors="surrogatepass"), value))
    return tuple(headers)


def _parts(header: tuple[str, bytes | None]) -> tuple[bytes, ...]:
    name = header[0].encode(errors="surrogatepass")
    value = header[1]
    length = _NULL if value is None else _LENGTH.pack(len(value))
    return _LENGTH.pack(len(name)), name, length, value or b""


def _part(cell: bytes, at: int) -> tuple[bytes | None, int]:
    """The bytes at a place of the cell, and the place behind them."""
    start = at + _LENGTH.size
    if start > len(cell):
        raise ValueError(f"the cell ends within a length, at byte {at}")
    (length,) = _LENGTH.unpack_from(cell, at)
    if length == NULL:
        return None, start
    if start + length > len(cell):
        raise ValueError(f"the cell ends within {length} bytes, at byte {start}")
    return cell[start : start + length], start + length
