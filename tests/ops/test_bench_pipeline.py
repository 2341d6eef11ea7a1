"""What is measured of a pipeline is of one that delivers what it owes."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import JobFailed
from branchline.ops import pipeline_site
from branchline.ops.bench_pipeline import check
from branchline.ops.pipeline_latency import _latency
from branchline.ops.pipeline_load import Deliveries, Load, Summed
from branchline.ops.pipeline_site import Site, batches_of
from branchline.routing.event import Event
from branchline.streaming.router import Delivery


def small() -> Load:
    return Load.drawn("equalities-range", 60, 4, 400, 0.1, 1)


def test_what_is_owed_is_what_filters_say() -> None:
    """Each subscriber is owed an event once, if one of its filters holds."""
    load = small()
    summed = Summed()
    for value in load.events:
        event = Event(json.loads(value))
        for subscriber in range(load.subscribers):
            if event.may_match(tuple(load.filters[subscriber :: load.subscribers])):
                summed.add(subscriber, value)
    owed, slow_share = load.owed()
    assert owed == summed.made() and owed.count > 0
    assert 0 < slow_share <= 0.1


def test_what_some_are_owed_is_their_part() -> None:
    """Of one subscriber in three, what that one is owed."""
    load = Load.drawn("equalities", 1_000, 4, 400, 0.0, 1)
    summed = Summed()
    for value in load.events:
        event = Event(json.loads(value))
        for subscriber in (0, 3):
            if event.may_match(tuple(load.filters[subscriber :: load.subscribers])):
                summed.add(subscriber, value)
    some, _ = load.owed(3)
    assert some == summed.made() and 0 < some.count < load.owed()[0].count


def test_what_differs_from_what_is_owed_is_an_error() -> None:
    """Of another count, and of another checksum."""
    owed = Deliveries(2, "0a")
    check("router", Deliveries(2, "0a"), owed)
    for other in (Deliveries(1, "0a"), Deliveries(2, "0b")):
        with pytest.raises(JobFailed, match="are owed"):
            check("router", other, owed)


def test_batches_count_what_enters_and_nothing_else() -> None:
    """Copies that come from a neighbour are no events that enter."""

    def progress(number: int, rows: int, **ends: int) -> Any:
        source = SimpleNamespace(
            startOffset='{"in": {"0": 10}}', endOffset={name: {"0": end} for name, end in ends.items()}
        )
        return SimpleNamespace(
            batchId=number,
            numInputRows=rows,
            timestamp=f"2024-01-01T00:00:0{number}.000Z",
            durationMs={"triggerExecution": 250},
            sources=[source],
        )

    told = [progress(1, 5, **{"in": 15}), progress(2, 0), progress(3, 9, **{"in": 12, "other": 7})]
    made = batches_of(cast(Any, SimpleNamespace(recentProgress=told)), "in")
    assert [(each.number, each.entered, each.rows) for each in made] == [(1, 5, 5), (3, 2, 9)]
    assert made[1].began_s - made[0].began_s == 2 and made[0].took_s == 0.25


def test_latency_is_said_in_milliseconds() -> None:
    """Half of the deliveries took no longer than the first figure, nineteen of twenty than the second."""
    found = _latency([number / 1_000 for number in range(1, 102)], 500, 0)
    assert (found.p50_ms, found.p95_ms, found.most_ms, found.deliveries) == (51, 96, 101, 101)


@pytest.mark.kafka
@pytest.mark.spark
def test_a_backlog_is_worked_off_and_delivered(
    spark: SparkSession, cluster: Cluster, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All events enter, their rate is said, and subscribers have what they are owed."""
    monkeypatch.setattr(pipeline_site, "IDLE_S", 1.0)
    load = small()
    site = Site(spark, cluster, tmp_path, namespace, 1, 200)
    site.subscribe(load)
    outbox = site.outbox(load.subscribers)
    start, mark = site.publish(load.events), outbox.mark()
    rate = site.route(Delivery.AT_LEAST_ONCE, len(load.events))
    # Of a batch's events each partition gets its share, rounded.
    assert sum(start) == 0 and 195 <= rate.events <= 205 and rate.batches >= 2 and rate.per_s > 0
    assert rate.counts["accepted"] == 400
    assert 0 < rate.parts_ms["addBatch"] <= rate.parts_ms["triggerExecution"]
    check("router", outbox.since(mark), load.owed()[0])
