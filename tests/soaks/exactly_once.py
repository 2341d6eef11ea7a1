"""Many events, subscriptions and kills: each event once, in order, for whoever reads committed records.

Not part of `make test`, which has the same on a smaller scale (`tests/ops/test_kills.py`): run it with
`make soak-durability`. Filters are simple, so that what is owed can be told by arithmetic. The router runs on
a Spark standalone cluster, so that there are executors to kill.
"""

import contextlib
import json
import random
import time
from collections import Counter, defaultdict
from pathlib import Path
from threading import Thread

import pytest
from confluent_kafka import Producer
from routers import delivery_id, read_all
from spark_clusters import HOST, SparkCluster
from waiting import wait_until

from branchline.kafka.asking import ask
from branchline.kafka.home import Home
from branchline.kafka.jars import ensure_jars
from branchline.kafka.topics import Topics
from branchline.ops.chaos.jobs import Job, await_up, environment
from branchline.ops.chaos.nodes import Nodes
from branchline.ops.chaos.progress import Checkpoint
from branchline.ops.chaos.reading import ends
from branchline.routing.control import Operation, Request

EVENTS, SUBSCRIPTIONS, KILLS = 200_000, 1_000, 20
SUBSCRIBERS, REGIONS, KEYS = 50, 100, 500
PER_BATCH = 5_000
UP_S, THROUGH_S = 180, 1_800

pytestmark = pytest.mark.timeout(2 * 3_600)


def write(producer: Producer, topic: str, value: str, key: str) -> None:
    """Kafka may be down for a while: wait until there is room."""
    while True:
        try:
            producer.produce(topic, value, key)
            return
        except BufferError:
            producer.poll(1)


def wants(number: int) -> tuple[str, int, int]:
    """Whose a subscription is, and which region and price it asks for: two subscribers want each region."""
    step = number // REGIONS
    return f"s{(number + step * 25) % SUBSCRIBERS}", number % REGIONS, step * 10 + 5


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_each_event_comes_in_order_and_once(delivery: str, tmp_path: Path) -> None:
    """At least once, after dropping what has the id of something that came before."""
    draw = random.Random(delivery)
    events = [(draw.randrange(REGIONS), draw.randrange(100)) for _ in range(EVENTS)]
    topics = Topics()
    with contextlib.ExitStack() as stack:
        home = tmp_path / "home"
        home.mkdir()
        (home / "jars").symlink_to(Home.default().jars)
        nodes = Nodes(stack, tmp_path, ensure_jars(Home.default(), print), 1)
        nodes.start()
        spark = stack.enter_context(SparkCluster(tmp_path / "spark-cluster"))
        spark.add_workers(2)
        checkpoint = tmp_path / "checkpoint"
        options = ["--bootstrap", nodes.direct.bootstrap, "--delivery", delivery]
        options += ["--checkpoint", str(checkpoint), "--max-events-per-batch", str(PER_BATCH)]
        options += ["--master", spark.url, "--spark-conf", f"spark.driver.host={HOST}"]
        options += ["--spark-conf", "spark.executor.memory=512m"]
        router = Job(
            "router", options, tmp_path, environment(home, tmp_path), ["router"], Checkpoint(checkpoint)
        )
        stack.callback(router.stop)
        router.start()
        await_up([router])
        requests = [
            Request(Operation.SUBSCRIBE, name, f"i{number}", filter=f"region = {region} AND price >= {price}")
            for number in range(SUBSCRIPTIONS)
            for name, region, price in (wants(number),)
        ]
        ask(nodes.direct, topics, requests, timeout_s=300)

        def publish() -> None:
            producer = nodes.direct.producer(linger_ms=20, message_timeout_ms=600_000)
            for number, (region, price) in enumerate(events):
                value = json.dumps({"n": number, "region": region, "price": price})
                write(producer, topics.entry("main"), value, str(number % KEYS))
                producer.poll(0)
                if number % 500 == 499:
                    # A feed that lasts for as long as the kills do, however long they take.
                    time.sleep(0.5)
                    share = (number + 1) * KILLS // EVENTS
                    wait_until(lambda share=share: killed.total() >= share, UP_S, "the next kill")
            assert producer.flush(600) == 0

        def kill_executor() -> bool:
            # A cluster without any is about to start one: for a driver that was started just now.
            found = [each for worker in range(2) for each in spark.executors(worker)]
            if found:
                draw.choice(found).kill()
            return bool(found)

        killed: Counter[str] = Counter()
        feed = Thread(target=publish)
        feed.start()
        began = time.monotonic()
        for number in range(KILLS):
            what = ("driver", "executor", "kafka")[number % 3]
            time.sleep(draw.uniform(1, 4))  # a random moment: nothing is waited for
            if what == "driver":
                router.kill()
                router.start()
            elif what == "executor":
                wait_until(kill_executor, UP_S, "an executor is killed")
            else:
                process = nodes.all[0].process()
                assert process is not None and process.kill()
                wait_until(lambda: not nodes.all[0].kafka.is_running(), 30, "Kafka has ended")
                nodes.all[0].kafka.start()
            killed[what] += 1
            wait_until(router.is_up, UP_S, "the router runs again")
        kills_s = time.monotonic() - began
        feed.join()

        def is_through() -> bool:
            if router.exit_code is not None:
                router.start()
            end = ends(nodes.direct, [topics.entry("main")])
            read = router.checkpoint.positions() or {}
            return all(read.get(place, 0) >= at for place, at in end.items())

        wait_until(is_through, THROUGH_S, "everything is handled")
        router.stop()
        records = read_all(nodes.direct, [topics.out(f"s{number}") for number in range(SUBSCRIBERS)])
    owed: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number, (region, price) in enumerate(events):
        matched = (wants(each) for each in range(region, SUBSCRIPTIONS, REGIONS))
        for name in {name for name, _, least in matched if price >= least}:
            owed[name, str(number % KEYS)].append(number)
    came: dict[tuple[str, str], list[int]] = defaultdict(list)
    seen: set[str] = set()
    repeats = 0
    for record in records:
        if delivery_id(record) in seen:
            repeats += 1
            continue
        seen.add(delivery_id(record))
        name = topics.named(record.place.topic)
        assert name is not None and record.key is not None
        came[name, record.key.decode()].append(json.loads(record.value or b"")["n"])
    print(
        f"\n{delivery}: {EVENTS:,} events, {SUBSCRIPTIONS:,} subscriptions, kills {dict(killed)} within "
        f"{kills_s:.0f} s: {len(seen):,} deliveries, {repeats:,} repeats"
    )
    assert came == owed
    assert repeats == 0 or delivery == "at-least-once"
