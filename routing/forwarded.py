"""Copies that go on: which events of a batch go to which neighbours, with which headers, as columns.

They stand in the order in which they are to be written, which is that of the events and, for one event, that
of the neighbours' numbers. A header is either bytes already, where a compiled loop has written it, or what
the reference made and whoever sends it encodes. Whoever wants to look at one copy gets a `Forwarded`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import overload

import numpy as np
from numpy.typing import NDArray

from branchline.routing.deliveries import Names, turns
from branchline.routing.overlay.dividing import Copy
from branchline.routing.prefix.header import Header, decode, encode
from branchline.routing.slices import Slices


@dataclass(frozen=True, slots=True)
class Forwarded:
    """The event at this index goes on to a neighbour of the broker that it was at."""

    event: int
    at: str
    copy: Copy


class ForwardedCopies(Sequence[Forwarded]):
    """Events, the brokers that they were at, neighbours and headers, side by side."""

    __slots__ = ("at", "events", "headers", "names", "to")

    def __init__(
        self,
        events: NDArray[np.int64],
        at: NDArray[np.int32],
        to: NDArray[np.int32],
        headers: Sequence[bytes | Header],
        names: Sequence[str],
    ) -> None:
        self.events, self.at, self.to, self.headers = events, at, to, headers
        self.names = names
        """Brokers, by the numbers in `at` and `to`."""

    def __len__(self) -> int:
        return len(self.events)

    @overload
    def __getitem__(self, place: int) -> Forwarded: ...

    @overload
    def __getitem__(self, place: slice) -> "ForwardedCopies": ...

    def __getitem__(self, place: int | slice) -> "Forwarded | ForwardedCopies":
        if isinstance(place, slice):
            columns = (self.events[place], self.at[place], self.to[place], self.headers[place])
            return ForwardedCopies(*columns, self.names)
        header = self.headers[place]
        if isinstance(header, bytes):
            read = decode(header)
            assert read is not None, "what was written can be read"
            header = read
        at, to = self.names[self.at[place]], self.names[self.to[place]]
        return Forwarded(int(self.events[place]), at, Copy(to, header))

    def __iter__(self) -> Iterator[Forwarded]:
        return (self[place] for place in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))

    def encoded(self) -> Sequence[bytes]:
        """The headers as they travel."""
        if isinstance(self.headers, Slices):
            return self.headers
        return [each if isinstance(each, bytes) else encode(each) for each in self.headers]


def no_copies() -> ForwardedCopies:
    nobody = np.empty(0, np.int32)
    return ForwardedCopies(np.empty(0, np.int64), nobody, nobody, (), ())


class CopyGathering:
    """Collects the copies of one call, in whatever order they are made; those of one event in their order."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._events: list[NDArray[np.int64]] = []
        self._at: list[NDArray[np.int32]] = []
        self._to: list[NDArray[np.int32]] = []
        self._headers: list[Sequence[bytes | Header]] = []
        self._single: list[tuple[int, int, int]] = []
        self._single_headers: list[bytes | Header] = []

    def add(self, event: int, at: str, copies: Iterable[Copy]) -> None:
        """The copies of one event."""
        for copy in copies:
            self._single.append((event, self._names.number(at), self._names.number(copy.to)))
            self._single_headers.append(copy.header)

    def extend(
        self, events: NDArray[np.int64], at: str, to: NDArray[np.int32], headers: Sequence[bytes | Header]
    ) -> None:
        """Copies from one broker: events, the numbers of neighbours, and headers, side by side."""
        self._events.append(events)
        self._at.append(np.full(len(events), self._names.number(at), np.int32))
        self._to.append(to)
        self._headers.append(headers)

    def copies(self, batch: int) -> ForwardedCopies:
        """All of them; events from index `batch` on were held before, and come first."""
        if not self._single and not self._events:
            return no_copies()
        single = np.array(self._single, np.int64).reshape(-1, 3)
        events = np.concatenate([single[:, 0], *self._events])
        at = np.concatenate([single[:, 1].astype(np.int32), *self._at])
        to = np.concatenate([single[:, 2].astype(np.int32), *self._to])
        if len(self._headers) == 1 and not self._single:
            headers = self._headers[0]
        else:
            headers = list(chain(self._single_headers, *self._headers))
        order = np.argsort(turns(events, batch), kind="stable")
        if (order[1:] < order[:-1]).any():
            events, at, to = events[order], at[order], to[order]
            headers = [headers[each] for each in order.tolist()]
        return ForwardedCopies(events, at, to, headers, self._names.all)
