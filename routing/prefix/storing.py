"""A tree as bytes that can be written to a file, mapped and read where they lie.

`pack` folds in all that has changed since the tree was loaded. What no kept version can show is left out:
runs of edges have only those that live or died after the oldest version, and a node that was in the tree and
is in none of its kept versions loses its constraint. Its row stays, and so does the row of every edge: rows
are what nodes and edges are called.

The same tree, packed again after loading, gives the same bytes.

Cost: `pack` is O(n log n) in nodes and edges, some ten microseconds each; `load` is that of `stored.py`.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate

from branchline.routing.filters import Constraint
from branchline.routing.prefix.encoding import encode_constraint, encode_kin
from branchline.routing.prefix.layout import Facts, numbers, write
from branchline.routing.prefix.siblings import Kin, kin
from branchline.routing.prefix.stored import EDGE_COLUMNS, NODE_COLUMNS, SECTIONS, Stored
from branchline.routing.prefix.tree import Cells, Tree

_NOWHERE = -1


def pack(tree: Tree) -> bytes:
    """The tree, its kept versions included."""
    columns = tree.columns()
    edges = _kept_edges(columns, tree.oldest)
    at, kins, constraints = _pack_constraints(_kept_constraints(tree, columns, edges))
    sections = {name: numbers(columns[name]) for name in (*EDGE_COLUMNS, *NODE_COLUMNS)}
    sections["constraint_at"] = numbers(at)
    first, group_kin, group_start, ordered = _groups(tree, kins)
    sections |= {"first_group": numbers(first), "group_kin": numbers(group_kin)}
    sections |= {"group_start": numbers(group_start), "sorted_edges": numbers(ordered)}
    first, ordered = _by_number(columns, edges)
    sections |= {"first_numbered": numbers(first), "numbered_edges": numbers(ordered)}
    blobs = {"kins": b"".join(map(encode_kin, kins)), "constraints": constraints}
    assert (*sections, *blobs) == SECTIONS
    return write(Facts(tree.digest, tree.nodes, tree.oldest), {**sections, **blobs})


def load(buffer: bytes | memoryview) -> Tree:
    """The tree that was packed, read from the buffer for as long as it lives. May raise UnreadableTree."""
    return Tree(Stored(memoryview(buffer)))


def _kept_edges(columns: dict[str, Cells], oldest: int) -> list[int]:
    """The edges that some kept version has."""
    lives = zip(columns["born"], columns["died"], strict=True)
    return [edge for edge, (born, died) in enumerate(lives) if died > oldest and born < died]


def _kept_constraints(
    tree: Tree, columns: dict[str, Cells], edges: Sequence[int]
) -> Iterator[Constraint | None]:
    """Each node's constraint: of nodes that a kept version has, and of those that were in no version yet."""
    children = columns["child"]
    kept = {children[edge] for edge in edges}
    gone = set(children) - kept
    return (None if node in gone else tree.known(node) for node in range(len(columns["edge_of"])))


def _pack_constraints(constraints: Iterator[Constraint | None]) -> tuple[list[int], dict[Kin, int], bytes]:
    """Where each node's constraint begins, the kin that occur, and the constraints, equal ones once."""
    at: list[int] = []
    kins: dict[Kin, int] = {}
    known: dict[bytes, int] = {}
    out = bytearray()
    for constraint in constraints:
        if constraint is None:
            at.append(_NOWHERE)
            continue
        data = encode_constraint(constraint, kins.setdefault(kin(constraint), len(kins)))
        if data not in known:
            known[data] = len(out)
            out += data
        at.append(known[data])
    return at, kins, bytes(out)


def _groups(tree: Tree, kins: dict[Kin, int]) -> tuple[list[int], list[int], list[int], list[int]]:
    """The living children of each node as groups of one kin each, and the edges in each group."""
    first, group_start = [0], [0]
    group_kin: list[int] = []
    ordered: list[int] = []
    for node in range(len(tree.columns()["edge_of"])):
        for each, siblings in sorted(tree.children(node).items()):
            ordered += siblings
            group_kin.append(kins[each])
            group_start.append(len(ordered))
        first.append(len(group_kin))
    return first, group_kin, group_start, ordered


def _by_number(columns: dict[str, Cells], edges: list[int]) -> tuple[list[int], list[int]]:
    """The kept edges below each node, by number."""
    parents, given = columns["parent"], columns["number"]
    counts = [0] * (len(columns["edge_of"]) + 1)
    for edge in edges:
        counts[parents[edge] + 1] += 1
    return list(accumulate(counts)), sorted(edges, key=lambda edge: (parents[edge], given[edge]))
