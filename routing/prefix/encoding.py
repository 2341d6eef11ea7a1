"""Constraints as bytes, exactly: what is read equals what was written, types included.

A constraint is the number of its kin in a table, and then its word, or the two cuts of its interval. A cut is
one byte, its kind and its side, and then its value:

    none       nothing: text that is no instant or no address
    integer    its bytes, of any size, two's complement, lowest first, length before them
    float      its 8 bytes
    text       UTF-8, length before it
    instant    the seconds as an integer, the digits of the fraction as text
    address    a byte for the family, the number as an integer

The high cut of a point does not repeat the value. Lengths and numbers of kin are varints.
"""

import struct
from typing import Any

from branchline.routing.addresses import Address
from branchline.routing.dimensions import LONG, NONE, Axis, Long
from branchline.routing.filters import Constraint, Contains, Range
from branchline.routing.instants import Instant
from branchline.routing.intervals import HIGHEST, LOWEST, Cut, Interval
from branchline.routing.prefix.siblings import Kin
from branchline.routing.prefix.varints import put, take

_NONE, _INTEGER, _FLOAT, _TEXT, _INSTANT, _ADDRESS = range(6)
_LOWEST, _HIGHEST, _SAME_VALUE = 0x40, 0x41, 0x42
_DOUBLE = struct.Struct("<d")


def encode_kin(kin: Kin) -> bytes:
    """A row of the table of kin."""
    path, axis, are_words = kin
    out = bytearray([axis, are_words])
    put(out, len(path))
    for segment in path:
        _put_text(out, segment)
    return bytes(out)


def decode_kin(data: memoryview, at: int) -> tuple[Kin, int]:
    """The row that begins here, and where the next one does."""
    axis, are_words = Axis(data[at]), bool(data[at + 1])
    count, at = take(data, at + 2)
    path = []
    for _ in range(count):
        segment, at = _take_text(data, at)
        path.append(segment)
    return (tuple(path), axis, are_words), at


def encode_constraint(constraint: Constraint, kin: int) -> bytes:
    """The constraint, its kin given by its number in the table."""
    out = bytearray()
    put(out, kin)
    if isinstance(constraint, Contains):
        _put_text(out, constraint.word)
    else:
        low, high = map(_encode_cut, constraint.interval)
        # A point's two cuts differ in the side only, which is the lowest bit of the first byte.
        is_same = len(low) > 1 and low[0] + 1 == high[0] and low[1:] == high[1:]
        out += low + (bytes([_SAME_VALUE]) if is_same else high)
    return bytes(out)


def decode_constraint(data: memoryview, at: int, kins: list[Kin]) -> Constraint:
    """The constraint that begins here."""
    number, at = take(data, at)
    path, axis, are_words = kins[number]
    if are_words:
        return Contains(path, axis, _take_text(data, at)[0])
    low, at = _decode_cut(data, at)
    if data[at] == _SAME_VALUE:
        return Range(path, axis, Interval(low, (0, low[1], 1)))
    return Range(path, axis, Interval(low, _decode_cut(data, at)[0]))


def _encode_cut(cut: Cut) -> bytes:
    if len(cut) == 1:
        return bytes([_LOWEST if cut == LOWEST else _HIGHEST])
    _, value, side = cut
    kind, encode = _KINDS[type(value)]
    out = bytearray([kind << 1 | side])
    encode(out, value)
    return bytes(out)


def _decode_cut(data: memoryview, at: int) -> tuple[Cut, int]:
    first = data[at]
    if first >= _LOWEST:
        return (LOWEST if first == _LOWEST else HIGHEST), at + 1
    value, at = _DECODE[first >> 1](data, at + 1)
    return (0, value, first & 1), at


def _put_nothing(_out: bytearray, value: tuple[()]) -> None:
    assert value == NONE, "a plain tuple is no value of any axis"


def _take_nothing(_data: memoryview, at: int) -> tuple[tuple[()], int]:
    return NONE, at


def _put_integer(out: bytearray, value: int) -> None:
    data = value.to_bytes((value.bit_length() + 8) // 8, "little", signed=True)
    put(out, len(data))
    out += data


def _take_integer(data: memoryview, at: int) -> tuple[int, int]:
    length, at = take(data, at)
    return int.from_bytes(data[at : at + length], "little", signed=True), at + length


def _take_number(data: memoryview, at: int) -> tuple[int, int]:
    number, at = _take_integer(data, at)
    return (number if -LONG < number < LONG else Long(number)), at


def _put_float(out: bytearray, value: float) -> None:
    out += _DOUBLE.pack(value)


def _take_float(data: memoryview, at: int) -> tuple[float, int]:
    return _DOUBLE.unpack_from(data, at)[0], at + _DOUBLE.size


def _put_text(out: bytearray, text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    put(out, len(data))
    out += data


def _take_text(data: memoryview, at: int) -> tuple[str, int]:
    length, at = take(data, at)
    return str(data[at : at + length], "utf-8", "surrogatepass"), at + length


def _put_instant(out: bytearray, value: Instant) -> None:
    _put_integer(out, value.seconds)
    _put_text(out, value.fraction)


def _take_instant(data: memoryview, at: int) -> tuple[Instant, int]:
    seconds, at = _take_integer(data, at)
    fraction, at = _take_text(data, at)
    return Instant(seconds, fraction), at


def _put_address(out: bytearray, value: Address) -> None:
    out.append(value.version)
    _put_integer(out, value.number)


def _take_address(data: memoryview, at: int) -> tuple[Address, int]:
    number, end = _take_integer(data, at + 1)
    return Address(data[at], number), end


# By exact type: a Boolean is no rank, though Python takes it for an integer.
_KINDS: dict[type, tuple[int, Any]] = {
    tuple: (_NONE, _put_nothing),
    int: (_INTEGER, _put_integer),
    Long: (_INTEGER, _put_integer),
    float: (_FLOAT, _put_float),
    str: (_TEXT, _put_text),
    Instant: (_INSTANT, _put_instant),
    Address: (_ADDRESS, _put_address),
}
_DECODE: tuple[Any, ...] = (
    _take_nothing,
    _take_number,
    _take_float,
    _take_text,
    _take_instant,
    _take_address,
)
