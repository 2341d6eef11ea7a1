"""Stored trees: what was packed and loaded is the same tree, whatever then happens to it."""

import struct
from copy import deepcopy
from typing import Any

import pytest
from amounts import often
from filter_world import dependent, normal
from hypothesis import given
from hypothesis import strategies as st
from prefix_runs import Run
from prefix_scripts import Script, Step, cover, every_step, pools, scripts

from branchline.routing.addresses import Address
from branchline.routing.compiling import Compiled
from branchline.routing.dimensions import NONE, Axis
from branchline.routing.filters import Constraint, Contains, Range
from branchline.routing.instants import Instant
from branchline.routing.intervals import HIGHEST, LOWEST, Interval, after, before, point
from branchline.routing.prefix import stored
from branchline.routing.prefix.layout import FORMAT_VERSION, UnreadableTree
from branchline.routing.prefix.optimizer import Optimizer, Settings
from branchline.routing.prefix.storing import load, pack
from branchline.routing.prefix.tree import ROOT, Tree, View, describe_tree


def again(tree: Tree) -> Tree:
    """The tree, packed and loaded; that packs to the same bytes."""
    data = pack(tree)
    loaded = load(data)
    assert pack(loaded) == data
    return loaded


def seen(tree: Tree) -> list[Any]:
    """All that the tree can be asked for, now and in the versions that it keeps."""
    nodes = range(len(tree.columns()["edge_of"]))
    versions = range(tree.oldest, max(tree.columns()["born"], default=0) + 1)
    told: list[Any] = [
        tree.digest,
        tree.nodes,
        tree.oldest,
        describe_tree(tree, tree),
        list(tree.below(ROOT)),
    ]
    for node in nodes:
        told.append((tree.is_alive(node), tree.edge_above(node), shown(tree, tree, node)))
        if tree.is_alive(node) and node != ROOT:
            above = tree.edge_above(node)
            told.append((tree.constraint(node), tree.level(node), tree.parent(node), tree.edge(above)))
            told.append((tree.number(above), tree.born(above), tree.is_alive_edge(above)))
    for version in versions:
        view = tree.at(version)
        for node in nodes:
            told.append((shown(tree, view, node), tree.changed_since(node, version)))
            told.append([tree.find(node, number, version) for number in range(8)])
    return told


def shown(tree: Tree, shape: Tree | View, node: int) -> list[Any]:
    found = shape.children(node)
    return [
        (kin, [(edge, tree.constraint(tree.child(edge))) for edge in found[kin]]) for kin in sorted(found)
    ]


def change(optimizer: Optimizer, pool: tuple[Compiled, ...], held: list[Compiled], step: Step) -> list[Any]:
    """A change that the step decides; what is told of it."""
    kind, choice = step
    if kind in "saei":
        held.append(pool[choice % len(pool)])
        optimizer.subscribe(held[-1].cover)
    elif kind in "ulr" and held:
        optimizer.unsubscribe(held.pop(choice % len(held)).cover)
    elif kind in "th":
        return optimizer.updates(choice)
    return optimizer.snapshots() if kind == "p" else []


@often
@given(pools(normal(dependent)), st.lists(every_step, max_size=30), st.lists(every_step, max_size=20))
def test_a_loaded_tree_is_the_same_and_stays_so(
    pool: tuple[Compiled, ...], before: list[Step], after: list[Step]
) -> None:
    """Packed and loaded, it shows the same in all versions; the same changes then have the same effect."""
    optimizer, held = Optimizer(1, Settings(limit_ms=0)), list[Compiled]()
    for step in before:
        change(optimizer, pool, held, step)
    twin, twin_held = deepcopy(optimizer), held.copy()
    twin.part(0).tree = again(optimizer.part(0).tree)
    assert seen(twin.part(0).tree) == seen(optimizer.part(0).tree)
    for step in after:
        assert change(twin, pool, twin_held, step) == change(optimizer, pool, held, step)
    assert seen(twin.part(0).tree) == seen(optimizer.part(0).tree)
    assert pack(twin.part(0).tree) == pack(optimizer.part(0).tree)
    assert seen(again(twin.part(0).tree)) == seen(optimizer.part(0).tree)


class StoredRun(Run):
    """A run in which everybody's trees are packed and loaded now and then."""

    def step(self, step: Step) -> None:
        super().step(step)
        if step.choice % 3 == 0:
            for part in map(self.optimizer.part, range(self.script.settings.parts)):
                part.tree = again(part.tree)
            for broker in self.brokers:
                for vocabulary in broker.forwarder.trees.vocabularies:
                    vocabulary.tree = again(vocabulary.tree)
                    vocabulary._views = {}


