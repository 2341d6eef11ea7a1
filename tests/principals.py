"""Principals that try everything at a real authorizer, and what the table of rights says of each."""

import threading
from collections.abc import Callable, Iterable
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import ConfigResource, NewPartitions, NewTopic, ResourceType
from waiting import wait_until

from branchline.kafka.access import Operation as May
from branchline.kafka.access import Resource, Right, Role
from branchline.kafka.admin import list_topics
from branchline.kafka.cluster import Cluster
from branchline.kafka.reading import READER_GROUP
from branchline.kafka.topics import Topics

NS, OTHER = "acme", "acme2"
TOPICS, OTHERS = Topics(NS), Topics(OTHER)

ROLES: dict[str, tuple[Role, dict[str, str], list[str]]] = {
    "shop": (Role.PUBLISHER, {"broker": "main"}, ["publisher", "shop", "--broker", "main"]),
    "desk": (Role.PUBLISHER, {"broker": "b2"}, ["publisher", "desk", "--broker", "b2"]),
    "alice": (Role.SUBSCRIBER, {"subscriber": "alice"}, ["subscriber", "alice"]),
    "bob": (Role.SUBSCRIBER, {"subscriber": "bob"}, ["subscriber", "bob", "--principal", "User:bob"]),
    "router": (Role.ROUTER, {}, ["router", "--principal", "User:router"]),
    "carrier": (
        Role.BRIDGE_SOURCE,
        {"source": "dublin", "target": "virginia"},
        ["bridge", "dublin", "virginia", "--side", "source", "--principal", "User:carrier"],
    ),
    "lander": (
        Role.BRIDGE_TARGET,
        {"source": "dublin", "target": "virginia"},
        ["bridge", "dublin", "virginia", "--side", "target", "--principal", "User:lander"],
    ),
    "olga": (Role.OPERATOR, {}, ["operator", "--principal", "User:olga"]),
}
"""The principals, their roles, and the command that gives them their rights."""

NOBODY = "nobody"

NAMES = [
    *(TOPICS.entry("main"), TOPICS.entry("b2"), TOPICS.broker("main"), TOPICS.link("main")),
    *(TOPICS.control, TOPICS.own_control("alice"), TOPICS.own_control("bob")),
    *(TOPICS.acks, TOPICS.own_acks("alice"), TOPICS.own_acks("bob")),
    *(TOPICS.out("alice"), TOPICS.out("bob")),
    *(TOPICS.filters, TOPICS.rt_updates, TOPICS.dead_letters, TOPICS.positions, TOPICS.stats),
    *(TOPICS.bridge("dublin"), TOPICS.bridge("virginia"), f"{NS}.markers.router"),
    *(OTHERS.entry("main"), OTHERS.control, OTHERS.own_acks("alice"), OTHERS.out("alice")),
]
GROUPS = [f"{NS}.router-1", f"{NS}.out.alice.app", f"{NS}.out.bob.app", READER_GROUP, f"{OTHER}.router-1"]
TRANSACTIONS = [f"{NS}.router.0", f"{NS}.bridge.dublin.virginia", f"{OTHER}.router.0"]

IMPLIED = {
    May.DESCRIBE: {May.READ, May.WRITE, May.DELETE, May.ALTER},
    May.DESCRIBE_CONFIGS: set[May](),
}
"""As Kafka has it: whoever may do one of these may do the first."""

LETTERS = {
    May.DESCRIBE: "d",
    May.DESCRIBE_CONFIGS: "f",
    May.READ: "R",
    May.WRITE: "W",
    May.CREATE: "C",
    May.ALTER: "A",
    May.DELETE: "D",
}

Found = dict[tuple[Resource, str], set[May]]

TOPIC_OPERATIONS = set(May)
TRIED = {
    Resource.TOPIC: TOPIC_OPERATIONS,
    Resource.GROUP: {May.READ, May.DESCRIBE},
    Resource.TRANSACTION: {May.WRITE},
}

DENIED = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
}
DEADLINE_S = 30


def expected(given: Iterable[Right]) -> Found:
    """What the table of rights lets somebody do, read naively."""
    found: Found = {}
    for resource, names in (
        (Resource.TOPIC, NAMES),
        (Resource.GROUP, GROUPS),
        (Resource.TRANSACTION, TRANSACTIONS),
    ):
        for name in names:
            may = {
                operation
                for right in given
                if right.resource is resource
                and (name.startswith(right.name) if right.name.endswith(".") else name == right.name)
                for operation in right.operations
            }
            may |= {first for first, others in IMPLIED.items() if may & others}
            found[resource, name] = may & TRIED[resource]
    return found


