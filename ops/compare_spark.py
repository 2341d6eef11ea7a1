"""One load by several choices of methods on the real jobs: an embedded Kafka and Spark, small and exact.

Each choice has a namespace of its own. What is counted is what the jobs count and what stands in their topics
afterwards; processor time and memory are Spark's and Java's for the most part, and are not told.
"""

import contextlib
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from branchline.kafka import headers as bl
from branchline.kafka.admin import ensure_topics
from branchline.kafka.cluster import Cluster
from branchline.kafka.fixed_sets import FixedSets
from branchline.kafka.home import Home
from branchline.kafka.topics import Topics
from branchline.ops.chaos.observing import Observer
from branchline.ops.chaos.reading import read_all
from branchline.ops.compare_loads import Load
from branchline.ops.compare_runs import PUBLISHER, Result, adverts_of, homes_of, needless, table_entries
from branchline.ops.output import say
from branchline.ops.run import prepare, start_kafka, unwound_by_sigterm
from branchline.ops.spark_options import SparkChoice
from branchline.ops.volunteering import volunteering
from branchline.routing.dissemination.strategies import on_tree
from branchline.routing.history import Read
from branchline.routing.methods.counts import COUNTS
from branchline.routing.methods.naming import Methods
from branchline.routing.methods.protocols import Offloading
from branchline.routing.prefix.header import decode

if TYPE_CHECKING:  # it imports Spark, which takes a second
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

Beat = Callable[[str], None]

PARTS = 3
"""In which subscriptions come that claim where they go: of the table there is by then."""


def run_on_spark(
    load: Load, several: Sequence[Methods], report: Callable[[Methods], Beat]
) -> Iterator[Result]:
    """The load by each of the methods, one after the other in one Spark session."""
    from branchline.ops.job import start_spark

    home = Home.default()
    with contextlib.ExitStack() as stack:
        stack.enter_context(unwound_by_sigterm())
        jars = prepare(home, say)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="branchline-compare-")))
        logs = home.make(home.logs)
        kafka = start_kafka(stack, jars, say, folder / "kafka", logs, log_name="compare-kafka.log")
        spark = start_spark(stack, jars, say, SparkChoice(), str(folder), logs / "compare-spark.log")
        for number, methods in enumerate(several):
            site = _Site(spark, Cluster(kafka.bootstrap), f"compare{number}", folder / f"job{number}")
            yield _run(site, load, methods, report(methods))


@dataclass
class _Site:
    """A namespace with its router."""

    spark: "SparkSession"
    cluster: Cluster
    namespace: str
    folder: Path
    counts: Counter[str] = field(default_factory=Counter)
    query: "StreamingQuery | None" = None

    def __post_init__(self) -> None:
        self.topics = Topics(self.namespace)
        self._producer = self.cluster.producer(linger_ms=1)

    def start(self, load: Load, methods: Methods) -> None:
        from branchline.streaming.router import RouterConfig, start_router

        ensure_topics(self.cluster, self.topics.of_brokers(tuple(load.brokers)))
        config = RouterConfig(
            self.cluster,
            str(self.folder),
            self.namespace,
            tuple(load.brokers),
            topology=load.topology,
            cluster_name=load.topology.members[0].cluster,
            methods=methods,
        )
        self.query = start_router(self.spark, config, self._observe)

    def _observe(self, batch: int, shards: list[dict[str, Any]]) -> None:
        for each in shards:
            self.counts.update({name: count for name, count in each.items() if isinstance(count, int)})

    def write(
        self, topic: str, value: bytes | str | None, key: bytes | str | None = None, **more: Any
    ) -> None:
        while True:
            try:
                self._producer.produce(topic, value, key, **more)
                return
            except BufferError:
                self._producer.poll(0.1)

    def flush(self) -> None:
        self._producer.flush(60)

    def settle(self) -> None:
        assert self.query is not None
        self.query.processAllAvailable()


def _run(site: _Site, load: Load, methods: Methods, beat: Beat) -> Result:
    beat("starting")
    site.start(load, methods)
    assert site.query is not None
    tree = on_tree(methods.dissemination)
    offloading = None if tree is None else tree.offloading
    helped = {each.identity.home for each in load.subscriptions} if offloading is Offloading.ROUNDS else set()
    try:
        observer = Observer(site)
        adverts = adverts_of(load, methods).items()
        observer.await_in_force([observer.advertise(PUBLISHER, at, text) for at, text in adverts])
        beat(f"{len(load.subscriptions):,} subscriptions")
        with volunteering(site.cluster, site.namespace, sorted(helped)):
            _subscribe(observer, load, in_parts=offloading is Offloading.FIXED)
        site.settle()
        beat(f"{len(load.events):,} events")
        numbers = [observer.publish(each.at, None, each.attributes) for each in load.events]
        observer.settle()
    finally:
        site.query.stop()
    return _result(site, load, methods, observer, numbers)


def _subscribe(observer: Observer, load: Load, *, in_parts: bool) -> None:
    """All subscriptions; in parts, if what comes later is to claim something of what came before."""
    wanted = load.subscriptions
    step = -(-len(wanted) // PARTS) if in_parts else len(wanted)
    for first in range(0, len(wanted), step):
        some = wanted[first : first + step]
        if in_parts:
            observer.fixed_sets = FixedSets(observer.site.cluster, observer.site.topics)
        asked = [observer.subscribe(each.identity, each.spelling, each.text) for each in some]
        observer.await_in_force(asked)


def _result(site: _Site, load: Load, methods: Methods, observer: Observer, numbers: list[int]) -> Result:
    verdict = observer.verdict(repeats="none")
    reads = [entry for entry in observer.history if isinstance(entry, Read)]
    records = read_all(site.cluster, [site.topics.broker(name) for name in load.brokers])
    copies, link_bytes = [], 0
    for record in records:
        header = bl.values(record.headers, bl.PREFIX)[0] or b""
        copies.append((json.loads(record.value or b"")["n"], decode(header)))
        link_bytes += len(header) + len(record.value or b"")
    got = homes_of(reads, {each.identity.subscriber: each.identity.home for each in load.subscriptions})
    figures = {
        "content_matches": site.counts["content_matches"],
        "afresh_matches": site.counts["afresh_matches"],
        "cpu_us_per_visit": None,
        "copies": len(records),
        "link_bytes": link_bytes,
        "needless_copies": needless(load, copies, got),
        "control_messages": site.counts["letters"],
        "table_entries": table_entries(load, methods),
        "memory_bytes": None,
        "deliveries": len(reads),
    }
    counts = {name: site.counts[name] for name in COUNTS if name in site.counts}
    places = {number: place for place, number in enumerate(numbers)}
    delivered = frozenset((places[int(str(entry.event))], entry.subscriber) for entry in reads)
    return Result(methods, figures, counts, delivered, "" if verdict.clean else verdict.describe())
