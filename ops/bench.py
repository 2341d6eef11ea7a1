"""`bench`: how fast parts of Branchline are on this machine. Figures to compare, not to promise."""

import json
import time
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import click

from branchline.ops.bench_cold import cold
from branchline.ops.bench_delivery import delivery
from branchline.ops.bench_recovery import recovery
from branchline.ops.bench_tree import tree
from branchline.ops.output import emit, table
from branchline.ops.settings import json_option
from branchline.routing.codes import Rejection
from branchline.routing.compiling import compile_expression
from branchline.routing.spellings import read_filter

NAMES = ("type", "source", "subject", "region", "tier", "channel", "currency", "carrier")
WORDS = ("order", "flight", "invoice", "madrid", "zurich", "gold", "web", "EUR", "urgent", "refund")
FEWEST, MOST = 3, 5
"""Predicates in a filter, as in the workloads that matchers are compared with."""


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
    for spelling, write in WRITERS.items():
        random = Random(f"{seed} {spelling}")
        texts = list(_distinct(write, random, count // len(WRITERS) or 1))
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


def _distinct(write: Callable[[Random], str], random: Random, count: int) -> Iterator[str]:
    seen: set[str] = set()
    while len(seen) < count:
        text = write(random)
        if text not in seen:
            seen.add(text)
            yield text


def _names(random: Random) -> list[str]:
    return random.sample(NAMES, random.randint(FEWEST, MOST))


def _word(random: Random) -> str:
    return f"{random.choice(WORDS)}{random.randrange(1000)}"


def _one_of(random: Random, choices: tuple[Any, ...]) -> Any:
    return random.choice(choices)


def _sql(random: Random) -> str:
    def predicate(name: str) -> str:
        number, more = random.randrange(1000), random.randrange(1000, 2000)
        return random.choice(
            (
                f"{name} = '{_word(random)}'",
                f"data.{name} > {number}",
                f"data.{name} BETWEEN {number} AND {more}.5",
                f"{name} IN ('{_word(random)}', '{_word(random)}')",
                f"{name} LIKE '{_word(random)}%'",
                f"NOT {name} = '{_word(random)}'",
                f"({name} = '{_word(random)}' OR data.{name} <= {number})",
            )
        )

    return " AND ".join(predicate(name) for name in _names(random))


def _cesql(random: Random) -> str:
    def predicate(name: str) -> str:
        return random.choice(
            (
                f"{name} = '{_word(random)}'",
                f"{name} LIKE '{_word(random)}%'",
                f"{name} IN ('{_word(random)}', '{_word(random)}')",
                f"{name} != '{_word(random)}'",
                f"EXISTS {name}",
            )
        )

    return " AND ".join(predicate(name) for name in _names(random))


def _cloudevents(random: Random) -> str:
    def predicate(name: str) -> Any:
        return _one_of(
            random,
            (
                {"exact": {name: _word(random)}},
                {"prefix": {name: _word(random)}},
                {"suffix": {name: _word(random)}},
                {"any": [{"exact": {name: _word(random)}}, {"prefix": {name: _word(random)}}]},
            ),
        )

    return json.dumps([predicate(name) for name in _names(random)])


def _eventbridge(random: Random) -> str:
    def alternatives() -> Any:
        number, more = random.randrange(1000), random.randrange(1000, 2000)
        return _one_of(
            random,
            (
                [_word(random)],
                [_word(random), _word(random)],
                [{"prefix": _word(random)}],
                [{"numeric": [">", number, "<=", more]}],
                [{"anything-but": [_word(random), _word(random)]}],
                [{"suffix": _word(random)}],
            ),
        )

    return json.dumps({"data": {name: alternatives() for name in _names(random)}})


WRITERS: dict[str, Callable[[Random], str]] = {
    "sql": _sql,
    "cesql": _cesql,
    "cloudevents": _cloudevents,
    "eventbridge": _eventbridge,
}

# In the order in which the documentation has them.
bench.add_command(tree)
bench.add_command(cold)
bench.add_command(delivery)
bench.add_command(recovery)
