"""One load by one choice of methods, on the simulated network, and what that took.

All brokers are in one job of one shard, which the simulator drives as Spark would. Where publishers
advertise, one at each broker says what will enter there. Then subscriptions come, and settle; where
subscribers may spare brokers work, all do so, rightly. Then trees are told; then all events are published.
Only what the shard itself does is timed, in processor time, while events are handled: neither the network
nor the Tree Optimizer.

A copy is *needless* if nobody at the homes that it answers for gets the event. A table has an *entry* for
each different filter that a broker asks on behalf of one home or one subscription, after optimisations; along
a tree, on behalf of one neighbour.
"""

import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from branchline.kafka.errors import JobFailed
from branchline.ops.compare_loads import Load, event_bytes
from branchline.ops.simulation.runner import Record
from branchline.ops.simulation.setting import Faults, Setting
from branchline.ops.simulation.world import World
from branchline.routing.checking import check
from branchline.routing.compiling import Compiled, compile_filter
from branchline.routing.control import Operation, Request
from branchline.routing.dissemination.strategies import on_tree
from branchline.routing.filters import Filter, overlaps
from branchline.routing.history import Read
from branchline.routing.methods.choosing import spelled
from branchline.routing.methods.counts import COUNTS
from branchline.routing.methods.naming import EVALUATING, Methods, make_optimisations
from branchline.routing.methods.optimised import optimised
from branchline.routing.methods.protocols import Interest
from branchline.routing.methods.words import named
from branchline.routing.optimise.entries import Entry, entries_of, plain
from branchline.routing.overlay.dividing import Arrival
from branchline.routing.overlay.topology import spanning_tree
from branchline.routing.prefix.header import Header, decode
from branchline.routing.shard import EventBatch, Outputs, Shard

WARM_SUBSCRIPTIONS, WARM_EVENTS = 40, 40
PUBLISHER = "publisher"
"""Who says what enters at a broker."""
EVENTS_AT_ONCE = 500
SUBSCRIBED_AT_ONCE = 200

Deliveries = frozenset[tuple[object, str]]


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a load by some methods."""

    methods: Methods
    figures: dict[str, Any]
    counts: dict[str, int]
    """What the methods counted, by names of their own."""
    deliveries: Deliveries
    """Who got what: the same for all methods."""
    wrong: str = ""
    """What the checker says, if it is not clean."""

    def row(self) -> dict[str, Any]:
        """For the table and as JSON."""
        return {"methods": spelled(self.methods), **self.figures, "counts": self.counts}


FIGURES = {
    "content_matches": "content matches",
    "afresh_matches": "matches afresh",
    "cpu_us_per_visit": "CPU per event and broker, µs",
    "copies": "copies on links",
    "link_bytes": "bytes on links",
    "needless_copies": "copies that nobody beyond wanted",
    "control_messages": "messages between brokers about subscriptions",
    "table_entries": "entries of all brokers' tables",
    "memory_bytes": "memory of all brokers, bytes",
    "deliveries": "deliveries",
}
"""What is told of each, and what that is."""


class _Timed:
    """A shard, and the processor time that it takes for events."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self.took_s = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._shard, name)

    def handle(self, now_ms: int, updates: Any, control: Any, events: EventBatch) -> Outputs:
        began_s = time.process_time()
        outputs = self._shard.handle(now_ms, updates, control, events)
        if events.at:
            self.took_s += time.process_time() - began_s
        return outputs


def simulate(load: Load, methods: Methods, seed: int, beat: Callable[[str], None]) -> Result:
    """The load by these methods, measured once loops are compiled."""
    warm = replace(methods, batches_from=0)
    _play(load.first(WARM_SUBSCRIPTIONS, WARM_EVENTS), warm, seed, lambda _: None)
    world, timed = _play(load, methods, seed, beat)
    if world.failures:
        raise JobFailed(f"{spelled(methods)}: {world.failures[0]}", hint="a fault of ours: report it")
    beat("checking")
    verdict = check(world.history, repeats="none")
    reads = [entry for entry in world.history if isinstance(entry, Read)]
    sizes = [event_bytes(event.attributes) for event in load.events]
    homes = {wanted.identity.subscriber: wanted.identity.home for wanted in load.subscriptions}
    headers = [(event, header) for event, _, _, header in world.copies if isinstance(header, bytes)]
    figures = {
        "content_matches": world.counts["content_matches"],
        "afresh_matches": world.counts["afresh_matches"],
        "cpu_us_per_visit": round(1e6 * timed.took_s / max(world.counts["visits"], 1), 1),
        "copies": len(headers),
        "link_bytes": sum(len(header) + sizes[event] for event, header in headers),
        "needless_copies": needless(
            load, ((event, decode(header)) for event, header in headers), homes_of(reads, homes)
        ),
        "control_messages": world.counts["letters"],
        "table_entries": table_entries(load, methods),
        "memory_bytes": _memory(load, world),
        "deliveries": len(reads),
    }
    counts = {name: world.counts[name] for name in COUNTS if name in world.counts}
    got = frozenset((entry.event, entry.subscriber) for entry in reads)
    return Result(methods, figures, counts, got, "" if verdict.clean else verdict.describe())


