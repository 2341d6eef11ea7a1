"""The Tree Optimizer: the one party that makes nodes, from all filters, without addresses.

It keeps the tree of now, part by part, and knows how far it is from the one last told (`weights.py`). When
that passes a threshold, or when there is any difference and the time given from outside says that the limit
is up, it tells the difference as an update with the next clock. The tree is only a vocabulary: nothing that
the optimizer does, misses or repeats changes who gets what.

Each distinct filter is counted and stands in the tree once, at the nodes where its pieces end, or beside it
under an overflow number: where ranges overlap a lot, splits would make a tree explode, so a filter may have
at most `pieces` pieces, and the tree at most `nodes_per_filter` nodes for each filter. Node numbers, child
numbers and overflow numbers are never given twice.

Removing a filter takes a use off every node above its ends; a node without uses dies. A node that another
filter was split against, or that was put above others, lives for as long as a path runs through it.

Deterministic: the same filters in the same order make the same tree.
Cost: adding and removing is O(level) for each piece; telling is O(changes).
"""

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter

from branchline.routing.covers import Cover
from branchline.routing.describing import describe_filter
from branchline.routing.filters import Filter
from branchline.routing.prefix.inserting import Stop, descend
from branchline.routing.prefix.tree import ROOT, Tree, describe_tree
from branchline.routing.prefix.updates import (
    Snapshot,
    Update,
    Version,
    digest_of_numbered,
    in_pieces,
    part_of,
)
from branchline.routing.prefix.views import edges_at
from branchline.routing.prefix.weights import Weights


@dataclass(frozen=True, slots=True)
class Settings:
    """When the optimizer tells, and how large its trees may grow."""

    parts: int = 1
    threshold: float = 0.3
    limit_ms: int | None = 60_000
    """How long a difference may wait, None for as long as the threshold takes."""
    base: float = 0.5
    pieces: int = 32
    """Pieces of a filter, beyond which it goes beside the tree."""
    nodes_per_filter: int = 20
    """Nodes for each filter, beyond which a filter that needs more goes beside the tree."""
    spare_nodes: int = 1_000
    """Nodes that are granted however few filters there are."""
    snapshot_edges: int = 5_000
    """Edges in a piece of a snapshot."""
    snapshot_ms: int | None = 600_000
    """How often all is told again, for those who missed something; None for only on request."""


class Optimizer:
    """The trees of all parts, or of one of them alone, and when they were last told."""

    def __init__(self, incarnation: int, settings: Settings | None = None, only: int | None = None) -> None:
        self._settings = settings or Settings()
        parts = range(self._settings.parts) if only is None else [only]
        self._parts = {part: _Part(part, incarnation, self._settings) for part in parts}
        self._counts: dict[Filter, int] = {}
        self._snapshot_at_ms: int | None = None

    def subscribe(self, cover: Cover) -> None:
        """A subscription has come; its filters are counted, and a new one gets its place."""
        for part, filter_ in self._own(cover):
            known = self._counts.get(filter_, 0)
            self._counts[filter_] = known + 1
            if not known:
                part.add(filter_)

    def unsubscribe(self, cover: Cover) -> None:
        """A subscription with this cover has gone."""
        for part, filter_ in self._own(cover):
            self._counts[filter_] -= 1
            if not self._counts[filter_]:
                del self._counts[filter_]
                part.remove(filter_)

    def updates(self, now_ms: int) -> list[Update]:
        """What is to be told now."""
        return [update for part in self._parts.values() if (update := part.update(now_ms)) is not None]

    def snapshots_due(self, now_ms: int) -> list[Snapshot]:
        """All that was told, if it is time to tell it again. The first call starts the time."""
        every = self._settings.snapshot_ms
        if self._snapshot_at_ms is None:
            self._snapshot_at_ms = now_ms
        if every is None or now_ms - self._snapshot_at_ms < every:
            return []
        self._snapshot_at_ms = now_ms
        return self.snapshots()

    def snapshots(self) -> list[Snapshot]:
        """All that was told, in pieces, for somebody who knows nothing."""
        return [piece for part in self._parts.values() for piece in part.snapshot()]

    def due_ms(self) -> int | None:
        """When something is to be told next, though nothing changes; None if there is no such time."""
        limit, every, began = self._settings.limit_ms, self._settings.snapshot_ms, self._snapshot_at_ms
        waiting = [part.waiting_since_ms for part in self._parts.values()]
        due = [since + limit for since in waiting if since is not None and limit is not None]
        if every is not None and began is not None:
            due.append(began + every)
        return min(due, default=None)

    def differences(self) -> list[float]:
        """For each part, how far the tree is from the one last told."""
        return [part.difference for part in self._parts.values()]

    def describe(self) -> str:
        """The parts for people."""
        return "\n".join(part.describe() for part in self._parts.values())

    def part(self, part: int) -> "_Part":
        return self._parts[part]

    def _own(self, cover: Cover) -> Iterator[tuple["_Part", Filter]]:
        """The cover's filters that belong to the parts that are kept here."""
        for filter_ in cover:
            part = self._parts.get(part_of(filter_, self._settings.parts))
            if part is not None:
                yield part, filter_


