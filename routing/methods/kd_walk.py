"""The walk through a k-d tree, compiled: `kd_tree.py` says what it does.

Cost: a few ns for each node and each box; some µs for the call.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from branchline.routing.compiled.freshness import fresh
from branchline.routing.compiled.kernels import kernel
from branchline.routing.compiled.memory import Ints, address, load_int, part, store_int

_ASKED = 3
"""Numbers of a test or a check: dimension, low and high."""


class Walked(NamedTuple):
    """What a walk has found."""

    boxes: list[int]
    visited: int
    """Nodes."""
    checked: int
    """Boxes of leaves."""


class _Layout(NamedTuple):
    """The arrays of a tree as the loop takes them: addresses."""

    skip: int
    test_first: int
    tests: int
    box_first: int
    boxes: int
    check_first: int
    checks: int


class Arrays(NamedTuple):
    """A tree in flat arrays. What a node or a box has is from its first to that of the next."""

    skip: Ints
    """For each node the first that is not below it."""
    test_first: Ints
    tests: Ints
    """Dimension, low and high of each."""
    box_first: Ints
    boxes: Ints
    """The boxes of leaves, by number; inner nodes have none."""
    check_first: Ints
    checks: Ints
    """The same as tests, for each box in its place."""


class Flat:
    """A tree to walk through."""

    def __init__(self, *lists: Sequence[Any]) -> None:
        """The tree whose arrays have these elements, in their order."""
        self.arrays = Arrays(*(np.array(each, np.int32).reshape(-1) for each in lists))
        self._layout = _Layout(*map(address, self.arrays))

    def walk(self, least: Ints, most: Ints) -> Walked:
        """The boxes in which an event lies that has these ranks on each dimension, or may if they differ."""
        found = np.empty(len(self.arrays.boxes), np.int32)
        count, visited, checked = _walk(
            self._layout, len(self.arrays.skip), address(least), address(most), address(found)
        )
        return Walked(found[:count].tolist(), visited, checked)


@part
def _holds(asked: int, first: int, last: int, least: int, most: int) -> bool:
    """Whether all that is asked, from first to last, may hold."""
    for place in range(first, last):
        dimension = load_int(asked, _ASKED * place)
        if load_int(asked, _ASKED * place + 1) >= load_int(most, dimension):
            return False
        if load_int(least, dimension) > load_int(asked, _ASKED * place + 2):
            return False
    return True


@fresh
@kernel
def _walk(tree: _Layout, nodes: int, least: int, most: int, out: int) -> tuple[int, int, int]:
    """Put the boxes that are found behind each other. Gives how many, the nodes and the boxes looked at."""
    node = visited = checked = found = 0
    while node < nodes:
        visited += 1
        tests, end = load_int(tree.test_first, node), load_int(tree.test_first, node + 1)
        if not _holds(tree.tests, tests, end, least, most):
            node = load_int(tree.skip, node)
            continue
        for place in range(load_int(tree.box_first, node), load_int(tree.box_first, node + 1)):
            checked += 1
            checks, last = load_int(tree.check_first, place), load_int(tree.check_first, place + 1)
            if _holds(tree.checks, checks, last, least, most):
                store_int(out, found, load_int(tree.boxes, place))
                found += 1
        node += 1
    return found, visited, checked
