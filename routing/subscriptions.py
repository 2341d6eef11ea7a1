"""The table of subscriptions: which stand, and which have ended.

It is the fold of the changes applied to it, in whatever order they come: per subscription the change
with the highest order stands. Who is interested in an event is asked of a forwarding method, which is told of
every change here.

A table that was stored (`stored_table.py`) is read where it lies; a subscription that changes stands here
from then on.

Ends wait on a heap, by when they were, for the day to pass after which they are forgotten; one that has been
undone since is left out when it comes to the top. So no call looks at all that is remembered.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush

from branchline.routing.codes import Rejection
from branchline.routing.compiling import Compiled, compile_filter
from branchline.routing.control import Change, Ended, Forgotten, Identity, Number, Subscribed
from branchline.routing.limits import ENDED_REMEMBERED_MS
from branchline.routing.stored_table import StoredTable, pack_table


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription in force: the change that made it, and its filter compiled."""

    change: Subscribed
    filter: Compiled


class SubscriptionTable:
    """Subscriptions by identity, each with the highest order seen."""

    def __init__(self, changes: Iterable[Change] = (), stored: StoredTable | None = None) -> None:
        self._stored = stored
        self._in_force: dict[Identity, Subscription] = {}
        self._ended: dict[Identity, Ended] = {}
        self._ends: list[tuple[int, Identity]] = []
        """When subscriptions ended, the first on top; of those that ended here, not of stored ones."""
        self._homes: dict[str, Counter[str]] = {}
        """For each subscriber, how many subscriptions it has at which homes; of a table that was stored, for
        those of whom that has changed."""
        self._standing = Counter[str]() if stored is None else Counter(stored.in_force)
        """For each home, how many subscriptions stand."""
        self._of: dict[str, set[Identity]] = {}
        """For each subscriber, all that is known of it here, ended ones too."""
        for change in changes:
            self.apply(change)

    def __len__(self) -> int:
        return self._standing.total()

    def standing_at(self, home: str) -> int:
        """How many subscriptions stand at a home."""
        return self._standing[home]

    def find(self, identity: Identity) -> Subscribed | Ended | None:
        """The newest change known for the subscription, unless it is forgotten."""
        subscription = self._in_force.get(identity)
        if subscription is not None:
            return subscription.change
        ended = self._ended.get(identity)
        if ended is not None or self._stored is None:
            return ended
        row = self._stored.find(identity)
        return None if row is None else self._stored.change(row)

    def compiled(self, identity: Identity) -> Compiled | None:
        """The filter of a subscription that stands."""
        subscription = self._in_force.get(identity)
        if subscription is not None:
            return subscription.filter
        return None if self._stored is None else self._stored.compiled(identity)

    def homes(self, subscriber: str) -> Counter[str]:
        """At which homes the subscriber has subscriptions, and how many."""
        known = self._homes.get(subscriber)
        if known is not None:
            return known
        return Counter() if self._stored is None else self._stored.homes(subscriber)

    def of(self, subscriber: str) -> list[Subscribed | Ended]:
        """What is known of a subscriber's subscriptions, sorted by identity."""
        stored = [] if self._stored is None else self._stored.of(subscriber)
        known = map(self.find, sorted([*stored, *self._of.get(subscriber, ())]))
        return [change for change in known if change is not None]

    def changes(self) -> Iterator[Subscribed | Ended]:
        """Changes that build an equal table: what a snapshot holds."""
        if self._stored is not None:
            yield from map(self._stored.change, self._stored.rows())
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
            heappush(self._ends, (change.at_ms, change.identity))
            self._of.setdefault(change.identity.subscriber, set()).add(change.identity)
            return True
        compiled = compile_filter(change.spelling, change.filter)
        if isinstance(compiled, Rejection):
            return compiled
        self._drop(change.identity)
        self._in_force[change.identity] = Subscription(change, compiled)
        self._count(change.identity, 1)
        self._of.setdefault(change.identity.subscriber, set()).add(change.identity)
        return True

    def forgettable(self, now_ms: int) -> list[Forgotten]:
        """The ends that have been remembered long enough, oldest first."""
        until_ms = now_ms - ENDED_REMEMBERED_MS
        due: dict[Identity, Ended] = {}
        while self._ends and self._ends[0][0] <= until_ms:
            at_ms, identity = heappop(self._ends)
            ended = self._ended.get(identity)
            if ended is not None and ended.at_ms == at_ms:
                due[identity] = ended
        for ended in due.values():
            # Until they are forgotten indeed.
            heappush(self._ends, (ended.at_ms, ended.identity))
        stored = [] if self._stored is None else self._stored.ended_until(until_ms)
        return [Forgotten(each.identity, each.number) for each in sorted([*due.values(), *stored], key=_when)]

    def highest_number(self, home: str) -> Number | None:
        """The highest number of any subscription known of a home."""
        own = (change.number for change in self.changes() if change.identity.home == home)
        return max(own, default=None)

    def describe(self) -> str:
        """The table for people, a line for each subscription, sorted."""
        lines = [
            f"{change.identity} #{change.number.counter}: "
            + (" ".join(change.filter.split()) if isinstance(change, Subscribed) else "ended")
            for change in self.changes()
        ]
        return "\n".join(sorted(lines))

    def stored(self, home: str) -> bytes:
        """The table as bytes, with the leases of a home."""
        rows: list[tuple[Subscribed | Ended, Compiled | None]] = [
            (each.change, each.filter) for each in self._in_force.values()
        ]
        rows += [(each, None) for each in self._ended.values()]
        return pack_table(home, rows, self._homes.items(), self._stored)

    def _count(self, identity: Identity, more: int) -> None:
        homes = self._homes[identity.subscriber] = self.homes(identity.subscriber)
        homes[identity.home] += more
        self._standing[identity.home] += more
        if not homes[identity.home]:
            del homes[identity.home]
            # Of a stored table, that there are none any more must be said.
            if not homes and self._stored is None:
                del self._homes[identity.subscriber]

    def _drop(self, identity: Identity) -> None:
        stands = self.compiled(identity) is not None
        known = self._of.get(identity.subscriber, set())
        known.discard(identity)
        if not known:
            self._of.pop(identity.subscriber, None)
        self._ended.pop(identity, None)
        self._in_force.pop(identity, None)
        if self._stored is not None:
            self._stored.take(identity)
        if stands:
            self._count(identity, -1)


def _when(ended: Ended) -> tuple[int, Identity]:
    return ended.at_ms, ended.identity
