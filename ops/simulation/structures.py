"""Kind `structures`: what posets and forests cost to change, and how large they are.

    interfaces = 20                 # subscriptions are theirs in turn
    checkpoints = [1_000, 10_000]   # subscriptions, a row for each
    deletes = 500                   # so many of the table end at each checkpoint, and come again untimed
    structures = ["poset", "interfaces"]

    [[ranges]]                      # `structures_ranges.py`; a case for each with each structure

A structure is `poset`, a variant of the forest (`plain`, `interfaces`, `balanced`, `non-redundant`), or
`combined`: a forest for the interfaces, which are all clients, and a poset for two neighbours that are told
of its roots. Times are CPU times of what came since the row before; all else is the same in every run.

Fails if roots are not the minimal cover of all that came, or after the deletes of all that is left.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from random import Random

from branchline.ops.simulation.config import Section
from branchline.ops.simulation.kind import Beat, Case, Column, Kind, Result, Row
from branchline.ops.simulation.structures_ranges import RANGES, Ranges, covered_share, minimal, read_ranges
from branchline.routing.filters import Filter
from branchline.routing.offloading.layers import Layers
from branchline.routing.offloading.messages import SLICE_MAX
from branchline.routing.posets.combined import Combined
from branchline.routing.posets.forest import Forest, Variant
from branchline.routing.posets.graph import Graph, Source
from branchline.routing.posets.poset import Poset
from branchline.routing.posets.subscribing import subscribe, unsubscribe

STRUCTURE = Column("structure", str, "structure")
POSET, COMBINED = "poset", "combined"
STRUCTURES = (POSET, *(variant.value for variant in Variant), COMBINED)
FILTERS_MAX = 1_000_000
SHARE_OF = 2_000
"""Filters of which all pairs are compared, to say how much is covered."""
COLUMNS = (
    Column("subscriptions", int, "subscriptions"),
    Column("filters", int, "filters in the table"),
    Column("entries", int, "filters in the table, once for each interface"),
    Column("roots", int, "roots"),
    Column("layers", int, "layers"),
    Column("links_per_filter", float, "links a filter"),
    Column("covered_share", float, "share of pairs of which one covers the other"),
    Column("insert_tests", float, "covering tests of a subscription"),
    Column("insert_us", float, "µs of a subscription"),
    Column("delete_tests", float, "covering tests of an unsubscription"),
    Column("delete_us", float, "µs of an unsubscription"),
)


@dataclass(frozen=True, slots=True)
class Spec:
    """What is put in, and into what."""

    ranges: dict[str, Ranges]
    structures: tuple[str, ...]
    interfaces: int
    checkpoints: tuple[int, ...]
    deletes: int


def read(section: Section) -> Spec:
    structures = section.texts("structures", STRUCTURES)
    for each in structures:
        if each not in STRUCTURES:
            section.wrong("structures", f"no structure {each!r}", f"there are {', '.join(STRUCTURES)}")
    return Spec(
        dict(read_ranges(section)),
        structures,
        section.integer("interfaces", 1, FILTERS_MAX, 20),
        section.integers("checkpoints", 1, FILTERS_MAX),
        section.integer("deletes", 0, FILTERS_MAX, 0),
    )


def sweep(spec: Spec) -> list[Row]:
    return [
        {RANGES.name: label, STRUCTURE.name: structure}
        for label in spec.ranges
        for structure in spec.structures
    ]


class _Subject:
    """A structure as it is measured: subscribe, unsubscribe, and the graphs it is made of."""

    def __init__(self, name: str) -> None:
        self.subscribe: Callable[[Filter, Source], object]
        self.unsubscribe: Callable[[Filter, Source], object]
        if name == COMBINED:
            combined = Combined(("north", "south"))
            self.graph: Graph = combined.clients
            self.graphs: list[Graph] = [combined.clients, combined.others]
            self.subscribe, self.unsubscribe = combined.subscribe_here, combined.unsubscribe_here
        elif name == POSET:
            poset = Poset()
            self.graph, self.graphs = poset, [poset]
            self.subscribe = lambda filter_, source: subscribe(poset, filter_, source)
            self.unsubscribe = lambda filter_, source: unsubscribe(poset, filter_, source)
        else:
            forest = Forest(Variant(name))
            self.graph, self.graphs = forest, [forest]
            self.subscribe, self.unsubscribe = forest.subscribe, forest.unsubscribe

    @property
    def tests(self) -> int:
        return sum(each.comparisons.tests for each in self.graphs)

    def entries(self) -> list[tuple[Filter, Source]]:
        entries = [self.graph.entry(number) for number in self.graph]
        return [(each.filter, source) for each in entries for source in sorted(each.sources, key=str)]


def run(spec: Spec, case: Case, beat: Beat) -> Result:
    ranges, name = spec.ranges[str(case.swept[RANGES.name])], str(case.swept[STRUCTURE.name])
    filters = list(islice(ranges.filters(Random(f"{case.seed} filters")), spec.checkpoints[-1]))
    asked: list[tuple[Filter, Source]] = [
        (filter_, number % spec.interfaces) for number, filter_ in enumerate(filters)
    ]
    share = covered_share(filters[:SHARE_OF])
    subject, random = _Subject(name), Random(f"{case.seed} deletes")
    rows: list[Row] = []
    failures: list[str] = []
    for last, checkpoint in pairwise([0, *spec.checkpoints]):
        insert_tests, insert_us = _timed(subject, subject.subscribe, asked[last:checkpoint])
        row = _sizes(subject, checkpoint, share)
        if subject.graph.root_filters() != minimal(filters[:checkpoint]):
            failures.append(f"the roots are not the minimal cover of {checkpoint} that came")
        there = subject.entries()
        ended = random.sample(there, min(spec.deletes, len(there)))
        delete_tests, delete_us = _timed(subject, subject.unsubscribe, ended)
        if subject.graph.root_filters() != minimal([filter_ for filter_, _ in subject.entries()]):
            failures.append(f"the roots are not the minimal cover of what is left of {checkpoint}")
        _timed(subject, subject.subscribe, ended)
        rows.append(
            row
            | {"insert_tests": insert_tests, "insert_us": insert_us}
            | {"delete_tests": delete_tests, "delete_us": delete_us}
        )
        beat(f"{checkpoint:,} subscriptions, {insert_us:,.0f} µs each")
    return Result(rows, failures)


def _timed(
    subject: _Subject, act: Callable[[Filter, Source], object], some: Sequence[tuple[Filter, Source]]
) -> tuple[float, float]:
    """Covering tests and microseconds of each."""
    before = subject.tests
    begin = time.process_time()
    for filter_, source in some:
        act(filter_, source)
    seconds = time.process_time() - begin
    count = len(some) or 1
    return (subject.tests - before) / count, seconds * 1e6 / count


def _sizes(subject: _Subject, count: int, share: float) -> Row:
    graph = subject.graph
    layers = len(Layers(graph, SLICE_MAX))
    graph.touched = None
    return {
        "subscriptions": count,
        "filters": len(graph),
        "entries": len(subject.entries()),
        "roots": len(graph.roots),
        "layers": layers,
        "links_per_filter": graph.links / len(graph),
        "covered_share": share,
    }


KIND = Kind(
    name="structures",
    read=read,
    sweep=sweep,
    run=run,
    swept=(RANGES, STRUCTURE),
    columns=COLUMNS,
    shown=("filters", "roots", "layers", "insert_tests", "insert_us", "delete_tests", "delete_us"),
    verdict="the roots of every structure are the minimal cover",
    timed=True,
)
