"""All that a run is about: a Kafka behind proxies, the two jobs, and our own clients beside them."""

import contextlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from branchline.kafka.errors import ClusterUnreachable, PublishFailed, WaitExpired
from branchline.kafka.home import Home
from branchline.kafka.jars import Jars
from branchline.kafka.topics import Topics
from branchline.kafka.topologies import topology_fields
from branchline.ops.chaos.jobs import Job, environment
from branchline.ops.chaos.nodes import Nodes
from branchline.ops.chaos.progress import Checkpoint
from branchline.ops.chaos.reading import ends
from branchline.routing.overlay.topology import Topology, founded, link

NAMESPACE = "chaos"
BROKERS = ("main", "east", "west")
SHARDS = 2
EVENTS_PER_BATCH = 500
"""Few enough that a backlog is many batches, each of which can be hit."""

WRITE_TIMEOUT_S = 300
SETTLE_TIMEOUT_S = 240.0
POLL_S = 0.05

AT_LEAST_ONCE, EXACTLY_ONCE = "at-least-once", "exactly-once"


def circle() -> Topology:
    """Every broker linked with every other: a cycle, with a long way round."""
    return founded(BROKERS, [link("main", "east"), link("east", "west"), link("main", "west", 3)])


@dataclass
class World:
    """What faults can happen to. Everything in it ends with the stack."""

    nodes: Nodes
    router: Job
    optimizer: Job | None
    tend: Callable[[], None] = lambda: None
    """Called while something is waited for: starts jobs again that have ended by themselves."""
    wrong: list[str] = field(default_factory=list)
    """What should not be, beside what the checker finds."""

    def __post_init__(self) -> None:
        self.topics = Topics(NAMESPACE)
        self.cluster = self.nodes.direct
        # A write may wait for as long as any fault lasts, and it is idempotent: what Kafka has, it has once.
        self._producer = self.cluster.producer(
            linger_ms=1, message_timeout_ms=WRITE_TIMEOUT_S * 1000, reconnect_backoff_max_ms=500
        )

    @property
    def jobs(self) -> list[Job]:
        return [self.router, *([self.optimizer] if self.optimizer is not None else [])]

    # As clients see it

    def write(
        self, topic: str, value: bytes | str | None, key: bytes | str | None = None, **more: Any
    ) -> None:
        while True:
            try:
                self._producer.produce(topic, value, key, **more)
                self._producer.poll(0)
                return
            except BufferError:
                self._producer.poll(0.1)

    def flush(self) -> None:
        left = self._producer.flush(WRITE_TIMEOUT_S)
        if left:
            raise PublishFailed(
                f"{left} records of our own clients were not written", hint="read Kafka's log"
            )

    def settle(self) -> None:
        """Return when the router has read its topics to their ends, and wrote nothing to them meanwhile."""
        inputs = [*self.topics.control_topics(BROKERS), *self.topics.event_topics(BROKERS)]
        deadline = time.monotonic() + SETTLE_TIMEOUT_S
        behind = "its topics cannot be read"
        while time.monotonic() < deadline:
            self.tend()
            with contextlib.suppress(ClusterUnreachable):
                before = ends(self.cluster, inputs)
                read = self.router.checkpoint.positions()
                late = [place for place, end in before.items() if (read or {}).get(place, 0) < end]
                if read is not None and not late and before == ends(self.cluster, inputs):
                    return
                behind = f"behind on {late[0][0]}, {len(late)} partitions in all" if late else "busy"
            time.sleep(POLL_S)
        raise WaitExpired(
            f"not everything was handled within {SETTLE_TIMEOUT_S:.0f} s: the router is {behind}",
            hint="run it again with --keep and read the logs",
        )

    def heal(self) -> None:
        """Undo whatever was done to Kafka and to the network."""
        self.nodes.heal()


def make_world(
    stack: contextlib.ExitStack, folder: Path, jars: Jars, nodes: int, delivery: str, optimizer: bool
) -> World:
    """Everything, not started yet; it ends with the stack."""
    home = folder / "home"
    home.mkdir(parents=True)
    (home / "jars").symlink_to(Home.default().jars)
    kafka = Nodes(stack, folder, jars, nodes)
    overlay = folder / "overlay.json"
    overlay.write_text(json.dumps(topology_fields(circle())))
    told = ["--bootstrap", kafka.proxied, "--namespace", NAMESPACE]

    def job(name: str, *options: str) -> Job:
        checkpoint = folder / f"checkpoint-{name}"
        made = Job(
            name,
            [*told, "--checkpoint", str(checkpoint), *options],
            folder,
            environment(home, folder),
            [name],
            Checkpoint(checkpoint),
        )
        stack.callback(made.stop)
        return made

    router = job(
        "router",
        *("--topology", str(overlay), "--shards", str(SHARDS)),
        *("--max-events-per-batch", str(EVENTS_PER_BATCH)),
        *(word for broker in BROKERS for word in ("--broker", broker)),
        *(("--delivery", delivery) if delivery != AT_LEAST_ONCE else ()),
    )
    # Eager: every change of a subscription is soon one of the tree.
    trees = job("optimizer", "--threshold", "0.05", "--limit", "1s") if optimizer else None
    # Before the jobs are ended: without Kafka they would take their time.
    stack.callback(kafka.release)
    return World(kafka, router, trees)
