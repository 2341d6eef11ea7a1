"""The shard: the pure state machine that a router job runs S times side by side.

Theory of operation. Every shard gets every control message and so holds all subscriptions; of the events
it gets its share. One call of `handle` is one micro-batch: control first, one by one, then the events as
one batch. What it returns depends on the arguments and on the state before, and on nothing else, so a
replayed batch gives the same outputs. All shards make the same changes from the same control messages;
only the leading shard (number 0) answers them, or each answer would be written S times.

State that survives is `ShardState`; `changed` in the outputs says what to add to its log. Folding the log
gives the state again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from branchline.routing.codes import Code, Rejection
from branchline.routing.compiling import Compiled, compile_filter
from branchline.routing.control import (
    Ack,
    Change,
    Ended,
    Identity,
    Number,
    Operation,
    Request,
    Status,
    Subscribed,
)
from branchline.routing.limits import REQUESTS_REMEMBERED, SUBSCRIPTIONS_PER_SUBSCRIBER
from branchline.routing.subscriptions import SubscriptionTable
from branchline.routing.values import JsonValue


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Events as columns: their attributes, and the one subscriber they are for, or None for all."""

    attributes: Sequence[Mapping[str, JsonValue]] = ()
    only: Sequence[str | None] = ()


@dataclass(frozen=True, slots=True)
class Delivery:
    """The event at this index of the batch is owed to the subscriber."""

    event: int
    subscriber: str


@dataclass(frozen=True, slots=True)
class Undecided:
    """Whether the event at this index is owed to the subscriber could not be decided."""

    event: int
    subscriber: str
    rejection: Rejection


@dataclass(frozen=True, slots=True)
class ShardState:
    """All that a shard must remember: the last number it gave, and its subscriptions as changes."""

    number: Number | None = None
    changes: tuple[Change, ...] = ()


@dataclass(slots=True)
class Outputs:
    """What one call decided, in the order in which it must be written."""

    changed: ShardState | None = None
    """To be added to the state's log; None if nothing changed."""
    subscribers: list[str] = field(default_factory=list)
    """Their topics must exist before anything else is written."""
    filters: list[Change] = field(default_factory=list)
    """To be recorded on `filters` before the acks. Leading shard only."""
    deliveries: list[Delivery] = field(default_factory=list)
    undecided: list[Undecided] = field(default_factory=list)
    acks: list[Ack] = field(default_factory=list)
    """Leading shard only."""
    unusable: list[tuple[int, Rejection]] = field(default_factory=list)
    """Changes told by other brokers that this one cannot read, by index. Leading shard only."""
    exact_checks: int = 0
    """Filters evaluated."""


