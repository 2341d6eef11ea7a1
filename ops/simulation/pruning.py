"""Kind `pruning`: what pruning saves and what it lets through, in one broker and in a line of several.

A file has `classes`, a case for each with each of `brokers`; the `market` (`auctions.py`; wide);
`subscriptions`, in all; `sample`, the events that shares are counted with; `events`, other ones, which are
matched; and `shares` of all prunings, from 0 on, a row each.

Subscriptions are spread over brokers in turn, and events enter at one after the other. Each home's entries
are pruned by themselves, in the order in which prunings come (`routing/boolean/pruning.py`); a broker has
one table, of its own subscriptions as they are and those of other homes as pruned. Since events are alike
wherever they enter, it is the same whether a home prunes before it tells others, or a broker what it was
told. With one broker nobody is at home: it shows the table of a broker all of whose subscriptions are
elsewhere.

An event *matches* if it must go to another home; a *copy* is one crossing of a link. Times are CPU times, and
so not the same twice: they, and the marks that follow from them, are the only columns of which that is so.
Matching is timed by itself, and so is writing each copy as JSON and reading it again.

Marks are the *bend*, where the curve of extra events lies furthest below the straight line from its first
point to its last; and where an event takes the *least time*, copies and all.
"""

import gc
import json
import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from random import Random

import numpy as np
from numpy.typing import NDArray

from branchline.ops.simulation.auctions import CLASSES, MARKETS, Market, events, subscriptions, tree
from branchline.ops.simulation.config import Section
from branchline.ops.simulation.kind import Beat, Case, Column, Kind, Result, Row
from branchline.ops.simulation.pruning_tables import HOMES_MAX, Asking, Table
from branchline.routing.boolean.forest import Forest, forest_of
from branchline.routing.boolean.jumps import jumps
from branchline.routing.boolean.ordered import Ordered, ordered
from branchline.routing.boolean.pruning import gone, prunings_of
from branchline.routing.boolean.trees import Predicate
from branchline.routing.dimensions import Dimension
from branchline.routing.event import Event
from branchline.routing.filters import Range
from branchline.routing.intervals import Cut, before
from branchline.routing.optimise.learned import shares
from branchline.routing.values import JsonValue

CLASS = Column("class", str, "class of subscriptions")
BROKERS = Column("brokers", int, "brokers in a line")
COLUMNS = (
    Column("share", float, "share of all prunings"),
    Column("prunings", int, "prunings"),
    Column("associations", int, "associations that are left"),
    Column("removed", float, "associations removed, of all that can be"),
    Column("trees", float, "different trees in a broker's table, mean"),
    Column("matching", float, "events that go to another home, of all"),
    Column("copies", int, "copies"),
    Column("extra", float, "events that go elsewhere for nothing, or copies, of all events"),
    Column("visits", float, "brokers that an event comes to, mean"),
    Column("evaluated", float, "trees evaluated for an event"),
    Column("filter_us", float, "microseconds of matching for an event"),
    Column("copy_us", float, "microseconds of writing and reading copies for an event"),
    Column("saved", float, "filter time saved"),
    Column("saved_all", float, "time saved, copies included"),
    Column("mark", str, "bend of extra events, least time"),
)
BEND, LEAST = "bend", "least time"
_WARMING = 3


@dataclass(frozen=True, slots=True)
class Spec:
    """What is pruned, and how far."""

    classes: tuple[str, ...]
    brokers: tuple[int, ...]
    market: Market
    subscriptions: int
    sample: int
    events: int
    shares: tuple[float, ...]


def read(section: Section) -> Spec:
    classes = section.texts("classes", CLASSES)
    for each in classes:
        if each not in CLASSES:
            section.wrong("classes", f"no class {each!r}", f"there are {', '.join(CLASSES)}")
    shares_ = section.numbers("shares", 0, 1)
    if shares_[0] != 0:
        section.wrong("shares", f"begins with {shares_[0]:g}", "begin with 0, which others are compared with")
    return Spec(
        classes,
        section.integers("brokers", 1, HOMES_MAX, (1, 5)),
        MARKETS[section.choice("market", list(MARKETS), "wide")],
        section.integer("subscriptions", 1, 10_000_000),
        section.integer("sample", 1, 1_000_000),
        section.integer("events", 1, 1_000_000),
        shares_,
    )


