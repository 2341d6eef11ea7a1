"""Why an event did or did not reach a subscriber: followed through the brokers, hop by hop.

Each hop asks its broker the very question that routing asks, `Broker.route`, and so tells what the broker
would do with the event now: against the subscriptions of now, which need not be those of when it passed.
Copies lead on to further hops. For a subscriber that does not get the event, each of its subscriptions is
asked for the constraints that failed.

`at_broker` is one hop, for a job that knows its own brokers only; `explain` follows all of them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from branchline.routing.codes import Rejection
from branchline.routing.control import Identity, Subscribed
from branchline.routing.overlay.broker import Broker
from branchline.routing.overlay.dividing import Arrival, Content, Routed
from branchline.routing.prefix.forwarding import Forwarder, Found
from branchline.routing.prefix.header import Header
from branchline.routing.prefix.places import Owner
from branchline.routing.spellings.sql_text import write, write_path
from branchline.routing.values import MISSING
from branchline.routing.verdicts import why_not


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
    """Why it goes nowhere from here."""

    def describe(self) -> list[str]:
        """The hop for people."""
        where = "enters here" if self.sender is None else f"comes from {self.sender}"
        lines = [f"{self.broker}: the event {where}, for {_listed(self.scope)}; {self.how}"]
        lines += [f"  follows {each}" for each in self.path]
        for kind, found in (("certain", self.certain), ("in doubt", self.doubtful)):
            if found:
                lines.append(f"  found, {kind}: {_listed(found)}")
        if not self.certain and not self.doubtful and self.stopped is None:
            lines.append("  nobody found")
        lines += [f"  goes on to {to}, for {_listed(scope)}" for to, scope in self.copies]
        if self.deliveries:
            lines.append(f"  delivered to {_listed(self.deliveries)}")
        if self.stopped is not None:
            lines.append(f"  {self.stopped}")
        return lines


@dataclass(frozen=True, slots=True)
class Denial:
    """Why a subscription does not bring the event to its subscriber."""

    subscription: str
    filter: str
    reasons: tuple[str, ...]
    """The constraints that failed, with what the event has; or what else is in the way."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """An event's way, and what it means for one subscriber, if one was asked for."""

    hops: tuple[Hop, ...]
    subscriber: str | None = None
    delivered: bool | None = None
    """Whether that subscriber gets the event."""
    denials: tuple[Denial, ...] = ()

    def describe(self) -> str:
        """The explanation for people. It is of the subscriptions as they are now."""
        lines = [line for hop in self.hops for line in hop.describe()]
        if self.subscriber is None:
            return "\n".join(lines)
        if self.delivered:
            lines.append(f"{self.subscriber} gets the event")
        else:
            lines.append(f"{self.subscriber} does not get the event:")
            for denial in self.denials:
                lines.append(f"  {denial.subscription}: {denial.filter}")
                lines += [f"    {reason}" for reason in denial.reasons]
            if not self.denials:
                lines.append("  it has no subscription")
        return "\n".join(lines)

    def fields(self) -> dict[str, Any]:
        """The explanation as JSON has it."""
        fields: dict[str, Any] = {"hops": [_hop_fields(hop) for hop in self.hops]}
        if self.subscriber is not None:
            fields["subscriber"] = self.subscriber
            fields["delivered"] = self.delivered
            fields["denials"] = [
                {"subscription": each.subscription, "filter": each.filter, "reasons": list(each.reasons)}
                for each in self.denials
            ]
        return fields


def at_broker(broker: Broker, arrival: Arrival, sender: str | None) -> tuple[Hop, Routed]:
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
        _how(broker, arrival, routed),
        tuple(_path(broker, routed)),
        _names(found.certain),
        _names(found.doubtful),
        tuple((copy.to, homes(copy.header.scope)) for copy in routed.copies),
        tuple(routed.deliveries),
        _stopped(routed),
    )
    return hop, routed


