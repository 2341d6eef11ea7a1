"""Why a subscription does not bring an event to its subscriber, as its home can say it.

The home asks the subscription's own filter for the constraints that failed. If the filter matches, something
else is in the way: the home knows which brokers have not reported the subscription yet. The rest is seen only
by whoever followed the event: which brokers it came by, and how much these know.

Cost: O(subscriptions) for a subscriber that has its home here; of these DENIALS_MOST are evaluated.
"""

from dataclasses import dataclass

from branchline.routing.codes import Rejection
from branchline.routing.control import Identity, Subscribed
from branchline.routing.overlay.broker import Broker
from branchline.routing.overlay.dividing import Content
from branchline.routing.spellings.sql_text import write, write_path
from branchline.routing.values import MISSING, Found
from branchline.routing.verdicts import why_not

DENIALS_MOST = 100
"""Subscriptions that one question has evaluated: a subscriber may have thousands, and each may take long."""

TEXT_MOST = 200
"""Characters of a filter's condition or an event's value in a reason."""


@dataclass(frozen=True, slots=True)
class Denial:
    """Why a subscription does not bring the event to its subscriber."""

    subscription: Identity
    filter: str
    matches: bool
    """The filter matches: something else is in the way."""
    failures: tuple[str, ...] = ()
    """The constraints that failed, with what the event has; or why that cannot be said."""
    waits_for: tuple[str, ...] = ()
    """The brokers that have not reported the subscription to its home."""


def denials(broker: Broker, subscriber: str, content: Content, most: int) -> tuple[list[Denial], int]:
    """For the first subscriptions of the subscriber at this home, what each has to do with the event; and how
    many more there are.
    """
    if not broker.table.homes(subscriber)[broker.name]:
        return [], 0
    own = [
        change
        for change in broker.table.changes()
        if isinstance(change, Subscribed)
        and change.identity.subscriber == subscriber
        and change.identity.home == broker.name
    ]
    own.sort(key=lambda each: each.identity)
    return [_denial(broker, change, content) for change in own[:most]], len(own[most:])


def _denial(broker: Broker, change: Subscribed, content: Content) -> Denial:
    identity = change.identity
    compiled = broker.table.compiled(identity)
    assert compiled is not None, "what stands is compiled"
    waits_for = tuple(broker.home.pending.waits_for(identity))
    text = _short(" ".join(change.filter.split()))
    attributes = content.attributes()
    if isinstance(attributes, Rejection):
        unread = f"the event cannot be read: {attributes.reason}"
        return Denial(identity, text, False, (unread,), waits_for)
    why = why_not(compiled.expression, attributes)
    if isinstance(why, Rejection):
        return Denial(identity, text, False, (f"it could not be decided: {why.reason}",), waits_for)
    failures = []
    for failure in why.failures:
        values = ", ".join(f"{write_path(path)} is {_value(value)}" for path, value in failure.found)
        condition = _short(write(failure.condition))
        failures.append(f"{condition}: {values}" if values else condition)
    return Denial(identity, text, not failures, tuple(failures), waits_for)


def _value(value: Found) -> str:
    return "missing" if value is MISSING else _short(repr(value))


def _short(text: str) -> str:
    return text if len(text) <= TEXT_MOST else f"{text[:TEXT_MOST]} …"
