"""Thousands of events, a fifth of them broken, and fifty subscriptions: exactly what the oracle says."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import psutil
import pytest
from pyspark.sql import SparkSession
from routers import Site, delivery_id, ends, read_all
from waiting import wait_until
from workload import BROKEN, EVENTS, SEED, SUBSCRIPTIONS, Workload, make_workload

from branchline.kafka.asking import ask
from branchline.kafka.cluster import Cluster
from branchline.kafka.dead_letters import decode_dead_letter
from branchline.kafka.listing import last_stats
from branchline.kafka.record import Record
from branchline.routing.control import Status
from branchline.streaming.job import RouterJob

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


@pytest.fixture(scope="module")
def workload() -> Workload:
    return make_workload(EVENTS, SUBSCRIPTIONS, SEED)


def publish(site: Site, workload: Workload) -> None:
    for event in workload.events:
        site.publish(event.value, event.key, event.headers)
    site.flush()


def outputs(site: Site, workload: Workload) -> list[str]:
    return [*map(site.topics.out, workload.subscribers()), site.topics.dead_letters]


def written(site: Site, workload: Workload) -> int:
    """How many records stand in the output topics."""
    return sum(ends(site.cluster, outputs(site, workload)).values())


@pytest.fixture(scope="module")
def first_run(
    spark: SparkSession, cluster: Cluster, workload: Workload, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Site, list[Record]]]:
    """The workload through a supervised job, live; the site and all that was written."""
    site = Site(spark, cluster, "volume", tmp_path_factory.mktemp("volume") / "live")
    stop, started = Event(), Event()
    job = Thread(target=RouterJob(spark, site.config(), print).run, args=(stop, started))
    job.start()
    try:
        assert started.wait(60)
        answers = ask(cluster, site.topics, workload.requests(), Status.IN_FORCE, 60)
        assert {answer.status for answer in answers} == {Status.IN_FORCE}
        publish(site, workload)
        owed = workload.deliveries() + len(workload.broken)
        wait_until(lambda: written(site, workload) >= owed, 120, "everything is written")
    finally:
        stop.set()
        job.join()
    yield site, read_all(cluster, outputs(site, workload))


def by_subscriber(site: Site, records: list[Record]) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        name = site.topics.named(record.place.topic)
        if name is not None:
            found[name].append(record)
    return found


def test_each_subscriber_has_exactly_what_the_oracle_says(
    first_run: tuple[Site, list[Record]], workload: Workload
) -> None:
    """Nothing missing, nothing too much, nothing twice, and in the order of publication for each key."""
    site, records = first_run
    got = by_subscriber(site, records)
    workload.check(got)
    ids = [delivery_id(record) for each in got.values() for record in each]
    assert len(set(ids)) == len(ids)
    print(
        f"{EVENTS:,} events, {len(workload.broken):,} of them broken in {len(BROKEN)} ways, "
        f"{SUBSCRIPTIONS} subscriptions: {len(ids):,} deliveries, 0 missing, 0 too much, 0 repeated, in order"
    )


def test_every_broken_event_is_a_dead_letter_with_its_code(
    first_run: tuple[Site, list[Record]], workload: Workload
) -> None:
    """Each is there once with the code of its fault, its place of publication, and its bytes."""
    site, records = first_run
    letters = [decode_dead_letter(each) for each in records if each.place.topic == site.topics.dead_letters]
    assert Counter(letter.code for letter in letters) == Counter(code for code, _ in workload.broken)
    assert {letter.code for letter in letters} == set(BROKEN), "all ten ways"
    assert {letter.owed for letter in letters} == {"event"}
    sources = {str(record.place): record for record in read_all(site.cluster, [site.topics.entry("main")])}
    assert len({str(letter.place) for letter in letters}) == len(letters)
    for letter in letters:
        source = sources[str(letter.place)]
        assert letter.record.key == source.key
        if letter.cut is None:
            assert (letter.record.value, letter.record.headers) == (source.value, source.headers)


def test_the_job_never_restarted_and_counted_right(
    first_run: tuple[Site, list[Record]], workload: Workload
) -> None:
    """Its own statistics say what happened, and that no batch failed."""
    site, _ = first_run
    said = last_stats(site.cluster, site.topics)["router/main"]
    assert (said["state"], said["restarts"]) == ("stopped", 0)
    at_the_end = ends(site.cluster, [site.topics.entry("main")])
    assert said["positions"][site.topics.entry("main")] == {
        str(partition): end for (_, partition), end in at_the_end.items()
    }
    assert said["counts"]["accepted"] == EVENTS - len(workload.broken)
    assert said["counts"]["content_matches"] == said["counts"]["accepted"]
    assert said["counts"]["rejected"] == len(workload.broken)
    assert said["counts"]["delivered"] == workload.deliveries()
    assert said["counts"]["requests"] == SUBSCRIPTIONS


def kill_workers(spark: SparkSession) -> int:
    """End every Python worker, and with it all that it kept in memory; what they are forked from stays."""
    jvm = psutil.Process(spark.sparkContext._gateway.proc.pid)  # type: ignore[union-attr]
    killed = 0
    for each in jvm.children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if each.ppid() != jvm.pid:
                each.kill()
                killed += 1
    return killed


@pytest.mark.parametrize(("shards", "disturbed"), [(1, False), (2, True), (4, False)])
def test_shards_workers_and_caches_change_nothing(
    first_run: tuple[Site, list[Record]],
    spark: SparkSession,
    workload: Workload,
    tmp_path: Path,
    shards: int,
    disturbed: bool,
) -> None:
    """From the same input, the same output to the byte, whatever the shards and whoever dies between."""
    site, before = first_run
    topics = outputs(site, workload)
    start = ends(site.cluster, topics)
    again = Site(spark, site.cluster, site.namespace, tmp_path / "again", shards, EVENTS // 3)
    killed: list[int] = []
    batches = again.run_to_end((lambda: killed.append(kill_workers(spark))) if disturbed else lambda: None)
    assert batches >= 3
    assert not disturbed or min(killed) >= 1, "no worker was there to be killed"
    after = read_all(site.cluster, topics, since=start)
    assert Counter(map(_content, after)) == Counter(map(_content, before))
    print(
        f"{shards} shards, {batches} batches, {sum(killed)} workers killed between them: "
        f"{len(after):,} records, the same to the byte"
    )


def _content(record: Record) -> tuple[object, ...]:
    return record.place.topic, record.key, record.value, record.headers
