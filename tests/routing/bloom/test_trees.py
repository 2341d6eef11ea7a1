"""A bftree and an sbstree find the Bloom filters all of whose bits are set, and no others."""

from collections import Counter

import pytest
from amounts import often
from hypothesis import given
from hypothesis import strategies as st

from branchline.routing.bloom.bftree import PARTS, BfTree
from branchline.routing.bloom.bits import Shape
from branchline.routing.bloom.sbstree import SbsTree


def trees(shape: Shape) -> list[BfTree | SbsTree]:
    sizes = sorted({1, 2, min(8, shape.bits), shape.bits if shape.size <= 6 else PARTS})
    return [SbsTree(shape), *(BfTree(shape, parts) for parts in sizes)]


@st.composite
def every_script(draw: st.DrawFn) -> tuple[Shape, list[tuple[int, ...]], list[int]]:
    """Bloom filters that come, some of them twice, and which of them go after each."""
    shape = Shape(draw(st.sampled_from((1, 2, 4, 10, 14))))
    some = st.integers(0, shape.bits - 1)
    filters = draw(st.lists(st.sets(some, max_size=6).map(lambda bits: tuple(sorted(bits))), max_size=20))
    filters += draw(st.lists(st.sampled_from(filters), max_size=5)) if filters else []
    return shape, filters, draw(st.lists(st.integers(-3, 30), min_size=len(filters), max_size=len(filters)))


@often
@given(every_script(), st.data())
def test_what_has_no_other_bits_is_found(
    script: tuple[Shape, list[tuple[int, ...]], list[int]], data: st.DataObject
) -> None:
    """By both structures, however many parts there are, with owners that are counted."""
    shape, filters, goes = script
    for tree in trees(shape):
        standing: list[tuple[tuple[int, ...], str]] = []
        for number, (bits, gone) in enumerate(zip(filters, goes, strict=True)):
            standing.append((bits, f"o{number % 3}"))
            tree.add(*standing[-1])
            if 0 <= gone < len(standing):
                tree.remove(*standing.pop(gone))
        assert len(tree) == len({bits for bits, _ in standing})
        asked = [set(), set(range(min(shape.bits, 64))), *(set(bits) for bits in filters[:4])]
        asked.append(set().union(*filters[::2]))
        for event in asked:
            found: Counter[str] = Counter()
            for owners in tree.find(tuple(sorted(event))):
                found.update({str(owner): count for owner, count in owners.items()})
            assert found == Counter(owner for bits, owner in standing if set(bits) <= event)
        while standing:
            tree.remove(*standing.pop())
        assert (len(tree), tree.nodes(), list(tree.find(range(shape.bits)))) == (0, 0, [])


@pytest.mark.parametrize("size", [1, 4, 14])
def test_sizes_are_told(size: int) -> None:
    """How many Bloom filters, in how many nodes."""
    shape = Shape(size)
    sparse, parts = SbsTree(shape), BfTree(shape, 2)
    for tree in (sparse, parts):
        for bits in ((0, 1), (0,), (0,)):
            tree.add(bits, "a")
    assert sparse.describe() == "2 Bloom filters in an sbstree of 2 nodes"
    nodes = 3 if size == 1 else 4
    assert parts.describe() == f"2 Bloom filters in a bftree of 2 levels, {nodes} nodes"
