"""Growing a Routing Tree filter by filter, and measuring it and the prefixes of events against it.

Budgets are off: no filter goes beside the tree, however many nodes it takes, so that what shows is the tree
by itself. Two caps stop it, on nodes and on filters: time would not be the same twice.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from random import Random

from branchline.ops.simulation.config import Section
from branchline.ops.simulation.kind import Beat
from branchline.routing.event import Event
from branchline.routing.filters import Filter
from branchline.routing.prefix.header import Header, encode
from branchline.routing.prefix.matching import Entries, match
from branchline.routing.prefix.optimizer import Optimizer, Settings
from branchline.routing.prefix.tree import ROOT, Tree
from branchline.routing.prefix.trees import PartPrefix, Prefix
from branchline.routing.prefix.updates import Version
from branchline.routing.values import JsonValue

FILTERS_MAX = 10_000_000
NODES_MAX = 100_000_000
EVENTS_MAX = 100_000
NODES_CAP = 1_000_000

_NO_BUDGET = 2**62
UNBOUNDED = Settings(pieces=_NO_BUDGET, nodes_per_filter=_NO_BUDGET, limit_ms=0)
"""An optimizer that puts every filter in the tree, and tells whatever has changed when it is asked."""

FIRST_VERSION = Version(1, 1)
"""What a prefix is stamped with: the header's size is that of a tree that has just begun."""


@dataclass(frozen=True, slots=True)
class Growth:
    """How far a tree is grown, and where it is looked at."""

    checkpoints: tuple[int, ...]
    """Numbers of filters; the last one ends it."""
    nodes_cap: int
    events: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A tree that has come to a number of filters, or that a cap has stopped."""

    filters: int
    tree: Tree
    stopped: str
    """Which cap stopped it here: `nodes`, or nothing."""


def read_growth(section: Section) -> Growth:
    """What the kinds that grow trees read of a file: `checkpoints`, `nodes_cap` and `events`."""
    return Growth(
        checkpoints=section.integers("checkpoints", 1, FILTERS_MAX),
        nodes_cap=section.integer("nodes_cap", 1, NODES_MAX, NODES_CAP),
        events=section.integer("events", 1, EVENTS_MAX, 100),
    )


def filters_of(seed: int) -> Random:
    """What the filters of a case are drawn with."""
    return Random(f"{seed} filters")


def events_of(seed: int) -> Random:
    """What its events are drawn with, whatever the filters are."""
    return Random(f"{seed} events")


def drawn(events: Iterator[dict[str, JsonValue]], count: int) -> list[Event]:
    return [Event(each) for each in islice(events, count)]


def grow(growth: Growth, filters: Iterable[Filter], beat: Beat) -> Iterator[Checkpoint]:
    """The tree at each checkpoint that it comes to; it is the same one, and goes on growing."""
    optimizer = Optimizer(FIRST_VERSION.incarnation, UNBOUNDED)
    tree = optimizer.part(0).tree
    checkpoints = set(growth.checkpoints)
    for count, filter_ in enumerate(islice(filters, growth.checkpoints[-1]), 1):
        optimizer.subscribe((filter_,))
        stopped = tree.nodes >= growth.nodes_cap
        if stopped or count in checkpoints:
            yield Checkpoint(count, tree, "nodes" if stopped else "")
        if stopped:
            return
        if count % 100 == 0:
            beat(f"{count:,} filters, {tree.nodes:,} nodes")


def tree_levels(tree: Tree) -> list[int]:
    """The nodes on each level, from the children of the root on."""
    counts: list[int] = []
    level = list(children(tree, ROOT))
    while level:
        counts.append(len(level))
        level = [child for node in level for child in children(tree, node)]
    return counts


def children(tree: Tree, node: int) -> Iterator[int]:
    for siblings in tree.children(node).values():
        yield from map(tree.child, siblings)


def fpt_levels(entries: Entries) -> Counter[int]:
    """The nodes of an FPT on each level, from 1 on."""
    return Counter(level for level, _ in entries)


def fpts(tree: Tree, events: Iterable[Event], height: int | None = None) -> list[PartPrefix]:
    """What each event's content match gives, with the FPT as its entries."""
    matched = (match(tree, event, height) for event in events)
    return [PartPrefix(FIRST_VERSION, entries, cut=cut) for entries, cut in matched]


def header_bytes(prefix: PartPrefix) -> int:
    """What travels with an event because of its prefix."""
    return len(encode(Header(Prefix((prefix,)))))
