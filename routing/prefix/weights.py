"""How far the tree of now is from the one last told: wdiff, kept up with every change.

A node on level l weighs base^(l-1); children of the root are on level 1, the root weighs nothing. wdiff is
the weight of the edges that are in one of two trees only, over the weight of all edges of both; 0 for two
empty trees. So changes near the root weigh more, equal trees give 0, and trees with nothing in common 1.

For every node the sums over what hangs below it are kept, of all edges and of the new ones, each weighed by
its distance from the node. Hanging a subtree somewhere else is then one step for each node above, however
large it is. Cost: O(level) a change.
"""

from array import array

from branchline.routing.prefix.tree import ROOT, Tree


class Weights:
    """The weights of a tree that is being changed, against the tree as it was when it was last told."""

    def __init__(self, base: float = 0.5) -> None:
        self._base = base
        self._all = array("d", [0.0])
        self._new = array("d", [0.0])
        self._told = 0.0
        self._gone = 0.0

    @property
    def difference(self) -> float:
        """Wdiff between the tree that was told and that of now."""
        both = self._told + self._all[ROOT]
        # A tree with nodes has one on level 1, which weighs 1; less is what rounding left of empty trees.
        return max(0.0, self._new[ROOT] + self._gone) / both if both > 0.5 else 0.0

    def attached(self, tree: Tree, node: int) -> None:
        """The node, with what hangs below it, now hangs on a new edge."""
        while len(self._all) <= node:
            self._all.append(0.0)
            self._new.append(0.0)
        self._add(tree, node, 1.0 + self._base * self._all[node], 1.0 + self._base * self._new[node])

    def detaching(self, tree: Tree, node: int, was_told: bool, told_level: int) -> None:
        """The node is about to leave its edge; on which level that was in the tree told, if it was there."""
        self._add(
            tree,
            node,
            -(1.0 + self._base * self._all[node]),
            -((0.0 if was_told else 1.0) + self._base * self._new[node]),
        )
        if was_told:
            self._gone += self._base ** (told_level - 1)

    def told(self) -> None:
        """The tree of now is told."""
        self._told = self._all[ROOT]
        self._gone = 0.0
        self._new = array("d", bytes(8 * len(self._all)))

    def _add(self, tree: Tree, node: int, every: float, new: float) -> None:
        while node != ROOT:
            node = tree.parent(node)
            self._all[node] += every
            self._new[node] += new
            every *= self._base
            new *= self._base
