"""Who is told of which filter, on real Kafka and Spark: each strategy does what it is there for.

Small for every day, every name once; with `BRANCHLINE_TEST_STRATEGIES=full`, which is `make soak-strategies`,
every strategy with every way to forward, on eight brokers.
"""

import json
import os
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest
from click.testing import CliRunner, Result
from every_method import EVERY_STRATEGY
from observing import Observer
from overlays import a_filter, a_key, an_event, identities
from pyspark.sql import SparkSession
from routers import Site, running, supervised

from branchline.kafka import fixed_sets, helping
from branchline.kafka.client import Publisher
from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import CheckpointDiffers
from branchline.kafka.fixed_sets import FixedSets
from branchline.kafka.topics import Topics
from branchline.ops import advertising, assist, refresh, subscribing
from branchline.ops.cli import main
from branchline.ops.overlay import small_overlay
from branchline.ops.volunteering import volunteering
from branchline.routing.codes import Code
from branchline.routing.control import Status
from branchline.routing.dissemination.strategies import ADVERTISED, COUNTED, NAMES, parts_of
from branchline.routing.filters import Filter
from branchline.routing.methods.naming import Methods, misfit
from branchline.routing.offloading.messages import Answer, Assignment, Between, Claimed, Task
from branchline.routing.overlay.topology import founded, link
from branchline.streaming import job
from branchline.streaming.job import RouterJob

FULL = os.environ.get("BRANCHLINE_TEST_STRATEGIES") == "full"

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.timeout(7_200 if FULL else 600)]

LINE = founded(("a", "b", "c"), [link("a", "b"), link("b", "c", 2)])

OWN: Mapping[str, Callable[[Counter[str]], bool]] = {
    "simple": lambda counts: counts["told_identical"] > 0,
    "identity": lambda counts: counts["told_identical"] > 0,
    "covering": lambda counts: counts["told_covered"] > 0,
    "cbcb": lambda counts: counts["told_inflated"] > 0,
    "poset": lambda counts: counts["table_placed"] > 0,
    "rto": lambda counts: counts["slices_offloaded"] > 0 and counts["answers_taken"] > 0,
    "ff": lambda counts: counts["filters_claimed"] > 0,
    "merging": lambda counts: counts["told_merged"] > 0,
    "imperfect": lambda counts: counts["told_merged_imperfectly"] > 0,
    "pre-prune": lambda counts: counts["told_pruned"] > 0,
}
"""What shows that a strategy is at work."""


def jobs() -> list[list[Methods]]:
    """What each job goes through: with each forwarding every strategy, or every name once."""
    forwardings = ["prefix", "rematch", "partial-reuse"]
    made = [[(one, other) for other in EVERY_STRATEGY] for one in forwardings]
    several = made if FULL else [_once(forwardings)]
    methods = [
        [Methods(one, "tree" if one == "prefix" else "table", other) for one, other in rows]
        for rows in several
    ]
    return [[each for each in rows if misfit(each) is None] for rows in methods]


def _once(forwardings: list[str]) -> list[tuple[str, str]]:
    return [(forwardings[at % len(forwardings)], each) for at, each in enumerate(EVERY_STRATEGY)]


def test_every_strategy_has_a_count_that_shows_it() -> None:
    """Whoever adds one says here how it is seen; of advertisements, `tests/ops/simulation` does."""
    assert OWN.keys() == set(NAMES) - {ADVERTISED, COUNTED}
    assert {name for rows in jobs() for each in rows for name in names(each)} == OWN.keys()


def names(methods: Methods) -> list[str]:
    return [part.partition("(")[0] for part in parts_of(methods.dissemination)]


