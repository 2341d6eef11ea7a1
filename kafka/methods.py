"""The methods of a namespace, as the record that says which they are.

It stands on `positions` under a key of its own: that topic is small, is kept for good, and routers may read
and write it. The last one written counts.
"""

from typing import Any

from branchline.kafka.admin import ensure_topics, list_topics
from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import PublishFailed
from branchline.kafka.fields import FORMAT_VERSION, UNFIT, dump, items, text
from branchline.kafka.jsontext import read_json
from branchline.kafka.listing import NO_NAMESPACE, STATS_MAX_FIELDS
from branchline.kafka.reading import read_to_end
from branchline.kafka.topics import POSITIONS, Topics
from branchline.routing.dissemination.strategies import FLOODING
from branchline.routing.methods.naming import Methods

METHODS_KEY = b"methods"
"""No job's: those have a slash."""

WRITE_TIMEOUT_S = 30.0


def methods_fields(methods: Methods) -> dict[str, Any]:
    """Which methods, as JSON fields: what a namespace agrees on, and not how a job is tuned."""
    return {
        "forwarding": methods.forwarding,
        "matching": methods.matching,
        "dissemination": methods.dissemination,
        "optimise": list(methods.optimise),
    }


def methods_from_fields(fields: Any) -> Methods | None:
    """The inverse; None for what is none. That names are known is not said."""
    try:
        optimise = tuple(map(text, items(fields["optimise"])))
        # Records of before there was a choice have no dissemination.
        told = text(fields.get("dissemination", FLOODING))
        return Methods(text(fields["forwarding"]), text(fields["matching"]), told, optimise=optimise)
    except UNFIT:
        return None


def encode_methods(methods: Methods, by: str, at_ms: int) -> tuple[bytes, bytes]:
    """Key and value of the record; `by` is the job that wrote it."""
    fields = {"version": FORMAT_VERSION, "methods": methods_fields(methods), "by": by, "at_ms": at_ms}
    return METHODS_KEY, dump(fields)


def namespace_methods(cluster: Cluster, topics: Topics) -> Methods | None:
    """The methods of the namespace; None if no router has run there yet."""
    if topics.positions not in list_topics(cluster):
        return None
    found = None
    for record in read_to_end(cluster, topics.positions, hint=NO_NAMESPACE):
        if record.key == METHODS_KEY:
            said = read_json(record.value or b"", STATS_MAX_FIELDS)
            found = methods_from_fields(said.get("methods") if isinstance(said, dict) else None) or found
    return found


def record_methods(cluster: Cluster, topics: Topics, methods: Methods, by: str, at_ms: int) -> None:
    """Let these be the methods of the namespace."""
    ensure_topics(cluster, {topics.positions: POSITIONS})
    producer = cluster.producer(message_timeout_ms=int(WRITE_TIMEOUT_S * 1000))
    failures: list[str] = []
    key, value = encode_methods(methods, by, at_ms)
    producer.produce(
        topics.positions,
        value,
        key,
        on_delivery=lambda error, _: failures.append(error.str()) if error is not None else None,
    )
    if producer.flush(WRITE_TIMEOUT_S) or failures:
        reason = failures[0] if failures else "no answer"
        raise PublishFailed(f"{topics.positions} did not take the methods: {reason}", hint="try again")
