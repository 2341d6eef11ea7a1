"""Leases of the subscriptions of one home: which is over next, and which are over and nobody has said so.

Theory of operation. A lease ends by the home's clock alone, and at the same point for all its shards: the
leading shard tells the broker to expire it, through its own link; until that is read, a renewal is refused,
because the batch's time, which all shards share, is past the lease.

Whenever a lease is begun or renewed, its end goes on a heap; what a later change has made of the subscription
is looked up when an end comes to the top. So ends that no longer hold stay until then, and do no harm.

What was told to expire is off the heap, and is remembered beside it: a shard that this one becomes may not
have told it, or may have to tell it again.

Of leases that were stored with the table, which are sorted, the next one goes on the heap when it is no later
than what is at the top.

Cost: a push and a pop for each time that a lease is begun or renewed.
"""

from dataclasses import replace
from heapq import heappop, heappush

from branchline.routing.codes import Code, Rejection
from branchline.routing.control import Identity, Operation, Request, Subscribed
from branchline.routing.limits import LEASE_MAX_MS, LEASE_MIN_MS
from branchline.routing.overlay.letters import Expire
from branchline.routing.stored_table import StoredTable
from branchline.routing.subscriptions import SubscriptionTable

_TOLD_FEW = 1_024
"""Ends that were told are looked through for those that no longer hold when there are twice as many as after
the last time, and not below this."""


class Leases:
    """The ends of leases, of subscriptions that stand in a table."""

    def __init__(self, table: SubscriptionTable, stored: StoredTable | None = None) -> None:
        self.lapsed_ms = -1
        """All leases that end at or before this have been told to expire."""
        self._table = table
        self._ends: list[tuple[int, Identity]] = []
        self._told: list[tuple[int, Identity]] = []
        """Ends that are off the heap because they were told to expire; some of them no longer hold."""
        self._told_most = _TOLD_FEW
        self._stored = stored
        self._next_stored = 0

    def watch(self, change: Subscribed) -> None:
        """Watch the lease of a change, if it has one."""
        if change.until_ms is not None:
            heappush(self._ends, (change.until_ms, change.identity))

    def due_ms(self) -> int | None:
        """When a lease is over next; None if there is none."""
        self._refill()
        while self._ends and not self._is_due(*self._ends[0]):
            self._take_off()
            self._refill()
        return self._ends[0][0] if self._ends else None

    def overdue(self, now_ms: int) -> list[Expire]:
        """The leases that are over and have not been told to expire."""
        due: dict[Expire, None] = {}
        self._refill()
        while self._ends and self._ends[0][0] <= now_ms:
            until_ms, identity = self._take_off()
            if self._is_due(until_ms, identity):
                known = self._table.find(identity)
                assert known is not None
                due[Expire(identity, known.number, until_ms)] = None
            self._refill()
        return list(due)

    def untell(self) -> None:
        """As if nothing had been told to expire."""
        for end in self._told:
            heappush(self._ends, end)
        self._told = []
        self.lapsed_ms = -1

    def _take_off(self) -> tuple[int, Identity]:
        """The end at the top, off the heap; remembered, if it still holds."""
        end = heappop(self._ends)
        if self._holds(*end):
            self._told.append(end)
            if len(self._told) > self._told_most:
                self._told = [each for each in self._told if self._holds(*each)]
                self._told_most = max(_TOLD_FEW, 2 * len(self._told))
        return end

    def _refill(self) -> None:
        """Let the top of the heap be the next of all ends."""
        stored = self._stored
        while stored is not None and self._next_stored < stored.leases():
            if self._ends and self._ends[0][0] < stored.lease_end(self._next_stored):
                break
            heappush(self._ends, stored.lease(self._next_stored))
            self._next_stored += 1

    def _holds(self, until_ms: int, identity: Identity) -> bool:
        """Whether that is when the lease is over now."""
        known = self._table.find(identity)
        return isinstance(known, Subscribed) and known.until_ms == until_ms

    def _is_due(self, until_ms: int, identity: Identity) -> bool:
        """Whether that is when the lease is over now, and nobody was told so yet."""
        return until_ms > self.lapsed_ms and self._holds(until_ms, identity)


def is_over(known: Subscribed, now_ms: int) -> bool:
    """Whether the lease is over by the clock, told to expire or not."""
    return known.until_ms is not None and known.until_ms <= now_ms


def check_lease(request: Request) -> Rejection | None:
    """Why the lease that is asked for cannot be given; None if it can."""
    lease_ms = request.lease_ms
    if lease_ms is None or LEASE_MIN_MS <= lease_ms <= LEASE_MAX_MS:
        return None
    return Rejection(
        Code.LEASE_INVALID,
        f"a lease of {lease_ms} ms; it must be from {LEASE_MIN_MS} to {LEASE_MAX_MS} ms",
    )


def renewed(now_ms: int, request: Request, known: Subscribed, requests: tuple[str, ...]) -> Subscribed:
    """The same subscription with its lease begun anew. Subscribing anew may also take the lease away."""
    lease_ms = request.lease_ms
    if lease_ms is None and request.operation is Operation.RENEW:
        lease_ms = known.lease_ms
    return replace(
        known,
        revision=known.revision + 1,
        requests=requests,
        lease_ms=lease_ms,
        until_ms=None if lease_ms is None else now_ms + lease_ms,
        own=request.own,
    )
