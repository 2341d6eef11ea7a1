"""`demo`: everything at once, for a minute, on made-up flights and orders."""

import contextlib
import random
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import click

from branchline.kafka.client import Publisher, Subscriber
from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import ConfigError, JobFailed, TopicMissing, WaitExpired
from branchline.kafka.home import Home
from branchline.kafka.listing import last_stats
from branchline.kafka.topics import Topics
from branchline.ops.methods import chosen_methods, method_options
from branchline.ops.optimizer import beside
from branchline.ops.output import emit, say
from branchline.ops.overlay import SMALL_MOST, small_overlay
from branchline.ops.run import prepare, start_kafka, stopped_by_signals, unwound_by_sigterm
from branchline.ops.settings import (
    BOOTSTRAP,
    NAMESPACE,
    PROPERTIES,
    find_cluster,
    json_option,
    make_topics,
    option,
)
from branchline.ops.sites import RUNNING, served
from branchline.ops.spark_options import SparkChoice
from branchline.routing.methods.naming import Methods
from branchline.routing.prefix.optimizer import Settings

SUBSCRIBERS = {
    "cheap-flights": "type = 'flight' AND price <= 120",
    "madrid-desk": "type = 'flight' AND (origin = 'MAD' OR destination = 'MAD')",
    "big-orders": "type = 'order' AND order.total > 900 AND order.country IN ('ES', 'IE', 'SG')",
}

BROKERS = 3
START_DEADLINE_S = 600.0
"""How long a router that somebody else starts is waited for."""

EVENTS_PER_S = 40
COUNT_EVERY_S = 5.0
SHOWN_PER_S = 4
"""Deliveries shown a second: enough to see them come, few enough to read."""

SETTLE_DEADLINE_S = 60.0

Job = Callable[[threading.Event, threading.Event], None]
"""Runs until the first event is set; sets the second once it runs."""


@click.command(short_help="See everything at work for a minute, on made-up events.")
@click.option("--seconds", type=click.IntRange(min=1), default=60, show_default=True, help="How long to run.")
@click.option(
    "--brokers",
    type=click.IntRange(1, SMALL_MOST),
    help=f"Serve so many brokers, linked as a balanced tree. Default: {BROKERS}.",
)
@click.option(
    BOOTSTRAP.option,
    envvar=BOOTSTRAP.variable,
    help=f"Feed the jobs that run on this Kafka, and start nothing.  [{BOOTSTRAP.variable}]",
)
@option(PROPERTIES)
@option(NAMESPACE)
@method_options
@json_option
def demo(
    seconds: int,
    brokers: int | None,
    forwarding: str | None,
    matching: str | None,
    dissemination: str | None,
    optimise: str | None,
    bootstrap: str | None,
    client_properties: str | None,
    namespace: str,
    as_json: bool,
) -> None:
    """Start Kafka, router and Tree Optimizer, three subscribers and a live feed, and show the deliveries.

    Events enter at all brokers; the subscribers are at home with different ones. Everything is made in a
    temporary folder and gone afterwards. With --bootstrap, only the subscribers and the feed are started,
    against the jobs that run there, and the subscriptions are ended at the end.

    \b
    Examples:
      branchline demo --seconds 30
      branchline demo --brokers 8
      branchline demo --forwarding rematch --matching table
      branchline demo --bootstrap localhost:9092
    """
    methods = chosen_methods(forwarding, matching, dissemination, optimise)
    if bootstrap is not None:
        if brokers is not None or methods is not None:
            raise ConfigError(
                "--brokers and methods are for brokers that the demo starts itself",
                hint="leave them out: the brokers that are there are fed",
            )
        _feed_there(find_cluster(bootstrap, client_properties), make_topics(namespace), seconds, as_json)
        return
    from branchline.ops.job import start_spark
    from branchline.streaming.job import RouterJob
    from branchline.streaming.optimizer import OptimizerConfig
    from branchline.streaming.router import RouterConfig

    home = Home.default()
    with contextlib.ExitStack() as stack:
        stack.enter_context(unwound_by_sigterm())
        jars = prepare(home, say)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="branchline-demo-")))
        # The logs outlive the demo, beside those of an `up` that may be running.
        logs = home.make(home.logs)
        kafka = start_kafka(stack, jars, say, folder / "kafka", logs, log_name="demo-kafka.log")
        checkpoint = str(folder / "checkpoint")
        spark = start_spark(stack, jars, say, SparkChoice(), checkpoint, logs / "demo-spark.log")
        cluster = Cluster(kafka.bootstrap)
        stop = stack.enter_context(stopped_by_signals())
        overlay = small_overlay(brokers or BROKERS, "main")
        names = tuple(member.name for member in overlay.members)
        config = RouterConfig(
            cluster, checkpoint, brokers=names, topology=overlay, methods=methods or Methods()
        )
        trees = OptimizerConfig(cluster, str(folder / "trees"), settings=Settings(limit_ms=5_000))
        log = logs / "demo-spark.log"
        job = RouterJob(spark, config, say, log)
        with beside(spark, trees, say, log), _running(job.run, stop) as failure:
            show = Demo(cluster, names, as_json)
            show.run(seconds, stop, failure)


