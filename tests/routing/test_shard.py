"""The shard answers requests, keeps its state and decides deliveries as its definition says."""

from dataclasses import dataclass, replace

import pytest
import strategies as our
from hypothesis import given
from hypothesis import strategies as st

from branchline.routing.codes import Code, Rejection
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
from branchline.routing.evaluate import evaluate
from branchline.routing.limits import ENDED_REMEMBERED_MS, REQUESTS_REMEMBERED
from branchline.routing.shard import Delivery, EventBatch, Outputs, Shard, ShardState
from branchline.routing.spellings.sql import read
from branchline.routing.values import JsonValue

HOME = "dublin"
NOW_MS = 1_700_000_000_000
NO_EVENTS = EventBatch()

ACCEPTED, IN_FORCE, REPLACED = Status.ACCEPTED, Status.IN_FORCE, Status.REPLACED
ENDED, REFUSED = Status.ENDED, Status.REFUSED


def subscribe(text: str = "TRUE", request: str | None = None, **names: str) -> Request:
    named = {"subscriber": "alice", "id": "default"} | names
    return Request(Operation.SUBSCRIBE, **named, filter=text, request=request)


def unsubscribe(request: str | None = None, **names: str) -> Request:
    named = {"subscriber": "alice", "id": "default"} | names
    return Request(Operation.UNSUBSCRIBE, **named, request=request)


def ask(shard: Shard, *requests: Request | Change, now_ms: int = NOW_MS) -> Outputs:
    return shard.handle(now_ms, requests, NO_EVENTS)


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
    outputs = ask(Shard(HOME, 0), subscribe("a = 1", "r1"))
    number = Number(NOW_MS, 1)
    assert outputs.acks == [
        Ack(0, status, "alice", "default", HOME, number, "r1") for status in (ACCEPTED, IN_FORCE)
    ]
    assert outputs.filters == [
        Subscribed(Identity(HOME, "alice", "default"), number, "sql", "a = 1", ("r1",))
    ]
    assert outputs.subscribers == ["alice"]
    assert outputs.changed == ShardState(number, tuple(outputs.filters))


def test_a_replacement_ends_the_old_number_first() -> None:
    """Another filter under the same id: the old number is replaced, then the new one accepted."""
    shard = Shard(HOME, 0)
    ask(shard, subscribe("a = 1", "r1"))
    outputs = ask(shard, subscribe("a = 2", "r2"))
    old, new = Number(NOW_MS, 1), Number(NOW_MS, 2)
    assert told(outputs.acks) == [(REPLACED, old), (ACCEPTED, new), (IN_FORCE, new)]
    assert [ack.request for ack in outputs.acks] == ["r2", "r2", "r2"]
    assert shard.table.count("alice") == 1


def test_the_same_filter_again_changes_nothing() -> None:
    """Asking for what stands is answered with its number and makes no change."""
    shard = Shard(HOME, 0)
    first = ask(shard, subscribe("a = 1", "r1"))
    again = ask(shard, subscribe("a = 1", "r2"))
    assert told(again.acks) == told(first.acks)
    assert (again.changed, again.filters, again.subscribers) == (None, [], [])


def test_a_repeated_request_is_answered_as_it_stands() -> None:
    """A request id seen before changes nothing, whatever came in between."""
    shard = Shard(HOME, 0)
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
    shard = Shard(HOME, 0)
    ask(shard, *(subscribe(f"a = {count}", f"r{count}") for count in range(REQUESTS_REMEMBERED + 3)))
    known = shard.table.find(Identity(HOME, "alice", "default"))
    assert known is not None
    assert known.requests == tuple(f"r{count}" for count in range(3, REQUESTS_REMEMBERED + 3))


