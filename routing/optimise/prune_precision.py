"""Pruning of whatever lets few more events through, of a thousand; see `prune.py`."""

from branchline.routing.boolean.pruning import Target
from branchline.routing.optimise.protocols import Optimisation
from branchline.routing.optimise.prune import Pruning

PER_MILLE = 1
"""What is accepted if no number is said."""


def make(number: int | None) -> Optimisation:
    """All prunings that are expected to let at most so many more of a thousand events through."""
    return Pruning(Target(precision=(PER_MILLE if number is None else number) / 1_000))
