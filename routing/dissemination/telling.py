"""What two neighbours on the spanning tree tell each other of filters, and how that is answered.

Each broker keeps its neighbour's table of *what is wanted on this side of the link* up to date. What it tells
is a *stream* of numbered letters: first the whole table, in pieces, then only changes of it. A stream is
begun anew under every topology, and whenever the neighbour asks for it; a later one replaces an earlier one.
Within one letter, what comes is obeyed before what goes: so a filter that takes another one's place leaves no
gap.

`Settled` answers a letter once all that it led to further on is settled too: then every broker on that side
of the link has something that stands for what was told. Letters are obeyed in their order, so an answer to
one is an answer to all before it.
"""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from branchline.routing.filters import Filter

Marks: TypeAlias = tuple[tuple[str, int], ...]
"""Neighbours, and the number of the last letter that each was sent."""

TOLD_PIECE = 64
"""Filters in one letter: of the largest that there can be, a record holds so many."""


class Stream(NamedTuple):
    """Names a stream: the order of the topology that it is for, and when it began."""

    topology: tuple[int, int]
    start_ms: int


class Exchange(NamedTuple):
    """What comes to a set of filters, and what goes."""

    added: tuple[Filter, ...] = ()
    removed: tuple[Filter, ...] = ()


NOTHING = Exchange()


@dataclass(frozen=True, slots=True)
class Told:
    """What is wanted on the teller's side of a link, and what is advertised there, has changed so."""

    stream: Stream
    number: int
    wanted: Exchange
    advertised: Exchange = NOTHING
    whole: bool = False
    """It is a piece of the table that the stream begins with."""
    complete: bool = True
    """The table is whole by now. Until then, whatever the neighbour had before stands."""


@dataclass(frozen=True, slots=True)
class Settled:
    """All that was told in this stream up to this number is known wherever it leads."""

    stream: Stream
    number: int


@dataclass(frozen=True, slots=True)
class Ask:
    """Whoever asks has the topology of this order, has lost what it was told, and wants it anew."""

    topology: tuple[int, int]


def pieces(exchange: Exchange) -> list[Exchange]:
    """The exchange in parts that fit into letters: all that comes, then all that goes; at least one."""
    added, removed = exchange
    made = [Exchange(added=added[at : at + TOLD_PIECE]) for at in range(0, len(added), TOLD_PIECE)]
    made += [Exchange(removed=removed[at : at + TOLD_PIECE]) for at in range(0, len(removed), TOLD_PIECE)]
    if len(added) + len(removed) <= TOLD_PIECE:
        return [exchange]
    return made
