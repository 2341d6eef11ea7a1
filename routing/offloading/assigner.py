"""A broker that gives out a fixed set of its filters, and places new ones by what is claimed of it: FF.

Theory of operation. The broker chooses a *fixed set* among the filters of the table that its neighbours are
told of (`dissemination/shared.py`), and tells it to whoever asks. A subscriber compares its own filters with
the set, and its subscription says where they go in it. Claims are verified, each by a test, and spare the
tests that follow from them (`fixed.py`). A filter that comes without, from a neighbour for one, or with
claims about an older set, is placed by tests alone. So a filter never waits beyond the call that brings it.

The set is of the uppermost layers, since every filter is compared with the roots. It is chosen anew when half
of it has left the table, or the table has twice as many filters as it had; what is chosen is a fact, so that
all shards go by the same whatever has become of the table since.

Invariants. Whatever is claimed, every link of the table is true. Cost: as in `fixed.py`; choosing is a step
for each link of the table.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice

from branchline.routing.dissemination.shared import SharedTable
from branchline.routing.filters import Filter
from branchline.routing.offloading.facts import Assigned, Began, OffloadFact, Placed, Queue, RoundOver, Table
from branchline.routing.offloading.fixed import FixedSet, assignment_of
from branchline.routing.offloading.keeping import keep, placed, queued, standing
from branchline.routing.offloading.layers import cut
from branchline.routing.offloading.messages import FIXED_MAX, Assignment, Claim, Claimed
from branchline.routing.posets.searching import find_place

FIXED = 100
"""Filters of the fixed set, unless said: a subscriber compares each of its own with all of them."""

NO_SET = Assignment(0, (), ())


@dataclass(frozen=True, slots=True)
class Given:
    """The fixed set, for a subscriber that has asked."""

    subscriber: str
    home: str
    assignment: Assignment
    request: str | None
    own: bool
    """It goes to the subscriber's own acks."""


class Assigner:
    """The fixed set of one broker, and what is claimed of it in a call."""

    def __init__(self, name: str, table: SharedTable, most: int | None = None) -> None:
        self.name = name
        self.table = table
        self.counts = table.counts
        self._most = FIXED if most is None else most
        assert 1 <= self._most <= FIXED_MAX, f"a fixed set has at most {FIXED_MAX} filters"
        self._fixed = FixedSet(table.poset, (), NO_SET)
        self._table_then = 0
        """How many filters the table had when the set was chosen."""
        self._claims: dict[Filter, Claim] = {}

    @property
    def assignment(self) -> Assignment:
        """The fixed set as subscribers are told it."""
        return self._fixed.assignment

    # Facts

    def obey(self, fact: OffloadFact) -> None:
        """Make the fact so."""
        match fact:
            case Placed() | Table() | Queue():
                keep(self.table, fact)
            case Assigned():
                self._fixed = FixedSet(self.table.poset, fact.numbers, fact.assignment)
                self._table_then = fact.table
            # Of a time when volunteers placed filters here.
            case Began():
                self.table.frozen = True
            case RoundOver():
                self.table.thaw()

    def early_facts(self) -> Iterator[OffloadFact]:
        """Of a snapshot, what comes before anybody wants anything."""
        yield standing(self.table)
        if self.assignment.version:
            yield Assigned(self._fixed.numbers, self.assignment, self._table_then)

    def late_facts(self) -> Iterator[OffloadFact]:
        """Of a snapshot, what comes when all is wanted that is."""
        yield queued(self.table)

    # Control

    def hear(self, cover: Iterable[Filter], claimed: Claimed) -> None:
        """A subscription has come with claims of where its filters go."""
        claims = claimed.claims(cover) if claimed.version == self.assignment.version else []
        self.counts["claims_outdated"] += not claims
        self._claims |= {each.filter: each for each in claims}

    def finish(self, now_ms: int) -> Iterator[OffloadFact]:
        """All control of a call is handled: place what waits, and choose another set if this one is worn."""
        if self.table.frozen:
            yield RoundOver()
        for filter_, ordinal in list(self.table.waiting.items()):
            claim = self._claims.get(filter_)
            if claim is None:
                above, below, _ = find_place(self.table.poset, filter_)
            else:
                above, below = self._place(claim)
            yield placed(ordinal, above, below)
        self._claims = {}
        self.table.count_tests()
        if self._is_worn():
            chosen = tuple(islice(chain(*cut(self.table.poset, FIXED_MAX)), self._most))
            version = max(now_ms, self.assignment.version + 1)
            yield Assigned(chosen, assignment_of(self.table.poset, chosen, version), len(self.table.poset))
            self.counts["sets_chosen"] += 1

    def _place(self, claim: Claim) -> tuple[set[int], set[int]]:
        refuted = self._fixed.refuted
        above, below, _ = self._fixed.find_place(claim)
        self.counts["filters_claimed"] += 1
        self.counts["claims_refuted"] += self._fixed.refuted - refuted
        return above, below

    def _is_worn(self) -> bool:
        there, table = len(self._fixed), len(self.table.poset)
        return 2 * there < min(self._most, table) or (table >= 2 * self._table_then and table > there)

    def due_ms(self) -> int | None:
        """There is never anything to do that nobody asks for."""
        return None

    def standing(self, now_ms: int) -> dict[str, int]:
        """How much of the set that is given out is still in the table, for statistics."""
        return {
            "placed": len(self.table.poset),
            "fixed": len(self.assignment.filters),
            "left": len(self._fixed),
        }
