"""The table of subscriptions: which stand, which have ended, and which an event matches.

It is the fold of the changes applied to it, in whatever order they come: per subscription the change
with the highest number stands. Matching asks every compiled filter, O(filters) an event; indexes will
stand in front of it, and this stays as what they must agree with.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from branchline.routing.codes import Rejection
from branchline.routing.compiling import Compiled, compile_filter
from branchline.routing.control import Change, Ended, Forgotten, Identity, Number, Subscribed
from branchline.routing.event import Event
from branchline.routing.limits import ENDED_REMEMBERED_MS
from branchline.routing.values import JsonValue


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription in force: the change that made it, and its filter compiled."""

    change: Subscribed
    filter: Compiled


class SubscriptionTable:
    """Subscriptions by identity, each with the highest number seen."""

    def __init__(self, changes: Iterable[Change] = ()) -> None:
        self._in_force: dict[Identity, Subscription] = {}
        self._ended: dict[Identity, Ended] = {}
        self._per_subscriber: Counter[str] = Counter()
        self.checks = 0
        """Filters evaluated so far: a count for statistics, no part of the state."""
        for change in changes:
            self.apply(change)

    def __len__(self) -> int:
        return len(self._in_force)

    def find(self, identity: Identity) -> Subscribed | Ended | None:
        """The newest change known for the subscription, unless it is forgotten."""
        subscription = self._in_force.get(identity)
        return subscription.change if subscription else self._ended.get(identity)

    def count(self, subscriber: str) -> int:
        """How many subscriptions of the subscriber are in force."""
        return self._per_subscriber[subscriber]

    def changes(self) -> Iterator[Subscribed | Ended]:
        """Changes that build an equal table: what a snapshot holds."""
        for subscription in self._in_force.values():
            yield subscription.change
        yield from self._ended.values()

    def apply(self, change: Change) -> Rejection | bool:
        """Obey the change; False if its number is not above the last seen, a rejection if unreadable."""
        known = self.find(change.identity)
        if isinstance(change, Forgotten):
            # Forgetting carries the end's own number: it undoes exactly that end, nothing later.
            if not isinstance(known, Ended) or known.number != change.number:
                return False
            self._drop(change.identity)
            return True
        if known is not None and change.number <= known.number:
            return False
        if isinstance(change, Ended):
            self._drop(change.identity)
            self._ended[change.identity] = change
            return True
        compiled = compile_filter(change.spelling, change.filter)
        if isinstance(compiled, Rejection):
            return compiled
        self._drop(change.identity)
        self._in_force[change.identity] = Subscription(change, compiled)
        self._per_subscriber[change.identity.subscriber] += 1
        return True

    def forgettable(self, now_ms: int) -> list[Forgotten]:
        """The ends that have been remembered long enough, oldest first."""
        due = [ended for ended in self._ended.values() if ended.at_ms + ENDED_REMEMBERED_MS <= now_ms]
        return [Forgotten(each.identity, each.number) for each in sorted(due, key=lambda each: each.at_ms)]

    def match(
        self, attributes: Mapping[str, JsonValue], only: str | None = None
    ) -> dict[str, Rejection | None]:
        """The subscribers that are owed the event, each once.

        A subscriber comes with a rejection if none of its filters matched and one could not be
        evaluated. With `only`, nobody else is looked at.
        """
        owed: dict[str, Rejection | None] = {}
        event = Event(attributes)
        for identity, subscription in self._in_force.items():
            subscriber = identity.subscriber
            if only is not None and subscriber != only:
                continue
            if subscriber in owed and owed[subscriber] is None:
                continue
            self.checks += 1
            verdict = subscription.filter.matches(event)
            if isinstance(verdict, Rejection):
                owed[subscriber] = verdict
            elif verdict:
                owed[subscriber] = None
        return owed

    def highest_number(self) -> Number | None:
        """The highest number of any subscription known."""
        return max((change.number for change in self.changes()), default=None)

    def describe(self) -> str:
        """The table for people, a line for each subscription, sorted."""
        lines = [
            f"{subscription.change.identity} #{subscription.change.number.counter}: "
            f"{' '.join(subscription.change.filter.split())}"
            for subscription in self._in_force.values()
        ]
        lines += [f"{ended.identity} #{ended.number.counter}: ended" for ended in self._ended.values()]
        return "\n".join(sorted(lines))

    def _drop(self, identity: Identity) -> None:
        self._ended.pop(identity, None)
        if self._in_force.pop(identity, None) is not None:
            self._per_subscriber[identity.subscriber] -= 1
            if not self._per_subscriber[identity.subscriber]:
                del self._per_subscriber[identity.subscriber]
