"""What `rebuild` does, step by step. Imports what imports Spark, so the command imports it when it runs."""

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from branchline.kafka.admin import ensure_topics, list_topics
from branchline.kafka.errors import CheckpointDiffers, ConfigError
from branchline.kafka.home import Home
from branchline.kafka.jars import ensure_jars
from branchline.kafka.rebuilding import (
    Offsets,
    Positions,
    bounds_of,
    read_in_force,
    read_positions,
    read_recorded,
    write_rebuilt,
)
from branchline.ops.job import default_checkpoint, start_spark
from branchline.ops.rebuild import refuse_if_running
from branchline.ops.rebuild_starts import Plan, control_of, find_starts, left_to_read
from branchline.ops.settings import BROKER, CLUSTER, SHARDS
from branchline.ops.spark_options import SparkChoice
from branchline.routing.control import Ended
from branchline.routing.dissemination.strategies import FLOODING
from branchline.routing.methods.naming import Methods
from branchline.routing.overlay.rebuilding import Rebuilt, rebuild
from branchline.routing.overlay.topology import FIRST, Topology
from branchline.routing.shard import Job
from branchline.streaming.checkpoint import Made, begin
from branchline.streaming.files import Folder, LocalFolder, SparkFolder
from branchline.streaming.rebuilding import OldState, committed_offsets, made_for, old_state, prepare
from branchline.streaming.router import RouterConfig
from branchline.streaming.session import is_local_path

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Result:
    """What was restored."""

    checkpoint: str
    brokers: tuple[str, ...]
    cluster: str
    shards: int
    subscriptions: int
    ended: int
    pending: int
    topology: int
    held: int
    letters: int
    control: int
    """Requests and letters that the router will read first."""
    events: int
    warnings: tuple[str, ...]

    def fields(self) -> dict[str, Any]:
        """As JSON."""
        return {name: getattr(self, name) for name in self.__slots__} | {"brokers": list(self.brokers)}

    def lines(self) -> list[str]:
        """For people."""
        return [
            f"rebuilt: {self.subscriptions:,} subscriptions, {self.ended:,} ends, topology {self.topology}",
            f"asked about again: {self.pending:,} subscriptions, {self.letters:,} letters",
            f"to be read: {self.control:,} requests and letters, {self.events:,} events"
            + (f", {self.held:,} of which were held" if self.held else ""),
        ]


class _Old:
    """The old checkpoint, or none."""

    def __init__(self, plan: Plan, folders: Callable[[str], Folder]) -> None:
        self.made: Made | None = None
        self.offsets: Offsets = {}
        self.has_state = False
        if plan.old is not None:
            folder = folders(plan.old)
            self.made = made_for(folder)
            # One that was rebuilt and never used begins where it was told to.
            starts = self.made.starts if self.made is not None else None
            self.offsets = committed_offsets(folder, plan.old, starts)
            self.has_state = bool(folder.names("commits"))


def old_offsets(old: str, home: Home, choice: SparkChoice, report: Report) -> Offsets:
    """The offsets of the old checkpoint's last batch that was committed."""
    with contextlib.ExitStack() as stack:
        return committed_offsets(_folders(stack, home, choice, report)(old), old)


def run(plan: Plan, home: Home, report: Report) -> Result:
    """Make the new checkpoint."""
    with contextlib.ExitStack() as stack:
        session = _session(stack, home, plan.spark, report)
        folders = _folders(stack, home, plan.spark, report, session)
        old = _Old(plan, folders)
        plan = replace(plan, was_on_tree=old.made is not None and old.made.on_tree)
        made = _made(plan, old.made)
        checkpoint = plan.checkpoint or default_checkpoint(
            home, plan.cluster, plan.topics.namespace, made.brokers[0]
        )
        folder = folders(checkpoint)
        if folder.names():
            raise CheckpointDiffers(
                f"there is something at {checkpoint}",
                hint="name a new --checkpoint, or move the old one away",
            )
        ensure_topics(plan.cluster, plan.topics.of_brokers(made.brokers))
        refuse_if_running(plan.cluster, plan.topics, made.brokers)
        before: OldState | None = OldState()
        if plan.old is not None and old.has_state:
            methods = _methods(old.made or made, plan.dissemination)
            job = Job(_both(made, old.made), (old.made or made).topology, made.cluster, methods)
            before = old_state(session(plan.old), plan.old, job)
        return rebuild_into(plan, made, old.offsets, before, folder, checkpoint, report)


