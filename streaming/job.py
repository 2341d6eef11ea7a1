"""The two jobs under supervision: the router, and the Tree Optimizer."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from branchline.kafka.errors import BranchlineError, CheckpointDiffers, JobFenced, OffsetsGone
from branchline.kafka.messages import encode_tick
from branchline.kafka.methods import methods_fields
from branchline.kafka.rebuilding import bounds_of, encode_positions
from branchline.kafka.trees import ask_snapshot, write_tick
from branchline.routing.methods.choosing import spelled
from branchline.streaming import once
from branchline.streaming.backlog import Backlog
from branchline.streaming.checkpoint import layout_differs
from branchline.streaming.log import LayoutDiffers
from branchline.streaming.optimizer import OptimizerConfig, start_optimizer
from branchline.streaming.rates import Rates
from branchline.streaming.router import RouterConfig, start_router
from branchline.streaming.supervising import SupervisedJob, summary

DATA_LOSS = ("KAFKA_DATA_LOSS", "Some data may have been lost")
"""How Spark says, on the driver and from a task, that offsets which it wants to read are gone."""

TICK_EVERY_S = 10.0
"""How often, at most, a batch is asked for because something may be due."""
ROUND_TICK_EVERY_S = 1.0
"""The same for rounds of offloading, which subscriptions wait for."""


class _Bell:
    """Says when to ask for a batch: when something may be due, and not too often."""

    def __init__(self, due_ms: int | None) -> None:
        self.due_ms = due_ms
        self._rang_s = time.monotonic()

    def rings(self, every_s: float | None = None) -> bool:
        due = self.due_ms is not None and time.time() * 1000 >= self.due_ms
        if not due or time.monotonic() - self._rang_s < (TICK_EVERY_S if every_s is None else every_s):
            return False
        self._rang_s = time.monotonic()
        return True


class RouterJob(SupervisedJob):
    """The router query under supervision."""

    kind = "router"

    def __init__(
        self,
        spark: SparkSession,
        config: RouterConfig,
        report: Callable[[str], None],
        log: Path | None = None,
    ) -> None:
        super().__init__(config.cluster, config.namespace, config.name, config.checkpoint, report, log)
        self._spark = spark
        self._config = config
        self._known: dict[str, int] = {}
        """What the leading shard's brokers know: how many subscriptions, and which topology."""
        self._overlay: dict[str, Any] = {}
        """How each broker stands: see `streaming/standing.py`."""
        self._rates = Rates(time.monotonic())
        # Until the leading shard has said when a lease or a topic's time may be over, it may be at once.
        self._bell = _Bell(due_ms=0)
        self._rounds = _Bell(due_ms=None)
        self._gaps = _Bell(due_ms=None)
        self._joined: int | None = None
        """How many of the brokers have joined; None until the leading shard has said so."""
        self._marked: dict[str, dict[str, int]] = {}
        """The positions that were last written to be kept."""
        self._backlog: Backlog | None = None

    def _start(self) -> StreamingQuery:
        return start_router(self._spark, self._config, self._observe)

    def _described(self) -> str:
        brokers = self._config.brokers
        named = f"broker{'s' if len(brokers) > 1 else ''} {', '.join(brokers)}"
        config = self._config
        methods = spelled(config.methods)
        return f"namespace {config.namespace}, {named}, {config.shards} shards, {config.delivery}, {methods}"

    def _observe(self, batch: int, shards: list[dict[str, Any]]) -> None:
        self._batches += 1
        for counts in shards:
            due_ms, joined = counts.pop("due_ms", None), counts.pop("joined")
            self._overlay = counts.pop("overlay", self._overlay)
            known = {name: counts.pop(name) for name in ("subscriptions", "topology")}
            if counts.pop("shard") == 0:
                self._known = known
                self._bell.due_ms, self._rounds.due_ms = due_ms, counts.pop("round_ms")
                self._joined = joined
                if counts["updates_missed"]:
                    self._gaps.due_ms = 0
            self._counts.update(counts)

    def _beat(self) -> None:
        """Ask for a batch if something may be due, however quiet it is, and for a tree that was missed."""
        if self._bell.rings() or self._rounds.rings(ROUND_TICK_EVERY_S):
            self._producer.produce(self._topics.control, encode_tick(), f"router/{self._name}")
        if self._gaps.rings():
            self._gaps.due_ms = None
            ask_snapshot(self._producer, self._topics)
        self._producer.poll(0)

    def _news(self) -> dict[str, Any]:
        return {
            "broker": self._name,
            "cluster": self._config.cluster_name,
            "brokers": list(self._config.brokers),
            "delivery": self._config.delivery,
            "methods": methods_fields(self._config.methods),
            **self._known,
            **self._overlay,
            "rates": self._rates.over(time.monotonic(), self._counts),
            "backlog": self._backlog.fields() if self._backlog is not None else None,
        }

    def _refused(self, failure: str) -> BranchlineError | None:
        if LayoutDiffers.MARK in failure:
            return layout_differs(self._checkpoint)
        if once.JobFenced.MARK in failure:
            return JobFenced(
                "another copy of this job has written since it started; this one stops, so that nothing is "
                "written twice",
                hint="end one of them: a checkpoint, and a copy of it, is for one job at a time",
            )
        if any(words in failure for words in DATA_LOSS):
            return OffsetsGone(
                f"records that were not read yet are gone: {summary(Exception(failure))}",
                hint="their topic did not keep them, or was made anew. What is left is read with a new "
                "checkpoint: branchline rebuild --since 7d --checkpoint NEW",
            )
        return None

    def _begun(self) -> None:
        """Look once where the events end. A job that had to start anew goes on with what it had."""
        if self._backlog is not None:
            return
        try:
            bounds = bounds_of(self._config.cluster, self._topics.event_topics(self._config.brokers))
        except (BranchlineError, KafkaException):
            return  # for looking at only: the query says what is wrong
        ends = {
            name: {str(number): end for number, (_, end) in enumerate(each)} for name, each in bounds.items()
        }
        self._backlog = Backlog(ends, self._config.max_events_per_batch, time.monotonic())

    def _looked(self, query: StreamingQuery) -> None:
        if self._backlog is None:
            return
        events = self._topics.event_topics(self._config.brokers)
        if self._backlog.is_begun:
            positions, rows = self._positions, 0
        else:
            positions, rows = {}, 0
            first: Any = next((each for each in query.recentProgress if each.numInputRows), None)
            for source in first.sources if first is not None else ():
                ended = json.loads(source.endOffset or "{}") or {}
                if ended.keys() & set(events):
                    positions, rows = ended, source.numInputRows
        line = self._backlog.look(positions, rows, time.monotonic())
        if line is not None:
            self._report(f"router: {line}")

    def _remember(self) -> None:
        """Write how far the job is where it is kept: a rebuild without the checkpoint goes on from there."""
        if self._joined is not None and self._positions != self._marked:
            self._marked = dict(self._positions)
            at_ms = int(time.time() * 1000)
            key, value = encode_positions(self._config.brokers, self._marked, self._joined, at_ms)
            self._producer.produce(self._topics.positions, value, key)