@dataclass(slots=True)
class _Told:
    """What brokers have been told, as far as it takes to tell them more."""

    version: Version
    digest: int = 0
    overflow: dict[int, Filter] = field(default_factory=dict)
    digest_beside: int = 0
    """Of the overflow alone."""
    died: list[tuple[int, int]] = field(default_factory=list)
    moved: dict[int, int] = field(default_factory=dict)
    """Nodes that have left an edge that was told, and that edge."""
    born: list[int] = field(default_factory=list)
    numbered: dict[int, Filter] = field(default_factory=dict)
    unnumbered: list[int] = field(default_factory=list)


class _Part:
    """One part: its tree, where its filters end, and what is yet to be told."""

    def __init__(self, part: int, incarnation: int, settings: Settings) -> None:
        self.index = part
        self.tree = Tree()
        self.overflow: dict[Filter, int] = {}
        self._settings = settings
        self._ends: dict[Filter, tuple[int, ...]] = {}
        self._uses = array("q", [0])
        self._weights = Weights(settings.base)
        self._next_overflow = 0
        self._told = _Told(Version(incarnation, 0))
        self.waiting_since_ms: int | None = None
        """Since when there is something to tell."""

    # Filters

    def add(self, filter_: Filter) -> None:
        stops = descend(self.tree, self.tree, filter_, self._settings.pieces)
        if stops is None or self._too_many(stops):
            number = self._next_overflow
            self._next_overflow += 1
            self.overflow[filter_] = number
            self._told.numbered[number] = filter_
            return
        self._ends[filter_] = tuple(self._grow(stop) for stop in stops)

    def remove(self, filter_: Filter) -> None:
        if filter_ in self.overflow:
            number = self.overflow.pop(filter_)
            if self._told.numbered.pop(number, None) is None:
                self._told.unnumbered.append(number)
            return
        for end in self._ends.pop(filter_):
            self._use(end, -1)

    def _too_many(self, stops: Iterable[Stop]) -> bool:
        more = sum(len(stop.left) for stop in stops)
        allowed = self._settings.spare_nodes + self._settings.nodes_per_filter * (len(self._ends) + 1)
        return more > 0 and self.tree.nodes + more > allowed

    def _grow(self, stop: Stop) -> int:
        """Make the nodes that are missing for a piece; the node where it ends."""
        node = stop.node
        for place, constraint in enumerate(stop.left):
            made = self.tree.new_node(constraint)
            self._uses.append(0)
            moved = [self.tree.child(edge) for edge in stop.adopted] if place == 0 else []
            for child in moved:
                self._detach(child)
            self._attach(node, made)
            for child in moved:
                self._attach(made, child)
                self._uses[made] += self._uses[child]
            node = made
        self._use(node, 1)
        return node

    def _use(self, node: int, change: int) -> None:
        """Count a use of the node and all above it; those that are used no more die, the lowest first."""
        unused: list[int] = []
        while True:
            self._uses[node] += change
            if node == ROOT:
                break
            above = self.tree.parent(node)
            if not self._uses[node]:
                unused.append(node)
            node = above
        for each in unused:
            self._detach(each)

    def _attach(self, parent: int, node: int) -> None:
        edge = self.tree.attach(parent, node, self._told.version.clock + 1)
        self._told.born.append(edge)
        self._weights.attached(self.tree, node)

    def _detach(self, node: int) -> None:
        edge = self.tree.edge_above(node)
        pending = self._told.version.clock + 1
        was_told = self.tree.born(edge) < pending
        self._weights.detaching(self.tree, node, was_told, self._told_level(edge) if was_told else 0)
        self.tree.detach(node, pending)
        if was_told:
            parent, number, _, _ = self.tree.edge(edge)
            self._told.died.append((parent, number))
            self._told.moved[node] = edge

    def _told_level(self, edge: int) -> int:
        """On which level the edge's node is in the tree that was told."""
        level = 1
        while (above := self.tree.edge(edge).parent) != ROOT:
            edge = self._told.moved.get(above, self.tree.edge_above(above))
            level += 1
        return level

    # Telling

    @property
    def difference(self) -> float:
        return self._weights.difference

    @property
    def version(self) -> Version:
        return self._told.version

    def update(self, now_ms: int) -> Update | None:
        if not self._pending():
            self.waiting_since_ms = None
            return None
        if self.waiting_since_ms is None:
            self.waiting_since_ms = now_ms
        limit = self._settings.limit_ms
        waited = limit is not None and now_ms - self.waiting_since_ms >= limit
        if max(self.difference, self._difference_beside()) <= self._settings.threshold and not waited:
            return None
        return self._tell()

    def _difference_beside(self) -> float:
        """The share of the numbers beside the tree that are new or gone: they weigh nothing in the tree."""
        told = self._told
        both = len(told.overflow) + len(self.overflow)
        return (len(told.numbered) + len(told.unnumbered)) / both if both else 0.0

    def _pending(self) -> bool:
        told = self._told
        others = told.died or told.numbered or told.unnumbered
        return bool(others) or any(map(self.tree.is_alive_edge, told.born))

    def _born(self) -> list[int]:
        """The edges that are to be told: those that were born since and live."""
        return [edge for edge in self._told.born if self.tree.is_alive_edge(edge)]

    def _tell(self) -> Update:
        told = self._told
        version = Version(told.version.incarnation, told.version.clock + 1)
        overflow = told.overflow
        gone = [(number, overflow.pop(number)) for number in told.unnumbered]
        overflow |= told.numbered
        digest_beside = told.digest_beside ^ digest_of_numbered([*gone, *told.numbered.items()])
        update = Update(
            self.index,
            version,
            told.digest,
            self.tree.digest ^ digest_beside,
            tuple(told.died),
            tuple(
                edge._replace(constraint=None) if edge.child in told.moved else edge
                for edge in map(self.tree.edge, self._born())
            ),
            tuple(told.numbered.items()),
            tuple(told.unnumbered),
        )
        self._told = _Told(version, update.digest, overflow, digest_beside)
        self._weights.told()
        self.waiting_since_ms = None
        self.tree.forget(version.clock)
        return update

    def snapshot(self, size: int | None = None) -> list[Snapshot]:
        """The version last told, in pieces of so many things, the first one even if it is empty."""
        told = self._told
        edges = edges_at(self.tree, told.version.clock)
        size = size or self._settings.snapshot_edges
        return in_pieces(self.index, told.version, told.digest, edges, told.overflow.items(), size)

    def describe(self) -> str:
        """The tree of now, a line for each node, indented by its level, and the filters beside it."""
        incarnation, clock = self._told.version
        lines = [f"part {self.index} at {incarnation}/{clock}, {self.difference:.3f} from what was told"]
        lines += describe_tree(self.tree, self.tree)
        lines += [
            f"  #{number} {describe_filter(each)}"
            for each, number in sorted(self.overflow.items(), key=itemgetter(1))
        ]
        return "\n".join(lines)
