"""The shard answers requests, keeps its state and decides deliveries as its definition says."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pytest
import strategies as our
from hypothesis import given
from hypothesis import strategies as st

from branchline.routing.codes import Code, Rejection
from branchline.routing.compiling import Compiled, compile_filter
from branchline.routing.control import (
    Ack,
    Change,
    Ended,
    Forgotten,
    Identity,
    Number,
    Operation,
    Request,
    Status,
    Subscribed,
)
from branchline.routing.deliveries import Delivery
from branchline.routing.evaluate import evaluate
from branchline.routing.event import Event
from branchline.routing.limits import ENDED_REMEMBERED_MS, LEASE_MAX_MS, LEASE_MIN_MS, REQUESTS_REMEMBERED
from branchline.routing.methods.naming import Methods
from branchline.routing.overlay.dividing import Arrival
from branchline.routing.overlay.facts import Fact, Lapsed
from branchline.routing.overlay.letters import Expire, Letter
from branchline.routing.overlay.pending import Awaited
from branchline.routing.overlay.topology import Topology
from branchline.routing.prefix.optimizer import Optimizer, Settings
from branchline.routing.shard import (
    Control,
    EventBatch,
    Outputs,
    Shard,
    ShardState,
    Undecided,
    alone,
)
from branchline.routing.spellings.sql import read
from branchline.routing.subscriptions import SubscriptionTable
from branchline.routing.values import JsonValue

HOME = "dublin"
NOW_MS = 1_700_000_000_000
NO_EVENTS = EventBatch()

ACCEPTED, IN_FORCE, REPLACED = Status.ACCEPTED, Status.IN_FORCE, Status.REPLACED
ENDED, REFUSED, RENEWED, EXPIRED = Status.ENDED, Status.REFUSED, Status.RENEWED, Status.EXPIRED


@dataclass(frozen=True, slots=True)
class Plain:
    """An event that is just its attributes."""

    value: dict[str, JsonValue]

    def attributes(self) -> dict[str, JsonValue]:
        return self.value


def shard_of(index: int = 0, state: Iterable[ShardState] = (), batches_from: int | None = None) -> Shard:
    return Shard(replace(alone(HOME), methods=Methods(batches_from=batches_from)), index, state)


def table(shard: Shard) -> SubscriptionTable:
    return shard.brokers[HOME].table


def batch(rows: Sequence[tuple[dict[str, JsonValue], str | None]]) -> EventBatch:
    """Events that enter at the home, each for one subscriber or all."""
    return EventBatch([HOME] * len(rows), [Arrival(Plain(event), None, only) for event, only in rows])


def subscribe(
    text: str = "TRUE", request: str | None = None, lease_ms: int | None = None, **names: str
) -> Request:
    named = {"subscriber": "alice", "id": "default"} | names
    return Request(Operation.SUBSCRIBE, **named, filter=text, request=request, lease_ms=lease_ms)


def unsubscribe(request: str | None = None, **names: str) -> Request:
    named = {"subscriber": "alice", "id": "default"} | names
    return Request(Operation.UNSUBSCRIBE, **named, request=request)


def renew(request: str | None = None, lease_ms: int | None = None, **names: str) -> Request:
    named = {"subscriber": "alice", "id": "default"} | names
    return Request(Operation.RENEW, **named, request=request, lease_ms=lease_ms)


def ask(shard: Shard, *messages: Request | Subscribed | Ended | Letter, now_ms: int = NOW_MS) -> Outputs:
    """The messages in one call; a change is told by a neighbour."""
    control: list[Control] = [
        Letter(HOME, "virginia", message) if isinstance(message, Subscribed | Ended) else message
        for message in messages
    ]
    return shard.handle(now_ms, [], control, NO_EVENTS)


def told(acks: list[Ack]) -> list[tuple[Status, Number | None]]:
    return [(ack.status, ack.number) for ack in acks]


def refusal(outputs: Outputs) -> Rejection:
    (ack,) = outputs.acks
    assert ack.status is REFUSED
    assert ack.rejection is not None
    return ack.rejection


# Answers to requests


def test_a_subscription_is_accepted_and_then_in_force_under_one_number() -> None:
    """Subscribing gives two acks with the same number, names and request id, and one change."""
    outputs = ask(shard_of(), subscribe("a = 1", "r1"))
    number = Number(NOW_MS, 1)
    assert outputs.acks == [
        Ack(0, status, "alice", "default", HOME, number, "r1") for status in (ACCEPTED, IN_FORCE)
    ]
    assert outputs.filters == [
        Subscribed(Identity(HOME, "alice", "default"), number, "sql", "a = 1", ("r1",))
    ]
    assert outputs.subscribers == ["alice"]
    (change,) = outputs.filters
    assert outputs.changed == ShardState(
        (), ((HOME, number), (HOME, change), (HOME, Awaited(change.identity, number, ("r1",))))
    )


def test_a_replacement_ends_the_old_number_first() -> None:
    """Another filter under the same id: the old number is replaced, then the new one accepted."""
    shard = shard_of()
    ask(shard, subscribe("a = 1", "r1"))
    outputs = ask(shard, subscribe("a = 2", "r2"))
    old, new = Number(NOW_MS, 1), Number(NOW_MS, 2)
    assert told(outputs.acks) == [(REPLACED, old), (ACCEPTED, new), (IN_FORCE, new)]
    assert [ack.request for ack in outputs.acks] == ["r2", "r2", "r2"]
    assert table(shard).homes("alice").total() == 1


def test_the_same_filter_again_changes_nothing() -> None:
    """Asking for what stands is answered with its number and makes no change."""
    shard = shard_of()
    first = ask(shard, subscribe("a = 1"))
    again = ask(shard, subscribe("a = 1"))
    assert told(again.acks) == told(first.acks)
    assert (again.changed, again.filters, again.subscribers) == (None, [], [])


def test_whoever_asks_for_what_stands_is_remembered() -> None:
    """Only its request id is added, under the same number: a repeat of it cannot undo what came between."""
    shard = shard_of()
    first = ask(shard, subscribe("a = 1", "r1"))
    again = ask(shard, subscribe("a = 1", "r2"))
    assert told(again.acks) == told(first.acks)
    (before,), (after,) = first.filters, again.filters
    assert isinstance(before, Subscribed)
    assert after == replace(before, requests=("r1", "r2"), revision=before.revision + 1)
    ask(shard, subscribe("a = 2", "r3"))
    repeated = ask(shard, subscribe("a = 1", "r2"))
    assert told(repeated.acks) == [(ACCEPTED, Number(NOW_MS, 2)), (IN_FORCE, Number(NOW_MS, 2))]
    ask(shard, unsubscribe("r4"))
    ask(shard, unsubscribe("r5"))
    ask(shard, subscribe("a = 3", "r6"))
    assert told(ask(shard, unsubscribe("r5")).acks)[-1] == (IN_FORCE, Number(NOW_MS, 4))


def test_a_repeated_request_is_answered_as_it_stands() -> None:
    """A request id seen before changes nothing, whatever came in between."""
    shard = shard_of()
    ask(shard, subscribe("a = 1", "r1"), subscribe("a = 2", "r2"))
    again = ask(shard, subscribe("a = 1", "r1"))
    assert told(again.acks) == [(ACCEPTED, Number(NOW_MS, 2)), (IN_FORCE, Number(NOW_MS, 2))]
    assert again.changed is None
    ask(shard, unsubscribe("r3"))
    again = ask(shard, subscribe("a = 1", "r1"))
    assert told(again.acks) == [(ENDED, Number(NOW_MS, 3))]
    assert again.changed is None


def test_only_so_many_request_ids_are_remembered() -> None:
    """The last ids are kept, no more: what a subscription remembers does not grow."""
    shard = shard_of()
    ask(shard, *(subscribe(f"a = {count}", f"r{count}") for count in range(REQUESTS_REMEMBERED + 3)))
    known = table(shard).find(Identity(HOME, "alice", "default"))
    assert known is not None
    assert known.requests == tuple(f"r{count}" for count in range(3, REQUESTS_REMEMBERED + 3))


def test_unsubscribing_ends_and_again_says_so_again() -> None:
    """The first unsubscription ends, under a number of its own; the second changes nothing."""
    shard = shard_of()
    ask(shard, subscribe())
    first = ask(shard, unsubscribe())
    again = ask(shard, unsubscribe())
    assert told(first.acks) == told(again.acks) == [(ENDED, Number(NOW_MS, 2))]
    assert first.filters == [Ended(Identity(HOME, "alice", "default"), Number(NOW_MS, 2), NOW_MS)]
    assert again.changed is None
    assert len(table(shard)) == 0


def test_unsubscribing_the_unknown_is_refused() -> None:
    """There is nothing to end, and nothing changes."""
    outputs = ask(shard_of(), unsubscribe(request="r1"))
    assert refusal(outputs).code is Code.SUBSCRIPTION_UNKNOWN
    assert outputs.acks[0].request == "r1"
    assert outputs.changed is None


def test_resubscribing_after_the_end_gets_a_higher_number() -> None:
    """Nobody is replaced by it, and the end is no longer known."""
    shard = shard_of()
    ask(shard, subscribe(), unsubscribe())
    outputs = ask(shard, subscribe())
    assert told(outputs.acks) == [(ACCEPTED, Number(NOW_MS, 3)), (IN_FORCE, Number(NOW_MS, 3))]
    assert table(shard).describe() == "dublin/alice/default #3: TRUE"


@pytest.mark.parametrize(("text", "place"), [("a =", (1, 4)), ("a = 1 AND\n  b ==", (2, 6)), ("", (1, 1))])
def test_a_bad_filter_is_refused_with_its_place(text: str, place: tuple[int, int]) -> None:
    """The refusal carries line and column; the subscription stands as it did."""
    shard = shard_of()
    ask(shard, subscribe())
    before = shard.state()
    outputs = ask(shard, subscribe(text))
    rejection = refusal(outputs)
    assert rejection.code is Code.FILTER_SYNTAX
    assert (rejection.line, rejection.column) == place
    assert (outputs.changed, shard.state()) == (None, before)


def test_an_unknown_spelling_is_refused() -> None:
    """A spelling that nobody reads is no filter."""
    outputs = ask(shard_of(), replace(subscribe(), spelling="klingon"))
    assert refusal(outputs).code is Code.SPELLING_UNKNOWN


@pytest.mark.parametrize("make", [subscribe, unsubscribe])
def test_a_foreign_home_is_refused_with_the_right_name(make: type[Request]) -> None:
    """Whatever is asked of another broker is refused here, and the reason names this one."""
    outputs = ask(shard_of(), make(home="virginia"))
    rejection = refusal(outputs)
    assert rejection.code is Code.HOME_UNKNOWN
    assert "'virginia'" in rejection.reason
    assert "'dublin'" in rejection.reason
    assert outputs.changed is None


def test_a_foreign_home_is_refused_though_its_subscription_is_known() -> None:
    """Having been told of a subscription, request id and all, is no right to answer for its home."""
    shard = shard_of()
    ask(shard, Subscribed(Identity("virginia", "alice", "default"), Number(5, 1), "sql", "TRUE", ("r1",)))
    assert refusal(ask(shard, subscribe("TRUE", "r1", home="virginia"))).code is Code.HOME_UNKNOWN


def test_naming_the_home_is_the_same_as_leaving_it_out() -> None:
    """A broker answers to its own name."""
    shard = shard_of()
    assert told(ask(shard, subscribe(home=HOME)).acks) == told(ask(shard, subscribe()).acks)


def test_a_subscriber_has_only_so_many_subscriptions() -> None:
    """The one above the limit is refused; replacing, and others, are not hindered; an end makes room."""
    shard = Shard(replace(alone(HOME), max_subscriptions=2), 0)
    ask(shard, subscribe(id="x"), subscribe(id="y"))
    rejection = refusal(ask(shard, subscribe(id="z")))
    assert rejection.code is Code.SUBSCRIPTIONS_TOO_MANY
    assert "2" in rejection.reason
    assert ask(shard, subscribe("a = 1", id="x")).acks[0].status is REPLACED
    assert ask(shard, subscribe(subscriber="bob")).acks[0].status is ACCEPTED
    ask(shard, unsubscribe(id="x"))
    assert ask(shard, subscribe(id="z")).acks[0].status is ACCEPTED


def test_each_ack_names_the_message_it_answers() -> None:
    """Indexes count all control messages of the call, told changes included."""
    change = Subscribed(Identity("virginia", "bob", "default"), Number(5, 1), "sql", "TRUE")
    outputs = ask(shard_of(), change, subscribe(), unsubscribe(id="x"))
    assert [ack.index for ack in outputs.acks] == [1, 1, 2]


# Changes told by others


@pytest.mark.parametrize(("spelling", "text"), [("sql", "a ="), ("klingon", "TRUE")])
def test_an_unreadable_change_is_reported_and_changes_nothing(spelling: str, text: str) -> None:
    """What another broker tells and this one cannot read is unusable; what stood stays."""
    identity = Identity("virginia", "bob", "default")
    shard = shard_of()
    ask(shard, Subscribed(identity, Number(5, 1), "sql", "a = 1"))
    before = shard.state()
    outputs = ask(shard, subscribe("a ="), Subscribed(identity, Number(5, 2), spelling, text))
    ((index, rejection),) = outputs.unusable
    assert index == 1
    assert rejection.code in (Code.FILTER_SYNTAX, Code.SPELLING_UNKNOWN)
    assert (outputs.changed, outputs.filters, shard.state()) == (None, [], before)


def test_a_told_change_is_recorded_once() -> None:
    """A repeat, or a straggler, is neither recorded nor answered; events for it are not delivered here."""
    change = Subscribed(Identity("virginia", "bob", "default"), Number(5, 1), "sql", "TRUE")
    shard = shard_of()
    outputs = ask(shard, change, change, replace(change, number=Number(4, 9)))
    assert (outputs.filters, outputs.acks, outputs.subscribers) == ([change], [], [])
    assert shard.handle(NOW_MS, [], [], batch([({}, None)])).deliveries == []


def test_a_told_change_of_this_home_is_obeyed_and_delivered_for() -> None:
    """What a neighbour still knows of this home's own past stands here again, with the subscriber's topic."""
    change = Subscribed(Identity(HOME, "bob", "default"), Number(5, 1), "sql", "TRUE")
    shard = shard_of()
    outputs = ask(shard, change)
    assert (outputs.filters, outputs.acks, outputs.subscribers) == ([change], [], ["bob"])
    assert shard.handle(NOW_MS, [], [], batch([({}, None)])).deliveries == [Delivery(0, "bob")]


def test_a_letter_for_another_broker_is_unusable() -> None:
    """What is not for a broker of this job is said to be so, and changes nothing."""
    change = Subscribed(Identity("virginia", "bob", "default"), Number(5, 1), "sql", "TRUE")
    outputs = ask(shard_of(), Letter("virginia", HOME, change))
    ((index, rejection),) = outputs.unusable
    assert (index, rejection.code, outputs.changed) == (0, Code.HOME_UNKNOWN, None)


# Numbers


@pytest.mark.parametrize(
    ("found", "incarnation"), [(NOW_MS - 5, NOW_MS), (NOW_MS, NOW_MS + 1), (NOW_MS + 7, NOW_MS + 8)]
)
def test_a_new_incarnation_starts_above_what_the_table_holds(found: int, incarnation: int) -> None:
    """The first number is the batch's time, or above any known of this home, whichever is more."""
    ended = Ended(Identity(HOME, "bob", "default"), Number(found, 3), NOW_MS)
    foreign = Ended(Identity("virginia", "bob", "default"), Number(NOW_MS + 99, 3), NOW_MS)
    known = ShardState((), ((HOME, ended), (HOME, foreign)))
    outputs = ask(shard_of(state=[known]), subscribe())
    assert outputs.acks[0].number == Number(incarnation, 1)