def _feed_there(cluster: Cluster, topics: Topics, seconds: int, as_json: bool) -> None:
    """The demo on jobs that run already."""
    with unwound_by_sigterm():
        brokers = _brokers_there(cluster, topics)
    with stopped_by_signals() as stop:
        show = Demo(cluster, brokers, as_json, topics.namespace, run=uuid4().hex[:8])
        try:
            show.run(seconds, stop, [])
        finally:
            show.leave()


def _brokers_there(cluster: Cluster, topics: Topics) -> tuple[str, ...]:
    """The brokers that jobs on this cluster serve, once there are some."""
    deadline = time.monotonic() + START_DEADLINE_S
    say(f"waiting for a router of namespace {topics.namespace}")
    while time.monotonic() < deadline:
        with contextlib.suppress(TopicMissing):
            stats = ((str(each.get("cluster")), each) for each in last_stats(cluster, topics).values())
            found = served(stats, time.time())
            running = [name for name, each in found.items() if each.state == RUNNING and not each.waiting]
            if running:
                return tuple(sorted(running))
        time.sleep(1)
    raise WaitExpired(
        f"no router of namespace {topics.namespace} has come", hint="start one: branchline router"
    )


@contextlib.contextmanager
def _running(job: Job, stop: threading.Event) -> Iterator[list[Exception]]:
    """The job in a thread of its own; what ended it, if it failed, is in the list."""
    failure: list[Exception] = []
    started = threading.Event()

    def run() -> None:
        try:
            job(stop, started)
        except Exception as error:
            failure.append(error)
            started.set()

    thread = threading.Thread(target=run, name="router")
    thread.start()
    try:
        started.wait()
        yield failure
    finally:
        stop.set()
        thread.join()
    if failure:
        raise failure[0]


