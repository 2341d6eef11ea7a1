"""Runs the router query for as long as it is wanted, and tells what it does.

A batch that fails, because Kafka went away or a worker died, fails the query; it is started again from its
checkpoint, after a pause that grows. What can never go well (state of another layout, failure after failure
without one batch done) ends the job with an error that says what to do. Once a second at most, and now and
then when idle, the job writes what it did to `stats`, from which `branchline status` reads. An idle query
runs no batch; so when a lease may be over, the job asks for one with a tick on `control`.
"""

import contextlib
import json
import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

from confluent_kafka import KafkaException
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from branchline.kafka.admin import list_topics
from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import (
    BranchlineError,
    CheckpointDiffers,
    ClusterUnreachable,
    JobFailed,
    OffsetsGone,
)
from branchline.kafka.fields import FORMAT_VERSION, dump
from branchline.kafka.messages import encode_tick
from branchline.kafka.rebuilding import bounds_of, encode_positions
from branchline.kafka.topics import Topics
from branchline.streaming.backlog import Backlog
from branchline.streaming.checkpoint import layout_differs
from branchline.streaming.router import RouterConfig, start_router
from branchline.streaming.state import LayoutDiffers

STATS_EVERY_S = 1.0
HEARTBEAT_EVERY_S = 5.0
"""How old a job's last statistics can be while it is well."""

RETRY_FIRST_S, RETRY_MOST_S = 1.0, 30.0
FAILURES_MOST = 10
"""Failures in a row, without a batch done in between, after which the job gives up."""

TICK_EVERY_S = 10.0
"""How often, at most, a batch is asked for because a lease may be over."""

DATA_LOSS = ("KAFKA_DATA_LOSS", "Some data may have been lost")
"""How Spark says, on the driver and from a task, that offsets which it wants to read are gone."""

STOP_DEADLINE_S = 15.0
"""How long a stop waits for the batch in progress."""


