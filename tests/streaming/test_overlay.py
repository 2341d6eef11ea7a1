"""Several brokers in one router job, on real Kafka and Spark: the history of clients must be clean."""

import json
import random
import shutil
from pathlib import Path

import pytest
from observing import Observer
from overlays import (
    EXACT,
    FULL,
    RING,
    SIZE,
    Crossed,
    a_filter,
    a_key,
    an_event,
    come_and_go,
    copies,
    crossed,
    has_told_everything,
    identities,
    optimizing,
    ring,
)
from pyspark.sql import SparkSession
from routers import Site, ends, running
from waiting import wait_until

from branchline.kafka.cluster import Cluster
from branchline.kafka.record import Record
from branchline.routing.codes import Code
from branchline.routing.control import Identity, Status
from branchline.routing.overlay.topology import founded
from branchline.routing.prefix import telling
from branchline.routing.prefix.header import Header
from branchline.routing.prefix.optimizer import Settings
from branchline.routing.prefix.updates import Version
from branchline.streaming import job

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.timeout(3_600 if FULL else 600)]

EAGER = Settings(threshold=0.05, limit_ms=500)


def newest(site: Site) -> Version:
    """The version of the tree last told."""
    told = [telling.decode(record.value or b"") for record in site.read(site.topics.rt_updates)]
    return max((each.version for each in told if each is not None), default=Version(0, 0))


def led_by(found: list[tuple[Record, Header]]) -> set[Version]:
    """The versions of the tree by which copies were sent over links."""
    return {part.version for _, header in found for part in header.prefix.parts}


def subscribe_all(
    observer: Observer, draw: random.Random, wanted: dict[Identity, str]
) -> dict[Identity, str]:
    """Make all of them and wait until they are in force; their filters."""
    texts = {identity: a_filter(draw, spelling) for identity, spelling in wanted.items()}
    requests = [observer.subscribe(each, wanted[each], text) for each, text in texts.items()]
    observer.await_in_force(requests)
    return texts


