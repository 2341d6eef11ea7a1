"""What an operator sees of an overlay over several clusters, on real Kafka; jobs are played by hand."""

import json

import pytest

from branchline.kafka.admin import ensure_topics
from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import ConfigError, TopicMissing
from branchline.kafka.topics import Topics
from branchline.ops.sites import Sites
from branchline.routing.overlay.topology import Topology, founded

pytestmark = pytest.mark.kafka


def write(cluster: Cluster, topic: str, value: bytes, key: bytes) -> None:
    producer = cluster.producer(enable_idempotence=False, acks="all")
    producer.produce(topic, value, key)
    assert producer.flush(30) == 0


def test_sites_hear_jobs_on_all_clusters_that_answer(cluster: Cluster, namespace: str) -> None:
    """What jobs say is gathered by broker; a cluster that does not answer stops nobody."""
    topics = Topics(namespace)
    ensure_topics(cluster, topics.of_broker("a"))
    clusters = {"a": "here", "b": "eu", "c": "down", "d": "unnamed"}
    members = [each._replace(cluster=clusters[each.name]) for each in founded("abcd").members]
    topology = Topology(1, tuple(members))
    said = {
        "version": 1,
        "broker": "a",
        "brokers": ["a"],
        "cluster": "here",
        "state": "running",
        "at_ms": 2**42,
    }
    write(cluster, topics.stats, json.dumps({**said, "topologies": {"a": 1}}).encode(), b"router/a")
    for number in range(3):
        write(cluster, topics.entry("a"), str(number).encode(), b"k")
    # Both names lead to the one Kafka that there is.
    sites = Sites(cluster, topics, {"eu": cluster, "down": Cluster("127.0.0.1:1")})
    look = sites.look(topology)
    assert sites.here() == "here" and look.unseen == {"down", "unnamed"}
    assert (look.served["a"].cluster, look.served["a"].topology) == ("here", 1)
    assert sum(sites.ends("a", "here")[topics.entry("a")].values()) == 3
    assert sites.at("eu") is cluster
    with pytest.raises(ConfigError, match="'unnamed' is reached"):
        sites.at("unnamed")
    with pytest.raises(TopicMissing, match="tells of no topology"):
        sites.newest()
