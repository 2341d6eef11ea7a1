"""Who may do what at Kafka: for each role the topics, groups and transactional ids that it needs, no more.

`RIGHTS` is the one table; `docs/access.md` prints it, `branchline acl` gives what it says, and a test tries
every principal on everything against a real authorizer. A name may hold `<ns>`, the namespace, and what the
role is about; one that is *prefixed* stands for all names that begin with it. Such a name ends in a dot, so
that the rights for `<ns>.out.` never reach another namespace or another kind of topic.

Kafka lets whoever may read, write, delete or alter a topic describe it too, and whoever may alter its
configuration see that. Idempotent producers need nothing but the right to write.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import AccessFailed, ConfigError
from branchline.kafka.reading import READER_GROUP
from branchline.kafka.topics import OUT, OWN_ACKS, OWN_CONTROL, TopicKind, Topics

REQUEST_TIMEOUT_S = 15.0

PRINCIPAL = re.compile(r"[A-Za-z]+:[^\s*][^\n]*")


class Resource(StrEnum):
    """What a right is about."""

    TOPIC = "topic"
    GROUP = "group"
    TRANSACTION = "transactional-id"


class Operation(StrEnum):
    """What may be done with it; the names are Kafka's."""

    READ = "Read"
    WRITE = "Write"
    CREATE = "Create"
    DELETE = "Delete"
    ALTER = "Alter"
    DESCRIBE = "Describe"
    DESCRIBE_CONFIGS = "DescribeConfigs"


class Role(StrEnum):
    """Who is there. A bridge is two: one principal at the cluster it reads, one at the other."""

    PUBLISHER = "publisher"
    SUBSCRIBER = "subscriber"
    ROUTER = "router"
    BRIDGE_SOURCE = "bridge source"
    BRIDGE_TARGET = "bridge target"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Right:
    """What a role may do with all resources of a name."""

    role: Role
    resource: Resource
    name: str
    operations: tuple[Operation, ...]
    why: str

    @property
    def prefixed(self) -> bool:
        """Whether all names are meant that begin so."""
        return self.name.endswith(".")

    def named(self, names: Mapping[str, str]) -> "Right":
        """The right with its name filled in."""
        name = re.sub(r"<(\w+)>", lambda part: names[part[1]], self.name)
        return Right(self.role, self.resource, name, self.operations, self.why)


_READ, _WRITE, _CREATE = Operation.READ, Operation.WRITE, Operation.CREATE
_DELETE, _ALTER, _DESCRIBE = Operation.DELETE, Operation.ALTER, Operation.DESCRIBE
_CONFIGS = Operation.DESCRIBE_CONFIGS


def _topic(role: Role, name: str, why: str, *operations: Operation) -> Right:
    return Right(role, Resource.TOPIC, f"<ns>.{name}", operations, why)


def _reader(role: Role) -> Right:
    # Nothing is ever committed under it, but a client looks for the coordinator of whatever it is set to.
    return Right(role, Resource.GROUP, READER_GROUP, (_DESCRIBE,), "the group that our clients name")


def _transactions(role: Role, name: str) -> Right:
    why = "transactions of its own" if name.endswith(".") else "its transactions"
    return Right(role, Resource.TRANSACTION, f"<ns>.{name}", (_WRITE, _DESCRIBE), why)


_PUBLISHER, _SUBSCRIBER, _ROUTER = Role.PUBLISHER, Role.SUBSCRIBER, Role.ROUTER
_SOURCE, _TARGET, _OPERATOR = Role.BRIDGE_SOURCE, Role.BRIDGE_TARGET, Role.OPERATOR

