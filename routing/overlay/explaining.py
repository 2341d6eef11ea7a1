"""Why an event did or did not reach a subscriber: followed through the brokers, hop by hop.

Theory of operation. Somebody who has the event asks the job where it enters (`Explain`). The job follows it
through its own brokers as routing would, copy by copy, and answers (`Explained`) with the hops and with what
goes *onward*, to brokers of other jobs or further than one answer goes: whoever asks then asks there, with
the header that the copy would carry. All answers together are the `Explanation`. It is of the subscriptions
of now, which need not be those of when the event passed. Asking changes nothing.

For a subscriber that does not get the event, the jobs of its homes tell what each of its subscriptions has to
do with the event (`denying.py`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from branchline.routing.codes import Rejection
from branchline.routing.overlay.broker import Broker
from branchline.routing.overlay.denying import DENIALS_MOST, Denial, denials
from branchline.routing.overlay.dividing import Arrival, Content
from branchline.routing.overlay.hops import Hop, at_broker, listed, rejected
from branchline.routing.prefix.header import Header, decode, encode

HOPS_TOLD = 32
"""Hops in one answer, which is one record; what goes further is asked for again."""


@dataclass(frozen=True, slots=True)
class Explain:
    """Somebody asks what becomes of an event at a broker, and from there on."""

    broker: str
    content: Content
    header: Header | None = None
    """What the copy carries; None for an event that enters here."""
    sender: str | None = None
    subscriber: str | None = None
    """Whom to tell about in particular."""
    follow: bool = True
    """Whether to follow the event; else only the subscriber's subscriptions are looked at."""
    request: str | None = None


@dataclass(frozen=True, slots=True)
class Onward:
    """A copy that another job is to be asked about, or the same one once more."""

    to: str
    cluster: str | None
    """Where the broker is, as the sender's topology has it."""
    sender: str
    header: Header


@dataclass(frozen=True, slots=True)
class Explained:
    """What one job answers."""

    broker: str
    cluster: str
    """The answering job's own."""
    request: str | None = None
    subscriber: str | None = None
    hops: tuple[Hop, ...] = ()
    onward: tuple[Onward, ...] = ()
    delivered: bool = False
    """Whether the subscriber gets the event at one of these hops."""
    homes: tuple[tuple[str, str | None], ...] = ()
    """The homes of the subscriber that are known here, and their clusters."""
    denials: tuple[Denial, ...] = ()
    """Of the homes that this job serves, if it does not deliver to the subscriber."""
    more_denials: int = 0
    """How many are left out."""
    refused: Rejection | None = None
    """Why there is no answer."""
    index: int | None = field(default=None, compare=False)
    """Of the control message that asked, in the call that answers."""


def explain(brokers: Mapping[str, Broker], cluster: str, asked: Explain) -> Explained:
    """The answer of the job that serves these brokers on a cluster."""
    answer = Explained(asked.broker, cluster, asked.request, asked.subscriber)
    if asked.follow:
        answer = _follow(brokers, asked, answer)
    if asked.subscriber is None:
        return answer
    found: list[Denial] = []
    more = 0
    for broker in () if answer.delivered else brokers.values():
        some, others = denials(broker, asked.subscriber, asked.content, DENIALS_MOST - len(found))
        found, more = found + some, more + others
    homes = tuple(sorted(_homes(brokers, asked.subscriber).items()))
    return replace(answer, homes=homes, denials=tuple(found), more_denials=more)


