"""A broker that lets subscribers find out where filters go in the table that its neighbours are told of: RTO.

Theory of operation. A filter that is new in the shared table (`dissemination/shared.py`) *waits*: events are
matched with it at once, and only telling of it waits. A *round* begins when enough of them wait, or they have
waited long enough, and if anybody has volunteered; the table is frozen meanwhile. Its layers are cut into
slices, and each goes to a few volunteers in turn, with the new filters. When all have answered, or a time-out
is over, what most say of a slice is chosen, and what nobody has said is compared here (`rounds.py`). Claims
are verified, each by a test, before anything is made of them (`placing.py`). Without volunteers, or if too
many filters wait, the broker places them by its own tests at once.

Facts alone change anything here, and what is decided hangs on them, on the time of a call with control, and
on nothing else; so all shards decide the same. A call that is wanted because of the time alone is had by a
letter to the broker itself (`Due`), which the leading shard writes.

Invariants. Whatever volunteers say, every link of the table is true. What is told hangs on the links, and a
volunteer may have left some out: so a snapshot has them. A volunteer that is silent until the time-out is
asked no more. Filters are taken in their order, so none starves.

Cost: a round is a step for each filter of the table, and a test for each link and each false claim.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from branchline.routing.dissemination.shared import SharedTable
from branchline.routing.filters import Filter
from branchline.routing.offloading.facts import (
    Began,
    OffloadFact,
    Placed,
    Queue,
    RoundOver,
    Table,
    Volunteered,
    Waits,
    Worked,
)
from branchline.routing.offloading.keeping import keep, placed, queued, standing
from branchline.routing.offloading.layers import cut
from branchline.routing.offloading.messages import BATCH_MAX, Answer, Dispatch, Listed, Task
from branchline.routing.offloading.placing import Check, PosetPlacing
from branchline.routing.offloading.rounds import Round, from_above, in_turn, reach
from branchline.routing.posets.searching import find_place

BATCH = 10
"""New filters from which on a round begins, unless said."""
WAIT_MS = 1_000
"""How long the first of fewer waits for others: about as long as a batch of the router takes."""
TIMEOUT_MS = 10_000
"""How long answers are waited for: a client must read, work and write, and the router read, within it."""
SLICE = 64
"""Filters of the table in a task: with as many new ones as a round has, those of any size fit a record."""
COPIES = 3
"""Volunteers that are given the same slice: two outvote one."""
WAITING_MOST = 500
"""Filters that may wait: a neighbour that is new wants to know thousands, and no round should keep it."""


@dataclass(frozen=True, slots=True)
class Work:
    """A task for a volunteer."""

    home: str
    dispatch: Dispatch
    own: bool
    """It goes to the volunteer's own acks."""


@dataclass(slots=True)
class _Current:
    began: Began
    round: Round
    batch: tuple[Filter, ...]


Step: TypeAlias = OffloadFact | Work


