"""Filters filed under ranges: in lists along a segment tree over the ranks of a dimension.

A range of ranks is the union of a few segments, at most two of each level, and a rank is in one segment of
each level: so it meets each range that it is in once. Nodes are numbered: cells first, which have lists of
their own, then the segments of each dimension that needs them. A bit for each node says whether it has a
list.

Cost: a look for each level that is used; 4 to 24 bytes for each segment of a range.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchline.routing.compiled.choosing import TREE
from branchline.routing.compiled.kernels import kernel
from branchline.routing.compiled.memory import Ints
from branchline.routing.compiled.texts import Longs

_LEVELS = 64
"""Segments that a range can be in: two for each level of a tree over less than 2^32 ranks."""


def in_nodes(
    made: dict[str, NDArray[Any]], single: Ints, several: Ints, points: Ints, ranges: Ints, value_first: Ints
) -> tuple[Longs, Ints]:
    """File some filters under points and others under ranges: the nodes in order, with the filters."""
    counts = np.diff(value_first[: made["filed"].size + 1]).astype(np.int64)
    widths = np.where(made["filed"] & TREE, 2 * (2 * counts + 1), 0)
    tree = np.cumsum(np.append(value_first[-1], widths))
    node, row = np.empty(several.size * _LEVELS, np.int64), np.empty(several.size * _LEVELS, np.int32)
    levels = np.zeros(counts.size, np.int64)
    count = _divide(several, ranges, value_first, tree, node, row, levels)
    node = np.concatenate([value_first[points[:, 0]] + (points[:, 1] >> 1), node[:count]])
    row = np.concatenate([single, row[:count]])
    order = np.argsort(node, kind="stable")
    node, row = node[order], row[order]
    used = np.unique(node)
    bits = np.zeros((int(tree[-1]) >> 6) + 1, np.uint64)
    np.bitwise_or.at(bits, used >> 6, np.uint64(1) << (used & 63).astype(np.uint64))
    before = np.zeros(bits.size, np.int32)
    before[1:] = np.cumsum(np.bitwise_count(bits[:-1]))
    made |= {"tree": tree[:-1], "levels": levels, "bits": bits.view(np.int64), "before": before}
    return node, row


@kernel
def _divide(
    several: Ints,
    ranges: Ints,
    value_first: Ints,
    tree: Longs,
    node: Longs,
    row: Ints,
    levels: Longs,
) -> int:
    """Divide ranges into segments: their nodes, with the filters; how many."""
    count = 0
    for place in range(several.size):
        slot = ranges[place, 0]
        width = 2 * (value_first[slot + 1] - value_first[slot]) + 1
        left, right, level = ranges[place, 1] + width, ranges[place, 2] + width + 1, 0
        while left < right:
            if left & 1:
                node[count], row[count] = tree[slot] + left, several[place]
                levels[slot] |= 1 << level
                count += 1
                left += 1
            if right & 1:
                right -= 1
                node[count], row[count] = tree[slot] + right, several[place]
                levels[slot] |= 1 << level
                count += 1
            left >>= 1
            right >>= 1
            level += 1
    return count