def _follow(brokers: Mapping[str, Broker], asked: Explain, answer: Explained) -> Explained:
    first, content = brokers[asked.broker], asked.content
    if asked.header is None:
        # What enters is read first, whatever the broker would then do with it.
        attributes = content.attributes()
        if isinstance(attributes, Rejection):
            return replace(answer, hops=(rejected(first, attributes),))
    hops: list[Hop] = []
    onward: list[Onward] = []
    delivered = False
    pending: list[tuple[Broker, Header | None, str | None]] = [(first, asked.header, asked.sender)]
    while pending:
        broker, header, sender = pending.pop(0)
        hop, routed = at_broker(broker, Arrival(content, header), sender, asked.subscriber)
        hops.append(hop)
        delivered = delivered or asked.subscriber in routed.deliveries
        for copy in routed.copies:
            # As it would arrive: a prefix that is too large for a header is trimmed.
            travelled = decode(encode(copy.header))
            assert travelled is not None, "what is encoded reads back"
            if copy.to in brokers and len(hops) + len(pending) < HOPS_TOLD:
                pending.append((brokers[copy.to], travelled, broker.name))
            else:
                onward.append(Onward(copy.to, _cluster(broker, copy.to), broker.name, travelled))
    return replace(answer, hops=tuple(hops), onward=tuple(onward), delivered=delivered)


def _homes(brokers: Mapping[str, Broker], subscriber: str) -> dict[str, str | None]:
    return {
        home: _cluster(broker, home)
        for broker in brokers.values()
        # Who is retired hears of nothing any more.
        if not broker.position.is_retired
        for home in broker.table.homes(subscriber)
    }


def _cluster(broker: Broker, name: str) -> str | None:
    member = broker.topology.member(name) if broker.topology is not None else None
    return member.cluster if member is not None else None


@dataclass(frozen=True, slots=True)
class Explanation:
    """All that was answered, and what it means for the subscriber, if one was asked for."""

    hops: tuple[Hop, ...]
    subscriber: str | None = None
    delivered: bool | None = None
    """Whether that subscriber gets the event."""
    denials: tuple[Denial, ...] = ()
    more_denials: int = 0
    unasked: tuple[tuple[str, str], ...] = ()
    """The brokers that could not be asked, and why."""

    def reasons(self, denial: Denial) -> list[str]:
        """Why the subscription does not bring the event, given what was seen on its way."""
        home = denial.subscription.home
        if not denial.matches:
            return list(denial.failures)
        if denial.waits_for:
            return [f"it matches, but is not in force yet: {listed(denial.waits_for)} did not report it"]
        if home not in {hop.broker for hop in self.hops}:
            known = len(self.denials) + self.more_denials
            unaware = [hop.broker for hop in self.hops if hop.knows is not None and hop.knows < known]
            told = f"; not all is known at {listed(unaware)}" if unaware else ""
            return [f"it matches, but no copy goes to {home}{told}"]
        return [f"it matches, but {home} does not deliver it"]

    def describe(self) -> str:
        """The explanation for people."""
        lines = [line for hop in self.hops for line in hop.describe()]
        lines += [f"{broker}: could not be asked: {why}" for broker, why in self.unasked]
        if self.subscriber is None:
            return "\n".join(lines)
        if self.delivered:
            lines.append(f"{self.subscriber} gets the event")
            return "\n".join(lines)
        unsure = "as far as could be asked, " if self.unasked else ""
        lines.append(f"{unsure}{self.subscriber} does not get the event:")
        for denial in self.denials:
            lines.append(f"  {denial.subscription}: {denial.filter}")
            lines += [f"    {reason}" for reason in self.reasons(denial)]
        if self.more_denials:
            lines.append(f"  and {self.more_denials:,} more of its subscriptions")
        if not self.denials:
            lines.append("  it has no subscription that is known here")
        return "\n".join(lines)


def joined(
    answers: Iterable[Explained], subscriber: str | None = None, unasked: Iterable[tuple[str, str]] = ()
) -> Explanation:
    """All answers as one explanation."""
    told = list(answers)
    hops = tuple(hop for each in told for hop in each.hops)
    if subscriber is None:
        return Explanation(hops, unasked=tuple(unasked))
    delivered = any(each.delivered for each in told)
    # A job that was asked twice tells the same twice.
    found = {denial.subscription: denial for each in told for denial in each.denials}
    return Explanation(
        hops,
        subscriber,
        delivered,
        () if delivered else tuple(found[identity] for identity in sorted(found)),
        0 if delivered else max((each.more_denials for each in told), default=0),
        tuple(unasked),
    )
