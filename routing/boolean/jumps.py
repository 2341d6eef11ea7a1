"""A predicate tree as a row of leaves with jumps, so that evaluating it needs neither stack nor recursion.

The leaves stand from left to right. Each says which leaf is asked next if it is fulfilled, and which if not;
in place of a leaf, HOLDS or FAILS ends it. So AND and OR take no room, and only leaves that matter are asked:

    a AND (b OR c)    a: yes -> b, no -> FAILS    b: yes -> HOLDS, no -> c    c: yes -> HOLDS, no -> FAILS

Cost: three numbers a leaf; evaluating asks each leaf once at most, since jumps lead to the right.
"""

from typing import NamedTuple

from branchline.routing.boolean.trees import AllOf, Node, OneOf, Predicate

HOLDS, FAILS = -1, -2


class Jumps(NamedTuple):
    """The leaves of a tree, and where each leads."""

    leaves: list[Predicate]
    yes: list[int]
    no: list[int]


def jumps(root: Node) -> Jumps:
    """The tree's leaves, of a tree that is neither TRUE nor FALSE."""
    made = Jumps([], [], [])
    # From right to left, so that a part knows where it leads; places count from the end until all are known.
    pending: list[tuple[Node, int, int]] = [(root, HOLDS, FAILS)]
    count = size(root)
    end = count
    while pending:
        node, yes, no = pending.pop()
        if isinstance(node, AllOf | OneOf):
            # Where a part but the last leads on to is the first leaf of the next one.
            start = end - size(node)
            for part in node.parts:
                start += size(part)
                last = part is node.parts[-1]
                if isinstance(node, AllOf):
                    pending.append((part, yes if last else start, no))
                else:
                    pending.append((part, yes, no if last else start))
        else:
            end -= 1
            made.leaves.append(node)
            made.yes.append(yes)
            made.no.append(no)
    for column in made:
        column.reverse()
    return made


def size(node: Node) -> int:
    """How many leaves the tree has."""
    pending, count = [node], 0
    while pending:
        part = pending.pop()
        if isinstance(part, AllOf | OneOf):
            pending.extend(part.parts)
        else:
            count += 1
    return count
