"""Runs a streaming query for as long as it is wanted, and tells what it does.

A batch that fails, because Kafka went away or a worker died, fails the query; it is started again from its
checkpoint, after a pause that grows. What can never go well (state of another layout, failure after failure
without one batch done) ends the job with an error that says what to do. Once a second at most, and now and
then when idle, the job writes what it did to `stats`, from which `branchline status` reads. An idle query
runs no batch; so a job may ask for one with a record on its own input.
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

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from branchline.kafka.admin import list_topics
from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import BranchlineError, CheckpointDiffers, ClusterUnreachable, JobFailed
from branchline.kafka.fields import FORMAT_VERSION, dump
from branchline.kafka.topics import Topics

STATS_EVERY_S = 1.0
HEARTBEAT_EVERY_S = 5.0
"""How old a job's last statistics can be while it is well."""

RETRY_FIRST_S, RETRY_MOST_S = 1.0, 30.0
FAILURES_MOST = 10
"""Failures in a row, without a batch done in between, after which the job gives up."""

STOP_DEADLINE_S = 15.0
"""How long a stop waits for the batch in progress."""

STOPPED = "stopped SparkContext"
"""How Spark says that it runs nothing any more, whatever is tried."""

Report = Callable[[str], None]


class SupervisedJob:
    """A query under supervision. A kind of job says how it is started, and what it has to tell."""

    kind: str

    def __init__(
        self,
        cluster: Cluster,
        namespace: str,
        name: str,
        checkpoint: str,
        report: Report,
        log: Path | None = None,
    ) -> None:
        self._cluster = cluster
        self._name = name
        self._checkpoint = checkpoint
        self._report = report
        self._read_log = f"read {log}" if log is not None else "read Spark's log"
        self._producer = cluster.producer(linger_ms=5, message_timeout_ms=20_000)
        self._topics = Topics(namespace)
        self._counts: Counter[str] = Counter()
        self._batches = 0
        self._batch_ms: int | None = None
        self._restarts = 0
        self._positions: dict[str, dict[str, int]] = {}
        """The next offset of each partition that the query reads, by topic."""
        self._told = (0.0, "", -1)
        self._started: Event | None = None

    # What a kind of job says

    def _start(self) -> StreamingQuery:
        """Start the query."""
        raise NotImplementedError

    def _described(self) -> str:
        """What runs, for people."""
        raise NotImplementedError

    def _news(self) -> dict[str, Any]:
        """What the job has to tell beside what all jobs tell."""
        raise NotImplementedError

    def _refused(self, failure: str) -> BranchlineError | None:
        """What must be done about a failure that would come again, if it is one."""
        raise NotImplementedError

    def _begun(self) -> None:
        """Called when the query has been started."""

    def _beat(self) -> None:
        """Called several times a second while the query runs."""

    def _looked(self, query: StreamingQuery) -> None:
        """Called when the job has looked how far the query is."""

    def _remember(self) -> None:
        """Called when statistics were told: what is to be kept may be written too."""

    # Running

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
            unreachable = _unreachable(self._cluster)
            if unreachable is None:
                failures += 1
            # A cluster that cannot be reached refuses nothing: its batch waits, however long.
            error = unreachable or error
            pause_s = min(RETRY_FIRST_S * 2 ** max(failures - 1, 0), RETRY_MOST_S)
            if failures >= FAILURES_MOST:
                raise JobFailed(
                    f"the {self.kind} failed {failures} times in a row: {error}",
                    hint=f"{self._read_log}; the checkpoint is as it was",
                )
            self._restarts += 1
            self._report(f"{self.kind}: {error}; trying again in {pause_s:.0f} s")
            again_at = time.monotonic() + pause_s
            while time.monotonic() < again_at and not stop.wait(0.25):
                self._tell(None, "failed", error=str(error))
        self._tell(None, "stopped")

    def _run_query(self, stop: Event) -> Exception | None:
        """One life of the query; what ended it, or None if it was stopped."""
        try:
            query = self._start()
        except (CheckpointDiffers, Py4JNetworkError):
            raise
        except (BranchlineError, PySparkException, Py4JError) as error:
            if STOPPED in str(error):
                raise JobFailed(
                    "Spark has ended: its master gave the job up, or somebody stopped it",
                    hint=f"{self._read_log}, and the master's, then start again",
                ) from None
            return summary(error)
        self._report(f"{self.kind}: running ({self._described()})")
        if self._started is not None:
            self._started.set()
        self._tell(query, "running")
        self._begun()
        while query.isActive and not stop.wait(0.25):
            self._tell(query, "running")
            self._beat()
        if query.isActive:
            self._finish_batch(query)
            self._look(query)
            with contextlib.suppress(PySparkException, Py4JJavaError):  # past its time-out it is left alone
                query.stop()
            return None
        failure = query.exception()
        refused = None if failure is None else self._refused(str(failure))
        if refused is not None:
            raise refused
        return summary(failure) if failure is not None else None

    def _finish_batch(self, query: StreamingQuery) -> None:
        """Give the batch in progress the time to end: what is cut off is written again after a restart."""
        current, deadline = _batch(query), time.monotonic() + STOP_DEADLINE_S
        while query.isActive and query.status["isTriggerActive"] and _batch(query) == current:
            if time.monotonic() > deadline:
                self._report(f"{self.kind}: the batch in progress is cut off; it will be run again")
                return
            time.sleep(0.05)

    # Telling

    def _look(self, query: StreamingQuery) -> None:
        """Remember how far the query is, for what is told after it has ended too."""
        progress: Any = query.lastProgress
        if progress is None:
            return
        for source in progress.sources:
            self._positions |= json.loads(source.endOffset or "{}") or {}
        if progress.numInputRows:
            self._batch_ms = progress.durationMs.get("triggerExecution")
        self._looked(query)

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
            "job": self.kind,
            "state": state,
            "error": error,
            "at_ms": int(time.time() * 1000),
            "batches": self._batches,
            "batch_ms": self._batch_ms,
            "restarts": self._restarts,
            "counts": dict(self._counts),
            "positions": self._positions,
            **self._news(),
        }
        self._producer.produce(self._topics.stats, dump(message), f"{self.kind}/{self._name}")
        self._remember()
        self._producer.poll(0)


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


def summary(error: Exception) -> Exception:
    """The error in one line: a JVM's or worker's whole trace is in the log, not for a person's eyes."""
    if isinstance(error, BranchlineError):
        return error
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # Of a chain of errors the last one named is the cause.
    named = [line for line in lines if _ERROR_LINE.match(line) and "Py4J" not in line]
    return JobFailed((named or lines or [type(error).__name__])[-1 if named else 0][:300])