@often
@given(scripts(normal(dependent)))
def test_prefix_forwarding_works_on_loaded_trees(script: Script) -> None:
    """All that holds for optimizers and brokers holds where their trees are loaded again and again."""
    StoredRun(script).play()


@given(scripts(normal(dependent)))
def test_what_is_kept_decoded_is_bounded_and_makes_no_difference(script: Script) -> None:
    """The same with room for a single constraint and a single node."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored, "DECODED_MAX", 1)
        patch.setattr(stored, "CHILDREN_MAX", 1)
        StoredRun(script).play()


A_TEXT = ("größe", "a.b", "")
VALUES = (
    *(0, -1, 127, 128, -129, 2**63, -(10**30), 10**400, 2.5, -0.0, 5e-324, 1e300),
    *("", "a", "ab\0", "𝄞", "x" * 300),
    *(Instant(-62135596800, ""), Instant(1794830400, "000000000001")),
    *(Address(4, 2**32 - 1), Address(6, 2**128 - 1), NONE),
)
CONSTRAINTS: tuple[Constraint, ...] = (
    *(Range(A_TEXT, Axis.NUMBER, point(value)) for value in VALUES),
    *(Range(("a",), Axis.TEXT, Interval(after(value), HIGHEST)) for value in VALUES),
    *(Range(("a",), Axis.INSTANT, Interval(LOWEST, before(value))) for value in VALUES),
    Range(("a",), Axis.NUMBER, Interval(before(1), after(1.0))),
    Range(("a",), Axis.NUMBER, Interval(after(0), after(7))),
    *(Contains(("a",), axis, word) for axis in (Axis.TEXT, Axis.FOLDED) for word in ("", "a", "ß" * 200)),
)


def test_every_constraint_is_stored_exactly() -> None:
    """Integers of any size, floats, texts, instants, addresses and what is none: values and types."""
    tree = Tree()
    for constraint in CONSTRAINTS:
        tree.new_node(constraint)
    loaded = again(tree)
    assert [repr(loaded.known(node)) for node in range(len(CONSTRAINTS) + 1)] == [
        repr(constraint) for constraint in (None, *CONSTRAINTS)
    ]
    assert loaded.known(len(CONSTRAINTS) + 1) is None


def test_what_no_version_has_is_not_stored() -> None:
    """A node that was taken away and forgotten leaves its row and nothing else."""
    tree = Tree()
    constraint = cover("a = 'gone'")[0][0]
    tree.attach(ROOT, tree.new_node(constraint), 1)
    tree.detach(1, 2)
    assert b"gone" in pack(tree) and again(tree).find(ROOT, 0, 1) == 0
    tree.forget(2)
    assert b"gone" not in pack(tree) and again(tree).find(ROOT, 0, 1) is None
    assert tree.attach(ROOT, tree.new_node(constraint), 3) == 1


def stored_tree() -> bytes:
    optimizer = Optimizer(1)
    for text in ("x > 5 AND y = 'a'", "x < 9", "z LIKE '%word%'", "x > 2 AND x < 7"):
        optimizer.subscribe(cover(text))
    return pack(optimizer.part(0).tree)


def test_damaged_bytes_are_refused() -> None:
    """A byte that is changed anywhere, one that is missing or one too many: none of that is a tree."""
    data = stored_tree()
    for at in range(len(data)):
        with pytest.raises(UnreadableTree):
            load(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
    for length in range(len(data)):
        with pytest.raises(UnreadableTree):
            load(data[:length])
    with pytest.raises(UnreadableTree):
        load(data + b"\0")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "0 bytes are no stored tree"),
        (b"PAR1" + bytes(100), "they begin with something else"),
        (struct.pack("4sB", b"BLrt", FORMAT_VERSION + 1) + bytes(100), "format 2; this reads format 1"),
        (stored_tree()[:5] + b"\7" + stored_tree()[6:], "byte order"),
        (stored_tree()[:-1], "bytes, and here are"),
        (stored_tree()[:-1] + b"\7", "damaged"),
    ],
)
def test_what_is_wrong_is_said(data: bytes, reason: str) -> None:
    """Whoever maps a file that is not ours reads why it is not."""
    with pytest.raises(UnreadableTree, match=reason):
        load(data)