def sweep(spec: Spec) -> list[Row]:
    return [{CLASS.name: each, BROKERS.name: brokers} for each in spec.classes for brokers in spec.brokers]


def run(spec: Spec, case: Case, beat: Beat) -> Result:
    # What is drawn is much, and none of it is let go: looking for that would be counted as work.
    gc.disable()
    try:
        return _run(spec, case, beat)
    finally:
        gc.enable()


def _run(spec: Spec, case: Case, beat: Beat) -> Result:
    brokers = int(case.swept[BROKERS.name])
    beat("drawing subscriptions")
    drawn = _drawn(case.seed, spec.market, str(case.swept[CLASS.name]), spec.subscriptions, spec.sample)
    stream = events(Random(f"{case.seed} events"), spec.market)
    line = _Line(drawn, brokers, list(islice(stream, spec.sample, spec.sample + spec.events)), beat)
    rows: list[Row] = []
    for share in spec.shares:
        rows.append(line.row(share, rows[0] if rows else None))
        beat(f"{share:.0%} of all prunings, {rows[-1]['filter_us']:,.0f} microseconds an event")
    _mark(rows)
    return Result(rows, line.failures)


@dataclass(frozen=True, slots=True)
class Drawn:
    """Subscriptions of all homes, and what is known of their predicates."""

    forest: Forest
    order: Ordered
    shares: NDArray[np.float64]


@lru_cache(maxsize=1)
def _drawn(seed: int, market: Market, kind: str, count: int, sample: int) -> Drawn:
    made = subscriptions(Random(f"{seed} subscriptions"), market, kind)
    forest = forest_of(map(tree, islice(made, count)))
    seen = [Event(each) for each in islice(events(Random(f"{seed} events"), market), sample)]
    share = counted(forest.predicates, seen)
    return Drawn(forest, ordered(forest.predicates), np.array([*map(share, forest.predicates)]))


class _Line:
    """Brokers side by side, the subscriptions at home at each, and all prunings of them."""

    def __init__(
        self, drawn: Drawn, brokers: int, happened: Sequence[dict[str, JsonValue]], beat: Beat
    ) -> None:
        self._brokers, self._order, self._events = brokers, drawn.order, happened
        beat("pruning")
        self._homes = [
            drawn.forest.taken(np.arange(home, len(drawn.forest), brokers)) for home in range(brokers)
        ]
        self._prunings = [prunings_of(each, drawn.shares) for each in self._homes]
        self._whole = [jumps(each.nodes) for each in self._homes]
        self._leaves = drawn.forest.leaves
        self._most = sum(int(done.leaves.sum()) for done in self._prunings)
        self.failures: list[str] = []
        self._wanted = [False] * len(happened)

    def row(self, share: float, first: Row | None) -> Row:
        counts = [round(share * len(done)) for done in self._prunings]
        visits = _Visits(self._tables(counts))
        elsewhere = [visits.enter(place % self._brokers, event) for place, event in enumerate(self._events)]
        if first is None:
            self._wanted = elsewhere
        lost = sum(before and not after for before, after in zip(self._wanted, elsewhere, strict=True))
        if lost:
            self.failures.append(f"{lost} events no longer match with {share:.0%} of all prunings")
        total = len(self._events)
        load = visits.copies if self._brokers > 1 else sum(elsewhere)
        usual = load if first is None else int(first["copies"]) if self._brokers > 1 else sum(self._wanted)
        taken = sum(
            int(done.leaves[:count].sum()) for done, count in zip(self._prunings, counts, strict=True)
        )
        filter_us, copy_us = (ns / 1e3 / total for ns in (visits.match_ns, visits.copy_ns))
        once = (filter_us, copy_us) if first is None else (float(first["filter_us"]), float(first["copy_us"]))
        return {
            "share": share,
            "prunings": sum(counts),
            "associations": self._leaves - taken,
            "removed": taken / self._most if self._most else 0.0,
            "trees": sum(map(len, visits.tables)) / self._brokers,
            "matching": sum(elsewhere) / total,
            "copies": visits.copies,
            "extra": (load - usual) / total,
            "visits": visits.visits / total,
            "evaluated": visits.evaluated / total,
            "filter_us": filter_us,
            "copy_us": copy_us,
            "saved": 1 - filter_us / once[0],
            "saved_all": 1 - (filter_us + copy_us) / sum(once),
            "mark": "",
        }

    def _tables(self, counts: Sequence[int]) -> list[Table]:
        """Of each broker; its own subscriptions are whole, unless all are somebody else's."""
        pruned = [
            jumps(home.nodes, gone(home, done, count))
            for home, done, count in zip(self._homes, self._prunings, counts, strict=True)
        ]
        tables = []
        for here in range(self._brokers):
            is_own = [self._brokers > 1 and home == here for home in range(self._brokers)]
            parts = [(self._whole if own else pruned)[home] for home, own in enumerate(is_own)]
            tables.append(Table(list(enumerate(parts)), self._order))
            for attributes in self._events[:_WARMING]:
                # What is done once, when a table is first asked, is not part of any event.
                tables[-1].match(Event(attributes))
        return tables


