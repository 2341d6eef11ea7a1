"""Two sites on two Kafka clusters, real routers and bridges: the history of all clients must be clean."""

from pathlib import Path

import pytest
from overlays import FULL
from pyspark.sql import SparkSession
from two_sites import Sizes, run_two_sites

from branchline.kafka.cluster import Cluster
from branchline.kafka.embedded import EmbeddedKafka

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(3_600 if FULL else 800),
]

SIZES = Sizes(subscriptions=200, events=5_000, down_s=60) if FULL else Sizes()


def test_two_sites_give_everybody_what_they_are_owed(
    spark: SparkSession, cluster: Cluster, elsewhere: EmbeddedKafka, namespace: str, tmp_path: Path
) -> None:
    """Subscriptions in all spellings come and go at both sites, and one cluster goes down and comes back.

    An event's content is matched once, where it enters. A copy crosses for each event that somebody beyond
    wants, and for no other but where a cover beyond holds for more than its filter.
    """
    elsewhere.start()
    figures = run_two_sites(spark, cluster, elsewhere, namespace, tmp_path, SIZES)
    verdict = figures.verdict
    assert verdict.clean, verdict.describe()
    assert verdict.owed > 100 and verdict.ordered > 100, verdict.describe()
    assert figures.accepted == figures.content_matches >= 200
    assert figures.wanted > 20 and figures.approximate > 0
