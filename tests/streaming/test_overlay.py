"""Several brokers in one router job, on real Kafka and Spark: the history of clients must be clean."""

import json
import random
from itertools import pairwise
from pathlib import Path

import pytest
from observing import Observer
from pyspark.sql import SparkSession
from routers import Site, ends, read_all, running

from branchline.kafka import headers as bl
from branchline.kafka.cluster import Cluster
from branchline.kafka.letters import decode_recorded
from branchline.routing.codes import Code, Rejection
from branchline.routing.control import Identity, Status
from branchline.routing.overlay.optimizing import TreeOptimizer
from branchline.routing.overlay.topology import Topology, founded, link
from branchline.routing.prefix import telling
from branchline.routing.prefix.header import Header, decode
from branchline.routing.prefix.optimizer import Settings
from branchline.routing.prefix.updates import Version
from branchline.routing.values import JsonValue

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

BROKERS = ("a", "b", "c", "d")
KINDS = ("flight", "hotel", "train", "ferry")
CITIES = ("BCN", "DUB", "IAD", "MAD")


def ring() -> Topology:
    """All four in a circle: one cycle, with two ways to the far side, one of which is shorter."""
    return founded(BROKERS, [link(*each) for each in pairwise(BROKERS)] + [link("a", "d", 2)])


def a_filter(draw: random.Random, spelling: str) -> str:
    kind, low = draw.choice(KINDS), draw.randrange(0, 900, 10)
    match spelling:
        case "sql":
            return f"type = '{kind}' AND price BETWEEN {low} AND {low + 100}"
        case "cesql":
            return f"type = '{kind}' AND price > {low} AND price < {low + 100}"
        case "cloudevents":
            return json.dumps(
                {"all": [{"exact": {"type": kind}}, {"prefix": {"origin": draw.choice("BDIM")}}]}
            )
        case _:
            return json.dumps({"type": [kind], "price": [{"numeric": [">=", low, "<", low + 100]}]})


SPELLINGS = ("sql", "cesql", "cloudevents", "eventbridge")


def an_event(draw: random.Random) -> dict[str, JsonValue]:
    return {"type": draw.choice(KINDS), "price": draw.randrange(1_000), "origin": draw.choice(CITIES)}


def a_key(draw: random.Random) -> str | None:
    return None if draw.random() < 0.1 else f"key-{draw.randrange(10)}"


def identities(count: int) -> dict[Identity, str]:
    """Four subscriptions for each subscriber, one in every spelling; subscribers have their homes in turn."""
    found = {}
    for number in range(count):
        subscriber, spelling = number // len(SPELLINGS), SPELLINGS[number % len(SPELLINGS)]
        home = BROKERS[subscriber % len(BROKERS)]
        found[Identity(home, f"{home}-{subscriber}", spelling)] = spelling
    return found


def tell_tree(site: Site) -> Version:
    """Tell the job of a Routing Tree made from what `filters` has now; its version."""
    told = (decode_recorded(record.value) for record in site.read(site.topics.filters) if record.value)
    changes = [each for each in told if not isinstance(each, Topology | Rejection)]
    updates = TreeOptimizer(1, Settings(threshold=0.0, limit_ms=0)).handle(1, changes)
    for update in updates:
        site.write(site.topics.rt_updates, telling.encode(update))
    site.flush()
    return updates[-1].version


def prefixes(site: Site) -> list[Header]:
    """What travelled with all copies."""
    records = read_all(site.cluster, [site.topics.broker(broker) for broker in BROKERS])
    found = [decode(bl.values(record.headers, bl.PREFIX)[0] or b"") for record in records]
    return [each for each in found if each is not None]