def test_numbers_stay_above_what_is_told_of_this_home() -> None:
    """A change of this home's own past, told late and with a higher number, never makes an ack a lie."""
    identity = Identity(HOME, "alice", "default")
    shard = shard_of()
    ask(shard, subscribe("a = 1"))
    ask(shard, Subscribed(identity, Number(NOW_MS + 100, 7), "sql", "a = 2"))
    outputs = ask(shard, subscribe("a = 3"))
    known = table(shard).find(identity)
    assert isinstance(known, Subscribed)
    assert known.filter == "a = 3"
    assert [ack.number for ack in outputs.acks if ack.status is IN_FORCE] == [known.number]


# Leases


def test_a_lease_ends_by_a_letter_that_the_home_writes_to_itself() -> None:
    """When the time is over the leading shard tells itself so; reading that ends the subscription."""
    shard = shard_of()
    number = ask(shard, subscribe("a = 1", "r1", LEASE_MIN_MS)).acks[0].number
    assert number is not None
    over = NOW_MS + LEASE_MIN_MS
    quiet = shard.handle(over - 1, [], [], NO_EVENTS)
    assert (quiet.letters, quiet.due_ms, quiet.changed) == ([], over, None)
    identity = Identity(HOME, "alice", "default")
    told = shard.handle(over, [], [], NO_EVENTS)
    assert told.letters == [Letter(HOME, HOME, Expire(identity, number, over))]
    assert shard.handle(over, [], [], NO_EVENTS).letters == [], "it is told once"
    outputs = ask(shard, *told.letters, now_ms=over + 5)
    assert outputs.acks == [Ack(None, EXPIRED, *identity[1:], HOME, Number(number.incarnation, 2))]
    assert outputs.filters == [
        Ended(identity, Number(number.incarnation, 2), over + 5, ("r1",), expired=True)
    ]
    assert (len(table(shard)), outputs.due_ms) == (0, None)