class Trier:
    """One principal, trying everything with real clients."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.found: Found = {}

    def everything(self) -> Found:
        self._describe()
        self._administer()
        self._write()
        self._read()
        for group in GROUPS:
            self._note(Resource.GROUP, group, May.DESCRIBE, self._describes_group(group))
            self._note(Resource.GROUP, group, May.READ, self._joins(group))
        for name in TRANSACTIONS:
            self._note(Resource.TRANSACTION, name, May.WRITE, self._transacts(name))
        return self.found

    def _note(self, resource: Resource, name: str, operation: May, allowed: bool) -> None:
        may = self.found.setdefault((resource, name), set())
        if allowed:
            may.add(operation)

    def _describe(self) -> None:
        seen = list_topics(self._cluster)
        for name in NAMES:
            self._note(Resource.TOPIC, name, May.DESCRIBE, name in seen)

    def _administer(self) -> None:
        admin = self._cluster.admin()
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in NAMES]
        asked: list[tuple[May, dict[Any, Any]]] = [
            (May.DESCRIBE_CONFIGS, admin.describe_configs(resources)),
            (
                May.CREATE,
                admin.create_topics([NewTopic(name, 1, 1) for name in NAMES], validate_only=True),
            ),
            (
                May.ALTER,
                admin.create_partitions([NewPartitions(name, 5) for name in NAMES], validate_only=True),
            ),
        ]
        for operation, futures in asked:
            for about, future in futures.items():
                name = about.name if isinstance(about, ConfigResource) else about
                self._note(Resource.TOPIC, name, operation, _allowed(future.result))

    def delete(self) -> set[str]:
        """The topics that it could delete; they are gone."""
        admin = self._cluster.admin()
        futures = admin.delete_topics(NAMES)
        return {name for name, future in futures.items() if _allowed(future.result)}

    def _write(self) -> None:
        # Not idempotent: whoever may write nowhere would be refused before it names a topic.
        producer = self._cluster.producer(
            message_timeout_ms=20_000, linger_ms=0, enable_idempotence=False, acks="all"
        )
        answers: dict[str, KafkaError | None] = {}

        def told(name: str) -> Callable[[KafkaError | None, Message], None]:
            return lambda error, message: answers.update({name: error})

        for name in NAMES:
            try:
                producer.produce(name, b"tried", b"key", on_delivery=told(name))
            except KafkaException as refused:
                # The client has asked about this topic before, and remembers the answer.
                answers[name] = refused.args[0]
            # One at a time: what refuses one record must not be taken for a refusal of the next.
            assert producer.flush(DEADLINE_S) == 0
            error = answers[name]
            assert error is None or error.code() in DENIED, f"{name}: {error}"
            self._note(Resource.TOPIC, name, May.WRITE, error is None)

    def _read(self) -> None:
        consumer = self._cluster.consumer(group_id=READER_GROUP, enable_partition_eof=True)
        consumer.assign([TopicPartition(name, 0, 0) for name in NAMES])
        answered: dict[str, bool] = {}
        seen = {name for name in NAMES if May.DESCRIBE in self.found[Resource.TOPIC, name]}

        def all_answered() -> bool:
            for message in consumer.consume(100, timeout=0.2):
                error, name = message.error(), message.topic() or ""
                if error is None or error.code() == KafkaError._PARTITION_EOF:
                    answered[name] = True
                elif error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                    answered[name] = False
            # Of a topic that it does not see, a client waits in vain.
            return answered.keys() >= seen

        try:
            wait_until(all_answered, DEADLINE_S, "every topic is read or refused")
        finally:
            consumer.close()
        for name in NAMES:
            self._note(Resource.TOPIC, name, May.READ, answered.get(name, False))

    def _describes_group(self, group: str) -> bool:
        admin = self._cluster.admin()
        futures = admin.describe_consumer_groups([group])
        return _allowed(futures[group].result)

    def _joins(self, group: str) -> bool:
        consumer = self._cluster.consumer(group_id=group)
        joined = threading.Event()
        seen = [name for name in NAMES if May.DESCRIBE in self.found[Resource.TOPIC, name]]
        consumer.subscribe((seen or NAMES)[:1], on_assign=lambda *_: joined.set())
        denied: list[KafkaError] = []

        def decided() -> bool:
            message = consumer.poll(0.2)
            error = message.error() if message is not None else None
            if error is not None and error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                denied.append(error)
            return joined.is_set() or bool(denied)

        try:
            wait_until(decided, DEADLINE_S, f"{group} is joined or refused")
        finally:
            consumer.close()
        return joined.is_set()

    def _transacts(self, name: str) -> bool:
        producer = self._cluster.producer(transactional_id=name)
        return _allowed(lambda: producer.init_transactions(DEADLINE_S))


def _allowed(call: Callable[[], object]) -> bool:
    """Whether it was let through, whatever else is wrong with it."""
    try:
        call()
    except KafkaException as error:
        return error.args[0].code() not in DENIED
    return True


def matrix(found: dict[str, Found]) -> str:
    """The table of the page."""
    users = [*ROLES, NOBODY]
    lines = [
        "| | " + " | ".join(f"`{user}`" for user in users) + " |",
        "|---" * (len(users) + 1) + "|",
    ]
    for resource, name in found[NOBODY]:
        cells = []
        for user in users:
            may = found[user][resource, name]
            cells.append("".join(letter for operation, letter in LETTERS.items() if operation in may) or "·")
        label = "" if resource is Resource.TOPIC else f"{resource} "
        lines.append(f"| {label}`{name}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)
