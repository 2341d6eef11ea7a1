"""The same rows as the scanner makes, from attributes that are decoded already: one event after the other.

This is for events that the scanner leaves to the reference reader, and for whoever has attributes and no
bytes. An event with arrays on named paths gets a row for each choice; `choices` says what they are. Only the
paths that the event has a first name of are asked about, however many there are.

Cost: a step for each member of the event, in each object that paths lead to; with arrays, for each choice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from branchline.routing.choices import count_choices, each_choice
from branchline.routing.compiled.memory import PADDING
from branchline.routing.compiled.paths import Node, Paths
from branchline.routing.compiled.spans import ROWS_MAX, Scanned
from branchline.routing.values import Found, JsonValue, Kind, canonical_text, kind


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
        found = _found(paths.root, each)
        if found is not None:
            made.append(event, found)
            continue
        arrays[event] = True
        asked = [path for path in paths if path[0] in each]
        if count_choices(asked, each) > ROWS_MAX:
            unrowed.append(event)
            continue
        for choice in each_choice(asked, each):
            found = _found(paths.root, choice)
            assert found is not None, "a choice has no arrays"
            made.append(event, found)
    return Rows(made.scanned(), unrowed, arrays)


def _found(root: Node, attributes: Mapping[str, Found]) -> list[tuple[int, Found]] | None:
    """What the paths meet, each with the path's number; None if that is an array."""
    found: list[tuple[int, Found]] = []
    pending: list[tuple[Node, Mapping[str, Found]]] = [(root, attributes)]
    while pending:
        above, members = pending.pop()
        for name, value in members.items():
            node = above.below.get(name)
            if node is None:
                continue
            if isinstance(value, list):
                return None
            if node.path >= 0 and kind(value) is not Kind.MISSING:
                found.append((node.path, value))
            if isinstance(value, dict):
                pending.append((node, value))
    return found


@dataclass(slots=True)
class _Rows:
    """Rows that are being made."""

    texts: list[bytes] = field(default_factory=list)
    paths: list[int] = field(default_factory=list)
    kinds: list[Kind] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    events: list[int] = field(default_factory=list)

    def append(self, event: int, found: list[tuple[int, Found]]) -> None:
        for path, value in found:
            self.paths.append(path)
            self.kinds.append(kind(value))
            self.texts.append(_written(value))
        self.sizes.append(len(found))
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


def _written(value: Found) -> bytes:
    """A value as its span has it."""
    if isinstance(value, float):
        return repr(value).encode()
    return (canonical_text(value) or "").encode(errors="surrogatepass")
