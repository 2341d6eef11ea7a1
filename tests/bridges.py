"""Two clusters with a bridge between them, as tests use them: in this process, or as one of its own."""

import itertools
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from machines import COMMAND
from routers import ends, read_all
from waiting import wait_until

from branchline.kafka.admin import ensure_topics
from branchline.kafka.bridge import Bridge
from branchline.kafka.cluster import Cluster
from branchline.kafka.ends import Ends
from branchline.kafka.letters import encode_recorded
from branchline.kafka.record import Headers, Record
from branchline.kafka.topics import Topics
from branchline.routing.overlay.topology import FIRST, Member, Topology, link

DEADLINE_S = 60

_numbers = itertools.count(1)


def two_sites(*beyond: str) -> Topology:
    """`here` on the cluster `home`, and linked with it, on the cluster `away`, the others."""
    members = (Member("here", 0, "home"), *(Member(name, 1 + at, "away") for at, name in enumerate(beyond)))
    return Topology(FIRST, members, tuple(sorted(link("here", name) for name in beyond)))


@dataclass
class Pair:
    """Two clusters: `home`, where mail is written, and `away`, where it is to arrive."""

    home: Cluster
    away: Cluster
    namespace: str
    folder: Path
    said: list[str] = field(default_factory=list)
    """What bridges in this process have reported."""

    def __post_init__(self) -> None:
        self.topics = Topics(self.namespace)
        ensure_topics(self.home, self.topics.of_broker("here"))
        self._producer = self.home.producer(linger_ms=1)
        self.clusters = self.folder / "clusters.toml"
        tables = [self._table(name, cluster) for name, cluster in (("home", self.home), ("away", self.away))]
        self.clusters.write_text("\n".join(tables))

    def _table(self, name: str, cluster: Cluster) -> str:
        file = self.folder / f"{name}.properties"
        file.write_text("".join(f"{each}={value}\n" for each, value in cluster.properties.items()))
        return f'[{name}]\nbootstrap = "{cluster.bootstrap}"\nclient_properties = "{file.name}"\n'

    def ends(self) -> Ends:
        return Ends("home", self.home, "away", self.away, self.namespace)

    def back(self) -> Ends:
        return Ends("away", self.away, "home", self.home, self.namespace)

    def link(self, *brokers: str, number: int = FIRST) -> None:
        """Place these brokers on `away`, as a router at `home` would record it, and make their topics."""
        for broker in brokers:
            ensure_topics(self.home, self.topics.of_neighbour(broker))
        topology = two_sites(*brokers)
        key, value = encode_recorded(Topology(number, topology.members, topology.links))
        self.write(self.topics.filters, key, value)
        self.flush()

    def write(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        **more: int,
    ) -> None:
        while True:
            try:
                self._producer.produce(topic, value, key, headers=list(headers), **more)  # type: ignore[arg-type]
                return
            except BufferError:
                self._producer.poll(0.1)

    def flush(self) -> None:
        assert self._producer.flush(DEADLINE_S) == 0, "Kafka did not take everything"

    def once(self, ends: Ends | None = None, *, skip_lost: bool = False) -> Bridge:
        """Carry what is there now."""
        bridge = Bridge(ends or self.ends(), self.said.append, skip_lost=skip_lost)
        bridge.run(threading.Event(), once=True)
        return bridge

    def process(self, *more: str) -> "Process":
        """The bridge as a process of its own."""
        output = self.folder / f"bridge-{next(_numbers)}.output"
        with output.open("wb") as file:
            options = ("--clusters", str(self.clusters), "--namespace", self.namespace)
            child = subprocess.Popen(
                [COMMAND, "bridge", "home", "away", *options, *more], stdout=file, stderr=file
            )
        return Process(child, output)

    def arrived(self, *topics: str) -> list[Record]:
        """What a reader of committed records finds at `away`."""
        return read_all(self.away, topics)

    def await_arrival(self, count: int, *topics: str) -> list[Record]:
        """All records of these topics at `away`, once there are so many, or more."""
        wait_until(
            # Offsets also count what was aborted: only a cheap sign that it is worth reading.
            lambda: sum(ends(self.away, topics).values()) >= count and len(self.arrived(*topics)) >= count,
            DEADLINE_S,
            f"{count} records arrive on {topics}",
        )
        return self.arrived(*topics)


@dataclass
class Process:
    """A bridge that runs by itself."""

    child: "subprocess.Popen[bytes]"
    output: Path

    def said(self) -> str:
        return self.output.read_text()

    def kill(self) -> None:
        self.child.kill()
        self.child.wait()

    def end(self) -> int:
        """Stop it in order; its exit code."""
        self.child.terminate()
        return self.child.wait(DEADLINE_S)


@contextmanager
def carrying(bridge: Bridge) -> Iterator[Bridge]:
    """The bridge, running in a thread of this process; an error of it is raised at the end."""
    stop, raised = threading.Event(), list[BaseException]()

    def run() -> None:
        try:
            bridge.run(stop)
        except BaseException as error:
            bridge.report(f"bridge: ended: {error!r}")
            raised.append(error)

    thread = threading.Thread(target=run, name="bridge")
    thread.start()
    try:
        yield bridge
    finally:
        stop.set()
        thread.join(DEADLINE_S)
    assert not thread.is_alive(), "the bridge does not end"
    if raised:
        raise raised[0]


def contents(record: Record) -> tuple[int, bytes | None, bytes | None, Headers, int]:
    """All of a record that must arrive untouched."""
    place = record.place
    return place.partition, record.key, record.value, record.headers, place.timestamp_ms


def by_partition(records: Sequence[Record]) -> Mapping[tuple[str, int], list[object]]:
    """The records of each partition in their order."""
    found: dict[tuple[str, int], list[object]] = {}
    for record in records:
        found.setdefault((record.place.topic, record.place.partition), []).append(contents(record))
    return found