class OptimizerJob(SupervisedJob):
    """The Tree Optimizer query under supervision."""

    kind = "optimizer"

    def __init__(
        self,
        spark: SparkSession,
        config: OptimizerConfig,
        report: Callable[[str], None],
        log: Path | None = None,
    ) -> None:
        super().__init__(config.cluster, config.namespace, config.namespace, config.checkpoint, report, log)
        self._spark = spark
        self._config = config
        self._parts: dict[int, dict[str, Any]] = {}
        # Until the parts have said when something is due, it may be at once.
        self._bell = _Bell(due_ms=0)

    def _start(self) -> StreamingQuery:
        return start_optimizer(self._spark, self._config, self._observe)

    def _described(self) -> str:
        settings = self._config.settings
        parts = f"{settings.parts} part{'s' if settings.parts > 1 else ''}"
        return f"namespace {self._config.namespace}, {parts}, threshold {settings.threshold:g}"

    def _observe(self, batch: int, parts: list[dict[str, Any]]) -> None:
        self._batches += 1
        due = [each.pop("due_ms") for each in parts]
        self._bell.due_ms = min((each for each in due if each is not None), default=None)
        for each in parts:
            self._counts.update(each.pop("counts"))
            self._parts[each["part"]] = each

    def _beat(self) -> None:
        """Ask for a batch if something may be due, however quiet it is."""
        if self._bell.rings():
            write_tick(self._producer, self._topics)
        self._producer.poll(0)

    def _news(self) -> dict[str, Any]:
        return {"parts": [self._parts[part] for part in sorted(self._parts)]}

    def _refused(self, failure: str) -> BranchlineError | None:
        if LayoutDiffers.MARK not in failure:
            return None
        return CheckpointDiffers(
            f"the state in {self._checkpoint} was written in another layout",
            hint="delete it: nothing is lost, the Tree Optimizer then begins anew",
        )
