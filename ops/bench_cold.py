"""`branchline bench cold`: what it takes until a worker that has nothing can handle a batch.

For each number of filters: a shard with one broker that has so many subscriptions, and a Routing Tree of
their filters. First it is built from its packed state, as where there is no image: the state is read, filters
are compiled, the tree is hung, and each filter finds its places. Then its image is made, written and opened,
with nothing else in memory: the first event, a first batch, and a batch after so many changes since the
image. The same batches on the warm shard are beside it.

Figures are CPU time of this process; the image was just written, so its pages are in memory.
"""

import gc
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import click

from branchline.ops.output import emit, say, table
from branchline.ops.settings import json_option
from branchline.ops.sql_texts import sql_text
from branchline.ops.workloads import WORKLOADS, Workload
from branchline.routing.codes import Rejection
from branchline.routing.compiling import compile_filter
from branchline.routing.control import Identity, Number, Subscribed
from branchline.routing.overlay.dividing import Arrival
from branchline.routing.overlay.facts import Fact
from branchline.routing.prefix.optimizer import Optimizer, Settings
from branchline.routing.prefix.trees import Trees
from branchline.routing.shard import EventBatch, Image, Shard, ShardState, alone
from branchline.routing.values import JsonValue
from branchline.streaming.facts import pack, unpack
from branchline.streaming.images import Images

HOME = "main"
JOB = alone(HOME)
PER_SUBSCRIBER = 100
BATCH = 1_000
CHANGES = (100, 1_000)
"""Changes since the image that are then obeyed one by one."""
COSTS = ("rebuild_s", "image_s", "open_ms", "cold_event_ms", "cold_batch_ms", "warm_batch_ms")

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Plain:
    """An event that is just its attributes."""

    value: dict[str, JsonValue]

    def attributes(self) -> dict[str, JsonValue]:
        return self.value


@click.command(short_help="Let a worker that has nothing handle a batch.")
@click.option(
    "--filters",
    "sizes",
    type=click.IntRange(10, 1_000_000),
    multiple=True,
    default=(1_000, 10_000, 100_000),
    show_default=True,
    help="Filters at the broker; may be given several times.",
)
@click.option(
    "--workload",
    "name",
    type=click.Choice(list(WORKLOADS)),
    default="equalities",
    show_default=True,
    help="Filters of this kind.",
)
@click.option("--seed", default=1, show_default=True, help="Seed of the random filters and events.")
@json_option
def cold(sizes: tuple[int, ...], name: str, seed: int, as_json: bool) -> None:
    """Measure how long a cold worker takes with and without an image of its shard, and a warm one.

    \b
    Examples:
      branchline bench cold
      branchline bench cold --filters 1000 --workload words --json
    """
    rows: list[dict[str, Any]] = []
    for size in sorted(set(sizes)):
        say(f"{name}: {size:,} filters")
        rows.append({"workload": name, "filters": size, **_measure(WORKLOADS[name], size, seed)})
    for before, row in pairwise(rows):
        row["growth"] = {cost: round(row[cost] / before[cost], 1) for cost in COSTS if before[cost]}
    if as_json:
        for row in rows:
            emit(row)
    else:
        click.echo(_shown(name, rows))


