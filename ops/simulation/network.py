"""Kind `network`: publishers and subscribers at an overlay of brokers, and how precise forwarding is there.

What its file says is in `network_file.py`.

A *false positive* is an event found for a subscriber that does not get it, because the last broker checks; as
a share of all that were found. A *needless copy* crossed a link, and nobody beyond wanted it.
"""

from collections import Counter
from collections.abc import Iterator
from random import Random

from branchline.ops.simulation.kind import Beat, Case, Column, Kind, Result, Row
from branchline.ops.simulation.network_file import Spec, read
from branchline.ops.simulation.populations import POPULATION
from branchline.ops.simulation.setting import Setting
from branchline.ops.simulation.world import World
from branchline.routing.control import Operation, Request
from branchline.routing.history import Read
from branchline.routing.methods.naming import Methods
from branchline.routing.prefix.header import Header
from branchline.routing.prefix.optimizer import Settings

THRESHOLD = Column("threshold", float, "threshold of the Tree Optimizer")
HEIGHT = Column("height", int, "height limit, -1 for none")
METHOD = Column("forwarding", str, "forwarding")


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
        method = str(case.swept[METHOD.name])
        methods = Methods(method, height=None if height < 0 else height, batches_from=None)
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
        part = world.optimizer.trees.optimizer.part(0)
        row: Row = {
            "events": self.published,
            "subscriptions": self._subscribed,
            "tree_nodes": part.tree.nodes,
            "beside": len(part.overflow),
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
