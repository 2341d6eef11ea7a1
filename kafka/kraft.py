"""What a server is told: its ports on this machine, its place among others, and its properties."""

import contextlib
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ADDRESS = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Ports:
    client: int
    controller: int


@dataclass(frozen=True, slots=True)
class Seat:
    """A node's place in a cluster of several, all on this machine; its ports stay, since others know them."""

    node: int
    controllers: Mapping[int, int]
    """The controller's port of every node, this one included."""
    cluster_id: str


@dataclass(frozen=True, slots=True)
class Detour:
    """One more listener, whose clients are told to come by another port: that of a proxy."""

    port: int
    advertised_port: int


def server_properties(
    log_dir: Path, ports: Ports, seat: Seat | None = None, detour: Detour | None = None
) -> dict[str, str]:
    node, controllers = (seat.node, seat.controllers) if seat is not None else (1, {1: ports.controller})
    copies, enough = str(len(controllers)), str(len(controllers) // 2 + 1)
    clients = advertised = f"CLIENT://{ADDRESS}:{ports.client}"
    if detour is not None:
        clients += f",DETOUR://{ADDRESS}:{detour.port}"
        advertised += f",DETOUR://{ADDRESS}:{detour.advertised_port}"
    return {
        "process.roles": "broker,controller",
        "node.id": str(node),
        "listeners": f"{clients},CONTROLLER://{ADDRESS}:{ports.controller}",
        "advertised.listeners": advertised,
        "listener.security.protocol.map": "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT,DETOUR:PLAINTEXT",
        "inter.broker.listener.name": "CLIENT",
        "controller.listener.names": "CONTROLLER",
        # Named here and not kept in the data, so that the port may change.
        "controller.quorum.voters": ",".join(f"{n}@{ADDRESS}:{port}" for n, port in controllers.items()),
        "log.dirs": str(log_dir),
        "auto.create.topics.enable": "false",
        # A subscriber has a topic, so there are very many; the first entry of an index of 10 MB, the default,
        # takes many milliseconds of a core where the file system allocates by large pages.
        "log.index.size.max.bytes": "262144",
        # After a crash the controller holds the old registration until its session ends, and the start
        # waits for that: 9 s by default.
        "broker.session.timeout.ms": "4000",
        "broker.heartbeat.interval.ms": "1000",
        "group.initial.rebalance.delay.ms": "0",  # there is nobody to wait for
        "default.replication.factor": copies,
        "min.insync.replicas": enough,
        "offsets.topic.replication.factor": copies,
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": enough,
        "transaction.state.log.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.min.isr": enough,
        "share.coordinator.state.topic.num.partitions": "1",
        "log.cleaner.dedupe.buffer.size": str(4 << 20),  # 128 MB by default: half of our heap
    }


def escape(value: str) -> str:
    """A value as Java reads it back from a properties file: ASCII, and escapes for all the rest."""
    units = value.encode("utf-16-be")
    codes = [int.from_bytes(units[i : i + 2], "big") for i in range(0, len(units), 2)]
    return "".join(
        chr(code) if 0x21 <= code < 0x7F and chr(code) != "\\" else f"\\u{code:04x}" for code in codes
    )


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:  # all open at once, so that they differ
            each.bind((ADDRESS, 0))
        return [each.getsockname()[1] for each in sockets]


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(
            socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
        )  # as Java does: old connections do not count
        try:
            probe.bind((ADDRESS, port))
        except OSError:
            return False
        return True
