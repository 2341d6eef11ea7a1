"""The file of a simulation of kind `network`: what of it is the kind's own.

events = 15_000                 # published in all
rows = 30                       # rows of each case, evenly over the events
thresholds = [0.3, 0.8]         # swept: of the Tree Optimizer
heights = [-1]                  # swept: height limits, -1 for none
forwarding = ["prefix"]         # swept

[overlay]                       # see `shapes.py`

[publishers]
count = 9
every_ms = 3_000
[subscribers]
count = 9
every_ms = 3_000
most = 15_000                   # subscriptions in all; none for as long as the events last

[links]
delay_ms = 20                   # the longest that a record is on its way

[jobs]                          # all optional
each = false                    # a job for each broker, or one for all
shards = 1
batch_ms = 100

[trees]                         # all optional: the Tree Optimizer
limit_ms = 0                    # how long a difference may wait, 0 for as long as the threshold takes
nodes_per_filter = 20
pieces = 32
delay_ms = 50                   # the longest that an update is on its way

[[populations]]                 # swept, see `populations.py`
"""

from collections.abc import Mapping
from dataclasses import dataclass

from branchline.ops.simulation.config import Section
from branchline.ops.simulation.generators import Population
from branchline.ops.simulation.populations import read_populations
from branchline.ops.simulation.setting import Faults
from branchline.ops.simulation.shapes import Shape, read_shape
from branchline.routing.methods.naming import FORWARDING
from branchline.routing.prefix.optimizer import Settings

EVENTS_MAX = 10_000_000


@dataclass(frozen=True, slots=True)
class Clients:
    """So many, each of which does something so often."""

    count: int
    every_ms: int


@dataclass(frozen=True, slots=True)
class Spec:
    """What is simulated."""

    events: int
    rows: int
    thresholds: tuple[float, ...]
    heights: tuple[int, ...]
    forwarding: tuple[str, ...]
    overlay: Shape
    publishers: Clients
    subscribers: Clients
    subscriptions: int
    faults: Faults
    each: bool
    shards: int
    batch_ms: int
    trees: Settings
    populations: Mapping[str, Population]


def read(section: Section) -> Spec:
    events = section.integer("events", 1, EVENTS_MAX)
    publishers, subscribers = section.section("publishers"), section.section("subscribers")
    links, jobs = section.section("links"), section.section("jobs", optional=True)
    trees = section.section("trees", optional=True)
    usual = Settings()
    spec = Spec(
        events,
        section.integer("rows", 1, 1_000, 30),
        section.numbers("thresholds", 0, 1, (usual.threshold,)),
        section.integers("heights", -1, 1_000, (-1,)),
        section.texts("forwarding", ("prefix",)),
        read_shape(section.section("overlay")),
        _clients(publishers),
        _clients(subscribers),
        subscribers.integer("most", 0, EVENTS_MAX, EVENTS_MAX),
        Faults(
            delay_ms=links.integer("delay_ms", 0, 3_600_000),
            updates_delay_ms=trees.integer("delay_ms", 0, 3_600_000, 50),
        ),
        jobs.flag("each", False),
        jobs.integer("shards", 1, 64, 1),
        jobs.integer("batch_ms", 1, 60_000, 100),
        Settings(
            limit_ms=trees.integer("limit_ms", 0, 86_400_000, 0) or None,
            nodes_per_filter=trees.integer("nodes_per_filter", 0, EVENTS_MAX, usual.nodes_per_filter),
            pieces=trees.integer("pieces", 1, EVENTS_MAX, usual.pieces),
            snapshot_ms=None,
        ),
        read_populations(section),
    )
    for name in spec.forwarding:
        if name not in FORWARDING:
            section.wrong("forwarding", f"not {name!r}", f"known are {', '.join(FORWARDING)}")
    for part in (publishers, subscribers, links, jobs, trees):
        part.done()
    return spec


def _clients(section: Section) -> Clients:
    return Clients(section.integer("count", 1, 10_000), section.integer("every_ms", 1, 86_400_000))
