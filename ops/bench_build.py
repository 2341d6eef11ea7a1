"""`branchline bench build`: what it costs to have an index of filters, and to change it.

For each workload and each number of filters: texts are compiled; an index is built of all filters at once;
then one that grows has them, to which some are added and from which some are removed, one after the other.
The next match files what came, which is timed by itself, and so is a merge, by which everything is filed
anew. At last the index is stored, and opened: in this process, and in one that must load everything first.
"""

import json
import mmap
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from branchline.kafka.errors import JobFailed
from branchline.ops.bench_facts import facts, facts_text, warning
from branchline.ops.matching_workloads import MATCHING, Shape, draw_events, draw_filters
from branchline.ops.output import emit, say, table
from branchline.ops.settings import json_option
from branchline.ops.sql_texts import sql_text
from branchline.routing.filters import Filter

if TYPE_CHECKING:  # it imports compiled loops, which takes seconds
    from branchline.kafka.scanning import RecordColumns

SIZES = (1_000, 10_000, 100_000)
SAMPLE = 1_000
"""Filters that are compiled, added and removed, and events of a batch; of few filters, a tenth of them."""
COLD_TIMEOUT_S = 120
COSTS = (
    *("compile_us", "build_s", "insert_us", "file_ms", "remove_us", "merge_s"),
    *("add_all_s", "file_all_s", "store_ms", "open_ms", "opened_batch_ms", "cold_s"),
)

_T = TypeVar("_T")


@click.command(short_help="Build, change, store and open indexes of many filters.")
@click.option(
    "--workload",
    "names",
    type=click.Choice([name for name in MATCHING if name != "spellings"]),
    multiple=True,
    default=("equalities", "equalities-range", "gaussian-1", "cw"),
    show_default=True,
    help="Filters of this kind; may be given several times.",
)
@click.option(
    "--filters",
    "sizes",
    type=click.IntRange(10, 10_000_000),
    multiple=True,
    default=SIZES,
    show_default=True,
    help="How many; may be given several times.",
)
@click.option("--seed", default=1, show_default=True, help="Seed of the random filters and events.")
@json_option
def build(names: tuple[str, ...], sizes: tuple[int, ...], seed: int, as_json: bool) -> None:
    """Measure what it takes to compile filters, to build an index of them, to change it, and to open it.

    \b
    Examples:
      branchline bench build
      branchline bench build --workload cw --filters 1000000 --json
    """
    found = facts(seed)
    busy = warning(found)
    if busy:
        say(busy)
    if not as_json:
        click.echo(facts_text(found))
    for name in names:
        rows: list[dict[str, Any]] = []
        for size in sorted(set(sizes)):
            say(f"{name}: {size:,} filters")
            rows.append({"workload": name, "filters": size, **_measure(name, size, seed)})
            for before, row in pairwise(rows):
                row["growth"] = {cost: round(row[cost] / before[cost], 1) for cost in COSTS if before[cost]}
            if as_json:
                emit(rows[-1] | found)
        if not as_json:
            click.echo("\n" + _shown(name, rows))


