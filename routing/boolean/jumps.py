"""Predicate trees as rows of leaves with jumps, so that evaluating one needs neither stack nor recursion.

The leaves stand from left to right. Each says which leaf is asked next if it is fulfilled, and which if not;
in place of a leaf, HOLDS or FAILS ends it. So AND and OR take no room, and only leaves that matter are asked:

    a AND (b OR c)    a: yes -> b, no -> FAILS    b: yes -> HOLDS, no -> c    c: yes -> HOLDS, no -> FAILS

A leaf that was pruned has no place in its row, and an AND or OR that has one child left leaves no trace. So
two trees that are the same after pruning have the same row.

Cost: 8 bytes a leaf; to make it, some ns a node. Evaluating asks each leaf once at most, since jumps lead to
the right.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from branchline.routing.boolean.forest import AND, LEAF, Flags, Ints, Longs, Nodes
from branchline.routing.compiled.freshness import fresh
from branchline.routing.compiled.kernels import kernel

Shorts = NDArray[np.int16]

HOLDS, FAILS = -1, -2


class Jumps(NamedTuple):
    """The leaves of trees, and where each leads."""

    first: Longs
    """For each tree where its first leaf stands; one more at the end."""
    leaf: Ints
    """The number of its predicate."""
    yes: Shorts
    no: Shorts
    """The place of a leaf in its own tree."""
    least: Shorts
    """For each tree the least number of its leaves that are fulfilled wherever it holds."""


def jumps(nodes: Nodes, gone: Flags | None = None) -> Jumps:
    """The trees without what is gone. Of TRUE and FALSE there is no leaf."""
    if gone is None:
        gone = np.zeros(len(nodes.kind), np.bool_)
    sizes = np.add.reduceat(np.append((nodes.kind == LEAF) & ~gone, False), nodes.first[:-1], dtype=np.int64)
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    made = Jumps(
        first,
        np.empty(first[-1], np.int32),
        np.empty(first[-1], np.int16),
        np.empty(first[-1], np.int16),
        np.empty(len(sizes), np.int16),
    )
    widest = int(np.diff(nodes.first).max(initial=0))
    _lead(nodes, gone, made, *(np.empty(widest + 1, np.int64) for _ in range(4)))
    return made


@fresh
@kernel
def _lead(nodes: Nodes, gone: Flags, out: Jumps, before: Longs, yes: Longs, no: Longs, least: Longs) -> None:
    """Fill the rows; the last arrays have room for what is known of each node of a tree.

    `before` counts the leaves in front of a node. A child behind which its parent has no more of them is its
    last one, and leads where the parent does.
    """
    for tree in range(nodes.first.size - 1):
        start, size = nodes.first[tree], nodes.first[tree + 1] - nodes.first[tree]
        count = 0
        for node in range(size):
            before[node] = count
            if nodes.kind[start + node] == LEAF and not gone[start + node]:
                count += 1
            least[node] = 0 if nodes.kind[start + node] == AND else -1
        before[size] = count
        for node in range(size):
            at = start + node
            if gone[at]:
                continue
            above = nodes.parent[at]
            yes[node], no[node] = HOLDS, FAILS
            if above >= 0:
                yes[node], no[node] = yes[above], no[above]
                behind = before[nodes.end[at]]
                if behind < before[nodes.end[start + above]]:
                    if nodes.kind[start + above] == AND:
                        yes[node] = behind
                    else:
                        no[node] = behind
            if nodes.kind[at] == LEAF:
                row = out.first[tree] + before[node]
                out.leaf[row], out.yes[row], out.no[row] = nodes.predicate[at], yes[node], no[node]
        for node in range(size - 1, -1, -1):
            at = start + node
            if gone[at]:
                continue
            if nodes.kind[at] == LEAF:
                least[node] = 1
            above = nodes.parent[at]
            if above < 0:
                continue
            if nodes.kind[start + above] == AND:
                least[above] += least[node]
            elif least[above] < 0 or least[node] < least[above]:
                least[above] = least[node]
        out.least[tree] = least[0]
