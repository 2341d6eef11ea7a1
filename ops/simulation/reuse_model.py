"""A network of brokers in which lookup reuse is measured: real dividers and forwardings, no time but theirs.

Theory of operation. All brokers know all subscriptions, and nothing changes; so what a broker matches for its
neighbours is one matching for all of them, of which each asks for what is not its own. Its own subscriptions,
and the owners in its key table, each broker has for itself. That is what they would have if each had all,
and takes a hundredth of the memory.

An event is led from broker to broker as a job does it, by `Divider.route`, without bytes in between. What is
timed is the forwarding: finding who is interested, and making what travels on. Of that the matchings are
timed by themselves; the rest is what keys take. Times are CPU times of this process, and differ from run to
run; everything else is the same for the same seed.
"""

import gc
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from time import process_time_ns

from branchline.routing.compiling import Compiled
from branchline.routing.control import Identity, Number, Subscribed
from branchline.routing.event import Event
from branchline.routing.methods.key_table import KeyTable
from branchline.routing.methods.naming import Methods, make_matching
from branchline.routing.methods.protocols import Forwarding, Interest, Matching, Sought
from branchline.routing.methods.rematch import Rematch
from branchline.routing.methods.reuse import KEYS_PER_HOP, Listed, Reuse
from branchline.routing.methods.words import named
from branchline.routing.overlay.dividing import Arrival, Divider
from branchline.routing.overlay.position import Position
from branchline.routing.overlay.topology import Topology
from branchline.routing.prefix.forwarding import Found, Wanted
from branchline.routing.prefix.header import Header, decode, encode
from branchline.routing.prefix.keys import DIGEST_BYTES, KEY_BYTES, Keys
from branchline.routing.prefix.trees import Prefix, Trees
from branchline.routing.subscriptions import SubscriptionTable
from branchline.routing.values import JsonValue

ENTRY, HERE, ELSEWHERE, FORWARDING = "entry", "here", "elsewhere", "forwarding"
UNDIVIDED = "always-reuse, undivided"
"""All keys go to every broker, in place of those of homes behind the link."""


@dataclass(slots=True)
class Watch:
    """Nanoseconds spent, by what they were spent on."""

    ns: Counter[str] = field(default_factory=Counter)
    entering: bool = False
    """The event is where it enters: matchings are that of its entry."""

    def spent(self, on: str, since_ns: int) -> None:
        self.ns[on] += process_time_ns() - since_ns

    def matched(self, on: str, since_ns: int) -> None:
        self.spent(ENTRY if self.entering else on, since_ns)


class Timed:
    """A matching that is timed."""

    def __init__(self, matching: Matching, watch: Watch, on: str) -> None:
        self._matching, self._watch, self._on = matching, watch, on

    def add(self, interest: Interest) -> None:
        self._matching.add(interest)

    def remove(self, interest: Interest) -> None:
        self._matching.remove(interest)

    def match(self, event: Event, wanted: Wanted | None = None) -> Found:
        started_ns = process_time_ns()
        found = self._matching.match(event, wanted)
        self._watch.matched(self._on, started_ns)
        return found


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
    """Brokers that know all subscriptions, by one matching."""

    def __init__(
        self, topology: Topology, subscriptions: Mapping[Identity, str], matching: str, seed: int
    ) -> None:
        self._topology, self._seed = topology, seed
        self._methods = Methods("rematch", matching)
        self._names = [member.name for member in topology.members]
        self._trees = Trees()
        self._tables = {name: SubscriptionTable() for name in self._names}
        self._here = {name: make_matching(self._methods, self._trees) for name in self._names}
        self._each = make_matching(self._methods, self._trees)
        self._homes = make_matching(self._methods, self._trees)
        keys = KeyTable()
        for number, (identity, text) in enumerate(subscriptions.items(), 1):
            table = self._tables[identity.home]
            table.apply(Subscribed(identity, Number(1, number), "sql", text))
            compiled = table.compiled(identity)
            assert isinstance(compiled, Compiled)
            own = Interest(identity, compiled, identity)
            self._here[identity.home].add(own)
            self._each.add(own)
            self._homes.add(Interest(identity, compiled, identity.home))
            keys.add(Interest(identity, compiled, identity.home))
        self._keys_of = {name: keys.seen_by(name) for name in self._names}
        nothing = Event({})
        for ready in (*self._here.values(), self._each, self._homes):
            # What an index does when it is first asked is not part of any event.
            ready.match(nothing)

    def run(self, forwarding: str, events: Sequence[Mapping[str, JsonValue]]) -> Run:
        """Lead all events through the network."""
        run = Run(Watch())
        dividers = {name: self._divider(forwarding, name, run.watch) for name in self._names}
        source = Random(f"entries {self._seed}")
        # What was built is large, and none of it is let go: looking for that would be counted as work.
        gc.collect()
        gc.freeze()
        for attributes in events:
            content = Attributes(attributes)
            delivered: list[str] = []
            pending = [(source.choice(self._names), Arrival(content))]
            while pending:
                name, arrival = pending.pop()
                run.watch.entering = arrival.header is None
                routed = dividers[name].route(arrival)
                delivered += routed.deliveries
                run.counts["visits"] += 1
                run.counts["content_matches"] += routed.content_matches
                run.counts["afresh_matches"] += routed.afresh_matches
                run.counts["checks"] += routed.exact_checks
                if routed.found is not None:
                    run.counts.update(routed.found.counts)
                for copy in routed.copies:
                    self._count_copy(copy.header, run.counts)
                    pending.append((copy.to, Arrival(content, copy.header)))
            run.counts["deliveries"] += len(delivered)
            run.delivered.append(frozenset(delivered))
        gc.unfreeze()
        return run

    def _divider(self, forwarding: str, name: str, watch: Watch) -> Divider:
        position = Position(name)
        position.take(self._topology)
        here = Timed(self._here[name], watch, HERE)
        chosen = named(forwarding)
        assert chosen is not None
        if chosen.name == "rematch":
            made: Forwarding = Rematch(Apart(here, Timed(self._homes, watch, ELSEWHERE)))
        else:
            kind = Undivided if forwarding == UNDIVIDED else Reuse
            limit = (chosen.number or KEYS_PER_HOP) if chosen.name == "partial-reuse" else None
            made = kind(here, Timed(self._each, watch, ELSEWHERE), limit, table=self._keys_of[name])
        return Divider(position, TimedForwarding(made, watch), self._tables[name])

    @staticmethod
    def _count_copy(header: Header, counts: Counter[str]) -> None:
        counts["copies"] += 1
        keys = header.prefix.keys
        if keys is not None:
            counts["keys"] += len(keys)
            counts["key_bytes"] += len(keys) * KEY_BYTES + keys.complete * DIGEST_BYTES
            counts["keys_most"] = max(counts["keys_most"], len(keys))
            counts["complete"] += keys.complete
            travelled = decode(encode(header))
            counts["cut"] += travelled is None or travelled.prefix.keys != keys
