"""An edge of the Routing Tree as it is told and hashed."""

from hashlib import blake2b
from typing import NamedTuple

from branchline.routing.filters import Constraint

ROOT = 0
ALIVE = 2**62
"""The clock of an edge's death for as long as it lives."""


def stable_hash(value: tuple[object, ...]) -> int:
    """A number of 128 bits that is the same in every process, for tuples of numbers, texts and tuples."""
    return int.from_bytes(blake2b(repr(value).encode(), digest_size=16).digest(), "little")


class Edge(NamedTuple):
    """An edge as updates carry it; without a constraint, the child is a node that was there before."""

    parent: int
    number: int
    child: int
    constraint: Constraint | None


def plain(constraint: Constraint) -> tuple[object, ...]:
    """The constraint for hashing: without the names of its fields and its axis it is written much faster."""
    path, axis, what = constraint
    return path, int(axis), what if type(what) is str else tuple(what)


def edge_hash(edge: Edge) -> int:
    """What an edge adds to the digest of a tree."""
    parent, number, child, constraint = edge
    return stable_hash((parent, number, child, None if constraint is None else plain(constraint)))
