"""Workers that have nothing, with images on their host, without, or with damaged ones: the same output."""

import json
import os
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from processes import await_end
from pyspark.sql import SparkSession
from routers import Site, ends, read_all, running

from branchline.kafka.asking import ask
from branchline.kafka.cluster import Cluster
from branchline.kafka.record import Record
from branchline.routing.control import Operation, Request, Status
from branchline.streaming import state
from branchline.streaming.images import FOLDER

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

SUBSCRIBERS = 6
EVENTS = 30

SMALL = state.Sizes(
    chunk=1_000, log_min=4_000, segment=1_000, segments_kept=2, image_min=0, image_share=1_000_000
)
"""So that a few subscriptions are segments, snapshots, and an image for each batch that changes anything."""


def kill_workers(spark: SparkSession) -> int:
    """End every Python worker, once what they write aside is written."""
    jvm = psutil.Process(spark.sparkContext._gateway.proc.pid)  # type: ignore[union-attr]
    workers = [worker for daemon in jvm.children() for worker in daemon.children()]
    for worker in workers:
        with suppress(psutil.NoSuchProcess):
            await_end(worker.children(), 60)
            worker.kill()
    return len(workers)


def images() -> list[Path]:
    return list(Path(os.environ[FOLDER]).rglob("*.image"))


def delete(_: int) -> None:
    for path in images():
        path.unlink()


def damage(_: int) -> None:
    for path in images():
        content = bytearray(path.read_bytes())
        content[len(content) // 2 :] = bytes(len(content) - len(content) // 2)
        path.with_suffix(".tmp").write_bytes(content)
        path.with_suffix(".tmp").chmod(0o600)
        path.with_suffix(".tmp").rename(path)


DISTURBANCES: dict[str, Callable[[SparkSession], Any]] = {
    "nothing": lambda _: None,
    "workers killed": kill_workers,
    "workers killed, images deleted": lambda spark: delete(kill_workers(spark)),
    "workers killed, images damaged": lambda spark: damage(kill_workers(spark)),
}


def filters(round_: int) -> list[Request]:
    """What is asked for in a round: a subscription of each subscriber, which may replace an earlier one."""
    made = []
    for number in range(SUBSCRIBERS):
        text = f"n >= {number + 10 * round_} AND word LIKE '%{number}%'"
        made.append(Request(Operation.SUBSCRIBE, f"s{number}", f"f{round_ % 3}", filter=text))
    return made


def wanted(events: list[dict[str, Any]], done: int) -> Counter[tuple[str, int]]:
    """What is owed of a round's events, after so many rounds of asking."""
    standing = {round_ % 3: round_ for round_ in range(done)}
    return Counter(
        (f"s{number}", event["n"])
        for event in events
        for number in range(SUBSCRIBERS)
        if any(event["n"] >= number + 10 * round_ for round_ in standing.values())
        and str(number) in event["word"]
    )


def content(record: Record) -> tuple[object, ...]:
    return record.place.topic, record.key, record.value, record.headers


def publish(site: Site, round_: int) -> list[dict[str, Any]]:
    events = [{"n": number, "word": f"w{number % 10}{round_}"} for number in range(EVENTS)]
    for event in events:
        site.publish(json.dumps(event), key=str(event["n"] % 7))
    site.flush()
    return events


def check(site: Site, records: list[Record], owed: Counter[tuple[str, int]]) -> None:
    found = Counter(
        (site.topics.named(each.place.topic), json.loads(each.value or b"")["n"]) for each in records
    )
    assert found == owed


def test_cold_workers_change_nothing(
    spark: SparkSession, cluster: Cluster, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Live, with another disturbance after each round, everybody gets what is owed; and when all is handled
    once more, in other numbers of shards and other batches, the output is the same to the byte.
    """
    monkeypatch.setattr(state, "SIZES", SMALL)
    site = Site(spark, cluster, namespace, tmp_path / "live")
    topics = [site.topics.out(f"s{number}") for number in range(SUBSCRIBERS)]
    published: list[dict[str, Any]] = []
    owed: Counter[tuple[str, int]] = Counter()
    with running(site):
        for round_, disturb in enumerate([*DISTURBANCES.values(), DISTURBANCES["nothing"]]):
            answers = ask(cluster, site.topics, filters(round_), Status.IN_FORCE, 60)
            assert {answer.status for answer in answers} == {Status.IN_FORCE}
            events = publish(site, round_)
            site.settle()
            published += events
            owed += wanted(events, round_ + 1)
            disturb(spark)
    check(site, read_all(cluster, topics), owed)
    happened = counted(site)
    assert all(happened[name] for name in state.COUNTS if name != "images_unwritten"), happened

    written: list[Counter[tuple[object, ...]]] = []
    for shards, disturbance in ((1, "workers killed"), (4, "workers killed, images deleted")):
        start = ends(cluster, topics)
        again = Site(spark, cluster, namespace, tmp_path / f"again{shards}", shards, EVENTS * 2)
        again.run_to_end(partial(DISTURBANCES[disturbance], spark))
        records = read_all(cluster, topics, since=start)
        check(site, records, wanted(published, round_ + 1))
        written.append(Counter(map(content, records)))
        assert counted(again)["shards_opened" if shards == 1 else "shards_built"], counted(again)
    assert written[0] == written[1]


def counted(site: Site) -> Counter[str]:
    return Counter({name: sum(each[name] for each in site.counts) for name in state.COUNTS})