class Offloader:
    """The filters of one broker that wait, its volunteers, and the round that is under way."""

    def __init__(self, name: str, table: SharedTable, batch: int | None = None) -> None:
        self.name = name
        self.table = table
        self.counts = table.counts
        self.volunteers: dict[str, Volunteered] = {}
        self._batch = BATCH if batch is None else batch
        self._placing = PosetPlacing(table.poset, Check.LINKS)
        self._current: _Current | None = None
        self._since_ms: int | None = None
        self._turn = 0
        self._number = 0

    # Facts

    def obey(self, fact: OffloadFact) -> None:
        """Make the fact so."""
        match fact:
            case Volunteered():
                self.volunteers.pop(fact.subscriber, None)
                if fact.until_ms:
                    self.volunteers[fact.subscriber] = fact
            case Waits():
                self._since_ms = fact.since_ms
            case Began():
                self._begin(fact)
            case Worked():
                assert self._current is not None, "an answer is taken in a round"
                self._current.round.receive(fact.answer)
            case Placed() | Table():
                keep(self.table, fact)
            case RoundOver():
                self._current = None
                for each in fact.silent:
                    self.volunteers.pop(each, None)
                self.table.thaw()
            case Queue():
                keep(self.table, fact)
                self._turn, self._number = fact.turn, fact.number

    def _begin(self, began: Began) -> None:
        for name in [name for name, each in self.volunteers.items() if each.until_ms <= began.at_ms]:
            del self.volunteers[name]
        batch = tuple(self.table.waiting)[: began.size]
        self._current = _Current(began, Round(began.number, batch), batch)
        self._since_ms, self._number, self._turn = None, began.number, began.turn
        self.table.frozen = True
        for _ in self._ask(self._current):
            pass

    def _ask(self, current: _Current) -> Iterator[Dispatch]:
        """Have each slice compared by some; asked again, the same."""
        poset = self.table.poset
        for place, numbers in enumerate(cut(poset, SLICE)):
            listed = tuple(Listed(number, poset.entry(number).filter) for number in numbers)
            chosen = in_turn(current.began.clients, self._turn, COPIES)
            self._turn += len(chosen)
            yield from current.round.ask(Task(current.began.number, place, listed, current.batch), chosen)

    def early_facts(self) -> Iterator[OffloadFact]:
        """Of a snapshot, what comes before anybody wants anything."""
        yield standing(self.table)
        yield from (each for _, each in sorted(self.volunteers.items()))

    def late_facts(self) -> Iterator[OffloadFact]:
        """Of a snapshot, what comes when all is wanted that is."""
        current = self._current
        yield queued(self.table, self._turn if current is None else current.began.turn, self._number)
        if self._since_ms is not None:
            yield Waits(self._since_ms)
        if current is not None:
            yield current.began
            yield from map(Worked, current.round.answers())

    # Control

    def active(self, now_ms: int) -> list[str]:
        """Those who work now."""
        return sorted(name for name, each in self.volunteers.items() if each.until_ms > now_ms)

    def takes(self, answer: Answer, *, own: bool) -> bool:
        """Whether an answer is asked for; one who has volunteered by an own topic answers by that."""
        volunteer = self.volunteers.get(answer.client)
        if volunteer is None or self._current is None or (volunteer.own and not own):
            return False
        return self._current.round.fits(answer)

    def finish(self, now_ms: int) -> Iterator[Step]:
        """All control of a call is handled: end a round, begin one, or place what waits."""
        waiting = self.table.waiting
        if self._current is not None and self._is_over(self._current, now_ms):
            yield from self._conclude(self._current)
        if self._current is not None:
            return
        if not waiting:
            if self._since_ms is not None:
                yield Waits(None)
            return
        clients = self.active(now_ms)
        if not clients or len(waiting) > WAITING_MOST or not len(self.table.poset):
            yield from self._place_all()
        elif len(waiting) >= self._batch or self._has_waited(now_ms):
            yield from self._have_compared(now_ms, tuple(clients))
        elif self._since_ms is None:
            yield Waits(now_ms)

    def due_ms(self) -> int | None:
        """When there is something to do, though nobody asks for anything."""
        if self._current is not None:
            return self._current.began.at_ms + TIMEOUT_MS
        waits = self._since_ms is not None and self.table.waiting
        return self._since_ms + WAIT_MS if waits and self._since_ms is not None else None

    def _has_waited(self, now_ms: int) -> bool:
        return self._since_ms is not None and now_ms >= self._since_ms + WAIT_MS

    def _is_over(self, current: _Current, now_ms: int) -> bool:
        late = now_ms >= current.began.at_ms + TIMEOUT_MS
        # Who has said that it stops is not waited for.
        answered = current.round.silent().isdisjoint(self.volunteers)
        return late or answered or len(self.table.waiting) > WAITING_MOST

    def _have_compared(self, now_ms: int, clients: tuple[str, ...]) -> Iterator[Step]:
        number = max(now_ms, self._number + 1)
        size = min(BATCH_MAX, len(self.table.waiting))
        yield Began(number, size, now_ms, clients, self._turn)
        assert self._current is not None, "it has begun"
        for name, task in self._current.round.dispatches():
            self.counts["tasks_given"] += 1
            yield Work(self.name, Dispatch(name, task), self.volunteers[name].own)

    def _place_all(self) -> Iterator[Placed]:
        for filter_, ordinal in list(self.table.waiting.items()):
            above, below, _ = find_place(self.table.poset, filter_)
            yield placed(ordinal, above, below)
        self.table.count_tests()

    def _conclude(self, current: _Current) -> Iterator[OffloadFact]:
        """Put the filters of the round in, by what was answered so far."""
        round_, table = current.round, self.table
        covers = table.poset.comparisons.covers
        self.counts["rounds_timed_out"] += not round_.complete
        claims, above = round_.claims(covers), reach(round_.order(covers))
        self.counts["slices_computed"] += round_.computed
        self.counts["slices_offloaded"] += round_.slices - round_.computed
        numbers: dict[int, int] = {}
        for place in from_above(above):
            mine = claims[place]
            mine.above |= {numbers[each] for each in above[place] if each in numbers}
            mine.below |= {number for each, number in numbers.items() if place in above[each]}
            goes = self._placing.place(mine, [mine.filter])
            self.counts["claims_refuted"] += mine.refuted
            yield placed(table.waiting[mine.filter], goes.above, goes.below)
            number = table.poset.number(mine.filter)
            assert number is not None, "it was placed"
            numbers[place] = number
        table.count_tests()
        yield RoundOver(tuple(sorted(round_.silent())))

    def standing(self, now_ms: int) -> dict[str, int]:
        """Who works, and on how much, for statistics."""
        return {
            "placed": len(self.table.poset),
            "waiting": len(self.table.waiting),
            "volunteers": len(self.active(now_ms)),
        }
