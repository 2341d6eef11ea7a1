"""Events on their way to the operator, many in one cell.

Spark takes each row of a stateful operator's input through a shuffle, a sort, and Python code for that row
alone. So events are bundled where they are read: all that a task has for one shard, up to the size of an
Arrow batch, become the value of a single row that has the topic, the partition and the first offset of them.
A task reads one partition of Kafka, so a bundle has events of one partition, in their order.

A bundle is a record batch in Arrow's own format, of the columns that differ from event to event.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from branchline.kafka.event_columns import EventColumns
from branchline.streaming.columns import INPUT
from branchline.streaming.garbage import spare

_CONTENTS = ("offset", "timestamp_ms", "key", "value", "headers")
_ROW = to_arrow_schema(INPUT)
_BUNDLE = pa.schema([_ROW.field(name) for name in _CONTENTS])


def bundle(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The function for `mapInArrow`: rows of events in, rows of bundles out, both as `columns.INPUT` says."""
    spare()
    for batch in batches:
        for part in _of_one_partition(batch):
            yield _bundled(part)


def unbundle(topics: list[str], partitions: list[int], cells: list[bytes]) -> EventColumns:
    """The events of all bundles, one bundle after the other."""
    batches = [pa.ipc.read_record_batch(pa.py_buffer(cell), _BUNDLE) for cell in cells]
    counts = [len(batch) for batch in batches]
    offsets, timestamps, keys, values, headers = (
        [each for batch in batches for each in batch.column(name).to_pylist()] for name in _CONTENTS
    )
    return EventColumns(
        [topic for topic, count in zip(topics, counts, strict=True) for _ in range(count)],
        [partition for partition, count in zip(partitions, counts, strict=True) for _ in range(count)],
        offsets,
        timestamps,
        keys,
        values,
        headers,
    )


def _of_one_partition(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The runs of rows of one partition of Kafka: as a rule a single one."""
    topic = batch.column("topic").dictionary_encode().indices.to_numpy(zero_copy_only=False)
    partition = batch.column("partition").to_numpy()
    changes = np.flatnonzero((np.diff(topic) != 0) | (np.diff(partition) != 0)) + 1
    bounds = [0, *changes.tolist(), len(batch)]
    for start, end in pairwise(bounds):
        if end > start:
            yield batch.slice(start, end - start)


def _bundled(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A row for each shard that any of these events, all of one partition of Kafka, go to."""
    order = np.argsort(shards := batch.column("shard").to_numpy(), kind="stable")
    found, first = np.unique(shards[order], return_index=True)
    parts = [batch.take(pa.array(rows)) for rows in np.split(order, first[1:])]
    columns = {name: [batch.column(name)[0].as_py()] * len(parts) for name in batch.schema.names}
    columns |= {
        "shard": found.tolist(),
        "offset": [part.column("offset")[0].as_py() for part in parts],
        "key": [None] * len(parts),
        "value": [part.select(_CONTENTS).serialize().to_pybytes() for part in parts],
        "headers": [b""] * len(parts),
    }
    return pa.RecordBatch.from_pydict(columns, schema=_ROW)
