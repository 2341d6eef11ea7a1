"""The same rows as the scanner makes, from attributes that are decoded already: one event after the other.

This is for whoever has attributes and no bytes, and for the few events that the scanner cannot read however
they are written. An event with arrays on named paths gets a row for each choice; `routing/choices.py` says
what they are. Only the paths that the event has a first name of are asked about, however many there are.

Cost: a step for each member of the event, in each object that paths lead to; with arrays, one more for each
choice, of which there are ROWS_MAX at most. Recursion is bounded by EVENT_MAX_DEPTH.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, product
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from branchline.routing.compiled.memory import PADDING
from branchline.routing.compiled.paths import Node, Paths
from branchline.routing.compiled.spans import ROWS_MAX, Scanned
from branchline.routing.values import JsonValue, Kind, canonical_text, kind


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of events that are numbered from 0."""

    scanned: Scanned
    unrowed: list[int]
    """The events that have no rows, because they would have more than ROWS_MAX."""
    arrays: NDArray[np.bool_]
    """For each event, whether a named path meets an array."""


def rows_of(paths: Paths, attributes: Sequence[Mapping[str, JsonValue]]) -> Rows:
    """The rows of the events that have these attributes."""
    made = _Rows()
    unrowed: list[int] = []
    arrays = np.zeros(len(attributes), np.bool_)
    for event, each in enumerate(attributes):
        choices = _Choices()
        try:
            made.append(event, choices.of_members(paths.root, each))
        except _TooManyError:
            unrowed.append(event)
        arrays[event] = choices.met_array
    return Rows(made.scanned(), unrowed, arrays)


Span: TypeAlias = tuple[int, Kind, bytes]
"""What a path meets: its number, and the value's kind and text."""


class _TooManyError(Exception):
    """An event has more than ROWS_MAX choices."""


class _Choices:
    """The choices of one event, as `routing/choices.py` has them; what they share is read once."""

    __slots__ = ("met_array",)

    def __init__(self) -> None:
        self.met_array = False

    def of_members(self, above: Node, members: Mapping[str, JsonValue]) -> list[list[Span]]:
        """What the paths meet, choice by choice; raises _TooManyError beyond ROWS_MAX."""
        shared: list[Span] = []
        varying: list[list[list[Span]]] = []
        below = above.below
        for name, value in members.items():
            node = below.get(name)
            if node is None:
                continue
            if isinstance(value, list | dict):
                choices = self._of(node, value)
                if len(choices) > 1:
                    varying.append(choices)
                else:
                    shared += choices[0]
            elif node.path >= 0:
                shared.append((node.path, kind(value), _written(value)))
        if not varying:
            return [shared]
        if math.prod(map(len, varying)) > ROWS_MAX:
            raise _TooManyError
        return [[*shared, *chain.from_iterable(chosen)] for chosen in product(*varying)]

    def _of(self, node: Node, value: JsonValue) -> list[list[Span]]:
        if isinstance(value, list):
            self.met_array = True
            choices: list[list[Span]] = []
            for element in value:
                choices += self._of(node, element)
                if len(choices) > ROWS_MAX:
                    raise _TooManyError
            # An empty array gives one choice, without a value.
            return choices or [[]]
        own = [(node.path, kind(value), _written(value))] if node.path >= 0 else []
        if isinstance(value, dict):
            return [[*own, *choice] for choice in self.of_members(node, value)]
        return [own]


@dataclass(slots=True)
class _Rows:
    """Rows that are being made."""

    texts: list[bytes] = field(default_factory=list)
    paths: list[int] = field(default_factory=list)
    kinds: list[Kind] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    events: list[int] = field(default_factory=list)

    def append(self, event: int, choices: list[list[Span]]) -> None:
        for spans in choices:
            if spans:
                paths, kinds, texts = zip(*spans, strict=True)
                self.paths += paths
                self.kinds += kinds
                self.texts += texts
            self.sizes.append(len(spans))
            self.events.append(event)

    def scanned(self) -> Scanned:
        places = np.fromiter(accumulate(map(len, self.texts), initial=0), np.int64)
        first = np.fromiter(accumulate(self.sizes, initial=0), np.int64)
        return Scanned(
            np.frombuffer(b"".join([*self.texts, bytes(PADDING)]), np.uint8).copy(),
            first,
            np.array(self.paths, np.int32),
            np.array(self.kinds, np.uint8),
            places[:-1],
            places[1:],
            np.array(self.events, np.int32),
        )


def _written(value: JsonValue) -> bytes:
    """A value as its span has it."""
    if isinstance(value, float):
        return repr(value).encode()
    return (canonical_text(value) or "").encode(errors="surrogatepass")
