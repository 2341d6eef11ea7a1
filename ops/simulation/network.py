"""Kind `network`: publishers and subscribers at an overlay of brokers, and how precise forwarding is there.

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

A *false positive* is an event found for a subscriber that does not get it, because the last broker checks; as
a share of all that were found. A *needless copy* crossed a link, and nobody beyond wanted it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random

from branchline.ops.simulation.config import Section
from branchline.ops.simulation.generators import Population
from branchline.ops.simulation.kind import Beat, Case, Column, Kind, Result, Row
from branchline.ops.simulation.populations import POPULATION, read_populations
from branchline.ops.simulation.shapes import Shape, read_shape
from branchline.ops.simulation.world import Faults, Setting, World
from branchline.routing.control import Operation, Request
from branchline.routing.history import Read
from branchline.routing.overlay.methods import FORWARDING, Methods
from branchline.routing.prefix.header import Header
from branchline.routing.prefix.optimizer import Settings

EVENTS_MAX = 10_000_000
THRESHOLD = Column("threshold", float, "threshold of the Tree Optimizer")
HEIGHT = Column("height", int, "height limit, -1 for none")
METHOD = Column("forwarding", str, "forwarding")


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


def sweep(spec: Spec) -> list[Row]:
    return [
        {POPULATION.name: label, THRESHOLD.name: threshold, HEIGHT.name: height, METHOD.name: method}
        for label in spec.populations
        for threshold in spec.thresholds
        for height in spec.heights
        for method in spec.forwarding
    ]


def run(spec: Spec, case: Case, beat: Beat) -> Result:
    overlay = _Overlay(spec, case)
    rows: list[Row] = []
    for place in range(1, spec.rows + 1):
        overlay.publish(spec.events * place // spec.rows)
        rows.append(overlay.row())
        beat(f"{overlay.published:,} of {spec.events:,} events, {rows[-1]['tree_nodes']:,} nodes")
    return Result(rows, overlay.world.failures)


class _Overlay:
    """A world with its clients, and what was measured of it so far."""

    def __init__(self, spec: Spec, case: Case) -> None:
        self._spec = spec
        population = spec.populations[str(case.swept[POPULATION.name])]
        random = Random(f"{case.seed} overlay")
        topology = spec.overlay.topology(random)
        names = [member.name for member in topology.members]
        height = int(case.swept[HEIGHT.name])
        trees = Settings(
            threshold=float(case.swept[THRESHOLD.name]),
            limit_ms=spec.trees.limit_ms,
            nodes_per_filter=spec.trees.nodes_per_filter,
            pieces=spec.trees.pieces,
            snapshot_ms=None,
        )
        methods = Methods(str(case.swept[METHOD.name]), height=None if height < 0 else height)
        jobs = tuple((name,) for name in names) if spec.each else (tuple(names),)
        setting = Setting(
            topology,
            jobs,
            shards=spec.shards,
            batch_ms=spec.batch_ms,
            methods=methods,
            trees=trees,
            faults=spec.faults,
            as_bytes=False,
        )
        self.world = World(setting, case.seed)
        self._filters = population.filters(Random(f"{case.seed} filters"))
        self._events = population.events(Random(f"{case.seed} events"))
        self._entries = [random.choice(names) for _ in range(spec.publishers.count)]
        self._homes = {f"s{place}": random.choice(names) for place in range(spec.subscribers.count)}
        self._numbers = {member.name: member.number for member in topology.members}
        self._acts = self._schedule()
        self.published = self._subscribed = 0
        self._window: Counter[str] = Counter()
        self._since_copy = self._since_entry = 0

    def _schedule(self) -> Iterator[tuple[int, str]]:
        """When which client does something: all at their own intervals, begun at different times."""
        clients = [
            (self._spec.publishers.every_ms, place * self._spec.publishers.every_ms // len(self._entries), at)
            for place, at in enumerate(self._entries)
        ]
        waiting = [(begin, "publish", every, at) for every, begin, at in clients]
        every_ms = self._spec.subscribers.every_ms
        for place, name in enumerate(self._homes):
            waiting.append((place * every_ms // len(self._homes), "subscribe", every_ms, name))
        while True:
            waiting.sort()
            at_ms, act, every, who = waiting[0]
            waiting[0] = (at_ms + every, act, every, who)
            yield at_ms, f"{act} {who}"

    def publish(self, events: int) -> None:
        """Let clients do what they do until so many events were published in all."""
        begin_ms = 1_000_000
        while self.published < events:
            at_ms, what = next(self._acts)
            self.world.advance(begin_ms + at_ms)
            act, who = what.split()
            if act == "publish":
                self.world.publish(who, next(self._events))
                self.published += 1
            elif self._subscribed < self._spec.subscriptions:
                self._subscribe(who)

    def _subscribe(self, subscriber: str) -> None:
        self._subscribed += 1
        request = Request(
            Operation.SUBSCRIBE,
            subscriber,
            f"id{self._subscribed}",
            self._homes[subscriber],
            filter=next(self._filters),
            request=f"r{self._subscribed}",
        )
        self.world.ask(request)

    def row(self) -> Row:
        """What there is now, and what happened since the row before."""
        world = self.world
        now = Counter(
            {name: world.counts[name] for name in ("refuted", "exact_checks", "visits", "updates", "copies")}
        )
        reads = self._delivered()
        now["delivered"] = self._window["delivered"] + sum(map(len, reads.values()))
        now["needless"] = self._window["needless"] + self._needless(reads)
        row: Row = {
            "events": self.published,
            "subscriptions": self._subscribed,
            "tree_nodes": world.optimizer.optimizer.part(0).tree.nodes,
            "beside": len(world.optimizer.optimizer.part(0).overflow),
            "updates": now["updates"],
            "updates_new": now["updates"] - self._window["updates"],
            "delivered": now["delivered"],
            "false_positives": now["refuted"],
            "false_share": _share(now["refuted"], now["delivered"]),
            "false_share_new": _share(
                now["refuted"] - self._window["refuted"], now["delivered"] - self._window["delivered"]
            ),
            "copies": now["copies"],
            "needless_copies": now["needless"],
            "needless_share": _share(now["needless"], now["copies"] - now["needless"]),
            "needless_share_new": _share(
                now["needless"] - self._window["needless"],
                now["copies"] - self._window["copies"] - (now["needless"] - self._window["needless"]),
            ),
            "content_matches": world.counts["content_matches"],
            "afresh_matches": world.counts["afresh_matches"],
            "older_walks": world.counts["older_walks"],
            "visits": now["visits"],
        }
        self._window = now
        return row

    def _delivered(self) -> dict[int, set[str]]:
        """The homes that events were delivered at, of the reads since this was last asked."""
        homes: dict[int, set[str]] = {}
        entries = self.world.history[self._since_entry :]
        self._since_entry += len(entries)
        for entry in entries:
            if isinstance(entry, Read) and isinstance(entry.event, int):
                homes.setdefault(entry.event, set()).add(entry.subscriber)
        return homes

    def _needless(self, reads: dict[int, set[str]]) -> int:
        """Copies that were for homes at which nobody got the event.

        Events that are still on their way when a row is made are few; they count with what has come of them.
        """
        needless = 0
        copies = self.world.copies[self._since_copy :]
        self._since_copy += len(copies)
        for event, _, _, header in copies:
            assert isinstance(header, Header)
            wanted = {self._numbers[self._homes[name]] for name in reads.get(event, ())}
            needless += not any(header.scope >> number & 1 for number in wanted)
        return needless


def _share(false: int, right: int) -> float:
    return false / (false + right) if false + right else 0.0


KIND = Kind(
    name="network",
    read=read,
    sweep=sweep,
    run=run,
    swept=(POPULATION, THRESHOLD, HEIGHT, METHOD),
    columns=(
        Column("events", int, "events"),
        Column("subscriptions", int, "subscriptions"),
        Column("tree_nodes", int, "nodes of the Routing Tree"),
        Column("beside", int, "filters beside the tree"),
        Column("updates", int, "updates told so far"),
        Column("updates_new", int, "updates since the row before"),
        Column("delivered", int, "deliveries"),
        Column("false_positives", int, "false positives"),
        Column("false_share", float, "false positives, share so far"),
        Column("false_share_new", float, "false positives, share since the row before"),
        Column("copies", int, "copies on links"),
        Column("needless_copies", int, "needless copies"),
        Column("needless_share", float, "needless copies, share so far"),
        Column("needless_share_new", float, "needless copies, share since the row before"),
        Column("content_matches", int, "content matches"),
        Column("afresh_matches", int, "matches afresh"),
        Column("older_walks", int, "walks in an older version"),
        Column("visits", int, "visits of events at brokers"),
    ),
    shown=(
        "events",
        "tree_nodes",
        "updates",
        "delivered",
        "false_share",
        "false_share_new",
        "needless_share",
        "afresh_matches",
    ),
)
