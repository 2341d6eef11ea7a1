"""Jobs of several brokers whose Kafka is lists of records."""

from dataclasses import dataclass

from branchline.kafka.dispatch import Step, dispatch, one_by_one
from branchline.kafka.intake import read_batch
from branchline.kafka.record import Headers, Place, Record
from branchline.kafka.topics import Topics
from branchline.routing.methods.naming import Methods
from branchline.routing.overlay.topology import founded, link
from branchline.routing.shard import Job, Shard

TOPICS = Topics("a.b")
NOW_MS = 1_700_000_000_000
BROKERS = ("dublin", "virginia", "oregon")
"""In a row, so that what is for the last one goes through the second."""


def overlay(methods: Methods = Methods()) -> dict[str, Shard]:  # noqa: B008 - it is frozen
    """One job for each broker."""
    topology = founded(BROKERS, [link("dublin", "virginia"), link("oregon", "virginia")])
    return {name: Shard(Job((name,), topology, methods=methods), 0) for name in BROKERS}


@dataclass
class Net:
    """Several jobs, each with its own intake and dispatch, on one Kafka of lists."""

    shards: dict[str, Shard]
    topics: dict[str, list[Record]]
    read: dict[str, int]
    """How far each reader of a topic is."""

    def write(
        self, topic: str, value: bytes | None, key: bytes | None = None, headers: Headers = ()
    ) -> Record:
        records = self.topics.setdefault(topic, [])
        records.append(Record(Place(topic, 0, len(records), NOW_MS), key, value, headers))
        return records[-1]

    def run(self, *names: str) -> None:
        """The brokers handle what there is, in turn, until there is nothing."""
        busy = True
        while busy:
            busy = False
            for name in names or BROKERS:
                control, events = (
                    [record for topic in topics for record in self._fresh(f"{name} {topic}", topic)]
                    for topics in (
                        (TOPICS.control, TOPICS.link(name)),
                        (TOPICS.entry(name), TOPICS.broker(name)),
                    )
                )
                if control or events:
                    busy = True
                    self._handle(name, control, events)

    def _fresh(self, reader: str, topic: str) -> list[Record]:
        records, start = self.topics.get(topic, []), self.read.get(reader, 0)
        self.read[reader] = len(records)
        return records[start:]

    def _handle(self, name: str, control: list[Record], events: list[Record]) -> None:
        intake = read_batch(TOPICS, control, events)
        outputs = self.shards[name].handle(NOW_MS, [], intake.control, intake.events())
        for item in one_by_one(TOPICS, dispatch(TOPICS, name, True, NOW_MS, intake, outputs)):
            if item.step is not Step.CREATE:
                self.write(item.topic, item.value, item.key, item.headers)