def rebuild_into(
    plan: Plan,
    made: Made,
    old: Offsets,
    before: OldState | None,
    folder: Folder,
    checkpoint: str,
    report: Report,
) -> Result:
    """Read what Kafka has, write what must be said, and prepare the folder.

    `before` is what the old state told; None if there is one that cannot be read.
    """
    held = before.held if before is not None else ()
    now_ms = int(time.time() * 1000)
    topics, warnings = plan.topics, list[str]()
    job = Job(made.brokers, made.topology, made.cluster, _methods(made, plan.dissemination))
    said = read_positions(plan.cluster, topics, made.brokers)
    # Before anything is read or written: what comes later is read by the router.
    bounds = bounds_of(
        plan.cluster,
        [*control_of(topics, made, list_topics(plan.cluster)), *topics.event_topics(made.brokers)],
    )
    report("reading filters")
    recorded = read_recorded(plan.cluster, topics, report)
    starts = find_starts(plan, made, old, said, recorded, bounds, warnings)
    newest = recorded.topology or made.topology
    if newest is None and recorded.changes:
        raise ConfigError(
            "there are subscriptions, and no topology that their brokers are in",
            hint="give the one that the brokers began with: --topology",
        )
    _refuse_unrecorded(plan, made, newest)
    alone = newest is None or len(newest.members) == 1
    rebuilt = rebuild(
        job,
        recorded,
        joined=_joined(made, newest, said, before),
        in_force=set() if alone else read_in_force(plan.cluster, topics, report),
        now_ms=now_ms,
    )
    _warn(made, newest, rebuilt, before, plan, warnings)
    report(f"writing {len(rebuilt.letters):,} letters and {len(rebuilt.filters):,} records of filters")
    # What was held by a broker that is not served any more is read by nobody here, but by who serves it.
    write_rebuilt(plan.cluster, topics, rebuilt, held, now_ms)
    prepare(folder, replace(made, starts=starts), rebuilt.state)
    ended = sum(isinstance(change, Ended) for change in recorded.changes.values())
    return Result(
        checkpoint,
        made.brokers,
        made.cluster,
        made.shards,
        len(recorded.standing),
        ended,
        rebuilt.pending,
        newest.number if newest is not None else 0,
        len(held),
        len(rebuilt.letters),
        left_to_read(bounds, starts, control_of(topics, made, bounds)),
        left_to_read(bounds, starts, topics.event_topics(made.brokers)) + len(held),
        tuple(warnings),
    )


def _made(plan: Plan, old: Made | None) -> Made:
    """What the new checkpoint is for: as asked for, else as the old one was."""
    if old is not None and old.namespace != plan.topics.namespace:
        raise ConfigError(
            f"the old checkpoint is of the namespace {old.namespace!r}",
            hint=f"give --namespace {old.namespace}",
        )
    brokers = plan.brokers or (old.brokers if old else (str(BROKER.default),))
    cluster = plan.cluster_name or (old.cluster if old else str(CLUSTER.default))
    shards = plan.shards or (old.shards if old else int(SHARDS.default or 0))
    topology = plan.topology or (old.topology if old else None)
    if topology is not None and not any(topology.member(broker) for broker in brokers):
        topology = None
    # Checks all of it as the router would.
    RouterConfig(plan.cluster, "", plan.topics.namespace, brokers, shards, 1, topology, cluster)
    on_tree = Methods(dissemination=plan.dissemination).on_tree
    return begin(Made(plan.topics.namespace, cluster, shards, brokers, topology, on_tree=on_tree))


def _methods(made: Made, dissemination: str) -> Methods:
    """Methods by which brokers know of other homes what the state of such a checkpoint has."""
    if Methods(dissemination=dissemination).on_tree == made.on_tree:
        return Methods(dissemination=dissemination)
    return Methods(dissemination="identity" if made.on_tree else FLOODING)


def _refuse_unrecorded(plan: Plan, made: Made, newest: Topology | None) -> None:
    """Refuse to go by what is recorded of all homes, if that is not recorded here."""
    others = [member.name for member in newest.members if member.name not in made.brokers] if newest else []
    if others and plan.was_on_tree and not made.on_tree:
        raise ConfigError(
            f"what subscribers of {', '.join(others)} want is not recorded here: it was told along a tree",
            hint="choose another --dissemination than simple",
        )


def _both(made: Made, old: Made | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*made.brokers, *(old.brokers if old else ()))))


def _joined(made: Made, newest: Topology | None, said: Positions | None, before: OldState | None) -> bool:
    """Whether a broker of the job had joined, so that `filters` has all that there is to know."""
    members = [newest.member(broker) for broker in made.brokers] if newest is not None else []
    # Who is of the first topology never had to; and who is alone has nobody to wait for.
    if any(member is not None and member.since == FIRST for member in members):
        return True
    if newest is not None and len(newest.members) == 1:
        return True
    return (said is not None and said.joined) or (before is not None and before.joined)


def _warn(
    made: Made,
    newest: Topology | None,
    rebuilt: Rebuilt,
    before: OldState | None,
    plan: Plan,
    warnings: list[str],
) -> None:
    """What a person should know."""
    if before is None:
        warnings.append(
            "the old state cannot be read, and so neither can copies of events that it held, if any; "
            "`branchline status --json` tells how many were `held` and not `released`. If there were some, "
            "rebuild with --since a time before them"
        )
    elif (plan.positions or plan.offsets is not None) and newest is not None and len(newest.members) > 1:
        warnings.append(
            "copies of events that the old state held for a newer topology, if any, are not known"
        )
    if rebuilt.joining:
        warnings.append("no broker of this job is known to have joined: they wait to be told everything")
    warnings += [
        f"broker {member.name} is in the topology and not served by this job"
        for member in (newest.members if newest is not None else ())
        if member.cluster == made.cluster and member.name not in made.brokers
    ]


def _session(
    stack: contextlib.ExitStack, home: Home, choice: SparkChoice, report: Report
) -> Callable[[str], Any]:
    """Starts Spark when it is first asked for."""
    started: list[Any] = []

    def session(checkpoint: str) -> Any:
        if not started:
            jars = ensure_jars(home, report)
            log = home.make(home.logs) / "spark-rebuild.log"
            started.append(start_spark(stack, jars, report, choice, checkpoint, log))
        return started[0]

    return session


def _folders(
    stack: contextlib.ExitStack,
    home: Home,
    choice: SparkChoice,
    report: Report,
    session: Callable[[str], Any] | None = None,
) -> Callable[[str], Folder]:
    spark = session or _session(stack, home, choice, report)
    return lambda place: LocalFolder(place) if is_local_path(place) else SparkFolder(spark(place), place)
