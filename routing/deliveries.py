"""Deliveries: which events of a batch are owed to whom, as columns.

A batch may have hundreds of thousands of them, so none is an object: an event's index and a subscriber's
number, in the order in which they are to be written, which is that of the events and, for one event, that of
the subscribers' names. Whoever wants to look at one gets a `Delivery`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Delivery:
    """The event at this index of the call is owed to the subscriber."""

    event: int
    subscriber: str


class Names:
    """Subscribers by number. A number, once given, is never taken back."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, name: str) -> int:
        found = self._numbers.get(name)
        if found is None:
            found = self._numbers[name] = len(self.all)
            self.all.append(name)
        return found


class Deliveries(Sequence[Delivery]):
    """Events and subscribers, side by side."""

    __slots__ = ("events", "names", "subscribers")

    def __init__(
        self, events: NDArray[np.int64], subscribers: NDArray[np.int32], names: Sequence[str]
    ) -> None:
        self.events = events
        self.subscribers = subscribers
        self.names = names

    def __len__(self) -> int:
        return len(self.events)

    @overload
    def __getitem__(self, place: int) -> Delivery: ...

    @overload
    def __getitem__(self, place: slice) -> "Deliveries": ...

    def __getitem__(self, place: int | slice) -> "Delivery | Deliveries":
        if isinstance(place, slice):
            return Deliveries(self.events[place], self.subscribers[place], self.names)
        return Delivery(int(self.events[place]), self.names[self.subscribers[place]])

    def __iter__(self) -> Iterator[Delivery]:
        for event, subscriber in zip(self.events.tolist(), self.subscribers.tolist(), strict=True):
            yield Delivery(event, self.names[subscriber])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))


def turns(events: NDArray[np.int64], batch: int) -> NDArray[np.int64]:
    """Numbers in the order in which events are written: those from `batch` on were held, and come first."""
    return (events - batch) % max(batch, int(events.max(initial=0)) + 1)


def no_deliveries() -> Deliveries:
    return Deliveries(np.empty(0, np.int64), np.empty(0, np.int32), ())


class Gathering:
    """Collects what is owed in one call, in whatever order it is found."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._events: list[NDArray[np.int64]] = []
        self._subscribers: list[NDArray[np.int32]] = []
        self._single: list[tuple[int, int]] = []

    def add(self, event: int, subscribers: Iterable[str]) -> None:
        """One event for some subscribers."""
        self._single += [(event, self._names.number(name)) for name in subscribers]

    def extend(self, events: NDArray[np.int64], subscribers: NDArray[np.int32]) -> None:
        """Events and the numbers of subscribers, side by side."""
        self._events.append(events)
        self._subscribers.append(subscribers)

    def deliveries(self, batch: int) -> Deliveries:
        """All of them; events from index `batch` on were held before, and come first."""
        if not self._single and not self._events:
            return no_deliveries()
        single = np.array(self._single, np.int64).reshape(-1, 2)
        events = np.concatenate([single[:, 0], *self._events])
        subscribers = np.concatenate([single[:, 1].astype(np.int32), *self._subscribers])
        names = self._names.all
        is_met = np.zeros(len(names), np.bool_)
        is_met[subscribers] = True
        met = sorted(np.flatnonzero(is_met).tolist(), key=names.__getitem__)
        by_name = np.empty(len(names), np.int64)
        by_name[met] = np.arange(len(met))
        # Nearly in order as a rule, which is what this way of sorting is quick with.
        order = np.argsort(turns(events, batch) * len(met) + by_name[subscribers], kind="stable")
        return Deliveries(events[order], subscribers[order], self._names.all)
