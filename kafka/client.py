"""The Python API: publish events, subscribe to them, and read what was delivered.

    with Publisher("localhost:9092") as publisher:
        publisher.publish({"type": "flight", "price": 420}, key="BCN")

    with Publisher("localhost:9092", name="feed") as feed:  # where publishers advertise
        feed.advertise("type = 'flight'")

    with Subscriber("localhost:9092", "alice") as alice:
        alice.subscribe("type = 'flight' AND price < 500")
        for event in alice.events():
            print(event.json())

Any other Kafka client can do the same: the formats are in `docs/messages.md`.
"""

import json
from collections import OrderedDict
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from confluent_kafka import KafkaError, KafkaException, Message

from branchline.kafka import headers as bl
from branchline.kafka.admin import list_topics
from branchline.kafka.asking import Answer, ask
from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import ConfigError, PublishFailed, TopicMissing
from branchline.kafka.fixed_sets import FixedSets
from branchline.kafka.helping import FOR_MS, Done, Helper
from branchline.kafka.messages import DEFAULT_ID
from branchline.kafka.reading import follow, open_topic
from branchline.kafka.record import Headers, Record
from branchline.kafka.topics import Topics, check_name
from branchline.routing.control import Operation, Request, Status

__all__ = ["Delivered", "Publisher", "Subscriber"]

FLUSH_TIMEOUT_S = 65.0
"""A little longer than a message may take."""

REPEAT_WINDOW = 100_000
"""Ids remembered to drop repeats: far more than one batch that is run again."""