def _measure(name: str, size: int, seed: int) -> dict[str, Any]:
    from branchline.kafka.scanning import Scanner  # compiled loops take seconds to load
    from branchline.ops.matchers import columns_of
    from branchline.routing.compiled.access import AccessIndex
    from branchline.routing.compiled.index import DELTA_MIN, DELTA_PART, GrowingIndex
    from branchline.routing.compiled.paths import Paths
    from branchline.routing.compiling import compile_filter

    sample = min(SAMPLE, size // 10)
    # As many more as it takes until everything is filed anew.
    merged = max(DELTA_MIN, size // DELTA_PART) + 1
    drawn = draw_filters(MATCHING[name], size + sample + merged, seed, Shape.FLAT)
    filters, more, rest = drawn[:size], drawn[size : size + sample], drawn[size + sample :]
    batch = columns_of(draw_events(MATCHING[name], SAMPLE, seed, Shape.FLAT, 0))
    row: dict[str, Any] = {"constraints": sum(map(len, filters))}
    clock = _Clock(row)

    texts = [sql_text(each) for each in filters[: sample + 1]]
    compile_filter("sql", texts.pop())  # builds the parser's tables
    clock.us("compile_us", lambda: [compile_filter("sql", text) for text in texts], sample)
    _load(filters[:10], batch)
    index = clock.s("build_s", lambda: AccessIndex.of(filters, Paths()))
    row["index_mb"] = round(index.nbytes / 2**20, 1)
    row["bytes_per_constraint"] = round(index.nbytes / row["constraints"], 1)

    paths = Paths()
    growing = GrowingIndex(paths)
    scanner = Scanner(paths)

    def matched() -> Any:
        return growing.match(scanner.scan(batch).scanned, len(batch))

    clock.s("add_all_s", lambda: [growing.add(each) for each in filters])
    clock.s("file_all_s", matched)
    expected = len(matched().row)
    rows = clock.us("insert_us", lambda: [growing.add(each) for each in more], sample)
    # What the first match after a change takes longer than the next.
    first_s, next_s = (clock.measured(matched)[1] for _ in range(2))
    row["file_ms"] = round(max(first_s - next_s, 0) * 1e3, 2)
    clock.us("remove_us", lambda: deque(map(growing.remove, rows), 0), sample)
    if len(matched().row) != expected:
        raise JobFailed("what was added and removed again still matters", hint="this is a mistake of ours")
    for each in rest:
        growing.add(each)
    clock.s("merge_s", matched)

    hits = len(matched().row)
    stored = clock.ms("store_ms", growing.stored)
    row["stored_mb"] = round(len(stored) / 2**20, 1)
    with tempfile.TemporaryDirectory(prefix="branchline-bench-") as folder:
        file = Path(folder, "index")
        file.write_bytes(stored)
        events = Path(folder, "events")
        events.write_bytes(b"\n".join(draw_events(MATCHING[name], SAMPLE, seed, Shape.FLAT, 0)))
        clock.ms("open_ms", lambda: open_index(file))
        clock.ms(
            "opened_batch_ms", lambda: open_index(file)[0].match(scanner.scan(batch).scanned, len(batch))
        )
        row |= _cold(file, events)
    if row.pop("cold_hits") != hits:
        raise JobFailed("an index that was opened matches something else", hint="this is a mistake of ours")
    return row


def _load(filters: list[Filter], batch: "RecordColumns") -> None:
    """Load the compiled loops, or compile them, which takes a minute."""
    from branchline.kafka.scanning import Scanner
    from branchline.routing.compiled.index import GrowingIndex
    from branchline.routing.compiled.paths import Paths

    paths = Paths()
    growing = GrowingIndex(paths)
    for each in filters:
        growing.add(each)
        growing.match(Scanner(paths).scan(batch).scanned, len(batch))
    opened = GrowingIndex.opened(memoryview(growing.stored()), paths)
    opened.match(Scanner(paths).scan(batch).scanned, len(batch))


def open_index(file: Path) -> tuple[Any, Any]:
    """The index in a file, whose bytes are used where they lie, and the paths that it names."""
    from branchline.routing.compiled.index import GrowingIndex
    from branchline.routing.compiled.paths import Paths

    with file.open("rb") as opened:
        data = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
    paths = Paths()
    return GrowingIndex.opened(memoryview(data), paths), paths


def cold_start(file: Path, events: Path) -> dict[str, Any]:
    """What a process that has just begun needs until it has matched a batch, in seconds."""
    started = time.monotonic()
    from branchline.kafka.scanning import Scanner
    from branchline.ops.matchers import columns_of

    index, paths = open_index(file)
    columns = columns_of(events.read_bytes().split(b"\n"))
    hits = index.match(Scanner(paths).scan(columns).scanned, len(columns))
    return {"cold_s": round(time.monotonic() - started, 2), "cold_hits": len(hits.row)}


def _cold(file: Path, events: Path) -> dict[str, Any]:
    code = (
        "import json, sys; from pathlib import Path; from branchline.ops.bench_build import cold_start; "
        "print(json.dumps(cold_start(Path(sys.argv[1]), Path(sys.argv[2]))))"
    )
    command = [sys.executable, "-c", code, str(file), str(events)]
    done = subprocess.run(command, capture_output=True, timeout=COLD_TIMEOUT_S, text=True)
    if done.returncode:
        raise JobFailed(f"a new process failed: {done.stderr[-500:]}", hint="this is a mistake of ours")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


class _Clock:
    """Writes down what things cost, in CPU time."""

    def __init__(self, row: dict[str, Any]) -> None:
        self._row = row

    def measured(self, act: Callable[[], _T]) -> tuple[_T, float]:
        started = time.process_time()
        done = act()
        return done, time.process_time() - started

    def s(self, name: str, act: Callable[[], _T]) -> _T:
        done, took_s = self.measured(act)
        self._row[name] = round(took_s, 3)
        return done

    def ms(self, name: str, act: Callable[[], _T]) -> _T:
        done, took_s = self.measured(act)
        self._row[name] = round(took_s * 1e3, 2)
        return done

    def us(self, name: str, act: Callable[[], _T], count: int) -> _T:
        """Of so many things, what each costs."""
        done, took_s = self.measured(act)
        self._row[name] = round(took_s * 1e6 / count, 2)
        return done


def _shown(name: str, rows: list[dict[str, Any]]) -> str:
    """A column for each size, and beside each cost how many times that of the size before it is."""
    shown = [fact for fact in rows[0] if fact not in ("workload", "filters", "growth")]

    def cell(row: dict[str, Any], fact: str) -> str:
        growth = row.get("growth", {}).get(fact)
        return f"{row[fact]:,}" if growth is None else f"{row[fact]:,} (x{growth})"

    headings = [name, *(f"{row['filters']:,}" for row in rows)]
    return table(headings, [[fact, *(cell(row, fact) for row in rows)] for fact in shown])