def _play(load: Load, methods: Methods, seed: int, beat: Callable[[str], None]) -> tuple[World, _Timed]:
    setting = Setting(load.topology, (tuple(load.brokers),), methods=methods, faults=Faults(5), honest=True)
    world = World(setting, seed)
    timed = _Timed(world.runners[0].shards[0])
    world.runners[0].shards[0] = timed  # type: ignore[call-overload]
    for broker, text in adverts_of(load, methods).items():
        world.advertise(Request(Operation.ADVERTISE, PUBLISHER, "all", broker, "sql", text, broker))
    world.settle()
    for first in range(0, len(load.subscriptions), SUBSCRIBED_AT_ONCE):
        some = load.subscriptions[first : first + SUBSCRIBED_AT_ONCE]
        world.enlist({wanted.identity.subscriber: wanted.identity.home for wanted in some})
        for number, wanted in enumerate(some, first):
            home, subscriber, id_ = wanted.identity
            spelling, text = wanted.spelling, wanted.text
            world.ask(Request(Operation.SUBSCRIBE, subscriber, id_, home, spelling, text, f"r{number}"))
        world.settle()
        beat(f"{first + len(some):,} of {len(load.subscriptions):,} subscriptions")
    world.optimizer.tell_snapshot()
    world.settle()
    timed.took_s = 0.0
    for number, event in enumerate(load.events, 1):
        world.publish(event.at, event.attributes)
        if number % EVENTS_AT_ONCE == 0:
            world.settle()
            beat(f"{number:,} of {len(load.events):,} events")
    world.settle()
    return world, timed


def adverts_of(load: Load, methods: Methods) -> dict[str, str]:
    """What is advertised at each broker where events enter, in SQL; nothing if nobody wants to know."""
    tree = on_tree(methods.dissemination)
    return load.advertised() if tree is not None and tree.takes_adverts else {}


def homes_of(reads: Iterable[Read], homes: dict[str, str]) -> dict[object, set[str]]:
    """The homes that each event was delivered at."""
    found: dict[object, set[str]] = {}
    for entry in reads:
        found.setdefault(entry.event, set()).add(homes[entry.subscriber])
    return found


def needless(load: Load, copies: Iterable[tuple[int, Header | None]], got: dict[object, set[str]]) -> int:
    """Copies that were for homes at which nobody got the event."""
    numbers = {member.name: member.number for member in load.topology.members}
    count = 0
    for event, header in copies:
        assert header is not None, "what was encoded can be decoded"
        count += not any(header.scope >> numbers[home] & 1 for home in got.get(event, ()))
    return count


def table_entries(load: Load, methods: Methods) -> int:
    """What all brokers ask, home by home and subscription by subscription."""
    chosen, optimisations = named(methods.matching), make_optimisations(methods)
    trees = chosen is not None and chosen.name in EVALUATING
    here, elsewhere = 0, dict[str, Counter[Entry]]()
    for wanted in load.subscriptions:
        compiled = compile_filter(wanted.spelling, wanted.text)
        if isinstance(compiled, Compiled):
            home = wanted.identity.home
            entries = entries_of(Interest(wanted.identity, compiled, home), trees)
            here += len(entries)
            elsewhere.setdefault(home, Counter()).update(entries)
    if methods.on_tree:
        return here + _told_entries(load, elsewhere, methods)
    others = len(load.brokers) - 1
    return here + others * sum(len(optimised(each, optimisations).entries) for each in elsewhere.values())


def _told_entries(load: Load, wanted: Mapping[str, Counter[Entry]], methods: Methods) -> int:
    """What all brokers keep of what neighbours on the tree have told them."""
    tree, dissemination = spanning_tree(load.topology), on_tree(methods.dissemination)
    assert dissemination is not None, "it goes along a tree"
    optimisations = make_optimisations(methods)

    texts = adverts_of(load, methods)

    # Both go as deep as the tree, which has few brokers.
    @cache
    def sent(at: str, to: str) -> frozenset[Filter]:
        """What is advertised on this side of the link."""
        compiled = compile_filter("sql", texts[at]) if at in texts else None
        own = compiled.cover if isinstance(compiled, Compiled) else ()
        return frozenset(own).union(*(sent(other, at) for other in tree[at] if other != to))

    @cache
    def told(teller: str, to: str) -> Set[Filter]:
        summary = dissemination.summary()
        filters = [filter_ for entry in wanted.get(teller, ()) for filter_ in entry.cover]
        for other in tree[teller]:
            filters += told(other, teller) if other != to else ()
        for filter_ in filters:
            if not dissemination.advertising or any(overlaps(filter_, each) for each in sent(to, teller)):
                summary.add(filter_)
        if dissemination.table is not None:
            dissemination.table.place_all()
        return summary.told()

    links = [(teller, to) for teller, others in tree.items() for to in others]
    return sum(len(optimised(map(plain, told(*each)), optimisations).entries) for each in links)


def _memory(load: Load, world: World) -> int:
    """What a shard takes that is built from the state of this one, with all that is made for its events."""
    runner = world.runners[0]
    state = runner.shards[0].state()
    some = [
        Arrival(Record(place, None, each.attributes)) for place, each in enumerate(load.events[:WARM_EVENTS])
    ]
    tracemalloc.start()
    try:
        built = Shard(runner.job, 0, [state])
        for name in load.brokers:
            built.handle(world.now_ms, [], [], EventBatch([name] * len(some), some))
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def disagreement(results: Sequence[Result]) -> str | None:
    """What is wrong with the results, for people: somebody got something else, or the checker complains."""
    for result in results:
        if result.wrong:
            return f"{spelled(result.methods)}: {result.wrong}"
    first, *others = results
    for other in others:
        if other.deliveries != first.deliveries:
            missing, more = first.deliveries - other.deliveries, other.deliveries - first.deliveries
            return (
                f"{spelled(other.methods)} delivers other than {spelled(first.methods)}: "
                f"{len(missing):,} deliveries fewer, {len(more):,} more"
            )
    return None
