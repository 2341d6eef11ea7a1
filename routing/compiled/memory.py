"""Memory as the scanner reads it: by address, with nothing in between.

Passing an array to a part of a kernel counts its owners up and down again, and indexing it first asks whether
the index counts from the end. The scanner does both for every few bytes, and that took ten times as long as
the reading itself. So it works on addresses, which are plain numbers: whoever calls a kernel takes them from
arrays with `address`, and keeps the arrays until it is done.

Nothing here checks anything: who reads or writes knows that the place is there. The wide ones read up to
`PADDING` bytes from their place, so a text ends with as many bytes more.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import types
from numba.core import cgutils as _cgutils
from numba.extending import intrinsic, register_jitable
from numpy.typing import NDArray

from branchline.routing.compiled.kernels import kernel

Function = TypeVar("Function", bound=Callable[..., object])

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int32]

PADDING = 16
"""Bytes that are read at once."""

cgutils: Any = _cgutils
ir = cgutils.ir  # what numba itself writes code with

_BYTE, _INT, _LONG = (ir.IntType(bits) for bits in (8, 32, 64))
_BYTES = ir.VectorType(_BYTE, PADDING)


def address(array: NDArray[Any]) -> int:
    """Where an array's elements are; they lie one behind the other."""
    assert array.flags.c_contiguous
    return int(array.ctypes.data)


def part(function: Function) -> Function:
    """Compile a part of kernels once, whatever constants it is called with, and only as a part.

    `kernel` would compile it anew for each constant that some call names.
    """
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    made: Function = register_jitable(**options)(function)
    return made


def _pointer(builder: Any, width: Any, base: Any, *index: Any) -> Any:
    start = builder.inttoptr(base, width.as_pointer())
    return builder.gep(start, index) if index else start


def _loading(width: Any, *, indexed: bool, signed: bool) -> Any:
    def load(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        found = builder.load(_pointer(builder, width, *values), align=1)
        if width is _LONG:
            return found
        return builder.sext(found, _LONG) if signed else builder.zext(found, _LONG)

    def at(_typing: Any, place: Any) -> Any:
        return types.int64(types.int64), load

    def element(_typing: Any, base: Any, index: Any) -> Any:
        return types.int64(types.int64, types.int64), load

    return intrinsic(element if indexed else at)


def _storing(width: Any) -> Any:
    def store(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        base, index, value = values
        value = value if width is _LONG else builder.trunc(value, width)
        builder.store(value, _pointer(builder, width, base, index), align=1)
        return context.get_dummy_value()

    def element(_typing: Any, base: Any, index: Any, value: Any) -> Any:
        return types.void(types.int64, types.int64, types.int64), store

    return intrinsic(element)


def _until_special(_typing: Any, place: Any) -> Any:
    def find(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        found = builder.load(_pointer(builder, _BYTES, *values), align=1)
        special = builder.icmp_unsigned("==", found, _all(ord('"')))
        special = builder.or_(special, builder.icmp_unsigned("==", found, _all(ord("\\"))))
        # As signed numbers, bytes beyond ASCII are below zero: one comparison finds them and control bytes.
        special = builder.or_(special, builder.icmp_signed("<", found, _all(ord(" "))))
        bits = builder.zext(builder.bitcast(special, ir.IntType(PADDING)), _LONG)
        return builder.cttz(builder.or_(bits, _LONG(1 << PADDING)), ir.IntType(1)(1))

    return types.int64(types.int64), find


def _all(byte: int) -> Any:
    return ir.Constant(_BYTES, [byte] * PADDING)


def _copy_bytes(_typing: Any, target: Any, source: Any, count: Any) -> Any:
    def copy(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        to, start, count = values
        cgutils.raw_memcpy(builder, _pointer(builder, _BYTE, to), _pointer(builder, _BYTE, start), count, 1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), copy


byte_at = cast(Callable[[int], int], _loading(_BYTE, indexed=False, signed=False))
"""The byte at a place."""
word_at = cast(Callable[[int], int], _loading(_LONG, indexed=False, signed=True))
"""Eight bytes at a place, the first of them lowest, as a signed number."""
load_byte = cast(Callable[[int, int], int], _loading(_BYTE, indexed=True, signed=False))
load_int = cast(Callable[[int, int], int], _loading(_INT, indexed=True, signed=True))
load_long = cast(Callable[[int, int], int], _loading(_LONG, indexed=True, signed=True))
"""The element of an array of so many bits: 8 without a sign, 32 and 64 with one."""
store_byte = cast(Callable[[int, int, int], None], _storing(_BYTE))
store_int = cast(Callable[[int, int, int], None], _storing(_INT))
store_long = cast(Callable[[int, int, int], None], _storing(_LONG))
"""Set an element of an array."""
until_special = cast(Callable[[int], int], intrinsic(_until_special))
"""How many bytes from here come before a quote, a backslash, a control character or one beyond ASCII; at most
PADDING."""
copy_bytes = cast(Callable[[int, int, int], None], intrinsic(_copy_bytes))
"""Copy to a place, from another, so many bytes."""


@kernel
def behind(bound: int, low: int, high: int, key: int) -> int:
    """The first place from low to high, in order, whose bound is above the key; high if none is."""
    while low < high:
        middle = (low + high) >> 1
        if load_int(bound, middle) <= key:
            low = middle + 1
        else:
            high = middle
    return low
