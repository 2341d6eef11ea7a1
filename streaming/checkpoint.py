"""What a checkpoint was made for, as its `branchline.json` has it, and who may go on with it.

Spark would take a checkpoint of another job and put rows where no state is: subscriptions would seem to be
gone. The state begins with a topology and goes on with facts, so a job goes on with the topology that its
checkpoint began with; further brokers begin with nothing, and are told by their neighbours.
"""

import json
from dataclasses import dataclass, field, replace
from typing import Any

from branchline.kafka.errors import CheckpointDiffers
from branchline.kafka.rebuilding import Offsets
from branchline.kafka.topologies import topology_fields, topology_from_fields
from branchline.routing.overlay.topology import Topology, founded

MADE_FILE = "branchline.json"


def anew(checkpoint: str) -> str:
    """What to do about a checkpoint that cannot be gone on with."""
    return (
        "make a new one from what is recorded, as it is to be now: "
        f"branchline rebuild --from {checkpoint} --checkpoint NEW"
    )


UNSAID_LAYOUT = 2
"""The layout of state in a checkpoint whose file does not say it."""


@dataclass(frozen=True, slots=True)
class Made:
    """What a checkpoint is made for."""

    namespace: str
    cluster: str
    shards: int
    brokers: tuple[str, ...]
    topology: Topology | None = None
    """The one that the brokers begin with."""
    layout: int = UNSAID_LAYOUT
    """Of the state: Spark itself would refuse another one with words that nobody understands."""
    starts: Offsets | None = None
    """In a rebuilt one: where to read from at first."""
    seed: str | None = None
    """In a rebuilt one: the file beside this one with the state that it begins with."""
    once_since: int | None = None
    """The first batch that is written exactly once; None if batches are written at least once."""
    on_tree: bool = False
    """Whether brokers know of other homes what neighbours on a tree have told, and not all subscriptions."""
    join: bool = field(default=False, compare=False)
    """Whether they wait to be told of one. Not in the file: there it shows in the topology."""

    def dump(self) -> str:
        """As text for the file."""
        fields: dict[str, Any] = {
            name: getattr(self, name) for name in ("namespace", "cluster", "shards", "layout")
        }
        topology = None if self.topology is None else topology_fields(self.topology)
        fields |= {"brokers": list(self.brokers), "topology": topology}
        more = {"starts": self.starts, "seed": self.seed, "once_since": self.once_since}
        more |= {"on_tree": self.on_tree or None}
        return json.dumps(fields | {name: value for name, value in more.items() if value is not None})


def load(text: str) -> Made:
    """The inverse of `dump`; it also reads a file that knows one broker, which is alone."""
    fields = json.loads(text)
    if "broker" in fields:
        only = fields["broker"]
        return Made(fields["namespace"], "main", fields["shards"], (only,), founded([only]))
    topology = fields["topology"]
    return Made(
        fields["namespace"],
        fields["cluster"],
        fields["shards"],
        tuple(fields["brokers"]),
        None if topology is None else topology_from_fields(topology),
        fields.get("layout", UNSAID_LAYOUT),
        fields.get("starts"),
        fields.get("seed"),
        fields.get("once_since"),
        fields.get("on_tree", False),
    )


def begin(ours: Made) -> Made:
    """What a new checkpoint is made for: one broker that joins nobody, and has no topology, is alone."""
    if ours.topology is not None or len(ours.brokers) > 1 or ours.join:
        return ours
    return replace(ours, topology=founded(ours.brokers, cluster=ours.cluster))


def go_on(ours: Made, theirs: Made, checkpoint: str) -> Made:
    """What the checkpoint is for from now on; raises CheckpointDiffers if this job cannot go on with it."""
    if theirs.layout != ours.layout:
        raise layout_differs(checkpoint)
    for name in ("namespace", "cluster", "shards"):
        was, now = getattr(theirs, name), getattr(ours, name)
        if was != now:
            raise CheckpointDiffers(
                f"the checkpoint {checkpoint} was made with {name} {was!r}, this job has {now!r}",
                hint=f"start it with the {name} it was made with, or {anew(checkpoint)}",
            )
    if theirs.on_tree != ours.on_tree:
        told = "what neighbours have told" if theirs.on_tree else "all subscriptions"
        raise CheckpointDiffers(
            f"the state in {checkpoint} has {told} of other homes, and this dissemination goes not by that",
            hint=f"start it with a dissemination of that kind, or {anew(checkpoint)}",
        )
    missing = [broker for broker in theirs.brokers if broker not in ours.brokers]
    if missing:
        names = " ".join(f"--broker {broker}" for broker in theirs.brokers)
        raise CheckpointDiffers(
            f"the checkpoint {checkpoint} has the state of broker {', '.join(missing)}, "
            "which this job does not serve",
            hint=f"start it with {names}, also for a broker that a topology has retired; "
            f"or {anew(checkpoint)}",
        )
    # A rebuilt one has the topology in its seed, and whatever a job once began with is past.
    if ours.topology is not None and theirs.seed is None and ours.topology != theirs.topology:
        began = "no topology" if theirs.topology is None else "another topology"
        raise CheckpointDiffers(
            f"the checkpoint {checkpoint} began with {began}",
            hint="start it without --topology (and with the --brokers that it has), and ask for the next "
            f"topology with a control message; or {anew(checkpoint)}",
        )
    if ours.join and theirs.topology is not None and theirs.seed is None:
        raise CheckpointDiffers(
            f"the checkpoint {checkpoint} began with a topology of its own, and does not wait for one",
            hint=f"start it without --join; or {anew(checkpoint)}",
        )
    kept = {name: getattr(theirs, name) for name in ("topology", "layout", "starts", "seed", "once_since")}
    return replace(ours, **kept)


def layout_differs(checkpoint: str) -> CheckpointDiffers:
    """The state cannot be read by this program."""
    return CheckpointDiffers(
        f"the state in {checkpoint} was written in another layout",
        hint=f"run the version of branchline that wrote it, or {anew(checkpoint)}",
    )
