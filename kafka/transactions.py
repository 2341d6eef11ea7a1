"""What librdkafka's transactional producer says, and how: the same for a bridge and for the router's sink."""

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaError, KafkaException, Producer

PURGED = {KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT}
"""What is said, also later, of the other records of a transaction that was aborted."""

_FENCED = {KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH}


def is_fenced(error: KafkaException) -> bool:
    """Whether another producer of the same transactional id has come, or Kafka gave up a transaction."""
    return error.args[0].code() in _FENCED


@contextmanager
def fatal_errors_as_they_are() -> Iterator[None]:
    """A fatal error is raised beneath the calls that report deliveries, which then trip over it."""
    try:
        yield
    except SystemError as error:
        if isinstance(error.__cause__, KafkaException):
            raise error.__cause__ from None
        raise


def connect(producer: Producer, topic: str, timeout_s: float) -> None:
    """Return when the client is connected to a broker by that broker's own name.

    Asked for its transaction coordinator before that, it has nobody to ask, and tries again after half a
    second. The first answer comes from an address that the client was given, and closes that connection; the
    second one comes from a broker that the first has named.
    """
    for _ in range(2):
        producer.list_topics(topic, timeout=timeout_s)
