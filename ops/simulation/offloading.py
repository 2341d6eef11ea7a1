"""Kind `offloading`: what it takes a router to place filters with the help of clients, and without.

    interfaces = 20                 # subscriptions are theirs in turn
    checkpoints = [1_000, 10_000]   # subscriptions, a row for each
    tables = ["poset", "forest"]    # a case for each with each of the ranges
    batches = [1, 10]               # each with each of
    slices = [10]                   # and of
    checks = ["trust", "links"]
    copies = 1                      # clients that each slice goes to
    fixed = [100, 1_000]            # in place of the last four: sizes of fixed sets, at posets

    [[ranges]]                      # `structures_ranges.py`

Rows of `rto` have the five phases of a round (`routing/offloading/router.py`), added up over all rounds so
far; what clients take is the time of the slowest in each round, and what it takes to bring messages to and
fro is not in it. Taking the answers counts as inserting. A forest has interfaces
(`routing/posets/forest.py`). Rows of `ff` begin with a table of half of the subscriptions, of which a random
fixed set is drawn, and are about the other half; clients are timed by what they take together. `alone_s` is
what it takes without clients.

Times are CPU times; all else is the same in every run. Fails if a table is not as it would be without
clients: a poset to the link, a forest in its roots.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from random import Random

from branchline.ops.simulation.config import Section
from branchline.ops.simulation.kind import Beat, Case, Column, Kind, Result, Row
from branchline.ops.simulation.offloading_fleet import Fleet
from branchline.ops.simulation.structures_ranges import RANGES, Ranges, read_ranges
from branchline.routing.filters import Filter
from branchline.routing.offloading.client import claim
from branchline.routing.offloading.fixed import FixedRouter
from branchline.routing.offloading.layers import Layers
from branchline.routing.offloading.messages import BATCH_MAX, COPIES_MAX, FIXED_MAX, SLICE_MAX
from branchline.routing.offloading.placing import Check
from branchline.routing.offloading.router import Router, Settings
from branchline.routing.posets.forest import Forest, Variant
from branchline.routing.posets.poset import Poset
from branchline.routing.posets.subscribing import subscribe

TABLE = Column("table", str, "table")
POSET, FOREST = "poset", "forest"
RTO, FF = "rto", "ff"
FILTERS_MAX = 100_000
CLIENTS = tuple(f"client {number}" for number in range(COPIES_MAX))
PHASES = ("prepare", "lay_out", "clients", "insert", "eliminate")
COLUMNS = (
    Column("what", str, "table and ranges"),
    Column("method", str, "method"),
    Column("batch", int, "filters a batch"),
    Column("slice", int, "filters a slice"),
    Column("check", str, "check"),
    Column("fixed", int, "filters in the fixed set"),
    Column("subscriptions", int, "subscriptions"),
    Column("filters", int, "filters in the table"),
    Column("layers", int, "layers"),
    Column("tasks", int, "tasks"),
    *(Column(f"{phase}_s", float, f"{phase.replace('_', ' ')}, s") for phase in PHASES),
    Column("total_s", float, "all phases, s"),
    Column("router_s", float, "all phases but the clients', s"),
    Column("alone_s", float, "alone, s"),
    Column("ratio", float, "all phases, of alone"),
    Column("rebuild_ms", float, "layers made anew once, ms"),
    Column("router_tests", int, "covering tests of the router"),
    Column("alone_tests", int, "covering tests alone"),
    Column("client_tests", int, "covering tests of all clients"),
)


@dataclass(frozen=True, slots=True)
class Spec:
    """What is placed, and how work is divided."""

    ranges: dict[str, Ranges]
    tables: tuple[str, ...]
    interfaces: int
    checkpoints: tuple[int, ...]
    batches: tuple[int, ...]
    slices: tuple[int, ...]
    checks: tuple[Check, ...]
    copies: int
    fixed: tuple[int, ...]


def read(section: Section) -> Spec:
    tables = section.texts("tables", (POSET, FOREST))
    checks = section.texts("checks", (Check.TRUST.value, Check.LINKS.value))
    for key, given, known in (("tables", tables, (POSET, FOREST)), ("checks", checks, tuple(Check))):
        for each in given:
            if each not in known:
                section.wrong(key, f"no {each!r}", f"there are {', '.join(known)}")
    fixed = section.integers("fixed", 1, FIXED_MAX, ())
    if fixed and tables != (POSET,):
        section.wrong("tables", f"not {list(tables)}", f"fixed sets are for a {POSET} only")
    return Spec(
        dict(read_ranges(section)),
        tables,
        section.integer("interfaces", 1, FILTERS_MAX, 20),
        section.integers("checkpoints", 1, FILTERS_MAX),
        section.integers("batches", 1, BATCH_MAX, (10,)),
        section.integers("slices", 1, SLICE_MAX, (10,)),
        tuple(map(Check, checks)),
        section.integer("copies", 1, COPIES_MAX, 1),
        fixed,
    )


def sweep(spec: Spec) -> list[Row]:
    return [{RANGES.name: label, TABLE.name: table} for label in spec.ranges for table in spec.tables]


Asked = list[tuple[Filter, int]]


@dataclass(frozen=True, slots=True)
class _Alone:
    """What a table takes without clients, up to each checkpoint."""

    what: str
    table: Poset | Forest
    seconds: dict[int, float]
    tests: dict[int, int]


def run(spec: Spec, case: Case, beat: Beat) -> Result:
    ranges, kind = spec.ranges[str(case.swept[RANGES.name])], str(case.swept[TABLE.name])
    filters = islice(ranges.filters(Random(f"{case.seed} filters")), spec.checkpoints[-1])
    asked = [(filter_, number % spec.interfaces) for number, filter_ in enumerate(filters)]
    half = len(asked) // 2
    fixed = spec.fixed
    checkpoints = sorted({*spec.checkpoints, half} if fixed else spec.checkpoints)
    alone = _alone(f"{kind}, {case.swept[RANGES.name]}", kind, asked, checkpoints)
    beat(f"alone: {alone.seconds[len(asked)]:,.1f} s")
    rows: list[Row] = []
    failures: list[str] = []
    for settings in () if fixed else _settings(spec):
        table = _made(kind)
        rows += _offloaded(Router(table, settings), asked, spec, ranges, alone, failures)
        failures += _differences(table, alone.table, f"{settings}")
        beat(f"{settings.batch}, {settings.slice_size}, {settings.check}: {rows[-1]['total_s']:,.1f} s")
    for size in fixed:
        router = FixedRouter(Poset())
        rows.append(_fixed(router, asked, half, size, case.seed, alone))
        failures += _differences(router.table, alone.table, f"a fixed set of {size}")
        beat(f"fixed set of {size}: {rows[-1]['total_s']:,.1f} s")
    return Result(rows, failures)


def _settings(spec: Spec) -> Iterator[Settings]:
    for check in spec.checks:
        for slice_size in spec.slices:
            for batch in spec.batches:
                yield Settings(batch, slice_size, spec.copies, check)


def _made(kind: str) -> Poset | Forest:
    return Poset() if kind == POSET else Forest(Variant.INTERFACES)


def _alone(what: str, kind: str, asked: Asked, checkpoints: Sequence[int]) -> _Alone:
    made = _Alone(what, _made(kind), {0: 0.0}, {0: 0})
    table = made.table
    for last, checkpoint in pairwise([0, *checkpoints]):
        begin = time.process_time()
        for filter_, source in asked[last:checkpoint]:
            if isinstance(table, Poset):
                subscribe(table, filter_, source)
            else:
                table.subscribe(filter_, source)
        made.seconds[checkpoint] = made.seconds[last] + time.process_time() - begin
        made.tests[checkpoint] = table.comparisons.tests
    return made


def _offloaded(
    router: Router, asked: Asked, spec: Spec, ranges: Ranges, alone: _Alone, failures: list[str]
) -> list[Row]:
    fleet = Fleet(len(asked), ranges.dimensions)
    seconds = dict.fromkeys(PHASES, 0.0)
    rows: list[Row] = []
    for number, (filter_, source) in enumerate(asked, 1):
        due = number in spec.checkpoints
        if router.subscribe(filter_, source) or due:
            _round(router, fleet, seconds)
        if due:
            rows.append(_row(router, fleet, seconds, number, alone))
    if fleet.differed:
        failures.append(f"a client says something else than the arrays, in {fleet.differed} rounds")
    return rows


def _round(router: Router, fleet: Fleet, seconds: dict[str, float]) -> None:
    clock = time.process_time
    times = [clock()]
    router.prepare()
    times.append(clock())
    dispatches = router.lay_out(CLIENTS)
    times.append(clock())
    answers = fleet.work(dispatches)
    begin = clock()
    for each in answers:
        router.receive(each)
    router.insert()
    inserted = clock()
    router.eliminate()
    seconds["prepare"] += times[1] - times[0]
    seconds["lay_out"] += times[2] - times[1]
    seconds["clients"] = fleet.longest_s
    seconds["insert"] += inserted - begin
    seconds["eliminate"] += clock() - inserted


def _row(router: Router, fleet: Fleet, seconds: dict[str, float], number: int, alone: _Alone) -> Row:
    settings, table = router.settings, router.table
    router.layers.settle()
    layers = len(router.layers)
    begin = time.process_time()
    Layers(table, settings.slice_size)
    rebuild_s = time.process_time() - begin
    total, alone_s = sum(seconds.values()), alone.seconds[number]
    return {
        "what": alone.what,
        "method": RTO,
        "batch": settings.batch,
        "slice": settings.slice_size,
        "check": settings.check.value,
        "fixed": 0,
        "subscriptions": number,
        "filters": len(table),
        "layers": layers,
        "tasks": router.counts.tasks,
        **{f"{phase}_s": seconds[phase] for phase in PHASES},
        "total_s": total,
        "router_s": total - seconds["clients"],
        "alone_s": alone_s,
        "ratio": total / alone_s,
        "rebuild_ms": rebuild_s * 1e3,
        "router_tests": table.comparisons.tests,
        "alone_tests": alone.tests[number],
        "client_tests": fleet.tests,
    }


def _fixed(router: FixedRouter, asked: Asked, half: int, size: int, seed: int, alone: _Alone) -> Row:
    table = router.table
    for filter_, source in asked[:half]:
        subscribe(table, filter_, source)
    known = [table.entry(number).filter for number in table]
    assignment = router.assign(Random(f"{seed} fixed").sample(known, min(size, len(known))))
    before = table.comparisons.tests
    client_s = router_s = 0.0
    for filter_, source in asked[half:]:
        begin = time.process_time()
        claimed = claim(assignment, filter_)
        client_s += time.process_time() - begin
        begin = time.process_time()
        router.subscribe(claimed, source)
        router_s += time.process_time() - begin
    alone_s = alone.seconds[len(asked)] - alone.seconds[half]
    return {
        "what": alone.what,
        "method": FF,
        "batch": 1,
        "slice": 0,
        "check": Check.LINKS.value,
        "fixed": len(assignment.filters),
        "subscriptions": len(asked) - half,
        "filters": len(table),
        "layers": 0,
        "tasks": 0,
        "prepare_s": 0.0,
        "lay_out_s": 0.0,
        "clients_s": client_s,
        "insert_s": router_s,
        "eliminate_s": 0.0,
        "total_s": client_s + router_s,
        "router_s": router_s,
        "alone_s": alone_s,
        "ratio": (client_s + router_s) / alone_s,
        "rebuild_ms": 0.0,
        "router_tests": table.comparisons.tests - before,
        "alone_tests": alone.tests[len(asked)] - alone.tests[half],
        "client_tests": 2 * len(assignment.filters) * (len(asked) - half),
    }


def _differences(table: Poset | Forest, alone: Poset | Forest, what: str) -> list[str]:
    if table.root_filters() != alone.root_filters():
        return [f"with {what} the roots are not those of the table made alone"]
    if isinstance(table, Poset) and _linked(table) != _linked(alone):
        return [f"with {what} the poset is not the one made alone"]
    return []


def _linked(table: Poset | Forest) -> set[tuple[Filter, frozenset[object], frozenset[Filter]]]:
    return {
        (entry.filter, frozenset(entry.sources), frozenset(table.entry(each).filter for each in entry.below))
        for entry in map(table.entry, table)
    }


KIND = Kind(
    name="offloading",
    read=read,
    sweep=sweep,
    run=run,
    swept=(RANGES, TABLE),
    columns=COLUMNS,
    shown=("method", "batch", "slice", "check", "filters", "router_s", "total_s", "alone_s", "ratio"),
    verdict="tables are those that the router makes alone",
    timed=True,
)