@pytest.mark.parametrize("again", [renew("r2"), subscribe("a = 1", "r2", LEASE_MIN_MS)])
def test_a_renewed_lease_outlives_its_first_end(again: Request) -> None:
    """Renewing, or subscribing to the same again, begins the lease anew under the same number."""
    shard = shard_of()
    first = ask(shard, subscribe("a = 1", "r1", LEASE_MIN_MS))
    later = ask(shard, again, now_ms=NOW_MS + 500)
    statuses = [RENEWED] if again.operation is Operation.RENEW else [ACCEPTED, IN_FORCE]
    assert told(later.acks) == [(status, first.acks[0].number) for status in statuses]
    over = NOW_MS + LEASE_MIN_MS
    assert shard.handle(over, [], [], NO_EVENTS).letters == []
    (letter,) = shard.handle(over + 500, [], [], NO_EVENTS).letters
    assert isinstance(letter.body, Expire)
    late = ask(shard, renew("r3"), now_ms=over + 500)
    assert refusal(late).code is Code.LEASE_OVER, "what is told to expire cannot be saved"


def test_a_renewal_that_comes_before_the_expiry_is_read_by_time_not_by_luck() -> None:
    """An expiry of a lease that was meanwhile replaced ends nothing."""
    shard = shard_of()
    ask(shard, subscribe("a = 1", "r1", LEASE_MIN_MS))
    letters = shard.handle(NOW_MS + LEASE_MIN_MS, [], [], NO_EVENTS).letters
    replaced = ask(shard, subscribe("a = 2", "r2"), *letters, now_ms=NOW_MS + LEASE_MIN_MS + 1)
    assert [ack.status for ack in replaced.acks] == [REPLACED, ACCEPTED, IN_FORCE]
    assert len(table(shard)) == 1


