"""What was found in a batch of events at the paths that are named: spans of bytes, in flat arrays.

A *row* is what the paths meet in a single-valued event: for each path at most one entry, with the kind of
value and where its text is. An event without arrays on named paths has one row. One with arrays has a row
for each choice, up to `ROWS_MAX`, so that some row satisfies a filter if and only if the event matches the
filter's cover. An event that cannot be given rows has none, and whoever made the rows says which.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ROWS_MAX = 64
"""Rows of one event. Arrays may multiply, and an event with more choices is matched one by one."""


@dataclass(frozen=True, slots=True)
class Scanned:
    """Rows of entries; those of row r are at `first[r]` to `first[r + 1]`, in no special order."""

    text: NDArray[np.uint8]
    """The bytes that spans point into."""
    first: NDArray[np.int64]
    path: NDArray[np.int32]
    """Each entry's path, as `Paths` numbers them."""
    kind: NDArray[np.uint8]
    """Each entry's `values.Kind`. What is missing has no entry."""
    start: NDArray[np.int64]
    """Where an entry's bytes begin: of a text its UTF-8, of a number its literal as JSON writes it, of a
    Boolean `t` or `f` and perhaps more. Nulls and objects have none."""
    end: NDArray[np.int64]
    event: NDArray[np.int32]
    """Which event of the batch each row stands for."""

    @property
    def rows(self) -> int:
        return len(self.event)


def joined(parts: Sequence[Scanned]) -> Scanned:
    """The rows of all parts, in the order of their events; rows of one event stay as they were."""
    if len(parts) == 1:
        return parts[0]
    places = np.cumsum([0, *(len(part.text) for part in parts)])
    lengths = np.concatenate([np.diff(part.first) for part in parts])
    sizes = np.cumsum([0, *(len(part.path) for part in parts)])
    begins = np.concatenate([part.first[:-1] + size for part, size in zip(parts, sizes[:-1], strict=True)])
    event = np.concatenate([part.event for part in parts])
    order = np.argsort(event, kind="stable")
    first = np.zeros(len(event) + 1, np.int64)
    np.cumsum(lengths[order], out=first[1:])
    # Entry k of a row that now begins at `first` was entry k of the row that began at `begins`.
    moved = np.arange(first[-1]) + np.repeat(begins[order] - first[:-1], lengths[order])
    return Scanned(
        np.concatenate([part.text for part in parts]),
        first,
        np.concatenate([part.path for part in parts])[moved],
        np.concatenate([part.kind for part in parts])[moved],
        np.concatenate([part.start + place for part, place in zip(parts, places[:-1], strict=True)])[moved],
        np.concatenate([part.end + place for part, place in zip(parts, places[:-1], strict=True)])[moved],
        event[order],
    )
