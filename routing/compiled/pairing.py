"""Filters filed under two points at once: what an event has of both is found by a hash.

An event has many pairs of cells, and nearly all are filed under by nobody: a Bloom filter says so most
often. A cell that is the lower of no pair, or the higher of none, is not even looked at as such (`roles`).
The pairs of one bucket are sorted, so that many which somebody aims at it are bisected.

Cost: a nanosecond or two for a pair that is not there; 20 to 30 bytes for one that is.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchline.routing.compiled.kernels import kernel
from branchline.routing.compiled.memory import Ints
from branchline.routing.compiled.texts import Longs

FIRST, SECOND = 1, 2
"""What a cell is in pairs: the lower, the higher."""

BLOOM_BITS = 8
"""Bits of the Bloom filter for each bucket."""

_MIX = -7046029254386353131  # 2^64 over the golden ratio, as a signed number


def in_pairs(
    made: dict[str, NDArray[Any]], row: Ints, one: Ints, other: Ints, value_first: Ints
) -> tuple[Longs, Ints, Longs]:
    """File filters under two checks: the pairs by their buckets, with the filters, and where each pair
    begins.
    """
    cells = int(value_first[-1])
    mine, theirs = (value_first[each[:, 0]] + (each[:, 1].astype(np.int64) >> 1) for each in (one, other))
    pair = np.minimum(mine, theirs) * cells + np.maximum(mine, theirs)
    buckets = 1 << max(pair.size, 1).bit_length()
    bucket, bloom = np.empty_like(pair), np.zeros((buckets * BLOOM_BITS >> 6) + 1, np.int64)
    _hash(pair, buckets, bucket, bloom)
    order = np.lexsort((pair, bucket))
    pair, row, bucket = pair[order], row[order], bucket[order]
    starts = np.flatnonzero(np.diff(pair, prepend=-1))
    roles = np.zeros(cells + 1, np.uint8)
    roles[pair // max(cells, 1)] |= FIRST
    roles[pair % max(cells, 1)] |= SECOND
    made |= {
        "roles": roles,
        "bloom": bloom,
        "bucket": np.searchsorted(bucket[starts], np.arange(buckets + 1)).astype(np.int32),
        "pair": pair[starts],
    }
    return pair, row, starts


@kernel
def pair_hash(pair: int) -> int:
    """A hash of a pair; those of one bucket are bisected, so nothing is gained by aiming at it."""
    mixed = pair * _MIX
    return (mixed ^ (mixed >> 29)) >> 8


@kernel
def _hash(pair: Longs, buckets: int, bucket: Longs, bloom: Longs) -> None:
    """Find the bucket of each pair, and note the pair in the Bloom filter."""
    for place in range(pair.size):
        found = pair_hash(pair[place])
        bucket[place] = found & (buckets - 1)
        bit = found & (buckets * BLOOM_BITS - 1)
        bloom[bit >> 6] |= 1 << (bit & 63)
