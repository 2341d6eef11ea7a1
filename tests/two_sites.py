"""Two sites, each a Kafka cluster with a broker and a router, and bridges both ways: a run, and its figures.

The sizes are parameters, so that the same run is a test of seconds and a soak. What clients did and saw goes
into one history, which the checker judges; what crossed the link is compared with the naive evaluator.
"""

import itertools
import json
import random
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import overlays
from bridges import DEADLINE_S, by_partition, carrying
from observing import Observer
from overlays import CITIES, KINDS, SPELLINGS
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from routers import Site, ends, read_all
from waiting import wait_until

from branchline.kafka.bridge import Bridge
from branchline.kafka.cluster import Cluster
from branchline.kafka.embedded import EmbeddedKafka
from branchline.kafka.ends import Ends
from branchline.kafka.letters import decode_recorded
from branchline.kafka.proposing import newest_topology
from branchline.routing.checking import check
from branchline.routing.codes import Rejection
from branchline.routing.compiling import compile_expression
from branchline.routing.control import Identity, Status
from branchline.routing.evaluate import evaluate
from branchline.routing.event import Event
from branchline.routing.history import Entry, Settled, Steady, Verdict
from branchline.routing.overlay.optimizing import TreeOptimizer
from branchline.routing.overlay.topology import FIRST, Member, Topology, link
from branchline.routing.prefix import telling
from branchline.routing.prefix.optimizer import Settings
from branchline.routing.spellings import read_filter
from branchline.routing.values import JsonValue

SETTLE_DEADLINE_S = 240

BROKERS = ("dublin", "virginia")
"""Each on a cluster of its own, which has the same name."""

TOPOLOGY = Topology(
    FIRST, tuple(Member(name, at, name) for at, name in enumerate(BROKERS)), (link(*BROKERS),)
)


@dataclass(frozen=True)
class Sizes:
    """How much happens."""

    subscriptions: int = 24
    events: int = 400
    """In all; a quarter of them in each of the four parts of a run."""
    down_s: float = 0.0
    """How long one cluster is down beyond what its stop and start take."""
    batch: int = 2_000
    seed: int = 9


@dataclass
class Figures:
    """What a run came to."""

    verdict: Verdict
    accepted: int = 0
    """Events that entered before the outage, as the jobs count them."""
    content_matches: int = 0
    untold: int = 0
    """Copies that crossed before a tree was told: of every event, as all addresses are approximate then."""
    wanted: int = 0
    """Of the events with the tree told, those that match a filter beyond, as the naive evaluator says."""
    approximate: int = 0
    """Copies of them that crossed for an approximate address: a cover beyond holds, and no filter."""
    carried: dict[str, int] = field(default_factory=dict)
    restarts: int = 0
    revived: int = 0
    """How often a router had to be started again; the outage alone may take some."""
    waited_s: float = 0.0
    """From the cluster's return until nothing was on its way."""

    def describe(self) -> str:
        return (
            f"two sites: {self.verdict.describe()}\n"
            f"{self.accepted} events entered before the outage, {self.content_matches} content matches; "
            f"{self.untold} copies without a tree; with one {self.wanted} wanted beyond and "
            f"{self.approximate} for approximate addresses; records carried {self.carried}, "
            f"{self.restarts} restarts of bridges and {self.revived} of routers, "
            f"all caught up {self.waited_s:.1f} s after the return"
        )


def a_filter(draw: random.Random, spelling: str) -> str:
    """As elsewhere, but for patterns with a wildcard inside: their covers hold for more than they match."""
    if spelling != "eventbridge":
        return overlays.a_filter(draw, spelling)
    like, low = draw.choice(["M*D", "B*N", "I*D"]), draw.randrange(0, 900, 10)
    return json.dumps(
        {"type": [draw.choice(KINDS)], "origin": [{"wildcard": like}], "price": [{"numeric": [">=", low]}]}
    )


