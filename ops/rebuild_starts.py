"""What a rebuild is asked for, and from where each topic is read then."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from branchline.kafka.cluster import Cluster
from branchline.kafka.errors import ConfigError, OffsetsGone
from branchline.kafka.listing import last_stats
from branchline.kafka.rebuilding import Offsets, Positions, offsets_since
from branchline.kafka.topics import OWN_CONTROL, Topics
from branchline.ops.spark_options import SparkChoice
from branchline.routing.dissemination.strategies import FLOODING
from branchline.routing.overlay.rebuilding import Recorded
from branchline.routing.overlay.topology import Topology
from branchline.streaming.checkpoint import Made


@dataclass(frozen=True, slots=True)
class Plan:
    """What was asked for; None for what was not said."""

    cluster: Cluster
    topics: Topics
    old: str | None = None
    positions: bool = False
    offsets: Offsets | None = None
    since_ms: int | None = None
    control_since_ms: int | None = None
    brokers: tuple[str, ...] | None = None
    cluster_name: str | None = None
    shards: int | None = None
    topology: Topology | None = None
    checkpoint: str | None = None
    spark: SparkChoice = field(default_factory=SparkChoice)
    dissemination: str = FLOODING
    was_on_tree: bool = False
    """Whether the old state has of other homes what neighbours on a tree have told."""

    def at(self, cluster: Cluster) -> "Plan":
        return replace(self, cluster=cluster)


def control_of(topics: Topics, made: Made, names: Iterable[str]) -> list[str]:
    """The topics that carry control to the job, with those of subscribers' own that are among the names."""
    return [*topics.control_topics(made.brokers), *topics.of_kind(OWN_CONTROL, names)]


def find_starts(
    plan: Plan,
    made: Made,
    old: Offsets,
    said: Positions | None,
    recorded: Recorded,
    bounds: dict[str, list[tuple[int, int]]],
    warnings: list[str],
) -> Offsets:
    """Where each topic is read from at first. What is not named is read from its beginning."""
    topics = plan.topics
    events, control = topics.event_topics(made.brokers), control_of(topics, made, bounds)
    starts: Offsets = {}
    if plan.since_ms is not None:
        starts = offsets_since(plan.cluster, {each: bounds[each] for each in events}, plan.since_ms)
    elif plan.positions and said is None:
        raise ConfigError("the router never said how far it was", hint="give --since or --from-beginning")
    elif plan.positions and said is not None:
        starts = said.offsets
    elif plan.offsets is not None or plan.old is not None:
        starts = plan.offsets if plan.offsets is not None else old
    # What was told of the tree is lost with the state: it is read again from its beginning.
    kept = {name: dict(starts[name]) for name in events if name in starts}
    known = _control(plan, control, starts, said, recorded, bounds)
    kept |= {name: dict(each) for name, each in known.items()}
    _check(kept, bounds, events, warnings)
    return kept


def _control(
    plan: Plan,
    control: list[str],
    starts: Offsets,
    said: Positions | None,
    recorded: Recorded,
    bounds: dict[str, list[tuple[int, int]]],
) -> Offsets:
    """Where requests and letters are read from: all that was not handled, and as little else as can be.

    To handle a request a second time is harmless only while its id is remembered: read from the beginning,
    what has expired or was forgotten would come back.
    """
    wanted = [name for name in control if name != plan.topics.rt_updates]
    if plan.control_since_ms is not None:
        return offsets_since(plan.cluster, {name: bounds[name] for name in wanted}, plan.control_since_ms)
    named = plan.topics.control in starts
    known = starts if named or plan.old is not None else _last_known(plan, said)
    if known is None and recorded.changes:
        raise ConfigError(
            "nobody knows how far requests were read: there is neither the old checkpoint nor the router's "
            "own word",
            hint="give --control-since with a time shortly before the router stopped; too early a time "
            "handles requests again and may bring back leases that have expired",
        )
    return {name: known[name] for name in wanted if known and name in known}


def _last_known(plan: Plan, said: Positions | None) -> Offsets | None:
    if said is not None:
        return said.offsets
    # A router of a version that wrote no positions tells them in its statistics, for a day.
    known: dict[str, dict[str, int]] = {}
    for stats in last_stats(plan.cluster, plan.topics).values():
        known |= stats.get("positions") or {}
    return known or None


def _check(
    starts: dict[str, dict[str, int]],
    bounds: dict[str, list[tuple[int, int]]],
    events: list[str],
    warnings: list[str],
) -> None:
    """Whether what is to be read is there. Of control that is gone, the rest is read, and that is told."""
    for name, partitions in starts.items():
        for partition, offset in list(partitions.items()):
            number = int(partition)
            first, end = bounds[name][number] if number < len(bounds[name]) else (0, -1)
            if first <= offset <= end:
                continue
            if name in events or offset > end:
                raise OffsetsGone(
                    f"{name}, partition {partition}, has the offsets {first} to {end}, and not {offset}",
                    hint="records were lost to retention, or the topic was made anew; read what is left with "
                    "--since or --from-beginning",
                )
            partitions[partition] = first
            warnings.append(f"{first - offset:,} records of {name} were gone before they were read")


def left_to_read(bounds: dict[str, list[tuple[int, int]]], starts: Offsets, names: list[str]) -> int:
    """How many records of the topics are to be read."""
    return sum(
        end - max(first, starts.get(name, {}).get(str(number), first))
        for name in names
        for number, (first, end) in enumerate(bounds.get(name, []))
    )
