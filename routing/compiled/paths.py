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

from branchline.routing.compiled.freshness import fresh
from branchline.routing.compiled.kernels import kernel
from branchline.routing.compiled.memory import PADDING, Bytes, Ints, address, load_int, part, word_at
from branchline.routing.expression import Path

_WORD = 8
_MIX = -7046029254386353131  # 2^64 over the golden ratio, as a signed number
_UNUSED = 32
"""The lower half of a product says little of its factors' higher bits."""
_SPREAD = 4
"""Buckets for each step: three of four are empty even if every one is used by one step alone."""


class Layout(NamedTuple):
    """A trie as kernels take it: addresses and numbers. The root is node 0; -1 is no node."""

    nodes: int
    """Two numbers for each node: the path that ends there, or -1, and whether names follow."""
    buckets: int
    """For each bucket its first step; one more at the end."""
    mask: int
    """What is left of a hash is its bucket."""
    steps: int
    """Four numbers for each step: the node above, the name's length and place, and the node below."""
    names: int
    data: int
    """The node of `data`: a CloudEvent's payload."""
    datacontenttype: int
    kafka: int
    """The node of `kafka`: what the record itself says, whatever an event has by that name."""
    key: int
    timestamp: int
    header: int


@dataclass(frozen=True, slots=True)
class Trie:
    """The arrays that a layout speaks of, and its nodes that mean something, from `data` on."""

    nodes: Ints
    buckets: Ints
    steps: Ints
    names: Bytes
    known: tuple[int, int, int, int, int, int]

    def layout(self) -> Layout:
        """The trie for a kernel. Whoever has it keeps the trie, too."""
        last = len(self.buckets) - 2
        return Layout(
            address(self.nodes),
            address(self.buckets),
            last,
            address(self.steps),
            address(self.names),
            *self.known,
        )


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
        for name, under in node.below.items():
            steps.append((above, name.encode(errors="surrogatepass"), len(nodes)))
            nodes.append(under)
    numbers = {id(node): number for number, node in enumerate(nodes)}

    def number(*path: str) -> int:
        node: Node | None = root
        for name in path:
            node = node.below.get(name) if node else None
        return numbers[id(node)] if node else -1

    return Trie(
        np.array([(node.path, bool(node.below)) for node in nodes], np.int32),
        *_table(steps),
        (
            number("data"),
            number("datacontenttype"),
            number("kafka"),
            number("kafka", "key"),
            number("kafka", "timestamp"),
            number("kafka", "header"),
        ),
    )


def _table(steps: list[tuple[int, bytes, int]]) -> tuple[Ints, Ints, Bytes]:
    """Buckets, the steps in their order (by bucket, then as `_order` says), and names."""
    count = 1 << (_SPREAD * len(steps) + 1).bit_length()
    padded = [name + bytes(-len(name) % _WORD) for _, name, _ in steps]
    begins = list(accumulate(map(len, padded), initial=0))
    names = np.frombuffer(b"".join([*padded, bytes(PADDING)]), np.uint8)
    hashes = [
        bucket_of(above, address(names) + begin, len(name), count - 1)
        for (above, name, _), begin in zip(steps, begins[:-1], strict=True)
    ]

    def place(step: int) -> tuple[int, int, int, list[int]]:
        above, name, _ = steps[step]
        words = np.frombuffer(padded[step], "<i8").tolist()
        return hashes[step], above, len(name), words

    order = sorted(range(len(steps)), key=place)
    buckets = np.searchsorted([hashes[step] for step in order], np.arange(count + 1))
    table = [(steps[step][0], len(steps[step][1]), begins[step], steps[step][2]) for step in order]
    return buckets.astype(np.int32), np.array(table, np.int32), names


@part
def path_at(trie: Layout, node: int) -> int:
    """The path that ends at a node, or -1."""
    return load_int(trie.nodes, 2 * node) if node >= 0 else -1


@part
def is_inner(trie: Layout, node: int) -> bool:
    """Whether names follow a node."""
    return node >= 0 and load_int(trie.nodes, 2 * node + 1) != 0


@part
def below(trie: Layout, node: int, name: int, length: int) -> int:
    """The node that a name, which is so long, leads to from another, or -1."""
    bucket = name_hash(node, name, length) >> _UNUSED & trie.mask
    low, high = load_int(trie.buckets, bucket), load_int(trie.buckets, bucket + 1)
    while low < high:
        middle = (low + high) >> 1
        order = _order(trie, middle, node, name, length)
        if order == 0:
            return load_int(trie.steps, 4 * middle + 3)
        if order < 0:
            high = middle
        else:
            low = middle + 1
    return -1


@part
def name_hash(node: int, name: int, length: int) -> int:
    """A hash of node and name; equal ones have the same."""
    mixed = (node + 1) * _MIX + length
    for at in range(0, length, _WORD):
        mixed = (mixed ^ part_of(name, at, length)) * _MIX
        mixed ^= mixed >> _UNUSED
    return mixed * _MIX


@part
def _order(trie: Layout, step: int, node: int, name: int, length: int) -> int:
    """Whether node and name come before a step, are its own, or come behind: below zero, zero, above."""
    above = load_int(trie.steps, 4 * step)
    if node != above:
        return node - above
    known = load_int(trie.steps, 4 * step + 1)
    if length != known:
        return length - known
    other = trie.names + load_int(trie.steps, 4 * step + 2)
    for at in range(0, length, _WORD):
        one, two = part_of(name, at, length), word_at(other + at)
        if one != two:
            return -1 if one < two else 1
    return 0


@part
def part_of(name: int, at: int, length: int) -> int:
    """Eight bytes of a name, with zeros for what is behind its end."""
    word = word_at(name + at)
    left = length - at
    return word if left >= _WORD else word & (1 << _WORD * left) - 1


@fresh
@kernel
def bucket_of(node: int, name: int, length: int, mask: int) -> int:
    """The bucket of a node and a name."""
    return name_hash(node, name, length) >> _UNUSED & mask
