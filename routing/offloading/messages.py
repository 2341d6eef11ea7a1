"""What a router and the clients that work for it tell each other.

All of it is data and may come from anybody: whoever receives it checks what it uses. What a client learns are
filters of others, though neither whose they are nor, but for a fixed set, how they are linked.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from branchline.routing.filters import Filter, filter_order

SLICE_MAX = 500
"""Filters of the table in one task: with more a client takes longer than the router would by itself."""
BATCH_MAX = 50
"""New filters in one round: with more of them none is in force for too long."""
COPIES_MAX = 7
"""Clients that are given the same slice: more only cost traffic, since what they say is verified anyway."""
FIXED_MAX = 1_000
"""Filters of a fixed set: a client compares each of its filters with all of them."""

Indices: TypeAlias = tuple[int, ...]
"""Ascending, so that what is the same is equal."""


class Listed(NamedTuple):
    """A filter of the table, with its number there."""

    number: int
    filter: Filter


class Between(NamedTuple):
    """Which others of a few filters are right above and right below one, by their places."""

    above: Indices
    below: Indices


@dataclass(frozen=True, slots=True)
class Task:
    """RTO: compare these new filters with this slice of the table, and with each other."""

    round: int
    slice: int
    table: tuple[Listed, ...]
    batch: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """RTO: what a client has found out."""

    round: int
    slice: int
    client: str
    above: tuple[Indices, ...]
    """For each filter of the batch, the numbers of those of the slice that cover it."""
    below: tuple[Indices, ...]
    """For each filter of the batch, the numbers of those of the slice that it covers."""
    order: tuple[Between, ...]
    """The poset of the batch."""


class Dispatch(NamedTuple):
    """A task, and the client that it goes to."""

    client: str
    task: Task


@dataclass(frozen=True, slots=True)
class Assignment:
    """FF: the set that clients compare their filters with from now on, with its own immediate covering."""

    version: int
    filters: tuple[Filter, ...]
    order: tuple[Between, ...]


@dataclass(frozen=True, slots=True)
class Claim:
    """FF: a subscription with its place in the fixed set."""

    version: int
    filter: Filter
    above: Indices
    """Which of the fixed set cover it immediately, by their places in it."""
    below: Indices


@dataclass(frozen=True, slots=True)
class Claimed:
    """FF: where the filters of a subscription go in a fixed set, in the order of filters."""

    version: int
    places: tuple[Between, ...]

    def claims(self, cover: Iterable[Filter]) -> list[Claim]:
        """What is claimed of each of them; nothing, if it does not fit them."""
        filters = sorted(cover, key=filter_order)
        if len(filters) != len(self.places):
            return []
        return [
            Claim(self.version, each, *between) for each, between in zip(filters, self.places, strict=True)
        ]