class RouterJob:
    """The router query under supervision."""

    def __init__(
        self,
        spark: SparkSession,
        config: RouterConfig,
        report: Callable[[str], None],
        log: Path | None = None,
    ) -> None:
        self._spark = spark
        self._config = config
        self._report = report
        self._read_log = f"read {log}" if log is not None else "read Spark's log"
        self._producer = config.cluster.producer(linger_ms=5, message_timeout_ms=20_000)
        self._topics = Topics(config.namespace)
        self._counts: Counter[str] = Counter()
        self._batches = 0
        self._batch_ms: int | None = None
        self._known: dict[str, int] = {}
        """What the leading shard's brokers know: how many subscriptions, and which topology."""
        self._restarts = 0
        self._positions: dict[str, dict[str, int]] = {}
        """The next offset of each partition that the query reads, by topic."""
        self._joined: int | None = None
        """How many of the brokers have joined; None until the leading shard has said so."""
        self._marked: dict[str, dict[str, int]] = {}
        """The positions that were last written to be kept."""
        self._backlog: Backlog | None = None
        self._told = (0.0, "", -1)
        self._due_ms: int | None = 0
        """When a lease may be over next. Until the leading shard has said so, it may be at once."""
        self._ticked_s = time.monotonic()
        self._started: Event | None = None

    def run(self, stop: Event, started: Event | None = None) -> None:
        """Run until `stop` is set; raises a BranchlineError if the job cannot go on.

        `started` is set once the query runs for the first time.
        """
        self._started = started
        try:
            self._run(stop)
        except BranchlineError as error:
            # Nobody is to take it for running, and wait.
            self._tell(None, "stopped", error=str(error))
            raise
        except (Py4JNetworkError, ConnectionError):
            raise JobFailed(
                "Spark's Java process has ended", hint=f"{self._read_log}, then start again"
            ) from None
        finally:
            self._producer.flush(10)

    def _run(self, stop: Event) -> None:
        failures = 0
        while not stop.is_set():
            done_before = self._batches
            error = self._run_query(stop)
            if error is None:
                break
            if self._batches > done_before:
                failures = 0
            unreachable = _unreachable(self._config.cluster)
            if unreachable is None:
                failures += 1
            # A cluster that cannot be reached refuses nothing: its batch waits, however long.
            error = unreachable or error
            pause_s = min(RETRY_FIRST_S * 2 ** max(failures - 1, 0), RETRY_MOST_S)
            if failures >= FAILURES_MOST:
                raise JobFailed(
                    f"the router failed {failures} times in a row: {error}",
                    hint=f"{self._read_log}; the checkpoint is as it was",
                )
            self._restarts += 1
            self._report(f"router: {error}; trying again in {pause_s:.0f} s")
            again_at = time.monotonic() + pause_s
            while time.monotonic() < again_at and not stop.wait(0.25):
                self._tell(None, "failed", error=str(error))
        self._tell(None, "stopped")

    def _run_query(self, stop: Event) -> Exception | None:
        """One life of the query; what ended it, or None if it was stopped."""
        try:
            query = start_router(self._spark, self._config, self._observe)
        except (CheckpointDiffers, Py4JNetworkError):
            raise
        except (BranchlineError, PySparkException, Py4JError) as error:
            return _summary(error)
        self._report(
            f"router: running (namespace {self._config.namespace}, {_named(self._config.brokers)}, "
            f"{self._config.shards} shards)"
        )
        if self._started is not None:
            self._started.set()
        self._tell(query, "running")
        self._measure_backlog()
        while query.isActive and not stop.wait(0.25):
            self._tell(query, "running")
            self._tick()
        if query.isActive:
            self._finish_batch(query)
            self._look(query)
            with contextlib.suppress(PySparkException, Py4JJavaError):  # past its time-out it is left alone
                query.stop()
            return None
        failure = query.exception()
        if failure is not None and LayoutDiffers.MARK in str(failure):
            raise layout_differs(self._config.checkpoint)
        if failure is not None and any(words in str(failure) for words in DATA_LOSS):
            raise OffsetsGone(
                f"records that were not read yet are gone: {_summary(failure)}",
                hint="their topic did not keep them, or was made anew. What is left is read with a new "
                "checkpoint: branchline rebuild --since 7d --checkpoint NEW",
            )
        return _summary(failure) if failure is not None else None

    def _measure_backlog(self) -> None:
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

    def _finish_batch(self, query: StreamingQuery) -> None:
        """Give the batch in progress the time to end: what is cut off is written again after a restart."""
        current, deadline = _batch(query), time.monotonic() + STOP_DEADLINE_S
        while query.isActive and query.status["isTriggerActive"] and _batch(query) == current:
            if time.monotonic() > deadline:
                self._report("router: the batch in progress is cut off; it will be run again")
                return
            time.sleep(0.05)

    def _observe(self, batch: int, shards: list[dict[str, int]]) -> None:
        self._batches += 1
        for counts in shards:
            due_ms, joined = counts.pop("due_ms", None), counts.pop("joined")
            known = {name: counts.pop(name) for name in ("subscriptions", "topology")}
            if counts.pop("shard") == 0:
                self._known = known
                self._due_ms = due_ms
                self._joined = joined
            self._counts.update(counts)

    def _tick(self) -> None:
        """Ask for a batch if a lease may be over, however quiet it is."""
        due = self._due_ms is not None and time.time() * 1000 >= self._due_ms
        if due and time.monotonic() - self._ticked_s >= TICK_EVERY_S:
            self._ticked_s = time.monotonic()
            self._producer.produce(self._topics.control, encode_tick(), f"router/{self._config.name}")
            self._producer.poll(0)

    def _look(self, query: StreamingQuery) -> None:
        """Remember how far the query is, for what is told after it has ended too."""
        progress: Any = query.lastProgress
        if progress is None:
            return
        for source in progress.sources:
            self._positions |= json.loads(source.endOffset or "{}") or {}
        if progress.numInputRows:
            self._batch_ms = progress.durationMs.get("triggerExecution")
        self._look_at_backlog(query)

    def _look_at_backlog(self, query: StreamingQuery) -> None:
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

    def _tell(self, query: StreamingQuery | None, state: str, error: str | None = None) -> None:
        told_at, told_state, told_batches = self._told
        pause_s = HEARTBEAT_EVERY_S if self._batches == told_batches else STATS_EVERY_S
        # A change of state is told at once.
        if state == told_state and time.monotonic() - told_at < pause_s:
            return
        self._told = (time.monotonic(), state, self._batches)
        if query is not None:
            self._look(query)
        message = {
            "version": FORMAT_VERSION,
            "job": "router",
            "broker": self._config.name,
            "brokers": list(self._config.brokers),
            "state": state,
            "error": error,
            "at_ms": int(time.time() * 1000),
            "batches": self._batches,
            "batch_ms": self._batch_ms,
            "restarts": self._restarts,
            **self._known,
            "counts": dict(self._counts),
            "positions": self._positions,
            "backlog": self._backlog.fields() if self._backlog is not None else None,
        }
        self._producer.produce(self._topics.stats, dump(message), f"router/{self._config.name}")
        self._mark(int(time.time() * 1000))
        self._producer.poll(0)

    def _mark(self, at_ms: int) -> None:
        """Write how far the job is where it is kept: a rebuild without the checkpoint goes on from there."""
        if self._joined is not None and self._positions != self._marked:
            self._marked = dict(self._positions)
            key, value = encode_positions(self._config.brokers, self._marked, self._joined, at_ms)
            self._producer.produce(self._topics.positions, value, key)


def _named(brokers: tuple[str, ...]) -> str:
    return f"broker{'s' if len(brokers) > 1 else ''} {', '.join(brokers)}"


def _unreachable(cluster: Cluster) -> ClusterUnreachable | None:
    try:
        list_topics(cluster)
    except ClusterUnreachable as error:
        return error
    return None


def _batch(query: StreamingQuery) -> int:
    progress: Any = query.lastProgress
    return progress.batchId if progress is not None else -1


_ERROR_LINE = re.compile(r"^(?:[\w.]+\.)?\w*(?:Error|Exception|Failed|Differs|Unreachable)\b: .+")


def _summary(error: Exception) -> Exception:
    """The error in one line: a JVM's or worker's whole trace is in the log, not for a person's eyes."""
    if isinstance(error, BranchlineError):
        return error
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # Of a chain of errors the last one named is the cause.
    named = [line for line in lines if _ERROR_LINE.match(line) and "Py4J" not in line]
    return JobFailed((named or lines or [type(error).__name__])[-1 if named else 0][:300])