class TwoSites:
    """Both sites with their bridges, and one history of what clients did and saw at either."""

    def __init__(
        self, spark: SparkSession, clusters: Iterable[Cluster], namespace: str, folder: Path, batch: int
    ):
        self.sites = {
            name: Site(
                spark, cluster, namespace, folder / name, 2, batch, (name,), TOPOLOGY, cluster_name=name
            )
            for name, cluster in zip(BROKERS, clusters, strict=True)
        }
        self.history: list[Entry] = []
        self.observers = {name: Observer(site, self.history) for name, site in self.sites.items()}
        numbers = itertools.count(1)
        for observer in self.observers.values():
            observer.number_from(numbers)
        self.said: list[str] = []
        self.bridges = [self._bridge(*pair) for pair in (BROKERS, BROKERS[::-1])]
        self.entered: dict[int, tuple[str, dict[str, JsonValue]]] = {}
        """Where each event entered, and what it says."""
        self.revived = 0

    def _bridge(self, source: str, target: str) -> Bridge:
        clusters = {name: site.cluster for name, site in self.sites.items()}
        namespace = self.sites[source].namespace
        return Bridge(Ends(source, clusters[source], target, clusters[target], namespace), self.said.append)

    @contextmanager
    def running(self) -> Iterator[None]:
        with ExitStack() as stack:
            for site in self.sites.values():
                stack.callback(site.stop)
                site.start()
            for bridge in self.bridges:
                stack.enter_context(carrying(bridge))
            try:
                yield
            except BaseException:
                print("\n".join(self.said))  # a bridge that has ended says so here
                raise

    def publish(self, at: str, draw: random.Random) -> None:
        event: dict[str, JsonValue] = {
            "type": draw.choice(KINDS), "price": draw.randrange(1_000), "origin": draw.choice(CITIES)
        }  # fmt: skip
        key = None if draw.random() < 0.1 else f"key-{draw.randrange(10)}"
        self.entered[self.observers[at].publish(at, key, event)] = (at, event)

    def subscribe(self, identity: Identity, spelling: str, text: str) -> str:
        return self.observers[identity.home].subscribe(identity, spelling, text)

    def await_in_force(self, requests: Iterable[tuple[str, str]]) -> None:
        """Return when all these requests, each given with its home, are in force."""
        waiting = set(requests)
        self.flush()

        def are_in_force() -> bool:
            self.revive()
            for home, observer in self.observers.items():
                observer.hear()
                heard = {(home, each) for each, said in observer.answers.items() if Status.IN_FORCE in said}
                waiting.difference_update(heard)
            return not waiting

        wait_until(are_in_force, SETTLE_DEADLINE_S, "subscriptions come into force")

    def flush(self) -> None:
        for site in self.sites.values():
            site.flush()

    def revive(self) -> None:
        """Start routers again that have ended, as a job does: because a cluster, or a worker, went away."""
        for site in self.sites.values():
            if site.query is None or not site.query.isActive:
                self.revived += 1
                site.start()

    def settle(self) -> None:
        """Return when nothing is on its way anywhere, and all that was delivered is read."""
        self.flush()
        wait_until(self._is_settled, SETTLE_DEADLINE_S, "nothing is on its way any more")
        for observer in self.observers.values():
            observer.hear()
            observer.take()
        self.history += [Settled(), Steady()]

    def _is_settled(self) -> bool:
        """Let everybody handle what is there; whether nothing has come of it."""
        before = self._ends()
        try:
            self.revive()
            for site in self.sites.values():
                site.settle()
        except StreamingQueryException:
            return False
        for bridge in self.bridges:
            self._await_carried(bridge)
        return self._ends() == before

    def _ends(self) -> list[dict[tuple[str, int], int]]:
        return [ends(site.cluster, self._inputs(site)) for site in self.sites.values()]

    def _inputs(self, site: Site) -> list[str]:
        topics = site.topics
        mail = [topic for name in BROKERS for topic in topics.of_neighbour(name)]
        return [*mail, *map(topics.entry, site.brokers), topics.control, topics.rt_updates]

    def _await_carried(self, bridge: Bridge) -> None:
        source, target = bridge.ends.source_name, bridge.ends.target_name
        topics = self.sites[source].topics
        there = ends(bridge.ends.source, [*topics.of_neighbour(target), topics.rt_updates])

        def carried() -> bool:
            return all(bridge.positions.get(each, -1) >= end for each, end in there.items())

        wait_until(carried, DEADLINE_S, f"the bridge from {source} carries {there}: {self.said[-5:]}")

    def tell_tree(self) -> None:
        """Tell both jobs of a Routing Tree made from what the first one's `filters` has now."""
        site = self.sites[BROKERS[0]]
        told = (decode_recorded(record.value) for record in site.read(site.topics.filters) if record.value)
        changes = [each for each in told if not isinstance(each, Topology | Rejection)]
        for update in TreeOptimizer(1, Settings(threshold=0.0, limit_ms=0)).handle(1, changes):
            site.write(site.topics.rt_updates, telling.encode(update))

    def copies(self) -> dict[str, list[int]]:
        """The events on each broker's `broker` topic, as its own cluster has them."""
        return {
            name: [
                json.loads(record.value or b"")["n"]
                for record in read_all(site.cluster, [site.topics.broker(name)])
            ]
            for name, site in self.sites.items()
        }

    def count(self, name: str) -> int:
        return sum(observer.count(name) for observer in self.observers.values())


