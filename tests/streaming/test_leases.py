"""Leases on real Kafka and Spark: they end though nothing happens, and live on if they are renewed."""

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from routers import Site, supervised
from waiting import wait_until

from branchline.kafka.cluster import Cluster
from branchline.kafka.listing import list_subscriptions
from branchline.kafka.messages import encode_tick
from branchline.routing.codes import Code
from branchline.routing.control import Status
from branchline.streaming import job
from branchline.streaming.job import RouterJob

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

HOUR_MS = 60 * 60 * 1000
ENOUGH_TO_RENEW_MS = 12_000
"""Also where much else runs."""


@pytest.fixture
def site(
    spark: SparkSession, cluster: Cluster, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Site:
    monkeypatch.setattr(job, "TICK_EVERY_S", 0.5)
    return Site(spark, cluster, namespace, tmp_path / "checkpoint")


def expired(site: Site, subscriber: str) -> bool:
    return any((ack.status, ack.subscriber) == (Status.EXPIRED, subscriber) for ack in site.acks())


def standing(site: Site) -> list[str]:
    return [change.identity.subscriber for change in list_subscriptions(site.cluster, site.topics)]


def ticks(site: Site) -> int:
    return sum(record.value == encode_tick() for record in site.read(site.topics.control))


def test_a_lease_ends_while_the_job_is_idle_and_a_renewed_one_does_not(site: Site) -> None:
    """Nobody writes anything; what was not renewed expires, with an ack, and is delivered nothing more."""
    with supervised(RouterJob(site.spark, site.config(), print)):
        site.subscribe("ray", "n > 0", lease_ms=ENOUGH_TO_RENEW_MS)
        subscribed_s = time.monotonic()
        assert site.renew("ray", lease_ms=HOUR_MS).status is Status.RENEWED
        site.subscribe("lea", "n > 0", lease_ms=3_000)
        wait_until(lambda: expired(site, "lea"), 60, "the lease has ended")
        assert (standing(site), expired(site, "ray")) == (["ray"], False)
        late = site.renew("lea")
        assert (late.status, late.code) == (Status.REFUSED, Code.LEASE_OVER)
        assert ticks(site) >= 1
        site.publish('{"n": 1}')
        site.flush()
        wait_until(lambda: site.read(site.topics.out("ray")), 60, "the event is delivered")
        assert site.read(site.topics.out("lea")) == []
        # The lease that ray had first may still be thought of, once.
        time.sleep(max(0, subscribed_s + ENOUGH_TO_RENEW_MS / 1000 + 3 - time.monotonic()))
        before = ticks(site)
        time.sleep(1.5)
        assert ticks(site) == before, "a lease that is not over asks for nothing"


def test_a_lease_that_was_over_while_no_job_ran_ends_when_one_does(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that starts does not know what is due, and asks."""
    # The first job asks for nothing, however long it takes to stop.
    with monkeypatch.context() as patch, supervised(RouterJob(site.spark, site.config(), print)):
        patch.setattr(job, "TICK_EVERY_S", 3_600)
        site.subscribe("ray", "n > 0")
        site.subscribe("lea", "n > 0", lease_ms=6_000)
    asked = ticks(site)
    time.sleep(6)
    assert (expired(site, "lea"), standing(site)) == (False, ["lea", "ray"])
    with supervised(RouterJob(site.spark, site.config(), print)):
        wait_until(lambda: expired(site, "lea"), 60, "the lease has ended")
    assert ticks(site) > asked
    assert standing(site) == ["ray"]
