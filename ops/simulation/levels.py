"""Kind `levels`: how the nodes of the Routing Tree and of FPTs are spread over their levels.

A file is like one of kind `growth`; at each checkpoint there is a row for each level of the tree.
"""

from statistics import fmean

from branchline.ops.simulation.growing import (
    drawn,
    events_of,
    filters_of,
    fpt_levels,
    fpts,
    grow,
    tree_levels,
)
from branchline.ops.simulation.growth import Spec, read, sweep
from branchline.ops.simulation.kind import Beat, Case, Column, Kind, Result, Row
from branchline.ops.simulation.populations import POPULATION

COLUMNS = (
    Column("filters", int, "filters"),
    Column("stopped", str, "stopped by"),
    Column("level", int, "level"),
    Column("tree_nodes", int, "nodes of the Routing Tree"),
    Column("fpt_nodes_mean", float, "nodes of an event's FPT, mean"),
    Column("fpt_nodes_max", int, "nodes of an event's FPT, maximum"),
)


def run(spec: Spec, case: Case, beat: Beat) -> Result:
    population = spec.populations[str(case.swept[POPULATION.name])]
    events = drawn(population.events(events_of(case.seed)), spec.growth.events)
    rows: list[Row] = []
    for at in grow(spec.growth, population.routing_filters(filters_of(case.seed)), beat):
        followed = [fpt_levels(each.entries) for each in fpts(at.tree, events)]
        for level, nodes in enumerate(tree_levels(at.tree), 1):
            counts = [each[level] for each in followed]
            rows.append(
                {
                    "filters": at.filters,
                    "stopped": at.stopped,
                    "level": level,
                    "tree_nodes": nodes,
                    "fpt_nodes_mean": fmean(counts),
                    "fpt_nodes_max": max(counts),
                }
            )
    return Result(rows)


KIND = Kind(
    name="levels",
    read=read,
    sweep=sweep,
    run=run,
    swept=(POPULATION,),
    columns=COLUMNS,
    shown=("filters", "stopped", "level"),
)
