"""Routing table offloading: a router that lets its clients find out where new filters go in its table.

Theory of operation. Subscriptions are collected. A *round* takes a batch of them through five phases, each a
method, so that whoever drives it can time them:

1. `prepare` puts equal filters together, and deals with those that are in the table already;
2. `lay_out` brings the layers of the table up to date, and gives a task for each slice and client;
3. clients work, and `receive` takes their answers, in any order, until `complete`, or until a time-out that
   somebody else decides upon;
4. `insert` chooses among the answers, compares what nobody has answered for, and puts the filters in;
5. `eliminate` takes sources off what the new filters cover, and ends the round.

The most general filters of a batch go first, so that each finds those above it in the table already. A round
that is run through without an answer gives the same table by the router's own tests.

Invariants. With honest clients the poset is the one that the router would have made alone. Whatever clients
say, unless they are trusted (`placing.py`), every link is true, so that roots cover everything; and whoever
asked for a filter has it in the table, or one that covers it. Unsubscriptions are obeyed at once, also within
a round: what is claimed of filters that are gone is passed over.

Cost: clients compare batch times table; the router makes a test for each link, and set operations on claims.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import eq

from branchline.routing.filters import Filter
from branchline.routing.offloading.layers import Layers
from branchline.routing.offloading.messages import BATCH_MAX, COPIES_MAX, SLICE_MAX, Answer, Dispatch, Task
from branchline.routing.offloading.placing import Check, ForestPlacing, Placing, PosetPlacing
from branchline.routing.offloading.rounds import Round, from_above, in_turn, reach
from branchline.routing.posets.forest import Forest, Variant
from branchline.routing.posets.graph import Source
from branchline.routing.posets.poset import Poset
from branchline.routing.posets.subscribing import subscribe, unsubscribe


@dataclass(frozen=True, slots=True)
class Settings:
    """How work is divided."""

    batch: int = 10
    slice_size: int = 100
    copies: int = 3
    """Clients that each slice goes to."""
    check: Check = Check.LINKS

    def __post_init__(self) -> None:
        assert 1 <= self.batch <= BATCH_MAX, f"a batch has at most {BATCH_MAX} filters"
        assert 1 <= self.slice_size <= SLICE_MAX, f"a slice has at most {SLICE_MAX} filters"
        assert 1 <= self.copies <= COPIES_MAX, f"a slice goes to at most {COPIES_MAX} clients"


@dataclass(slots=True)
class Counts:
    """What has happened so far."""

    rounds: int = 0
    tasks: int = 0
    computed: int = 0
    """Slices that the router compared by itself."""
    refuted: int = 0
    """Claims that proved false."""


@dataclass(slots=True)
class _Current:
    """The round that is under way."""

    round: Round
    wanted: dict[Filter, list[Source]]
    inserted: list[tuple[int, list[Source]]] = field(default_factory=list)


class Router:
    """A table, the subscriptions that wait for a round, and the round that is under way."""

    def __init__(self, table: Poset | Forest, settings: Settings | None = None) -> None:
        self.table = table
        self.settings = settings or Settings()
        self.layers = Layers(table, self.settings.slice_size)
        self.counts = Counts()
        self._placing: Placing = (
            PosetPlacing(table, self.settings.check)
            if isinstance(table, Poset)
            else ForestPlacing(table, self.settings.check)
        )
        self._waiting: list[tuple[Filter, Source]] = []
        self._current: _Current | None = None
        self._turn = 0

    # Subscriptions

    def subscribe(self, filter_: Filter, source: Source) -> bool:
        """A source asks for a filter. Whether there are enough for a round, and none is under way."""
        self._waiting.append((filter_, source))
        return self._current is None and len(self._waiting) >= self.settings.batch

    def unsubscribe(self, filter_: Filter, source: Source) -> None:
        """At once: in the table, in the round that is under way, and among those that wait.

        At a poset all that the filter covers ends; at a forest just the filter.
        """
        ends = self.table.comparisons.covers if isinstance(self.table, Poset) else eq
        self._waiting = [
            (each, who) for each, who in self._waiting if who != source or not ends(filter_, each)
        ]
        if self._current is not None:
            for each, sources in self._current.wanted.items():
                if source in sources and ends(filter_, each):
                    sources.remove(source)
        if isinstance(self.table, Poset):
            unsubscribe(self.table, filter_, source)
        else:
            self.table.unsubscribe(filter_, source)

    @property
    def waiting(self) -> int:
        """Subscriptions that no round has taken yet."""
        return len(self._waiting)

    # The five phases

    def prepare(self) -> int:
        """Begin a round with what waits; how many filters are new."""
        assert self._current is None, "one round after the other"
        taken, self._waiting = self._waiting[: self.settings.batch], self._waiting[self.settings.batch :]
        wanted: dict[Filter, list[Source]] = {}
        for filter_, source in taken:
            if filter_ in self.table:
                self._subscribe_known(filter_, source)
            elif source not in wanted.setdefault(filter_, []):
                wanted[filter_].append(source)
        self._current = _Current(Round(self.counts.rounds, tuple(wanted)), wanted)
        self.counts.rounds += 1
        return len(wanted)

    def lay_out(self, clients: Sequence[str]) -> list[Dispatch]:
        """The tasks of the round. Each slice goes to different clients, and all get their turn."""
        current = self._under_way()
        self.layers.settle()
        if not current.wanted:
            return []
        batch, number = current.round.batch, current.round.number
        made: list[Dispatch] = []
        for each in self.layers.slices():
            chosen = in_turn(clients, self._turn, self.settings.copies) if clients else []
            self._turn += len(chosen)
            made += current.round.ask(Task(number, each.number, each.listed(), batch), chosen)
        self.counts.tasks += len(made)
        return made

    def receive(self, answer: Answer) -> bool:
        """Take an answer; not so, if it is none to what was asked in this round."""
        return self._current is not None and self._current.round.receive(answer)

    @property
    def complete(self) -> bool:
        """Whether there is nothing to wait for."""
        return self._current is None or self._current.round.complete

    def insert(self) -> None:
        """Put the filters in by what was answered so far."""
        current = self._under_way()
        covers = self.table.comparisons.covers
        claims, above = current.round.claims(covers), reach(current.round.order(covers))
        numbers: dict[int, int] = {}
        for place in from_above(above):
            mine = claims[place]
            mine.above |= {numbers[each] for each in above[place] if each in numbers}
            mine.below |= {number for each, number in numbers.items() if place in above[each]}
            # What has left since the round began.
            mine.above = {each for each in mine.above if self.table.has(each)}
            mine.below = {each for each in mine.below if self.table.has(each)}
            placed = self._placing.place(mine, current.wanted[mine.filter])
            self.counts.refuted += mine.refuted
            if placed.sources:
                numbers[place] = self.table.insert(mine.filter, placed.above, placed.below)
                for source in placed.sources:
                    self.table.give(numbers[place], source, ())
                current.inserted.append((numbers[place], placed.sources))
        self.counts.computed += current.round.computed

    def eliminate(self) -> None:
        """Take the sources of the new filters off what these cover. The round is over."""
        current = self._under_way()
        if not (isinstance(self.table, Forest) and self.table.variant is Variant.PLAIN):
            for number, sources in current.inserted:
                for source in sources:
                    if self.table.has(number) and source in self.table.entry(number).sources:
                        self.table.give(number, source, self._covered(number, source))
        self._current = None

    def _covered(self, number: int, source: Source) -> list[int]:
        if isinstance(self.table, Forest):
            return list(self.table.covered(number, source))
        return list(self.table.all_below([number]))

    def _subscribe_known(self, filter_: Filter, source: Source) -> None:
        if isinstance(self.table, Poset):
            subscribe(self.table, filter_, source)
        else:
            self.table.subscribe(filter_, source)

    def _under_way(self) -> _Current:
        assert self._current is not None, "no round is under way"
        return self._current