def test_everybody_gets_what_they_are_owed(
    spark: SparkSession, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    """Subscriptions come and go, and trees are told, while events are on their way between brokers."""
    draw = random.Random(4)
    site = Site(
        spark,
        cluster,
        namespace,
        tmp_path / "checkpoint",
        2,
        SIZE.events_per_batch,
        SIZE.brokers,
        SIZE.topology,
    )
    observer = Observer(site)
    wanted = identities(SIZE.brokers, SIZE.subscribers, SIZE.subscriptions)
    with running(site), optimizing(site, tmp_path / "trees", EAGER):
        subscribe_all(observer, draw, wanted)
        published = come_and_go(observer, SIZE, draw, wanted, lambda: len(led_by(copies(site))) >= 6)
        site.write(site.topics.rt_updates, b"no update")
        observer.settle()
    verdict = observer.verdict()
    assert verdict.clean, verdict.describe()
    found = copies(site)
    versions = led_by(found)
    older = observer.count("older_walks")
    print(
        f"\n{len(SIZE.brokers)} brokers, {SIZE.subscriptions:,} subscriptions, {published:,} events: "
        f"{verdict.describe()}\n"
        f"{len(found):,} copies crossed links with {len(versions)} versions of the tree; "
        f"{older:,} visits were led by an older one, {observer.count('afresh_matches'):,} matched afresh"
    )
    assert verdict.owed > published and verdict.ordered > published, verdict.describe()
    assert observer.count("content_matches") == observer.count("accepted") == published
    assert len(found) == observer.count("forwarded") == observer.count("passed") > published / 2
    assert len(versions) >= 6, "at least five updates while events were on their way"
    assert older >= SIZE.older_walks
    [letter] = site.dead_letters()
    assert (letter.code, letter.owed, letter.record.value) == (Code.CONTROL_INVALID, "nothing", b"no update")


def test_without_a_tree_optimizer_everything_is_right_and_less_precise(
    spark: SparkSession,
    cluster: Cluster,
    namespace: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It stops after its third update, many subscribe, and it starts again without its checkpoint."""
    monkeypatch.setattr(job, "TICK_EVERY_S", 0.5)
    draw = random.Random(7)
    site = Site(spark, cluster, namespace, tmp_path / "checkpoint", 2, 600, SIZE.brokers, SIZE.topology)
    observer = Observer(site)
    standing: dict[Identity, tuple[str, str]] = {}
    links = [site.topics.broker(broker) for broker in SIZE.brokers]

    def subscribe(prefix: str, count: int) -> None:
        wanted = identities(SIZE.brokers, max(count // 4, 1), count, prefix, EXACT)
        for identity, text in subscribe_all(observer, draw, wanted).items():
            standing[identity] = (wanted[identity], text)

    def publish() -> Crossed:
        before = ends(cluster, links)
        for _ in range(SIZE.events // 10):
            observer.publish(draw.choice(SIZE.brokers), a_key(draw), an_event(draw))
        observer.settle()
        return crossed(copies(site, before), SIZE.topology, standing)

    with running(site):
        with optimizing(site, tmp_path / "trees", EAGER):
            for number in range(3):
                told = newest(site)
                subscribe(f"{'xyz'[number]}-", SIZE.late_subscriptions // 5)
                wait_until(lambda told=told: newest(site) > told, 60, "an update")  # type: ignore[misc]
            wait_until(lambda: has_told_everything(site), 60, "all is told")
            site.settle()
            on = publish()
        subscribe("late-", SIZE.late_subscriptions)
        off = publish()
        shutil.rmtree(tmp_path / "trees")
        told = newest(site)
        with optimizing(site, tmp_path / "trees", EAGER):
            wait_until(lambda: newest(site).incarnation > told.incarnation, 60, "a new life")
            wait_until(lambda: has_told_everything(site), 60, "all is told")
            site.settle()
            again = publish()
    verdict = observer.verdict()
    assert verdict.clean, verdict.describe()
    print(f"\nwith the Tree Optimizer: {on}\nwithout it: {off}\nwith it again: {again}")
    assert observer.count("content_matches") == observer.count("accepted")
    assert again.false * off.copies < off.false * again.copies, (
        "the tree keeps what nobody wants off the links"
    )


def test_mail_for_brokers_of_other_jobs_waits(
    spark: SparkSession, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    """A job that serves one of four brokers writes to topics of its neighbours, and to nobody else's."""
    site = Site(spark, cluster, namespace, tmp_path / "checkpoint", brokers=("a",), topology=ring())
    Observer(site).subscribe(Identity("a", "ann", "one"), "sql", "n > 0")
    site.flush()
    site.run_to_end()
    assert {ack.status for ack in site.acks()} == {Status.ACCEPTED}
    letters = ends(cluster, [site.topics.link(broker) for broker in RING])
    assert {topic: end for (topic, _), end in letters.items()} == {
        site.topics.link("a"): 0,
        site.topics.link("b"): 1,
        site.topics.link("d"): 1,
    }


def test_a_broker_is_added_to_a_job_that_has_run(
    spark: SparkSession, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    """The job starts again with a further name; the newcomer is told of everything once it is linked."""
    site = Site(spark, cluster, namespace, tmp_path / "checkpoint", brokers=("a",))
    with running(site):
        site.subscribe("ann", "n > 0")
        site.settle()
    site.brokers = ("a", "b")
    with running(site):
        observer = Observer(site)
        observer.propose(founded(["a"]).joined("b", {"a": 1}))
        observer.settle()
        site.subscribe("bob", "n > 1", home="b")
        for number, at in enumerate(("a", "b", "a", "b")):
            site.publish(json.dumps({"n": number}), "k", at=at)
        numbers = {
            name: {json.loads(each or b"")["n"] for each in site.delivered(name)} for name in ("ann", "bob")
        }
        assert numbers == {"ann": {1, 2, 3}, "bob": {2, 3}}
