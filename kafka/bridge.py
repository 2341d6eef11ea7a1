"""A bridge: carries what brokers of one cluster have for brokers of another, for as long as it is wanted.

A router job reads and writes one cluster. Mail for a broker elsewhere waits in that broker's topics, `link`
and `broker`, on the own cluster; a bridge carries it over, exactly once and in order, and updates of the
Routing Tree with it. One life of it is a `Crossing`; whatever ends one, because a cluster does not answer or
a transaction came to nothing, the next one is begun after a pause, for ever. Only what no waiting can mend
ends the bridge: another copy of it, records that are gone, a cluster that is not the one it was.
"""

import time
import uuid
from collections import Counter
from collections.abc import Callable
from threading import Event
from typing import Any

from confluent_kafka import KafkaException, TopicPartition

from branchline.kafka.admin import cluster_id
from branchline.kafka.crossing import PROBE_TIMEOUT_S, Again, Crossing
from branchline.kafka.ends import Ends
from branchline.kafka.errors import BridgeFenced, ClusterUnreachable, TopicFailed, TopicMissing
from branchline.kafka.fields import FORMAT_VERSION, dump
from branchline.kafka.marks import Partition, read_marks
from branchline.kafka.reading import READER_GROUP
from branchline.kafka.transactions import is_fenced

STATS_EVERY_S = 1.0
HEARTBEAT_EVERY_S = 5.0
"""As for every job: how old its last statistics can be while it is well."""

PROGRESS_EVERY_S = 10.0
"""How often a person is told how much was carried."""

RETRY_FIRST_S, RETRY_MOST_S = 0.25, 5.0

CLAIM_WAIT_S = 5.0
"""How long a bridge that was fenced waits for another copy to say who it is."""

_WAITED_OUT = (KafkaException, ClusterUnreachable, TopicFailed, TopicMissing, Again)
"""What may be better at the next attempt."""


