"""Kind `growth`: the Routing Tree, and the prefixes of events against it, as filters come.

Beside `[[populations]]`, a case for each, a file has `checkpoints`, the numbers of filters at which there is
a row; `nodes_cap` (1,000,000), which ends the growth with a last row; and `events` (100), which are the same
at every checkpoint.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from branchline.ops.simulation.config import Section
from branchline.ops.simulation.generators import Population
from branchline.ops.simulation.growing import (
    Growth,
    drawn,
    events_of,
    filters_of,
    fpts,
    grow,
    header_bytes,
    read_growth,
    tree_levels,
)
from branchline.ops.simulation.kind import Beat, Case, Column, Kind, Result, Row
from branchline.ops.simulation.populations import POPULATION, read_populations

COLUMNS = (
    Column("filters", int, "filters"),
    Column("stopped", str, "stopped by"),
    Column("tree_nodes", int, "nodes of the Routing Tree"),
    Column("tree_height", int, "height of the Routing Tree"),
    Column("nodes_per_filter", float, "nodes of the Routing Tree for each filter"),
    Column("fpt_nodes_mean", float, "nodes of an event's FPT, mean"),
    Column("fpt_nodes_max", int, "nodes of an event's FPT, maximum"),
    Column("fpt_height_mean", float, "height of an event's FPT, mean"),
    Column("fpt_height_max", int, "height of an event's FPT, maximum"),
    Column("header_bytes_mean", float, "bytes of an event's prefix, mean"),
    Column("header_bytes_max", int, "bytes of an event's prefix, maximum"),
)


@dataclass(frozen=True, slots=True)
class Spec:
    """How trees are grown, and of what filters."""

    growth: Growth
    populations: Mapping[str, Population]


def read(section: Section) -> Spec:
    return Spec(read_growth(section), read_populations(section))


def sweep(spec: Spec) -> list[Row]:
    return [{POPULATION.name: label} for label in spec.populations]


def run(spec: Spec, case: Case, beat: Beat) -> Result:
    population = spec.populations[str(case.swept[POPULATION.name])]
    events = drawn(population.events(events_of(case.seed)), spec.growth.events)
    rows: list[Row] = []
    for at in grow(spec.growth, population.routing_filters(filters_of(case.seed)), beat):
        prefixes = fpts(at.tree, events)
        nodes = [len(each.entries) for each in prefixes]
        heights = [max((level for level, _ in each.entries), default=0) for each in prefixes]
        sizes = [header_bytes(each) for each in prefixes]
        rows.append(
            {
                "filters": at.filters,
                "stopped": at.stopped,
                "tree_nodes": at.tree.nodes,
                "tree_height": len(tree_levels(at.tree)),
                "nodes_per_filter": at.tree.nodes / at.filters,
                "fpt_nodes_mean": fmean(nodes),
                "fpt_nodes_max": max(nodes),
                "fpt_height_mean": fmean(heights),
                "fpt_height_max": max(heights),
                "header_bytes_mean": fmean(sizes),
                "header_bytes_max": max(sizes),
            }
        )
    return Result(rows)


KIND = Kind(
    name="growth",
    read=read,
    sweep=sweep,
    run=run,
    swept=(POPULATION,),
    columns=COLUMNS,
    shown=(
        "filters",
        "stopped",
        "tree_nodes",
        "tree_height",
        "fpt_nodes_mean",
        "fpt_nodes_max",
        "header_bytes_mean",
    ),
)