def test_four_brokers_with_a_cycle_give_everybody_what_they_are_owed(
    spark: SparkSession, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    """Subscriptions come and go, and the tree is told, while events are on their way between brokers."""
    draw = random.Random(4)
    site = Site(spark, cluster, namespace, tmp_path / "checkpoint", 2, 600, BROKERS, ring())
    observer = Observer(site)
    wanted = identities(100)
    with running(site):
        observer.await_in_force(
            [
                observer.subscribe(each, spelling, a_filter(draw, spelling))
                for each, spelling in wanted.items()
            ]
        )
        for number in range(1_200):
            observer.publish(draw.choice(BROKERS), a_key(draw), an_event(draw))
            if number % 20 == 0:
                identity = draw.choice(list(wanted))
                if draw.random() < 0.3:
                    observer.unsubscribe(identity)
                else:
                    observer.subscribe(identity, wanted[identity], a_filter(draw, wanted[identity]))
            if number % 100 == 99:
                observer.hear()
            if number == 500:
                version = tell_tree(site)
        observer.settle()
        site.write(site.topics.rt_updates, b"no update")
        observer.settle()
    verdict = observer.verdict()
    assert verdict.clean, verdict.describe()
    print(f"{len(site.counts)} calls of shards: {verdict.describe()}")
    assert verdict.owed > 1_000 and verdict.ordered > 1_000, verdict.describe()
    assert observer.count("content_matches") == observer.count("accepted") == 1_200
    copies = prefixes(site)
    assert len(copies) == observer.count("forwarded") == observer.count("passed") > 500
    assert max(copy.hops for copy in copies) == 2, "nobody is further away"
    assert version in {part.version for copy in copies for part in copy.prefix.parts}
    [letter] = site.dead_letters()
    assert (letter.code, letter.owed, letter.record.value) == (Code.CONTROL_INVALID, "nothing", b"no update")


def test_links_and_brokers_go_while_events_flow(
    spark: SparkSession, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    """A link is removed, then a broker leaves and is retired; nobody else misses or repeats anything."""
    draw = random.Random(5)
    site = Site(spark, cluster, namespace, tmp_path / "checkpoint", 2, 200, BROKERS, ring())
    observer = Observer(site)
    wanted = identities(32)

    def publish(*brokers: str) -> None:
        for _ in range(100):
            observer.publish(draw.choice(brokers), a_key(draw), an_event(draw))

    with running(site):
        observer.await_in_force(
            [
                observer.subscribe(each, spelling, a_filter(draw, spelling))
                for each, spelling in wanted.items()
            ]
        )
        publish(*BROKERS)
        observer.settle()
        publish(*BROKERS)
        unlinked = ring().unlinked("a", "b")
        observer.propose(unlinked)
        publish(*BROKERS)
        late = Identity("b", "b-late", "one")
        request = observer.subscribe(late, "sql", "price < 300")
        publish(*BROKERS)
        observer.await_in_force([request])

        leaving = unlinked.linked("a", "c").left("b")
        observer.propose(leaving, [late, *(each for each in wanted if each.home == "b")])
        publish(*BROKERS)
        observer.settle()
        publish("a", "c", "d")
        observer.propose(leaving.without("b"))
        publish("a", "c", "d")
        observer.settle()
        publish("a", "c", "d")
        observer.settle()
    verdict = observer.verdict()
    assert verdict.clean, verdict.describe()
    print(f"{len(site.counts)} calls of shards: {verdict.describe()}")
    assert verdict.owed > 200 and verdict.ordered > 5, verdict.describe()
    assert observer.count("content_matches") == observer.count("accepted") == 800
    assert [observer.answers[f"topology-{number}"] for number in (2, 4, 5)] == [[Status.ACCEPTED]] * 3
    assert site.dead_letters() == []
    assert site.counts[-1]["topology"] == 5


def test_mail_for_brokers_of_other_jobs_waits(
    spark: SparkSession, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    """A job that serves one of four brokers writes to topics of its neighbours, and to nobody else's."""
    site = Site(spark, cluster, namespace, tmp_path / "checkpoint", brokers=("a",), topology=ring())
    Observer(site).subscribe(Identity("a", "ann", "one"), "sql", "n > 0")
    site.flush()
    site.run_to_end()
    assert {ack.status for ack in site.acks()} == {Status.ACCEPTED}
    letters = ends(cluster, [site.topics.link(broker) for broker in BROKERS])
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
