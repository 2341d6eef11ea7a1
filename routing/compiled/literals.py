"""Numbers as JSON writes them, read in kernels, exactly as Python reads them.

A number is given as the nearest double, as a whole number that is in the same order as all doubles
(`ordering.ordered`), and a sign: 1 if the number is more than that double and -1 if it is less, which only
whole numbers can be, since Python rounds all others to doubles.

Theory of operation. A literal is a mantissa of whole digits times a power of ten. Where both are doubles,
the one product or quotient rounds once, so rightly. Else the mantissa is multiplied by the first 128 bits
of the power of ten; that the bits left out cannot change the rounding is nearly always plain from the
product (Eisel and Lemire, "Number parsing at a gigabyte per second", 2021). Where it is not, and for more
than 19 digits, numbers too small to have all bits, and the like, the literal is LATE: Python reads it.

Cost: a nanosecond or two for each digit.
"""

import numpy as np
from numpy.typing import NDArray

from branchline.routing.compiled.freshness import fresh
from branchline.routing.compiled.kernels import kernel
from branchline.routing.compiled.memory import load_byte

LATE = -(1 << 63)
"""What is given for a number that Python must read; no number is that."""

_EXACT = 1 << 53
"""Up to here whole numbers are doubles."""
_WHOLE = 1 << 62
"""Up to here whole numbers are read; the double that is nearest is one that can be turned back."""
_DIGITS = 18
"""So many digits are always less than that."""
_LOW_63 = (1 << 63) - 1
_LEAST, _MOST = -307, 288
"""Powers of ten by which no mantissa gives a number that is too small to have all bits, or too large."""
_POWERS: NDArray[np.float64] = np.array([10.0**power for power in range(23)])
"""The powers of ten that are doubles."""


def _bits_of(power: int) -> int:
    """The first 128 bits of a power of five, rounded down; of one over, rounded up."""
    if power >= 0:
        whole: int = 5**power
        return whole << 128 >> whole.bit_length()
    divisor: int = 5**-power
    return (1 << divisor.bit_length() + 127) // divisor + 1


_HIGH: NDArray[np.uint64] = np.array([_bits_of(power) >> 64 for power in range(_LEAST, _MOST + 1)], np.uint64)
_LOW: NDArray[np.uint64] = np.array(
    [_bits_of(power) & ((1 << 64) - 1) for power in range(_LEAST, _MOST + 1)], np.uint64
)


@kernel
def _high_product(one: np.uint64, other: np.uint64) -> np.uint64:
    """The higher half of a product."""
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    first, second = one >> half, one & low
    third, fourth = other >> half, other & low
    middle = second * third + (second * fourth >> half)
    cross = first * fourth + (middle & low)
    return first * third + (middle >> half) + (cross >> half)


@kernel
def _bits(value: np.float64) -> int:
    return np.float64(value).view(np.int64)  # type: ignore[return-value]


@kernel
def _scaled(mantissa: int, power: int) -> int:
    """The bits of the double nearest to a mantissa above 0 times a power of ten; or LATE."""
    if not _LEAST <= power <= _MOST:
        return LATE
    one = np.uint64(1)
    scaled, shift = np.uint64(mantissa), 0
    while not scaled >> np.uint64(63):
        scaled <<= one
        shift += 1
    high = _high_product(scaled, _HIGH[power - _LEAST])
    low = scaled * _HIGH[power - _LEAST]
    if high & np.uint64(0x1FF) == np.uint64(0x1FF):
        more = _high_product(scaled, _LOW[power - _LEAST])
        low += more
        if low < more:
            high += one
        if low == np.uint64(0xFFFFFFFFFFFFFFFF):
            return LATE  # the bits left out might carry
    top = np.int64(high >> np.uint64(63))
    bits = high >> np.uint64(top + 9)
    exponent = ((217706 * power) >> 16) + 1086 + top - shift
    # Half way between two doubles the even one is nearest: only where the product is exact can that be.
    if low <= one and -4 <= power <= 23 and bits & np.uint64(3) == one and bits << np.uint64(top + 9) == high:
        bits &= ~one
    bits = (bits + (bits & one)) >> one
    if bits >> np.uint64(53):
        bits >>= one
        exponent += 1
    if not 0 < exponent < 0x7FF:
        return LATE
    return np.int64(bits & np.uint64((1 << 52) - 1)) | exponent << 52  # type: ignore[return-value]


@fresh
@kernel
def read_literal(start: int, length: int) -> tuple[int, int]:
    """The number that a literal stands for, and how it differs from the double."""
    is_negative = load_byte(start, 0) == 45
    at = 1 if is_negative else 0
    mantissa, digits, power = 0, 0, 0
    is_whole = True
    while at < length:
        byte = load_byte(start, at)
        if 48 <= byte <= 57:
            mantissa = 10 * mantissa + byte - 48
            digits += mantissa != 0
            if digits > _DIGITS and (digits > _DIGITS + 1 or not 0 <= mantissa <= _WHOLE):
                return LATE, 0
            power -= not is_whole
        elif byte == 46:
            is_whole = False
        else:
            break
        at += 1
    if at < length:
        is_whole = False
        at += 1
        sign = load_byte(start, at)
        at += sign == 45 or sign == 43
        written = 0
        while at < length:
            written = 10 * written + load_byte(start, at) - 48
            if written > 1000:
                return LATE, 0
            at += 1
        power += -written if sign == 45 else written
    if mantissa == 0:
        return 0, 0
    value, differs = np.float64(mantissa), 0
    if mantissa <= _EXACT and -23 < power < 0:
        bits = _bits(value / _POWERS[-power])
    elif mantissa <= _EXACT and 0 <= power < 23:
        bits = _bits(value * _POWERS[power])
    elif is_whole:
        bits, nearest = _bits(value), int(value)
        differs = 1 if mantissa > nearest else -1 if mantissa < nearest else 0
    else:
        bits = _scaled(mantissa, power)
        if bits == LATE:
            return LATE, 0
    if is_negative:
        return bits ^ _LOW_63 | LATE, -differs
    return bits, differs
