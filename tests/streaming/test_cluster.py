"""Both jobs on a Spark standalone cluster: the package travels, and a lost executor and worker cost a moment.

The Python there has the libraries and not the package, and workers stand for machines: each has folders and
an environment of its own. The jobs are started as a user would start them.
"""

import json
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from machines import Machine, linked_home
from observing import Observer
from overlays import a_filter, a_key, an_event, identities
from processes import is_alive
from remote_sites import RemoteSite
from routers import ends, read_all
from spark_clusters import HOST, SparkCluster, foreign_python, imports
from waiting import wait_until

from branchline.kafka.cluster import Cluster
from branchline.routing.control import Identity
from branchline.streaming.parcel import PACKAGES, digest

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

START_DEADLINE_S = 120
GAP_DEADLINE_S = 120
EVENTS = 300
"""Published before each kill, and after it."""
SUBSCRIPTIONS = 250
"""Enough for a state of which images are made."""


@dataclass
class Feed:
    """Events, and marks among them, of which one subscriber wants all: so that a gap can be timed."""

    observer: Observer
    draw: random.Random

    MARKS = Identity("main", "marks", "s")

    def publish(self, count: int) -> None:
        for _ in range(count):
            self.observer.publish("main", a_key(self.draw), an_event(self.draw))
        self.observer.site.flush()

    def time_after(self, kill: psutil.Process) -> float:
        """Kill the process among events; how long it takes until what is published next is delivered."""
        site = self.observer.site
        marks = [site.topics.out(self.MARKS.subscriber)]
        self.publish(EVENTS)
        seen = ends(site.cluster, marks)
        kill.kill()
        killed_s = time.monotonic()
        mark = self.observer.publish("main", "mark", {"type": "mark"})
        self.publish(EVENTS)

        def has_come() -> bool:
            found = read_all(site.cluster, marks, since=seen)
            return any(json.loads(record.value or b"")["n"] == mark for record in found)

        wait_until(has_come, GAP_DEADLINE_S, "deliveries go on")
        return time.monotonic() - killed_s


@contextmanager
def running(machine: Machine, output: Path, spark: SparkCluster, *options: str) -> Iterator[None]:
    """Both jobs against a Kafka that is there, from when they run on; workers start while they do."""
    with output.open("wb") as file:
        process = machine.popen("up", *options, stdout=file, stderr=file)

    def are_running() -> bool:
        assert process.poll() is None, output.read_text()
        return all(f"{each}: running" in output.read_text() for each in ("router", "optimizer"))

    try:
        spark.add_workers(2)
        wait_until(are_running, START_DEADLINE_S, "both jobs run")
        yield
        assert process.poll() is None, output.read_text()
    finally:
        process.terminate()
        try:
            process.wait(60)
        finally:
            process.kill()
    assert process.returncode == 0, output.read_text()


def client_options(cluster: Cluster, file: Path) -> list[str]:
    file.write_text("".join(f"{name}={value}\n" for name, value in cluster.properties.items()))
    return ["--bootstrap", cluster.bootstrap, "--client-properties", str(file)]


def test_jobs_go_on_without_an_executor_a_worker_and_the_master(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    """SIGKILL of an executor, of the other worker, of the master, among events: nothing is missing, in order.

    The package and the jars came with the job, and the images of shards are made where the executors are.
    """
    python = foreign_python(tmp_path / "environment")
    assert imports(python, "pyspark") and not imports(python, "branchline.routing")
    site = RemoteSite(None, cluster, namespace, tmp_path / "unused")  # type: ignore[arg-type]
    observer = Observer(site)
    feed = Feed(observer, random.Random(5))
    wanted = identities(("main",), 5, SUBSCRIPTIONS)
    with SparkCluster(tmp_path / "spark") as spark:
        options = [
            *client_options(cluster, tmp_path / "client.properties"),
            *("--namespace", namespace, "--checkpoint", str(tmp_path / "checkpoint")),
            *("--threshold", "0.05", "--limit", "1s", "--master", spark.url),
            *("--spark-conf", f"spark.pyspark.python={python}", "--spark-conf", f"spark.driver.host={HOST}"),
            *("--spark-conf", "spark.executor.memory=512m"),
            *("--spark-conf", "spark.executor.extraJavaOptions=-XX:+UseSerialGC"),
        ]
        with running(Machine(linked_home(tmp_path / "home")), tmp_path / "up.output", spark, *options):
            requests = [
                observer.subscribe(each, spelling, a_filter(feed.draw, spelling))
                for each, spelling in wanted.items()
            ]
            requests.append(observer.subscribe(feed.MARKS, "sql", "type = 'mark'"))
            observer.await_in_force(requests)
            [first], [second] = spark.executors(0), spark.executors(1)
            without_executor_s = feed.time_after(first)
            without_worker_s = feed.time_after(spark.workers[1])
            wait_until(lambda: not is_alive(second), 60, "an executor ends without its worker")
            without_master_s = feed.time_after(spark.master)
            observer.settle()
        parcels = [set(each.rglob(f"branchline-{digest(*PACKAGES)}.zip")) for each in spark.machines()]
        jars = [set(each.rglob("spark-sql-kafka-*.jar")) for each in spark.machines()]
        images = [set(each.rglob("*.image")) for each in spark.machines()]
    verdict = observer.verdict()
    print(
        f"\nexecutor killed: deliveries went on after {without_executor_s:.1f} s; "
        f"worker killed: after {without_worker_s:.1f} s; master killed: after {without_master_s:.1f} s; "
        f"{verdict.describe()}"
    )
    assert verdict.clean, verdict.describe()
    assert verdict.owed > 2 * EVENTS, verdict.describe()
    assert all(parcels) and all(jars), "the package and the jars came to both"
    assert images[0], "the one that is left made images of its own"
