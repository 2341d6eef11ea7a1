"""Pruning until as much is saved of what matching counts as is asked for, in percent; see `prune.py`."""

from branchline.routing.boolean.pruning import Target
from branchline.routing.optimise.protocols import Optimisation
from branchline.routing.optimise.prune import Pruning, share


def make(number: int | None) -> Optimisation:
    """Pruning that saves so many percent of the predicates that events are expected to fulfil."""
    return Pruning(Target(time=share(number)))
