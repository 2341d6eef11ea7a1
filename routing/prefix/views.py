"""The tree as it was at an earlier version, and the tree for people.

A view shows the children of today for nodes whose children have not changed since its version, and for others
a list made from the edges that lived then, once.
"""

from typing import TYPE_CHECKING

from branchline.routing.describing import describe_constraint
from branchline.routing.prefix.edges import ROOT, Edge
from branchline.routing.prefix.siblings import Children, in_order

if TYPE_CHECKING:
    from branchline.routing.prefix.tree import Tree


class View:
    """The tree as it was at one version."""

    def __init__(self, tree: "Tree", version: int) -> None:
        self._tree = tree
        self._version = version
        self._made: dict[int, Children] = {}

    def children(self, node: int) -> Children:
        """The children at that version, by kin."""
        tree = self._tree
        if not tree.changed_since(node, self._version):
            return tree.children(node)
        if node not in self._made:
            self._made[node] = tree.sort(tree.lived(node, self._version))
        return self._made[node]


def describe_tree(tree: "Tree", shape: "Tree | View") -> list[str]:
    """A line for each node, indented by its level: its child number and its constraint."""
    lines: list[str] = []
    pending = [(ROOT, 0)]
    while pending:
        node, level = pending.pop()
        if level:
            number = tree.number(tree.edge_above(node)) if tree.edge_above(node) >= 0 else "-"
            lines.append(f"{'  ' * level}{number} {describe_constraint(tree.constraint(node))}")
        below = [(tree.child(edge), level + 1) for edge in in_order(shape.children(node))]
        pending += reversed(below)
    return lines


def edges_at(tree: "Tree", version: int) -> list[Edge]:
    """The edges of the tree as it was at a version that is still kept, each after the one above it."""
    shape = View(tree, version)
    edges: list[Edge] = []
    pending = [ROOT]
    while pending:
        children = shape.children(pending.pop())
        here = [edge for _, siblings in sorted(children.items()) for edge in siblings]
        edges += map(tree.edge, here)
        pending += [tree.child(edge) for edge in reversed(here)]
    return edges
