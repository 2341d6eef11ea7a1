"""Updates with right checksums and digests that no Tree Optimizer tells: refused, or like any other."""

import os
from collections import defaultdict
from functools import reduce
from operator import xor
from typing import Any

import bad_inputs as bad
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from branchline.routing.dimensions import Axis
from branchline.routing.event import Event
from branchline.routing.filters import Constraint, Contains, Range
from branchline.routing.intervals import Interval, before, overlaps, point
from branchline.routing.prefix import telling
from branchline.routing.prefix.edges import Edge, edge_hash
from branchline.routing.prefix.possible import NODES_BEYOND, is_constraint
from branchline.routing.prefix.siblings import kin
from branchline.routing.prefix.tree import ROOT, Tree
from branchline.routing.prefix.trees import Trees
from branchline.routing.prefix.updates import Snapshot, Update, Version, digest_of_numbered
from branchline.routing.prefix.vocabulary import Fit, Vocabulary

EXAMPLES = {"everyday": 25, "thorough": 150, "soak": 5_000, "filters": 5_000}
often = settings(max_examples=EXAMPLES[os.environ.get("HYPOTHESIS_PROFILE", "everyday")])

CONSTRAINTS: tuple[Constraint, ...] = (
    Range(("a",), Axis.NUMBER, point(1)),
    Range(("a",), Axis.NUMBER, Interval(before(0), before(5))),
    Range(("a",), Axis.NUMBER, Interval(before(5), before(9))),
    Range(("b",), Axis.TEXT, point("x")),
    Contains(("b",), Axis.TEXT, "x"),
)
edges = st.lists(
    st.builds(
        Edge,
        st.integers(0, 4),
        st.integers(0, 3),
        st.integers(0, 5),
        st.none() | st.sampled_from(CONSTRAINTS),
    ),
    max_size=4,
)
numbered = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from([(each,) for each in CONSTRAINTS])), max_size=2
).map(tuple)
steps = st.lists(
    st.tuples(edges, numbered, st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=3)),
    min_size=1,
    max_size=5,
)


def a_tree(vocabulary: Vocabulary) -> None:
    """Whatever hangs in it hangs below the root, once, and of siblings that are ranges none overlap."""
    tree = vocabulary.tree
    below = list(tree.below(ROOT))
    assert len(set(below)) == len(below) == tree.nodes
    for node in [ROOT, *below]:
        by_kin: dict[Any, list[Constraint]] = defaultdict(list)
        for siblings in tree.children(node).values():
            for edge in siblings:
                constraint = tree.constraint(tree.child(edge))
                by_kin[kin(constraint)].append(constraint)
        for (_, _, are_words), constraints in by_kin.items():
            for place, one in enumerate(constraints):
                for other in constraints[:place]:
                    assert one != other if are_words else not overlaps(one[2], other[2])  # type: ignore[arg-type]


def an_update(vocabulary: Vocabulary, born: list[Edge], beside: Any, died: Any) -> Update | None:
    """The update with its right digests, None if nobody could work them out."""
    tree, version = vocabulary.tree, vocabulary.version
    clock = version.clock
    gone = [tree.find(parent, number, clock) for parent, number in dict.fromkeys(died)]
    if None in gone:
        return None
    dead = [tree.edge(edge) for edge in gone if edge is not None]
    known = [edge._replace(constraint=edge.constraint or tree.known(edge.child)) for edge in born]
    digest = reduce(xor, map(edge_hash, [*dead, *known]), vocabulary.digest) ^ digest_of_numbered(beside)
    ended = tuple((edge.parent, edge.number) for edge in dead)
    after = Version(version.incarnation, clock + 1)
    return Update(0, after, vocabulary.digest, digest, ended, tuple(born), beside, ())


@often
@given(steps, st.booleans())
def test_what_is_applied_is_a_tree_and_what_is_none_changes_nothing(script: Any, stored: bool) -> None:
    """A snapshot, then updates, of edges as they come, each told as bytes with right checksum and digests; in
    memory, or stored and opened again after each.
    """
    trees = Trees()
    for number, (born, beside, died) in enumerate(script):
        if stored:
            trees = Trees(stored=[memoryview(each) for each in trees.stored()])
        vocabulary = trees.vocabularies[0]
        told: Update | Snapshot | None
        if number == 0:
            digest = reduce(xor, map(edge_hash, born), digest_of_numbered(beside))
            told = Snapshot(0, Version(1, 1), digest, 0, 1, tuple(born), beside)
        else:
            told = an_update(vocabulary, born, beside, died)
        read = None if told is None else telling.decode(telling.encode(told))
        if read is None:
            continue
        before_, nodes = vocabulary.digest, vocabulary.tree.nodes
        fit = trees.apply(read)
        assert fit in (Fit.APPLIED, Fit.FOREIGN, Fit.GAP)
        if fit is not Fit.APPLIED:
            assert (vocabulary.digest, vocabulary.tree.nodes) == (before_, nodes)
        a_tree(vocabulary)
        prefix = trees.enter(Event({"a": 1, "b": "x"}))
        assert trees.follow(0, prefix.parts[0]) is not None
        trees.stored()


@pytest.mark.parametrize(
    "each", [each for each in bad.updates() if each.where == bad.PASSED_OVER], ids=lambda e: e.name
)
def test_what_is_passed_over_leaves_no_trace(each: bad.Bad) -> None:
    """Neither in the tree nor in what is kept for the state."""
    trees = Trees()
    told = telling.decode(each.make() or b"")
    assert told is not None
    assert trees.apply(told) in (Fit.FOREIGN, Fit.GAP)
    assert trees.vocabularies[0].tree.nodes == 0 and list(trees.told()) == []


def test_nodes_that_were_never_told_take_room_within_bounds() -> None:
    """A number somewhat above those that are known is taken, and one far above is not."""
    for node, fit in ((NODES_BEYOND, Fit.APPLIED), (NODES_BEYOND + 10, Fit.FOREIGN)):
        edge = Edge(0, 0, node, CONSTRAINTS[0])
        trees = Trees()
        assert trees.apply(Snapshot(0, Version(1, 1), edge_hash(edge), 0, 1, (edge,), ())) is fit


def test_every_constraint_of_a_tree_is_possible() -> None:
    """Those that are used here are; an empty tree has none."""
    assert all(map(is_constraint, CONSTRAINTS)) and Tree().known(0) is None
