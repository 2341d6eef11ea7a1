"""Rules of the overlay taken out, one by one, to show that the history checker misses each of them.

A bug is planted in the state machines or in the job that runs them, never in the checker or in what it is
told. Each says what it breaks.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from heapq import heappop

import pytest

from branchline.ops.simulation.runner import Runner
from branchline.routing.control import Ended, Identity, Status, Subscribed
from branchline.routing.event import Event
from branchline.routing.overlay import dividing, home, position
from branchline.routing.overlay.broker import Broker
from branchline.routing.overlay.dividing import Arrival, Copy, Divider, Routed
from branchline.routing.overlay.facts import Fact
from branchline.routing.overlay.leases import Leases
from branchline.routing.overlay.letters import Body, Complete, Expire, Letter, Report
from branchline.routing.overlay.pending import Awaited, Pending
from branchline.routing.overlay.topology import Routes, Topology, routes
from branchline.routing.prefix.forwarding import Found
from branchline.routing.prefix.header import Header
from branchline.routing.prefix.stored_vocabulary import Numbered
from branchline.routing.prefix.trees import Prefix
from branchline.routing.prefix.updates import Update
from branchline.routing.shard import Control, EventBatch, Outputs, Shard

Patch = pytest.MonkeyPatch
Plant = Callable[[Patch], None]


# The job


def tell_one_shard_only(patch: Patch) -> None:
    """Control goes to the leading shard; events of other shards meet nobody who is interested."""
    patch.setattr(
        Runner, "control_for", lambda self, index, batch: batch.control if index == 0 else list[Control]()
    )


def expire_by_every_shards_clock(patch: Patch) -> None:
    """Every shard ends a lease when its own clock says so, and renews whatever it still has.

    Clocks differ a little, so one shard ends what another renews: a share of the events is lost.
    """
    skew_ms = 500
    handle, finish = Shard.handle, Broker.finish
    clocks: dict[Broker, int] = {}

    def with_a_clock(
        self: Shard, now_ms: int, updates: Sequence[Update], control: Sequence[Control], events: EventBatch
    ) -> Outputs:
        for each in self.brokers.values():
            clocks[each] = now_ms + (0 if self._leads else skew_ms)
        return handle(self, now_ms, updates, control, events)

    def finish_and_expire(self: Broker, now_ms: int, *, leads: bool) -> None:
        finish(self, now_ms, leads=False)
        for due in self.home.leases.overdue(clocks[self]):
            known = self.table.find(due.identity)
            assert known is not None
            ended = Ended(due.identity, self.home.next_number(now_ms), now_ms, known.requests, expired=True)
            self._said.acks.append(self.home._ack(None, Status.EXPIRED, due.identity))
            self._number_and_learn(ended)

    patch.setattr(Shard, "handle", with_a_clock)
    patch.setattr(Broker, "finish", finish_and_expire)
    patch.setattr(home, "is_over", lambda known, now_ms: False)


# Homes


def ack_too_early(patch: Patch) -> None:
    """In force as soon as accepted: events that enter where nobody knows of it yet are lost."""
    patch.setattr(Pending, "waits_for", lambda self, identity: [])


def wait_for_the_first_report_only(patch: Patch) -> None:
    """In force when one broker has reported: events that enter at the others are lost."""
    original = Pending.waits_for

    def waits_for(self: Pending, identity: Identity) -> list[str]:
        waiting = self._waiting.get(identity)
        return [] if waiting is not None and waiting.reported else original(self, identity)

    patch.setattr(Pending, "waits_for", waits_for)


def believe_the_last_report(patch: Patch) -> None:
    """A report that was overtaken takes back the later one, which is not sent again."""

    def hear(self: Pending, report: Report) -> list[Awaited]:
        heard = []
        for identity, number in report.has:
            waiting = self._waiting.get(identity)
            if waiting is not None and number >= waiting.awaited.number:
                waiting.reported[report.reporter] = report.topology
                heard.append(identity)
        return self._complete(heard)

    patch.setattr(Pending, "hear", hear)


def tell_pending_once(patch: Patch) -> None:
    """On a change of the topology what is pending is not told again, and waits for ever."""
    original = Broker._take

    def take(self: Broker, now_ms: int, topology: Topology, teller: str | None) -> None:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(self.home.pending, "awaited", list)
            original(self, now_ms, topology, teller)

    patch.setattr(Broker, "_take", take)


# What brokers tell each other


def obey_stragglers(patch: Patch) -> None:
    """A broker that hears of an older change obeys it: what the newer one wants no longer passes there."""
    original = Broker._learn

    def learn(self: Broker, change: Subscribed | Ended, teller: str) -> object:
        known = self.table.find(change.identity)
        if known is not None and change.order < known.order and change.identity.home != self.name:
            change = replace(change, number=known.number, revision=known.revision + 1)
            self._do(change)
            self._heard.setdefault(change.identity.home, set()).add(change.identity)
            return None
        return original(self, change, teller)

    patch.setattr(Broker, "_learn", learn)


def report_no_repeats(patch: Patch) -> None:
    """What a broker has already is not reported: a home that asks again, after a change of the topology,
    waits for ever.
    """
    original = Broker._learn

    def learn(self: Broker, change: Subscribed | Ended, teller: str) -> object:
        known = self.table.find(change.identity)
        heard = {home: set(identities) for home, identities in self._heard.items()}
        learned = original(self, change, teller)
        if known is not None and known.number >= change.number:
            self._heard = heard
        return learned

    patch.setattr(Broker, "_learn", learn)


def relay_no_reports(patch: Patch) -> None:
    """A report that is for another home is not sent on: a home waits for ever for brokers far away."""
    original = Broker._send_on

    def send_on(self: Broker, report: Report) -> None:
        if report.reporter == self.name:
            original(self, report)

    patch.setattr(Broker, "_send_on", send_on)


def complete_first(patch: Patch) -> None:
    """A newcomer is told that this is all before it is told all, and forwards by what it does not know."""

    def tell_all(self: Broker, to: Iterable[str], known: Iterable[Body], complete: Complete | None) -> None:
        told: list[Body] = [*([complete] if complete is not None else []), *known]
        self._said.letters += [Letter(each, self.name, body) for each in to for body in told]

    patch.setattr(Broker, "_tell_all", tell_all)


def tell_a_newcomer_nothing(patch: Patch) -> None:
    """A newcomer hears only of what comes from now on, and that this is all."""
    original = Broker._tell_all
    patch.setattr(Broker, "_tell_all", lambda self, to, known, complete: original(self, to, (), complete))


# Events


def leave_the_scope_whole(patch: Patch) -> None:
    """Each copy answers for the whole scope, so homes get an event along several ways."""

    def copy(self: Divider, to: str, prefix: Prefix, scope: int, header: Header | None) -> Copy:
        whole = self._position.routes.everybody if header is None else header.scope
        return original(self, to, prefix, whole, header)

    original = Divider._copy
    patch.setattr(Divider, "_copy", copy)
    # Or copies would go to and fro 64 times, ever more of them.
    patch.setattr(dividing, "HOPS_MAX", 2)


def number_bits_by_position(patch: Patch) -> None:
    """A home's bit is its place in the list, which moves when a broker goes: copies on their way go wrong."""

    def by_position(topology: Topology, name: str) -> Routes:
        made = routes(topology, name)
        numbers = {member.name: place for place, member in enumerate(topology.members)}
        behind = {
            hop: sum(1 << numbers[home] for home, via in made.hops.items() if via == hop)
            for hop in made.behind
        }
        return Routes(made.hops, numbers, behind, (1 << len(numbers)) - 1)

    patch.setattr(position, "routes", by_position)


