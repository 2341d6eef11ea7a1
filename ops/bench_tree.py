"""`branchline bench tree`: what the Routing Tree costs, and how that grows with the filters.

For each workload and each number of filters: a Tree Optimizer hears all filters but the last few and tells a
broker, which has them too. Then the last ones come, one after the other, so that each cost is that of a tree
of this size: at the optimizer (insert), at the broker before it is told (insertR), told and applied (update),
and taken away again (remove). Events enter at the broker (match) and are walked along their prefixes (walk).

Growth is a cost over that at the number of filters before: what is meant to be logarithmic stays near 1.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, pairwise
from random import Random
from statistics import mean
from typing import Any

import click

from branchline.ops.numbers import FiniteRange
from branchline.ops.output import emit, say, table
from branchline.ops.settings import json_option
from branchline.ops.workloads import WORKLOADS, Workload
from branchline.routing.event import Event
from branchline.routing.filters import Filter
from branchline.routing.prefix.forwarding import Forwarder
from branchline.routing.prefix.header import Header, encode
from branchline.routing.prefix.optimizer import Optimizer, Settings
from branchline.routing.prefix.storing import load, pack
from branchline.routing.prefix.tree import ROOT, Tree

SAMPLE = 500
"""Filters and events that a cost is the mean of; of few filters, a tenth of them."""
OWNERS = 1_000
"""Homes that the filters belong to."""
COSTS = ("insert_us", "insertr_us", "remove_us", "match_us", "walk_us", "update_us_per_edge")


@click.command(short_help="Grow Routing Trees and measure what they cost.")
@click.option(
    "--filters",
    "sizes",
    type=click.IntRange(10, 10_000_000),
    multiple=True,
    default=(1_000, 10_000, 100_000),
    show_default=True,
    help="Filters in the tree; may be given several times.",
)
@click.option(
    "--workload",
    "names",
    type=click.Choice(list(WORKLOADS)),
    multiple=True,
    help="Filters of this kind; may be given several times. Default: all kinds.",
)
@click.option("--seed", default=1, show_default=True, help="Seed of the random filters and events.")
@click.option(
    "--nodes-cap",
    type=click.IntRange(1),
    default=1_000_000,
    show_default=True,
    help="Stop adding filters at so many nodes.",
)
@click.option(
    "--seconds",
    type=FiniteRange(0, min_open=True),
    default=120.0,
    show_default=True,
    help="Stop adding filters to a tree after so much CPU time.",
)
@json_option
def tree(
    sizes: tuple[int, ...], names: tuple[str, ...], seed: int, nodes_cap: int, seconds: float, as_json: bool
) -> None:
    """Measure Routing Trees of several sizes: microseconds of CPU time, nodes, and bytes that travel.

    \b
    Examples:
      branchline bench tree
      branchline bench tree --filters 1000 --filters 10000 --workload ranges --json
    """
    for name in names or WORKLOADS:
        rows: list[dict[str, Any]] = []
        for size in sorted(set(sizes)):
            rows.append({"workload": name, **_measure(WORKLOADS[name], size, seed, nodes_cap, seconds)})
            if rows[-1]["stopped"]:
                say(f"{name}: stopped at {rows[-1]['filters']:,} of {size:,} filters: {rows[-1]['stopped']}")
                break
        for before, row in pairwise(rows):
            row["growth"] = {cost: round(row[cost] / before[cost], 1) for cost in COSTS if before[cost]}
        if as_json:
            for row in rows:
                emit(row)
        else:
            click.echo(_shown(name, rows) + "\n")


def _measure(workload: Workload, size: int, seed: int, nodes_cap: int, seconds: float) -> dict[str, Any]:
    source = workload.filters(Random(f"{seed} filters"))
    random = Random(f"{seed} events")
    sample = min(SAMPLE, size // 10)
    events = [workload.event(random) for _ in range(SAMPLE if sample == SAMPLE else sample)]
    optimizer, broker = Optimizer(1, Settings(limit_ms=0)), Forwarder()
    grown, stopped = _grow(optimizer, islice(source, size - sample), nodes_cap, seconds)
    last = list(islice(source, sample))
    _tell(optimizer, broker)
    for number, filter_ in enumerate(grown):
        broker.subscribe((filter_,), number % OWNERS)
    row: dict[str, Any] = {"filters": len(grown) + len(last), "stopped": stopped}
    row["insert_us"] = _cost(lambda each: optimizer.subscribe((each,)), last)
    row["insertr_us"] = _cost(lambda each: broker.subscribe((each,), 0), last)
    started = time.process_time()
    changed = _tell(optimizer, broker)
    row["update_us_per_edge"] = round((time.process_time() - started) * 1e6 / max(changed, 1), 1)
    entered = [Event(each) for each in events]
    prefixes = []
    row["match_us"] = _cost(lambda each: prefixes.append(broker.enter(each)), entered)
    pairs = list(zip(prefixes, entered, strict=True))
    row["walk_us"] = _cost(lambda each: broker.find(*each), pairs)
    row |= _sizes(optimizer, row["filters"])
    entries = [len(prefix.parts[0].entries) for prefix in prefixes]
    headers = [len(encode(Header(prefix))) for prefix in prefixes]
    row |= {"fpt_mean": round(mean(entries), 1), "fpt_max": max(entries)}
    row |= {"header_bytes_mean": round(mean(headers)), "header_bytes_max": max(headers)}
    row |= _stored(optimizer.part(0).tree)
    row["remove_us"] = _cost(lambda each: optimizer.unsubscribe((each,)), last)
    return row


def _grow(
    optimizer: Optimizer, filters: Iterator[Filter], nodes_cap: int, seconds: float
) -> tuple[list[Filter], str]:
    """Add the filters, or as many as the caps let, and which of those stopped it."""
    grown: list[Filter] = []
    deadline = time.process_time() + seconds
    for filter_ in filters:
        if optimizer.part(0).tree.nodes >= nodes_cap:
            return grown, f"--nodes-cap {nodes_cap}"
        if time.process_time() >= deadline:
            return grown, f"--seconds {seconds:g}"
        optimizer.subscribe((filter_,))
        grown.append(filter_)
    return grown, ""


def _tell(optimizer: Optimizer, broker: Forwarder) -> int:
    """Bring the broker up to date; how many edges have changed."""
    updates = optimizer.updates(0)
    for update in updates:
        broker.trees.apply(update)
    return sum(len(update.born) + len(update.died) for update in updates)


def _cost(act: Callable[[Any], object], things: Iterable[Any]) -> float:
    """Microseconds of CPU time for each thing."""
    things = list(things)
    started = time.process_time()
    for each in things:
        act(each)
    return round((time.process_time() - started) * 1e6 / len(things), 1)


def _sizes(optimizer: Optimizer, filters: int) -> dict[str, Any]:
    part = optimizer.part(0)
    return {
        "nodes": part.tree.nodes,
        "nodes_per_filter": round(part.tree.nodes / filters, 2),
        "height": _height(part.tree),
        "overflow_share": round(len(part.overflow) / filters, 3),
    }


def _height(tree: Tree) -> int:
    levels = {ROOT: 0}
    for node in tree.below(ROOT):
        levels[node] = levels[tree.parent(node)] + 1
    return max(levels.values())


def _stored(tree: Tree) -> dict[str, Any]:
    """The tree as it is written to a file, and how long it takes until it can be used again."""
    started = time.process_time()
    data = pack(tree)
    packed = time.process_time()
    load(data).children(ROOT)
    loaded = time.process_time()
    return {
        "bytes_per_node": round(len(data) / max(tree.nodes, 1), 1),
        "pack_us_per_node": round((packed - started) * 1e6 / max(tree.nodes, 1), 1),
        "load_ms": round((loaded - packed) * 1e3, 1),
    }


def _shown(name: str, rows: list[dict[str, Any]]) -> str:
    """A column for each size, and beside each cost how many times that of the size before it is."""
    facts = [fact for fact in rows[0] if fact not in ("workload", "filters", "stopped", "growth")]

    def cell(row: dict[str, Any], fact: str) -> str:
        growth = row.get("growth", {}).get(fact)
        return f"{row[fact]:,}" if growth is None else f"{row[fact]:,} (x{growth})"

    headings = [name, *(f"{row['filters']:,}" for row in rows)]
    return table(headings, [[fact, *(cell(row, fact) for row in rows)] for fact in facts])
