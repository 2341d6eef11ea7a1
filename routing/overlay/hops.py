"""What one broker does with its copy of an event, told.

A hop asks its broker the very question that routing asks, `Broker.route`, which changes nothing; so it tells
what the broker would do with the event now.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from branchline.routing.codes import Rejection
from branchline.routing.overlay.broker import Broker
from branchline.routing.overlay.dividing import Arrival, Routed
from branchline.routing.prefix.forwarding import Forwarder, Found
from branchline.routing.prefix.places import Owner

LISTS = ("scope", "path", "certain", "doubtful", "deliveries")
"""What of a hop may be long, and is cut before it travels."""


@dataclass(frozen=True, slots=True)
class Hop:
    """What a broker does with its copy of the event."""

    broker: str
    sender: str | None
    """The broker that the copy comes from; None where the event enters."""
    topology: int | None
    scope: tuple[str, ...]
    """The homes that the copy answers for."""
    how: str
    """How the broker came to know who is interested."""
    path: tuple[str, ...] = ()
    """The nodes of the Routing Tree on the event's way, and the filters beside it."""
    certain: tuple[str, ...] = ()
    """Addresses that were found for certain: other homes, and subscriptions here."""
    doubtful: tuple[str, ...] = ()
    """Addresses that may be meant: whoever delivers checks."""
    copies: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """To which neighbours it goes on, and the scopes of the copies."""
    deliveries: tuple[str, ...] = ()
    """The subscribers here that get it."""
    stopped: str | None = None
    """Why it goes nowhere from here, or not to somebody."""
    knows: int | None = None
    """How many subscriptions of the subscriber that is asked about this broker knows."""
    left_out: tuple[tuple[str, int], ...] = ()
    """Of which list how many are left out."""

    def cut(self, most: int, chars: int) -> "Hop":
        """The hop with no list longer than so many, nor a line of the path longer than so many characters."""
        more = {name: len(getattr(self, name)) - most for name in LISTS}
        kept = {name: getattr(self, name)[:most] for name in LISTS}
        kept["path"] = tuple(line if len(line) <= chars else f"{line[:chars]} …" for line in kept["path"])
        copies = tuple((to, scope[:most]) for to, scope in self.copies)
        left_out = tuple((name, count) for name, count in more.items() if count > 0)
        return replace(self, **kept, copies=copies, left_out=left_out)

    def describe(self) -> list[str]:
        """The hop for people."""
        where = "enters here" if self.sender is None else f"comes from {self.sender}"
        lines = [f"{self.broker}: the event {where}, for {self._all('scope')}; {self.how}"]
        lines += [f"  follows {each}" for each in self.path]
        more = dict(self.left_out)
        if "path" in more:
            lines.append(f"  follows {more['path']:,} more")
        for kind, name in (("certain", "certain"), ("in doubt", "doubtful")):
            if getattr(self, name):
                lines.append(f"  found, {kind}: {self._all(name)}")
        if not self.certain and not self.doubtful and not self.copies and self.stopped is None:
            lines.append("  nobody found")
        lines += [f"  goes on to {to}, for {listed(scope)}" for to, scope in self.copies]
        if self.deliveries:
            lines.append(f"  delivered to {self._all('deliveries')}")
        if self.stopped is not None:
            lines.append(f"  {self.stopped}")
        return lines

    def _all(self, name: str) -> str:
        more = dict(self.left_out).get(name, 0)
        return listed(getattr(self, name)) + (f" and {more:,} more" if more else "")


def at_broker(
    broker: Broker, arrival: Arrival, sender: str | None, subscriber: str | None = None
) -> tuple[Hop, Routed]:
    """One hop, and what routing made of it."""
    routed = broker.route(arrival)
    topology = broker.topology
    names = {} if topology is None else {member.number: member.name for member in topology.members}

    def homes(scope: int) -> tuple[str, ...]:
        return tuple(name for number, name in names.items() if scope >> number & 1)

    found = routed.found or Found()
    hop = Hop(
        broker.name,
        sender,
        None if topology is None else topology.number,
        homes(routed.scope),
        _how(broker, routed),
        tuple(_path(broker, routed)),
        _names(found.certain),
        _names(found.doubtful),
        tuple((copy.to, homes(copy.header.scope)) for copy in routed.copies),
        tuple(routed.deliveries),
        _stopped(arrival, routed),
        None if subscriber is None else sum(broker.table.homes(subscriber).values()),
    )
    return hop, routed


def rejected(broker: Broker, rejection: Rejection) -> Hop:
    """The event enters, and is none: it gets no further than a dead letter."""
    number = None if broker.topology is None else broker.topology.number
    why = f"rejected ({rejection.code}): {rejection.reason}"
    return Hop(broker.name, None, number, (), "it is read, and is no event", stopped=why)


def _how(broker: Broker, routed: Routed) -> str:
    if routed.held:
        return "it waits for a newer topology"
    if routed.found is None:
        joining = "this broker is joining, and passes it on unmatched"
        return joining if broker.joining else "nobody is looked for here"
    if routed.content_matches:
        return "its content is matched"
    if routed.afresh_matches:
        return "its content is matched afresh"
    if routed.prefix.keys is not None:
        return "its keys are looked up"
    if routed.prefix.bloom is not None:
        return "its Bloom filter is looked up"
    older = " of an older version" if routed.found.older else ""
    return f"its prefix{older} is followed"


def _stopped(arrival: Arrival, routed: Routed) -> str | None:
    if routed.held:
        needs = "a topology" if arrival.header is None else f"topology {arrival.header.topology}"
        return f"held here until the broker has {needs}"
    if routed.refused is not None:
        return f"refused ({routed.refused.code}): {routed.refused.reason}"
    undecided = [f"undecided for {name}: {why.reason}" for name, why in routed.undecided.items()]
    return "; ".join(undecided) or None


def _path(broker: Broker, routed: Routed) -> Iterator[str]:
    """The nodes and numbers of the prefix, in words, as far as the broker has its version; or its keys."""
    keys = routed.prefix.keys
    if keys is not None and not routed.content_matches:
        named = "all that matched" if keys.complete else "some of those that matched"
        yield f"{len(keys):,} key{'s' if len(keys) != 1 else ''}, {named}"
    bloom = routed.prefix.bloom
    if bloom is not None and not routed.content_matches:
        yield f"{len(bloom.bits):,} bits of a Bloom filter"
    if isinstance(broker.forwarding, Forwarder) and routed.found is not None:
        yield from broker.forwarding.trees.describe(routed.prefix)


def _names(owners: set[Owner]) -> tuple[str, ...]:
    return tuple(sorted(map(str, owners)))


def listed(names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(names) if names else "nobody"
