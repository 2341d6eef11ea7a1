"""`branchline bench delivery`: what exactly once costs, against at least once, in one run.

A Kafka and a Spark of their own. For each mode a router of one broker with so many subscriptions works off
the same events, in batches of the same size; the modes take turns, so that what else the machine does hits
both. Timed is what Spark says that its batches took, from planning to commit. Records in the subscribers'
topics are counted as a reader of committed records sees them, and must be the same.
"""

import contextlib
import json
import tempfile
from pathlib import Path
from random import Random
from statistics import median
from typing import TYPE_CHECKING, Any

import click

from branchline.kafka.admin import ensure_topics
from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import JobFailed
from branchline.kafka.home import Home
from branchline.kafka.messages import encode_request
from branchline.kafka.reading import read_to_end
from branchline.kafka.topics import Topics
from branchline.ops.output import emit, say, table
from branchline.ops.run import prepare, start_kafka, unwound_by_sigterm
from branchline.ops.settings import MASTER, json_option
from branchline.routing.control import Operation, Request

if TYPE_CHECKING:  # they import Spark, which takes a second
    from pyspark.sql import SparkSession

    from branchline.streaming.router import Delivery

SUBSCRIBERS = 20
REGIONS = 100
CATCH_UP_S = 1_800


@click.command(short_help="Compare exactly once with at least once, on Kafka and Spark.")
@click.option("--events", type=click.IntRange(1_000, 2_000_000), default=40_000, show_default=True)
@click.option("--subscriptions", type=click.IntRange(SUBSCRIBERS, 10_000), default=200, show_default=True)
@click.option("--batch", type=click.IntRange(100, 100_000), default=10_000, show_default=True, help="Events.")
@click.option("--rounds", type=click.IntRange(1, 20), default=3, show_default=True, help="For each mode.")
@json_option
def delivery(events: int, subscriptions: int, batch: int, rounds: int, as_json: bool) -> None:
    """Route the same events at least once and exactly once, in turns, and print the ratio of the two.

    \b
    Examples:
      branchline bench delivery
      branchline bench delivery --events 200000 --subscriptions 1000 --json
    """
    from branchline.ops.job import start_spark
    from branchline.streaming.router import Delivery

    home = Home.default()
    with contextlib.ExitStack() as stack:
        stack.enter_context(unwound_by_sigterm())
        jars = prepare(home, say)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="branchline-bench-")))
        kafka = start_kafka(stack, jars, say, folder / "kafka", folder)
        log = folder / "spark.log"
        spark = start_spark(stack, jars, say, str(MASTER.default), str(folder / "checkpoint"), log)
        rows = []
        for number in range(rounds):
            for mode in Delivery:
                say(f"{mode}, round {number + 1} of {rounds}")
                site = _Site(spark, Cluster(kafka.bootstrap), f"bench-{mode}-{number}", folder, mode, batch)
                site.subscribe(subscriptions)
                site.publish(events)
                rows.append({"delivery": str(mode), "round": number + 1, **site.route(events)})
    _show(rows, as_json)


class _Site:
    """One mode's topics in one round, and its router."""

    def __init__(
        self, spark: "SparkSession", cluster: Cluster, name: str, folder: Path, mode: "Delivery", batch: int
    ) -> None:
        from branchline.streaming.router import RouterConfig

        self._spark, self._cluster, self._topics = spark, cluster, Topics(name)
        self._config = RouterConfig(
            cluster, str(folder / name), name, max_events_per_batch=batch, delivery=mode
        )
        ensure_topics(cluster, self._topics.of_broker("main"))

    def subscribe(self, count: int) -> None:
        """Each subscription is for one of the regions, so an event matches one in a hundred of them."""
        producer = self._cluster.producer(linger_ms=5)
        for number in range(count):
            name = f"subscriber-{number % SUBSCRIBERS}"
            filter = f"region = {number % REGIONS} AND price >= {number // REGIONS % 50}"
            request = Request(Operation.SUBSCRIBE, name, f"s{number}", filter=filter)
            producer.produce(self._topics.control, encode_request(request))
        producer.flush(60)
        self._run()

    def publish(self, count: int) -> None:
        draw = Random(1)
        producer = self._cluster.producer(linger_ms=20)
        for number in range(count):
            event = {
                "n": number,
                "region": draw.randrange(REGIONS),
                "price": draw.randrange(100),
                "x": "-" * 120,
            }
            producer.produce(self._topics.entry("main"), json.dumps(event), f"{number % 1_000}")
            producer.poll(0)
            if number % 10_000 == 9_999:
                producer.flush(60)
        producer.flush(60)

    def route(self, events: int) -> dict[str, Any]:
        """Work off the events; how long it took, and what came out."""
        batches = self._run()
        took_ms = sum(each["ms"] for each in batches)
        delivered = sum(
            len(list(read_to_end(self._cluster, self._topics.out(f"subscriber-{number}"), hint="")))
            for number in range(SUBSCRIBERS)
        )
        return {
            "batches": len(batches),
            "delivered": delivered,
            "batch_ms": round(median(each["ms"] for each in batches)),
            "events_per_s": round(events / took_ms * 1_000),
        }

    def _run(self) -> list[dict[str, int]]:
        from branchline.streaming.router import start_router

        query = start_router(self._spark, self._config, until_caught_up=True)
        if not query.awaitTermination(CATCH_UP_S):
            raise JobFailed(f"the router did not catch up within {CATCH_UP_S} s", hint="use fewer --events")
        progress: list[Any] = list(query.recentProgress)
        return [
            {"ms": each.durationMs["triggerExecution"], "rows": each.numInputRows}
            for each in progress
            if each.numInputRows
        ]


def _show(rows: list[dict[str, Any]], as_json: bool) -> None:
    rates = {
        mode: median(row["events_per_s"] for row in rows if row["delivery"] == mode)
        for mode in dict.fromkeys(row["delivery"] for row in rows)
    }
    ratio = round(rates["exactly-once"] / rates["at-least-once"], 3)
    same = len({row["delivered"] for row in rows}) == 1
    if as_json:
        for row in rows:
            emit(row)
        emit({"ratio": ratio, "same_deliveries": same})
    else:
        names = list(rows[0])
        click.echo(table(names, [[str(row[name]) for name in names] for row in rows]))
        click.echo(f"exactly once has {ratio:.2f} of the throughput of at least once (medians)")
    if not same:
        raise JobFailed("the modes did not deliver the same", hint="this is a mistake of ours: report it")
