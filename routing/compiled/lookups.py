"""Whole numbers by whole numbers, in one flat array that kernels look into.

Open addressing: a slot is a key and, beside it, its value, so that a look touches one line of memory. At most
half of the slots are used. Nothing is ever taken out: what is gone has the value `NOTHING`, and is left out
when the array has to grow.

Cost: 32 to 64 bytes a key; finding is one look, rarely a second one next to it.
"""

from typing import Final

import numpy as np

from branchline.routing.compiled.kernels import inlined, kernel
from branchline.routing.compiled.prefixes import Longs

NOTHING: Final = -1
"""The value of a key that is not there. All others are from 0 on."""

_FREE = -(2**63)
_SPREAD = -7046029254386353131
"""The golden ratio as a fraction of 2^64: multiples of it lie far apart."""
_SMALLEST = 16


class Lookup:
    """A dictionary for kernels."""

    def __init__(self) -> None:
        self.slots = _slots(_SMALLEST)
        """What `find` looks into; another array after some changes."""
        self._used = 0

    def put(self, keys: Longs, values: Longs) -> None:
        """Give each key its value, in place of one that it had. No key is the least number of 64 bits."""
        if 2 * (self._used + len(keys)) > len(self.slots) // 2:
            self._grow(len(keys))
        self._used += _put(self.slots, keys, values)

    def drop(self, keys: Longs) -> None:
        """These keys are there no more."""
        self.put(keys, np.full(len(keys), NOTHING, np.int64))

    def get(self, key: int) -> int:
        """The value of the key, `NOTHING` if it has none."""
        return find(self.slots, key)

    def items(self) -> tuple[Longs, Longs]:
        """The keys that are there, and their values."""
        keys, values = self.slots[::2], self.slots[1::2]
        kept = (keys != _FREE) & (values != NOTHING)
        return keys[kept], values[kept]

    def _grow(self, more: int) -> None:
        keys, values = self.items()
        size = _SMALLEST
        while size < 2 * (len(keys) + more):
            size *= 2
        self.slots = _slots(size)
        self._used = _put(self.slots, keys, values)


def _slots(size: int) -> Longs:
    made = np.full(2 * size, NOTHING, np.int64)
    made[::2] = _FREE
    return made


@inlined
def find(slots: Longs, key: int) -> int:
    """The value of the key, `NOTHING` if it has none."""
    last = len(slots) - 2
    slot = mixed(key) << 1 & last
    while slots[slot] != key:
        if slots[slot] == _FREE:
            return NOTHING
        slot = slot + 2 & last
    return int(slots[slot + 1])


@inlined
def mixed(key: int) -> int:
    """A hash of the key; its lowest bits say as much as any others."""
    product = key * _SPREAD
    return product ^ product >> 32


@kernel
def _put(slots: Longs, keys: Longs, values: Longs) -> int:
    """How many slots are used now that were free."""
    last = len(slots) - 2
    used = 0
    for place in range(len(keys)):
        slot = mixed(keys[place]) << 1 & last
        while slots[slot] != keys[place] and slots[slot] != _FREE:
            slot = slot + 2 & last
        if slots[slot] == _FREE:
            slots[slot] = keys[place]
            used += 1
        slots[slot + 1] = values[place]
    return used
