"""Varints in kernels: what `prefix/varints.py` is for the reference, up to 63 bits."""

import numpy as np

from branchline.routing.compiled.kernels import inlined
from branchline.routing.compiled.prefixes import Bytes

NUMBER_BYTES_MAX = 9
_SHIFT_MAX = 56
"""Of the last of nine bytes, which hold 63 bits."""


@inlined
def take_number(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """The number that begins here, and where the next thing does; -1 if there is none, or was none."""
    if not 0 <= at < end:
        return 0, -1
    byte = np.int64(data[at])
    if byte < 0x80:
        return int(byte), at + 1
    number = byte & 0x7F
    shift = 7
    while shift <= _SHIFT_MAX:
        at += 1
        if at >= end:
            return 0, -1
        byte = np.int64(data[at])
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            # An empty last byte: the number has a shorter form.
            return int(number), at + 1 if byte else -1
        shift += 7
    return 0, -1


@inlined
def put_number(out: Bytes, at: int, number: int) -> int:
    """Write the number; where the next thing goes."""
    while number > 0x7F:
        out[at] = number & 0x7F | 0x80
        number >>= 7
        at += 1
    out[at] = number
    return at + 1
