"""How selective a predicate tree is, estimated from how selective its predicates are.

The *share* of a predicate is the part of all events that fulfil it. Of a tree only three numbers are kept:
the least and the largest share that it can have, however predicates hang together, and the one that it has if
they have nothing to do with each other. An AND holds least often if its parts overlap as little as they can,
most often if one lies in all others; with OR it is the other way round.

The *degradation* of a pruning is the largest of the three differences between what the tree was and what it
becomes: about how many more events it lets through.
"""

from collections.abc import Callable
from typing import NamedTuple

from branchline.routing.boolean.trees import AllOf, Node, OneOf, Predicate

Share = Callable[[Predicate], float]


class Selectivity(NamedTuple):
    """The share of events that a tree holds for: the least that it can be, the likely one, the largest."""

    least: float
    likely: float
    largest: float


def estimate(node: Node, share: Share) -> Selectivity:
    """The selectivity of the tree. Parts are taken from the last to the first, as `pruning.py` does it."""
    match node:
        case AllOf(parts):
            least, likely, largest = 1.0, 1.0, 1.0
            for part in reversed(parts):
                each = estimate(part, share)
                least += each.least - 1.0
                likely *= each.likely
                largest = min(largest, each.largest)
            return Selectivity(max(0.0, least), likely, largest)
        case OneOf(parts):
            least, likely, largest = 0.0, 0.0, 0.0
            for part in reversed(parts):
                each = estimate(part, share)
                least = max(least, each.least)
                likely = likely + each.likely - likely * each.likely
                largest += each.largest
            return Selectivity(least, likely, min(1.0, largest))
        case predicate:
            return Selectivity(*[share(predicate)] * 3)


def degradation(before: Selectivity, after: Selectivity) -> float:
    """How much less selective a tree has become."""
    return max(one - other for one, other in zip(after, before, strict=True))
