"""The marks of a bridge: how far it has come, kept on the cluster that it carries to.

They stand in `bridge.<cluster>` of the target, compacted, one record for each partition of the source, and
are written in the very transaction that carries the records up to there. So whoever reads them after
`init_transactions`, which settles what another run has left, knows what was carried and what was not.

A mark names the source cluster's own id: offsets mean nothing to another cluster of the same name. Under the
key `run` stands which run of the bridge came last. A run that is fenced looks there: if another one has
come, it ends; if not, Kafka itself has given up a transaction that took too long.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import MarkDiffers
from branchline.kafka.fields import FORMAT_VERSION, UNFIT, check_version, counted, dump, read_object, text
from branchline.kafka.reading import read_to_end
from branchline.kafka.record import Record
from branchline.routing.codes import Rejection

Partition = tuple[str, int]
"""A topic and the number of one of its partitions."""

RUN_KEY = b"run"
"""The key of the last run; a mark's key has a slash, so it is none."""

MARK_MAX_BYTES = 4 * 1024


@dataclass(slots=True)
class Marks:
    """What the target knows of a bridge."""

    run: str | None = None
    offsets: dict[Partition, int] = field(default_factory=dict)
    """For each partition of the source that was read, the next offset to carry."""


def encode_mark(partition: Partition, offset: int, source_id: str) -> tuple[bytes, bytes]:
    """Key and value of a mark."""
    topic, number = partition
    return f"{topic}/{number}".encode(), _dump(source_id, offset=offset)


def encode_run(run: str, source_id: str) -> tuple[bytes, bytes]:
    """Key and value of the record that says which run came last."""
    return RUN_KEY, _dump(source_id, run=run)


def _dump(source_id: str, **said: str | int) -> bytes:
    return dump({"version": FORMAT_VERSION, "cluster": source_id, **said})


def read_marks(target: Cluster, topic: str, source_id: str) -> Marks:
    """The marks as they stand; raises MarkDiffers if they are not of that source cluster."""
    marks = Marks()
    for record in read_to_end(target, topic, hint="the bridge makes it when it starts"):
        note_mark(marks, record, target, source_id)
    return marks


def note_mark(marks: Marks, record: Record, target: Cluster, source_id: str) -> None:
    """Take in one record; raises MarkDiffers if it is none, or of another source cluster."""
    fields = _fields(record, target)
    if fields["cluster"] != source_id:
        raise MarkDiffers(
            f"the marks in {record.place.topic} at {target.bootstrap} are of the cluster "
            f"{fields['cluster']}, and the one to carry from is {source_id}",
            hint="check --clusters; if the cluster was made anew under its old name, delete that topic: "
            "the bridge then carries everything from the beginning",
        )
    try:
        if record.key == RUN_KEY:
            marks.run = text(fields["run"])
        else:
            name, _, number = (record.key or b"").decode().rpartition("/")
            marks.offsets[name, counted(int(number))] = counted(fields["offset"])
    except UNFIT:
        raise _foreign(record, target) from None


def _fields(record: Record, target: Cluster) -> Mapping[str, object]:
    fields = read_object(record.value, MARK_MAX_BYTES)
    if isinstance(fields, Rejection) or check_version(fields) is not None or "cluster" not in fields:
        raise _foreign(record, target)
    return fields


def _foreign(record: Record, target: Cluster) -> MarkDiffers:
    return MarkDiffers(
        f"record {record.place.offset} of {record.place.topic} at {target.bootstrap} is no mark of a bridge",
        hint="only a bridge of this version may write there; find out who else does, or run its version",
    )
