"""Kind `heights`: what a height limit does to prefixes: fewer nodes travel, and more is found than should be.

A file has `[[populations]]`, `filters` for each tree, `limits`, the heights that are tried, and `events`
(100). For each limit there is a row; a last one, whose limit is the height of the tree, is without a limit.

Every filter has an owner of its own. A filter that is found for an event that it does not match is a *false
positive* of the prefix: with delivery as it is by default the last broker would check it and find out. That
none is missing is checked, and is the verdict.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from statistics import fmean

from branchline.ops.simulation.config import Section
from branchline.ops.simulation.generators import Population
from branchline.ops.simulation.growing import (
    EVENTS_MAX,
    FILTERS_MAX,
    FIRST_VERSION,
    UNBOUNDED,
    drawn,
    events_of,
    filters_of,
    fpts,
    header_bytes,
    tree_levels,
)
from branchline.ops.simulation.kind import Beat, Case, Column, Kind, Result, Row
from branchline.ops.simulation.populations import POPULATION, read_populations
from branchline.routing.prefix.forwarding import Forwarder
from branchline.routing.prefix.optimizer import Optimizer
from branchline.routing.prefix.trees import Prefix

LIMIT_MAX = 1_000

COLUMNS = (
    Column("filters", int, "filters"),
    Column("tree_nodes", int, "nodes of the Routing Tree"),
    Column("limit", int, "height limit"),
    Column("fpt_nodes_mean", float, "nodes of an event's FPT, mean"),
    Column("fpt_nodes_max", int, "nodes of an event's FPT, maximum"),
    Column("header_bytes_mean", float, "bytes of an event's prefix, mean"),
    Column("cut_share", float, "share of events whose FPT was cut"),
    Column("matching_mean", float, "filters that match an event, mean"),
    Column("found_mean", float, "filters found for an event, mean"),
    Column("false_positive_share", float, "share of the filters found that do not match"),
)


@dataclass(frozen=True, slots=True)
class Spec:
    """Trees of so many filters, and the limits that are tried on them."""

    filters: int
    limits: tuple[int, ...]
    events: int
    populations: Mapping[str, Population]


def read(section: Section) -> Spec:
    return Spec(
        filters=section.integer("filters", 1, FILTERS_MAX),
        limits=section.integers("limits", 0, LIMIT_MAX),
        events=section.integer("events", 1, EVENTS_MAX, 100),
        populations=read_populations(section),
    )


def sweep(spec: Spec) -> list[Row]:
    return [{POPULATION.name: label} for label in spec.populations]


def run(spec: Spec, case: Case, beat: Beat) -> Result:
    population = spec.populations[str(case.swept[POPULATION.name])]
    filters = list(islice(population.routing_filters(filters_of(case.seed)), spec.filters))
    optimizer, broker = Optimizer(FIRST_VERSION.incarnation, UNBOUNDED), Forwarder()
    for filter_ in filters:
        optimizer.subscribe((filter_,))
    for update in optimizer.updates(0):
        broker.trees.apply(update)
    for owner, filter_ in enumerate(filters):
        broker.subscribe((filter_,), owner)
        beat(f"{owner:,} of {len(filters):,} filters have their places")
    tree = broker.trees.vocabularies[0].tree
    events = drawn(population.events(events_of(case.seed)), spec.events)
    matching = [
        {owner for owner, filter_ in enumerate(filters) if event.may_match((filter_,))} for event in events
    ]
    height = len(tree_levels(tree))
    rows: list[Row] = []
    failures: list[str] = []
    for limit in [*(limit for limit in spec.limits if limit < height), height]:
        beat(f"limit {limit} of {height}")
        prefixes = fpts(tree, events, limit)
        found = [
            places.certain | places.doubtful
            for places in (
                broker.find(Prefix((prefix,)), event) for prefix, event in zip(prefixes, events, strict=True)
            )
        ]
        missing = sum(len(owed - got) for owed, got in zip(matching, found, strict=True))
        if missing:
            failures.append(f"with limit {limit}, {missing} filters that match were not found")
        nodes = [len(prefix.entries) for prefix in prefixes]
        all_found = sum(map(len, found))
        all_matching = sum(map(len, matching))
        rows.append(
            {
                "filters": len(filters),
                "tree_nodes": tree.nodes,
                "limit": limit,
                "fpt_nodes_mean": fmean(nodes),
                "fpt_nodes_max": max(nodes),
                "header_bytes_mean": fmean(map(header_bytes, prefixes)),
                "cut_share": fmean(prefix.cut for prefix in prefixes),
                "matching_mean": all_matching / len(events),
                "found_mean": all_found / len(events),
                "false_positive_share": (all_found - all_matching) / all_found if all_found else 0.0,
            }
        )
    return Result(rows, failures)


KIND = Kind(
    name="heights",
    read=read,
    sweep=sweep,
    run=run,
    swept=(POPULATION,),
    columns=COLUMNS,
    shown=("filters", "tree_nodes", "limit", "fpt_nodes_mean", "matching_mean", "found_mean"),
    verdict="whatever the height limit, every filter that matches was found",
)
