"""Methods on real Kafka and Spark: each does what it is there for, and a job goes on with others.

Small for every day, every name once; with `BRANCHLINE_TEST_METHODS=full`, which is `make soak-methods`, any
two names together on eight brokers.
"""

import os
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from every_method import every_name_once, every_pair
from observing import Observer
from overlays import EXACT, a_filter, a_key, an_event, copies, identities
from pyspark.sql import SparkSession
from routers import Site, running

from branchline.kafka.cluster import Cluster
from branchline.ops.overlay import small_overlay
from branchline.routing.methods.choosing import KINDS, spelled
from branchline.routing.methods.naming import Methods
from branchline.routing.overlay.topology import founded, link

FULL = os.environ.get("BRANCHLINE_TEST_METHODS") == "full"

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.timeout(7_200 if FULL else 600)]

NAMES = ("a", "b", "c")
PREFIX, REMATCH, TABLE = Methods(), Methods("rematch"), Methods("rematch", "table")
LINE = founded(NAMES, [link(*each) for each in pairwise(NAMES)])


def test_a_job_goes_on_with_other_methods_while_copies_are_on_their_way(
    spark: SparkSession, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    """It is stopped with copies of one method unread, and started with another: all come, once."""
    draw = random.Random(5)
    site = Site(spark, cluster, namespace, tmp_path / "checkpoint", 2, 1_000, NAMES, LINE, methods=REMATCH)
    observer = Observer(site)
    wanted = identities(NAMES, 6, 18, spellings=EXACT)
    with running(site):
        requests = [observer.subscribe(each, wanted[each], a_filter(draw, wanted[each])) for each in wanted]
        observer.await_in_force(requests)

    def passed() -> int:
        return sum(each["passed"] for each in site.counts)

    for methods in (PREFIX, TABLE):
        for _ in range(40):
            observer.publish(draw.choice(NAMES), a_key(draw), an_event(draw))
        site.flush()
        # It ends by itself when it has handled what is there now, and not what it writes meanwhile.
        site.run_to_end()
        assert len(copies(site)) > passed(), "copies are on their way"
        site.methods = methods
    with running(site):
        observer.settle()
    verdict = observer.verdict(repeats="none")
    assert verdict.clean, verdict.describe()
    assert verdict.owed > 40
    found = copies(site)
    assert len(found) == passed()
    assert {bool(header.prefix.parts) for _, header in found} == {False, True}, "of both methods"
    assert observer.count("accepted") == 80
    assert observer.count("content_matches") + observer.count("afresh_matches") > 80, (
        "matched where they came"
    )


Moved = Callable[[Counter[str]], bool]

OWN: Mapping[str, Moved] = {
    "prefix": lambda counts: counts["passed"] > 0 == counts["afresh_matches"],
    "rematch": lambda counts: counts["afresh_matches"] == counts["passed"] > 0,
    "always-reuse": lambda counts: counts["keys_used"] > 0 < counts["lists_complete"],
    "partial-reuse": lambda counts: counts["keys_used"] > 0,
    "bloom": lambda counts: counts["bloom_found"] > 0 < counts["bloom_led"],
    "bloom-sbstree": lambda counts: counts["bloom_found"] > 0 < counts["bloom_led"],
    "tree": lambda counts: counts["content_matches"] > 0,  # under prefix it counts nothing of its own
    "table": lambda counts: counts["filters_asked"] > 0,
    "counting": lambda counts: counts["constraints_counted"] > 0,
    "access": lambda counts: counts["access_hits"] > 0,
    "kd": lambda counts: counts["kd_visited"] > 0,
    "boolean": lambda counts: counts["trees_evaluated"] > 0,
    "covering": lambda counts: counts["filters_hidden"] > 0,
    "merging": lambda counts: counts["filters_merged"] > 0,
    "imperfect": lambda counts: counts["filters_merged_imperfectly"] > 0,
    "replace": lambda counts: counts["predicates_replaced"] > 0,
    "prune": lambda counts: counts["predicates_pruned"] > 0,
    "prune-time": lambda counts: counts["predicates_pruned"] > 0,
    "prune-precision": lambda counts: counts["predicates_pruned"] > 0,
}
"""What shows that a method is at work: a count that another one would leave alone."""


def test_every_method_has_a_count_that_shows_it() -> None:
    """Whoever adds a method says here how it is seen; who is told of what has tests of its own."""
    told = KINDS["dissemination"]
    assert OWN.keys() == {name for names in KINDS.values() for name in names if name not in told}
    rows = every_pair() if FULL else every_name_once()
    assert {each for methods in rows for each in parts(methods)} == OWN.keys()


def parts(methods: Methods) -> list[str]:
    """The names, without their numbers."""
    return [each.partition("(")[0] for each in (methods.forwarding, methods.matching, *methods.optimise)]


ROWS_OF_A_JOB = 8
"""Methods that one job goes through, of whose history every event is judged by every subscription."""


def _jobs() -> list[list[Methods]]:
    rows = every_pair() if FULL else every_name_once()
    size = ROWS_OF_A_JOB if FULL else len(rows)
    return [rows[start : start + size] for start in range(0, len(rows), size)]


@pytest.mark.parametrize("rows", _jobs(), ids=lambda rows: spelled(rows[0]))
def test_every_method_is_right_on_real_jobs_and_does_its_work(
    rows: Sequence[Methods], spark: SparkSession, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    """One job, started anew with each of them: their counts have moved, and in the end its history is clean.

    Events are routed as batches and one by one, in turns.
    """
    draw = random.Random(9)
    topology = small_overlay(8, "main") if FULL else LINE
    names = tuple(member.name for member in topology.members)
    events, subscriptions = (400, 600) if FULL else (24, 120)
    site = Site(spark, cluster, namespace, tmp_path / "checkpoint", 1, 1_000, names, topology)
    observer = Observer(site)
    wanted = identities(names, subscriptions // 10, subscriptions)
    requests = [observer.subscribe(each, wanted[each], a_filter(draw, wanted[each])) for each in wanted]
    for number, methods in enumerate(rows):
        site.methods, site.counts = replace(methods, batches_from=None if number % 2 else 0), []
        with running(site):
            observer.await_in_force(requests)
            for _ in range(events):
                observer.publish(draw.choice(names), a_key(draw), an_event(draw))
            observer.settle()
        counts = site.counted()
        assert counts["content_matches"] == counts["accepted"] == events
        still = [name for name in parts(methods) if not OWN[name](counts)]
        assert still == [], f"{spelled(methods)}: {counts}"
    verdict = observer.verdict(repeats="none")
    print(f"\n{', '.join(map(spelled, rows))}: {verdict.describe()}")
    assert verdict.clean, verdict.describe()
