"""The deliveries and copies of a batch as columns: each event once, however many it goes to.

Most of what a router writes are these, so no object is made for each. An event's key, value and foreign
headers stand here as they came; a delivery is two numbers, a copy these and the header that goes with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Owed:
    """Events, and to whom each is owed: `subscriber[first[i]:first[i + 1]]` are those of the i-th event."""

    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    headers: Sequence[bytes]
    """Foreign headers, packed (`header_cells.py`)."""
    origins: Sequence[str]
    """Where each was published, as ids have it."""
    first: NDArray[np.int64]
    subscriber: NDArray[np.int32]
    """Places in `names`."""
    names: Sequence[str]
    """Subscribers."""

    def __len__(self) -> int:
        """How many deliveries there are."""
        return len(self.subscriber)


@dataclass(frozen=True, slots=True)
class Onward(Owed):
    """Events that go on to other brokers: to a neighbour in place of a subscriber, each with a header."""

    prefixes: Sequence[bytes]
    """What is told to each, side by side with `subscriber`."""
