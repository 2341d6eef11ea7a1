"""What a bridge cannot carry goes back: to the dead letters of the cluster that it came from, once."""

from confluent_kafka import KafkaError, KafkaException

from branchline.kafka import headers as bl
from branchline.kafka.cluster import Cluster
from branchline.kafka.dead_letters import OWES_NOTHING, encode_dead_letter, owed_to, owed_to_scope
from branchline.kafka.quarantine import Quarantine
from branchline.kafka.reading import read_to_end
from branchline.kafka.record import Place, Record
from branchline.kafka.topics import BROKER, Topics
from branchline.routing.codes import Code, Rejection
from branchline.routing.prefix.header import decode

FLUSH_TIMEOUT_S = 30.0


def owed(topics: Topics, record: Record) -> tuple[Place, str]:
    """Where the event of a record was published, and to whom it is owed, as its own headers say."""
    if topics.kind(record.place.topic) is not BROKER:
        return record.place, OWES_NOTHING
    origin = bl.read_place(bl.text(record.headers, bl.ORIGIN) or "") or record.place
    only = bl.text(record.headers, bl.ONLY)
    told = bl.values(record.headers, bl.PREFIX)
    header = decode(told[0] or b"") if len(told) == 1 else None
    # As whoever reads the copy takes it: without a header that can be read, it is for everybody.
    if only is not None or header is None:
        return origin, owed_to(only)
    return origin, owed_to_scope(header.scope)


class Returning:
    """Writes dead letters at the source."""

    def __init__(self, source: Cluster, topics: Topics) -> None:
        self._source, self._topics = source, topics
        self._producer = source.producer(message_timeout_ms=int(FLUSH_TIMEOUT_S * 1000))
        self._failure: KafkaError | None = None
        self._quarantine = Quarantine(source, topics.dead_letters)

    def put(self, record: Record, reason: str, *, look_first: bool) -> bool:
        """Write the dead letter of a record, unless one stands there already; whether it was written.

        With `look_first` it may stand there: an earlier life may have died just after it wrote it.
        """
        place = record.place
        which = f"no bridge can carry {place.topic} {place.partition} {place.offset}:"
        if look_first and self._stands(which):
            return False
        origin, to_whom = owed(self._topics, record)
        rejection = Rejection(Code.OUTPUT_REFUSED, f"{which} {reason}")
        key, value, headers = self._quarantine.fit(encode_dead_letter(record, rejection, to_whom, origin))
        self._producer.produce(
            self._topics.dead_letters, value, key, headers=list(headers), on_delivery=self._note
        )
        left = self._producer.flush(FLUSH_TIMEOUT_S)
        failure, self._failure = self._failure, None
        if left or failure is not None:
            raise KafkaException(failure or KafkaError(KafkaError._TIMED_OUT))
        return True

    def close(self) -> None:
        self._producer.purge()

    def _stands(self, which: str) -> bool:
        found = read_to_end(self._source, self._topics.dead_letters, hint="a router makes it when it starts")
        return any((bl.text(each.headers, bl.REASON) or "").startswith(which) for each in found)

    def _note(self, error: KafkaError | None, _: object) -> None:
        self._failure = error or self._failure
