"""The overlay as an operator sees it: the newest topology, and what the jobs say of their brokers.

A job writes to the `stats` of its own cluster which brokers it serves and how each stands. So the clusters of
all brokers are looked at, as far as they are named: the one that the command was given, and those of a file.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from branchline.kafka.admin import list_topics
from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import BranchlineError, ClusterUnreachable, ConfigError, TopicMissing
from branchline.kafka.listing import last_stats, offsets
from branchline.kafka.proposing import newest_topology
from branchline.kafka.topics import Topics
from branchline.ops.reaching import check_reachable
from branchline.ops.status import SILENT_AFTER_S
from branchline.routing.overlay.topology import Topology

Offsets = Mapping[str, Mapping[int, int]]
"""By topic and partition."""

RUNNING, SILENT = "running", "silent"


@dataclass(frozen=True, slots=True)
class Served:
    """A broker, as the job that serves it described it last."""

    job: str
    """The job's name: its first broker."""
    cluster: str
    state: str
    """The job's: `running`, `failed`, `stopped`, or `silent` if it has said nothing for long."""
    topology: int | None = None
    """The number of the topology that it has, 0 if it has none; None if the job has not said."""
    joining: bool = False
    waiting: bool = False
    """No topology that it was told of has it."""
    positions: Offsets = field(default_factory=dict)
    """The next offset of each partition that its job reads."""
    error: str | None = None
    """What made its job fail."""

    @property
    def trouble(self) -> str:
        """What the job does in place of running, for people."""
        return f"{self.state}: {self.error}" if self.error else self.state


@dataclass(frozen=True, slots=True)
class Look:
    """The overlay at one moment."""

    topology: Topology
    served: Mapping[str, Served]
    """By broker; a broker that is not there is served by nobody whom we see."""
    unseen: frozenset[str] = frozenset()
    """Clusters of the topology whose jobs cannot be asked."""


def served(stats: Iterable[tuple[str, Mapping[str, Any]]], now_s: float) -> dict[str, Served]:
    """What jobs said last, each with the name of its cluster, by the brokers that they serve."""
    found: dict[str, tuple[tuple[bool, int], Served]] = {}
    for cluster, said in stats:
        at_ms = int(said.get("at_ms", 0))
        state = str(said.get("state", "unknown"))
        if state != "stopped" and now_s - at_ms / 1000 > SILENT_AFTER_S:
            state = SILENT
        topologies = said.get("topologies")
        positions = {
            topic: {int(partition): offset for partition, offset in partitions.items()}
            for topic, partitions in (said.get("positions") or {}).items()
        }
        for name in said.get("brokers") or ():
            each = Served(
                str(said.get("broker")),
                cluster,
                state,
                None if topologies is None else int(topologies.get(name, 0)),
                name in said.get("joining", ()),
                name in said.get("waiting", ()),
                positions,
                said.get("error"),
            )
            # A broker may have moved from one job to another: the one that runs counts, then the last.
            rank = (state == RUNNING, at_ms)
            if name not in found or rank > found[name][0]:
                found[name] = (rank, each)
    return {name: each for name, (_, each) in found.items()}


def behind(positions: Offsets, ends: Offsets) -> dict[str, int]:
    """How many records of each topic are not read yet, where there are any."""
    unread = {
        topic: sum(
            max(end - positions.get(topic, {}).get(partition, 0), 0) for partition, end in partitions.items()
        )
        for topic, partitions in ends.items()
    }
    return {topic: count for topic, count in unread.items() if count}


class Sites:
    """The clusters of an overlay: the one at hand, and others by name."""

    def __init__(self, cluster: Cluster, topics: Topics, others: Mapping[str, Cluster] | None = None) -> None:
        self.cluster = cluster
        self.topics = topics
        self._others = dict(others or {})
        self._said: dict[tuple[str, str], Mapping[str, Any]] = {}
        """By cluster and job; kept, since a quiet job is soon out of sight behind busy ones."""
        self._here: str | None = None

    def newest(self) -> Topology:
        """The newest topology that the cluster at hand knows."""
        topology = newest_topology(self.cluster, self.topics)
        if topology is None:
            raise TopicMissing(
                f"{self.topics.filters} at {self.cluster.bootstrap} tells of no topology",
                hint="check --namespace; a router tells of its topology when it first starts",
            )
        return topology

    def here(self) -> str:
        """What topologies call the cluster at hand: its jobs say so."""
        if self._here is None:
            self._hear()
        return self._here or "main"

    def look(self, topology: Topology, *more: str) -> Look:
        """What the jobs say now, on the clusters of the topology and on these."""
        clusters = {*(member.cluster for member in topology.members), *more}
        silent = self._hear(clusters)
        known = {self.here(), *self._others} - silent
        # By the name that a job gives its cluster: if a file has another one, that shows.
        stats = [(str(said.get("cluster", name)), said) for (name, _), said in self._said.items()]
        return Look(topology, served(stats, time.time()), frozenset(clusters - known))

    def _hear(self, wanted: Iterable[str] = ()) -> set[str]:
        """Read what the jobs said last; the clusters that do not answer."""
        for key, said in last_stats(self.cluster, self.topics).items():
            self._here = str(said.get("cluster", self._here or "main"))
            self._said[self._here, key] = said
        unanswered = set()
        for name in sorted(set(wanted) & self._others.keys() - {self._here}):
            try:
                check_reachable(self._others[name].bootstrap)
                for key, said in last_stats(self._others[name], self.topics).items():
                    self._said[name, key] = said
            except (ClusterUnreachable, TopicMissing):
                # A site that is down stops nobody; what it does not say is waited for.
                unanswered.add(name)
        return unanswered

    def at(self, name: str) -> Cluster:
        """The cluster of that name."""
        if name == self.here():
            return self.cluster
        if name not in self._others:
            raise unnamed(name)
        return self._others[name]

    def ends(self, broker: str, cluster: str) -> Offsets:
        """Where the topics end that the broker reads alone, on its own cluster."""
        wanted = (self.topics.entry(broker), self.topics.broker(broker), self.topics.link(broker))
        there = self.at(cluster)
        partitions = {name: count for name, count in list_topics(there).items() if name in wanted}
        return {
            topic: {partition: end if end > first else 0 for partition, (first, end) in enumerate(places)}
            for topic, places in offsets(there, partitions).items()
        }


def unnamed(cluster: str) -> BranchlineError:
    """The error of a command that would have to ask a cluster which it cannot reach."""
    return ConfigError(
        f"nothing says how the cluster {cluster!r} is reached",
        hint="give --clusters FILE with a table for it, or do not wait: --no-wait",
    )