class Shard:
    """One broker's subscriptions, and its share of the events."""

    def __init__(self, broker: str, index: int, state: Sequence[ShardState] = ()) -> None:
        self._broker = broker
        self._leads = index == 0
        self._number: Number | None = None
        self._table = SubscriptionTable()
        for part in state:
            self._number = part.number
            for change in part.changes:
                self._table.apply(change)

    @property
    def table(self) -> SubscriptionTable:
        """The subscriptions, for reading."""
        return self._table

    def state(self) -> ShardState:
        """The whole state as one value: what a snapshot holds."""
        return ShardState(self._number, tuple(self._table.changes()))

    def handle(
        self,
        now_ms: int,
        control: Sequence[Request | Change],
        events: EventBatch,
    ) -> Outputs:
        """Handle one micro-batch: control one by one, then the events."""
        outputs = Outputs()
        changes: list[Change] = []
        if control:
            # Only in a call with control, which all shards get: so they all forget in the same one.
            for forgotten in self._table.forgettable(now_ms):
                self._table.apply(forgotten)
                changes.append(forgotten)
        for index, message in enumerate(control):
            if isinstance(message, Request):
                change, acks = self._answer(now_ms, index, message)
                outputs.acks += acks
            else:
                change = message
            if change is None:
                continue
            applied = self._table.apply(change)
            if isinstance(applied, Rejection):
                outputs.unusable.append((index, applied))
            elif applied:
                changes.append(change)
                if change.identity.home == self._broker and self._number is not None:
                    # Told of an own subscription by others: our next number must be above it.
                    self._number = max(self._number, change.number)
        if changes:
            outputs.changed = ShardState(self._number, tuple(changes))
            outputs.subscribers = sorted(
                {change.identity.subscriber for change in changes if isinstance(change, Subscribed)}
            )
            outputs.filters = changes
        if not self._leads:
            outputs.filters, outputs.acks, outputs.unusable = [], [], []
        self._match(events, outputs)
        return outputs

    def describe(self) -> str:
        """The shard's subscriptions, for people."""
        return self._table.describe()

    def _match(self, events: EventBatch, outputs: Outputs) -> None:
        checks_before = self._table.checks
        for index, (attributes, only) in enumerate(zip(events.attributes, events.only, strict=True)):
            for subscriber, rejection in self._table.match(attributes, only).items():
                if rejection is None:
                    outputs.deliveries.append(Delivery(index, subscriber))
                else:
                    outputs.undecided.append(Undecided(index, subscriber, rejection))
        outputs.exact_checks = self._table.checks - checks_before

    def _answer(self, now_ms: int, index: int, request: Request) -> tuple[Change | None, list[Ack]]:
        """What the home makes of a request: the change, if any, and the answers."""
        identity = Identity(request.home or self._broker, request.subscriber, request.id)

        def ack(
            status: Status,
            number: Number | None = None,
            rejection: Rejection | None = None,
            note: str | None = None,
        ) -> Ack:
            return Ack(index, status, *identity[1:], identity.home, number, request.request, rejection, note)

        def standing(known: Subscribed | Ended) -> list[Ack]:
            if isinstance(known, Ended):
                return [ack(Status.ENDED, known.number)]
            note = _worth_knowing(known)
            return [ack(status, known.number, note=note) for status in (Status.ACCEPTED, Status.IN_FORCE)]

        if identity.home != self._broker:
            reason = f"no broker {identity.home!r} here; this one is {self._broker!r}"
            return None, [ack(Status.REFUSED, rejection=Rejection(Code.HOME_UNKNOWN, reason))]
        known = self._table.find(identity)
        if known and request.request is not None and request.request in known.requests:
            return None, standing(known)
        refusal = self._check(identity, request, known)
        if refusal:
            return None, [ack(Status.REFUSED, rejection=refusal)]
        if known and _asks_for_what_stands(request, known):
            return None, standing(known)

        number = self._next_number(now_ms)
        requests = known.requests if known else ()
        if request.request is not None:
            requests = (*requests, request.request)[-REQUESTS_REMEMBERED:]
        if request.operation is Operation.UNSUBSCRIBE:
            ended = Ended(identity, number, now_ms, requests)
            return ended, standing(ended)
        subscribed = Subscribed(identity, number, request.spelling, request.filter, requests)
        acks = standing(subscribed)
        if isinstance(known, Subscribed):
            acks.insert(0, ack(Status.REPLACED, known.number))
        return subscribed, acks

    def _check(
        self, identity: Identity, request: Request, known: Subscribed | Ended | None
    ) -> Rejection | None:
        if request.operation is Operation.UNSUBSCRIBE:
            if known is None:
                return Rejection(
                    Code.SUBSCRIPTION_UNKNOWN,
                    f"subscriber {identity.subscriber!r} has no subscription {identity.id!r}",
                )
            return None
        if not isinstance(known, Subscribed):
            count = self._table.count(identity.subscriber)
            if count >= SUBSCRIPTIONS_PER_SUBSCRIBER:
                return Rejection(
                    Code.SUBSCRIPTIONS_TOO_MANY,
                    f"subscriber {identity.subscriber!r} has {count} subscriptions; "
                    f"the limit is {SUBSCRIPTIONS_PER_SUBSCRIBER}",
                )
        compiled = compile_filter(request.spelling, request.filter)
        return compiled if isinstance(compiled, Rejection) else None

    def _next_number(self, now_ms: int) -> Number:
        if self._number is None:
            # A new life of this home starts above whatever an earlier one may have left in the table.
            highest = self._table.highest_number()
            self._number = Number(max(now_ms, highest.incarnation + 1 if highest else 0), 0)
        self._number = Number(self._number.incarnation, self._number.counter + 1)
        return self._number


def _worth_knowing(subscribed: Subscribed) -> str | None:
    compiled = compile_filter(subscribed.spelling, subscribed.filter)
    if isinstance(compiled, Compiled) and compiled.always:
        return "this filter matches every event"
    return None


def _asks_for_what_stands(request: Request, known: Subscribed | Ended) -> bool:
    if request.operation is Operation.UNSUBSCRIBE:
        return isinstance(known, Ended)
    return isinstance(known, Subscribed) and (known.spelling, known.filter) == (
        request.spelling,
        request.filter,
    )
