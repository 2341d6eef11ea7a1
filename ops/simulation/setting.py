"""How a simulated world is set up, and what goes wrong in it."""

from dataclasses import dataclass, field

from branchline.routing.methods.naming import Methods
from branchline.routing.overlay.topology import Topology
from branchline.routing.prefix.optimizer import Settings


@dataclass(frozen=True, slots=True)
class Faults:
    """What goes wrong, and how often."""

    delay_ms: int = 20
    """The longest that a record is on its way."""
    lost: float = 0.0
    """Share of records that are lost, and sent again after a while."""
    doubled: float = 0.0
    """Share of records that arrive a second time, later."""
    crashes: float = 0.0
    """Share of batches that crash half-way and are run again."""
    restarts: float = 0.0
    """Share of batches after which a job starts anew from its state."""
    updates_lost: float = 0.0
    """Share of tree updates that a job never gets."""
    updates_delay_ms: int = 50
    exactly_once: bool = False
    """Of a batch that crashed nothing was written."""


@dataclass(frozen=True, slots=True)
class Setting:
    """How a world is set up."""

    topology: Topology
    jobs: tuple[tuple[str, ...], ...]
    """The brokers of each job; each job is on a cluster of its own if the topology says so."""
    shards: int = 1
    partitions: int = 1
    batch_ms: int = 10
    """The longest that a job lets its input wait."""
    methods: Methods = field(default_factory=Methods)
    trees: Settings = field(default_factory=Settings)
    faults: Faults = field(default_factory=Faults)
    noise: bool = False
    """Between brokers, the content of an event is noise."""
    honest: bool = False
    """Whoever spares a broker work does so rightly; else, some do and some do not."""
    as_bytes: bool = True
    """Headers travel as bytes, as on Kafka; else as they are, which is faster."""