def test_unsubscribing_ends_and_again_says_so_again() -> None:
    """The first unsubscription ends, under a number of its own; the second changes nothing."""
    shard = Shard(HOME, 0)
    ask(shard, subscribe())
    first = ask(shard, unsubscribe())
    again = ask(shard, unsubscribe())
    assert told(first.acks) == told(again.acks) == [(ENDED, Number(NOW_MS, 2))]
    assert first.filters == [Ended(Identity(HOME, "alice", "default"), Number(NOW_MS, 2), NOW_MS)]
    assert again.changed is None
    assert len(shard.table) == 0


def test_unsubscribing_the_unknown_is_refused() -> None:
    """There is nothing to end, and nothing changes."""
    outputs = ask(Shard(HOME, 0), unsubscribe(request="r1"))
    assert refusal(outputs).code is Code.SUBSCRIPTION_UNKNOWN
    assert outputs.acks[0].request == "r1"
    assert outputs.changed is None


def test_resubscribing_after_the_end_gets_a_higher_number() -> None:
    """Nobody is replaced by it, and the end is no longer known."""
    shard = Shard(HOME, 0)
    ask(shard, subscribe(), unsubscribe())
    outputs = ask(shard, subscribe())
    assert told(outputs.acks) == [(ACCEPTED, Number(NOW_MS, 3)), (IN_FORCE, Number(NOW_MS, 3))]
    assert shard.describe() == "dublin/alice/default #3: TRUE"


@pytest.mark.parametrize(("text", "place"), [("a =", (1, 4)), ("a = 1 AND\n  b ==", (2, 6)), ("", (1, 1))])
def test_a_bad_filter_is_refused_with_its_place(text: str, place: tuple[int, int]) -> None:
    """The refusal carries line and column; the subscription stands as it did."""
    shard = Shard(HOME, 0)
    ask(shard, subscribe())
    before = shard.state()
    outputs = ask(shard, subscribe(text))
    rejection = refusal(outputs)
    assert rejection.code is Code.FILTER_SYNTAX
    assert (rejection.line, rejection.column) == place
    assert (outputs.changed, shard.state()) == (None, before)


def test_an_unknown_spelling_is_refused() -> None:
    """A spelling that nobody reads is no filter."""
    outputs = ask(Shard(HOME, 0), replace(subscribe(), spelling="klingon"))
    assert refusal(outputs).code is Code.SPELLING_UNKNOWN


@pytest.mark.parametrize("make", [subscribe, unsubscribe])
def test_a_foreign_home_is_refused_with_the_right_name(make: type[Request]) -> None:
    """Whatever is asked of another broker is refused here, and the reason names this one."""
    outputs = ask(Shard(HOME, 0), make(home="virginia"))
    rejection = refusal(outputs)
    assert rejection.code is Code.HOME_UNKNOWN
    assert "'virginia'" in rejection.reason
    assert "'dublin'" in rejection.reason
    assert outputs.changed is None


def test_a_foreign_home_is_refused_though_its_subscription_is_known() -> None:
    """Having been told of a subscription, request id and all, is no right to answer for its home."""
    shard = Shard(HOME, 0)
    ask(shard, Subscribed(Identity("virginia", "alice", "default"), Number(5, 1), "sql", "TRUE", ("r1",)))
    assert refusal(ask(shard, subscribe("TRUE", "r1", home="virginia"))).code is Code.HOME_UNKNOWN


def test_naming_the_home_is_the_same_as_leaving_it_out() -> None:
    """A broker answers to its own name."""
    shard = Shard(HOME, 0)
    assert told(ask(shard, subscribe(home=HOME)).acks) == told(ask(shard, subscribe()).acks)


