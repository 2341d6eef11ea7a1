"""Making and checking topics."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata, ConfigResource, NewTopic, ResourceType

from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import ClusterUnreachable, TopicFailed
from branchline.kafka.topics import OUT, TopicKind

REQUEST_TIMEOUT_S = 15.0
"""For one administrative request."""


_NO_ANSWER = {
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.NOT_CONTROLLER,
    KafkaError.NETWORK_EXCEPTION,
}
"""Failures of the moment, not of the topic."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A topic that is not as it should be."""

    topic: str
    what: str
    expected: str
    actual: str


def list_topics(cluster: Cluster, timeout_s: float = REQUEST_TIMEOUT_S) -> dict[str, int]:
    """The cluster's topics with their numbers of partitions."""
    return _list(cluster, cluster.admin(), timeout_s)


def _list(cluster: Cluster, admin: AdminClient, timeout_s: float) -> dict[str, int]:
    topics = _metadata(cluster, admin, timeout_s).topics
    return {name: len(topic.partitions) for name, topic in topics.items() if topic.error is None}


def _metadata(cluster: Cluster, admin: AdminClient, timeout_s: float) -> ClusterMetadata:
    try:
        return admin.list_topics(timeout=timeout_s)
    except KafkaException as error:
        raise _unreachable(cluster, error.args[0]) from None


def _unreachable(cluster: Cluster, reason: KafkaError) -> ClusterUnreachable:
    return ClusterUnreachable(
        f"no answer from Kafka at {cluster.bootstrap}: {reason.str()}",
        hint="start one with `branchline up`, or name yours with --bootstrap or BRANCHLINE_BOOTSTRAP",
    )


def create_topics(cluster: Cluster, wanted: Mapping[str, TopicKind]) -> dict[str, str]:
    """Make the topics that are missing; returns what failed, with the reason. Others stay as they are."""
    admin = cluster.admin()
    existing = _list(cluster, admin, REQUEST_TIMEOUT_S)
    # A replication factor of -1 takes the cluster's own default.
    missing = [
        NewTopic(name, kind.partitions, -1, config=kind.config())
        for name, kind in wanted.items()
        if name not in existing
    ]
    failed = {}
    if missing:
        for name, future in admin.create_topics(missing, request_timeout=REQUEST_TIMEOUT_S).items():
            try:
                future.result()
            except KafkaException as error:
                reason: KafkaError = error.args[0]
                if reason.code() in _NO_ANSWER:
                    raise _unreachable(cluster, reason) from None
                # Somebody else may have been faster: just what was wanted.
                if reason.code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    failed[name] = reason.str()
    return failed


def ensure_topics(cluster: Cluster, wanted: Mapping[str, TopicKind]) -> None:
    """Make the topics that are missing, all of them, or say which could not be made."""
    for name, reason in create_topics(cluster, wanted).items():
        raise TopicFailed(
            f"topic {name} could not be made: {reason}",
            hint="check the cluster's policies and your permissions, or make it by hand",
        )


def differences(cluster: Cluster, wanted: Mapping[str, TopicKind]) -> list[Difference]:
    """How the cluster's topics differ from what they should be."""
    admin = cluster.admin()
    existing = _list(cluster, admin, REQUEST_TIMEOUT_S)
    found = [Difference(name, "topic", "exists", "missing") for name in wanted if name not in existing]
    present = [name for name in wanted if name in existing]
    found += [
        Difference(name, "partitions", "1", str(existing[name]))
        for name in present
        # A subscriber may have as many as it likes; elsewhere one stands for one order.
        if wanted[name].partitions == 1 and existing[name] != 1 and wanted[name] is not OUT
    ]
    if not present:
        return found
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in present]
    for resource, future in admin.describe_configs(resources, request_timeout=REQUEST_TIMEOUT_S).items():
        actual = future.result()
        for entry, expected in wanted[resource.name].config().items():
            value = actual[entry].value
            if value != expected:
                found.append(Difference(resource.name, entry, expected, str(value)))
    return found


def message_limits(cluster: Cluster, topics: Collection[str]) -> dict[str, int]:
    """The bytes that each of these topics, as far as they are there, takes at once."""
    admin = cluster.admin()
    present = [name for name in _list(cluster, admin, REQUEST_TIMEOUT_S) if name in topics]
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in present]
    asked = admin.describe_configs(resources, request_timeout=REQUEST_TIMEOUT_S) if resources else {}
    return {each.name: int(future.result()["max.message.bytes"].value) for each, future in asked.items()}


def cluster_id(cluster: Cluster, timeout_s: float = REQUEST_TIMEOUT_S) -> str:
    """The id that the cluster gave itself."""
    return str(_metadata(cluster, cluster.admin(), timeout_s).cluster_id)
