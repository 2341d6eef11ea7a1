"""Dead letters that fit their topic, so that what could not be used cannot stop whoever says so.

A dead letter has at most some 400 KB, which any topic takes that was made with Kafka's own settings. But a
topic may be set to take less, and then a letter that is refused would be refused again, batch after batch. So
the topic is asked what it takes, and letters are cut to that, with sizes and digests of what was cut. What is
cut is still where it was published, for as long as that topic keeps it.
"""

from confluent_kafka import KafkaException

from branchline.kafka.admin import message_limits
from branchline.kafka.cluster import Cluster
from branchline.kafka.dead_letters import LETTER_MIN_BYTES, Letter, fit_letter
from branchline.kafka.errors import BranchlineError

BATCH_BYTES = 1_000_000
"""What a producer puts together in one batch. A topic that takes less must get its letters one by one:
Kafka's limit is on batches."""


class Quarantine:
    """The dead-letter topic as far as its limit goes; asked for when the first letter comes."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._cluster, self._topic = cluster, topic
        self._room: int | None = None

    def fit(self, letter: Letter) -> Letter:
        """The letter as the topic takes it."""
        return fit_letter(letter, max(self.room, LETTER_MIN_BYTES))

    @property
    def one_by_one(self) -> bool:
        """Whether two letters may be too much for one batch."""
        return self.room < BATCH_BYTES

    @property
    def room(self) -> int:
        """The bytes that the topic takes at once; Kafka's own setting if nobody may ask."""
        if self._room is None:
            try:
                found = message_limits(self._cluster, [self._topic])
            except (KafkaException, BranchlineError):
                found = {}
            self._room = found.get(self._topic, BATCH_BYTES)
        return self._room