def test_a_subscriber_has_only_so_many_subscriptions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one above the limit is refused; replacing, and others, are not hindered; an end makes room."""
    monkeypatch.setattr("branchline.routing.shard.SUBSCRIPTIONS_PER_SUBSCRIBER", 2)
    shard = Shard(HOME, 0)
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
    outputs = ask(Shard(HOME, 0), change, subscribe(), unsubscribe(id="x"))
    assert [ack.index for ack in outputs.acks] == [1, 1, 2]


# Changes told by others


@pytest.mark.parametrize(("spelling", "text"), [("sql", "a ="), ("klingon", "TRUE")])
def test_an_unreadable_change_is_reported_and_changes_nothing(spelling: str, text: str) -> None:
    """What another broker tells and this one cannot read is unusable; what stood stays."""
    identity = Identity("virginia", "bob", "default")
    shard = Shard(HOME, 0)
    ask(shard, Subscribed(identity, Number(5, 1), "sql", "a = 1"))
    before = shard.state()
    outputs = ask(shard, subscribe("a ="), Subscribed(identity, Number(5, 2), spelling, text))
    ((index, rejection),) = outputs.unusable
    assert index == 1
    assert rejection.code in (Code.FILTER_SYNTAX, Code.SPELLING_UNKNOWN)
    assert (outputs.changed, outputs.filters, shard.state()) == (None, [], before)


def test_a_told_change_is_recorded_once() -> None:
    """A repeat, or a straggler, is neither recorded nor answered."""
    change = Subscribed(Identity("virginia", "bob", "default"), Number(5, 1), "sql", "TRUE")
    outputs = ask(Shard(HOME, 0), change, change, replace(change, number=Number(4, 9)))
    assert (outputs.filters, outputs.acks, outputs.subscribers) == ([change], [], ["bob"])


# Numbers


@pytest.mark.parametrize(
    ("found", "incarnation"), [(NOW_MS - 5, NOW_MS), (NOW_MS, NOW_MS + 1), (NOW_MS + 7, NOW_MS + 8)]
)
@pytest.mark.parametrize("home", [HOME, "virginia"])
def test_a_new_incarnation_starts_above_what_the_table_holds(found: int, incarnation: int, home: str) -> None:
    """The first number is the batch's time, or above any number known, whichever is more."""
    ended = Ended(Identity(home, "bob", "default"), Number(found, 3), NOW_MS)
    outputs = ask(Shard(HOME, 0, [ShardState(None, (ended,))]), subscribe())
    assert outputs.acks[0].number == Number(incarnation, 1)


def test_numbers_stay_above_what_is_told_of_this_home() -> None:
    """A change of this home's own past, told late and with a higher number, never makes an ack a lie."""
    identity = Identity(HOME, "alice", "default")
    shard = Shard(HOME, 0)
    ask(shard, subscribe("a = 1"))
    ask(shard, Subscribed(identity, Number(NOW_MS + 100, 7), "sql", "a = 2"))
    outputs = ask(shard, subscribe("a = 3"))
    known = shard.table.find(identity)
    assert isinstance(known, Subscribed)
    assert known.filter == "a = 3"
    assert [ack.number for ack in outputs.acks if ack.status is IN_FORCE] == [known.number]


# Events


def test_control_comes_before_events_within_a_call() -> None:
    """An event is matched against what the same call's control has made of the table."""
    shard = Shard(HOME, 0)
    batch = EventBatch([{"a": 1}], [None])
    assert shard.handle(NOW_MS, [subscribe("a = 1")], batch).deliveries == [Delivery(0, "alice")]
    assert shard.handle(NOW_MS, [unsubscribe()], batch).deliveries == []


def test_filters_evaluated_are_counted() -> None:
    """`exact_checks` counts evaluations: filters of others, or after a match, are not evaluated."""
    shard = Shard(HOME, 0)
    ask(shard, subscribe(id="x"), subscribe(id="y"), subscribe("a = 1", subscriber="bob"))
    assert shard.handle(NOW_MS, [], EventBatch([{}], [None])).exact_checks == 2
    assert shard.handle(NOW_MS, [], EventBatch([{}, {}], ["bob", "nobody"])).exact_checks == 1


# Scripts: random sequences of calls


@dataclass(frozen=True, slots=True)
class Call:
    """One call of `handle`: time since the last one, control, events."""

    elapsed_ms: int
    control: tuple[Request | Change, ...]
    events: EventBatch


