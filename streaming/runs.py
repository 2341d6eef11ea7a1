"""A run of a query that delivers exactly once: what it may go on with, and what each of its batches is told.

Spark logs a batch's offsets before it runs, and notes when it is done; the markers in Kafka say what was
written. Before a run begins the two are compared: a checkpoint that is older than what was written, or none,
or markers that are gone, would mean repeats or losses in silence, so each is refused with what to do.
"""

import hashlib
import json
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import CheckpointLost, CheckpointOlder, MarkersGone
from branchline.kafka.markers import Marker, ensure_markers, read_markers
from branchline.streaming.files import Folder
from branchline.streaming.once import MARK_EVERY, Turn


def last_batch(folder: Folder, log: str) -> int:
    """The last batch in one of Spark's logs of a checkpoint, `offsets` or `commits`; -1 for none."""
    return max((int(name) for name in folder.names(log) if name.isdigit()), default=-1)


@dataclass
class Run:
    """One life of the query, from its start to its stop or failure."""

    folder: Folder
    topic: str
    since: int
    """The first batch that is written exactly once."""
    name: str = field(default_factory=lambda: uuid.uuid4().hex)
    committed: set[int] = field(default_factory=set)
    """The shards for which this life has written something."""
    _query: str | None = None

    def turn(self, batch: int) -> Turn:
        """What the sink is told for a batch."""
        if self._query is None:
            self._query = _query(self.folder)
            assert self._query is not None, "Spark names a query before its first batch"
        must_mark = batch % MARK_EVERY == 0 or batch == self.since
        return Turn(
            self.topic, self._query, self.name, batch, self._plan(batch), must_mark, frozenset(self.committed)
        )

    def _plan(self, batch: int) -> str:
        """A digest of what Spark logged of the batch: its offsets, and the moment in which it was planned."""
        logged = self.folder.read(f"offsets/{batch}")
        assert logged is not None, "Spark logs a batch before it runs"
        return hashlib.sha256(logged).hexdigest()[:32]

    def note(self, summaries: Iterable[dict[str, Any]]) -> None:
        """A batch is done: remember which shards it was written for."""
        self.committed |= {each["shard"] for each in summaries if each["told"]["transactions"]}


def begin_run(
    cluster: Cluster, folder: Folder, topic: str, shards: int, since: int, rebuilt: bool, checkpoint: str
) -> Run:
    """A run that may go on from where the last one ended; else a CheckpointDiffers that says why not."""
    ensure_markers(cluster, topic, shards)
    markers = read_markers(cluster, topic, shards)
    query = _query(folder)
    if query is None:
        if any(markers) and not rebuilt:
            raise CheckpointLost(
                f"{topic} says that this job has written, and the checkpoint {checkpoint} is new",
                hint="start it with the checkpoint that it had, or make one from what is recorded: "
                "branchline rebuild --checkpoint NEW. To begin anew and repeat what was delivered, "
                f"delete the topic {topic}",
            )
    else:
        _compare([each if each and each.query == query else None for each in markers], folder, since, topic)
    return Run(folder, topic, since)


def _compare(markers: list[Marker | None], folder: Folder, since: int, topic: str) -> None:
    logged, committed = last_batch(folder, "offsets"), last_batch(folder, "commits")
    written = max((marker.batch for marker in markers if marker is not None), default=-1)
    if written > logged:
        raise CheckpointOlder(
            f"{topic} says that batch {written} was written, and the checkpoint knows of {logged} at most",
            hint="it is an old copy, or another job runs on a copy of it; start with the newest one. If that "
            "is lost: branchline rebuild --checkpoint NEW (repeats have the ids of what they repeat)",
        )
    least = max(since, committed // MARK_EVERY * MARK_EVERY)
    for shard, marker in enumerate(markers):
        if committed >= since and (marker is None or marker.batch < least):
            raise MarkersGone(
                f"{topic} does not say what shard {shard} has written since batch {least}",
                hint="the topic was deleted, or made anew, or another cluster is meant. To go on, with the "
                "last batch perhaps repeated, start once with --delivery at-least-once",
            )


def _query(folder: Folder) -> str | None:
    found = folder.read("metadata")
    return None if found is None else str(json.loads(found)["id"])