def explain(
    brokers: Mapping[str, Broker], entry: str, content: Content, subscriber: str | None = None
) -> Explanation:
    """Follow an event that enters at a broker through all brokers that are given."""
    hops: list[Hop] = []
    deliveries: set[str] = set()
    pending: list[tuple[str, Header | None, str | None]] = [(entry, None, None)]
    while pending:
        name, header, sender = pending.pop(0)
        broker = brokers.get(name)
        if broker is None:
            hops.append(
                Hop(name, sender, None, (), "asked elsewhere", stopped="this broker is not known here")
            )
            continue
        hop, routed = at_broker(broker, Arrival(content, header), sender)
        hops.append(hop)
        deliveries.update(routed.deliveries)
        pending += [(copy.to, copy.header, name) for copy in routed.copies]
    if subscriber is None:
        return Explanation(tuple(hops))
    delivered = subscriber in deliveries
    denials = () if delivered else tuple(_denials(brokers, hops, content, subscriber))
    return Explanation(tuple(hops), subscriber, delivered, denials)


def _denials(
    brokers: Mapping[str, Broker], hops: list[Hop], content: Content, subscriber: str
) -> Iterator[Denial]:
    visited = {hop.broker for hop in hops}
    own = {
        change.identity: change
        for name, broker in brokers.items()
        for change in broker.table.changes()
        if isinstance(change, Subscribed)
        and change.identity.subscriber == subscriber
        and change.identity.home == name
    }
    for identity, change in sorted(own.items()):
        reasons = _failures(brokers[identity.home], identity, content)
        if not reasons:
            reasons = _not_told(brokers, hops, identity, visited)
        yield Denial(str(identity), " ".join(change.filter.split()), tuple(reasons))


def _failures(broker: Broker, identity: Identity, content: Content) -> list[str]:
    compiled = broker.table.compiled(identity)
    attributes = content.attributes()
    if isinstance(attributes, Rejection):
        return [f"the event cannot be read: {attributes.reason}"]
    assert compiled is not None
    why = why_not(compiled.expression, attributes)
    if isinstance(why, Rejection):
        return [f"it could not be decided: {why.reason}"]
    reasons = []
    for failure in why.failures:
        values = ", ".join(
            f"{write_path(path)} is {'missing' if value is MISSING else repr(value)}"
            for path, value in failure.found
        )
        condition = write(failure.condition)
        reasons.append(f"{condition}: {values}" if values else condition)
    return reasons


def _not_told(
    brokers: Mapping[str, Broker], hops: list[Hop], identity: Identity, visited: set[str]
) -> list[str]:
    """The filter matches, and the event does not come: some broker on the way does not know of it yet."""
    waits = brokers[identity.home].home.pending.waits_for(identity)
    if waits:
        return [f"it matches, but is not in force yet: {_listed(waits)} did not report it"]
    if identity.home not in visited:
        unaware = [
            hop.broker
            for hop in hops
            if hop.broker in brokers and brokers[hop.broker].table.find(identity) is None
        ]
        return [f"it matches, but no copy goes to {identity.home}; not known at {_listed(unaware)}"]
    return [f"it matches, but {identity.home} does not deliver it"]


def _how(broker: Broker, arrival: Arrival, routed: Routed) -> str:
    if routed.held:
        return "it waits for a newer topology"
    if routed.found is None:
        joining = "this broker is joining, and passes it on unmatched"
        return joining if broker.joining else "nobody is looked for here"
    if routed.content_matches:
        return "its content is matched"
    if routed.afresh_matches:
        return "its content is matched afresh"
    older = " of an older version" if routed.found.older else ""
    return f"its prefix{older} is followed"


def _stopped(routed: Routed) -> str | None:
    if routed.refused is not None:
        return f"refused ({routed.refused.code}): {routed.refused.reason}"
    undecided = [f"undecided for {name}: {why.reason}" for name, why in routed.undecided.items()]
    return "; ".join(undecided) or None


def _path(broker: Broker, routed: Routed) -> Iterator[str]:
    """The nodes and numbers of the prefix, in words, as far as the broker has its version."""
    if isinstance(broker.forwarding, Forwarder) and routed.found is not None:
        yield from broker.forwarding.trees.describe(routed.prefix)


def _names(owners: set[Owner]) -> tuple[str, ...]:
    return tuple(sorted(map(str, owners)))


def _listed(names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(names) if names else "nobody"


def _hop_fields(hop: Hop) -> dict[str, Any]:
    return {
        "broker": hop.broker,
        "sender": hop.sender,
        "topology": hop.topology,
        "scope": list(hop.scope),
        "how": hop.how,
        "path": list(hop.path),
        "certain": list(hop.certain),
        "doubtful": list(hop.doubtful),
        "copies": [{"to": to, "scope": list(scope)} for to, scope in hop.copies],
        "deliveries": list(hop.deliveries),
        "stopped": hop.stopped,
    }
