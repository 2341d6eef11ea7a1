"""The kinds of fault: what each does to the world, and how that is undone.

A kind's function strikes, and returns what undoes it; `schedule.py` draws from the table of kinds. A further
kind is a function and a row. With a local master the driver's JVM is the executor too.
"""

import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from branchline.kafka.errors import CheckpointDiffers
from branchline.ops.chaos.jobs import Job
from branchline.ops.chaos.nodes import Node
from branchline.ops.chaos.processes import Process
from branchline.ops.chaos.world import BROKERS, SHARDS, World
from branchline.ops.output import exit_code

ALL_OF_THEM = 0.4
"""In how many cases a fault that may hit one or all hits all."""

OTHER_PARTITIONS = 7

Undo = Callable[[], None]
Thing = TypeVar("Thing")


class NotThere(Exception):
    """There was nobody to strike at this moment."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a schedule: everything about it but the moment, which depends on the batch it aims at."""

    kind: str
    hold_s: float
    """How long it lasts."""
    pause_s: float = 1.0
    """How long things are left alone before."""
    into: float = 0.0
    """In [0, 1): how far into a batch it strikes, taking the batch before for its length."""
    pick: float = 0.0
    """In [0, 1): which one of several is hit."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fault."""

    name: str
    what: str
    hold_s: tuple[float, float]
    """The least and the most that it lasts."""
    strike: Callable[[World, Fault], Undo]
    job: str = "router"
    """Whose batch it aims at."""
    nodes: int = 1
    """How many Kafka nodes it needs."""


def _kill_job(world: World, fault: Fault) -> Undo:
    return _killed(world.router, world.router.family())


def _kill_java(world: World, fault: Fault) -> Undo:
    return _killed(world.router, [_driver(world)])


def _kill_python(world: World, fault: Fault) -> Undo:
    # Its JVM lives on for a while, also when the next one has begun: two at once, as after a hasty restart.
    return _killed(world.router, world.router.family()[:1])


def _kill_optimizer(world: World, fault: Fault) -> Undo:
    assert world.optimizer is not None
    return _killed(world.optimizer, world.optimizer.family())


def _killed(job: Job, processes: Sequence[Process]) -> Undo:
    """SIGKILL of all these. The job must then end, if it has not, and is started again."""
    if not [each for each in processes if each.kill()]:
        raise NotThere

    def undo() -> None:
        job.await_end()
        job.start()

    return undo


def _stop_driver(world: World, fault: Fault) -> Undo:
    return _stopped([_driver(world)])


def _stop_optimizer(world: World, fault: Fault) -> Undo:
    assert world.optimizer is not None
    java = world.optimizer.java()
    return _stopped([java] if java is not None else [])


def _stop_workers(world: World, fault: Fault) -> Undo:
    return _stopped(_one_or_all(world.router.workers(), fault))


def _stopped(processes: Sequence[Process]) -> Undo:
    """SIGSTOP, and SIGCONT."""
    stopped = [each for each in processes if each.signal(signal.SIGSTOP)]
    if not stopped:
        raise NotThere

    def undo() -> None:
        for each in stopped:
            each.signal(signal.SIGCONT)

    return undo


def _kill_workers(world: World, fault: Fault) -> Undo:
    if not [each for each in _one_or_all(world.router.workers(), fault) if each.kill()]:
        raise NotThere
    return lambda: None


def _kill_node(world: World, fault: Fault) -> Undo:
    return _node_killed(world, _one(world.nodes.all, fault))


def _kill_leader(world: World, fault: Fault) -> Undo:
    leader = world.nodes.leader(world.topics.entry(BROKERS[int(fault.pick * len(BROKERS))]))
    if leader is None:
        raise NotThere
    return _node_killed(world, leader)


def _node_killed(world: World, node: Node) -> Undo:
    node.kafka.kill()

    def undo() -> None:
        node.kafka.start()
        # What it led has moved to others; this moves it back.
        world.nodes.elect()

    return undo


def _stop_node(world: World, fault: Fault) -> Undo:
    node = _one(world.nodes.all, fault)
    if not node.stop():
        raise NotThere
    return node.go_on


def _cut(world: World, fault: Fault) -> Undo:
    return _network(_one_or_all(world.nodes.all, fault), lambda node: node.proxy.cut())


def _stall(world: World, fault: Fault) -> Undo:
    return _network(_one_or_all(world.nodes.all, fault), lambda node: node.proxy.stall())


def _network(nodes: Sequence[Node], strike: Callable[[Node], None]) -> Undo:
    for node in nodes:
        strike(node)

    def undo() -> None:
        for node in nodes:
            node.proxy.heal()

    return undo


