"""Filters are matched as trees of predicates, whatever Boolean expressions they are, without their covers.

A tree is never wider than the cover of its filter, and where the cover had to be widened it is narrower.
Trees that are the same are there once, with all their owners.

Counted are the predicates that events fulfil and the trees that had to be evaluated.
"""

from branchline.routing.boolean.index import TreeIndex
from branchline.routing.boolean.trees import Node, of_cover, tree_of
from branchline.routing.event import Event
from branchline.routing.expression import Anything
from branchline.routing.methods.protocols import Interest, Matching
from branchline.routing.prefix.forwarding import Found, Wanted
from branchline.routing.prefix.places import Owner
from branchline.routing.prefix.trees import Trees

FULFILLED = "predicates_fulfilled"
EVALUATED = "trees_evaluated"


class BooleanMatching:
    """Trees and their owners, counted."""

    def __init__(self) -> None:
        self._index = TreeIndex()
        self._numbers: dict[Node, int] = {}
        self._owners: dict[int, dict[Owner, int]] = {}

    def add(self, interest: Interest) -> None:
        self.add_tree(_tree(interest), interest.owner)

    def remove(self, interest: Interest) -> None:
        self.remove_tree(_tree(interest), interest.owner)

    def add_tree(self, tree: Node, owner: Owner) -> None:
        """The owner is interested in what the tree holds for."""
        number = self._numbers.get(tree)
        if number is None:
            number = self._numbers[tree] = self._index.add(tree)
            self._owners[number] = {}
        owners = self._owners[number]
        owners[owner] = owners.get(owner, 0) + 1

    def remove_tree(self, tree: Node, owner: Owner) -> None:
        """The owner no longer is; for another reason it still may be."""
        number = self._numbers[tree]
        owners = self._owners[number]
        owners[owner] -= 1
        if not owners[owner]:
            del owners[owner]
            if not owners:
                del self._owners[number], self._numbers[tree]
                self._index.remove(tree)

    def match(self, event: Event, wanted: Wanted | None = None) -> Found:
        found = Found()
        trees, found.counts[FULFILLED], found.counts[EVALUATED] = self._index.match(event)
        for number in trees:
            owners = self._owners[number]
            found.certain.update(owners if wanted is None else (each for each in owners if each in wanted))
        if event.met_array:
            found.certain, found.doubtful = set(), found.certain
        return found

    def describe(self) -> str:
        """How many trees there are, and of what."""
        return self._index.describe()


def _tree(interest: Interest) -> Node:
    """What is asked of events: of an entry that has no expression of its own, its cover."""
    compiled = interest.compiled
    if interest.tree is not None:
        return interest.tree
    if isinstance(compiled.expression, Anything):
        return of_cover(compiled.cover)
    return tree_of(compiled.expression).root


def make(number: int | None, trees: Trees) -> Matching:
    """Matching of Boolean expressions as they are."""
    return BooleanMatching()
