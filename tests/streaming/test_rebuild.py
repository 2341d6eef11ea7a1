"""A router whose checkpoint is lost, or left behind, is rebuilt from `filters`: nobody loses anything."""

import json
import random
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import TopicPartition
from observing import Observer
from pyspark.sql import SparkSession
from routers import Site
from waiting import wait_until

from branchline.kafka.access import own_topics
from branchline.kafka.admin import ensure_topics
from branchline.kafka.asking import ask
from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import OffsetsGone
from branchline.kafka.listing import last_stats, list_subscriptions
from branchline.kafka.messages import encode_request
from branchline.kafka.rebuilding import read_positions
from branchline.ops.cli import main
from branchline.ops.rebuild_starts import Plan
from branchline.ops.rebuilding import Result, rebuild_into
from branchline.routing.control import Identity, Operation, Request, Status
from branchline.routing.overlay.topology import founded, link
from branchline.routing.shard import Job
from branchline.streaming.files import LocalFolder
from branchline.streaming.job import RouterJob
from branchline.streaming.rebuilding import committed_offsets, made_for, old_state
from branchline.streaming.router import start_router

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

BROKERS = ("a", "b", "c")
LINE = founded(BROKERS, [link(*each) for each in pairwise(BROKERS)])


@contextmanager
def routing(site: Site) -> Iterator[list[str]]:
    """The router job of a site, as `branchline router` runs it; what it told."""
    stop, started, lines = Event(), Event(), list[str]()
    job = RouterJob(site.spark, site.config(), lines.append)
    thread = Thread(target=job.run, args=(stop, started))
    thread.start()
    assert started.wait(60), lines
    name = f"{site.namespace}.router.{site.brokers[0]}"
    (site.query,) = [each for each in site.spark.streams.active if each.name == name]
    try:
        yield lines
    finally:
        stop.set()
        thread.join(60)
        site.query = None


def command(site: Site, tmp_path: Path, *arguments: str) -> Any:
    """What `branchline rebuild` prints at last, or its error."""
    properties = tmp_path / "client.properties"
    properties.write_text("".join(f"{name}={value}\n" for name, value in site.cluster.properties.items()))
    where = ["--bootstrap", site.cluster.bootstrap, "--client-properties", str(properties)]
    brokers = [word for broker in site.brokers for word in ("--broker", broker)]
    made = ["--namespace", site.namespace, *brokers, "--json"]
    result = CliRunner().invoke(main, ["rebuild", *where, *made, *arguments])
    if isinstance(result.exception, Exception):
        raise result.exception
    return json.loads(result.stdout.splitlines()[-1])


def rebuild_from(site: Site, old: Path, new: Path, shards: int) -> Result:
    """As `rebuild --from` does it, with the suite's own Spark."""
    folder = LocalFolder(str(old))
    made = made_for(folder)
    assert made is not None
    before = old_state(site.spark, str(old), Job(made.brokers, made.topology, made.cluster))
    assert before is not None and before.joined
    made = type(made)(made.namespace, made.cluster, shards, made.brokers, made.topology)
    plan = Plan(site.cluster, site.topics, old=str(old))
    offsets = committed_offsets(folder, str(old))
    return rebuild_into(plan, made, offsets, before, LocalFolder(str(new)), str(new), lambda _: None)


class Story:
    """Subscribers and publishers who do not care what becomes of the router."""

    def __init__(self, site: Site) -> None:
        self.site, self.observer, self.draw = site, Observer(site), random.Random(7)

    def publish(self, count: int) -> None:
        for _ in range(count):
            key = f"key-{self.draw.randrange(5)}"
            self.observer.publish(self.draw.choice(BROKERS), key, {"n": 0, "price": self.draw.randrange(100)})

    def subscribe(self, identities: Sequence[Identity]) -> list[str]:
        filters = [f"price < {self.draw.randrange(20, 100)}" for _ in identities]
        return [
            self.observer.subscribe(each, "sql", text) for each, text in zip(identities, filters, strict=True)
        ]

    def standing(self) -> dict[Identity, tuple[str, int | None]]:
        """What stands, and until when."""
        listed = list_subscriptions(self.site.cluster, self.site.topics)
        return {each.identity: (each.filter, each.until_ms) for each in listed}

    def check(self) -> None:
        self.publish(30)
        self.observer.settle()
        verdict = self.observer.verdict()
        assert verdict.clean, verdict


