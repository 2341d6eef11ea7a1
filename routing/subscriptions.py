"""The table of subscriptions: which stand, and which have ended.

It is the fold of the changes applied to it, in whatever order they come: per subscription the change
with the highest order stands. Who is interested in an event is asked of a forwarding method, which is told of
every change here.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from branchline.routing.codes import Rejection
from branchline.routing.compiling import Compiled, compile_filter
from branchline.routing.control import Change, Ended, Forgotten, Identity, Number, Subscribed
from branchline.routing.limits import ENDED_REMEMBERED_MS


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription in force: the change that made it, and its filter compiled."""

    change: Subscribed
    filter: Compiled


class SubscriptionTable:
    """Subscriptions by identity, each with the highest order seen."""

    def __init__(self, changes: Iterable[Change] = ()) -> None:
        self._in_force: dict[Identity, Subscription] = {}
        self._ended: dict[Identity, Ended] = {}
        self._homes: dict[str, Counter[str]] = {}
        """For each subscriber, how many subscriptions it has at which homes."""
        self._of: dict[str, set[Identity]] = {}
        """For each subscriber, all that is known of it, ended ones too."""
        for change in changes:
            self.apply(change)

    def __len__(self) -> int:
        return len(self._in_force)

    def find(self, identity: Identity) -> Subscribed | Ended | None:
        """The newest change known for the subscription, unless it is forgotten."""
        subscription = self._in_force.get(identity)
        return subscription.change if subscription else self._ended.get(identity)

    def compiled(self, identity: Identity) -> Compiled | None:
        """The filter of a subscription that stands."""
        subscription = self._in_force.get(identity)
        return subscription.filter if subscription else None

    def homes(self, subscriber: str) -> Counter[str]:
        """At which homes the subscriber has subscriptions, and how many."""
        return self._homes.get(subscriber, Counter())

    def of(self, subscriber: str) -> list[Subscribed | Ended]:
        """What is known of a subscriber's subscriptions, sorted by identity."""
        known = map(self.find, sorted(self._of.get(subscriber, ())))
        return [change for change in known if change is not None]

    def changes(self) -> Iterator[Subscribed | Ended]:
        """Changes that build an equal table: what a snapshot holds."""
        for subscription in self._in_force.values():
            yield subscription.change
        yield from self._ended.values()

    def apply(self, change: Change) -> Rejection | bool:
        """Obey the change; False if its order is not above the last seen, a rejection if unreadable."""
        known = self.find(change.identity)
        if isinstance(change, Forgotten):
            # Forgetting carries the end's own number: it undoes exactly that end, nothing later.
            if not isinstance(known, Ended) or known.number != change.number:
                return False
            self._drop(change.identity)
            return True
        if known is not None and change.order <= known.order:
            return False
        if isinstance(change, Ended):
            self._drop(change.identity)
            self._ended[change.identity] = change
            self._of.setdefault(change.identity.subscriber, set()).add(change.identity)
            return True
        compiled = compile_filter(change.spelling, change.filter)
        if isinstance(compiled, Rejection):
            return compiled
        self._drop(change.identity)
        self._in_force[change.identity] = Subscription(change, compiled)
        self._homes.setdefault(change.identity.subscriber, Counter())[change.identity.home] += 1
        self._of.setdefault(change.identity.subscriber, set()).add(change.identity)
        return True

    def forgettable(self, now_ms: int) -> list[Forgotten]:
        """The ends that have been remembered long enough, oldest first."""
        due = [ended for ended in self._ended.values() if ended.at_ms + ENDED_REMEMBERED_MS <= now_ms]
        return [Forgotten(each.identity, each.number) for each in sorted(due, key=_when)]

    def highest_number(self, home: str) -> Number | None:
        """The highest number of any subscription known of a home."""
        own = (change.number for change in self.changes() if change.identity.home == home)
        return max(own, default=None)

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
        known = self._of.get(identity.subscriber, set())
        known.discard(identity)
        if not known:
            self._of.pop(identity.subscriber, None)
        self._ended.pop(identity, None)
        if self._in_force.pop(identity, None) is not None:
            homes = self._homes[identity.subscriber]
            homes[identity.home] -= 1
            if not homes[identity.home]:
                del homes[identity.home]
                if not homes:
                    del self._homes[identity.subscriber]


def _when(ended: Ended) -> tuple[int, Identity]:
    return ended.at_ms, ended.identity
