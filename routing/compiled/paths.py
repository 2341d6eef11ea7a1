"""The paths that filters name, numbered, and their trie, which the scanner walks along an event's names.

Theory of operation. A node of the trie stands for a beginning of a path; from node and name to the node below
is one look-up. Names in events are chosen by strangers, and most are named by no filter, so saying no must be
cheap and nothing that they choose may make a look-up long. A hash of node and name gives a bucket. Nearly
always it is empty. Else its few steps are in a fixed order and found by bisection, so that a subscriber who
aims many names at one bucket costs a logarithm, not a loop.

Names are kept in words of eight bytes, the rest of the last one zero, because eight bytes are hashed and
compared as fast as one.

Cost: a look-up hashes the name once; finding costs one comparison of the name, more only if buckets collide.
Making the trie is linear in the paths, in Python, and is done once after paths were added.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from branchline.routing.compiled.kernels import kernel
from branchline.routing.compiled.memory import PADDING, Bytes, Ints, item, word_at
from branchline.routing.expression import Path

_WORD = 8
_MIX = -7046029254386353131  # 2^64 over the golden ratio, as a signed number
_SPREAD = 4
"""Buckets for each step: three of four are empty even if every one is used by one step alone."""


class Trie(NamedTuple):
    """Flat arrays over nodes, buckets and steps. The root is node 0; where a node is none, it is -1."""

    path: Ints
    """For each node, the path that ends there, or -1."""
    inner: Ints
    """For each node, whether names follow it."""
    bucket: Ints
    """For each bucket its first step; one more at the end."""
    above: Ints
    """For each step, the node that it leads from."""
    length: Ints
    """For each step, how many bytes its name has."""
    begin: Ints
    """For each step, where its name begins among the names."""
    below: Ints
    """For each step, the node that it leads to."""
    names: Bytes
    data: int
    """The node of `data`: a CloudEvent's payload."""
    datacontenttype: int
    kafka: int
    """The node of `kafka`: what the record itself says, whatever an event has by that name."""
    key: int
    timestamp: int
    header: int


@dataclass(slots=True)
class Node:
    """What follows a beginning of a path, and the number of the path that ends there, or -1."""

    path: int = -1
    below: "dict[str, Node]" = field(default_factory=dict)


class Paths:
    """Paths by number, in the order in which they came; none is ever taken away."""

    __slots__ = ("_numbers", "_trie", "root")

    def __init__(self) -> None:
        self._numbers: dict[Path, int] = {}
        self._trie: Trie | None = None
        self.root = Node()
        """The paths laid together, by name."""

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[Path]:
        """The paths in the order of their numbers."""
        return iter(self._numbers)

    def add(self, path: Path) -> int:
        """The path's number, a new one if it has none yet."""
        known = self._numbers.get(path)
        if known is not None:
            return known
        assert path, "a path has names"
        number = self._numbers[path] = len(self._numbers)
        node = self.root
        for name in path:
            node = node.below.setdefault(name, Node())
        node.path = number
        self._trie = None
        return number

    def trie(self) -> Trie:
        """The paths as the scanner needs them."""
        if self._trie is None:
            self._trie = _made(self.root)
        return self._trie


def _made(root: Node) -> Trie:
    nodes = [root]
    steps: list[tuple[int, bytes, int]] = []
    for above, node in enumerate(nodes):
        for name, below in node.below.items():
            steps.append((above, name.encode(errors="surrogatepass"), len(nodes)))
            nodes.append(below)
    numbers = {id(node): number for number, node in enumerate(nodes)}

    def number(*path: str) -> int:
        node: Node | None = root
        for name in path:
            node = node.below.get(name) if node else None
        return numbers[id(node)] if node else -1

    return Trie(
        np.array([node.path for node in nodes], np.int32),
        np.array([bool(node.below) for node in nodes], np.int32),
        *_table(steps),
        number("data"),
        number("datacontenttype"),
        number("kafka"),
        number("kafka", "key"),
        number("kafka", "timestamp"),
        number("kafka", "header"),
    )


def _table(steps: list[tuple[int, bytes, int]]) -> tuple[Ints, Ints, Ints, Ints, Ints, Bytes]:
    """Buckets, and the steps in their order: by bucket, then as `_order` says."""
    buckets = 1 << (_SPREAD * len(steps) + 1).bit_length()
    padded = [name + bytes(-len(name) % _WORD) for _, name, _ in steps]
    begins = list(accumulate(map(len, padded), initial=0))
    names = np.frombuffer(b"".join([*padded, bytes(PADDING)]), np.uint8).copy()
    hashes = [
        bucket_of(buckets, above, names, begin, len(name))
        for (above, name, _), begin in zip(steps, begins[:-1], strict=True)
    ]

    def place(step: int) -> tuple[int, int, int, list[int]]:
        above, name, _ = steps[step]
        words = np.frombuffer(padded[step], "<i8").tolist()
        return hashes[step], above, len(name), words

    order = sorted(range(len(steps)), key=place)
    bucket = np.searchsorted(np.array([hashes[step] for step in order]), np.arange(buckets + 1))
    return (
        bucket.astype(np.int32),
        _column(steps[step][0] for step in order),
        _column(len(steps[step][1]) for step in order),
        _column(begins[step] for step in order),
        _column(steps[step][2] for step in order),
        names,
    )


def _column(numbers: Iterator[int]) -> NDArray[np.int32]:
    return np.fromiter(numbers, np.int32)


@kernel
def bucket_of(buckets: int, node: int, text: Bytes, start: int, length: int) -> int:
    """The bucket of a name below a node, of so many, which are a power of two."""
    return (name_hash(node, text, start, length) >> 32) & (buckets - 1)


@kernel
def name_hash(node: int, text: Bytes, start: int, length: int) -> int:
    """A hash of node and name; equal names have equal ones."""
    mixed = (node + 1) * _MIX + length
    for at in range(start, start + length, _WORD):
        mixed = (mixed ^ _word(text, at, start + length - at)) * _MIX
        mixed ^= mixed >> 29
    return mixed * _MIX


@kernel
def below(trie: Trie, node: int, text: Bytes, start: int, length: int) -> int:
    """The node that a name leads to from another, or -1."""
    bucket = bucket_of(len(trie.bucket) - 1, node, text, start, length)
    low, high = item(trie.bucket, bucket), item(trie.bucket, bucket + 1)
    while low < high:
        middle = (low + high) >> 1
        order = _order(trie, middle, node, text, start, length)
        if order == 0:
            return item(trie.below, middle)
        if order < 0:
            high = middle
        else:
            low = middle + 1
    return -1


@kernel
def _order(trie: Trie, step: int, node: int, text: Bytes, start: int, length: int) -> int:
    """Whether node and name come before a step, are its own, or come behind: below zero, zero, above."""
    if node != item(trie.above, step):
        return node - item(trie.above, step)
    if length != item(trie.length, step):
        return length - item(trie.length, step)
    begin = item(trie.begin, step)
    for at in range(0, length, _WORD):
        one, other = _word(text, start + at, length - at), word_at(trie.names, begin + at)
        if one != other:
            return -1 if one < other else 1
    return 0


@kernel
def _word(text: Bytes, at: int, left: int) -> int:
    """The eight bytes at a place, with zeros for those behind the last that are left."""
    word = word_at(text, at)
    return word if left >= _WORD else word & ((1 << (_WORD * left)) - 1)
