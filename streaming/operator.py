"""The router's stateful operator: rows in, decided rows out.

For each shard and micro-batch it sorts the rows (Spark hands them over as blocks per source partition) and
carries them from one pure part to the next: `intake` decodes, the `Shard` decides, `dispatch` encodes.
State is saved before the outputs leave; Spark commits it only when all of them were consumed.
"""

import json
import zlib
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark import SparkFiles
from pyspark.sql.streaming.stateful_processor import (
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from branchline.kafka.dispatch import Dispatch, count, dispatch
from branchline.kafka.event_columns import EventColumns
from branchline.kafka.intake import read_batch
from branchline.kafka.owed import Owed
from branchline.kafka.topics import Topics
from branchline.routing.shard import Job, Shard
from branchline.streaming import pacing, state
from branchline.streaming.blocks import BlockKind, pack
from branchline.streaming.bundles import unbundle
from branchline.streaming.columns import Kind
from branchline.streaming.garbage import spare
from branchline.streaming.images import images_of
from branchline.streaming.standing import standing

_ORDER = ["kind", "topic", "partition", "offset"]


class RouterOperator(StatefulProcessor):
    """Runs one `Shard` per key, a key being a shard's label."""

    def __init__(
        self, namespace: str, job: Job, labels: list[int], checkpoint: str = "", seed: str | None = None
    ) -> None:
        """The checkpoint names the job where images of its shards are kept."""
        self._topics = Topics(namespace)
        self._job = job
        self._index = {label: index for index, label in enumerate(labels)}
        # The name of a file that Spark has brought to every worker; read only by a shard without a state.
        self._seed = seed
        # The driver's, so that all workers of a job agree on it.
        self._layout = state.LAYOUT_VERSION
        self._sizes = state.SIZES
        self._name = f"{namespace} {checkpoint}"

    def init(self, handle: StatefulProcessorHandle) -> None:
        images = images_of(self._name, self._job)
        seed = None if self._seed is None else partial(_read_seed, self._seed)
        self._store = state.ShardStore(handle, images, self._layout, self._sizes, seed)

    def handleInputRows(  # noqa: N802 - the name is Spark's
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: N803 - likewise
    ) -> Iterator[pd.DataFrame]:
        spare()
        index = self._index[key[0]]
        frame = pd.concat(list(rows), ignore_index=True).sort_values(_ORDER, kind="stable")
        now_ms = int(frame["now_ms"].iloc[0])
        is_control = frame["kind"] == Kind.CONTROL
        control, bundles = _columns(frame[is_control]), frame[~is_control]
        events = unbundle(*(bundles[name].tolist() for name in ("topic", "partition", "value")))
        intake = read_batch(self._topics, map(control.record, range(len(control))), events)
        shard = self._store.take(self._job, index)
        outputs = shard.handle(now_ms, intake.updates, intake.control, intake.events())
        self._store.save(self._job, index, shard, outputs.changed)
        counts: dict[str, Any] = {
            "shard": index,
            **_known(shard),
            **count(intake, outputs, leads=index == 0),
            **self._store.counts(),
            pacing.EVENTS: len(events),
            pacing.BYTES: sum(map(len, bundles["value"])),
        }
        if index == 0:
            counts |= {"overlay": standing(shard, now_ms), "round_ms": shard.round_ms()}
        if outputs.due_ms is not None:
            counts["due_ms"] = outputs.due_ms
        # What cannot be read names no home: the first broker answers, as the shard does for lack of one.
        first = min(self._job.brokers)
        yield from _frames(dispatch(self._topics, first, index == 0, now_ms, intake, outputs), counts)

    def close(self) -> None:
        pass


def _read_seed(name: str) -> bytes:
    return zlib.decompress(Path(SparkFiles.get(name)).read_bytes())


def _known(shard: Shard) -> dict[str, int]:
    """What the brokers know: how many subscriptions (of all homes), which topology, how many have joined."""
    active = [broker for broker in shard.brokers.values() if not broker.position.is_retired]
    topologies = [broker.topology.number for broker in active if broker.topology is not None]
    return {
        "subscriptions": max((len(broker.table) for broker in active), default=0),
        "topology": max(topologies, default=0),
        "joined": sum(broker.position.member is not None and not broker.joining for broker in active),
    }


def _columns(frame: pd.DataFrame) -> EventColumns:
    names = ("topic", "partition", "offset", "timestamp_ms", "key", "value", "headers")
    return EventColumns(*(frame[name].tolist() for name in names))


def _frames(items: Iterable[Dispatch | Owed], counts: dict[str, Any]) -> Iterator[pd.DataFrame]:
    for block in pack(items):
        yield _frame(block.kind, block.data)
    yield _frame(BlockKind.COUNTS, json.dumps(counts).encode())


def _frame(kind: BlockKind, data: bytes) -> pd.DataFrame:
    return pd.DataFrame({"kind": [int(kind)], "block": [data]})
