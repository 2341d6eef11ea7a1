"""The sbstree: Bloom filters as the bits that are set, a node of a tree for each bit.

Theory of operation. A Bloom filter is the path of its set bits, ascending, and its owners are counted at the
node where it ends, which may be above others. For an event the children are followed whose bit is the
event's. So a node is reached if and only if all bits above it, and its own, are.

Cost: for each node that is reached, a look-up for each of its children or for each of the event's bits,
whichever are fewer. It is good where few bits are set: a bftree pays for those that are not, too.
"""

from collections.abc import Collection, Iterator

from branchline.routing.bloom.bits import Shape
from branchline.routing.prefix.places import Owner


class _Node:
    __slots__ = ("below", "owners")

    def __init__(self) -> None:
        self.below: dict[int, _Node] = {}
        self.owners: dict[Owner, int] = {}


class SbsTree:
    """Owners by the Bloom filters of what they ask for."""

    def __init__(self, shape: Shape) -> None:
        self._root = _Node()
        self._size = 0

    def __len__(self) -> int:
        """How many different Bloom filters there are."""
        return self._size

    def add(self, bits: Collection[int], owner: Owner) -> None:
        """The owner asks for what has these bits, for one reason more."""
        node = self._root
        for bit in bits:
            below = node.below.get(bit)
            if below is None:
                below = node.below[bit] = _Node()
            node = below
        self._size += not node.owners
        node.owners[owner] = node.owners.get(owner, 0) + 1

    def remove(self, bits: Collection[int], owner: Owner) -> None:
        """For one reason less."""
        path = [self._root]
        for bit in bits:
            path.append(path[-1].below[bit])
        owners = path[-1].owners
        owners[owner] -= 1
        if owners[owner]:
            return
        del owners[owner]
        self._size -= not owners
        for bit in reversed(tuple(bits)):
            node = path.pop()
            if node.owners or node.below:
                return
            del path[-1].below[bit]

    def find(self, bits: Collection[int]) -> Iterator[dict[Owner, int]]:
        """The owners of all Bloom filters that have no other bits than these."""
        among = frozenset(bits)
        pending = [self._root]
        while pending:
            node = pending.pop()
            if node.owners:
                yield node.owners
            below = node.below
            if len(below) < len(among):
                pending += [child for bit, child in below.items() if bit in among]
            else:
                pending += [below[bit] for bit in among if bit in below]

    def nodes(self) -> int:
        """How many nodes there are below the root."""
        pending, total = [self._root], -1
        while pending:
            total += 1
            pending += pending.pop().below.values()
        return total

    def describe(self) -> str:
        """How large it is, for people."""
        return f"{self._size} Bloom filters in an sbstree of {self.nodes()} nodes"
