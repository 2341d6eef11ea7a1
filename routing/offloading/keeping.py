"""What a broker remembers of a table in which filters wait, whoever finds out where they go."""

from typing import TypeAlias

from branchline.routing.dissemination.shared import SharedTable
from branchline.routing.offloading.facts import Placed, Queue, Standing, Table

Kept: TypeAlias = Placed | Table | Queue


def keep(table: SharedTable, fact: Kept) -> None:
    """Make the fact so."""
    match fact:
        case Placed():
            filter_ = next(each for each, at in table.waiting.items() if at == fact.ordinal)
            table.place(filter_, set(fact.above), set(fact.below))
        case Table():
            table.restore(fact.standing, fact.following)
        case Queue():
            waiting = {filter_: at for at, filter_ in fact.waiting}
            table.queue(waiting, fact.given, frozen=fact.frozen)


def standing(table: SharedTable) -> Table:
    """Of a snapshot, the filters that are placed: it comes before anybody wants anything."""
    poset = table.poset
    here = (
        Standing(number, poset.entry(number).filter, tuple(sorted(poset.entry(number).above)))
        for number in poset
    )
    return Table(tuple(here), poset.following)


def queued(table: SharedTable, turn: int = 0, number: int = 0) -> Queue:
    """Of a snapshot, the filters that wait: it comes when all is wanted that is."""
    waiting = tuple((at, filter_) for filter_, at in table.waiting.items())
    return Queue(waiting, table.given, turn, number, table.frozen)


def placed(ordinal: int, above: set[int], below: set[int]) -> Placed:
    """A filter goes between these."""
    return Placed(ordinal, tuple(sorted(above)), tuple(sorted(below)))
