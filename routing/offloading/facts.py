"""What a broker remembers of covering work that others do for it, one fact at a time (`offloader.py`)."""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from branchline.routing.filters import Filter
from branchline.routing.offloading.messages import Answer, Assignment, Indices


@dataclass(frozen=True, slots=True)
class Volunteered:
    """A subscriber works for the broker until then; not at all, if that is 0."""

    subscriber: str
    until_ms: int
    own: bool = False
    """It asked by its own control topic: there it is given work, and from there alone answers are taken."""


@dataclass(frozen=True, slots=True)
class Waits:
    """Since then, the filters that no round has taken wait for more of them; None if there are none left."""

    since_ms: int | None


@dataclass(frozen=True, slots=True)
class Began:
    """A round: the first so many filters that wait, and the clients that work at it."""

    number: int
    size: int
    at_ms: int
    clients: tuple[str, ...]
    turn: int
    """Whose turn it is first."""


@dataclass(frozen=True, slots=True)
class Worked:
    """A client has answered."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class Placed:
    """The filter that waited under this ordinal stands between these of the table."""

    ordinal: int
    above: Indices
    below: Indices


@dataclass(frozen=True, slots=True)
class RoundOver:
    """The round has ended, and these have not answered: they are asked no more."""

    silent: tuple[str, ...] = ()


class Standing(NamedTuple):
    """A filter of the table, for a snapshot."""

    number: int
    filter: Filter
    above: Indices


@dataclass(frozen=True, slots=True)
class Table:
    """Of a snapshot: the filters that are placed, and the number that the next one gets."""

    standing: tuple[Standing, ...]
    following: int


@dataclass(frozen=True, slots=True)
class Queue:
    """Of a snapshot: the filters that wait, with their ordinals, the last one given, and whose turn it is."""

    waiting: tuple[tuple[int, Filter], ...]
    given: int
    turn: int
    number: int
    """Of the last round."""
    frozen: bool
    """A round is under way."""


@dataclass(frozen=True, slots=True)
class Assigned:
    """From now on this is the fixed set; its filters have these numbers in the table while they are there."""

    numbers: tuple[int, ...]
    assignment: Assignment
    table: int
    """How many filters the table had."""


OffloadFact: TypeAlias = Volunteered | Waits | Began | Worked | Placed | RoundOver | Table | Queue | Assigned
