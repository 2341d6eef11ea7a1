"""The children of a node, by kin: those of one dimension that are compared with each other.

Siblings are edges, sorted by where their constraints start: ranges by their low cuts, words by themselves.
The starts stand beside the edges, so that bisecting needs no look at the tree.

Cost: two list entries an edge; finding is a bisection, adding and removing moves what follows.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias, overload

from branchline.routing.dimensions import Axis
from branchline.routing.expression import Path
from branchline.routing.filters import Constraint, Contains
from branchline.routing.intervals import Cut

Kin: TypeAlias = tuple[Path, Axis, bool]
"""What children are compared by: their dimension, and whether they are words."""

Start: TypeAlias = Cut | str
"""The low cut of a range, or a word: what siblings are sorted by."""


def kin(constraint: Constraint) -> Kin:
    """The children that the constraint is compared with."""
    return constraint[0], constraint[1], type(constraint) is Contains


def start(constraint: Constraint) -> Start:
    """Where the constraint stands among its kin."""
    what = constraint[2]
    return what if type(what) is str else what[0]


class Starts(Protocol):
    """The starts of siblings: a list, or what looks each up when it is asked for."""

    def __len__(self) -> int: ...

    def __getitem__(self, place: int, /) -> Any: ...

    def __delitem__(self, place: int, /) -> None: ...

    def __iter__(self) -> Iterator[Any]: ...

    def insert(self, place: int, start: Start, /) -> None: ...


class Siblings(Sequence[int]):
    """The edges to children of one kin, sorted, and where each starts."""

    __slots__ = ("edges", "starts")

    def __init__(self, edges: list[int] | memoryview, starts: Starts) -> None:
        self.edges = edges
        """A list, or a slice of what was stored, which is never changed."""
        self.starts = starts

    def __len__(self) -> int:
        return len(self.edges)

    def __iter__(self) -> Iterator[int]:
        return iter(self.edges)

    @overload
    def __getitem__(self, place: int) -> int: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[int]: ...

    def __getitem__(self, place: int | slice) -> int | Sequence[int]:
        return self.edges[place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def add(self, edge: int, start: Start) -> None:
        place = bisect_right(self.starts, start)
        assert isinstance(self.edges, list)
        self.edges.insert(place, edge)
        self.starts.insert(place, start)

    def remove(self, edge: int, start: Start) -> None:
        place = bisect_left(self.starts, start)
        assert isinstance(self.edges, list)
        # Words are different and ranges disjoint; but while nodes move, two may start alike.
        while self.edges[place] != edge:
            place += 1
        del self.edges[place]
        del self.starts[place]

    def place(self, start: Start) -> int | None:
        """The place of the one that starts there, None if none does."""
        place = bisect_left(self.starts, start)
        return place if place < len(self.starts) and self.starts[place] == start else None

    def parts_of(self, word: str) -> list[int]:
        """The places, of siblings that are words, of those that are part of the word, in order.

        Of few siblings each is asked; of many, all parts of the word are looked for.
        """
        size = len(word)
        if len(self.edges) <= size * size:
            return [place for place, its in enumerate(self.starts) if its in word]
        parts = {word[low:high] for low in range(size + 1) for high in range(low, size + 1)}
        return sorted(place for part in parts if (place := self.place(part)) is not None)


Children: TypeAlias = dict[Kin, Siblings]
"""A node's edges by kin."""


def in_order(children: Children) -> Iterable[int]:
    """All edges, sorted by kin and then by where they start."""
    if len(children) == 1:
        (siblings,) = children.values()
        return siblings.edges
    return (edge for _, siblings in sorted(children.items()) for edge in siblings.edges)