def test_nothing_is_lost_however_the_checkpoint_is_made_anew(
    spark: SparkSession, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    """Stopped in the middle; other shards; checkpoint lost: the history of clients stays clean."""
    first = tmp_path / "first"
    site = Site(spark, cluster, namespace, first, 2, 60, BROKERS, LINE)
    story = Story(site)
    observer = story.observer
    many = [Identity(broker, f"{broker}-{number}", "x") for broker in BROKERS for number in range(3)]
    ended, replaced = many[0], many[4]
    with routing(site):
        observer.await_in_force(story.subscribe(many))
        site.subscribe("leased", "price < 50", home="b", lease_ms=3_600_000)
        for _ in range(10):
            requests = story.subscribe([replaced])
        observer.unsubscribe(ended)
        observer.await_in_force(requests)
        story.publish(60)
        observer.settle()
        before = story.standing()
        # In the middle: some of this is handled, or half, or not at all.
        story.publish(80)
        late = story.subscribe([many[1], Identity("c", "late", "x")])
        site.flush()
        assert site.query is not None
        site.query.stop()

    second = tmp_path / "second"
    rebuilt = rebuild_from(site, first, second, shards=3)
    assert rebuilt.subscriptions >= len(before)
    assert (rebuilt.warnings, rebuilt.held) == ((), 0)
    site.checkpoint, site.shards = second, 3
    with routing(site):
        observer.await_in_force(late)
        story.check()
        after = story.standing()
        assert ended not in after
        assert after.keys() == before.keys() | {Identity("c", "late", "x")}
        unchanged = before.keys() - {many[1]}
        assert {each: after[each] for each in unchanged} == {each: before[each] for each in unchanged}
        assert observer.answers["r1"].count(Status.IN_FORCE) == 1, "it was known to be in force"

    # The checkpoint is lost, with what came meanwhile; the router's own word says where it was.
    shutil.rmtree(second)
    story.publish(40)
    late = story.subscribe([Identity("a", "later", "x")])
    observer.unsubscribe(many[2])
    site.flush()
    told = command(site, tmp_path, "--from-positions", "--shards", "1", "--checkpoint", str(second))
    assert (told["subscriptions"], told["control"] > 0, told["events"] >= 40) == (len(after), True, True)
    site.checkpoint, site.shards = second, 1
    with routing(site):
        observer.await_in_force(late)
        story.check()
        assert many[2] not in story.standing()


def test_a_backlog_is_worked_off_while_requests_are_answered_and_what_is_gone_is_told(
    spark: SparkSession, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    """Also after a rebuild by time, by a file, and of what retention has taken, by own topics or shared."""
    site = Site(spark, cluster, namespace, tmp_path / "first", 2, 40)

    def said_by(job: str) -> dict[str, Any]:
        return last_stats(cluster, site.topics)[f"router/{job}"]

    with routing(site):
        ensure_topics(cluster, own_topics(site.topics, "early"))
        early = Request(Operation.SUBSCRIBE, "early", "default", filter="n >= 0")
        ask(cluster, site.topics, [early], timeout_s=60, own=True)
        site.settle()
    said = read_positions(cluster, site.topics, ["main"])
    assert said is not None and said.joined
    for number in range(160):
        site.publish(f'{{"n": {number}}}', f"key-{number}")
    site.flush()

    # Half of a partition is gone before it is read.
    entry = site.topics.entry("main")
    gone = TopicPartition(entry, 0, 20)
    admin = cluster.admin()  # held: it answers only while it lives
    admin.delete_records([gone])[gone].result(30)
    with pytest.raises(OffsetsGone) as refused:
        RouterJob(spark, site.config(), lambda _: None).run(Event())
    assert "rebuild --since" in refused.value.hint
    file = tmp_path / "offsets.json"
    file.write_text(json.dumps(said.offsets))
    new = str(tmp_path / "second")
    refusal = command(site, tmp_path, "--offsets", str(file), "--checkpoint", new)
    assert refusal["error"] == "offsets-gone"
    file.write_text(json.dumps({**said.offsets, entry: {"0": 20, "1": 0}}))
    told = command(site, tmp_path, "--offsets", str(file), "--checkpoint", new)
    left = told["events"]
    assert told["subscriptions"] == 1
    assert told["control"] < 5, "no more than ticks"
    assert 100 < left < 160
    assert command(site, tmp_path, "--since", "1h", "--checkpoint", new)["error"] == "checkpoint-differs"
    shutil.rmtree(new)
    assert command(site, tmp_path, "--since", "1h", "--checkpoint", new)["events"] == left

    # A request that comes while the backlog is worked off is in one of the next two batches.
    site.checkpoint = tmp_path / "second"
    asked_in, handled_in = list[int](), list[int]()

    def observe(batch: int, shards: list[dict[str, int]]) -> None:
        if sum(counts["requests"] for counts in shards):
            handled_in.append(batch)
        if batch == 1:
            request = Request(Operation.SUBSCRIBE, "late", "x", filter="n >= 0", request="late")
            site.write(site.topics.control, encode_request(request))
            site.flush()
            asked_in.append(batch)

    query = start_router(spark, site.config(), observe)
    query.processAllAvailable()
    query.stop()
    assert asked_in == [1]
    assert handled_in and handled_in[0] <= 3, "control waits for the events"
    assert len(site.delivered("early")) == left
    assert 0 < len(site.delivered("late")) < left

    # The same once more from the beginning, under supervision: it tells how far it is.
    told = command(site, tmp_path, "--from-beginning", "--checkpoint", str(tmp_path / "third"))
    assert (told["events"], told["subscriptions"]) == (left, 2)
    site.checkpoint = tmp_path / "third"
    with routing(site) as lines:
        wait_until(lambda: said_by("main")["state"] == "running", 30, "it says that it runs")
        assert command(site, tmp_path, "--since", "1h", "--checkpoint", new + "x")["error"] == "job-running"
        site.settle()
        wait_until(lambda: any(f"caught up: {left} events" in line for line in lines), 30, "it catches up")
    assert len(site.delivered("early")) == 2 * left
    assert "backlog" not in said_by("main")
    ways = {each.identity.subscriber: each.own for each in list_subscriptions(cluster, site.topics)}
    assert ways == {"early": True, "late": False}
