"""An observer of a namespace: acts as clients do, and writes down the history that the checker judges."""

import itertools
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import WaitExpired
from branchline.kafka.events import Event, decode_event
from branchline.kafka.fixed_sets import FixedSets
from branchline.kafka.messages import encode_proposal, encode_request
from branchline.kafka.record import Place, Record
from branchline.kafka.topics import Topics
from branchline.ops.chaos.reading import read_all
from branchline.routing.checking import Repeats, check
from branchline.routing.control import Identity, Operation, Request, Status
from branchline.routing.history import (
    Acked,
    Entry,
    Lapsing,
    Published,
    Read,
    Settled,
    Steady,
    Unsteady,
    Verdict,
    Wrote,
)
from branchline.routing.overlay.letters import Propose
from branchline.routing.overlay.topology import Topology
from branchline.routing.values import JsonValue

IN_FORCE_TIMEOUT_S = 180.0


class Site(Protocol):
    """The topics of a namespace, and how clients reach them."""

    topics: Topics

    @property
    def cluster(self) -> Cluster: ...

    def write(
        self, topic: str, value: bytes | str | None, key: bytes | str | None = None, **more: Any
    ) -> None:
        """Write a record; `more` is for the producer."""

    def flush(self) -> None:
        """Return when Kafka has taken everything that was written."""

    def settle(self) -> None:
        """Return when everything that was written is handled, and so is what came of it."""


@dataclass
class Observer:
    """Each entry is put on the safe side of what it speaks of: see `routing/history.py`."""

    site: Site
    history: list[Entry] = field(default_factory=list)
    answers: dict[str, list[Status]] = field(default_factory=dict)
    """What was answered to each request."""
    fixed_sets: FixedSets | None = None
    """With it, subscribers say where their filters go in them."""

    def __post_init__(self) -> None:
        self._requests = (f"r{number}" for number in itertools.count(1))
        self._events: Iterator[int] = itertools.count(1)
        self._seen: dict[tuple[str, int], int] = {}
        """How far each partition is read."""
        self.subscribers: set[str] = set()

    def number_from(self, events: Iterator[int]) -> None:
        """Take the numbers of events from here: several observers of one history share them."""
        self._events = events

    def subscribe(self, identity: Identity, spelling: str, text: str) -> str:
        """Subscribe, or replace what stands; the request's id."""
        return self._ask(Operation.SUBSCRIBE, identity, spelling, text)

    def unsubscribe(self, identity: Identity) -> str:
        return self._ask(Operation.UNSUBSCRIBE, identity, "sql", None)

    def _ask(self, operation: Operation, identity: Identity, spelling: str, text: str | None) -> str:
        home, subscriber, id_ = identity
        name = next(self._requests)
        self.subscribers.add(subscriber)
        self.history.append(Wrote(identity, spelling, text, name))
        request = Request(operation, subscriber, id_, home, spelling, text or "", name)
        if self.fixed_sets is not None and operation is Operation.SUBSCRIBE:
            request = self.fixed_sets.claiming(request)
        self.site.write(self.site.topics.control, encode_request(request), subscriber)
        return name

    def advertise(self, publisher: str, broker: str, text: str) -> str:
        """Say in SQL what will enter there; the request's id."""
        name = next(self._requests)
        request = Request(Operation.ADVERTISE, publisher, "all", broker, "sql", text, name)
        self.site.write(self.site.topics.control, encode_request(request), publisher)
        return name

    def publish(self, at: str, key: str | None, attributes: Mapping[str, JsonValue]) -> int:
        """Publish a plain event, numbered as `n`; its number."""
        number = next(self._events)
        value = json.dumps({**attributes, "n": number}).encode()
        read = decode_event(Record(Place("in", 0, 0, 0), None if key is None else key.encode(), value))
        assert isinstance(read, Event), "a plain event reads back"
        place = len(self.history)
        published = Published(number, read.attributes, None if key is None else (at, key))
        self.history.append(published)

        def report(error: object, message: object) -> None:
            if error is not None:  # nobody can say whether Kafka has it
                self.history[place] = replace(published, acknowledged=False)

        self.site.write(self.site.topics.entry(at), value, key, on_delivery=report)
        return number

    def propose(self, topology: Topology, ending: Iterable[Identity] = ()) -> None:
        """Ask for a topology, by which these subscriptions may end; steady again after `settle`."""
        self.history += [Unsteady(), *map(Lapsing, ending)]
        request = f"topology-{topology.number}"
        self.site.write(self.site.topics.control, encode_proposal(Propose(topology, request)))
        self.site.flush()

    def hear(self) -> None:
        """Read the acks that are new, to the last one."""
        self.heard(read_all(self.site.cluster, [self.site.topics.acks], since=self._seen))

    def heard(self, acks: Sequence[Record]) -> None:
        """Take note of acks. Those that it knows already may be among them."""
        for record in self._new(acks):
            said = json.loads(record.value or b"")
            self.answers.setdefault(said.get("request"), []).append(Status(said["status"]))
            # Else it is about all that a subscriber has, about nobody, or about a publisher.
            if "id" in said and "subscriber" in said:
                identity = Identity(said["home"], said["subscriber"], said["id"])
                self.history.append(Acked(identity, Status(said["status"]), said.get("request")))

    def _new(self, records: Sequence[Record]) -> Iterator[Record]:
        for record in records:
            place = record.place.topic, record.place.partition
            if record.place.offset >= self._seen.get(place, 0):
                self._seen[place] = record.place.offset + 1
                yield record

    def await_in_force(self, requests: Iterable[str]) -> None:
        self.site.flush()
        waiting, deadline = set(requests), time.monotonic() + IN_FORCE_TIMEOUT_S
        while waiting:
            if time.monotonic() > deadline:
                raise WaitExpired(f"never in force: {', '.join(sorted(waiting)[:5])}", hint="read the logs")
            self.hear()
            waiting = {each for each in waiting if Status.IN_FORCE not in self.answers.get(each, ())}

    def settle(self) -> None:
        """Return when nothing is on its way, and all that was delivered is read."""
        self.site.flush()
        self.site.settle()
        self.hear()
        self.take()
        self.history += [Settled(), Steady()]

    def take(self) -> None:
        """Read the deliveries that are new."""
        topics = [self.site.topics.out(subscriber) for subscriber in self.subscribers]
        for record in self._new(read_all(self.site.cluster, topics, since=self._seen)):
            subscriber = self.site.topics.named(record.place.topic)
            assert subscriber is not None, "they were asked for by their names"
            self.history.append(Read(subscriber, json.loads(record.value or b"")["n"]))

    def verdict(self, repeats: Repeats = "allowed") -> Verdict:
        """What the checker says of all that was settled."""
        return check(self.history, repeats)
