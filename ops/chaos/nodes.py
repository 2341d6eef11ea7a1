"""A Kafka of one node or three on this machine, with a proxy before each for all clients but our own.

    jobs ──> proxy ──> DETOUR listener ┐
                                       ├ node
    our own clients ─> CLIENT listener ┘   (and the nodes among themselves)

So faults of the network hit the jobs and nobody else: what clients see is the truth about what was written.
"""

import contextlib
import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import ElectionType, KafkaException

from branchline.kafka.cluster import Cluster
from branchline.kafka.embedded import EmbeddedKafka, new_cluster_id
from branchline.kafka.jars import Jars
from branchline.kafka.java import find_java
from branchline.kafka.kraft import ADDRESS, Detour, Seat
from branchline.ops.chaos.ports import lasting_ports
from branchline.ops.chaos.processes import Process, find
from branchline.ops.chaos.proxy import Loop, Proxy

ADMIN_TIMEOUT_S = 5.0


@dataclass
class Node:
    """A Kafka server and the proxy before it."""

    number: int
    kafka: EmbeddedKafka
    proxy: Proxy

    def process(self) -> Process | None:
        pid = self.kafka.pid
        return None if pid is None else find(pid)

    def stop(self) -> bool:
        """SIGSTOP: it keeps its connections and does nothing."""
        process = self.process()
        return process is not None and process.signal(signal.SIGSTOP)

    def go_on(self) -> None:
        process = self.process()
        if process is not None:
            process.signal(signal.SIGCONT)


class Nodes:
    """All nodes of one cluster. They are started with `start` and ended with the stack."""

    def __init__(self, stack: contextlib.ExitStack, folder: Path, jars: Jars, count: int) -> None:
        loop = stack.enter_context(Loop())
        java, cluster_id = find_java(), new_cluster_id()
        ports = _apart(lasting_ports(4 * count), 4)
        controllers = {place + 1: ports[place][1] for place in range(count)}
        self.all: list[Node] = []
        for place, (client, _, detour, proxy) in enumerate(ports):
            number = place + 1
            kafka = EmbeddedKafka(
                folder / f"kafka-{number}",
                jars,
                java,
                client,
                seat=Seat(number, controllers, cluster_id),
                detour=Detour(detour, proxy),
            )
            stack.callback(kafka.stop)
            self.all.append(Node(number, kafka, Proxy(loop, proxy, detour)))
        self.direct = Cluster(",".join(f"{ADDRESS}:{client}" for client, *_ in ports))
        """For our own clients."""
        self.proxied = ",".join(f"{ADDRESS}:{node.proxy.port}" for node in self.all)
        """The address for the jobs."""

    def start(self) -> None:
        """Start all of them; returns when all answer."""
        with ThreadPoolExecutor(len(self.all)) as pool:
            for started in [pool.submit(node.kafka.start) for node in self.all]:
                started.result()
        for node in self.all:
            node.proxy.heal()

    def heal(self) -> None:
        """Undo whatever was done to them."""
        self.release()
        for node in self.all:
            node.kafka.start()

    def release(self) -> None:
        """Let those go on that are stopped, and everything pass."""
        for node in self.all:
            node.go_on()
            node.proxy.heal()

    def leader(self, topic: str, partition: int = 0) -> Node | None:
        """The node that leads the partition, if one does."""
        try:
            found = self.direct.admin().list_topics(topic, timeout=ADMIN_TIMEOUT_S).topics[topic]
            number = found.partitions[partition].leader
        except (KafkaException, KeyError):
            return None
        return next((node for node in self.all if node.number == number), None)

    def elect(self) -> int:
        """Give every partition back to the node that should lead it; how many changed hands."""
        try:
            answers = self.direct.admin().elect_leaders(ElectionType.PREFERRED, None).result()
        except KafkaException:
            return 0
        return sum(error is None for error in answers.values())


def _apart(ports: list[int], size: int) -> list[list[int]]:
    return [ports[place : place + size] for place in range(0, len(ports), size)]