@pytest.mark.parametrize("several", jobs(), ids=lambda several: several[0].forwarding)
def test_every_strategy_is_right_on_real_jobs_and_does_its_work(
    several: Sequence[Methods], spark: SparkSession, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    """One job, started anew with each, while subscriptions change and at last a link: always clean."""
    draw = random.Random(9)
    topology = small_overlay(8, "main") if FULL else LINE
    brokers = tuple(member.name for member in topology.members)
    events, subscriptions = (300, 400) if FULL else (24, 60)
    site = Site(spark, cluster, namespace, tmp_path / "checkpoint", 2, 1_000, brokers, topology)
    site.methods = several[0]
    observer = Observer(site)
    wanted = identities(brokers, subscriptions // 6, subscriptions)
    for number, methods in enumerate(several):
        site.methods, site.counts = replace(methods, batches_from=None if number % 2 else 0), []
        helpers = brokers if "rto" in names(methods) else ()
        with running(site), volunteering(cluster, namespace, helpers) as done:
            site.settle()
            is_fixed = "ff" in names(methods)
            observer.fixed_sets = FixedSets(cluster, Topics(namespace)) if is_fixed else None
            some = list(wanted) if number == 0 else draw.sample(list(wanted), subscriptions // 3)
            requests = [observer.subscribe(each, wanted[each], a_filter(draw, wanted[each])) for each in some]
            observer.await_in_force(requests)
            for place in range(events):
                observer.publish(draw.choice(brokers), a_key(draw), an_event(draw))
                if place % 6 == 5:
                    observer.unsubscribe(draw.choice(some))
            if methods is several[-1]:
                observer.propose(topology.linked(brokers[0], brokers[-1]))
                for _ in range(events):
                    observer.publish(draw.choice(brokers), a_key(draw), an_event(draw))
            observer.settle()
        verdict = observer.verdict(repeats="none")
        counts = site.counted()
        print(f"\n{methods.forwarding}, {methods.dissemination}: {verdict.describe()}")
        assert verdict.clean, f"{methods.dissemination}: {verdict.describe()}"
        assert bool(done) == bool(helpers)
        still = [name for name in names(methods) if not OWN[name](counts)]
        assert still == [], f"{methods.dissemination}: {counts}"


def test_a_job_that_knows_all_does_not_go_on_along_a_tree(
    spark: SparkSession, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    """Nor the other way round: it is refused before anything happens, with what to do."""
    site = Site(spark, cluster, namespace, tmp_path / "checkpoint", 1, 1_000, ("a",), founded(["a"]))
    with running(site):
        site.subscribe("ann", "x = 1", home="a")
    site.methods = Methods(dissemination="covering")
    with pytest.raises(CheckpointDiffers, match="all subscriptions of other homes") as refused:
        site.start()
    assert "branchline rebuild" in (refused.value.hint or "")


def test_what_is_advertised_goes_where_it_is_wanted_and_nothing_else_is_let_in(
    spark: SparkSession, cluster: Cluster, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From client and command to Kafka and back: refused before it is advertised, and after its end."""
    monkeypatch.setattr(advertising, "find_cluster", lambda *_: cluster)
    site = Site(spark, cluster, namespace, tmp_path / "checkpoint", 2, 1_000, ("a", "b", "c"), LINE)
    site.methods = Methods("rematch", "table", "covering+advertised")
    publisher = Publisher(cluster, namespace=namespace, broker="a", name="shop")
    values = [b'{"price": %d}' % price for price in (1, 2, 30)]

    def advertised(*arguments: str) -> list[str]:
        line = [*arguments, "--namespace", namespace, "--json"]
        result = CliRunner().invoke(main, line, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return [json.loads(each)["status"] for each in result.stdout.splitlines()]

    with running(site):
        site.subscribe("ann", "price < 10", home="c")
        site.publish(values[0], at="a")
        site.flush()
        site.settle()
        said = publisher.advertise("price < 20", timeout_s=60)
        assert said is not None and said.status is Status.IN_FORCE
        for value in values[1:]:
            site.publish(value, at="a")
        assert site.delivered("ann") == [values[1]]
        dear = advertised("advertise", "shop", "price > 20", "--id", "dear", "--broker", "a")
        assert dear[-1] == "in-force"
        site.publish(values[2], at="a")
        ended = publisher.unadvertise(timeout_s=60)
        assert ended is not None and ended.status is Status.ENDED
        site.publish(values[1], at="a")
        assert site.delivered("ann") == [values[1]]
    letters = [(letter.code, letter.record.value) for letter in site.dead_letters()]
    assert letters == [(Code.NOT_ADVERTISED, values[at]) for at in (0, 2, 1)]


def test_tables_that_only_grow_shrink_when_an_operator_asks(
    spark: SparkSession, cluster: Cluster, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What nobody wants any more goes on crossing links until a refresh."""
    for command in (refresh, assist, subscribing):
        monkeypatch.setattr(command, "find_cluster", lambda *_: cluster)
    site = Site(spark, cluster, namespace, tmp_path / "checkpoint", 1, 1_000, ("a", "b", "c"), LINE)
    site.methods = Methods("rematch", "table", "cbcb")
    with running(site):
        site.subscribe("ann", "x = 1", home="c")
        site.unsubscribe("ann", home="c")
        site.publish(b'{"x": 1}', at="a")
        site.flush()
        site.settle()
        sent = sum(counts["forwarded"] for counts in site.counts)
        assert sent > 0, "it is told nobody that she has left"
        line = ["refresh", "a", "--namespace", namespace, "--json"]
        result = CliRunner().invoke(main, line, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        assert json.loads(result.stdout.splitlines()[-1])["status"] == "refreshed"
        site.publish(b'{"x": 1}', at="a")
        site.flush()
        site.settle()
        assert sum(counts["forwarded"] for counts in site.counts) == sent
        line = ["assist", "ann", "--home", "c", "--namespace", namespace, "--json"]
        result = CliRunner().invoke(main, line)
        assert result.exit_code == 5, "nobody works for brokers by this dissemination"
        assert "covering+rto" in result.output
        line = ["subscribe", "ann", "x = 2", "--home", "c", "--claim", "--namespace", namespace, "--json"]
        result = CliRunner().invoke(main, line)
        assert result.exit_code == 5, "nor does anybody give out a fixed set"
        assert "covering+ff" in result.output


def test_a_subscriber_works_by_command_and_lies_change_nothing(
    spark: SparkSession, cluster: Cluster, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it claims is refuted; who subscribes gets what matches, and the command says what it has done."""
    monkeypatch.setattr(assist, "find_cluster", lambda *_: cluster)
    monkeypatch.setattr(helping, "answer", everything_is_related)
    site = Site(spark, cluster, namespace, tmp_path / "checkpoint", 2, 1_000, ("a", "b", "c"), LINE)
    site.methods = Methods("rematch", "table", "covering+rto(1)")
    line = ["assist", "liar", "--home", "c", "--for-ms", "3000", "--namespace", namespace, "--json"]
    results: list[Result] = []
    with running(site):
        site.subscribe("ann", "x = 1", home="c")
        worker = Thread(target=lambda: results.append(CliRunner().invoke(main, [*line, "--seconds", "15"])))
        worker.start()
        bob = 0
        while not sum(counts.get("answers_taken", 0) for counts in site.counts):
            bob += 1
            site.subscribe("bob", f"x = {1 + bob}", id=f"b{bob}", home="c")
        site.publish(b'{"x": 2}', at="a")
        site.publish(b'{"x": 1}', at="a")
        assert site.delivered("bob") == [b'{"x": 2}']
        assert site.delivered("ann") == [b'{"x": 1}']
        worker.join()
    assert sum(counts.get("claims_refuted", 0) for counts in site.counts) > 0
    (result,) = results
    assert result.exit_code == 0, result.output
    *tasks, last = map(json.loads, result.stdout.splitlines())
    assert last == {"subscriber": "liar", "home": "c", "tasks": len(tasks)} and tasks


def test_a_lone_subscription_waits_for_no_other(
    spark: SparkSession, cluster: Cluster, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody asks for anything else, and its round begins all the same, soon."""
    monkeypatch.setattr(job, "TICK_EVERY_S", 3_600)
    site = Site(spark, cluster, namespace, tmp_path / "checkpoint", 2, 1_000, ("a", "b", "c"), LINE)
    site.methods = Methods("rematch", "table", "covering+rto(10)")
    with supervised(RouterJob(spark, site.config(), print)):
        site.subscribe("ann", "x = 1", home="c")
        with volunteering(cluster, namespace, ["c"], for_ms=600_000) as done:
            site.subscribe("bob", "x = 2", home="c")
            assert done, "somebody has compared the two"


def everything_is_related(task: Task, client: str, _: object) -> Answer:
    """All filters of the slice cover each new one."""
    every = tuple(each.number for each in task.table)
    nothing = tuple(() for _ in task.batch)
    order = tuple(Between((), ()) for _ in task.batch)
    return Answer(task.round, task.slice, client, tuple(every for _ in task.batch), nothing, order)


def test_subscriptions_claim_their_places_by_command_and_lies_change_nothing(
    spark: SparkSession, cluster: Cluster, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A true claim spares tests, a false one is refuted; either gets what matches, from the other end."""
    monkeypatch.setattr(subscribing, "find_cluster", lambda *_: cluster)
    site = Site(spark, cluster, namespace, tmp_path / "checkpoint", 2, 1_000, ("a", "b", "c"), LINE)
    site.methods = Methods("rematch", "table", "covering+ff(8)")

    def subscribe(name: str, filter_: str, *more: str) -> Result:
        line = ["subscribe", name, filter_, "--home", "c", "--claim", "--namespace", namespace, "--json"]
        return CliRunner().invoke(main, [*line, *more])

    with running(site):
        site.subscribe("ann", "x < 10", home="c")
        site.subscribe("eve", "y = 1", home="c")
        told = subscribe("bob", "x < 5")
        assert told.exit_code == 0, told.output
        monkeypatch.setattr(fixed_sets, "claimed", everything_is_above)
        lied = subscribe("cat", "x < 20")
        assert lied.exit_code == 0, lied.output
        for x in (1, 7, 15):
            site.publish(b'{"x": %d}' % x, at="a")
        delivered = {name: Counter(site.delivered(name)) for name in ("ann", "bob", "cat", "eve")}
    values = [b'{"x": %d}' % x for x in (1, 7, 15)]
    owed = {"ann": values[:2], "bob": values[:1], "cat": values, "eve": []}
    assert delivered == {name: Counter(each) for name, each in owed.items()}

    def counted(name: str) -> int:
        return sum(counts.get(name, 0) for counts in site.counts)

    assert counted("filters_claimed") == 2 and counted("claims_refuted") > 0
    assert counted("sets_given") == 2 and counted("told_covered") > 0


def everything_is_above(assignment: Assignment, cover: Sequence[Filter], _: object) -> Claimed:
    """Every filter of the set covers each of the subscription."""
    every = Between(tuple(range(len(assignment.filters))), ())
    return Claimed(assignment.version, tuple(every for _ in cover))