@pytest.mark.parametrize("lease_ms", [-1, 0, LEASE_MIN_MS - 1, LEASE_MAX_MS + 1])
def test_a_lease_out_of_bounds_is_refused(lease_ms: int) -> None:
    """Neither a subscription nor a renewal takes it, and what stands stays."""
    shard = shard_of()
    assert refusal(ask(shard, subscribe(lease_ms=lease_ms))).code is Code.LEASE_INVALID
    ask(shard, subscribe())
    before = shard.state()
    assert refusal(ask(shard, renew(lease_ms=lease_ms))).code is Code.LEASE_INVALID
    assert shard.state() == before


def test_renewing_the_unknown_is_refused() -> None:
    """There is nothing to renew, and nothing changes."""
    outputs = ask(shard_of(), renew(request="r1"))
    assert refusal(outputs).code is Code.SUBSCRIPTION_UNKNOWN
    assert outputs.changed is None


# Events


def test_control_comes_before_events_within_a_call() -> None:
    """An event is matched against what the same call's control has made of the table."""
    shard = shard_of()
    event = batch([({"a": 1}, None)])
    assert shard.handle(NOW_MS, [], [subscribe("a = 1")], event).deliveries == [Delivery(0, "alice")]
    assert shard.handle(NOW_MS, [], [unsubscribe()], event).deliveries == []


