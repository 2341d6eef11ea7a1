"""The Tree Optimizer's stateful operator: records of `filters` in, what is told of the tree out.

The state of a part is the log of its `TreeOptimizer`: how its life began, and what it was called with. A log
that has grown long is made one of a new life, which begins with what stands.
"""

import json
from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from branchline.kafka.fields import dump
from branchline.kafka.messages import change_fields, change_from_fields
from branchline.kafka.record import Place, Record
from branchline.kafka.trees import Told, read_filters
from branchline.routing.overlay.optimizing import Began, Called, Entry, TreeOptimizer
from branchline.routing.prefix.optimizer import Settings
from branchline.routing.prefix.updates import Snapshot, Update
from branchline.streaming.log import Meta, StateLog

LAYOUT_VERSION = 1
"""Of the log and of what `pack` writes."""

LOG_MIN_BYTES = 4 * 1024 * 1024
"""A log shorter than this is kept: with a new life, events on their way are matched afresh once."""

SUMMARY_PART = -1
"""In place of a part: an output row that is not for Kafka but tells the driver how the part is."""

OUTPUT = StructType([StructField("part", IntegerType(), False), StructField("value", BinaryType(), False)])

_warm: dict[tuple[Settings, int, int], tuple[bytes, TreeOptimizer]] = {}
"""Optimizers built by this worker process, with the token of their state."""


class OptimizerOperator(StatefulProcessor):
    """Runs one `TreeOptimizer` per key, a key being a part's label."""

    def __init__(self, settings: Settings, labels: list[int], above: int) -> None:
        self._settings = settings
        self._index = {label: index for index, label in enumerate(labels)}
        self._above = above

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._log = StateLog(handle, LAYOUT_VERSION, LOG_MIN_BYTES)

    def handleInputRows(  # noqa: N802 - the name is Spark's
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: N803 - likewise
    ) -> Iterator[pd.DataFrame]:
        part = self._index[key[0]]
        frame = pd.concat(list(rows), ignore_index=True).sort_values("offset", kind="stable")
        told = read_filters(_records(frame))
        called = Called(int(frame["now_ms"].iloc[0]), told.changes, told.asked)
        optimizer, records, counts = self._run(part, called)
        due_ms = optimizer.optimizer.due_ms()
        summary = {**describe(optimizer, part), "due_ms": due_ms, "counts": _counts(told, counts)}
        out = [(part, record) for record in records]
        yield pd.DataFrame([*out, (SUMMARY_PART, json.dumps(summary).encode())], columns=OUTPUT.names)

    def close(self) -> None:
        pass

    def _run(self, part: int, called: Called) -> tuple[TreeOptimizer, list[bytes], dict[str, int]]:
        meta = self._log.meta()
        optimizer, meta = self._take(part, meta, called.now_ms)
        told = optimizer.call(called)
        records = optimizer.records(told)
        counts = count(told)
        if called.changes or told:
            entry = pack(called)
            if self._log.is_long(meta, entry):
                optimizer = optimizer.again(called.now_ms)
                meta = self._log.shorten(meta, entry, pack(optimizer.began()))
                called = Called(called.now_ms)
                told = optimizer.call(called)
                records, counts, entry = optimizer.records(told), count(told), pack(called)
            meta = self._log.append(meta, entry)
        _warm[self._settings, part, self._above] = (meta.token, optimizer)
        return optimizer, records, counts

    def _take(self, part: int, meta: Meta, now_ms: int) -> tuple[TreeOptimizer, Meta]:
        """The optimizer as the store has it. It is taken out of memory: a batch may fail half-way."""
        token, warm = _warm.pop((self._settings, part, self._above), (b"", None))
        if warm is not None and token == meta.token:
            return warm, meta
        log = (unpack(entry) for entry in self._log.entries())
        restored = TreeOptimizer.restored(log, self._settings, part)
        if restored is not None:
            return restored, meta
        first = TreeOptimizer(max(now_ms, self._above + 1), self._settings, part)
        return first, self._log.append(meta, pack(first.began()))


def pack(entry: Entry) -> bytes:
    """An entry of the log as bytes."""
    changes = [change_fields(change) for change in entry.changes]
    if isinstance(entry, Began):
        return dump({"incarnation": entry.incarnation, "changes": changes})
    return dump({"now_ms": entry.now_ms, "changes": changes, "asked": entry.asked})


def unpack(data: bytes) -> Entry:
    """The inverse of `pack`."""
    fields: dict[str, Any] = json.loads(data)
    changes = tuple(map(change_from_fields, fields["changes"]))
    if "incarnation" in fields:
        return Began(fields["incarnation"], changes)
    return Called(fields["now_ms"], changes, fields["asked"])


def describe(optimizer: TreeOptimizer, part: int) -> dict[str, Any]:
    """How a part is, for statistics."""
    tree = optimizer.optimizer.part(part)
    return {
        "part": part,
        "version": list(tree.version),
        "nodes": tree.tree.nodes,
        "beside": len(tree.overflow),
        "difference": round(tree.difference, 4),
    }


def count(told: list[Update | Snapshot]) -> dict[str, int]:
    """What was told."""
    updates = sum(isinstance(each, Update) for each in told)
    return {
        "updates": updates,
        "snapshots": sum(isinstance(each, Snapshot) and not each.piece for each in told),
    }


def _counts(told: Told, counts: dict[str, int]) -> dict[str, int]:
    return {"changes": len(told.changes), "unreadable": told.unreadable, **counts}


def _records(frame: pd.DataFrame) -> Iterator[Record]:
    for offset, key, value in zip(
        *(frame[name].tolist() for name in ("offset", "key", "value")), strict=True
    ):
        yield Record(
            Place("", 0, offset, 0),
            None if key is None else bytes(key),
            None if value is None else bytes(value),
        )