class _Visits:
    """Events on their way along the line, and what that takes."""

    def __init__(self, tables: Sequence[Table]) -> None:
        self.tables = tables
        self.visits = self.copies = self.evaluated = self.match_ns = self.copy_ns = 0

    def enter(self, at: int, attributes: dict[str, JsonValue]) -> bool:
        """Let an event enter at a broker; whether it must go to another home."""
        found = self._ask(at, attributes).homes
        if len(self.tables) == 1:
            return bool(found)
        copies = self.copies
        for step in (-1, 1):
            here, homes = at, found
            while homes & self._beyond(here, step):
                here += step
                homes = self._ask(here, self._copied(attributes)).homes
        return self.copies > copies

    def _beyond(self, here: int, step: int) -> int:
        """All homes on one side of a broker, as bits."""
        return (1 << here) - 1 if step < 0 else ((1 << len(self.tables)) - 1) & ~((2 << here) - 1)

    def _ask(self, here: int, attributes: dict[str, JsonValue]) -> Asking:
        """What the whole table of a broker says of the event; its values are read anew there."""
        begin = time.process_time_ns()
        found = self.tables[here].match(Event(attributes))
        self.match_ns += time.process_time_ns() - begin
        self.visits += 1
        self.evaluated += found.evaluated
        return found

    def _copied(self, attributes: dict[str, JsonValue]) -> dict[str, JsonValue]:
        """The event, after it was written and read again."""
        begin = time.process_time_ns()
        made: dict[str, JsonValue] = json.loads(json.dumps(attributes).encode())
        self.copy_ns += time.process_time_ns() - begin
        self.copies += 1
        return made


def _mark(rows: Sequence[Row]) -> None:
    """Mark the bend of extra events, and the least time."""
    share, extra, filter_us, copy_us = (
        np.array([float(row[name]) for row in rows]) for name in ("share", "extra", "filter_us", "copy_us")
    )
    quickest = int((filter_us + copy_us).argmin())
    rows[quickest]["mark"] = LEAST
    if extra[-1] > 0:
        bend = int((share / share[-1] - extra / extra[-1]).argmax())
        rows[bend]["mark"] = f"{BEND}, {LEAST}" if bend == quickest else BEND


def counted(predicates: Sequence[Predicate], sample: Sequence[Event]) -> Callable[[Predicate], float]:
    """The share of each of these predicates, as a broker would learn it from the sample."""
    positions: dict[Dimension, list[Cut]] = {}
    counts: dict[Predicate, int] = {}
    for predicate in predicates:
        assert isinstance(predicate, Range), "these subscriptions have no words"
        dimension = predicate.dimension
        if dimension not in positions:
            found = (each for event in sample for each in event.positions(*dimension))
            positions[dimension] = sorted(map(before, found))
        low, high = (bisect_left(positions[dimension], cut) for cut in predicate.interval)
        counts[predicate] = high - low
    return shares(counts, len(sample))[0].__getitem__


KIND = Kind(
    name="pruning",
    read=read,
    sweep=sweep,
    run=run,
    swept=(CLASS, BROKERS),
    columns=COLUMNS,
    shown=("share", "removed", "trees", "matching", "copies", "extra", "filter_us", "saved"),
    verdict="however far was pruned, every event that was wanted elsewhere went there",
    timed=True,
)
