"""Trees that come and go: those that came lately as they are, the others in tiers of arrays.

What is added goes to the plain form (`plain.py`). When that has grown to PLAIN_MOST, it becomes a tier
(`tiers.py`), together with all tiers that are not much larger: so there are few, and each tree is laid out
anew only a few times. Of a tier with more dead trees than living ones nothing is kept but these. As long as
there are few trees no compiled loop is loaded.

Predicates have numbers that all forms know, so that one which stands in several is counted once. A number is
not given again while a tier may still know it by another name; when most numbers are nobody's, all tiers are
made one, and everything is numbered anew.

What is found and what is counted hangs on the trees that are there, and not on how they came.

Cost: of adding, the leaves of the tree, a few times; of an event, what the forms take.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from branchline.routing.boolean.plain import PlainTrees
from branchline.routing.boolean.trees import FALSE, TRUE, Node, Predicate, leaves
from branchline.routing.event import Event
from branchline.routing.tiers import tiers_kept

if TYPE_CHECKING:  # compiled loops are imported when the first tier needs them
    from branchline.routing.boolean.tiers import FlatTrees

PLAIN_MOST = 512
"""Trees in the plain form: about as many as take as long as a tier's look at an event."""


class Matched(NamedTuple):
    """What an event fulfils."""

    trees: list[int]
    """The numbers of those that hold."""
    predicates: int
    """How many predicates are fulfilled."""
    evaluated: int
    """How many trees were evaluated."""


class TreeIndex:
    """Distinct trees, each with a number for as long as it is there."""

    def __init__(self, plain_most: int = PLAIN_MOST) -> None:
        self._plain_most = plain_most
        self._numbers: dict[Node, int] = {}
        self._next_number = 0
        self._free: list[int] = []
        self._always: dict[int, None] = {}
        self._plain = PlainTrees()
        self._tiers: list[FlatTrees] = []
        self._dead = 0
        """Trees that are gone and stand in a tier."""
        self._predicates: dict[Predicate, int] = {}
        self._uses = np.zeros(0, np.int32)
        self._next = 0
        self._alive = np.zeros(0, np.bool_)
        """By number, which trees are there."""
        self._known = np.zeros(0, np.int64)
        self._found_predicates = np.zeros(0, np.int32)
        self._found_trees = np.zeros(0, np.int32)
        self._event = 0

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def predicates(self) -> int:
        """How many distinct ones there are."""
        return len(self._predicates)

    @property
    def associations(self) -> int:
        """How many leaves all trees have."""
        return int(self._uses.sum())

    def trees(self) -> Iterator[Node]:
        """All trees, in an order that hangs on how they came."""
        return iter(self._numbers)

    def add(self, tree: Node) -> int:
        """The number of the tree, which is not there yet, from now on."""
        assert tree not in self._numbers, "each tree is there once"
        if self._free:
            number = self._free.pop()
        else:
            number, self._next_number = self._next_number, self._next_number + 1
            self._alive = longer(self._alive, self._next_number)
            self._found_trees = longer(self._found_trees, self._next_number)
        self._numbers[tree] = number
        self._alive[number] = True
        if tree == TRUE:
            self._always[number] = None
        elif tree != FALSE:
            for each in leaves(tree):
                self._use(each)
            self._plain.add(number, tree, self._predicates)
            if len(self._plain) > self._plain_most:
                self._settle()
        return number

    def remove(self, tree: Node) -> None:
        """Take the tree away."""
        number = self._numbers.pop(tree)
        self._alive[number] = False
        if tree == TRUE:
            del self._always[number]
        for each in leaves(tree):
            place = self._predicates[each]
            self._uses[place] -= 1
            if not self._uses[place]:
                del self._predicates[each]
        if number in self._plain:
            self._plain.remove(number)
        elif tree not in (TRUE, FALSE):
            # Its number stays its own for as long as a tier has it.
            self._dead += 1
            if self._dead > max(self._plain_most, len(self)):
                self._settle(everything=True)
            return
        self._free.append(number)

    def match(self, event: Event) -> Matched:
        """The trees that hold for the event; with arrays, if each leaf chooses by itself."""
        fulfilled, holding, evaluated = self._plain.match(event)
        found = [*self._always, *holding]
        if not self._tiers:
            return Matched(found, len(fulfilled), evaluated)
        from branchline.routing.boolean.tiers import Asked

        self._event += 1
        self._known[np.fromiter(fulfilled, np.int64, len(fulfilled))] = self._event
        asked = Asked(
            self._event, self._known, self._uses, self._alive, self._found_predicates, self._found_trees
        )
        predicates = trees = 0
        for tier in self._tiers:
            predicates, trees, more = tier.match(event, asked, predicates, trees)
            evaluated += more
        found += self._found_trees[:trees].tolist()
        return Matched(found, len(fulfilled) + predicates, evaluated)

    def describe(self) -> str:
        """How much there is, and where."""
        lines = [
            f"{len(self)} trees of {self.predicates} predicates in {self.associations} leaves",
            f"  as they are: {len(self._plain)}",
        ]
        lines += [f"  tier {place}: {len(tier)}" for place, tier in enumerate(self._tiers)]
        return "\n".join(lines)

    def _use(self, predicate: Predicate) -> None:
        number = self._predicates.get(predicate)
        if number is None:
            number = self._predicates[predicate] = self._next
            self._next += 1
            self._uses = longer(self._uses, self._next)
            self._known = longer(self._known, self._next)
            self._found_predicates = longer(self._found_predicates, self._next)
        self._uses[number] += 1

    def _settle(self, everything: bool = False) -> None:
        """Make a tier of the plain form and of the tiers that are not much larger, or of all."""
        from branchline.routing.boolean.tiers import FlatTrees

        everything = everything or self._next > 2 * len(self._predicates) + self._plain_most
        waiting, self._plain = list(self._plain.trees()), PlainTrees()
        stay = 0 if everything else tiers_kept([len(tier) for tier in self._tiers], len(waiting))
        for tier in reversed(self._tiers[stay:]):
            kept = [each for each in tier.trees if self._alive[each[0]]]
            dead = [number for number, _ in tier.trees if not self._alive[number]]
            self._dead -= len(dead)
            self._free += reversed(dead)
            waiting = [*kept, *waiting]
        del self._tiers[stay:]
        if everything:
            self._renumber()
        if waiting:
            self._tiers.append(FlatTrees.of(waiting, self._predicates))

    def _renumber(self) -> None:
        """Give predicates the first numbers, now that nobody knows them by the old ones."""
        uses = self._uses[list(self._predicates.values())]
        self._next = len(self._predicates)
        self._predicates = {each: number for number, each in enumerate(self._predicates)}
        self._uses = uses
        self._known = np.zeros(self._next, np.int64)
        self._found_predicates = np.zeros(self._next, np.int32)


Element = TypeVar("Element", bound=np.generic)


def longer(array: NDArray[Element], size: int) -> NDArray[Element]:
    """The array with room for so many, and for more to come; what is new is zero."""
    if size <= array.size:
        return array
    made = np.zeros(max(1024, 2 * size), array.dtype)
    made[: array.size] = array
    return made