def _measure(workload: Workload, size: int, seed: int) -> dict[str, Any]:
    source = workload.filters(Random(f"{seed} filters"))
    texts = [sql_text(each) for each in islice(source, size)]
    later = [sql_text(each) for each in islice(source, max(CHANGES))]
    random = Random(f"{seed} events")
    arrivals = [Arrival(_Plain(workload.event(random))) for _ in range(BATCH)]
    one, many = (EventBatch([HOME] * count, arrivals[:count]) for count in (1, BATCH))
    packed = pack(_state(texts))
    row: dict[str, Any] = {"state_mb": _mb(len(packed))}
    clock = _Clock(row)
    with _no_collection():
        state = clock.s("unpack_s", lambda: unpack(packed))
        compile_filter.cache_clear()
        clock.s("compile_s", lambda: [compile_filter("sql", text) for text in texts])
        clock.s("tree_s", lambda: _told(state))
        compile_filter.cache_clear()
        warm = clock.s("build_s", lambda: Shard(JOB, 0, [state]))
        row["rebuild_s"] = round(row["unpack_s"] + row["build_s"], 2)
    with tempfile.TemporaryDirectory() as folder:
        images = Images("bench", JOB, Path(folder))
        image = clock.s("image_s", warm.image)
        clock.s("write_s", lambda: images.write(1, bytes(16), lambda: image))
        row["image_mb"] = _mb(sum(path.stat().st_size for path in Path(folder).rglob("*.image")))
        clock.ms("open_ms", lambda: _open(images))
        for cost, batch in (("cold_event_ms", one), ("cold_batch_ms", many)):
            compile_filter.cache_clear()
            clock.ms(cost, lambda batch=batch: _open(images).handle(1, (), (), batch))  # type: ignore[misc]
        for count in CHANGES:
            compile_filter.cache_clear()
            entry = pack(ShardState(facts=tuple(_facts(later[:count], size))))
            clock.ms(
                f"cold_event_{count}_changes_ms",
                lambda entry=entry: _open(images, [unpack(entry)]).handle(1, (), (), one),  # type: ignore[misc]
            )
        opened = _open(images)
    for shard, prefix in ((warm, "warm"), (opened, "opened_warm")):
        shard.handle(1, (), (), many)
        clock.ms(f"{prefix}_event_ms", lambda shard=shard: shard.handle(1, (), (), one))  # type: ignore[misc]
        clock.ms(f"{prefix}_batch_ms", lambda shard=shard: shard.handle(1, (), (), many))  # type: ignore[misc]
    return row


class _Clock:
    """Writes down what things cost."""

    def __init__(self, row: dict[str, Any]) -> None:
        self._row = row

    def s(self, name: str, act: Callable[[], _T]) -> _T:
        started = time.process_time()
        done = act()
        self._row[name] = round(time.process_time() - started, 2)
        return done

    def ms(self, name: str, act: Callable[[], object]) -> None:
        started = time.process_time()
        act()
        self._row[name] = round((time.process_time() - started) * 1e3, 1)


@contextmanager
def _no_collection() -> Any:
    """As where a shard is built: what is built stays, so there is nothing to collect."""
    gc.disable()
    yield
    gc.freeze()
    gc.enable()


def _open(images: Images, log: Iterable[ShardState] = ()) -> Shard:
    [(sequence, token, path)] = images.find(1)
    image = images.open(sequence, token, path)
    assert isinstance(image, Image), "it was just written"
    return Shard(JOB, 0, log, image)


def _told(state: ShardState) -> None:
    trees = Trees()
    for each in state.told:
        trees.apply(each)


def _state(texts: list[str]) -> ShardState:
    """So many subscriptions, and the tree of their filters as a snapshot."""
    optimizer = Optimizer(1, Settings(limit_ms=0))
    for text in texts:
        compiled = compile_filter("sql", text)
        assert not isinstance(compiled, Rejection)
        optimizer.subscribe(compiled.cover)
    optimizer.updates(0)
    return ShardState(tuple(optimizer.snapshots()), tuple(_facts(texts, 0)))


def _facts(texts: Iterable[str], first: int) -> Iterable[tuple[str, Fact]]:
    for number, text in enumerate(texts, first):
        identity = Identity(HOME, f"subscriber{number // PER_SUBSCRIBER}", f"filter{number}")
        yield HOME, Subscribed(identity, Number(1, number + 1), "sql", text, (f"request{number}",))


def _mb(size: int) -> float:
    return round(size / 2**20, 1)


def _shown(name: str, rows: list[dict[str, Any]]) -> str:
    """A column for each size, and beside some costs how many times that of the size before it is."""
    facts = [fact for fact in rows[0] if fact not in ("workload", "filters", "growth")]

    def cell(row: dict[str, Any], fact: str) -> str:
        growth = row.get("growth", {}).get(fact)
        return f"{row[fact]:,}" if growth is None else f"{row[fact]:,} (x{growth})"

    headings = [name, *(f"{row['filters']:,}" for row in rows)]
    return table(headings, [[fact, *(cell(row, fact) for row in rows)] for fact in facts])
