"""What a broker remembers of its neighbours on the spanning tree, one fact at a time (`links.py`)."""

from dataclasses import dataclass
from typing import TypeAlias

from branchline.routing.dissemination.telling import Marks, Settled, Told
from branchline.routing.filters import Filter


@dataclass(frozen=True, slots=True)
class Heard:
    """A neighbour has told this."""

    sender: str
    told: Told


@dataclass(frozen=True, slots=True)
class Sent:
    """A neighbour was told this."""

    to: str
    told: Told


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A neighbour has answered."""

    sender: str
    settled: Settled


@dataclass(frozen=True, slots=True)
class Owed:
    """A neighbour is owed an answer to what it told up to this number, when the marks are settled."""

    to: str
    number: int
    marks: Marks


@dataclass(frozen=True, slots=True)
class Answered:
    """A neighbour was answered up to this number."""

    to: str
    number: int


@dataclass(frozen=True, slots=True)
class Spared:
    """A neighbour was told these, and they are not taken back until what may stand for them is placed."""

    to: str
    filters: tuple[Filter, ...]
    ordinal: int


@dataclass(frozen=True, slots=True)
class Deferred:
    """Of a snapshot: from when on a neighbour may be told anything, and the answers that wait."""

    name: str
    after: int
    heard: tuple[tuple[int, int], ...]
    """Numbers of letters, and the ordinals up to which filters must be placed before an answer is owed."""


LinkFact: TypeAlias = Heard | Sent | Confirmed | Owed | Answered | Spared | Deferred
