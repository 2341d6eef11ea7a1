"""Kind `counting`: what forwarding by counting takes, with constraints divided among interfaces.

    events = 100
    passes = 5                      # that are timed; the median counts

    [[tables]]                      # a case for each
    label = "20 interfaces"
    form = "flat"                   # or "plain": dictionaries in place of compiled arrays
    constraints = [10_000, 100_000]
    interfaces = [20]               # or, in its place:
    filters_per_interface = [1]
    rounds = [0, 10]                # of the selectivity table
    hops = 1                        # routers that each event comes to, one after the other

Filters and events are those of `cw_workload.py`, five constraints a filter. With a number of interfaces,
filters are theirs in turn. With a number of filters an interface, each has from one up to nearly twice as
many, all equally often. On a path of several hops each router has all constraints, divided among its own
interfaces, and what an event takes is the sum.

There is a row for each number of constraints, interfaces and rounds; whatever the rounds, the same must be
found.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

import numpy as np

from branchline.ops.cw_workload import cw_event
from branchline.ops.simulation.config import Section
from branchline.ops.simulation.counting_forms import FlatForm, Form, Ints, PlainForm
from branchline.ops.simulation.kind import Beat, Case, Column, Kind, Result, Row

CONSTRAINTS_PER_FILTER = 5
CONSTRAINTS_MAX = 20_000_000
PLAIN_CONSTRAINTS_MAX = 1_000_000
INTERFACES_MAX = 4_000_000
ROUNDS_MAX = 1_000
EVENTS_MAX = 10_000
FLAT, PLAIN = "flat", "plain"

TABLE = Column("table", str, "table")
COLUMNS = (
    Column("form", str, "form"),
    Column("hops", int, "routers on the way"),
    Column("constraints", int, "constraints"),
    Column("filters", int, "filters"),
    Column("interfaces", int, "interfaces"),
    Column("filters_per_interface", float, "filters an interface"),
    Column("rounds", int, "rounds of the selectivity table"),
    Column("us_per_event", float, "µs an event"),
    Column("saved_percent", float, "saved by the selectivity table, %"),
    Column("found_per_event", float, "interfaces found, mean"),
    Column("excluded_per_event", float, "interfaces ruled out first, mean"),
    Column("counted_per_event", float, "counters that go up, mean"),
    Column("early_per_event", float, "interfaces found early, mean"),
    Column("bytes_per_constraint", float, "bytes a constraint"),
    Column("build_us_per_constraint", float, "µs to build, a constraint"),
)


@dataclass(frozen=True, slots=True)
class Tables:
    """Tables that are made and matched."""

    form: str
    constraints: tuple[int, ...]
    interfaces: tuple[int, ...]
    filters_per_interface: tuple[int, ...]
    rounds: tuple[int, ...]
    hops: int


@dataclass(frozen=True, slots=True)
class Spec:
    """Tables by their labels, and what they are matched with."""

    events: int
    passes: int
    tables: dict[str, Tables]


def read(section: Section) -> Spec:
    tables: dict[str, Tables] = {}
    for each in section.sections("tables"):
        label = each.text("label")
        if label in tables:
            each.wrong("label", f"{label!r} is another table's", "give each a label of its own")
        form = each.choice("form", (FLAT, PLAIN), FLAT)
        most = CONSTRAINTS_MAX if form == FLAT else PLAIN_CONSTRAINTS_MAX
        interfaces = each.integers("interfaces", 1, INTERFACES_MAX, ())
        filters = each.integers("filters_per_interface", 1, INTERFACES_MAX, ())
        if bool(interfaces) is bool(filters):
            each.wrong("interfaces", "either these or filters_per_interface", "give one of them")
        tables[label] = Tables(
            form,
            each.integers("constraints", CONSTRAINTS_PER_FILTER, most),
            interfaces,
            filters,
            each.integers("rounds", 0, ROUNDS_MAX, (0, 10)),
            each.integer("hops", 1, 100, 1),
        )
        each.done()
    return Spec(section.integer("events", 1, EVENTS_MAX, 100), section.integer("passes", 1, 100, 5), tables)


def sweep(spec: Spec) -> list[Row]:
    return [{TABLE.name: label} for label in spec.tables]


def run(spec: Spec, case: Case, beat: Beat) -> Result:
    tables = spec.tables[str(case.swept[TABLE.name])]
    random = Random(f"{case.seed} events")
    events = [cw_event(random) for _ in range(spec.events)]
    form: Form = FlatForm(case.seed, events) if tables.form == FLAT else PlainForm(case.seed, events)
    rows: list[Row] = []
    failures: list[str] = []
    for constraints in tables.constraints:
        filters = constraints // CONSTRAINTS_PER_FILTER
        beat(f"making {constraints:,} constraints")
        form.open(filters)
        for divided in _divisions(tables, filters, case.seed):
            made = [_of_rounds(form, divided, rounds, spec, tables, beat) for rounds in tables.rounds]
            without = next((row for row in made if row["rounds"] == 0), made[0])
            for row in made:
                row["saved_percent"] = 100 * (1 - float(row["us_per_event"]) / float(without["us_per_event"]))
                if row["found_per_event"] != without["found_per_event"]:
                    failures.append(f"{row['rounds']} rounds find others than {without['rounds']}")
            rows += [{column.name: row[column.name] for column in COLUMNS} for row in made]
    return Result(rows, failures)


class _Divided(NamedTuple):
    """For each filter its interface, at each hop."""

    interfaces: int
    of_filter: list[Ints]


def _divisions(tables: Tables, filters: int, seed: int) -> Iterator[_Divided]:
    for count in tables.interfaces:
        interfaces = min(count, filters)
        in_turn = (np.arange(filters) % interfaces).astype(np.int32)
        draws = [np.random.default_rng([seed, hop]) for hop in range(1, tables.hops)]
        yield _Divided(interfaces, [in_turn, *(draw.permutation(in_turn) for draw in draws)])
    for mean in tables.filters_per_interface:
        made = [_spread(filters, mean, seed, hop) for hop in range(tables.hops)]
        yield _Divided(int(made[0].max()) + 1, made)


def _spread(filters: int, mean: int, seed: int, hop: int) -> Ints:
    """Interfaces with one to nearly twice as many filters as the mean."""
    sizes = np.random.default_rng([seed, hop]).integers(1, 2 * mean, 2 * (filters // mean) + 2)
    made = np.repeat(np.arange(sizes.size, dtype=np.int32), sizes)
    # Twice as many as are needed are enough but for odd draws: then the last interfaces have one filter.
    more = np.arange(sizes.size, sizes.size + max(0, filters - made.size), dtype=np.int32)
    return np.concatenate([made, more])[:filters]


def _of_rounds(form: Form, divided: _Divided, rounds: int, spec: Spec, tables: Tables, beat: Beat) -> Row:
    """What tables with so many rounds take."""
    row: Row = {"form": tables.form, "hops": tables.hops, "rounds": rounds}
    took_us = 0.0
    for hop, of_filter in enumerate(divided.of_filter):
        beat(f"{len(of_filter):,} filters, {divided.interfaces:,} interfaces, {rounds} rounds, hop {hop + 1}")
        measured = form.measure(of_filter, divided.interfaces, rounds, spec.passes)
        took_us += float(measured.pop("us_per_event"))
        if hop == 0:
            row |= measured
    filters = len(divided.of_filter[0])
    return row | {
        "us_per_event": took_us,
        "filters": filters,
        "interfaces": divided.interfaces,
        "filters_per_interface": filters / divided.interfaces,
    }


KIND = Kind(
    name="counting",
    read=read,
    sweep=sweep,
    run=run,
    swept=(TABLE,),
    columns=COLUMNS,
    shown=(
        *("constraints", "interfaces", "rounds", "us_per_event", "saved_percent", "found_per_event"),
        *("counted_per_event", "bytes_per_constraint"),
    ),
    verdict="whatever the rounds of the selectivity table, the same interfaces were found",
    timed=True,
)
