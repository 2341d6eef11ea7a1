"""One index for all operators on texts: =, <, >, prefix, suffix and substring, met in one look.

Theory of operation. The forwarding algorithm that this follows has one ternary search trie: its inner nodes
hold the prefixes and substrings that are met on the way down, its ends hold =, <, > and suffix, and the ends
are chained in their order for < and >. A text is looked up from its first character, and for substrings and
suffixes from each further one again: O(l · (log N + l) + results) for l characters.

Ours is the same trie in a flat form, which takes O(l + log N + results):

- *Steps* of the trie are one table from node and character to node, so that a step is one look-up, however
  many children a node has, and there is no object for each node.
- Looking up from each further character is saved by *falls* (Aho and Corasick): the fall of a node is the
  node of its longest proper end that is in the trie. While the text is read once, the state is the longest
  end of what was read, and its falls are all shorter ones; those with a substring are met there, and when the
  text is over those with a suffix.
- An end that stands for a whole text is found by that text, in place of a walk to it; so texts that are only
  compared as a whole need no nodes. The chains are the ends in order, entered by bisection where the trie
  would go back to the nearest end (`RangeIndex`, which also has what has two ends and is no prefix).

A substring is met once however often the text has it: one that was met already has had all its ends met.

A filter may be some thousand characters long, and a node takes far more bytes than a character. So prefixes
and suffixes that are longer than `PART_MAX` are kept as the intervals that they are, and such substrings are
asked one by one.

Cost of making it: O(characters of prefixes, suffixes and substrings). Never changed after it was made.
"""

from collections.abc import Iterable, Mapping

from branchline.routing.counting.ranges import RangeIndex
from branchline.routing.dimensions import common_prefix, prefix_range
from branchline.routing.intervals import Interval, is_point

_ROOT, _NOWHERE = 0, -1
_CHARACTER_BITS = 21
"""Of a code point: a step's key is the node, and behind it the character."""
PART_MAX = 64
"""Characters of a part of a text that has nodes in the trie."""


def prefix_of(interval: Interval) -> str | None:
    """The prefix, if it is not too long, whose texts the interval holds; None if it is no such interval."""
    if is_point(interval):
        return None
    prefix = common_prefix(interval)
    return prefix if 0 < len(prefix) <= PART_MAX and prefix_range(prefix) == interval else None


class TextIndex:
    """Constraints on one text, each with a number."""

    def __init__(
        self,
        ranges: Iterable[tuple[Interval, int]],
        suffixes: Mapping[str, int],
        words: Mapping[str, int],
    ) -> None:
        """Intervals of the text, prefixes among them, what it ends with, and what it contains."""
        self._prefixes: dict[int, int] = {}
        self._suffixes: dict[int, int] = {}
        self._words: dict[int, int] = {}
        self._steps: dict[int, int] = {}
        self._above: list[tuple[int, str]] = [(_NOWHERE, "")]
        """For each node the one above it and the character that leads to it."""
        whole: list[tuple[Interval, int]] = []
        for interval, number in ranges:
            prefix = prefix_of(interval)
            if prefix is None:
                whole.append((interval, number))
            else:
                self._prefixes[self._node(prefix)] = number
        self._whole = RangeIndex(whole)
        for suffix, number in suffixes.items():
            self._suffixes[self._node(suffix)] = number
        self._long: list[tuple[str, int]] = []
        for word, number in words.items():
            if len(word) <= PART_MAX:
                self._words[self._node(word)] = number
            else:
                self._long.append((word, number))
        self._longest_suffix = max(map(len, suffixes), default=0)
        self._falls: list[int] = []
        self._reports: list[int] = []
        """For each node itself if a substring ends there, else the next along the falls where one does."""
        if self._suffixes or self._words:
            self._find_falls()

    def satisfied(self, text: str) -> list[int]:
        """The numbers of the constraints that the text satisfies, each once."""
        found = self._whole.satisfied(text)
        found += [number for word, number in self._long if word in text]
        if self._prefixes:
            self._begin(text, found)
        if self._words:
            self._read(text, found)
        elif self._suffixes:
            # Only the end matters, and no more of it than the longest suffix.
            self._read(text[-self._longest_suffix :] if self._longest_suffix else "", found)
        return found

    def _begin(self, text: str, found: list[int]) -> None:
        """Add the prefixes: those met on the way down."""
        node = _ROOT
        for character in text:
            below = self._steps.get(node << _CHARACTER_BITS | ord(character))
            if below is None:
                return
            node = below
            if node in self._prefixes:
                found.append(self._prefixes[node])

    def _read(self, text: str, found: list[int]) -> None:
        """Add the substrings, and then the suffixes."""
        steps, falls, words = self._steps, self._falls, self._words
        met: set[int] = set()
        node = _ROOT
        self._meet(node, met, found)
        for character in text:
            code = ord(character)
            below = steps.get(node << _CHARACTER_BITS | code)
            while below is None and node != _ROOT:
                node = falls[node]
                below = steps.get(node << _CHARACTER_BITS | code)
            node = _ROOT if below is None else below
            if words:
                self._meet(node, met, found)
        while node != _NOWHERE:
            if node in self._suffixes:
                found.append(self._suffixes[node])
            node = falls[node]

    def _meet(self, node: int, met: set[int], found: list[int]) -> None:
        """Add the substrings that end here, longest first, up to one that was met already."""
        node = self._reports[node]
        while node != _NOWHERE and node not in met:
            met.add(node)
            found.append(self._words[node])
            node = self._reports[self._falls[node]] if node != _ROOT else _NOWHERE

    def _node(self, text: str) -> int:
        """The node of a text, made if it is not there."""
        node = _ROOT
        for character in text:
            key = node << _CHARACTER_BITS | ord(character)
            below = self._steps.get(key)
            if below is None:
                below = self._steps[key] = len(self._above)
                self._above.append((node, character))
            node = below
        return node

    def _find_falls(self) -> None:
        """Find each node's fall, from short texts to long ones, and the next node from there with a word."""
        depths = [0] * len(self._above)
        for node in range(1, len(depths)):
            depths[node] = depths[self._above[node][0]] + 1
        falls = self._falls = [_NOWHERE] * len(depths)
        self._reports = [_NOWHERE] * len(depths)
        for node in sorted(range(len(depths)), key=depths.__getitem__):
            above, character = self._above[node]
            if node != _ROOT:
                below, shorter = None, falls[above]
                while below is None and shorter != _NOWHERE:
                    below = self._steps.get(shorter << _CHARACTER_BITS | ord(character))
                    shorter = falls[shorter]
                falls[node] = _ROOT if below is None else below
            if node in self._words:
                self._reports[node] = node
            elif node != _ROOT:
                self._reports[node] = self._reports[falls[node]]

    def describe(self) -> str:
        parts = len(self._prefixes), len(self._suffixes), len(self._words) + len(self._long)
        return "trie of {} nodes with {} prefixes, {} suffixes, {} substrings; whole texts: {}".format(
            len(self._above), *parts, self._whole.describe()
        )
