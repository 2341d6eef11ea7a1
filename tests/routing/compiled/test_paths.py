"""Paths are numbered once, and a name leads to the node below it or nowhere, whatever else is named."""

import pickle

import json_texts as ours
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from branchline.routing.compiled.kernels import kernel
from branchline.routing.compiled.memory import PADDING, address
from branchline.routing.compiled.paths import Layout, Paths, below, bucket_of, path_at
from branchline.routing.expression import Path


@kernel
def _look(trie: Layout, node: int, name: int, length: int) -> tuple[int, int]:
    found = below(trie, node, name, length)
    return found, path_at(trie, found)


def found(paths: Paths, path: Path) -> int:
    """The number that the trie has for a path, or -1."""
    trie, node, number = paths.trie(), 0, -1
    for name in path:
        data = name.encode(errors="surrogatepass")
        # What lies around a name in an event must not matter.
        text = np.frombuffer(b"xy" + data + b"z" * PADDING, np.uint8)
        node, number = _look(trie.layout(), node, address(text) + 2, len(data))
        if node < 0:
            return -1
    return number


some_paths = st.lists(st.lists(ours.names, min_size=1, max_size=4).map(tuple), max_size=30)


@given(some_paths, some_paths)
def test_exactly_the_paths_that_were_added_are_found(added: list[Path], others: list[Path]) -> None:
    """Under their numbers, which are given in the order of coming and never again."""
    paths = Paths()
    numbers = {path: paths.add(path) for path in added}
    assert list(paths) == list(numbers)
    assert list(numbers.values()) == list(range(len(paths)))
    for path in (*added, *others, *(path[:-1] for path in added), *((*path, "a") for path in added)):
        assert found(paths, path) == numbers.get(path, -1)
    assert [paths.add(path) for path in added] == [numbers[path] for path in added]


def test_names_that_meet_in_one_bucket_are_told_apart() -> None:
    """Also very many of them, as somebody may choose who knows how names are hashed."""
    names = [f"n{number}" for number in range(40_000)]
    text = np.frombuffer("".join(name.ljust(8) for name in names).encode() + bytes(PADDING), np.uint8)
    meeting = [
        name
        for at, name in enumerate(names)
        if bucket_of(0, address(text) + 8 * at, len(name), 2**10 - 1) == 5
    ]
    assert len(meeting) > 30
    paths = Paths()
    numbers = {name: paths.add((name,)) for name in meeting[::2]}
    for filler in range(100):
        paths.add((f"filler{filler}",))
    assert len(paths.trie().buckets) - 1 <= 2**10
    for name in meeting:
        assert found(paths, (name,)) == numbers.get(name, -1)


def test_the_trie_is_made_anew_only_after_an_addition() -> None:
    """A path that is known already changes nothing."""
    paths = Paths()
    paths.add(("a",))
    trie = paths.trie()
    assert paths.trie() is trie
    paths.add(("a",))
    assert paths.trie() is trie
    paths.add(("a", "b"))
    assert paths.trie() is not trie


def test_paths_travel() -> None:
    """A copy in another process finds the same, at its own addresses."""
    paths = Paths()
    paths.add(("a", "b"))
    paths.trie()
    copy = pickle.loads(pickle.dumps(paths))
    assert found(copy, ("a", "b")) == 0
    assert copy.trie().layout().nodes != paths.trie().layout().nodes
