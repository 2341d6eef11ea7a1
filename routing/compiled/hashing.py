"""Texts by their hashes: where among a dimension's values a text stands, if it does.

One table holds the texts of all dimensions that something must equal. A text stands at most PROBES places
from where its hash says, and its bytes are compared; the first eight of them and the length are in the
table itself, so that a short text is known by one look. Whoever knows the seed can aim at it: a kin with a
text for which no place is that near is left to bisection (`homeless`), so that nothing is gained.

Cost: 32 to 64 bytes a text, and some ten nanoseconds a look-up.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from branchline.routing.compiled.freshness import fresh
from branchline.routing.compiled.kernels import kernel
from branchline.routing.compiled.memory import Bytes, Ints, address, load_int, load_long, store_long
from branchline.routing.compiled.texts import Longs, hash_of, word_of

PROBES = 16
"""How far from its place a text may stand; at half full, one in thousands is further than a few."""

LONG_TEXT = 0xFFFF
"""From so many bytes on a text's length is not kept beside its hash."""

_SEEDS = 4
_MIX = -7046029254386353131  # 2^64 over the golden ratio, as a signed number


class _Table(NamedTuple):
    """The texts, and the table of their hashes that is being made, by addresses."""

    value_first: int
    texts: int
    at: int
    blob: int
    limit: int
    seed: int
    places: int
    slots: int


def hashed(
    kins: NDArray[np.intp], value_first: Ints, texts: int, blob: Bytes, at: Longs
) -> tuple[int, Longs, NDArray[np.bool_]]:
    """The seed that suits these kin best, their table, and which of all kin are homeless."""
    count = int(np.diff(value_first)[kins].sum())
    places = 1 << max(2 * count - 1, 1).bit_length()
    best: tuple[int, int, Longs, NDArray[np.bool_]] | None = None
    for seed in range(_SEEDS):
        slots, homeless = np.zeros(2 * places, np.int64), np.zeros(value_first.size - 1, np.bool_)
        table = _Table(
            address(value_first),
            texts,
            address(at),
            address(blob),
            address(blob) + blob.size,
            seed,
            places,
            address(slots),
        )
        for kin in kins.tolist():
            homeless[kin] = not _place(table, kin)
        if best is None or homeless.sum() < best[0]:
            best = int(homeless.sum()), seed, slots, homeless
        if not best[0]:
            break
    assert best is not None
    return best[1:]


@kernel
def hashed_text(place: int, length: int, limit: int, seed: int, kin: int) -> int:
    """The hash of a text of the kin: its lowest bits say where it belongs, its highest are kept with it."""
    mixed = (hash_of(place, length, limit, seed) + kin) * _MIX
    return mixed ^ (mixed >> 32)


@kernel
def tag_of(mixed: int, length: int) -> int:
    """What is kept of the hash and the length of a text, above the 32 bits of its cell."""
    return ((mixed >> 48) << 48) | (min(length, LONG_TEXT) << 32)


@fresh
@kernel
def _place(table: _Table, kin: int) -> bool:
    """Put the texts of the kin into the table of hashes; whether all found a place."""
    for cell in range(load_int(table.value_first, kin), load_int(table.value_first, kin + 1)):
        start = load_long(table.at, cell - table.texts)
        length = load_long(table.at, cell - table.texts + 1) - start
        mixed = hashed_text(table.blob + start, length, table.limit, table.seed, kin)
        place, left = mixed & (table.places - 1), PROBES
        while left and load_long(table.slots, 2 * place + 1):
            place = (place + 1) & (table.places - 1)
            left -= 1
        if not left:
            return False
        store_long(table.slots, 2 * place, word_of(table.blob + start, length, table.limit))
        store_long(table.slots, 2 * place + 1, tag_of(mixed, length) | (cell + 1))
    return True