class Bridge:
    """A bridge between two clusters."""

    def __init__(self, ends: Ends, report: Callable[[str], None], *, skip_lost: bool = False) -> None:
        self.ends = ends
        self.report = report
        self._skip_lost = skip_lost
        self._run = uuid.uuid4().hex
        self._stats = ends.source.producer(linger_ms=5, message_timeout_ms=20_000)
        self._watcher = ends.source.consumer(group_id=READER_GROUP)
        self.counts: Counter[str] = Counter(records=0, bytes=0, circular=0, diverted=0, transactions=0)
        self.positions: dict[Partition, int] = {}
        """The next offset to carry of each partition that is carried."""
        self._brokers: list[str] = []
        self._lag: dict[str, int] = {}
        self.restarts = 0
        self._told: tuple[float, str, int] = (0.0, "", -1)
        self._progress = (time.monotonic(), 0)
        self._failing_since: float | None = None
        self.is_running = False

    def run(self, stop: Event, *, once: bool = False) -> None:
        """Carry until `stop` is set; with `once`, until all that is there now has been carried.

        Raises a BranchlineError if the bridge cannot go on; with `once` also if a cluster does not answer.
        """
        error: str | None = None
        self.is_running = True
        try:
            self._live(stop, once)
        except Exception as raised:
            error = str(raised)
            raise
        finally:
            self._tell("stopped" if error is None else "failed", error)
            self._stats.flush(PROBE_TIMEOUT_S)
            self._watcher.close()
            self.is_running = False

    def _live(self, stop: Event, once: bool) -> None:
        pause_s, fenced = RETRY_FIRST_S, False
        while not stop.is_set():
            done = self.counts["transactions"]
            try:
                if fenced:
                    self._check_fenced()
                    fenced = False
                self._cross(stop, once)
                return
            except _WAITED_OUT as error:
                fenced = fenced or (isinstance(error, KafkaException) and is_fenced(error))
                down = self._down()
                if once and down is not None:
                    raise down from None
                reason = str(down) if down is not None else _in_words(error)
            # A life that only said who it is has come no further.
            if self.counts["transactions"] > done + 1:
                pause_s = RETRY_FIRST_S
            self._wait(stop, pause_s, reason)
            pause_s = min(pause_s * 2, RETRY_MOST_S)

    def _cross(self, stop: Event, once: bool) -> None:
        """One life; returns if it was stopped, or with `once` when all is carried."""
        crossing = Crossing(self.ends, self._run, self.counts, self.report, skip_lost=self._skip_lost)
        try:
            while not stop.is_set():
                crossing.step()
                self._look(crossing)
                self._tell("running")
                if once and crossing.is_done:
                    return
        finally:
            crossing.close()

    def _look(self, crossing: Crossing) -> None:
        if self._failing_since is not None:
            self.report(f"bridge: running again after {time.monotonic() - self._failing_since:.0f} s")
            self._failing_since = None
        self.positions, self._brokers, self._lag = crossing.positions, crossing.brokers, crossing.lag()
        told_s, told = self._progress
        if time.monotonic() - told_s > PROGRESS_EVERY_S:
            if self.counts["records"] > told:
                self.report(f"bridge: {self.describe()}")
            self._progress = (time.monotonic(), self.counts["records"])

    def describe(self) -> str:
        """What was carried so far, for people."""
        return (
            f"{self.counts['records']:,} records carried ({self.counts['bytes']:,} bytes), "
            f"{sum(self._lag.values()):,} to go"
        )

    def _wait(self, stop: Event, pause_s: float, reason: str) -> None:
        self.restarts += 1
        if self._failing_since is None:
            self._failing_since = time.monotonic()
            self.report(f"bridge: {reason}; waiting, and trying again")
        again_at = time.monotonic() + pause_s
        while time.monotonic() < again_at and not stop.wait(0.1):
            self._tell("failed", reason)

    def _down(self) -> ClusterUnreachable | None:
        """The cluster that does not answer, if there is one."""
        for name, cluster in (
            (self.ends.source_name, self.ends.source),
            (self.ends.target_name, self.ends.target),
        ):
            try:
                cluster_id(cluster, PROBE_TIMEOUT_S)
            except ClusterUnreachable as error:
                return ClusterUnreachable(
                    f"{name} does not answer: {error}", hint="start it, or correct --clusters"
                )
        return None

    def _check_fenced(self) -> None:
        """Raise BridgeFenced if another copy has come; else Kafka has given up a transaction of ours."""
        deadline = time.monotonic() + CLAIM_WAIT_S
        source_id = cluster_id(self.ends.source, PROBE_TIMEOUT_S)
        while time.monotonic() < deadline:
            run = read_marks(self.ends.target, self.ends.mark_topic, source_id).run
            if run != self._run:
                raise BridgeFenced(
                    f"another copy of the bridge {self.ends.name} has taken over",
                    hint="one is enough, and only one can run: leave it to that one, or stop it first",
                )
            time.sleep(0.2)

    def _tell(self, state: str, error: str | None = None) -> None:
        """Write statistics: once a second at most while something happens, now and then while not."""
        told_s, told_state, told_transactions = self._told
        transactions = self.counts["transactions"]
        pause_s = HEARTBEAT_EVERY_S if transactions == told_transactions else STATS_EVERY_S
        if state == told_state and time.monotonic() - told_s < pause_s:
            return
        if state == "failed":
            self._measure()
        self._told = (time.monotonic(), state, transactions)
        message: dict[str, Any] = {
            "version": FORMAT_VERSION,
            "job": "bridge",
            "from": self.ends.source_name,
            "to": self.ends.target_name,
            "brokers": self._brokers,
            "state": state,
            "error": error,
            "at_ms": int(time.time() * 1000),
            "restarts": self.restarts,
            "counts": dict(self.counts),
            "lag": self._lag,
            "positions": _by_topic(self.positions),
        }
        self._stats.produce(self.ends.topics.stats, dump(message), f"bridge/{self.ends.name}")
        self._stats.poll(0)

    def _measure(self) -> None:
        """Find out how much waits while nothing is carried; as it was, if the source does not say."""
        lag: Counter[str] = Counter()
        try:
            for (topic, number), at in self.positions.items():
                place = TopicPartition(topic, number)
                _, end = self._watcher.get_watermark_offsets(place, timeout=PROBE_TIMEOUT_S)
                lag[topic] += max(end - at, 0)
        except KafkaException:
            return
        self._lag = dict(lag)


def _in_words(error: Exception) -> str:
    return str(error.args[0].str()) if isinstance(error, KafkaException) else str(error)


def _by_topic(positions: dict[Partition, int]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for (topic, number), at in positions.items():
        found.setdefault(topic, {})[str(number)] = at
    return found
