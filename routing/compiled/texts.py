"""Texts as bytes in kernels: their hashes, their heads and their order.

Texts compare byte by byte, which for UTF-8 is code point by code point. A text's *head* is its first eight
bytes as one number, with zeros behind its end, made so that heads in order are texts in order, but for
texts that share one. Texts are given by addresses (`memory`), and `limit` is where the memory ends that
they lie in: nothing is read from there on.
"""

import numpy as np
from numpy.typing import NDArray

from branchline.routing.compiled.freshness import fresh
from branchline.routing.compiled.kernels import kernel
from branchline.routing.compiled.memory import (
    PADDING,
    Bytes,
    Ints,
    address,
    byte_at,
    load_int,
    load_long,
    store_byte,
    store_int,
    store_long,
    word_at,
)

Longs = NDArray[np.int64]

_MIX = -7046029254386353131  # 2^64 over the golden ratio, as a signed number
_SIGN = -(1 << 63)
_WORD = 8


def sorted_texts(kin: Ints, blob: Bytes, at: Longs) -> tuple[Ints, NDArray[np.bool_]]:
    """The places of texts in the order of their kin, then of the texts; and which differ from the one
    before.
    """
    size = kin.size
    heads = heads_of(blob, at)
    order, made = np.arange(size, dtype=np.int32), np.empty(size, np.int32)
    is_new = np.ones(size, np.uint8)
    limit = address(blob) + blob.size
    places = [address(each) for each in (kin, at, heads, order, made, is_new)]
    if _sort(size, address(blob), limit, *places):
        order = made
    return order, is_new.view(np.bool_)


def heads_of(blob: Bytes, at: Longs) -> Longs:
    """The head of each text of a blob."""
    heads = np.empty(at.size - 1, np.int64)
    _heads(heads.size, address(heads), address(at), address(blob), address(blob) + blob.size)
    return heads


def packed(blob: Bytes, at: Longs, chosen: NDArray[np.int32]) -> tuple[Bytes, Longs]:
    """The chosen texts, one behind the other."""
    places = np.zeros(chosen.size + 1, np.int64)
    np.cumsum(at[chosen + 1] - at[chosen], out=places[1:])
    out = np.zeros(int(places[-1]) + PADDING, np.uint8)
    _pack(blob, at, chosen, out, places)
    return out, places


@kernel
def word_of(place: int, count: int, limit: int) -> int:
    """Up to eight bytes, the first of them lowest, zeros behind them."""
    if place + _WORD <= limit:
        word = word_at(place)
        return word if count >= _WORD else word & ((1 << (_WORD * count)) - 1)
    word = 0
    for at in range(min(count, _WORD)):
        word |= byte_at(place + at) << (_WORD * at)
    return word


@kernel
def turned(word: int) -> int:
    """The eight bytes in the other order, so that numbers with a sign are in the order of the bytes."""
    word = ((word >> 8) & 0x00FF00FF00FF00FF) | ((word & 0x00FF00FF00FF00FF) << 8)
    word = ((word >> 16) & 0x0000FFFF0000FFFF) | ((word & 0x0000FFFF0000FFFF) << 16)
    return (((word >> 32) & 0xFFFFFFFF) | (word << 32)) ^ _SIGN


@kernel
def head_of(place: int, length: int, limit: int) -> int:
    """The head of a text."""
    return turned(word_of(place, length, limit))


@kernel
def hash_of(place: int, length: int, limit: int, seed: int) -> int:
    """A hash of the text. Whoever knows the seed can aim at it, so nothing may rest on its being even."""
    mixed = (seed + length) * _MIX
    for at in range(0, length, _WORD):
        mixed = (mixed ^ word_of(place + at, length - at, limit)) * _MIX
        mixed ^= mixed >> 32
    return mixed


@kernel
def order_of(one: int, length: int, limit: int, other: int, size: int, end: int) -> int:
    """Whether a text comes before another, is the same, or comes behind: below zero, zero, above."""
    shared = min(length, size)
    for at in range(0, shared, _WORD):
        mine, theirs = word_of(one + at, shared - at, limit), word_of(other + at, shared - at, end)
        if mine != theirs:
            return -1 if turned(mine) < turned(theirs) else 1
    return length - size


@fresh
@kernel
def _heads(size: int, heads: int, at: int, blob: int, limit: int) -> None:
    for place in range(size):
        start = load_long(at, place)
        store_long(heads, place, head_of(blob + start, load_long(at, place + 1) - start, limit))


@kernel
def _compare(blob: int, limit: int, kin: int, at: int, heads: int, one: int, other: int) -> int:
    """How two texts of a blob compare, by their kin first."""
    if load_int(kin, one) != load_int(kin, other):
        return -1 if load_int(kin, one) < load_int(kin, other) else 1
    if load_long(heads, one) != load_long(heads, other):
        return -1 if load_long(heads, one) < load_long(heads, other) else 1
    mine, theirs = load_long(at, one), load_long(at, other)
    return order_of(
        blob + mine,
        load_long(at, one + 1) - mine,
        limit,
        blob + theirs,
        load_long(at, other + 1) - theirs,
        limit,
    )


@fresh
@kernel
def _sort(
    size: int, blob: int, limit: int, kin: int, at: int, heads: int, order: int, made: int, is_new: int
) -> bool:
    """A merge sort from small runs to large ones; whether the result is in `made`."""
    is_made = False
    width = 1
    while width < size:
        for low in range(0, size, 2 * width):
            middle, high = min(low + width, size), min(low + 2 * width, size)
            left, right = low, middle
            for place in range(low, high):
                if right >= high or (
                    left < middle
                    and _compare(blob, limit, kin, at, heads, load_int(order, left), load_int(order, right))
                    <= 0
                ):
                    store_int(made, place, load_int(order, left))
                    left += 1
                else:
                    store_int(made, place, load_int(order, right))
                    right += 1
        order, made = made, order
        is_made = not is_made
        width *= 2
    for place in range(1, size):
        one, other = load_int(order, place - 1), load_int(order, place)
        store_byte(is_new, place, _compare(blob, limit, kin, at, heads, one, other) != 0)
    return is_made


@kernel
def _pack(blob: Bytes, at: Longs, chosen: Ints, out: Bytes, places: Longs) -> None:
    for place in range(chosen.size):
        start, to = at[chosen[place]], places[place]
        for byte in range(places[place + 1] - to):
            out[to + byte] = blob[start + byte]
