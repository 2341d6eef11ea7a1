"""The Tree Optimizer job on real Kafka and Spark: what it tells, and that it goes on where it was."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from overlays import optimizing
from pyspark.sql import SparkSession
from routers import Site
from waiting import wait_until

from branchline.kafka.cluster import Cluster
from branchline.kafka.letters import encode_recorded
from branchline.kafka.trees import ask_snapshot
from branchline.routing.control import Ended, Identity, Number, Subscribed
from branchline.routing.prefix import telling
from branchline.routing.prefix.optimizer import Settings
from branchline.routing.prefix.trees import Trees
from branchline.routing.prefix.updates import Snapshot, Update
from branchline.routing.prefix.vocabulary import Fit
from branchline.streaming import job

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

PARTS = 2
EAGER = Settings(parts=PARTS, threshold=0.0, limit_ms=0, snapshot_ms=None)


@pytest.fixture
def site(spark: SparkSession, cluster: Cluster, namespace: str, tmp_path: Path) -> Site:
    return Site(spark, cluster, namespace, tmp_path / "unused")


def record(site: Site, number: int, filter_: str | None) -> None:
    """What a router records of a subscription: that it stands, or has ended."""
    identity = Identity("main", "ann", f"s{number % 10}")
    change: Any = Subscribed(identity, Number(1, number), "sql", filter_ or "")
    if filter_ is None:
        change = Ended(identity, Number(1, number), 10**13)
    key, value = encode_recorded(change)
    site.write(site.topics.filters, value, key)


def told(site: Site) -> list[Update | Snapshot]:
    found = [telling.decode(each.value or b"") for each in site.read(site.topics.rt_updates)]
    assert None not in found
    return [each for each in found if each is not None]


def snapshots(site: Site) -> int:
    return sum(isinstance(each, Snapshot) for each in told(site))


def followed(site: Site) -> Trees:
    """The trees of a broker that was told everything, nothing of which it refused."""
    trees = Trees(PARTS)
    for each in told(site):
        assert trees.apply(each) in (Fit.APPLIED, Fit.INCOMPLETE, Fit.OLD), each
    return trees


def knows(site: Site, *filters: str) -> bool:
    described = "\n".join(vocabulary.describe() for vocabulary in followed(site).vocabularies)
    return all(each in described for each in filters)


def is_new(site: Site, lives: set[int]) -> bool:
    return any(each.version.incarnation > max(lives) for each in followed(site).vocabularies)


def test_it_tells_goes_on_where_it_was_and_begins_anew_without_its_checkpoint(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Updates follow each other over a restart; a lost checkpoint gives a later life, which replaces all."""
    with optimizing(site, tmp_path / "one", EAGER):
        record(site, 1, "price < 100")
        record(site, 2, "origin = 'BCN'")
        wait_until(lambda: knows(site, "price < 100", "BCN"), 60, "the tree is told")
        record(site, 11, "price < 50")
        wait_until(lambda: knows(site, "price < 50"), 60, "a replacement is told")
    lives = {each.version.incarnation for each in told(site)}
    with optimizing(site, tmp_path / "one", EAGER):
        record(site, 3, "price > 900")
        wait_until(lambda: knows(site, "price > 900"), 60, "it goes on")
        known = snapshots(site)
        ask_snapshot(site._producer, site.topics)
        wait_until(lambda: snapshots(site) == known + PARTS, 60, "the snapshot that was asked for is told")
    assert {each.version.incarnation for each in told(site)} == lives, "it is still the same life"
    shutil.rmtree(tmp_path / "one")
    record(site, 12, None)
    with optimizing(site, tmp_path / "one", EAGER):
        wait_until(lambda: is_new(site, lives), 60, "a part that has filters is told anew")
        assert knows(site, "price < 50", "price > 900")
        ask_snapshot(site._producer, site.topics)
        wait_until(lambda: not knows(site, "BCN"), 60, "a part that has none is told, if somebody asks")

    monkeypatch.setattr(job, "TICK_EVERY_S", 0.2)
    slow = Settings(parts=PARTS, threshold=1.0, limit_ms=500, snapshot_ms=1_500)
    with optimizing(site, tmp_path / "two", slow):
        record(site, 4, "price = 7")
        wait_until(lambda: knows(site, "price = 7"), 60, "the time limit is up though nothing else happens")
        known = snapshots(site)
        wait_until(lambda: snapshots(site) > known, 60, "all is told again after a while")
