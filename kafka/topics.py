"""The topics of a namespace: their names, and what each kind is created with.

`TOPIC_KINDS` is the one table of configurations; `docs/messages.md` prints it and a test compares them.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from branchline.kafka.errors import ConfigError

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
"""Brokers, subscribers and subscription ids: no dot, so that a topic's name reads back without doubt."""

NAMESPACE = re.compile(r"[a-zA-Z0-9_-][a-zA-Z0-9._-]{0,99}")

DAY_MS = 24 * 60 * 60 * 1000

OLDEST_MS = 100 * 365 * DAY_MS
"""How old a record may say it is. Kafka itself takes any age, and what is some 290,000 years old Spark cannot
read: one such record would stop a job for good."""


def is_name(text: str) -> bool:
    """Whether the text may name a broker, a subscriber or a subscription."""
    return NAME.fullmatch(text) is not None


def check_name(what: str, text: str) -> str:
    """The text, if it may be the name of a broker, a subscriber or a subscription; else a ConfigError."""
    if not is_name(text):
        raise ConfigError(
            f"{what} {text!r} is not allowed as a name",
            hint='use 1 to 63 of a-z, 0-9 and "-", not beginning with "-"',
        )
    return text


@dataclass(frozen=True, slots=True)
class TopicKind:
    """What topics of one kind carry and are created with."""

    name: str
    carries: str
    partitions: int = 1
    retention_ms: int | None = None
    """Kept by time; None for a topic that is compacted instead."""
    replication: int = -1
    """How many copies Kafka keeps; -1 for the cluster's own default."""
    segment_bytes: int | None = None
    """Kafka compacts whole segments only: a topic that is rewritten all the time needs small ones."""

    def config(self) -> dict[str, str]:
        """The configuration entries that the topic is created with, and that `doctor` checks."""
        every = {"message.timestamp.before.max.ms": str(OLDEST_MS)}
        if self.retention_ms is None:
            segments = {} if self.segment_bytes is None else {"segment.bytes": str(self.segment_bytes)}
            return {"cleanup.policy": "compact", **segments, **every}
        return {"cleanup.policy": "delete", "retention.ms": str(self.retention_ms), **every}


ENTRY = TopicKind("in.<broker>", "publications that enter at the broker", 2, 7 * DAY_MS)
BROKER = TopicKind("broker.<broker>", "events from neighbours, and retried ones", 2, 7 * DAY_MS)
LINK = TopicKind("link.<broker>", "letters: what brokers tell each other", 1, 7 * DAY_MS)
CONTROL = TopicKind(
    "control",
    "requests: subscribe, unsubscribe, renew, advertise, assist, answer, fixed-set, topology, refresh, "
    "explain",
    1,
    30 * DAY_MS,
)
ACKS = TopicKind("acks", "answers to requests", 1, 7 * DAY_MS)
OWN_CONTROL = TopicKind("control.<subscriber>", "requests of that subscriber alone", 1, 30 * DAY_MS)
OWN_ACKS = TopicKind("acks.<subscriber>", "answers to those", 1, 7 * DAY_MS)
FILTERS = TopicKind("filters", "every subscription that the brokers know, by identity, and the topology")
# As many partitions as the Routing Tree has parts.
RT_UPDATES = TopicKind("rt-updates", "what the Tree Optimizer tells of the Routing Tree", 1, 7 * DAY_MS)
OUT = TopicKind("out.<subscriber>", "the events that matched, as published", 1, 7 * DAY_MS)
DEAD_LETTERS = TopicKind("dead-letters", "what could not be used, and what is still owed", 1, 30 * DAY_MS)
POSITIONS = TopicKind("positions", "how far each router job has read, for a rebuild")
STATS = TopicKind("stats", "what the jobs did, batch by batch", 1, DAY_MS)
MARKERS = TopicKind(
    "markers.<job>",
    "markers: for each shard of a router job the last batch that was written exactly once",
    segment_bytes=4 * 1024 * 1024,
)
BRIDGE = TopicKind(
    "bridge.<cluster>",
    "marks: how far the bridge from that cluster to this one has come",
    segment_bytes=4 * 1024 * 1024,
)

TOPIC_KINDS = (
    *(ENTRY, BROKER, LINK, CONTROL, ACKS, FILTERS, RT_UPDATES, OUT, DEAD_LETTERS, POSITIONS, STATS),
    *(MARKERS, BRIDGE, OWN_CONTROL, OWN_ACKS),
)


