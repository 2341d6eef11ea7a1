"""The topology that a job begins with is recorded on `filters`: bridges go by what stands there."""

from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import PublishFailed
from branchline.kafka.letters import TOPOLOGY_KEY, decode_recorded, encode_recorded
from branchline.kafka.listing import NO_NAMESPACE
from branchline.kafka.reading import read_to_end
from branchline.kafka.topics import Topics
from branchline.routing.overlay.topology import Topology

FLUSH_TIMEOUT_S = 30.0


def newest_topology(cluster: Cluster, topics: Topics) -> Topology | None:
    """The newest topology that `filters` has, if it has one."""
    records = read_to_end(cluster, topics.filters, hint=NO_NAMESPACE)
    told = [decode_recorded(record.value) for record in records if record.key == TOPOLOGY_KEY]
    return max(
        (each for each in told if isinstance(each, Topology)), key=lambda each: each.order, default=None
    )


def record_first(cluster: Cluster, topics: Topics, topology: Topology) -> None:
    """Record the topology unless one as new stands there: on a compacted topic, the last record counts."""
    standing = newest_topology(cluster, topics)
    if standing is not None and standing.order >= topology.order:
        return
    failures: list[str] = []
    producer = cluster.producer(message_timeout_ms=int(FLUSH_TIMEOUT_S * 1000))
    key, value = encode_recorded(topology)
    producer.produce(
        topics.filters,
        value,
        key,
        on_delivery=lambda error, _: failures.append(error.str()) if error else None,
    )
    if producer.flush(FLUSH_TIMEOUT_S) or failures:
        reason = failures[0] if failures else "no answer from Kafka"
        raise PublishFailed(f"the topology was not recorded: {reason}", hint="check the cluster")
