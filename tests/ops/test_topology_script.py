"""The topology is changed by commands on real Kafka and Spark, while events flow."""

import random
from dataclasses import replace
from pathlib import Path

import pytest
from changing import Operator, Script, Town
from overlays import FULL
from pyspark.sql import SparkSession

from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import RequestRefused
from branchline.kafka.proposing import newest_topology, propose
from branchline.routing.overlay.topology import founded, link

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.timeout(1_800 if FULL else 800)]

SUBSCRIPTIONS, BURST = (50, 100) if FULL else (4, 20)
"""At home with each broker, and events published at once."""


def test_brokers_come_and_go_by_command_while_events_flow(
    spark: SparkSession, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    """A broker joins late, is linked twice over, another one leaves; nobody misses or repeats anything."""
    town = Town(spark, cluster, namespace, tmp_path / "checkpoints", 2, 500, ("a", "b", "c"))
    script = Script(
        town, Operator(town, tmp_path / "client.properties"), SUBSCRIPTIONS, BURST, 1.0, random.Random(7)
    )
    try:
        verdict = script.run(founded(["a", "b"], [link("a", "b")]))
        newest = newest_topology(cluster, town.topics)
        assert newest is not None
        with pytest.raises(RequestRefused, match="another operator's topology 6 stands"):
            propose(cluster, town.topics, replace(newest, links=(link("a", "c", 9),)), 30)
    finally:
        town.stop()
    print(f"{verdict.describe()}; {script.took_s}")
    assert verdict.clean, verdict.describe()
    assert verdict.owed > 100 and verdict.ordered > 5, verdict.describe()
    assert town.dead_letters() == []
