"""The bftree: Bloom filters cut into h parts of m/h bits, a level of a tree for each part.

Theory of operation. A Bloom filter is the path of its parts; whatever has the same bits ends at the same
leaf, where its owners are counted. For an event the tree is walked from the root on: of a node's children
those are followed whose bits are all set in the event's part of that level. So a leaf is reached if and only
if all its bits are the event's.

Cost: a comparison of m/h bits for each child of each node that is reached. Few parts make nodes with very
many children; many parts make long paths of empty parts, since few bits are set.
"""

from collections.abc import Collection, Iterator
from typing import Any

from branchline.routing.bloom.bits import Shape
from branchline.routing.prefix.places import Owner

PARTS = 8
"""Levels, unless a Bloom filter has fewer bits: with half as many, nodes have far more children,
with many more, paths are long."""


class BfTree:
    """Owners by the Bloom filters of what they ask for."""

    def __init__(self, shape: Shape, parts: int = PARTS) -> None:
        self._parts = min(parts, shape.bits)
        self._width = shape.bits // self._parts
        assert self._width * self._parts == shape.bits, "parts are of equal size"
        self._root: dict[Any, Any] = {}
        """By their parts, dictionaries of the next level; on the last level, owners and their counts."""
        self._size = 0

    def __len__(self) -> int:
        """How many different Bloom filters there are."""
        return self._size

    def add(self, bits: Collection[int], owner: Owner) -> None:
        """The owner asks for what has these bits, for one reason more."""
        node = self._root
        for part in self._cut(bits):
            node = node.setdefault(part, {})
        self._size += not node
        node[owner] = node.get(owner, 0) + 1

    def remove(self, bits: Collection[int], owner: Owner) -> None:
        """For one reason less."""
        path = [self._root]
        parts = self._cut(bits)
        for part in parts:
            path.append(path[-1][part])
        path[-1][owner] -= 1
        if path[-1][owner]:
            return
        del path[-1][owner]
        self._size -= not path[-1]
        for node, part in zip(reversed(path[:-1]), reversed(parts), strict=True):
            if node[part]:
                return
            del node[part]

    def find(self, bits: Collection[int]) -> Iterator[dict[Owner, int]]:
        """The owners of all Bloom filters that have no other bits than these."""
        unset = [~part for part in self._cut(bits)]
        last = len(unset) - 1
        pending = [(0, self._root)]
        while pending:
            level, node = pending.pop()
            beyond = unset[level]
            followed = [below for part, below in node.items() if not part & beyond]
            if level == last:
                yield from followed
            else:
                pending += [(level + 1, below) for below in followed]

    def nodes(self) -> int:
        """How many nodes there are below the root."""
        level, total = [self._root], 0
        for _ in range(self._parts):
            level = [below for node in level for below in node.values()]
            total += len(level)
        return total

    def describe(self) -> str:
        """How large it is, for people."""
        return f"{self._size} Bloom filters in a bftree of {self._parts} levels, {self.nodes()} nodes"

    def _cut(self, bits: Collection[int]) -> list[int]:
        parts, width = [0] * self._parts, self._width
        for bit in bits:
            parts[bit // width] |= 1 << bit % width
        return parts
