"""Kind `queries`: prefixes where filters are search queries that a text contains.

    checkpoints = [10_000, 43_238]
    events = 100

    [[sets]]
    label = "A"
    users = 28
    queries = 43_238            # the checkpoints end there
    vocabulary = 50_000
    document_words = 12

Every filter is one word or phrase, so every node of the tree is a filter, and an event's FPT has a node for
each filter that matches: its share of all filters is that of the filters that match.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import fmean

from branchline.ops.simulation.config import Section
from branchline.ops.simulation.growing import (
    FILTERS_MAX,
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
from branchline.ops.simulation.queries import ATTRIBUTE, QueryLog
from branchline.routing.dimensions import Axis
from branchline.routing.filters import Contains

SET = Column("set", str, "set")
COLUMNS = (
    Column("filters", int, "filters"),
    Column("stopped", str, "stopped by"),
    Column("tree_nodes", int, "nodes of the Routing Tree"),
    Column("tree_height", int, "height of the Routing Tree"),
    Column("below_others_share", float, "share of the nodes that are not children of the root"),
    Column("fpt_nodes_mean", float, "nodes of an event's FPT, mean"),
    Column("fpt_nodes_max", int, "nodes of an event's FPT, maximum"),
    Column("fpt_per_mille", float, "nodes of an event's FPT, ‰ of the filters"),
    Column("header_bytes_mean", float, "bytes of an event's prefix, mean"),
)
USERS_MAX = 1_000_000
VOCABULARY_MAX = 300_000
"""There are 343,000 words of three syllables."""
DOCUMENT_WORDS_MAX = 10_000
_USUAL = QueryLog(seed=0, users=1, queries=1)


@dataclass(frozen=True, slots=True)
class Spec:
    """The sets of queries, and where their trees are looked at. The seed of a set is the case's."""

    growth: Growth
    sets: Mapping[str, QueryLog]


def read(section: Section) -> Spec:
    sets: dict[str, QueryLog] = {}
    for each in section.sections("sets"):
        label = each.text("label")
        if label in sets:
            each.wrong("label", f"{label!r} is another set's", "give each a label of its own")
        sets[label] = QueryLog(
            seed=0,
            users=each.integer("users", 1, USERS_MAX),
            queries=each.integer("queries", 1, FILTERS_MAX),
            vocabulary=each.integer("vocabulary", 1_000, VOCABULARY_MAX, _USUAL.vocabulary),
            document_words=each.integer("document_words", 1, DOCUMENT_WORDS_MAX, _USUAL.document_words),
        )
        each.done()
    return Spec(read_growth(section), sets)


def sweep(spec: Spec) -> list[Row]:
    return [{SET.name: label} for label in spec.sets]


def run(spec: Spec, case: Case, beat: Beat) -> Result:
    log = replace(spec.sets[str(case.swept[SET.name])], seed=case.seed)
    events = drawn(log.events(events_of(case.seed)), spec.growth.events)
    checkpoints = (*(at for at in spec.growth.checkpoints if at < log.queries), log.queries)
    filters = ((Contains((ATTRIBUTE,), Axis.TEXT, text),) for text in log.texts(filters_of(case.seed)))
    rows: list[Row] = []
    for at in grow(replace(spec.growth, checkpoints=checkpoints), filters, beat):
        prefixes = fpts(at.tree, events)
        nodes = [len(each.entries) for each in prefixes]
        levels = tree_levels(at.tree)
        rows.append(
            {
                "filters": at.filters,
                "stopped": at.stopped,
                "tree_nodes": at.tree.nodes,
                "tree_height": len(levels),
                "below_others_share": 1 - levels[0] / at.tree.nodes,
                "fpt_nodes_mean": fmean(nodes),
                "fpt_nodes_max": max(nodes),
                "fpt_per_mille": 1_000 * fmean(nodes) / at.filters,
                "header_bytes_mean": fmean(map(header_bytes, prefixes)),
            }
        )
    return Result(rows)


KIND = Kind(
    name="queries",
    read=read,
    sweep=sweep,
    run=run,
    swept=(SET,),
    columns=COLUMNS,
    shown=("filters", "tree_nodes", "tree_height", "below_others_share", "fpt_nodes_mean", "fpt_per_mille"),
)