@dataclass(frozen=True, slots=True)
class Topics:
    """The names of one namespace's topics."""

    namespace: str = "branchline"
    _prefix: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if NAMESPACE.fullmatch(self.namespace) is None:
            raise ValueError(
                f"namespace {self.namespace!r} must be 1 to 100 letters, digits, '.', '_' or '-', "
                "and not begin with a dot"
            )
        object.__setattr__(self, "_prefix", self.namespace + ".")

    def entry(self, broker: str) -> str:
        return f"{self._prefix}in.{broker}"

    def broker(self, broker: str) -> str:
        return f"{self._prefix}broker.{broker}"

    def link(self, broker: str) -> str:
        return f"{self._prefix}link.{broker}"

    def out(self, subscriber: str) -> str:
        return f"{self._prefix}out.{subscriber}"

    @property
    def control(self) -> str:
        return f"{self._prefix}control"

    @property
    def acks(self) -> str:
        return f"{self._prefix}acks"

    def own_control(self, subscriber: str) -> str:
        return f"{self._prefix}control.{subscriber}"

    def own_acks(self, subscriber: str) -> str:
        return f"{self._prefix}acks.{subscriber}"

    def acks_for(self, control: str) -> str:
        """Where what was asked on a control topic is answered."""
        return self.own_acks(self.named(control) or "") if self.kind(control) is OWN_CONTROL else self.acks

    @property
    def filters(self) -> str:
        return f"{self._prefix}filters"

    @property
    def rt_updates(self) -> str:
        return f"{self._prefix}rt-updates"

    @property
    def dead_letters(self) -> str:
        return f"{self._prefix}dead-letters"

    @property
    def positions(self) -> str:
        return f"{self._prefix}positions"

    @property
    def stats(self) -> str:
        return f"{self._prefix}stats"

    def markers(self, job: str) -> str:
        return f"{self._prefix}markers.{job}"

    def bridge(self, cluster: str) -> str:
        return f"{self._prefix}bridge.{cluster}"

    def kind(self, topic: str) -> TopicKind | None:
        """What kind of topic this is, or None if it is not one of this namespace's."""
        if not topic.startswith(self._prefix):
            return None
        family, dot, name = topic[len(self._prefix) :].partition(".")
        for kind in TOPIC_KINDS:
            kind_family, kind_dot, _ = kind.name.partition(".")
            if (kind_family, kind_dot) == (family, dot):
                return kind if not dot or is_name(name) else None
        return None

    def of_kind(self, kind: TopicKind, names: Iterable[str]) -> list[str]:
        """Those of the topics that are of the kind, sorted."""
        return sorted(name for name in names if self.kind(name) is kind)

    def named(self, topic: str) -> str | None:
        """The broker, subscriber or cluster that the topic belongs to, if it belongs to one."""
        kind = self.kind(topic)
        return topic.rpartition(".")[2] if kind is not None and "<" in kind.name else None

    def of_broker(self, broker: str) -> dict[str, TopicKind]:
        """The topics that must exist for a router to serve the broker."""
        return {
            self.entry(broker): ENTRY,
            self.broker(broker): BROKER,
            self.link(broker): LINK,
            self.control: CONTROL,
            self.acks: ACKS,
            self.filters: FILTERS,
            self.rt_updates: RT_UPDATES,
            self.dead_letters: DEAD_LETTERS,
            self.positions: POSITIONS,
            self.stats: STATS,
        }

    def of_brokers(self, brokers: tuple[str, ...]) -> dict[str, TopicKind]:
        """The topics that must exist for a router to serve these brokers."""
        return {topic: kind for broker in brokers for topic, kind in self.of_broker(broker).items()}

    def of_neighbour(self, broker: str) -> dict[str, TopicKind]:
        """The topics that must exist for a router to write to the broker, whoever serves it."""
        return {self.link(broker): LINK, self.broker(broker): BROKER}

    def control_pattern(self, brokers: tuple[str, ...]) -> str:
        """A Java pattern for the topics that carry control to these brokers, subscribers' own ones too."""
        named = "|".join(map(re.escape, self.control_topics(brokers)))
        return f"{named}|{re.escape(self.own_control(''))}{NAME.pattern}"

    def control_topics(self, brokers: tuple[str, ...]) -> list[str]:
        """The topics that carry control to these brokers, but for subscribers' own, which come and go."""
        return [self.control, self.rt_updates, *map(self.link, brokers)]

    def event_topics(self, brokers: tuple[str, ...]) -> list[str]:
        """The topics that carry events to these brokers."""
        return [*map(self.entry, brokers), *map(self.broker, brokers)]