def test_filters_evaluated_are_counted() -> None:
    """`exact_checks` counts evaluations. Not evaluated are filters of others, those that match every event,
    and further ones of a subscriber that is owed the event already.
    """
    shard = shard_of()
    ask(shard, subscribe("a = 3", id="x"), subscribe("a = 2", id="y"), subscribe("a = 1", subscriber="bob"))
    assert shard.handle(NOW_MS, [], [], batch([({}, None)])).counts["exact_checks"] == 3
    assert shard.handle(NOW_MS, [], [], batch([({"a": 3}, None)])).counts["exact_checks"] == 2
    ask(shard, subscribe(id="x"))
    assert shard.handle(NOW_MS, [], [], batch([({}, None)])).counts["exact_checks"] == 1
    outputs = shard.handle(NOW_MS, [], [], batch([({}, "bob"), ({}, "nobody")]))
    assert outputs.counts["exact_checks"] == 1
    assert outputs.counts["content_matches"] == 2, "every event that enters is matched once"


@pytest.mark.parametrize("texts", [("items = 1", "a = 1"), ("a = 1", "items = 1")])
def test_another_filter_that_matches_hides_one_that_cannot_be_evaluated(texts: tuple[str, str]) -> None:
    """In either order, a match of one filter is a match; without it the rejection is reported."""
    shard = shard_of()
    ask(shard, *(subscribe(text, id=f"s{index}") for index, text in enumerate(texts)))
    too_many: JsonValue = [2] * 10_001
    outputs = shard.handle(NOW_MS, [], [], batch([({"a": 1, "items": too_many}, None)]))
    assert (outputs.deliveries, outputs.undecided) == ([Delivery(0, "alice")], [])
    outputs = shard.handle(NOW_MS, [], [], batch([({"a": 2, "items": too_many}, None)]))
    (undecided,) = outputs.undecided
    assert (outputs.deliveries, undecided.event, undecided.subscriber) == ([], 0, "alice")
    assert undecided.rejection.code is Code.TOO_MANY_CHOICES


# Scripts: random sequences of calls


@dataclass(frozen=True, slots=True)
class Call:
    """One call of `handle`: time since the last one, control, events."""

    elapsed_ms: int
    control: tuple[Control, ...]
    events: EventBatch