class Demo:
    """The feed, the three subscribers and what they got."""

    def __init__(
        self,
        cluster: Cluster,
        brokers: tuple[str, ...],
        as_json: bool,
        namespace: str = str(NAMESPACE.default),
        run: str = "",
    ) -> None:
        """A run's name tells its events from those of other demos on the same cluster."""
        self._cluster = cluster
        self._namespace = namespace
        self._run = run
        self._brokers = brokers
        self._as_json = as_json
        self._delivered: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._shown = (0, 0)

    def run(self, seconds: int, stop: threading.Event, failure: list[Exception]) -> None:
        """Feed events for so long, and end when everything owed has come."""
        for place, (name, filter) in enumerate(SUBSCRIBERS.items()):
            # The last brokers are the furthest from where everything else is.
            home = self._brokers[-1 - place % len(self._brokers)]
            self._subscriber(name, home).subscribe(filter, timeout_s=120)
            say(f"{name}, at home with broker {home}, is subscribed to: {filter}")
        done = threading.Event()
        readers = [threading.Thread(target=self._read, args=(name, done)) for name in SUBSCRIBERS]
        for reader in readers:
            reader.start()
        try:
            owed = self._feed(seconds, stop, failure)
            self._settle(owed, stop, failure)
        finally:
            done.set()
            for reader in readers:
                reader.join()
        missing = {name: owed[name] - self._delivered[name] for name in SUBSCRIBERS}
        if stop.is_set():
            return
        if any(missing.values()):
            raise JobFailed(f"deliveries are missing: {missing}", hint="see the logs named above")
        say(f"done: every event that was owed has come ({self._counted()})")

    def leave(self) -> None:
        """End the subscriptions."""
        for name in SUBSCRIBERS:
            self._subscriber(name).unsubscribe_all(wait=False)

    def _subscriber(self, name: str, home: str | None = None) -> Subscriber:
        return Subscriber(self._cluster, name, namespace=self._namespace, home=home)

    def _feed(self, seconds: int, stop: threading.Event, failure: list[Exception]) -> Counter[str]:
        draw = random.Random(7)
        owed: Counter[str] = Counter()
        started = counted = time.monotonic()
        published = 0
        with contextlib.ExitStack() as stack:
            publishers = [
                stack.enter_context(Publisher(self._cluster, namespace=self._namespace, broker=broker))
                for broker in self._brokers
            ]
            while time.monotonic() < started + seconds and not failure:
                event = _event(draw) | ({"run": self._run} if self._run else {})
                publisher = publishers[published % len(publishers)]
                publisher.publish(event, key=event.get("origin", "order"))
                owed.update(name for name, wants in _WANTS.items() if wants(event))
                published += 1
                if time.monotonic() > counted + COUNT_EVERY_S:
                    counted = time.monotonic()
                    say(f"--- {published:,} events published; delivered: {self._counted()}")
                if stop.wait(1 / EVENTS_PER_S):
                    break
        say(f"--- {published:,} events published, the feed ends; waiting for the last deliveries")
        return owed

    def _settle(self, owed: Counter[str], stop: threading.Event, failure: list[Exception]) -> None:
        deadline = time.monotonic() + SETTLE_DEADLINE_S
        while any(self._delivered[name] < owed[name] for name in SUBSCRIBERS):
            if time.monotonic() > deadline or failure or stop.wait(0.1):
                return

    def _read(self, name: str, done: threading.Event) -> None:
        for delivered in self._subscriber(name).poll_events(from_beginning=True):
            if done.is_set():
                return
            event = None if delivered is None else delivered.json()
            if event is not None and event.get("run", "") == self._run:
                self._show(name, event)

    def _show(self, name: str, event: Any) -> None:
        with self._lock:
            self._delivered[name] += 1
            if self._as_json:
                emit({"subscriber": name, "event": event})
                return
            second, shown = self._shown
            now = int(time.monotonic())
            self._shown = (now, shown + 1 if now == second else 1)
            if self._shown[1] <= SHOWN_PER_S:
                click.echo(f"{name:>14} <- {_in_words(event)}")

    def _counted(self) -> str:
        return ", ".join(f"{name} {self._delivered[name]:,}" for name in SUBSCRIBERS)


# The same three wishes in Python: what the router delivers is checked against them.
_WANTS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "cheap-flights": lambda event: event["type"] == "flight" and event["price"] <= 120,
    "madrid-desk": lambda event: "MAD" in (event.get("origin"), event.get("destination")),
    "big-orders": lambda event: (
        event["type"] == "order"
        and event["order"]["total"] > 900
        and event["order"]["country"] in ("ES", "IE", "SG")
    ),
}


def _event(draw: random.Random) -> dict[str, Any]:
    if draw.random() < 0.6:
        origin, destination = draw.sample(["BCN", "MAD", "DUB", "SIN", "IAD", "LIS"], 2)
        return {
            "type": "flight",
            "origin": origin,
            "destination": destination,
            "price": draw.randint(30, 900),
        }
    country = draw.choice(["ES", "IE", "SG", "US", "PT"])
    return {"type": "order", "order": {"total": round(draw.uniform(5, 1500), 2), "country": country}}


def _in_words(event: dict[str, Any]) -> str:
    if event["type"] == "flight":
        return f"flight {event['origin']}-{event['destination']} for {event['price']}"
    return f"order of {event['order']['total']:.2f} from {event['order']['country']}"
