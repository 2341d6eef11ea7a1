"""Methods on real Kafka and Spark: a job that is started anew with others."""

import random
from itertools import pairwise
from pathlib import Path

import pytest
from observing import Observer
from overlays import EXACT, a_filter, a_key, an_event, copies, identities
from pyspark.sql import SparkSession
from routers import Site, running

from branchline.kafka.cluster import Cluster
from branchline.routing.methods.naming import Methods
from branchline.routing.overlay.topology import founded, link

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.timeout(300)]

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
    assert observer.count("content_matches") == observer.count("accepted") == 80
