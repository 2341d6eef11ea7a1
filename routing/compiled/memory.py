"""Raw reading of arrays in kernels: what the scanner does to every byte.

Indexing an array in a kernel first asks whether the index counts from the end, which costs as much as the
reading itself. These do not ask, and check nothing: whoever calls them knows that the place is there. The
wide ones read up to `PADDING` bytes from their place, so a text ends with as many bytes more.
"""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba import types
from numba.core import cgutils as _cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int32]

PADDING = 16
"""Bytes that are read at once."""

cgutils: Any = _cgutils
ir = cgutils.ir  # what numba itself writes code with

_BYTE, _LONG = ir.IntType(8), ir.IntType(64)
_BYTES = ir.VectorType(_BYTE, PADDING)


def _pointer(context: Any, builder: Any, array: Any, value: Any, index: Any) -> Any:
    return builder.gep(context.make_array(array)(context, builder, value).data, [index])


def _item(_typing: Any, array: Any, index: Any) -> Any:
    def load(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        pointer = _pointer(context, builder, array, *values)
        return context.unpack_value(builder, array.dtype, pointer)

    return array.dtype(array, types.intp), load


def _byte_at(_typing: Any, text: Any, index: Any) -> Any:
    def load(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.zext(builder.load(_pointer(context, builder, text, *values)), _LONG)

    return types.int64(text, types.intp), load


def _word_at(_typing: Any, text: Any, index: Any) -> Any:
    def load(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        pointer = _pointer(context, builder, text, *values)
        return builder.load(builder.bitcast(pointer, _LONG.as_pointer()), align=1)

    return types.int64(text, types.intp), load


def _until_special(_typing: Any, text: Any, index: Any) -> Any:
    def find(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        pointer = _pointer(context, builder, text, *values)
        found = builder.load(builder.bitcast(pointer, _BYTES.as_pointer()), align=1)
        special = builder.icmp_unsigned("==", found, _all(ord('"')))
        special = builder.or_(special, builder.icmp_unsigned("==", found, _all(ord("\\"))))
        # As signed numbers, bytes beyond ASCII are below zero: one comparison finds them and control bytes.
        special = builder.or_(special, builder.icmp_signed("<", found, _all(ord(" "))))
        bits = builder.zext(builder.bitcast(special, ir.IntType(PADDING)), _LONG)
        return builder.cttz(builder.or_(bits, _LONG(1 << PADDING)), ir.IntType(1)(1))

    return types.int64(text, types.intp), find


def _all(byte: int) -> Any:
    return ir.Constant(_BYTES, [byte] * PADDING)


def _copy_bytes(_typing: Any, target: Any, at: Any, source: Any, start: Any, count: Any) -> Any:
    def copy(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        into = _pointer(context, builder, target, values[0], values[1])
        out_of = _pointer(context, builder, source, values[2], values[3])
        cgutils.raw_memcpy(builder, into, out_of, values[4], 1)
        return context.get_dummy_value()

    return types.void(target, types.intp, source, types.intp, types.intp), copy


item = cast(Callable[[Ints, int], int], intrinsic(_item))
"""An array's element."""
byte_at = cast(Callable[[Bytes, int], int], intrinsic(_byte_at))
"""A byte of a text, as a wide number."""
word_at = cast(Callable[[Bytes, int], int], intrinsic(_word_at))
"""Eight bytes of a text, the first of them lowest, as a signed number."""
until_special = cast(Callable[[Bytes, int], int], intrinsic(_until_special))
"""How many bytes from here come before a quote, a backslash, a control character or one beyond ASCII; at most
PADDING."""
copy_bytes = cast(Callable[[Bytes, int, Bytes, int, int], None], intrinsic(_copy_bytes))
"""Copy so many bytes to a place of a text, from a place of another."""
