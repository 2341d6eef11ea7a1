"""Kind `bloom`: what Bloom filters find that does not match, by their size, and what it takes to use them.

    filters = [3_000]
    sizes = [8, 14]             # of Bloom filters: logarithms of their numbers of bits
    hashes = [1, 2]             # bits that a constraint sets
    events = 100
    passes = 3                  # that are timed; the median counts
    matching = "counting"       # what the times are compared with

    [[populations]]             # see `populations.py`; a case for each

There is a row for each number of filters, size and number of hashes. Every filter has an owner of its own. A
filter that is found by bits and does not match is a *false positive*; its share is of the filters that do not
match. That none is missing is checked with every row, and that both structures find the same: that is the
verdict.

Times are CPU times of this process: of the bfposet, from an event's attributes, as read, to its bits; of the
bftree and the sbstree, from the bits to the owners.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import fmean, median

from branchline.ops.simulation.config import Section
from branchline.ops.simulation.generators import Population
from branchline.ops.simulation.growing import EVENTS_MAX, FILTERS_MAX, events_of, filters_of
from branchline.ops.simulation.kind import Beat, Case, Column, Kind, Result, Row
from branchline.ops.simulation.populations import POPULATION, read_populations
from branchline.routing.bloom.bfposet import BfPoset
from branchline.routing.bloom.bftree import BfTree
from branchline.routing.bloom.bits import HASHES_MAX, SIZE_MAX, Shape
from branchline.routing.bloom.sbstree import SbsTree
from branchline.routing.compiling import Compiled
from branchline.routing.control import Identity
from branchline.routing.event import Event
from branchline.routing.expression import Anything
from branchline.routing.filters import Filter
from branchline.routing.methods.naming import MATCHING, Methods, make_matching
from branchline.routing.methods.protocols import Interest
from branchline.routing.prefix.header import Header, decode, encode
from branchline.routing.prefix.trees import Prefix, Trees
from branchline.routing.values import JsonValue

COLUMNS = (
    Column("filters", int, "filters"),
    Column("constraints", int, "different constraints"),
    Column("size", int, "bits of a Bloom filter, logarithm"),
    Column("hashes", int, "hashes"),
    Column("filter_bits_mean", float, "bits set for a filter, mean"),
    Column("event_bits_mean", float, "bits set for an event, mean"),
    Column("set_percent", float, "bits set for an event, %"),
    Column("header_bytes_mean", float, "bytes of an event's header, mean"),
    Column("untold_share", float, "share of events whose Bloom filter is too long for a header"),
    Column("matching_mean", float, "filters that match an event, mean"),
    Column("found_mean", float, "filters found for an event, mean"),
    Column("false_positive_percent", float, "false positives, %"),
    Column("bfposet_us", float, "µs an event: bfposet"),
    Column("bftree_us", float, "µs an event: bftree"),
    Column("sbstree_us", float, "µs an event: sbstree"),
    Column("matching_us", float, "µs an event: matching"),
    Column("add_us", float, "µs to add a filter"),
    Column("bftree_nodes", int, "nodes of the bftree"),
    Column("sbstree_nodes", int, "nodes of the sbstree"),
)


@dataclass(frozen=True, slots=True)
class Spec:
    """Bloom filters of which shapes, of how many filters, and what they are tried with."""

    filters: tuple[int, ...]
    sizes: tuple[int, ...]
    hashes: tuple[int, ...]
    events: int
    passes: int
    matching: str
    populations: Mapping[str, Population]


def read(section: Section) -> Spec:
    return Spec(
        filters=section.integers("filters", 1, FILTERS_MAX),
        sizes=section.integers("sizes", 1, SIZE_MAX),
        hashes=section.integers("hashes", 1, HASHES_MAX),
        events=section.integer("events", 1, EVENTS_MAX, 100),
        passes=section.integer("passes", 1, 100, 3),
        matching=section.choice("matching", list(MATCHING), "counting"),
        populations=read_populations(section),
    )


def sweep(spec: Spec) -> list[Row]:
    return [{POPULATION.name: label} for label in spec.populations]


def run(spec: Spec, case: Case, beat: Beat) -> Result:
    population = spec.populations[str(case.swept[POPULATION.name])]
    events = list(islice(population.events(events_of(case.seed)), spec.events))
    rows: list[Row] = []
    failures: list[str] = []
    for count in spec.filters:
        beat(f"matching with {count:,} filters")
        filters = list(islice(population.routing_filters(filters_of(case.seed)), count))
        wanted = [_matching(filters, Event(event)) for event in events]
        matching_us = _matching_us(spec, filters, events)
        for size in spec.sizes:
            for hashes in spec.hashes:
                beat(f"{count:,} filters, {1 << size:,} bits, {hashes} hashes")
                row, wrong = _row(filters, events, wanted, Shape(size, hashes), spec.passes)
                row["matching_us"] = matching_us
                rows.append({column.name: row[column.name] for column in COLUMNS})
                failures += [f"{count} filters, size {size}, {hashes} hashes: {each}" for each in wrong]
    return Result(rows, failures)


Attributes = dict[str, JsonValue]


def _row(
    filters: Sequence[Filter],
    events: Sequence[Attributes],
    wanted: Sequence[set[int]],
    shape: Shape,
    passes: int,
) -> tuple[Row, list[str]]:
    """What Bloom filters of one shape give, and what is wrong with it."""
    started = time.process_time()
    poset, part_tree, bit_tree = BfPoset(shape), BfTree(shape), SbsTree(shape)
    for owner, filter_ in enumerate(filters):
        poset.add(filter_)
        bits = poset.bits(filter_)
        part_tree.add(bits, owner)
        bit_tree.add(bits, owner)
    add_us = (time.process_time() - started) * 1e6 / len(filters)
    made = [poset.of_event(Event(event)) for event in events]
    found = [_owners(bit_tree, bits) for bits in made]
    wrong: list[str] = []
    if missed := sum(len(owed - got) for owed, got in zip(wanted, found, strict=True)):
        wrong.append(f"{missed} filters that match were not found")
    if any(_owners(part_tree, bits) != got for bits, got in zip(made, found, strict=True)):
        wrong.append("the bftree finds others than the sbstree")
    headers = [Header(Prefix((), bloom=poset.told(Event(event))), 1, 1, 1) for event in events]
    told = [encode(header) for header in headers]
    untold = sum(decode(data) != header for data, header in zip(told, headers, strict=True))
    all_found, all_wanted = sum(map(len, found)), sum(map(len, wanted))
    unwanted = len(filters) * len(events) - all_wanted
    return {
        "filters": len(filters),
        "constraints": len(poset),
        "size": shape.size,
        "hashes": shape.hashes,
        "filter_bits_mean": fmean(len(poset.bits(filter_)) for filter_ in filters),
        "event_bits_mean": fmean(map(len, made)),
        "set_percent": 100 * fmean(map(len, made)) / shape.bits,
        "header_bytes_mean": fmean(map(len, told)),
        "untold_share": untold / len(events),
        "matching_mean": all_wanted / len(events),
        "found_mean": all_found / len(events),
        "false_positive_percent": 100 * (all_found - all_wanted) / unwanted if unwanted else 0.0,
        "bfposet_us": _us(lambda: [poset.of_event(Event(event)) for event in events], passes, len(events)),
        "bftree_us": _us(lambda: [_owners(part_tree, bits) for bits in made], passes, len(events)),
        "sbstree_us": _us(lambda: [_owners(bit_tree, bits) for bits in made], passes, len(events)),
        "add_us": add_us,
        "bftree_nodes": part_tree.nodes(),
        "sbstree_nodes": bit_tree.nodes(),
    }, wrong


def _owners(tree: BfTree | SbsTree, bits: tuple[int, ...]) -> set[object]:
    return set().union(*tree.find(bits))


def _matching(filters: Sequence[Filter], event: Event) -> set[int]:
    return {owner for owner, filter_ in enumerate(filters) if event.may_match((filter_,))}


def _matching_us(spec: Spec, filters: Sequence[Filter], events: Sequence[Attributes]) -> float:
    """What a matching of the same filters takes, for all that match."""
    matching = make_matching(Methods("rematch", spec.matching), Trees())
    for owner, filter_ in enumerate(filters):
        compiled = Compiled(Anything(), (filter_,), None, (), frozenset())
        matching.add(Interest(Identity("b", f"s{owner}", "one"), compiled, owner))
    return _us(lambda: [matching.match(Event(event)) for event in events], spec.passes, len(events))


def _us(act: Callable[[], object], passes: int, events: int) -> float:
    act()  # what is slow the first time only
    took_s = []
    for _ in range(passes):
        started = time.process_time()
        act()
        took_s.append(time.process_time() - started)
    return median(took_s) * 1e6 / events


KIND = Kind(
    name="bloom",
    read=read,
    sweep=sweep,
    run=run,
    swept=(POPULATION,),
    columns=COLUMNS,
    shown=(
        *("filters", "size", "hashes", "set_percent", "header_bytes_mean", "matching_mean", "found_mean"),
        *("bfposet_us", "bftree_us", "sbstree_us", "matching_us"),
    ),
    verdict="whatever the shape of Bloom filters, every filter that matches was found, in both structures",
    timed=True,
)
