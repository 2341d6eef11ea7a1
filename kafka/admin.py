"""Making and checking topics."""

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    ClusterMetadata,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import ClusterUnreachable, TopicFailed
from branchline.kafka.topics import OUT, RT_UPDATES, TopicKind

REQUEST_TIMEOUT_S = 15.0
"""For one administrative request."""

REMOVED_CHECK_S = 0.05
"""How often a topic that is being removed is looked for."""


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


def create_topics(
    cluster: Cluster, wanted: Mapping[str, TopicKind], *, removed_lately: bool = False
) -> dict[str, str]:
    """Make the topics that are missing; returns what failed, with the reason. Others stay as they are.

    If some may have been removed lately, those that seem to be there are asked for too: a server's list may
    be old, and whoever makes topics knows better.
    """
    admin = cluster.admin()
    existing = _list(cluster, admin, REQUEST_TIMEOUT_S)
    missing = [
        NewTopic(name, kind.partitions, kind.replication, config=kind.config())
        for name, kind in wanted.items()
        if removed_lately or name not in existing
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
                # Somebody else may have been faster: just what was wanted. And who may not make topics can
                # still use those that are there.
                if reason.code() != KafkaError.TOPIC_ALREADY_EXISTS and name not in existing:
                    failed[name] = reason.str()
    return failed


def remove_topics(cluster: Cluster, names: Collection[str]) -> dict[str, str]:
    """Remove the topics that are there, and return when they are gone; what failed, with the reason."""
    admin = cluster.admin()
    failed = {}
    for name, future in admin.delete_topics(
        sorted(names), operation_timeout=REQUEST_TIMEOUT_S, request_timeout=REQUEST_TIMEOUT_S
    ).items():
        try:
            future.result()
        except KafkaException as error:
            reason: KafkaError = error.args[0]
            if reason.code() in _NO_ANSWER:
                raise _unreachable(cluster, reason) from None
            if reason.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                failed[name] = reason.str()
    # Decided is not done: whoever makes one of them anew must not find it there, about to go.
    deadline = time.monotonic() + REQUEST_TIMEOUT_S
    while left := (set(names) - failed.keys()) & _list(cluster, admin, REQUEST_TIMEOUT_S).keys():
        if time.monotonic() > deadline:
            raise ClusterUnreachable(f"{min(left)} is not gone yet", hint="check the cluster")
        time.sleep(REMOVED_CHECK_S)
    return failed


def ensure_topics(cluster: Cluster, wanted: Mapping[str, TopicKind]) -> None:
    """Make the topics that are missing, all of them, or say which could not be made."""
    for name, reason in create_topics(cluster, wanted).items():
        raise TopicFailed(
            f"topic {name} could not be made: {reason}",
            hint="check the cluster's policies and your permissions, or make it by hand",
        )


def grow_topic(cluster: Cluster, topic: str, partitions: int) -> None:
    """Give the topic so many partitions, if it has fewer."""
    admin = cluster.admin()
    if _list(cluster, admin, REQUEST_TIMEOUT_S).get(topic, partitions) >= partitions:
        return
    [future] = admin.create_partitions([NewPartitions(topic, partitions)]).values()
    try:
        future.result()
    except KafkaException as error:
        raise TopicFailed(
            f"topic {topic} could not be given {partitions} partitions: {error.args[0].str()}",
            hint="check your permissions, or do it by hand",
        ) from None


def differences(cluster: Cluster, wanted: Mapping[str, TopicKind]) -> list[Difference]:
    """How the cluster's topics differ from what they should be."""
    admin = cluster.admin()
    existing = _list(cluster, admin, REQUEST_TIMEOUT_S)
    found = [Difference(name, "topic", "exists", "missing") for name in wanted if name not in existing]
    present = [name for name in wanted if name in existing]
    found += [
        Difference(name, "partitions", "1", str(existing[name]))
        for name in present
        # A subscriber may have as many as it likes, a tree one for each part; elsewhere one is one order.
        if wanted[name].partitions == 1 and existing[name] != 1 and wanted[name] not in (OUT, RT_UPDATES)
    ]
    if not present:
        return found
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in present]
    for resource, future in admin.describe_configs(resources, request_timeout=REQUEST_TIMEOUT_S).items():
        actual = future.result()
        for entry, expected in wanted[resource.name].config().items():
            value = actual[entry].value
            # How long deliveries are kept is a setting of the job that made the topic.
            if value != expected and (wanted[resource.name] is not OUT or entry != "retention.ms"):
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