RIGHTS = (
    _topic(_PUBLISHER, "in.<broker>", "publish events there", _WRITE),
    _topic(_SUBSCRIBER, "control.<subscriber>", "ask for itself", _WRITE),
    _topic(_SUBSCRIBER, "acks.<subscriber>", "read the answers", _READ),
    _topic(_SUBSCRIBER, "out.<subscriber>", "read what is delivered", _READ),
    Right(
        _SUBSCRIBER,
        Resource.GROUP,
        "<ns>.out.<subscriber>.",
        (_READ,),
        "consumer groups of its own clients",
    ),
    _reader(_SUBSCRIBER),
    _topic(_ROUTER, "in.", "read events", _READ, _CREATE),
    _topic(_ROUTER, "broker.", "pass events on between brokers", _READ, _WRITE, _CREATE),
    _topic(_ROUTER, "link.", "letters between brokers", _READ, _WRITE, _CREATE),
    _topic(_ROUTER, "control", "read requests, write ticks", _READ, _WRITE, _CREATE),
    _topic(_ROUTER, "control.", "read what subscribers ask for themselves", _READ),
    _topic(_ROUTER, "acks", "answer; a rebuild reads them", _READ, _WRITE, _CREATE),
    _topic(_ROUTER, "acks.", "answer; a rebuild reads them", _READ, _WRITE, _CREATE),
    _topic(_ROUTER, "filters", "record subscriptions, and read them", _READ, _WRITE, _CREATE),
    _topic(
        _ROUTER, "rt-updates", "tell and hear of the Routing Tree, in parts", _READ, _WRITE, _CREATE, _ALTER
    ),
    _topic(_ROUTER, "out.", "deliver; remove topics of those who are gone", _WRITE, _CREATE, _DELETE),
    _topic(_ROUTER, "dead-letters", "keep what could not be used", _WRITE, _CREATE),
    _topic(_ROUTER, "positions", "say how far it is; a rebuild reads it", _READ, _WRITE, _CREATE),
    _topic(_ROUTER, "stats", "say what it did; a rebuild reads it", _READ, _WRITE, _CREATE),
    _topic(_ROUTER, "markers.", "which batches are committed", _READ, _WRITE, _CREATE),
    Right(_ROUTER, Resource.GROUP, "<ns>.", (_READ,), "Spark's own groups"),
    _reader(_ROUTER),
    _transactions(_ROUTER, ""),
    _topic(_SOURCE, "broker.", "read what it carries", _READ),
    _topic(_SOURCE, "link.", "read what it carries", _READ),
    _topic(_SOURCE, "rt-updates", "read what it carries", _READ),
    _topic(_SOURCE, "filters", "read the topology", _READ),
    _topic(_SOURCE, "dead-letters", "return what the target refuses, once", _READ, _WRITE),
    _topic(_SOURCE, "stats", "say what it did", _WRITE),
    _reader(_SOURCE),
    _topic(_TARGET, "broker.", "write what it carries", _WRITE, _CREATE, _CONFIGS),
    _topic(_TARGET, "link.", "write what it carries", _WRITE, _CREATE, _CONFIGS),
    _topic(_TARGET, "rt-updates", "write what it carries", _WRITE, _CREATE, _CONFIGS),
    _topic(_TARGET, "bridge.<source>", "keep its marks", _READ, _WRITE, _CREATE),
    _reader(_TARGET),
    _transactions(_TARGET, "bridge.<source>.<target>"),
    _topic(_OPERATOR, "", "see which topics there are, and how they are set", _DESCRIBE, _CONFIGS),
    _topic(_OPERATOR, "control", "ask for anybody, and for a topology", _WRITE),
    _topic(_OPERATOR, "acks", "read the answers", _READ),
    _topic(_OPERATOR, "filters", "list subscriptions", _READ),
    _topic(_OPERATOR, "stats", "see how the jobs are", _READ),
    _topic(_OPERATOR, "positions", "see how far they are", _READ),
    _topic(_OPERATOR, "dead-letters", "look at what could not be used", _READ),
    _topic(_OPERATOR, "in.", "explain an event", _READ),
    _topic(_OPERATOR, "broker.", "explain an event, retry dead letters", _READ, _WRITE),
    _reader(_OPERATOR),
)
"""All that anybody may do. Topics that a role needs are only made by those who have `Create` for them."""


