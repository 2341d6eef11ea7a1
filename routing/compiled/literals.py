"""Numbers as JSON writes them, read in kernels.

A double is given as a whole number that is in the same order as all doubles (`bounds.ordered`): its bits,
with all but the sign turned over if it is below zero.
"""

import numpy as np
from numpy.typing import NDArray

from branchline.routing.compiled.freshness import fresh
from branchline.routing.compiled.kernels import kernel
from branchline.routing.compiled.memory import load_byte

_EXACT = 1 << 53
"""Up to here whole numbers are doubles."""
_POWERS: NDArray[np.float64] = np.array([10.0**power for power in range(23)])
"""The powers of ten that are doubles."""
_LOW_63 = (1 << 63) - 1

LATE = -(1 << 63)
"""What is given for a number that Python must read; no number is that."""


@fresh
@kernel
def read_literal(start: int, length: int) -> int:
    """The number that a literal stands for, or LATE.

    A mantissa up to 2^53, times or over a power of ten that is a double, is rounded once, so rightly.
    """
    at = 0
    is_negative = load_byte(start, 0) == 45
    if is_negative:
        at = 1
    mantissa, exponent = 0, 0
    is_fraction = False
    while at < length:
        byte = load_byte(start, at)
        if 48 <= byte <= 57:
            mantissa = 10 * mantissa + byte - 48
            if mantissa > _EXACT:
                return LATE
            if is_fraction:
                exponent -= 1
        elif byte == 46:
            is_fraction = True
        else:
            break
        at += 1
    if at < length:
        at += 1
        sign = load_byte(start, at)
        if sign == 45 or sign == 43:
            at += 1
        power = 0
        while at < length:
            power = 10 * power + load_byte(start, at) - 48
            if power > 1000:
                return LATE
            at += 1
        exponent += -power if sign == 45 else power
    if mantissa == 0:
        return 0
    if not -23 < exponent < 23:
        return LATE
    value = np.float64(mantissa)
    value = value / _POWERS[-exponent] if exponent < 0 else value * _POWERS[exponent]
    bits = np.float64(-value if is_negative else value).view(np.int64)
    return bits ^ ((bits >> 63) & _LOW_63)  # type: ignore[return-value]