def _fill_disk(world: World, fault: Fault) -> Undo:
    driver = _driver(world)
    if not driver.limit_files(0):
        raise NotThere

    def undo() -> None:
        driver.limit_files(None)

    return undo


def _other_shards(world: World, fault: Fault) -> Undo:
    job = world.router
    _killed(job, job.family())

    def undo() -> None:
        job.await_end()
        job.start("--shards", str(SHARDS + 1))
        code, said = job.await_end(), job.output
        if code != exit_code(CheckpointDiffers("")) or CheckpointDiffers.code not in said:
            world.wrong.append(
                f"started with {SHARDS + 1} shards in place of {SHARDS}, the router ended with {code}: "
                f"{said.strip()[-200:]!r}"
            )
        job.start()

    return undo


def _other_partitions(world: World, fault: Fault) -> Undo:
    job = world.router
    _killed(job, job.family())

    def undo() -> None:
        job.await_end()
        settings = job.folder / "spark-settings"
        settings.mkdir(exist_ok=True)
        file = settings / "spark-defaults.conf"
        file.write_text(f"spark.sql.shuffle.partitions {OTHER_PARTITIONS}\n")
        job.start(environment={"SPARK_CONF_DIR": str(settings)})

    return undo


def _driver(world: World) -> Process:
    java = world.router.java()
    if java is None:
        raise NotThere
    return java


def _one(things: Sequence[Thing], fault: Fault) -> Thing:
    if not things:
        raise NotThere
    return things[int(fault.pick * len(things))]


def _one_or_all(things: Sequence[Thing], fault: Fault) -> Sequence[Thing]:
    if fault.pick < ALL_OF_THEM:
        return things
    return [_one(things, replace(fault, pick=(fault.pick - ALL_OF_THEM) / (1 - ALL_OF_THEM)))]


KINDS: tuple[Kind, ...] = (
    Kind("driver-kill", "SIGKILL of the router and all its processes at once", (0.0, 3.0), _kill_job),
    Kind("java-kill", "SIGKILL of the driver's JVM alone; the job must end", (0.0, 1.0), _kill_java),
    Kind("python-kill", "SIGKILL of the router's process alone; its JVM lives on", (0.0, 1.0), _kill_python),
    Kind("driver-stop", "SIGSTOP of the driver's JVM, then SIGCONT", (2.0, 8.0), _stop_driver),
    Kind("worker-kill", "SIGKILL of one or all Python workers", (0.0, 1.0), _kill_workers),
    Kind("worker-stop", "SIGSTOP of one or all Python workers, then SIGCONT", (2.0, 8.0), _stop_workers),
    Kind(
        "optimizer-kill",
        "SIGKILL of the Tree Optimizer and all its processes",
        (0.0, 3.0),
        _kill_optimizer,
        "optimizer",
    ),
    Kind(
        "optimizer-stop",
        "SIGSTOP of the Tree Optimizer's JVM, then SIGCONT",
        (2.0, 8.0),
        _stop_optimizer,
        "optimizer",
    ),
    Kind("kafka-kill", "SIGKILL of a Kafka node, then a start on the same data", (0.0, 5.0), _kill_node),
    Kind("kafka-stop", "SIGSTOP of a Kafka node, then SIGCONT", (2.0, 8.0), _stop_node),
    Kind(
        "leader-kill",
        "SIGKILL of the node that leads an entry topic: leaders move away, and then back",
        (3.0, 6.0),
        _kill_leader,
        nodes=3,
    ),
    Kind("cut", "connections of the jobs to one or all nodes reset, new ones refused", (1.0, 8.0), _cut),
    Kind("stall", "connections of the jobs to one or all nodes open; nothing passes", (2.0, 10.0), _stall),
    Kind(
        "disk-full",
        "no write of the driver's JVM to any file succeeds: at the checkpoint, its state, its shuffles",
        (1.0, 5.0),
        _fill_disk,
    ),
    Kind(
        "other-shards",
        "SIGKILL, then a start with another number of shards, which must be refused",
        (0.0, 1.0),
        _other_shards,
    ),
    Kind(
        "other-partitions",
        "SIGKILL, then a start with another `spark.sql.shuffle.partitions`, which must change nothing",
        (0.0, 1.0),
        _other_partitions,
    ),
)
"""All kinds there are, by what they hit."""


def kinds_for(nodes: int, optimizer: bool) -> dict[str, Kind]:
    """Those that can happen to such a world, by name."""
    return {
        kind.name: kind for kind in KINDS if kind.nodes <= nodes and (optimizer or kind.job != "optimizer")
    }