def rights(role: Role, topics: Topics, **names: str) -> list[Right]:
    """What the role needs in a namespace; `names` fill in what its rights are about."""
    filled = {"ns": topics.namespace, **names}
    return [right.named(filled) for right in RIGHTS if right.role is role]


def own_topics(topics: Topics, subscriber: str) -> dict[str, TopicKind]:
    """The topics that a subscriber of its own rights needs and cannot make."""
    return {
        topics.own_control(subscriber): OWN_CONTROL,
        topics.own_acks(subscriber): OWN_ACKS,
        topics.out(subscriber): OUT,
    }


def check_principal(principal: str) -> str:
    """The principal, if it is one and not everybody; else a ConfigError."""
    if PRINCIPAL.fullmatch(principal) is None:
        raise ConfigError(
            f"{principal!r} is not a principal", hint="give its type and name, as Kafka has them: User:alice"
        )
    return principal


def commands(given: Iterable[Right], principal: str, bootstrap: str, *, remove: bool = False) -> list[str]:
    """The commands of Kafka's own tool that do the same."""
    found = []
    for right in given:
        parts = ["kafka-acls.sh", "--bootstrap-server", bootstrap, "--command-config", "admin.properties"]
        parts += ["--remove", "--force"] if remove else ["--add"]
        parts += ["--allow-principal", _quoted(principal)]
        parts += [part for operation in right.operations for part in ("--operation", operation)]
        parts += [f"--{right.resource}", right.name]
        parts += ["--resource-pattern-type", "prefixed"] if right.prefixed else []
        found.append(" ".join(parts))
    return found


def _quoted(text: str) -> str:
    return text if re.fullmatch(r"[\w:.@/-]+", text) else "'" + text.replace("'", "'\\''") + "'"


def give(cluster: Cluster, principal: str, given: Iterable[Right]) -> int:
    """Let the principal do all this; how many rights Kafka was told of. What it may already stays."""
    bindings = [AclBinding(*each, AclPermissionType.ALLOW) for each in _bindings(principal, given)]
    admin = cluster.admin()
    _await(admin.create_acls(bindings, request_timeout=REQUEST_TIMEOUT_S).values())
    return len(bindings)


def take_away(cluster: Cluster, principal: str, given: Iterable[Right]) -> int:
    """Undo `give`: exactly these rights of the principal go; how many there were."""
    filters = [AclBindingFilter(*each, AclPermissionType.ALLOW) for each in _bindings(principal, given)]
    admin = cluster.admin()
    return sum(map(len, _await(admin.delete_acls(filters, request_timeout=REQUEST_TIMEOUT_S).values())))


_RESOURCES = {
    Resource.TOPIC: ResourceType.TOPIC,
    Resource.GROUP: ResourceType.GROUP,
    Resource.TRANSACTION: ResourceType.TRANSACTIONAL_ID,
}
_OPERATIONS = {each: getattr(AclOperation, each.name) for each in Operation}

_Binding = tuple[ResourceType, str, ResourcePatternType, str, str, AclOperation]


def _bindings(principal: str, given: Iterable[Right]) -> list[_Binding]:
    """From any host: who somebody is, the authentication says."""
    return [
        (
            _RESOURCES[right.resource],
            right.name,
            ResourcePatternType.PREFIXED if right.prefixed else ResourcePatternType.LITERAL,
            principal,
            "*",
            _OPERATIONS[operation],
        )
        for right in given
        for operation in right.operations
    ]


def _await(futures: Iterable[Any]) -> list[Any]:
    try:
        return [future.result() for future in futures]
    except KafkaException as error:
        raise AccessFailed(
            f"Kafka does not let rights be changed: {error.args[0].str()}",
            hint="the cluster needs an authorizer, and you the right to alter the cluster",
        ) from None
