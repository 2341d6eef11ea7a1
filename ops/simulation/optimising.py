"""Kind `optimise`: optimisations of tables, one against another on the same subscriptions and events.

A file has `subscriptions`, how many subscriptions to book auctions (`auctions.py`, the narrow market) a
broker knows of its `homes` (4) other homes, `forms` of them, and `[[tables]]`: a label, a `matching`, and
what it is to `optimise`. A case is a form; it has a row for each table. `events` (1,000) are matched one by
one; `sample` (400) others, which come before, are what is learned from, where an optimisation goes by what
was counted.

An event that is found for a home at which nobody asked for it is *extra*: a copy that is sent for nothing.
That no event is missing is checked, and is the verdict. Times are CPU times of one process.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from branchline.ops.memory import allocated_bytes
from branchline.ops.simulation.auctions import NARROW, Form, events, subscriptions
from branchline.ops.simulation.config import Section
from branchline.ops.simulation.growing import EVENTS_MAX, events_of, filters_of
from branchline.ops.simulation.kind import Beat, Case, Column, Kind, Result, Row
from branchline.routing.boolean.trees import leaves
from branchline.routing.compiling import Compiled, compile_expression
from branchline.routing.control import Identity
from branchline.routing.event import Event
from branchline.routing.methods.naming import (
    EVALUATING,
    MATCHING,
    Methods,
    make_matching,
    make_optimisations,
    misfit,
)
from branchline.routing.methods.optimised import OptimisedMatching
from branchline.routing.methods.protocols import Interest, Matching
from branchline.routing.methods.words import named
from branchline.routing.optimise.entries import as_interest, node_of
from branchline.routing.prefix.forwarding import Found, Wanted
from branchline.routing.prefix.trees import Trees

SUBSCRIPTIONS_MAX = 200_000
HOMES_MAX = 100

FORM = Column("form", str, "form of subscriptions")
COLUMNS = (
    Column("table", str, "table"),
    Column("subscriptions", int, "subscriptions"),
    Column("entries", int, "entries"),
    Column("predicates", int, "different predicates"),
    Column("associations", int, "predicates of all entries"),
    Column("megabytes", float, "memory of the index, MB"),
    Column("optimise_s", float, "CPU time to optimise, s"),
    Column("build_s", float, "CPU time to build the index, s"),
    Column("us_per_event", float, "CPU time to match an event, µs"),
    Column("copies_per_event", float, "homes found for an event, mean"),
    Column("extra_per_event", float, "homes found for nothing, mean"),
)


@dataclass(frozen=True, slots=True)
class Table:
    """A matching, and what its table is optimised by."""

    matching: str
    optimise: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Spec:
    """What is asked for, and the tables that it is kept in."""

    subscriptions: int
    homes: int
    forms: tuple[Form, ...]
    events: int
    sample: int
    tables: Mapping[str, Table]


def read(section: Section) -> Spec:
    return Spec(
        subscriptions=section.integer("subscriptions", 1, SUBSCRIPTIONS_MAX),
        homes=section.integer("homes", 1, HOMES_MAX, 4),
        forms=tuple(map(Form, _forms(section))),
        events=section.integer("events", 1, EVENTS_MAX, 1_000),
        sample=section.integer("sample", 1, EVENTS_MAX, 400),
        tables=_tables(section),
    )


def _forms(section: Section) -> tuple[str, ...]:
    known = [each.value for each in Form]
    given = section.texts("forms", tuple(known))
    for each in given:
        if each not in known:
            section.wrong("forms", f"{each!r} is not known", f"known are {', '.join(known)}")
    return given


def _tables(section: Section) -> Mapping[str, Table]:
    found: dict[str, Table] = {}
    for each in section.sections("tables"):
        label = each.text("label")
        if label in found:
            each.wrong("label", f"{label!r} is another table's", "give each a label of its own")
        found[label] = Table(each.text("matching"), each.texts("optimise", ()))
        wrong = misfit(Methods("rematch", found[label].matching, optimise=found[label].optimise))
        if wrong is not None:
            each.wrong("matching", wrong, f"matchings are {', '.join(MATCHING)}")
        each.done()
    return found


def sweep(spec: Spec) -> list[Row]:
    return [{FORM.name: form.value} for form in spec.forms]


def run(spec: Spec, case: Case, beat: Beat) -> Result:
    form = Form(str(case.swept[FORM.name]))
    drawn = islice(subscriptions(filters_of(case.seed), NARROW, form=form), spec.subscriptions)
    interests = [_interest(number, spec.homes, compile_expression(each)) for number, each in enumerate(drawn)]
    some = [Event(each) for each in islice(events(events_of(case.seed), NARROW), spec.sample + spec.events)]
    sample, asked = some[: spec.sample], some[spec.sample :]
    rows: list[Row] = []
    failures: list[str] = []
    exact: Sequence[frozenset[object]] | None = None
    for label, table in spec.tables.items():
        beat(f"{form}, {label}")
        row, found = _measured(table, interests, sample, asked, spec.homes)
        if exact is None:
            exact = found if not table.optimise else _exact(interests, asked)
        missing = sum(len(owed - got) for owed, got in zip(exact, found, strict=True))
        if missing:
            failures.append(f"{label}: {missing} events that a home asked for were not found for it")
        extra = sum(len(got - owed) for owed, got in zip(exact, found, strict=True)) / len(asked)
        rows.append({"table": label, "subscriptions": len(interests), **row, "extra_per_event": extra})
    return Result(rows, failures)


def _interest(number: int, homes: int, compiled: object) -> Interest:
    assert isinstance(compiled, Compiled), "no subscription is a contradiction"
    home = f"home-{number % homes}"
    return Interest(Identity(home, f"s{number}", "one"), compiled, home)


class _Nowhere:
    """A matching that keeps nothing: what is left is the work to make its table."""

    def add(self, interest: Interest) -> None:
        pass

    def remove(self, interest: Interest) -> None:
        pass

    def match(self, event: Event, wanted: Wanted | None = None) -> Found:
        return Found()


def _filled(table: Table, interests: Sequence[Interest]) -> OptimisedMatching:
    """A table that was told of all interests, and has not been asked yet."""
    chosen = named(table.matching)
    trees = chosen is not None and chosen.name in EVALUATING
    optimisations = make_optimisations(Methods("rematch", table.matching, optimise=table.optimise))
    made = OptimisedMatching(_Nowhere(), optimisations, trees=trees)
    for interest in interests:
        made.add(interest)
    return made


def _exact(interests: Sequence[Interest], asked: Sequence[Event]) -> list[frozenset[object]]:
    """The homes that have asked for each event, interest by interest."""
    return [
        frozenset(each.owner for each in interests if event.may_match(each.compiled.cover)) for event in asked
    ]


def _found(matching: Matching, asked: Sequence[Event]) -> list[frozenset[object]]:
    """The homes that are found for each event."""
    answers = [matching.match(event) for event in asked]
    return [frozenset(each.certain | each.doubtful) for each in answers]


def _measured(
    table: Table, interests: Sequence[Interest], sample: Sequence[Event], asked: Sequence[Event], homes: int
) -> tuple[Row, list[frozenset[object]]]:
    made = _filled(table, interests)
    if made.is_due():
        made.learn(made.sampled(sample))
    names = [f"home-{number}" for number in range(homes)]
    entries, optimise_s = _timed(lambda: {home: made.table(home) for home in names})

    def build() -> Matching:
        below = make_matching(Methods("rematch", table.matching), Trees())
        for home, its in entries.items():
            for entry in its:
                below.add(as_interest(entry, home))
        below.match(sample[0])
        return below

    below, build_s = _timed(build)
    found, match_s = _timed(lambda: _found(below, asked))
    predicates = [leaf for its in entries.values() for entry in its for leaf in leaves(node_of(entry))]
    row: Row = {
        "entries": sum(map(len, entries.values())),
        "predicates": len(set(predicates)),
        "associations": len(predicates),
        "megabytes": allocated_bytes(build) / 1e6,
        "optimise_s": optimise_s,
        "build_s": build_s,
        "us_per_event": 1e6 * match_s / len(asked),
        "copies_per_event": sum(map(len, found)) / len(asked),
    }
    return row, found


T = TypeVar("T")


def _timed(make: Callable[[], T]) -> tuple[T, float]:
    """What is made, and the CPU time it took."""
    started = time.process_time()
    made = make()
    return made, time.process_time() - started


KIND = Kind(
    name="optimise",
    read=read,
    sweep=sweep,
    run=run,
    swept=(FORM,),
    columns=COLUMNS,
    shown=("table", "entries", "predicates", "associations", "us_per_event", "extra_per_event"),
    verdict="whatever the optimisation, no event was missed that a home had asked for",
    timed=True,
)
