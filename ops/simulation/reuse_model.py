"""A network of brokers in which lookup reuse is measured: real dividers and forwardings, no time but theirs.

Theory of operation. What is known, and what is published, is the world's (`reuse_world.py`); what brokers
match with is a kit's (`reuse_kits.py`).

An event is led from broker to broker as a job does it, by `Divider.route`, without bytes in between. What is
timed is the forwarding: finding who is interested, and making what travels on. Of that the matchings are
timed by themselves, or charged; the rest is what keys take. Times are CPU times of this process, and differ
from run to run; everything else is the same for the same seed.
"""

import gc
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import process_time_ns

from branchline.ops.simulation.reuse_kits import FORWARDING, Kit, Watch
from branchline.ops.simulation.reuse_world import World
from branchline.routing.event import Event
from branchline.routing.methods.protocols import Forwarding, Interest, Matching, Sought
from branchline.routing.methods.rematch import Rematch
from branchline.routing.methods.reuse import KEYS_PER_HOP, Listed, Reuse
from branchline.routing.methods.words import named
from branchline.routing.overlay.dividing import Arrival, Divider
from branchline.routing.prefix.forwarding import Found, Wanted
from branchline.routing.prefix.header import HEADER_MAX_BYTES, KEYS_FIT, Header, decode, encode
from branchline.routing.prefix.keys import DIGEST_BYTES, KEY_BYTES, Keys
from branchline.routing.prefix.trees import Prefix
from branchline.routing.values import JsonValue

UNDIVIDED = "always-reuse, undivided"
"""All keys go to every broker, in place of those of homes behind the link."""


class TimedForwarding:
    """A forwarding that is timed."""

    def __init__(self, forwarding: Forwarding, watch: Watch) -> None:
        self._forwarding, self._watch = forwarding, watch
        self.add, self.remove, self.stored = forwarding.add, forwarding.remove, forwarding.stored
        self.enter = forwarding.enter

    def find(self, prefix: Prefix, event: Event, wanted: Sought | None = None) -> Found:
        started_ns = process_time_ns()
        found = self._forwarding.find(prefix, event, wanted)
        self._watch.spent(FORWARDING, started_ns)
        return found

    def onward(self, prefix: Prefix, found: Found, to: str) -> Prefix:
        started_ns = process_time_ns()
        made = self._forwarding.onward(prefix, found, to)
        self._watch.spent(FORWARDING, started_ns)
        return made


@dataclass(frozen=True, slots=True)
class _Hops:
    """The homes elsewhere that are looked for; enough are found when there is one behind each hop."""

    hops: Mapping[str, str]
    most: int

    def __contains__(self, owner: object) -> bool:
        return owner in self.hops

    def enough(self, found: Found) -> bool:
        return len({self.hops[home] for home in found.certain | found.doubtful}) == self.most  # type: ignore[index]


class Apart:
    """Matches subscriptions here and homes elsewhere apart, as lookup reuse does: each hop is found once."""

    def __init__(self, here: Matching, elsewhere: Matching) -> None:
        self._here, self._elsewhere = here, elsewhere

    def add(self, interest: Interest) -> None:
        raise AssertionError("what is known was known before")

    remove = add

    def match(self, event: Event, wanted: Wanted | None = None) -> Found:
        hops: Mapping[str, str] = wanted.hops  # type: ignore[union-attr]
        found = Found()
        if wanted.local:  # type: ignore[union-attr]
            found = self._here.match(event, wanted)
        if hops:
            others = self._elsewhere.match(event, _Hops(hops, len(set(hops.values()))))
            found.certain |= others.certain
            found.doubtful |= others.doubtful
        return found


class Undivided(Reuse):
    """All keys go to every broker."""

    def onward(self, prefix: Prefix, found: Found, to: str) -> Prefix:
        assert isinstance(found, Listed)
        if prefix.keys is not None and prefix.keys.complete:
            return prefix
        keys = sorted({key for listed in found.lists.values() for key in listed})
        return Prefix((), keys=Keys(tuple(keys), (), self.table.digest(keys)))


@dataclass(frozen=True, slots=True)
class Attributes:
    """The content of an event."""

    values: Mapping[str, JsonValue]

    def attributes(self) -> Mapping[str, JsonValue]:
        return self.values


@dataclass(slots=True)
class Run:
    """What became of all events by one forwarding."""

    watch: Watch
    counts: Counter[str] = field(default_factory=Counter)
    delivered: list[frozenset[str]] = field(default_factory=list)
    """Of each event the subscribers that got it."""


class Model:
    """Brokers that know all subscriptions."""

    def __init__(self, world: World, kit: Kit) -> None:
        self._world, self._kit = world, kit

    def run(self, forwarding: str) -> Run:
        """Lead all events through the network."""
        run = Run(Watch(self._kit.matchings))
        dividers = {name: self._divider(forwarding, name, run.watch) for name in self._world.names}
        # What was built is large, and none of it is let go: looking for that would be counted as work.
        gc.disable()
        for entry, attributes in zip(self._world.entries, self._world.events, strict=True):
            content = Attributes(attributes)
            delivered: list[str] = []
            pending = [(entry, Arrival(content))]
            while pending:
                name, arrival = pending.pop()
                run.watch.entering = arrival.header is None
                routed = dividers[name].route(arrival)
                delivered += routed.deliveries
                run.counts["visits"] += 1
                run.counts["content_matches"] += routed.content_matches
                run.counts["afresh_matches"] += routed.afresh_matches
                for copy in routed.copies:
                    self._count_copy(copy.header, run.counts)
                    pending.append((copy.to, Arrival(content, copy.header)))
            run.delivered.append(frozenset(delivered))
        gc.enable()
        return run

    def _divider(self, forwarding: str, name: str, watch: Watch) -> Divider:
        world, kit = self._world, self._kit
        here = kit.here(name, watch)
        chosen = named(forwarding)
        assert chosen is not None
        if chosen.name == "rematch":
            made: Forwarding = Rematch(Apart(here, kit.hops(name, watch)))
        else:
            kind = Undivided if forwarding == UNDIVIDED else Reuse
            limit = (chosen.number or KEYS_PER_HOP) if chosen.name == "partial-reuse" else None
            made = kind(here, kit.elsewhere(name, watch), limit, table=world.keys_of[name])
        return Divider(world.positions[name], TimedForwarding(made, watch), world.tables[name])

    @staticmethod
    def _count_copy(header: Header, counts: Counter[str]) -> None:
        counts["copies"] += 1
        keys = header.prefix.keys
        if keys is not None:
            counts["keys"] += len(keys)
            counts["key_bytes"] += len(keys) * KEY_BYTES + keys.complete * DIGEST_BYTES
            counts["keys_most"] = max(counts["keys_most"], len(keys))
            counts["complete"] += keys.complete
            # Most are short enough for sure, or too long for sure.
            if len(keys) > KEYS_FIT:
                is_longer = len(keys) * KEY_BYTES > HEADER_MAX_BYTES
                travelled = None if is_longer else decode(encode(header))
                counts["cut"] += travelled is None or travelled.prefix.keys != keys
