"""Which of many words a text contains: one pass over the text, whatever the number of words (Aho and
Corasick).

Theory of operation. The words of one kin make a trie over bytes. While a text is read, the state is the
longest end of what was read that begins a word; a byte either leads to a child of the state, or the state
falls back to the next shorter end (`fall`), until one has such a child. A state at which a word ends, or
which has an end at which one does (`report`), reports these words. A word that was reported already in this
row has had its own ends reported too, so the search stops there: reading costs the bytes of the text and
the words found, no more.

Nodes are numbered breadth first, so that the children of one stand together, sorted by their bytes: a node
is 17 bytes and there is no table of transitions that somebody could aim at. At the root, where most bytes
lead nowhere, 256 bits say which lead on. The empty word ends at the root: every text contains it.

Bytes of UTF-8 do as well as code points: no code point's bytes occur within those of others.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from branchline.routing.compiled.freshness import fresh
from branchline.routing.compiled.kernels import kernel
from branchline.routing.compiled.memory import (
    Bytes,
    Ints,
    address,
    byte_at,
    load_byte,
    load_int,
    load_long,
    store_int,
    store_long,
)
from branchline.routing.compiled.texts import Longs


class Automaton(NamedTuple):
    """The tries of all kin of words, which have the first nodes as their roots; arrays by their addresses."""

    child: int
    """For each node its first child; one more at the end."""
    label: int
    """The byte that leads to a node."""
    fall: int
    """The node of the longest proper end, -1 at roots."""
    word: int
    """The word that ends at a node, or -1."""
    report: int
    """The node itself if a word ends there, else the next along `fall` where one does, or -1."""
    start: int
    """For each root four numbers with a bit for each byte that leads on."""


def automaton(word_first: Ints, blob: Bytes, at: Longs) -> dict[str, NDArray[np.generic]]:
    """The arrays of the automaton for words that lie in order in the blob; `word_first` is where each kin's
    begin.
    """
    roots = word_first.size - 1
    most = roots + int(at[word_first[-1]] - at[word_first[0]])
    child, label = np.zeros(most + 1, np.int32), np.zeros(most, np.uint8)
    word, fall, report = (np.full(most, -1, np.int32) for _ in range(3))
    start = np.zeros(4 * roots, np.int64)
    # Of each node the words that begin with it, how many bytes that are, the node above and the root.
    plan = np.zeros((5, most), np.int32)
    size = _grow(
        roots, address(word_first), blob, at, child, label, word, plan[0], plan[1], plan[2], plan[3], plan[4]
    )
    places = [address(each) for each in (child, label, fall, word, report, start)]
    _fall_back(Automaton(*places), roots, size, address(plan[3]), address(plan[4]))
    return {
        "child": child[: size + 1].copy(),
        "label": label[:size].copy(),
        "fall": fall[:size].copy(),
        "word": word[:size].copy(),
        "report": report[:size].copy(),
        "start": start,
    }


@kernel
def _grow(
    roots: int,
    word_first: int,
    blob: Bytes,
    at: Longs,
    child: Ints,
    label: NDArray[np.uint8],
    word: Ints,
    low: Ints,
    high: Ints,
    depth: Ints,
    above: Ints,
    origin: Ints,
) -> int:
    """Make the tries, breadth first; how many nodes there are."""
    base = load_int(word_first, 0)
    for root in range(roots):
        low[root], high[root] = load_int(word_first, root), load_int(word_first, root + 1)
        above[root], origin[root] = -1, root
    size, node = roots, 0
    while node < size:
        child[node] = size
        each, end, reached = low[node], high[node], depth[node]
        if each < end and at[each + 1] - at[each] == reached:
            word[node] = each - base
            each += 1
        while each < end:
            byte = blob[at[each] + reached]
            low[size], label[size], depth[size] = each, byte, reached + 1
            above[size], origin[size] = node, origin[node]
            while each < end and blob[at[each] + reached] == byte:
                each += 1
            high[size] = each
            size += 1
        node += 1
    child[size] = size
    return size


@kernel
def _below(made: Automaton, node: int, byte: int) -> int:
    """The node's child by the byte, or -1."""
    low, end = load_int(made.child, node), load_int(made.child, node + 1)
    high = end
    while low < high:
        middle = (low + high) >> 1
        if load_byte(made.label, middle) < byte:
            low = middle + 1
        else:
            high = middle
    return low if low < end and load_byte(made.label, low) == byte else -1


@fresh
@kernel
def _fall_back(made: Automaton, roots: int, size: int, above: int, origin: int) -> None:
    """Find where each node falls back to, from short ones to long ones."""
    for node in range(size):
        if node < roots:
            for each in range(load_int(made.child, node), load_int(made.child, node + 1)):
                byte = load_byte(made.label, each)
                word = 4 * node + (byte >> 6)
                store_long(made.start, word, load_long(made.start, word) | 1 << (byte & 63))
        else:
            found, shorter = -1, load_int(made.fall, load_int(above, node))
            while shorter >= 0 and found < 0:
                found = _below(made, shorter, load_byte(made.label, node))
                shorter = load_int(made.fall, shorter)
            store_int(made.fall, node, found if found >= 0 else load_int(origin, node))
        if load_int(made.word, node) >= 0:
            store_int(made.report, node, node)
        elif load_int(made.fall, node) >= 0:
            store_int(made.report, node, load_int(made.report, load_int(made.fall, node)))


@fresh
@kernel
def find_words(
    made: Automaton,
    root: int,
    place: int,
    length: int,
    fold: bool,
    stamp: int,
    row: int,
    found: int,
    room: int,
    count: int,
) -> int:
    """Add the words of a text that the row has not yet to those found from `count` on; how many there are
    then.

    With `fold`, capital letters of ASCII are read as small ones. Where there is no more room words are
    counted only.
    """
    node = root
    end = place + length
    while True:
        each = load_int(made.report, node)
        while each >= 0:
            word = load_int(made.word, each)
            if load_int(stamp, word) == row:
                break
            store_int(stamp, word, row)
            if count < room:
                store_int(found, count, word)
            count += 1
            each = load_int(made.fall, each)
            if each >= 0:
                each = load_int(made.report, each)
        if place >= end:
            return count
        byte = byte_at(place)
        place += 1
        if fold and 65 <= byte <= 90:
            byte += 32
        while True:
            if node == root and not (load_long(made.start, 4 * root + (byte >> 6)) >> (byte & 63)) & 1:
                break
            below = _below(made, node, byte)
            if below >= 0:
                node = below
                break
            node = load_int(made.fall, node)
