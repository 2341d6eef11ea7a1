"""Many bytes that lie one after the other, as a sequence: none of them is an object before somebody asks."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import overload

import numpy as np
from numpy.typing import NDArray


class Slices(Sequence[bytes]):
    """The i-th is `data[first[i]:first[i + 1]]`."""

    __slots__ = ("data", "first")

    def __init__(self, data: NDArray[np.uint8], first: NDArray[np.int64]) -> None:
        self.data, self.first = data, first

    def __len__(self) -> int:
        return len(self.first) - 1

    @overload
    def __getitem__(self, place: int) -> bytes: ...

    @overload
    def __getitem__(self, place: slice) -> "Slices": ...

    def __getitem__(self, place: int | slice) -> "bytes | Slices":
        if isinstance(place, slice):
            start, stop, step = place.indices(len(self))
            assert step == 1, "what lies one after the other is taken so"
            return Slices(self.data, self.first[start : max(start, stop) + 1])
        if not -len(self) <= place < len(self):
            raise IndexError(place)
        place %= len(self)
        return self.data[self.first[place] : self.first[place + 1]].tobytes()

    def __iter__(self) -> Iterator[bytes]:
        whole, start = self.whole(), self.first[0]
        return (whole[low:high] for low, high in pairwise((self.first - start).tolist()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))

    def lengths(self) -> NDArray[np.int64]:
        """How long each is."""
        return np.diff(self.first)

    def whole(self) -> bytes:
        """All of them as one."""
        return self.data[self.first[0] : self.first[-1]].tobytes()
