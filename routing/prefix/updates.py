"""What the Tree Optimizer tells brokers about one part of the tree: updates, and snapshots of the whole."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import xor
from typing import NamedTuple

from branchline.routing.filters import Filter
from branchline.routing.prefix.tree import Edge, plain, stable_hash


class Version(NamedTuple):
    """Which life of the optimizer, and the number of its update. No tree has yet been told at clock 0."""

    incarnation: int
    clock: int


NO_VERSION = Version(0, 0)


@dataclass(frozen=True, slots=True)
class Update:
    """The difference between two versions of a part that follow each other."""

    part: int
    version: Version
    digest_before: int
    digest: int
    died: tuple[tuple[int, int], ...]
    """Edges that are no more, by parent and number."""
    born: tuple[Edge, ...]
    """New edges, in the order in which they were made; a node that moved comes without its constraint."""
    numbered: tuple[tuple[int, Filter], ...]
    """Filters that are beside the tree from now on, by their overflow numbers."""
    unnumbered: tuple[int, ...]
    """Overflow numbers that are no more."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A piece of a whole version of a part: the pieces together, in order, build the tree from nothing."""

    part: int
    version: Version
    digest: int
    piece: int
    pieces: int
    edges: tuple[Edge, ...]
    """Living edges, each after the one above it."""
    numbered: tuple[tuple[int, Filter], ...]


def in_pieces(
    part: int,
    version: Version,
    digest: int,
    edges: Iterable[Edge],
    numbered: Iterable[tuple[int, Filter]],
    size: int,
) -> list[Snapshot]:
    """A whole version as pieces of so many things, the first one even if it is empty."""
    things: list[Edge | tuple[int, Filter]] = [*edges, *numbered]
    pieces = [things[start : start + size] for start in range(0, len(things), size)] or [[]]
    return [
        Snapshot(
            part,
            version,
            digest,
            place,
            len(pieces),
            tuple(each for each in piece if isinstance(each, Edge)),
            tuple(each for each in piece if not isinstance(each, Edge)),
        )
        for place, piece in enumerate(pieces)
    ]


def digest_of_numbered(numbered: Iterable[tuple[int, Filter]]) -> int:
    """A number of 128 bits for the filters beside a tree, whatever their order."""
    return reduce(xor, (stable_hash((number, *map(plain, filter_))) for number, filter_ in numbered), 0)


def part_of(filter_: Filter, parts: int) -> int:
    """The part of the tree that a filter belongs to, by its first dimension; without one, the first part.

    Trees under different first dimensions never touch, so each part can be built by itself.
    """
    return stable_hash(filter_[0].dimension) % parts if filter_ and parts > 1 else 0
