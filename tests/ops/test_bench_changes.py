"""What is measured of changes is of a router that obeys them."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from branchline.kafka.cluster import Cluster
from branchline.kafka.messages import decode_control, encode_ack
from branchline.ops import changes_core, pipeline_site
from branchline.ops.changes_load import draw_requests, settled
from branchline.ops.changes_run import Spread, Written, _seen, drive
from branchline.ops.pipeline_load import Load
from branchline.ops.pipeline_site import Batch, Site
from branchline.routing.control import Ack, Operation, Request, Status
from branchline.streaming.router import Delivery


def small() -> Load:
    return Load.drawn("equalities", 60, 4, 300, 0.0, 1)


def test_requests_leave_as_many_standing() -> None:
    """A new one is new, one that is replaced or ended stands, and the seed decides it all."""
    load = small()
    requests = draw_requests(load, "equalities", "b1", 90, 1)
    assert (
        requests == draw_requests(load, "equalities", "b1", 90, 1) != draw_requests(load, "cw", "b1", 90, 1)
    )
    standing = {(f"s{number % 4}", f"f{number}") for number in range(60)}
    for number, value in enumerate(requests):
        request = decode_control(value)
        assert isinstance(request, Request) and request.request == str(number)
        named = request.subscriber, request.id
        assert (named in standing) is (number % 3 != 0)
        if request.operation is Operation.UNSUBSCRIBE:
            standing.remove(named)
        else:
            standing.add(named)
    assert len(standing) == 60


def test_requests_are_settled_by_their_last_ack() -> None:
    """In force, ended or refused; acks of others, and of nobody's request, settle none."""
    ack = Ack(None, Status.ACCEPTED, "ann", "a", "b1", request="7")
    acks = [
        ack,
        replace(ack, status=Status.IN_FORCE),
        replace(ack, status=Status.ENDED, request="8"),
        replace(ack, status=Status.REFUSED, request="other"),
        replace(ack, status=Status.ENDED, request=None),
    ]
    found = settled([encode_ack(each, None, 1) for each in acks])
    assert found == [(7, Status.IN_FORCE), (8, Status.ENDED)]


def test_times_are_said_in_milliseconds() -> None:
    """The middle, what nineteen of twenty stay below, and the longest; of nothing, nothing."""
    assert Spread.of([number / 1_000 for number in range(1, 102)]) == Spread(101, 51, 96, 101)
    assert Spread.of([0.5]) == Spread(1, 500, 500, 500)
    assert Spread.of([]) == Spread()


def test_what_is_seen_leaves_out_the_warm_up_and_counts_what_is_missing() -> None:
    """Events are as late as the batch that took them was done after they were written."""
    written = Written(times=[100.0, 101.0, 102.0], events=[10, 20, 30], requests=[1, 2, 3])
    batches = {1: Batch(1, 100.1, 0.9, 10, 11), 2: Batch(2, 101.1, 1.4, 15, 16)}
    reader = cast(Any, SimpleNamespace(settled={0: 101.0, 1: 102.5}, refused=0))
    seen = _seen(written, batches, reader, 101.0)
    assert seen.batches == Spread(1, 1400, 1400, 1400)
    assert seen.in_force == Spread(1, 1500, 1500, 1500)
    assert seen.delivered.most_ms == 1500 and seen.delivered.p50_ms <= 1500
    assert (seen.missing_acks, seen.missing_events, seen.refused) == (1, 5, 0)


def test_the_core_costs_something(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one request, and of many at either kind of shard."""
    monkeypatch.setattr(changes_core, "SINGLE", 5)
    monkeypatch.setattr(changes_core, "TOGETHER", 30)
    found = changes_core.core_costs("equalities", 300, 10, 1)
    assert found["filters"] == 300 and found["leading_ms"] > 0 and found["other_ms"] > 0


@pytest.mark.kafka
@pytest.mark.spark
def test_changes_are_in_force_while_events_flow(
    spark: SparkSession, cluster: Cluster, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All requests are settled, none is refused, and all events have entered."""
    monkeypatch.setattr(pipeline_site, "IDLE_S", 1.0)
    load = small()
    requests = draw_requests(load, "equalities", "b1", 60, 1)
    site = Site(spark, cluster, tmp_path, namespace, 1, 200)
    site.subscribe(load)
    query = site.start(Delivery.AT_LEAST_ONCE)
    try:
        topics = site.entry, site.topics.control, site.topics.acks
        seen = drive(cluster, query, topics, load.events, requests, 3.0, 0.0)
    finally:
        query.stop()
    assert (seen.refused, seen.missing_acks, seen.missing_events) == (0, 0, 0)
    assert seen.in_force.count == 60 and seen.batches.count > 0 and seen.delivered.most_ms > 0