class Publisher:
    """Publishes events at one broker. Use it as a context manager: leaving it waits for Kafka."""

    def __init__(
        self,
        cluster: Cluster | str,
        *,
        namespace: str = "branchline",
        broker: str = "main",
        name: str | None = None,
        own_control: bool = False,
    ) -> None:
        """With a `name`, it may advertise under it; with `own_control`, on its own control topic."""
        self._cluster = Cluster(cluster) if isinstance(cluster, str) else cluster
        self._topics, self._broker, self._own = Topics(namespace), check_name("broker", broker), own_control
        self._topic = self._topics.entry(self._broker)
        self.name = None if name is None else check_name("publisher", name)
        self._failures: list[str] = []
        self.published = 0
        # Asked now: a producer would only find out by a time-out.
        if self._topic not in list_topics(self._cluster):
            raise TopicMissing(
                f"there is no entry topic {self._topic} at {self._cluster.bootstrap}",
                hint="check --broker and --namespace; a router makes the topic of its broker when it starts",
            )
        self._producer = self._cluster.producer(
            linger_ms=5, message_timeout_ms=60_000, delivery_report_only_error=True
        )

    def publish(
        self,
        event: bytes | str | Mapping[str, Any],
        *,
        key: bytes | str | None = None,
        headers: Sequence[tuple[str, bytes | str | None]] = (),
    ) -> None:
        """Publish one event: bytes or text as they are, a mapping as a JSON object."""
        value = (
            json.dumps(event, ensure_ascii=False, allow_nan=False) if isinstance(event, Mapping) else event
        )
        while True:
            try:
                self._producer.produce(
                    self._topic, value, key, headers=list(headers), on_delivery=self._report
                )
                break
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as error:
                raise PublishFailed(
                    f"Kafka does not take the event: {error.args[0].str()}", hint="check its size"
                ) from None
        self.published += 1
        self._producer.poll(0)

    def advertise(
        self,
        filter: str,
        *,
        id: str = DEFAULT_ID,
        spelling: str = "sql",
        wait: Status | None = Status.IN_FORCE,
        timeout_s: float = 30.0,
    ) -> Answer | None:
        """Say what will be published, or replace the advertisement of that id; raises RequestRefused.

        Once it is in force, what it holds for is let in, where that is asked for, and everybody who wants it
        is known.
        """
        named = self._name(), check_name("id", id), self._broker
        request = Request(Operation.ADVERTISE, *named, spelling, filter)
        return self._ask(request, wait, timeout_s)

    def unadvertise(
        self, id: str = DEFAULT_ID, *, wait: bool = True, timeout_s: float = 30.0
    ) -> Answer | None:
        """End the advertisement of that id; what was published before must have been read by then."""
        request = Request(Operation.UNADVERTISE, self._name(), check_name("id", id), self._broker)
        return self._ask(request, Status.ENDED if wait else None, timeout_s)

    def _name(self) -> str:
        if self.name is None:
            raise ConfigError(
                "a publisher that advertises needs a name", hint='Publisher(cluster, name="shop")'
            )
        return self.name

    def _ask(self, request: Request, wait: Status | None, timeout_s: float) -> Answer | None:
        return _asked(self._cluster, self._topics, request, wait, timeout_s, own=self._own)

    def flush(self) -> None:
        """Wait until Kafka has taken everything; raises PublishFailed if it did not."""
        left = self._producer.flush(FLUSH_TIMEOUT_S)
        if left or self._failures:
            reason = self._failures[0] if self._failures else "no answer from Kafka"
            failed, self._failures = left + len(self._failures), []
            raise PublishFailed(f"{failed} events were not published: {reason}", hint="check the cluster")

    def _report(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failures.append(error.str())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.flush()


@dataclass(frozen=True, slots=True)
class Delivered:
    """An event as it arrived: key, value and headers as published, and the delivery's id."""

    id: str
    key: bytes | None
    value: bytes | None
    headers: Headers
    record: Record

    def json(self) -> Any:
        """The value read as JSON."""
        return json.loads(self.value or b"null")


class Subscriber:
    """Subscribes under a name and reads what is delivered to it."""

    def __init__(
        self,
        cluster: Cluster | str,
        name: str,
        *,
        namespace: str = "branchline",
        home: str | None = None,
        own_control: bool = False,
    ) -> None:
        """With `own_control`, requests are written to its own control topic, where nobody else may."""
        self._cluster = Cluster(cluster) if isinstance(cluster, str) else cluster
        self._topics = Topics(namespace)
        self._home = home
        self._own = own_control
        self._fixed_sets = FixedSets(self._cluster, self._topics, own_control)
        self.name = check_name("subscriber", name)

    def subscribe(
        self,
        filter: str,
        *,
        id: str = DEFAULT_ID,
        spelling: str = "sql",
        lease_ms: int | None = None,
        wait: Status | None = Status.IN_FORCE,
        timeout_s: float = 30.0,
        claim: bool = False,
    ) -> Answer | None:
        """Subscribe, or replace the subscription of that id; raises RequestRefused with the reason.

        Returns once the subscription is as far as `wait` says; everything published after it is
        in force is owed, until it is ended or its lease is over. With `claim` it says where its filter goes
        among those that the home has given out (the dissemination covering+ff), and spares it work.
        """
        request = Request(
            Operation.SUBSCRIBE,
            self.name,
            check_name("id", id),
            self._home,
            spelling,
            filter,
            lease_ms=lease_ms,
        )
        if claim:
            request = self._fixed_sets.claiming(request, timeout_s)
        return self._ask(request, wait, timeout_s)

    def renew(
        self,
        id: str = DEFAULT_ID,
        *,
        lease_ms: int | None = None,
        wait: bool = True,
        timeout_s: float = 30.0,
    ) -> Answer | None:
        """Begin the lease of that subscription anew, as long as before if `lease_ms` is not given."""
        request = Request(Operation.RENEW, self.name, check_name("id", id), self._home, lease_ms=lease_ms)
        return self._ask(request, Status.RENEWED if wait else None, timeout_s)

    def unsubscribe(
        self, id: str = DEFAULT_ID, *, wait: bool = True, timeout_s: float = 30.0
    ) -> Answer | None:
        """End the subscription of that id."""
        request = Request(Operation.UNSUBSCRIBE, self.name, check_name("id", id), self._home)
        return self._ask(request, Status.ENDED if wait else None, timeout_s)

    def unsubscribe_all(self, *, wait: bool = True, timeout_s: float = 30.0) -> Answer | None:
        """End all subscriptions; the answer's note says how many there were."""
        request = Request(Operation.UNSUBSCRIBE, self.name, "", self._home, all=True)
        return self._ask(request, Status.ENDED if wait else None, timeout_s)

    def assist(self, *, for_ms: int = FOR_MS) -> Generator[Done | None]:
        """Work for the home: find out which filters cover which, where it lets subscribers do so.

        Gives what was done, as it is done, and None whenever there is nothing to do, so that the caller can
        stop. Closing the iterator says that it stops; raises RequestRefused if the home wants no help.
        """
        if self._home is None:
            raise ConfigError("who works needs a home", hint='Subscriber(cluster, "alice", home="main")')
        helper = Helper(self._cluster, self._topics, self.name, self._home, self._own, for_ms)
        return helper.work()

    def events(self, *, from_beginning: bool = True) -> Iterator[Delivered]:
        """Deliveries as they come, without end, repeats dropped."""
        for delivered in self.poll_events(from_beginning=from_beginning):
            if delivered is not None:
                yield delivered

    def poll_events(self, *, from_beginning: bool = True) -> Iterator[Delivered | None]:
        """As `events`, but gives None whenever there is nothing, so that the caller can stop."""
        consumer = open_topic(
            self._cluster,
            self._topics.out(self.name),
            from_beginning=from_beginning,
            hint=f"subscribe first: branchline subscribe {self.name} FILTER",
        )
        seen: OrderedDict[str, None] = OrderedDict()
        try:
            for record in follow(consumer):
                delivered = _delivered(record) if record is not None else None
                if delivered is not None and not _is_new(seen, delivered.id):
                    continue
                yield delivered
        finally:
            consumer.close()

    def _ask(self, request: Request, wait: Status | None, timeout_s: float) -> Answer | None:
        return _asked(self._cluster, self._topics, request, wait, timeout_s, own=self._own)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing is held open between calls; the subscription stands until it is ended."""


def _asked(
    cluster: Cluster, topics: Topics, request: Request, wait: Status | None, timeout_s: float, *, own: bool
) -> Answer | None:
    answers = ask(cluster, topics, [request], wait, timeout_s, own=own)
    for answer in answers:
        answer.raise_if_refused()
    return answers[0] if answers else None


def _delivered(record: Record) -> Delivered:
    # A record without an id was written by somebody else; its place is all the identity it has.
    delivery_id = bl.text(record.headers, bl.ID) or str(record.place)
    return Delivered(delivery_id, record.key, record.value, bl.foreign(record.headers), record)


def _is_new(seen: OrderedDict[str, None], delivery_id: str) -> bool:
    if delivery_id in seen:
        seen.move_to_end(delivery_id)
        return False
    seen[delivery_id] = None
    if len(seen) > REPEAT_WINDOW:
        seen.popitem(last=False)
    return True