def scope_of_the_found(patch: Patch) -> None:
    """A copy answers only for the homes that were found, though the walk stopped when it had all hops."""
    original = Divider._divide

    def divide(self: Divider, arrival: Arrival, event: Event, local: bool, routed: Routed) -> None:
        original(self, arrival, event, local, routed)
        if routed.found is None or self._position.joining:
            return
        found: Found = routed.found
        owners = [owner for owner in (*found.certain, *found.doubtful) if isinstance(owner, str)]
        bits = sum(1 << self._position.routes.numbers[owner] for owner in set(owners))
        routed.copies = [
            replace(copy, header=copy.header._replace(scope=copy.header.scope & bits))
            for copy in routed.copies
        ]

    patch.setattr(Divider, "_divide", divide)


def drop_what_passes_a_joiner(patch: Patch) -> None:
    """A newcomer, who does not know who is interested, sends a passing event nowhere."""
    original = Divider._divide

    def divide(self: Divider, arrival: Arrival, event: Event, local: bool, routed: Routed) -> None:
        original(self, arrival, event, local, routed)
        if self._position.joining and arrival.header is not None:
            routed.copies = []

    patch.setattr(Divider, "_divide", divide)


def join_at_once(patch: Patch) -> None:
    """A newcomer forwards from the first moment by what it knows, which is nothing."""
    original = Broker.obey

    def obey(self: Broker, fact: Fact, index: int | None = None) -> object:
        done = original(self, fact, index)
        self.position.joining = False
        return done

    patch.setattr(Broker, "obey", obey)


def drop_what_is_early(patch: Patch) -> None:
    """A copy that needs a newer topology is not held, and gone."""
    patch.setattr(Broker, "hold", lambda self, arrival: None)


# What survives


def snapshot_without(kind: type) -> Plant:
    def plant(patch: Patch) -> None:
        original = Broker.facts

        def facts(self: Broker) -> Iterator[Fact]:
            return (fact for fact in original(self) if not isinstance(fact, kind))

        patch.setattr(Broker, "facts", facts)

    return plant


def snapshot_without_reports(patch: Patch) -> None:
    """A job that starts anew waits for reports that it had, and that nobody sends again."""
    snapshot_without(Report)(patch)


def snapshot_without_pending(patch: Patch) -> None:
    """A job that starts anew has forgotten whom it owes an in-force ack."""
    snapshot_without(Awaited)(patch)


# Overflow numbers


def believe_dead_numbers(patch: Patch) -> None:
    """A number that was retired still stands for its filter, in versions in which no event has it."""
    patch.setattr(Numbered, "lived", lambda self, clock: self.born <= clock)


def expire_renewed_leases(patch: Patch) -> None:
    """A lease is told to expire when it was first to end, renewed or not, and is ended then."""

    def overdue(self: Leases, now_ms: int) -> list[Expire]:
        due: dict[Expire, None] = {}
        while self._ends and self._ends[0][0] <= now_ms:
            _, identity = heappop(self._ends)
            known = self._table.find(identity)
            if isinstance(known, Subscribed):
                due[Expire(identity, known.number, known.until_ms or 0)] = None
        return list(due)

    patch.setattr(Leases, "overdue", overdue)
