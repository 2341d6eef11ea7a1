"""CRC-32 as zlib computes it, eight bytes a step, for kernels.

Cost: 8 tables of 256 numbers, which stay in the cache, and some three nanoseconds for each eight bytes.
"""

import numpy as np
from numpy.typing import NDArray

from branchline.routing.compiled.kernels import inlined
from branchline.routing.compiled.memory import byte_at, word_at

_POLYNOMIAL = 0xEDB88320


def _tables() -> NDArray[np.uint32]:
    """Row k: what a byte adds to the remainder when k more bytes follow it within its step."""
    made = np.zeros((8, 256), np.int64)
    for byte in range(256):
        remainder = byte
        for _ in range(8):
            remainder = remainder >> 1 ^ (_POLYNOMIAL if remainder & 1 else 0)
        made[0, byte] = remainder
    for row in range(1, 8):
        made[row] = made[row - 1] >> 8 ^ made[0, made[row - 1] & 0xFF]
    return made.astype(np.uint32)


_T = _tables()


@inlined
def crc32(data: NDArray[np.uint8], start: int, end: int) -> int:
    """The checksum of the bytes from start to end."""
    remainder = np.int64(0xFFFFFFFF)
    at, last = data.ctypes.data + start, data.ctypes.data + end
    while at + 8 <= last:
        word = word_at(at)
        low = remainder ^ word & 0xFFFFFFFF
        remainder = np.int64(
            _T[7, low & 0xFF]
            ^ _T[6, low >> 8 & 0xFF]
            ^ _T[5, low >> 16 & 0xFF]
            ^ _T[4, low >> 24]
            ^ _T[3, word >> 32 & 0xFF]
            ^ _T[2, word >> 40 & 0xFF]
            ^ _T[1, word >> 48 & 0xFF]
            ^ _T[0, word >> 56 & 0xFF]
        )
        at += 8
    while at < last:
        remainder = remainder >> 8 ^ np.int64(_T[0, (remainder ^ byte_at(at)) & 0xFF])
        at += 1
    return int(remainder ^ 0xFFFFFFFF)