events = st.sampled_from(our.EVENTS) | our.events(our.few_names)
batches = st.lists(st.tuples(events, st.none() | our.subscribers | st.just("nobody")), max_size=3).map(batch)
asked = st.one_of(
    our.requests(),
    our.requests(),
    our.requests(filters=st.sampled_from(our.BAD_FILTERS)),
    our.requests(home="virginia"),
)
told_changes = our.changes(
    our.identities(("virginia",)),
    st.builds(Number, st.integers(1, 3), st.integers(0, 5)),
    st.sampled_from(our.FILTERS + our.BAD_FILTERS),
    st.integers(NOW_MS - 1000, NOW_MS + ENDED_REMEMBERED_MS),
    forgetting=False,
).map(lambda change: Letter(HOME, "virginia", change))
elapsed = st.sampled_from(
    [0, 1, 1000, ENDED_REMEMBERED_MS // 2, ENDED_REMEMBERED_MS, ENDED_REMEMBERED_MS + 1]
)


def scripts(control: st.SearchStrategy[Control]) -> st.SearchStrategy[list[Call]]:
    calls = st.builds(Call, elapsed, st.lists(control, max_size=4).map(tuple), batches)
    return st.lists(calls, max_size=6)


def play(shard: Shard, script: list[Call], now_ms: int = NOW_MS) -> list[Outputs]:
    played = []
    for call in script:
        now_ms += call.elapsed_ms
        played.append(shard.handle(now_ms, [], call.control, call.events))
    return played


def completed(script: list[Call]) -> list[Call]:
    """The script with what the home writes to itself, read back in the call after."""
    shard, letters, now_ms = shard_of(), list[Letter](), NOW_MS
    done = []
    for call in script:
        now_ms += call.elapsed_ms
        done.append(replace(call, control=(*call.control, *letters)))
        letters = shard.handle(now_ms, [], done[-1].control, call.events).letters
    return done


any_script = scripts(asked | told_changes).map(completed)
only_requests = scripts(asked).map(completed)


def but_due(outputs: Outputs) -> Outputs:
    """All that is written and remembered; when to call again is only a hint."""
    return replace(outputs, due_ms=None)


@given(any_script, st.data())
def test_a_rebuilt_shard_behaves_the_same(script: list[Call], data: st.DataObject) -> None:
    """From the log, a snapshot, or a snapshot and the later log, all that follows is equal."""
    snapshot_at = data.draw(st.integers(0, len(script)))
    cut = data.draw(st.integers(snapshot_at, len(script)))
    shard = shard_of()
    early = play(shard, script[:snapshot_at])
    snapshot = shard.state()
    now_ms = NOW_MS + sum(call.elapsed_ms for call in script[:snapshot_at])
    later = play(shard, script[snapshot_at:cut], now_ms)
    now_ms += sum(call.elapsed_ms for call in script[snapshot_at:cut])
    log = [outputs.changed for outputs in early if outputs.changed]
    late_log = [outputs.changed for outputs in later if outputs.changed]
    rebuilt = [
        shard_of(state=log + late_log),
        shard_of(state=[shard.state()]),
        shard_of(state=[snapshot, *late_log]),
    ]
    expected_state = shard.state()
    expected = play(shard, script[cut:], now_ms)
    for other in rebuilt:
        assert other.state() == expected_state
        again = play(other, script[cut:], now_ms)
        assert list(map(but_due, again)) == list(map(but_due, expected))
        for early, late in zip(expected, again, strict=True):
            # One that lived on may still think of a lease that is no more; it never thinks of one too late.
            assert late.due_ms is None or (early.due_ms is not None and early.due_ms <= late.due_ms)
        assert other.state() == shard.state()
        assert other.describe() == shard.describe()


def but_lapses(state: ShardState | None) -> list[tuple[str, Fact]]:
    """All but which leases were told to expire, which only the leading shard looks after."""
    return [] if state is None else [each for each in state.facts if not isinstance(each[1], Lapsed)]


@given(any_script)
def test_all_shards_agree_and_only_the_leading_one_speaks(script: list[Call]) -> None:
    """Given the same control and any share of the events, shards end equal; others than 0 answer nothing."""
    leading, other = shard_of(), shard_of(1)
    without_events = [replace(call, events=NO_EVENTS) for call in script]
    for ours, theirs in zip(play(leading, script), play(other, without_events), strict=True):
        assert (theirs.acks, theirs.filters, theirs.unusable, theirs.deliveries) == ([], [], [], [])
        assert theirs.letters == []
        assert but_lapses(theirs.changed) == but_lapses(ours.changed)
        assert theirs.subscribers == ours.subscribers
    assert but_lapses(other.state()) == but_lapses(leading.state())
    assert other.describe() == leading.describe()


def recorded(known: dict[Identity, Change], filters: list[Change | Topology]) -> dict[Identity, Change]:
    """What a compacted topic holds after these records: a forgotten one is a tombstone."""
    for change in filters:
        assert not isinstance(change, Topology)
        if isinstance(change, Forgotten):
            known.pop(change.identity, None)
        else:
            known[change.identity] = change
    return known


@given(any_script)
def test_filters_holds_what_the_table_does(script: list[Call]) -> None:
    """After every call, `filters` compacted is the table, and each change was recorded once."""
    shard, known, now_ms = shard_of(), dict[Identity, Change](), NOW_MS
    for call in script:
        now_ms += call.elapsed_ms
        outputs = shard.handle(now_ms, [], call.control, NO_EVENTS)
        known = recorded(known, outputs.filters)
        assert known == {change.identity: change for change in table(shard).changes()}
        made = [change for _, change in but_lapses(outputs.changed) if isinstance(change, Change)]
        assert [change for change in made if change in outputs.filters] == outputs.filters


def owed_naively(
    known: Iterable[Change], event: dict[str, JsonValue], only: str | None
) -> dict[str, Rejection | None]:
    """Whom the home owes the event, and for whom that could not be decided: asking every filter."""
    verdicts: dict[str, list[bool | Rejection | None]] = {}
    for change in sorted(known, key=lambda each: each.identity):
        is_own = isinstance(change, Subscribed) and change.identity.home == HOME
        if isinstance(change, Subscribed) and is_own and only in (None, change.identity.subscriber):
            verdict = evaluate(read(change.filter), event)
            verdicts.setdefault(change.identity.subscriber, []).append(verdict)
    owed: dict[str, Rejection | None] = {}
    for subscriber, all_of_its in verdicts.items():
        rejections = [verdict for verdict in all_of_its if isinstance(verdict, Rejection)]
        if True in all_of_its:
            owed[subscriber] = None
        elif rejections:
            owed[subscriber] = rejections[-1]
    return owed


def may_match(known: Iterable[Change], subscriber: str, content: object) -> bool:
    """Whether a cover of the subscriber holds for the event."""
    assert isinstance(content, Plain)
    texts = [
        change.filter
        for change in known
        if isinstance(change, Subscribed) and change.identity[:2] == (HOME, subscriber)
    ]
    compiled = [compile_filter("sql", text) for text in texts]
    return any(Event(content.value).may_match(each.cover) for each in compiled if isinstance(each, Compiled))


def as_owed(outputs: Outputs, events: EventBatch) -> list[dict[str, Rejection | None]]:
    owed: list[dict[str, Rejection | None]] = [{} for _ in events.arrivals]
    decided: list[Delivery | Undecided] = [*outputs.deliveries, *outputs.undecided]
    for each in decided:
        assert each.subscriber not in owed[each.event], "each is owed once"
        owed[each.event][each.subscriber] = each.rejection if isinstance(each, Undecided) else None
    return owed


@given(any_script, st.integers(1, 3), st.sampled_from(["none", "all", "late"]), st.sampled_from([None, 0]))
def test_deliveries_are_those_of_the_plain_loop(
    script: list[Call], most_choices: int, trees: str, batches_from: int | None
) -> None:
    """Each subscriber of this home is owed an event once if one filter, as `filters` has it, matches.

    It is undecided if none does and one is not evaluated. With `only`, nobody else is looked at. So it is
    whatever the Tree Optimizer tells: nothing, all that stands, or what stood a call before; except that
    with a tree, or the index of batches, what already the cover excludes is known not to match and need not
    be evaluated.
    """
    shard, known = shard_of(batches_from=batches_from), dict[Identity, Change]()
    optimizer, covers = Optimizer(1, Settings(threshold=0.0)), dict[Identity, Compiled]()
    now_ms = NOW_MS
    with pytest.MonkeyPatch.context() as patch:
        # So few choices that arrays as small as ours exceed them.
        patch.setattr("branchline.routing.evaluate.MAX_CHOICES", most_choices)
        for call in script:
            now_ms += call.elapsed_ms
            updates = optimizer.updates(now_ms) if trees == "late" else []
            before = shard.handle(now_ms, updates, call.control, NO_EVENTS)
            known = recorded(known, before.filters)
            for change in before.filters:
                assert not isinstance(change, Topology)
                if (old := covers.pop(change.identity, None)) is not None:
                    optimizer.unsubscribe(old.cover)
                if isinstance(change, Subscribed):
                    compiled = compile_filter(change.spelling, change.filter)
                    assert isinstance(compiled, Compiled)
                    covers[change.identity] = compiled
                    optimizer.subscribe(compiled.cover)
            updates = optimizer.updates(now_ms) if trees == "all" else []
            outputs = shard.handle(now_ms, updates, [], call.events)
            rows = [(arrival.content, arrival.only) for arrival in call.events.arrivals]
            expected = [
                owed_naively(known.values(), content.value, only)
                for content, only in rows
                if isinstance(content, Plain)
            ]
            found = as_owed(outputs, call.events)
            if trees != "none" or batches_from is not None:
                expected = [
                    {who: why for who, why in owed.items() if why is None or who in got}
                    if all(not may_match(known.values(), who, row[0]) for who in owed.keys() - got.keys())
                    else owed
                    for owed, got, row in zip(expected, found, rows, strict=True)
                ]
            assert found == expected
            assert outputs.counts["content_matches"] == len(call.events.at)
            assert outputs.forwarded == outputs.refused == outputs.released == []


def test_paths_that_nobody_names_any_more_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Subscribing with other names every time costs nothing for ever, and everybody gets their events."""
    monkeypatch.setattr("branchline.routing.batches.PATHS_KEPT", 10)
    shard = shard_of(batches_from=0)
    shard.handle(NOW_MS, [], [Request(Operation.SUBSCRIBE, "bob", "main", filter="x = 1")], NO_EVENTS)
    for number in range(100):
        asked = Request(Operation.SUBSCRIBE, "ann", "main", filter=f"n{number} = 1")
        shard.handle(NOW_MS + number, [], [asked], NO_EVENTS)
        both = batch([({"x": 1, f"n{number}": 1}, None), ({f"n{number - 1}": 1}, None)])
        owed = shard.handle(NOW_MS + number, [], [], both).deliveries
        assert [(each.event, each.subscriber) for each in owed] == [(0, "ann"), (0, "bob")]
        assert shard._batches.paths is not None and len(shard._batches.paths) < 25


@given(any_script)
def test_numbers_strictly_increase(script: list[Call]) -> None:
    """Every change that this home makes has a number above all before, but a renewal, which keeps its own."""
    shard = shard_of()
    made = [
        change.number
        for outputs in play(shard, script)
        for change in outputs.filters
        if isinstance(change, Subscribed | Ended) and change.identity.home == HOME
        if not change.revision
    ]
    assert made == sorted(set(made))


@given(any_script)
def test_every_request_is_answered_as_the_table_says(script: list[Call]) -> None:
    """Each request gets one answer that settles it, and it names the newest change, or why it is refused."""
    shard = shard_of()
    now_ms = NOW_MS
    for call in script:
        now_ms += call.elapsed_ms
        for message in call.control:
            # One at a time, on the clock of the call, so that the table can be looked at in between.
            acks = shard.handle(now_ms, [], [message], NO_EVENTS).acks
            settling = [ack for ack in acks if ack.status not in (ACCEPTED, REPLACED)]
            if isinstance(message, Request):
                assert [ack.index for ack in settling] == [0]
            else:
                assert all(ack.status is EXPIRED and ack.index is None for ack in settling)
            for ack in settling:
                known = table(shard).find(Identity(ack.home, ack.subscriber or "", ack.id or ""))
                if ack.status in (IN_FORCE, RENEWED):
                    assert isinstance(known, Subscribed)
                    assert known.number == ack.number
                elif ack.status in (ENDED, EXPIRED):
                    assert known is None or (isinstance(known, Ended) and known.number == ack.number)
                    asks_to_end = isinstance(message, Request) and message.operation is Operation.UNSUBSCRIBE
                    expired = known is not None and known.expired and not asks_to_end
                    assert known is None or expired == (ack.status is EXPIRED)


@given(only_requests, st.data())
def test_splitting_a_batch_leads_to_the_same_subscriptions(script: list[Call], data: st.DataObject) -> None:
    """Control handled in one call or in several, at the same time, leaves the same filters standing."""
    whole, split = shard_of(), shard_of()
    now_ms = NOW_MS
    for call in script:
        now_ms += call.elapsed_ms
        whole.handle(now_ms, [], call.control, NO_EVENTS)
        at = data.draw(st.integers(0, len(call.control)))
        for part in (call.control[:at], call.control[at:]):
            split.handle(now_ms, [], part, NO_EVENTS)
    standing = [
        {
            change.identity: (change.number, change.filter)
            for change in table(shard).changes()
            if isinstance(change, Subscribed)
        }
        for shard in (whole, split)
    ]
    assert standing[0] == standing[1]


def test_an_end_is_remembered_for_a_day_and_then_forgotten() -> None:
    """For a day an unsubscription is answered again; then the next call with control forgets it."""
    shard = shard_of()
    ask(shard, subscribe(), unsubscribe())
    day_later = NOW_MS + ENDED_REMEMBERED_MS
    assert ask(shard, unsubscribe(), now_ms=day_later - 1).acks[0].status is ENDED
    assert shard.handle(day_later, [], [], NO_EVENTS).changed is None
    outputs = ask(shard, subscribe(subscriber="bob"), now_ms=day_later)
    assert Forgotten(Identity(HOME, "alice", "default"), Number(NOW_MS, 2)) in outputs.filters
    assert refusal(ask(shard, unsubscribe(), now_ms=day_later)).code is Code.SUBSCRIPTION_UNKNOWN


def test_splitting_a_batch_in_which_an_end_is_forgotten_changes_nothing() -> None:
    """Whether a repeated request meets an end that is due to be forgotten does not hang on batch borders."""
    control = (subscribe(subscriber="bob"), subscribe("a = 1", "r1"))
    standing = []
    for parts in ([control], [control[:1], control[1:]]):
        shard = shard_of()
        ask(shard, subscribe("a = 1", "r1"), unsubscribe("r2"))
        for part in parts:
            ask(shard, *part, now_ms=NOW_MS + ENDED_REMEMBERED_MS)
        standing.append((table(shard).homes("alice"), table(shard).homes("bob")))
    assert standing[0] == standing[1]
