"""Kind `pruning`: what pruning saves and what it lets through, in one broker and in a line of several.

A file has `classes`, a case for each with each of `brokers`; `subscriptions`, in all; `sample`, the events
that shares are counted with; `events`, other ones, which are matched; and `shares` of all prunings, a row
each.

Subscriptions are spread over brokers in turn, and events enter at one after the other. Each home's entries
are pruned by themselves, in the order in which prunings come (`routing/boolean/pruning.py`); a broker asks
its own subscriptions as they are and those of other homes as pruned. Since events are alike wherever they
enter, it is the same whether a home prunes before it tells others, or a broker what it was told. With one
broker nobody is at home: it shows the table of a broker all of whose subscriptions are elsewhere.

An event *matches* if it must go to another home; a *copy* is one crossing of a link. Times are CPU times of
matching alone, and so not the same twice: they are the only columns of which that is so.
"""

import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from random import Random

from branchline.ops.simulation.books import CLASSES, events, subscriptions
from branchline.ops.simulation.config import Section
from branchline.ops.simulation.kind import Beat, Case, Column, Kind, Result, Row
from branchline.routing.boolean.index import TreeIndex
from branchline.routing.boolean.pruning import apply, prunings
from branchline.routing.boolean.trees import Node, Predicate, leaves
from branchline.routing.dimensions import Dimension
from branchline.routing.event import Event
from branchline.routing.filters import Range
from branchline.routing.intervals import Cut, before
from branchline.routing.optimise.learned import shares

CLASS = Column("class", str, "class of subscriptions")
BROKERS = Column("brokers", int, "brokers in a line")
COLUMNS = (
    Column("share", float, "share of all prunings"),
    Column("prunings", int, "prunings"),
    Column("associations", int, "associations that are left"),
    Column("removed", float, "associations removed, of all that can be"),
    Column("trees", int, "distinct trees in the tables"),
    Column("matching", float, "events that go to another home, of all"),
    Column("copies", int, "copies"),
    Column("extra", float, "events that go elsewhere for nothing, or copies, of all events"),
    Column("evaluated", float, "trees evaluated for an event"),
    Column("filter_us", float, "microseconds of matching for an event"),
    Column("saved", float, "filter time saved"),
)


@dataclass(frozen=True, slots=True)
class Spec:
    """What is pruned, and how far."""

    classes: tuple[str, ...]
    brokers: tuple[int, ...]
    subscriptions: int
    sample: int
    events: int
    shares: tuple[float, ...]


def read(section: Section) -> Spec:
    classes = section.texts("classes", CLASSES)
    for each in classes:
        if each not in CLASSES:
            section.wrong("classes", f"no class {each!r}", f"there are {', '.join(CLASSES)}")
    return Spec(
        classes,
        section.integers("brokers", 1, 100, (1, 5)),
        section.integer("subscriptions", 1, 10_000_000),
        section.integer("sample", 1, 1_000_000),
        section.integer("events", 1, 1_000_000),
        section.numbers("shares", 0, 1),
    )


def sweep(spec: Spec) -> list[Row]:
    return [{CLASS.name: each, BROKERS.name: brokers} for brokers in spec.brokers for each in spec.classes]


def run(spec: Spec, case: Case, beat: Beat) -> Result:
    line = _Line(spec, case, beat)
    rows: list[Row] = []
    for share in spec.shares:
        rows.append(line.row(share, rows[0] if rows else None))
        beat(f"{share:.0%} of all prunings, {rows[-1]['filter_us']:,.0f} microseconds an event")
    return Result(rows, line.failures)


