"""Events that were bundled on their way come out as they went in."""

import gc
from collections import defaultdict
from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema

from branchline.streaming import garbage
from branchline.streaming.bundles import bundle, unbundle
from branchline.streaming.columns import INPUT, Kind

SCHEMA = to_arrow_schema(INPUT)

CELLS = st.none() | st.binary(max_size=20)
ROWS = st.tuples(
    st.integers(-3, 3),
    st.sampled_from(("in.a", "in.b")),
    st.integers(0, 1),
    st.integers(0, 2**62),
    CELLS,
    CELLS,
    st.binary(max_size=5),
)


def batch_of(rows: list[tuple[int, str, int, int, bytes | None, bytes | None, bytes]]) -> pa.RecordBatch:
    shard, topic, partition, timestamp, key, value, headers = (list(each) for each in zip(*rows, strict=True))
    count = len(rows)
    columns = {
        "shard": shard,
        "kind": [int(Kind.EVENT)] * count,
        "topic": topic,
        "partition": partition,
        "offset": list(range(count)),
        "timestamp_ms": timestamp,
        "key": key,
        "value": value,
        "headers": headers,
        "now_ms": ["1794973613593"] * count,
    }
    return pa.RecordBatch.from_pydict(columns, schema=SCHEMA)


@given(st.lists(st.lists(ROWS, min_size=1, max_size=12), max_size=3))
def test_each_shard_has_its_events_in_their_order(
    batches: list[list[tuple[int, str, int, int, bytes | None, bytes | None, bytes]]],
) -> None:
    """Whatever is in them and however partitions and shards alternate; a bundle is of one partition."""
    wanted: defaultdict[tuple[int, str, int], list[tuple[object, ...]]] = defaultdict(list)
    for rows in batches:
        for offset, (shard, topic, partition, *contents) in enumerate(rows):
            wanted[shard, topic, partition].append((offset, *contents))
    found: defaultdict[tuple[int, str, int], list[tuple[object, ...]]] = defaultdict(list)
    for made in bundle(iter([batch_of(rows) for rows in batches])):
        assert made.schema == SCHEMA
        for row in made.to_pylist():
            assert (row["kind"], row["now_ms"]) == (Kind.EVENT, "1794973613593")
            events = unbundle([row["topic"]], [row["partition"]], [row["value"]])
            assert set(events.topics) == {row["topic"]} and set(events.partitions) == {row["partition"]}
            assert events.offsets[0] == row["offset"]
            columns = (events.offsets, events.timestamps_ms, events.keys, events.values, events.headers)
            found[row["shard"], row["topic"], row["partition"]] += zip(*columns, strict=True)
    assert found == wanted


def test_bundles_follow_each_other() -> None:
    """What is taken apart has the topic and partition of each bundle, in the order given."""
    one, other = (batch_of([(0, topic, 1, 5, b"k", None, b"")] * 2) for topic in ("in.a", "in.b"))
    cells = [made.column("value")[0].as_py() for made in bundle(iter([one, other]))]
    events = unbundle(["in.a", "in.b"], [1, 1], cells)
    assert list(events.topics) == ["in.a", "in.a", "in.b", "in.b"]
    assert len(unbundle([], [], [])) == 0


@pytest.fixture
def searching() -> Iterator[None]:
    gc.unfreeze()
    yield
    gc.unfreeze()
    gc.enable()


def test_what_is_there_when_a_task_begins_is_not_searched_but_now_and_then(
    monkeypatch: pytest.MonkeyPatch, searching: None
) -> None:
    """Garbage in cycles that a task has made is found after it; older garbage, when all is searched."""

    class Knot:
        def __init__(self) -> None:
            self.self = self

    def knots() -> int:
        return sum(type(each) is Knot for each in gc.get_objects())

    monkeypatch.setattr(garbage, "_tasks", 0)
    monkeypatch.setattr(garbage, "SEARCHED_EVERY", 3)
    old = Knot()
    garbage.spare()
    assert not gc.isenabled(), "a task is not interrupted"
    Knot()
    gc.collect()
    assert knots() == 0, "the new one is gone, and the old one is not looked at"
    del old
    garbage.spare()
    assert gc.get_freeze_count()
    garbage.spare()
    assert gc.get_freeze_count() == 0 and knots() == 1
    gc.collect()
    assert knots() == 0
