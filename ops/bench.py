"""`bench`: how fast parts of Branchline are on this machine. Figures to compare, not to promise."""

import time
from itertools import islice
from random import Random
from typing import Any

import click

from branchline.ops.bench_build import build
from branchline.ops.bench_changes import changes
from branchline.ops.bench_cold import cold
from branchline.ops.bench_delivery import delivery
from branchline.ops.bench_hops import hops
from branchline.ops.bench_match import match
from branchline.ops.bench_methods import methods
from branchline.ops.bench_pipeline import pipeline
from branchline.ops.bench_recovery import recovery
from branchline.ops.bench_tree import tree
from branchline.ops.output import emit, table
from branchline.ops.settings import json_option
from branchline.ops.spelled_filters import SPELLINGS, Spelled
from branchline.routing.codes import Rejection
from branchline.routing.compiling import compile_expression
from branchline.routing.spellings import read_filter


@click.group(short_help="Measure how fast parts of Branchline are here.")
def bench() -> None:
    """Measure how fast parts of Branchline are on this machine."""


@bench.command(short_help="Compile many filters of all spellings.")
@click.option(
    "--count", type=click.IntRange(1, 1_000_000), default=10_000, show_default=True, help="Filters in all."
)
@click.option("--seed", default=1, show_default=True, help="Seed of the random filters.")
@json_option
def filters(count: int, seed: int, as_json: bool) -> None:
    """Read and compile COUNT different filters of 3 to 5 predicates, a quarter in each spelling.

    \b
    Examples:
      branchline bench filters
      branchline bench filters --count 100000 --json
    """
    rows: list[dict[str, Any]] = []
    total_s = 0.0
    for spelling in SPELLINGS:
        random = Random(f"{seed} {spelling}")
        texts = list(islice(Spelled().texts(spelling, random), count // len(SPELLINGS) or 1))
        read_filter(spelling, texts[0])  # builds the parser's tables, once for each process
        started = time.process_time()
        expressions = [read_filter(spelling, text) for text in texts]
        read_s = time.process_time() - started
        started = time.process_time()
        compiled = [compile_expression(each) for each in expressions if not isinstance(each, Rejection)]
        compile_s = time.process_time() - started
        kept = [each for each in compiled if not isinstance(each, Rejection)]
        total_s += read_s + compile_s
        rows.append(
            {
                "spelling": spelling,
                "filters": len(texts),
                "accepted": len(kept),
                "read_us": round(read_s / len(texts) * 1e6, 1),
                "compile_us": round(compile_s / len(texts) * 1e6, 1),
                "filters_per_s": round(len(texts) / (read_s + compile_s)),
                "exact_share": round(sum(each.exact for each in kept) / len(texts), 3),
                "filters_in_cover": round(sum(len(each.cover) for each in kept) / len(kept), 2),
            }
        )
    done = sum(row["filters"] for row in rows)
    rows.append({"spelling": "all", "filters": done, "filters_per_s": round(done / total_s)})
    if as_json:
        for row in rows:
            emit(row)
    else:
        names = list(rows[0])
        click.echo(table(names, [[str(row.get(name, "")) for name in names] for row in rows]))


# In the order in which the documentation has them.
bench.add_command(match)
bench.add_command(methods)
bench.add_command(build)
bench.add_command(tree)
bench.add_command(hops)
bench.add_command(cold)
bench.add_command(pipeline)
bench.add_command(changes)
bench.add_command(delivery)
bench.add_command(recovery)