class _Line:
    """Brokers side by side, the subscriptions at home at each, and all prunings of them."""

    def __init__(self, spec: Spec, case: Case, beat: Beat) -> None:
        self._brokers = int(case.swept[BROKERS.name])
        # In one broker, everybody is at home somewhere else.
        self._is_line = self._brokers > 1
        made = subscriptions(Random(f"{case.seed} subscriptions"), str(case.swept[CLASS.name]))
        asked = list(islice(made, spec.subscriptions))
        self._homes = [asked[home :: self._brokers] for home in range(self._brokers)]
        stream = events(Random(f"{case.seed} events"))
        share = counted(asked, [Event(each) for each in islice(stream, spec.sample)])
        self._events = [Event(each) for each in islice(stream, spec.events)]
        beat("pruning")
        self._prunings = [prunings(trees, share) for trees in self._homes]
        self._leaves = sum(len(list(leaves(tree))) for tree in asked)
        self._own = [TreeIndex.of(trees) for trees in self._homes] if self._is_line else []
        self._most = sum(int(done.leaves.sum()) for done in self._prunings)
        self.failures: list[str] = []
        self._wanted = [False] * len(self._events)
        beat("tables are made")

    def row(self, share: float, first: Row | None) -> Row:
        counts = [round(share * len(done)) for done in self._prunings]
        tables = [
            TreeIndex.of(apply(trees, done, count))
            for trees, done, count in zip(self._homes, self._prunings, counts, strict=True)
        ]
        _warm(tables, self._own, self._events)
        visits = _Visits(tables, self._own)
        elsewhere = [visits.enter(place % self._brokers, event) for place, event in enumerate(self._events)]
        if first is None:
            self._wanted = elsewhere
        lost = sum(before and not after for before, after in zip(self._wanted, elsewhere, strict=True))
        if lost:
            self.failures.append(f"{lost} events no longer match with {share:.0%} of all prunings")
        gone = sum(int(done.leaves[:count].sum()) for done, count in zip(self._prunings, counts, strict=True))
        total = len(self._events)
        load = visits.copies if self._is_line else sum(elsewhere)
        usual = load if first is None else int(first["copies"]) if self._is_line else sum(self._wanted)
        filter_us = visits.seconds * 1e6 / total
        return {
            "share": share,
            "prunings": sum(counts),
            "associations": self._leaves - gone,
            "removed": gone / self._most if self._most else 0.0,
            "trees": sum(map(len, tables)),
            "matching": sum(elsewhere) / total,
            "copies": visits.copies,
            "extra": (load - usual) / total,
            "evaluated": visits.evaluated / total,
            "filter_us": filter_us,
            "saved": 0.0 if first is None else 1 - filter_us / float(first["filter_us"]),
        }


class _Visits:
    """Events on their way along the line, and what that takes."""

    def __init__(self, tables: Sequence[TreeIndex], own: Sequence[TreeIndex]) -> None:
        self._tables, self._own = tables, own
        self.copies = self.evaluated = 0
        self.seconds = 0.0

    def enter(self, at: int, event: Event) -> bool:
        """Let an event enter at a broker; whether it must go to another home."""
        if not self._own:
            return bool(self._ask(event, range(len(self._tables)), None))
        pending = [(at, range(0, at)), (at, range(at + 1, len(self._tables)))]
        found = self._ask(event, [each for each in range(len(self._tables)) if each != at], at)
        went = False
        while pending:
            here, homes = pending.pop()
            if here != at:
                found = self._ask(event, [each for each in range(len(self._tables)) if each != here], here)
                homes = range(0, here) if here < at else range(here + 1, len(self._tables))
            if found & set(homes):
                went = True
                self.copies += 1
                nearest = homes[-1] if homes[-1] < here else homes[0]
                pending.append((nearest, homes))
        return went

    def _ask(self, event: Event, homes: Sequence[int], here: int | None) -> set[int]:
        """The homes that the event must go to, asked of the whole table of a broker."""
        # What an event's values are is found out anew at each broker, as where it arrives as bytes.
        fresh = Event(event.attributes)
        begin = time.process_time()
        found = set()
        for home in homes:
            matched = self._tables[home].match(fresh)
            self.evaluated += matched.evaluated
            if matched.trees:
                found.add(home)
        if here is not None:
            self.evaluated += self._own[here].match(fresh).evaluated
        self.seconds += time.process_time() - begin
        return found


def _warm(tables: Sequence[TreeIndex], own: Sequence[TreeIndex], events_: Sequence[Event]) -> None:
    """Match once, so that no compiling is measured."""
    for table in (*tables, *own):
        for event in events_[:3]:
            table.match(event)


def counted(trees: Iterable[Node], sample: Sequence[Event]) -> Callable[[Predicate], float]:
    """The share of each predicate of the trees, as a broker would learn it from the sample."""
    positions: dict[Dimension, list[Cut]] = {}
    counts: dict[Predicate, int] = {}
    for predicate in chain.from_iterable(map(leaves, trees)):
        if predicate not in counts:
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
    timed=True,
)