def run_two_sites(
    spark: SparkSession,
    cluster: Cluster,
    elsewhere: EmbeddedKafka,
    namespace: str,
    folder: Path,
    sizes: Sizes = Sizes(),  # noqa: B008
) -> Figures:
    """Subscriptions and events at both; then changes between; then one cluster goes down and comes back."""
    draw = random.Random(sizes.seed)
    quarter = sizes.events // 4
    both = TwoSites(spark, [cluster, Cluster(elsewhere.bootstrap)], namespace, folder, sizes.batch)
    filters: dict[Identity, tuple[str, str]] = {}
    for number in range(sizes.subscriptions):
        subscriber, spelling = number // len(SPELLINGS), SPELLINGS[number % len(SPELLINGS)]
        home = BROKERS[subscriber % len(BROKERS)]
        filters[Identity(home, f"{home}-{subscriber}", spelling)] = (spelling, a_filter(draw, spelling))
    figures = Figures(Verdict())

    def publish(count: int, *at: str) -> None:
        for _ in range(count):
            both.publish(draw.choice(at), draw)

    with both.running():
        requests = [(each.home, both.subscribe(each, *said)) for each, said in filters.items()]
        both.await_in_force(requests)

        publish(quarter, *BROKERS)
        both.settle()
        copies = both.copies()
        for name, found in copies.items():
            assert set(found) == {n for n, (at, _) in both.entered.items() if at != name}
        figures.untold = sum(len(set(found)) for found in copies.values())

        both.tell_tree()
        both.settle()
        seen = set(both.entered)
        publish(quarter, *BROKERS)
        both.settle()
        _compare(both, filters, seen, figures)
        figures.accepted, figures.content_matches = both.count("accepted"), both.count("content_matches")
        if not both.revived:  # a batch that is run again is counted again
            assert both.count("forwarded") == both.count("passed") == sum(map(len, both.copies().values()))

        for number in range(quarter):
            publish(1, *BROKERS)
            if number % 10 == 0:
                identity = draw.choice(list(filters))
                if draw.random() < 0.3:
                    both.observers[identity.home].unsubscribe(identity)
                else:
                    spelling = filters[identity][0]
                    both.subscribe(identity, spelling, a_filter(draw, spelling))
            if number % 100 == 99:
                for observer in both.observers.values():
                    observer.hear()

        here = BROKERS[0]
        publish(quarter // 2, *BROKERS)
        both.flush()
        elsewhere.stop()
        publish(quarter // 4, here)
        late = Identity(here, f"{here}-late", "one")
        request = both.subscribe(late, "sql", "price < 500")
        publish(quarter // 4, here)
        both.sites[here].flush()
        threading.Event().wait(sizes.down_s)  # not for a condition: so long it is to be down
        elsewhere.start()
        returned_s = time.monotonic()
        both.settle()
        figures.waited_s = time.monotonic() - returned_s
        both.await_in_force([(here, request)])
        publish(quarter // 4, *BROKERS)
        both.settle()
        assert newest_topology(cluster, both.sites[here].topics) == TOPOLOGY
        _check_carried(both)
    figures.verdict = check(both.history, repeats="allowed")
    figures.carried = {bridge.ends.name: bridge.counts["records"] for bridge in both.bridges}
    figures.revived = both.revived
    figures.restarts = sum(bridge.restarts for bridge in both.bridges)
    print(figures.describe())
    return figures


def _compare(
    both: TwoSites, filters: dict[Identity, tuple[str, str]], before: set[int], figures: Figures
) -> None:
    """Compare the copies that crossed with what the naive evaluator says of the filters beyond."""
    for name, found in both.copies().items():
        crossed = [n for n in found if n not in before]
        assert len(crossed) == len(set(crossed)) or both.revived, "a copy came twice"
        beyond = [read_filter(*said) for identity, said in filters.items() if identity.home == name]
        covers = []
        for expression in beyond:
            assert not isinstance(expression, Rejection)
            compiled = compile_expression(expression)
            assert not isinstance(compiled, Rejection)
            covers.append(compiled.cover)
        wanted, allowed = set(), set()
        for n, (at, attributes) in both.entered.items():
            if n in before or at == name:
                continue
            if any(evaluate(each, attributes) is True for each in beyond):  # type: ignore[arg-type]
                wanted.add(n)
            if any(Event(attributes).may_match(cover) for cover in covers):
                allowed.add(n)
        assert wanted <= set(crossed), f"missed beyond: {sorted(wanted - set(crossed))[:5]}"
        assert set(crossed) == allowed, "what crossed is what the covers beyond hold for"
        figures.wanted += len(wanted)
        figures.approximate += len(allowed - wanted)


def _check_carried(both: TwoSites) -> None:
    """What a bridge has carried is at its target what it was at its source, record by record."""
    for bridge in both.bridges:
        source, target = both.sites[bridge.ends.source_name], both.sites[bridge.ends.target_name]
        topics = [*source.topics.of_neighbour(bridge.ends.target_name)]
        sent, came = (by_partition(read_all(site.cluster, topics)) for site in (source, target))
        # A broker writes to its own link too; nobody else writes to what was carried here.
        assert sent == came, f"{bridge.ends.name}: {bridge.counts}"
