"""Subscriptions that overlap as much as is asked for, and events for them.

A filter has a kind, and a range of prices: `kind = 7 AND price >= 120 AND price < 180`. Either it is drawn
afresh, or, with the probability that is the *overlap*, it is made of one that was drawn before: the same
again, a part of its range, or the range of the same width beside it, each as often.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from branchline.routing.values import JsonValue

KINDS = 50
PRICES = 1_000
WIDTH_MIN, WIDTH_MAX = 10, 200


class Wish(NamedTuple):
    """A filter."""

    kind: int
    low: int
    high: int

    @property
    def text(self) -> str:
        return f"kind = {self.kind} AND price >= {self.low} AND price < {self.high}"

    def matches(self, event: "Offer") -> bool:
        return self.kind == event.kind and self.low <= event.price < self.high


class Offer(NamedTuple):
    """An event."""

    kind: int
    price: int

    def attributes(self) -> dict[str, JsonValue]:
        return {"kind": self.kind, "price": self.price}


@dataclass(frozen=True, slots=True)
class Overlapping:
    """Subscriptions and events, by how much the former have to do with each other."""

    overlap: float

    def wishes(self, random: Random) -> Iterator[Wish]:
        """Filters without end, the same for the same source."""
        drawn: list[Wish] = []
        while True:
            old = random.choice(drawn) if drawn and random.random() < self.overlap else None
            drawn.append(_afresh(random) if old is None else _made_of(random, old))
            yield drawn[-1]


def offers(random: Random) -> Iterator[Offer]:
    """Events without end, the same for the same source."""
    while True:
        yield Offer(random.randrange(KINDS), random.randrange(PRICES))


def _afresh(random: Random) -> Wish:
    width = random.randint(WIDTH_MIN, WIDTH_MAX)
    low = random.randrange(PRICES - width)
    return Wish(random.randrange(KINDS), low, low + width)


def _made_of(random: Random, old: Wish) -> Wish:
    width = old.high - old.low
    match random.randrange(3):
        case 0:
            return old
        case 1 if width > 1:
            low = random.randrange(old.low, old.high)
            return Wish(old.kind, low, random.randint(low + 1, old.high))
        case _:
            return Wish(old.kind, old.high, old.high + width)
