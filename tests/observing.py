"""An observer of a site: acts as clients do, and writes down the history that the checker judges."""

import itertools
import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from routers import Site, read_all

from branchline.kafka.events import Event, decode_event
from branchline.kafka.messages import encode_proposal, encode_request
from branchline.kafka.record import Place, Record
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


@dataclass
class Observer:
    """Each entry is put on the safe side of what it speaks of: see `routing/history.py`."""

    site: Site
    history: list[Entry] = field(default_factory=list)
    answers: dict[str, list[Status]] = field(default_factory=dict)
    """What was answered to each request."""

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
        self.site.write(self.site.topics.control, encode_request(request), subscriber)
        return name

    def publish(self, at: str, key: str | None, attributes: Mapping[str, JsonValue]) -> int:
        """Publish a plain event, numbered as `n`; its number."""
        number = next(self._events)
        value = json.dumps({**attributes, "n": number}).encode()
        read = decode_event(Record(Place("in", 0, 0, 0), key and key.encode(), value))
        assert isinstance(read, Event)
        self.history.append(Published(number, read.attributes, None if key is None else (at, key)))
        self.site.publish(value, key, at=at)
        return number

    def propose(self, topology: Topology, ending: Iterable[Identity] = ()) -> None:
        """Ask for a topology, by which these subscriptions may end; steady again after `settle`."""
        self.history += [Unsteady(), *map(Lapsing, ending)]
        request = f"topology-{topology.number}"
        self.site.write(self.site.topics.control, encode_proposal(Propose(topology, request)))
        self.site.flush()

    def hear(self) -> None:
        """Read the acks that are new."""
        for record in self._read([self.site.topics.acks]):
            said = json.loads(record.value or b"")
            self.answers.setdefault(said.get("request"), []).append(Status(said["status"]))
            if "id" in said:  # else it is about all that a subscriber has, or about nobody
                identity = Identity(said["home"], said["subscriber"], said["id"])
                self.history.append(Acked(identity, Status(said["status"]), said.get("request")))

    def _read(self, topics: list[str]) -> list[Record]:
        records = read_all(self.site.cluster, topics, since=self._seen)
        for record in records:
            self._seen[record.place.topic, record.place.partition] = record.place.offset + 1
        return records

    def await_in_force(self, requests: Iterable[str]) -> None:
        self.site.flush()
        waiting, deadline = set(requests), time.monotonic() + 180
        while waiting:
            assert time.monotonic() < deadline, f"never in force: {sorted(waiting)[:5]}"
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
        for record in self._read([self.site.topics.out(subscriber) for subscriber in self.subscribers]):
            subscriber = self.site.topics.named(record.place.topic)
            assert subscriber is not None
            self.history.append(Read(subscriber, json.loads(record.value or b"")["n"]))

    def verdict(self, repeats: Repeats = "allowed") -> Verdict:
        """What the checker says of all that was settled."""
        return check(self.history, repeats)

    def count(self, name: str) -> int:
        """What all shards counted in all batches."""
        return sum(counts[name] for counts in self.site.counts)