def batch(rows: list[tuple[dict[str, JsonValue], str | None]]) -> EventBatch:
    return EventBatch([attributes for attributes, _ in rows], [only for _, only in rows])


batches = st.lists(st.tuples(st.sampled_from(our.EVENTS), st.none() | our.subscribers), max_size=3).map(batch)
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
)
elapsed = st.sampled_from(
    [0, 1, 1000, ENDED_REMEMBERED_MS // 2, ENDED_REMEMBERED_MS, ENDED_REMEMBERED_MS + 1]
)


def scripts(control: st.SearchStrategy[Request | Change]) -> st.SearchStrategy[list[Call]]:
    calls = st.builds(Call, elapsed, st.lists(control, max_size=4).map(tuple), batches)
    return st.lists(calls, max_size=6)


any_script = scripts(asked | told_changes)
only_requests = scripts(asked)


def play(shard: Shard, script: list[Call], now_ms: int = NOW_MS) -> list[Outputs]:
    played = []
    for call in script:
        now_ms += call.elapsed_ms
        played.append(shard.handle(now_ms, call.control, call.events))
    return played


@given(any_script, st.data())
def test_a_rebuilt_shard_behaves_the_same(script: list[Call], data: st.DataObject) -> None:
    """From the log, a snapshot, or a snapshot and the later log, all that follows is equal."""
    snapshot_at = data.draw(st.integers(0, len(script)))
    cut = data.draw(st.integers(snapshot_at, len(script)))
    shard = Shard(HOME, 0)
    early = play(shard, script[:snapshot_at])
    snapshot = shard.state()
    now_ms = NOW_MS + sum(call.elapsed_ms for call in script[:snapshot_at])
    later = play(shard, script[snapshot_at:cut], now_ms)
    now_ms += sum(call.elapsed_ms for call in script[snapshot_at:cut])
    log = [outputs.changed for outputs in early if outputs.changed]
    late_log = [outputs.changed for outputs in later if outputs.changed]
    rebuilt = [
        Shard(HOME, 0, log + late_log),
        Shard(HOME, 0, [shard.state()]),
        Shard(HOME, 0, [snapshot, *late_log]),
    ]
    expected_state = shard.state()
    expected = play(shard, script[cut:], now_ms)
    for other in rebuilt:
        assert other.state() == expected_state
        assert play(other, script[cut:], now_ms) == expected
        assert other.state() == shard.state()
        assert other.describe() == shard.describe()


@given(any_script)
def test_all_shards_agree_and_only_the_leading_one_speaks(script: list[Call]) -> None:
    """Given the same control and any share of the events, shards end equal; others than 0 answer nothing."""
    leading, other = Shard(HOME, 0), Shard(HOME, 1)
    without_events = [replace(call, events=NO_EVENTS) for call in script]
    for ours, theirs in zip(play(leading, script), play(other, without_events), strict=True):
        assert (theirs.acks, theirs.filters, theirs.unusable, theirs.deliveries) == ([], [], [], [])
        assert (theirs.changed, theirs.subscribers) == (ours.changed, ours.subscribers)
        assert list(ours.changed.changes if ours.changed else ()) == ours.filters
    assert other.state() == leading.state()
    assert other.describe() == leading.describe()


@given(any_script)
def test_deliveries_are_those_of_the_plain_loop(script: list[Call]) -> None:
    """An event goes to exactly the subscribers of whom one filter, as `filters` has it, matches."""
    shard = Shard(HOME, 0)
    recorded: dict[Identity, Change] = {}
    for call, outputs in zip(script, play(shard, script), strict=True):
        for change in outputs.filters:
            recorded[change.identity] = change
        expected = {
            Delivery(index, change.identity.subscriber)
            for index, (event, only) in enumerate(zip(call.events.attributes, call.events.only, strict=True))
            for change in recorded.values()
            if isinstance(change, Subscribed)
            and only in (None, change.identity.subscriber)
            and evaluate(read(change.filter), event) is True
        }
        assert set(outputs.deliveries) == expected
        assert len(outputs.deliveries) == len(expected)


@given(any_script)
def test_numbers_strictly_increase(script: list[Call]) -> None:
    """Every change that this home makes has a number above all that it made before."""
    shard = Shard(HOME, 0)
    made = [
        change.number
        for outputs in play(shard, script)
        for change in outputs.filters
        if change.identity.home == HOME and not isinstance(change, Forgotten)
    ]
    assert made == sorted(set(made))


@given(any_script)
def test_every_request_is_answered_as_the_table_says(script: list[Call]) -> None:
    """Each request gets one answer that settles it: in-force and ended name the newest change, or refused."""
    shard = Shard(HOME, 0)
    now_ms = NOW_MS
    for call in script:
        now_ms += call.elapsed_ms
        for message in call.control:
            # One at a time, on the clock of the call, so that the table can be looked at in between.
            acks = shard.handle(now_ms, [message], NO_EVENTS).acks
            settling = [ack for ack in acks if ack.status in (IN_FORCE, ENDED, REFUSED)]
            assert len(settling) == isinstance(message, Request)
            for ack in settling:
                known = shard.table.find(Identity(ack.home, ack.subscriber or "", ack.id or ""))
                if ack.status is IN_FORCE:
                    assert isinstance(known, Subscribed)
                    assert known.number == ack.number
                elif ack.status is ENDED:
                    assert known is None or (isinstance(known, Ended) and known.number == ack.number)


@given(only_requests, st.data())
def test_splitting_a_batch_leads_to_the_same_subscriptions(script: list[Call], data: st.DataObject) -> None:
    """Control handled in one call or in several, at the same time, leaves the same filters standing."""
    whole, split = Shard(HOME, 0), Shard(HOME, 0)
    now_ms = NOW_MS
    for call in script:
        now_ms += call.elapsed_ms
        whole.handle(now_ms, call.control, NO_EVENTS)
        at = data.draw(st.integers(0, len(call.control)))
        for part in (call.control[:at], call.control[at:]):
            split.handle(now_ms, part, NO_EVENTS)
    standing = [
        {
            change.identity: (change.number, change.filter)
            for change in shard.table.changes()
            if isinstance(change, Subscribed)
        }
        for shard in (whole, split)
    ]
    assert standing[0] == standing[1]


def test_an_end_is_remembered_for_a_day_and_then_forgotten() -> None:
    """For a day an unsubscription is answered again; then the next call with control forgets it."""
    shard = Shard(HOME, 0)
    ask(shard, subscribe(), unsubscribe())
    day_later = NOW_MS + ENDED_REMEMBERED_MS
    assert ask(shard, unsubscribe(), now_ms=day_later - 1).acks[0].status is ENDED
    assert shard.handle(day_later, [], NO_EVENTS).changed is None
    outputs = ask(shard, subscribe(subscriber="bob"), now_ms=day_later)
    assert Forgotten(Identity(HOME, "alice", "default"), Number(NOW_MS, 2)) in outputs.filters
    assert refusal(ask(shard, unsubscribe(), now_ms=day_later)).code is Code.SUBSCRIPTION_UNKNOWN


def test_splitting_a_batch_in_which_an_end_is_forgotten_changes_nothing() -> None:
    """Whether a repeated request meets an end that is due to be forgotten does not hang on batch borders."""
    control = (subscribe(subscriber="bob"), subscribe("a = 1", "r1"))
    standing = []
    for parts in ([control], [control[:1], control[1:]]):
        shard = Shard(HOME, 0)
        ask(shard, subscribe("a = 1", "r1"), unsubscribe("r2"))
        for part in parts:
            ask(shard, *part, now_ms=NOW_MS + ENDED_REMEMBERED_MS)
        standing.append((shard.table.count("alice"), shard.table.count("bob")))
    assert standing[0] == standing[1]
