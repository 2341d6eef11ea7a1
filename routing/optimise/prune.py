"""Pruning: entries are made simpler, so that they match more and are cheaper to ask (`boolean/pruning.py`).

This is post-pruning: a broker prunes what it keeps of other homes, for itself. What it is told and tells on
stays as it is. Each entry by itself becomes simpler, whatever others there are: with trees a matching that
evaluates them is asked for less, and a filter of a cover loses constraints.

`prune(80)` takes 80 % of all predicates away, those first without which least is let through.
`prune-time(80)` takes as many as save 80 % of those that events are expected to fulfil, which is what
matching counts.
`prune-precision(5)` takes all without which an entry lets through at most 5 more of a thousand events.

Pruning goes by how many events fulfil a predicate, which a broker counts (`learned.py`). An entry keeps its
cover, which holds for all that is wanted of it: whoever compares covers later does so rightly.

Cost: that of pruning, for all entries of a home whenever some of them have changed.
"""

from collections.abc import Sequence
from dataclasses import replace

from branchline.routing.boolean.pruning import Target, apply, prunings
from branchline.routing.boolean.trees import AllOf, Node, is_leaf
from branchline.routing.optimise.entries import Entry, in_order, node_of, plain, separate
from branchline.routing.optimise.protocols import Optimisation, Selectivity, Smaller

PRUNED = "predicates_pruned"
PERCENT = 50
"""What is pruned if no number is said."""


class Pruning:
    """Take predicates away up to a target."""

    learns = True

    def __init__(self, target: Target) -> None:
        self._target = target

    def optimise(self, entries: Sequence[Entry], selectivity: Selectivity) -> Smaller:
        entries = separate(entries)
        trees = [node_of(entry) for entry in entries]
        done = prunings(trees, selectivity.share, self._target)
        made = apply(trees, done)
        left = [
            entry if before is after else _pruned(entry, after)
            for entry, before, after in zip(entries, trees, made, strict=True)
        ]
        return Smaller(in_order(left), {PRUNED: int(done.leaves.sum())})


def _pruned(entry: Entry, tree: Node) -> Entry:
    if entry.tree is not None:
        return replace(entry, tree=tree)
    # Of a filter in normal form, what is left is in normal form.
    parts = tree.parts if isinstance(tree, AllOf) else (tree,)
    return plain(tuple(part for part in parts if is_leaf(part)))


def make(number: int | None) -> Optimisation:
    """Pruning of so many percent of all predicates."""
    return Pruning(Target(memory=share(number)))


def share(number: int | None) -> float:
    """Percent as a share."""
    return min(100, PERCENT if number is None else number) / 100
