"""The history checker: each rule on a few entries, and all of them on the histories of small worlds."""

import random
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest
from amounts import often
from filter_texts import TEXTS, expression_of, pairs
from hypothesis import assume, given
from hypothesis import strategies as st

from branchline.routing import versions
from branchline.routing.checking import Repeats, check
from branchline.routing.codes import Rejection
from branchline.routing.compiling import compile_filter
from branchline.routing.control import Identity, Status
from branchline.routing.evaluate import evaluate
from branchline.routing.history import (
    Acked,
    Entry,
    Finding,
    Kind,
    Lapsing,
    Published,
    Read,
    Settled,
    Steady,
    Undecided,
    Unsteady,
    Verdict,
    Wrote,
)

ANN = Identity("dublin", "ann", "a")
ANN_TOO = Identity("dublin", "ann", "b")
BOB = Identity("dublin", "bob", "a")

ONE = {"x": 1}
TWO = {"x": 2}
MANY: dict[str, Any] = {"x": [1] * 101, "y": [1] * 101}
"""Too many choices for a filter that names both, 101 for one that names one."""
BOTH = "x = 1 AND y = 1"


def asks(filter_: str | None, request: str, identity: Identity = ANN) -> Wrote:
    return Wrote(identity, "sql", filter_, request)


def accepted(request: str | None, identity: Identity = ANN) -> Acked:
    return Acked(identity, Status.ACCEPTED, request)


def in_force(request: str | None, identity: Identity = ANN) -> Acked:
    return Acked(identity, Status.IN_FORCE, request)


def ended(request: str | None, identity: Identity = ANN) -> Acked:
    return Acked(identity, Status.ENDED, request)


def refused(request: str | None, identity: Identity = ANN) -> Acked:
    return Acked(identity, Status.REFUSED, request)


def stands(filter_: str, request: str = "r1", identity: Identity = ANN) -> list[Entry]:
    return [asks(filter_, request, identity), accepted(request, identity), in_force(request, identity)]


def kinds(verdict: Verdict) -> Counter[Kind]:
    return Counter(finding.kind for finding in verdict.findings())


def only(verdict: Verdict) -> Finding:
    """The one thing that is wrong."""
    (finding,) = verdict.findings()
    return finding


def is_owed(history: Iterable[Entry], event: str = "e") -> bool:
    """Whether it would be missed. It must be read nowhere in the history."""
    return any(finding.event == event for finding in check(history).lost)


def is_allowed(history: Iterable[Entry], event: str = "e", subscriber: str = "ann") -> bool:
    """Whether it may be read at the end of the history."""
    return not any(finding.event == event for finding in check([*history, Read(subscriber, event)]).misrouted)


def outcome(*history: Entry) -> str:
    """What the event e is to ann: owed, optional or forbidden."""
    owed, allowed = is_owed(history), is_allowed(history)
    assert allowed or not owed, "nothing is owed and forbidden"
    return "owed" if owed else "optional" if allowed else "forbidden"


# What is owed


def test_nothing_at_all_is_clean_and_says_that_nothing_was_checked() -> None:
    """An empty history is clean, with counts of zero."""
    verdict = check([])
    assert verdict.clean
    assert verdict == Verdict()
    assert "0 owed" in verdict.describe()


def test_what_is_published_in_force_is_owed() -> None:
    """A matching event after the in-force ack is owed; one that does not match is forbidden."""
    assert outcome(*stands("x = 1"), Published("e", ONE)) == "owed"
    assert outcome(*stands("x = 1"), Published("e", TWO)) == "forbidden"


def test_before_it_is_in_force_a_matching_event_is_optional() -> None:
    """From before the request was written, unless all was settled in between, to the in-force ack."""
    request, accept, force = stands("x = 1")
    event = Published("e", ONE)
    assert outcome(event, request, accept, force) == "optional"
    assert outcome(request, event, accept, force) == "optional"
    assert outcome(request, accept, event, force) == "optional"
    assert outcome(event, Settled(), request, accept, force) == "forbidden"


def test_a_settled_event_cannot_be_wanted_afterwards() -> None:
    """A version that was written after the event was surely handled explains nothing."""
    history = [Published("e", ONE), Settled(), *stands("x = 1"), Read("ann", "e")]
    assert only(check(history)).kind is Kind.MISROUTED
    assert "only later" in only(check(history)).sentence


def test_what_was_read_before_anybody_asked_is_misrouted() -> None:
    """A read is explained only by what was written before it."""
    history = [Published("e", ONE), Read("ann", "e"), *stands("x = 1")]
    assert only(check(history)).kind is Kind.MISROUTED


def test_between_the_write_and_the_ack_of_the_end_events_are_optional() -> None:
    """Before the end is written owed only if surely handled by then; after its ack forbidden."""
    event = Published("e", ONE)
    end, ack = asks(None, "r2"), ended("r2")
    assert outcome(*stands("x = 1"), event, end, ack) == "optional"
    assert outcome(*stands("x = 1"), event, Settled(), end, ack) == "owed"
    assert outcome(*stands("x = 1"), end, event, ack) == "optional"
    assert outcome(*stands("x = 1"), end, event, Settled(), ack) == "optional"
    assert outcome(*stands("x = 1"), end, ack, event) == "forbidden"


def test_a_replacement_leaves_no_gap() -> None:
    """What matches old and new is owed at every moment of the replacement."""
    parts = [asks("x >= 1", "r2"), accepted("r2"), in_force("r2")]
    for place in range(len(parts) + 1):
        history = [*stands("x = 1"), *parts[:place], Published("e", ONE), *parts[place:]]
        assert outcome(*history) == "owed"


def test_what_only_one_of_old_and_new_matches_is_optional_meanwhile() -> None:
    """Old: owed until the new one is written, forbidden once the home has it. New: owed once in force."""
    parts = [asks("x = 2", "r2"), accepted("r2"), in_force("r2")]

    def outcomes(attributes: dict[str, Any]) -> list[str]:
        return [
            outcome(*stands("x = 1"), *parts[:place], Published("e", attributes), Settled(), *parts[place:])
            for place in range(len(parts) + 1)
        ]

    assert outcomes(ONE) == ["owed", "optional", "forbidden", "forbidden"]
    assert outcomes(TWO) == ["forbidden", "optional", "optional", "owed"]


def test_what_is_accepted_does_not_hold_everywhere() -> None:
    """Of three versions, the first in force, a broker may have any: what the second rejects is not owed."""
    history = [*stands("x = 1"), asks("x = 2", "r2"), accepted("r2"), asks("x >= 1", "r3"), accepted("r3")]
    assert outcome(*history, Published("e", ONE)) == "optional"
    assert outcome(*history, in_force("r3"), Published("e", ONE)) == "owed"


def test_a_subscription_that_returns_is_owed_again_only_in_force() -> None:
    """After an end, a new subscription under the same id begins as any other does."""
    again = [*stands("x = 1"), asks(None, "r2"), ended("r2"), asks("x = 1", "r3"), accepted("r3")]
    assert outcome(*again, Published("e", ONE)) == "optional"
    assert outcome(*again, in_force("r3"), Published("e", ONE)) == "owed"


def test_of_two_subscriptions_of_one_subscriber_one_is_enough() -> None:
    """Owed if either owes it, allowed if either allows it, and read once for both."""
    other = stands("x >= 1", "r2", ANN_TOO)
    end = [asks(None, "r3"), ended("r3")]
    assert outcome(*stands("x = 1"), *other, *end, Published("e", ONE)) == "owed"
    assert outcome(*stands("x = 1"), *other[:2], *end, Published("e", ONE)) == "optional"
    history = [*stands("x = 1"), *other, Published("e", ONE), Read("ann", "e")]
    assert check(history).clean
    assert check(history).owed == 1


def test_subscribers_do_not_answer_for_each_other() -> None:
    """What one read, the other is still owed; what one wants, the other may not have."""
    history = [*stands("x = 1"), *stands("x = 2", "r2", BOB), Published("e", ONE), Read("bob", "e")]
    verdict = check(history)
    assert kinds(verdict) == {Kind.LOST: 1, Kind.MISROUTED: 1}
    assert (verdict.lost[0].subscriber, verdict.misrouted[0].subscriber) == ("ann", "bob")


def test_a_refused_replacement_is_none() -> None:
    """What stood stands on, as if nothing had been written, also between the write and the refusal."""
    replace, refusal = asks("x = 2", "r2"), refused("r2")
    for attributes, expected in ((ONE, "owed"), (TWO, "forbidden")):
        event = Published("e", attributes)
        assert outcome(*stands("x = 1"), replace, event, refusal) == expected
        assert outcome(*stands("x = 1"), replace, refusal, event) == expected


def test_a_refused_end_is_none() -> None:
    """The subscription is owed what it was owed."""
    assert outcome(*stands("x = 1"), asks(None, "r2"), refused("r2"), Published("e", ONE)) == "owed"


def test_a_request_that_was_refused_and_tried_again_may_be_accepted() -> None:
    """A refusal counts only if it is the last word."""
    tried = [asks("x = 1", "r1"), refused("r1"), asks("x = 1", "r1")]
    assert outcome(*tried, Published("e", ONE)) == "optional"
    assert outcome(*tried, accepted("r1"), in_force("r1"), Published("e", ONE)) == "owed"
    assert outcome(*tried, refused("r1"), Published("e", ONE)) == "forbidden"


def test_a_filter_that_cannot_be_read_wants_nothing() -> None:
    """If the home accepts it all the same, what it delivers is misrouted."""
    assert outcome(*stands("x = = 1"), Published("e", ONE)) == "forbidden"


def test_an_ack_without_a_request_means_the_newest_that_it_can_speak_of() -> None:
    """In force: the newest with a filter; ended: the newest end; refused: the newest written."""
    asked = [asks("x = 1", "r1"), in_force(None)]
    assert outcome(*asked, Published("e", ONE)) == "owed"
    assert outcome(*asked, asks("x = 2", "r2"), in_force(None), Published("e", TWO)) == "owed"
    assert outcome(*asked, asks(None, "r2"), ended(None), Published("e", ONE)) == "forbidden"
    assert outcome(*asked, asks(None, "r2"), refused(None), Published("e", ONE)) == "owed"
    assert outcome(asks("x = 1", "r1"), asks(None, "r2"), in_force(None), Published("e", ONE)) == "optional"


def test_an_ack_that_answers_nothing_written_is_counted_and_changes_nothing() -> None:
    """It makes nothing owed, and shows."""
    strays = [in_force("r1"), in_force("r9"), Acked(ANN, Status.EXPIRED), ended(None, BOB)]
    history = [strays[0], asks("x = 1", "r1"), *strays[1:], Published("e", ONE)]
    assert outcome(*history) == "optional"
    assert check(history).strays == len(strays)


def test_what_kafka_did_not_acknowledge_is_optional() -> None:
    """If nobody knows whether it was published, it may be delivered, to whom it matches, or not at all."""
    for attributes, expected in ((ONE, "optional"), (TWO, "forbidden")):
        assert outcome(*stands("x = 1"), Published("e", attributes, acknowledged=False)) == expected


# Retries


def test_a_retry_is_the_same_request() -> None:
    """Written again it is no new version, and acks that come again change nothing."""
    again = [*stands("x = 1"), *stands("x = 1")]
    assert outcome(*again, Published("e", ONE)) == "owed"
    replaced = [*again, *stands("x = 2", "r2")]
    assert outcome(*replaced, asks("x = 1", "r1"), Published("e", ONE)) == "forbidden"
    assert outcome(*replaced, asks("x = 1", "r1"), Published("e", TWO)) == "owed"
    # The home answers a retry with how the subscription stands now.
    assert outcome(*replaced, *stands("x = 1", "r1"), Published("e", TWO)) == "owed"
    assert outcome(*replaced, *stands("x = 1", "r1"), Published("e", ONE)) == "forbidden"
    assert check(again).requests == 1


def test_a_request_that_was_overtaken_stands_where_it_was_handled() -> None:
    """Answered only after one written later, it is the retry that was handled, and it replaced that one."""
    history = [asks("x = 1", "r1"), *stands("x = 2", "r2"), *stands("x = 1", "r1")]
    assert outcome(*history, Published("e", ONE)) == "owed"
    assert outcome(*history, Published("e", TWO)) == "forbidden"
    assert outcome(*history[:4], Published("e", ONE), Settled(), *history[4:]) == "forbidden"
    assert outcome(*history[:5], Published("e", ONE), *history[5:]) == "optional"
    assert outcome(*history[:5], Published("e", TWO), *history[5:]) == "optional"
    assert outcome(*history[:5], Published("e", TWO)) == "optional"


def test_a_home_that_takes_requests_in_another_order_is_not_excused() -> None:
    """What was answered later was still written earlier, and what was written last is what is owed."""
    history = [asks("x = 1", "r1"), asks("x = 2", "r2"), accepted("r2"), in_force("r2"), accepted("r1")]
    assert outcome(*history, Published("e", ONE)) == "forbidden"
    assert outcome(*history, Published("e", TWO)) == "owed"


# Leases


def test_while_a_lease_may_be_over_events_are_optional() -> None:
    """From then on, also to what is not surely handled by then; forbidden once it has expired."""
    lapsing, expired = Lapsing(ANN), Acked(ANN, Status.EXPIRED)
    event = Published("e", ONE)
    assert outcome(*stands("x = 1"), event, Settled(), lapsing) == "owed"
    assert outcome(*stands("x = 1"), event, lapsing) == "optional"
    assert outcome(*stands("x = 1"), lapsing, event) == "optional"
    assert outcome(*stands("x = 1"), lapsing, event, expired) == "optional"
    assert outcome(*stands("x = 1"), lapsing, expired, event) == "forbidden"
    assert outcome(*stands("x = 1"), lapsing, Acked(ANN, Status.EXPIRED, "r1"), event) == "forbidden"


def test_a_renewed_lease_was_never_over() -> None:
    """A renewal acknowledged later makes everything owed again; one before, or after the expiry, does not."""
    lapsing, renewed = Lapsing(ANN), Acked(ANN, Status.RENEWED, "renewal")
    event = Published("e", ONE)
    assert outcome(*stands("x = 1"), lapsing, event, renewed) == "owed"
    assert outcome(*stands("x = 1"), lapsing, renewed, event) == "owed"
    assert outcome(*stands("x = 1"), renewed, lapsing, event) == "optional"
    assert outcome(*stands("x = 1"), lapsing, renewed, event, Lapsing(ANN)) == "optional"
    assert outcome(*stands("x = 1"), lapsing, Acked(ANN, Status.EXPIRED), renewed, event) == "forbidden"
    assert check([*stands("x = 1"), renewed]).strays == 0


def test_an_end_that_nobody_asked_for_is_as_an_expiry() -> None:
    """A broker that leaves ends what it is the home of, and names no request."""
    assert outcome(*stands("x = 1"), Lapsing(ANN), ended(None), Published("e", ONE)) == "forbidden"
    assert outcome(*stands("x = 1"), ended(None), Published("e", ONE)) == "owed"


def test_a_lease_that_expires_too_early_is_no_excuse() -> None:
    """An expiry of which nobody said that it may be leaves everything owed."""
    assert outcome(*stands("x = 1"), Acked(ANN, Status.EXPIRED), Published("e", ONE)) == "owed"


def test_an_expiry_comes_before_what_is_answered_after_it() -> None:
    """Though that was written before the lease lapsed: it came late, and it stands."""
    late = [*stands("x = 1"), asks("x = 1", "r2"), Lapsing(ANN), Acked(ANN, Status.EXPIRED)]
    assert outcome(*late, Published("e", ONE)) == "optional"
    assert outcome(*late, accepted("r2"), in_force("r2"), Published("e", ONE)) == "owed"


def test_an_expiry_needs_a_lapse_of_what_stood() -> None:
    """That the lease of an earlier version lapsed does not excuse the end of a later one."""
    again = [*stands("x = 1"), Lapsing(ANN), Lapsing(ANN), *stands("x = 1", "r2")]
    assert outcome(*again, Acked(ANN, Status.EXPIRED), Published("e", ONE)) == "owed"
    assert outcome(*again, Lapsing(ANN), Acked(ANN, Status.EXPIRED), Published("e", ONE)) == "forbidden"


def test_an_expiry_is_of_the_first_lapse_that_explains_it() -> None:
    """A second one is left for a second expiry: that of what was subscribed to in between."""
    twice = [*stands("x = 1"), Lapsing(ANN), asks("x = 1", "r2"), Lapsing(ANN), Acked(ANN, Status.EXPIRED)]
    again = [*twice, accepted("r2"), in_force("r2")]
    assert outcome(*again, Published("e", ONE)) == "optional"
    assert outcome(*again, Acked(ANN, Status.EXPIRED), Published("e", ONE)) == "forbidden"


def test_what_is_written_after_a_lapse_takes_its_place() -> None:
    """A replacement in force ends the doubt, whether or not the lease had been over."""
    again = [*stands("x = 1"), Lapsing(ANN), *stands("x = 1", "r2")]
    assert outcome(*again, Published("e", ONE)) == "owed"
    assert outcome(*again[:5], Published("e", ONE), *again[5:]) == "optional"


# Undecided


def test_an_undecided_event_must_become_a_dead_letter() -> None:
    """Nothing at all is lost, a dead letter is right, a delivery misrouted."""
    history = [*stands(BOTH), Published("e", MANY)]
    assert only(check(history)).kind is Kind.LOST
    assert check([*history, Undecided("ann", "e")]).clean
    assert check([*history, Undecided("ann", "e")]).owed == 1
    assert only(check([*history, Read("ann", "e")])).kind is Kind.MISROUTED


def test_a_dead_letter_for_what_can_be_decided_is_misrouted() -> None:
    """It is if no filter that could stand is undecided on the event, and if nobody published it."""
    decided = [*stands("x = 2"), Published("e", MANY), Undecided("ann", "e")]
    assert only(check(decided)).kind is Kind.MISROUTED
    over = [*stands(BOTH), asks(None, "r2"), ended("r2"), Published("e", MANY), Undecided("ann", "e")]
    assert only(check(over)).kind is Kind.MISROUTED
    assert only(check([*stands(BOTH), Undecided("ann", "e")])).kind is Kind.MISROUTED


def test_a_dead_letter_is_optional_where_a_delivery_would_be() -> None:
    """Before the in-force ack, an undecided event may be told of or not."""
    history = [asks(BOTH, "r1"), Published("e", MANY), accepted("r1"), in_force("r1")]
    assert check(history).clean
    assert check([*history, Undecided("ann", "e")]).clean
    assert check([*history, Undecided("ann", "e")]).optional == 1


def test_a_dead_letter_is_no_delivery() -> None:
    """If another filter of the subscriber surely matches, the event must be read, and then all is well."""
    history = [*stands(BOTH), *stands("x = 1", "r2", ANN_TOO), Published("e", MANY)]
    finding = only(check([*history, Undecided("ann", "e")]))
    assert finding.kind is Kind.LOST
    assert "dead letter" in finding.sentence
    assert check([*history, Read("ann", "e")]).clean


# What was read


def test_what_nobody_published_is_misrouted() -> None:
    """Even if the subscriber wants everything."""
    finding = only(check([*stands("TRUE"), Read("ann", "e")]))
    assert finding.kind is Kind.MISROUTED
    assert finding.positions == (3,)


def test_a_stranger_may_read_nothing() -> None:
    """Whoever never subscribed is owed nothing."""
    assert only(check([Published("e", ONE), Read("ann", "e")])).kind is Kind.MISROUTED


@pytest.mark.parametrize(
    ("repeats", "unmarked", "marked"),
    [("marked", 1, 0), ("allowed", 0, 0), ("none", 1, 1)],
)
def test_which_repeats_are_excused(repeats: Repeats, unmarked: int, marked: int) -> None:
    """Those marked by whoever carried them, all of them, or none."""
    once = [*stands("x = 1"), Published("e", ONE), Read("ann", "e")]
    assert check(once, repeats).clean
    assert len(check([*once, Read("ann", "e")], repeats).duplicated) == unmarked
    assert len(check([*once, Read("ann", "e", repeat=True)], repeats).duplicated) == marked
    first_marked = [*once[:-1], Read("ann", "e", repeat=True), Read("ann", "e")]
    assert len(check(first_marked, repeats).duplicated) == marked


def test_one_event_that_two_read_is_no_repeat() -> None:
    """Each subscriber has its own."""
    both = [*stands("x = 1"), *stands("x = 1", "r2", BOB), Published("e", ONE)]
    assert check([*both, Read("ann", "e"), Read("bob", "e")], "none").clean


# Order


def two(stream: object, other: object, *between: Entry) -> list[Entry]:
    return [*stands("x = 1"), Published("e", ONE, stream), *between, Published("f", ONE, other)]


def test_events_of_one_stream_are_read_in_order() -> None:
    """The other way round only if they are of different streams, or of none."""
    swapped = Read("ann", "f"), Read("ann", "e")
    finding = only(check([*two("k", "k"), *swapped]))
    assert finding.kind is Kind.OUT_OF_ORDER
    assert finding.positions == (3, 4, 5, 6)
    assert check([*two("k", "k"), *reversed(swapped)]).clean
    assert check([*two("k", "k"), *reversed(swapped)]).ordered == 1
    for streams in (("k", "l"), (None, None)):
        assert check([*two(*streams), *swapped]).clean
        assert check([*two(*streams), *swapped]).ordered == 0


def test_order_is_that_of_first_reads() -> None:
    """A batch that is run again does not put its events out of order."""
    again = [Read("ann", event, repeat) for repeat in (False, True) for event in "ef"]
    assert check([*two("k", "k"), *again]).clean


def test_each_event_that_was_overtaken_is_found() -> None:
    """Also if it is in order with what was read just before it."""
    history = [*stands("x = 1"), *(Published(event, ONE, "k") for event in "abcd")]
    verdict = check([*history, *(Read("ann", event) for event in "cabd")])
    assert [finding.event for finding in verdict.out_of_order] == ["a", "b"]


def test_what_should_not_be_there_is_not_out_of_order() -> None:
    """One mistake is one finding, and the misrouted event does not put others out of order either."""
    history = [*stands("x = 1"), Published("e", ONE, "k"), Published("f", TWO, "k"), Read("ann", "f")]
    assert only(check([*history, Read("ann", "e")])).kind is Kind.MISROUTED


def test_what_kafka_did_not_acknowledge_has_no_order() -> None:
    """A client may send it again, after a later one."""
    history = [*stands("x = 1"), Published("e", ONE, "k", acknowledged=False), Published("f", ONE, "k")]
    assert check([*history, Read("ann", "f"), Read("ann", "e")]).clean


def test_no_order_is_promised_across_an_unsteady_period() -> None:
    """Only of two events that were published and first read in one and the same steady period."""
    swapped = Read("ann", "f"), Read("ann", "e")
    assert check([*two("k", "k", Unsteady(), Steady()), *swapped]).clean
    assert check([*two("k", "k"), Unsteady(), *swapped]).clean
    assert check([*two("k", "k"), swapped[0], Unsteady(), Steady(), swapped[1]]).clean
    assert check([*two("k", "k"), Unsteady(), Steady(), *swapped]).clean
    assert check([Unsteady(), *two("k", "k"), Steady(), *swapped]).clean
    assert kinds(check([Unsteady(), Steady(), *two("k", "k"), *swapped])) == {Kind.OUT_OF_ORDER: 1}
    assert kinds(check([*two("k", "k", Steady()), *swapped])) == {Kind.OUT_OF_ORDER: 1}


# Stuck


def test_a_request_without_an_answer_is_stuck() -> None:
    """Once all is settled after it was last written, each request has an ack of its own, of any kind."""
    assert check([asks("x = 1", "r1")]).clean
    assert check([Settled(), asks("x = 1", "r1")]).clean
    assert check([asks("x = 1", "r1"), Settled(), asks("x = 1", "r1")]).clean
    finding = only(check([asks("x = 1", "r1"), Settled()]))
    assert (finding.kind, finding.identity, finding.positions) == (Kind.STUCK, ANN, (0, 1))
    assert kinds(check([*stands("x = 1"), asks(None, "r2"), Settled()])) == {Kind.STUCK: 1}
    assert check([*stands("x = 1"), asks(None, "r2"), ended("r2"), Settled()]).clean
    assert check([asks("x = = 1", "r1"), refused("r1"), Settled()]).clean
    superseded = [asks("x = 1", "r1"), *stands("x = 2", "r2"), Settled()]
    assert only(check(superseded)).positions == (0, 4)


def test_that_the_lease_was_over_is_an_answer_to_an_unsubscription() -> None:
    """It asks for what is so already, and need not be told that it ended a second time."""
    expired = [Lapsing(ANN), Acked(ANN, Status.EXPIRED)]
    history = [*stands("x = 1"), *expired, asks(None, "r2"), Acked(ANN, Status.EXPIRED, "r2"), Settled()]
    assert check(history).clean
    assert check(history).strays == 0


def test_what_was_accepted_comes_into_force() -> None:
    """Once all is settled, unless something took its place or may have ended it."""
    waits = [asks("x = 1", "r1"), accepted("r1")]
    assert check(waits).clean
    finding = only(check([*waits, Settled()]))
    assert (finding.kind, finding.positions) == (Kind.STUCK, (0, 1, 2))
    assert check([*waits, in_force("r1"), Settled()]).clean
    assert check([*waits, *stands("x = 2", "r2"), Settled()]).clean
    assert check([*waits, asks(None, "r2"), ended("r2"), Settled()]).clean
    assert check([*waits, Lapsing(ANN), Acked(ANN, Status.EXPIRED), Settled()]).clean
    assert kinds(check([*waits, asks("x = 2", "r2"), refused("r2"), Settled()])) == {Kind.STUCK: 1}
    renewed = [*waits, Lapsing(ANN), Acked(ANN, Status.RENEWED), Settled()]
    assert kinds(check(renewed)) == {Kind.STUCK: 1}


# The verdict


def test_a_finding_proves_itself() -> None:
    """It names the entries, and says in a sentence what they show."""
    finding = only(check([*stands("x = 1"), asks("x >= 1", "r2"), Published("e", ONE)]))
    assert finding.positions == (0, 2, 3, 4)
    assert finding.sentence == (
        "ann was owed event 'e' (#4), which was never read by it: dublin/ann/a asks for it by 'x = 1' (#0), "
        "in force since #2, and so does 'x >= 1' (#3)"
    )
    over = [*stands("x = 1"), asks(None, "r2"), ended("r2"), Published("e", ONE), Read("ann", "e")]
    assert only(check(over)).positions == (0, 3, 4, 5, 6)
    assert only(check(over)).sentence == (
        "event 'e' (#5) was read by ann (#6): dublin/ann/a had asked for it by 'x = 1' (#0), but what came "
        "after, its end (#3), was acknowledged before it was published (#4)"
    )


def test_a_verdict_is_described_shortly() -> None:
    """Counts of what is wrong and of what was checked, and the first few findings of each kind."""
    history = [*stands("x = 1"), *(Published(number, ONE) for number in range(5)), Read("bob", 0)]
    first, *rest = check(history).describe().splitlines()
    assert first.startswith("5 lost, 1 misrouted; checked 1 requests, 5 events, 1 reads: 5 owed, 0 optional")
    assert [line.partition(":")[0] for line in rest] == ["lost"] * 4 + ["misrouted"]
    assert rest[3] == "lost: and 2 more"


def test_an_event_is_published_once() -> None:
    """Two events of one name could not be told apart: the observer is wrong, not the router."""
    with pytest.raises(ValueError, match="twice"):
        check([Published("e", ONE), Published("e", TWO)])


@often
@pytest.mark.parametrize("spelling", sorted(TEXTS))
@given(data=st.data())
def test_matching_is_the_oracles(spelling: str, data: st.DataObject) -> None:
    """Whatever was remembered of other events, one is lost exactly if the naive evaluator wants it."""
    text, attributes = data.draw(pairs(spelling))
    events = [attributes, *(data.draw(pairs(spelling))[1] for _ in range(2))]
    history = [
        Wrote(ANN, spelling, text, "r1"),
        in_force("r1"),
        *(Published(number, each) for number, each in enumerate(events)),
    ]
    expected = [evaluate(expression_of(spelling, text), each) is not False for each in events]
    lost = {finding.event for finding in check(history).lost}
    assert [number in lost for number in range(len(events))] == expected


def test_values_that_look_alike_are_told_apart() -> None:
    """What was remembered of the number 1 says nothing of the text, of true, or of an array."""
    values: list[Any] = [1, "1", True, [1], 1.0, None, "None"]
    history = [*stands("x = 1"), *(Published(place, {"x": value}) for place, value in enumerate(values))]
    history.append(Published("missing", {}))
    assert [finding.event for finding in check(history).lost] == [0, 3, 4]


def test_what_is_remembered_of_a_filter_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many different events it meets, and forgetting changes no verdict."""
    monkeypatch.setattr(versions, "VERDICTS_KEPT", 3)
    history = [*stands("bounded < 5"), *(Published(number, {"bounded": number}) for number in range(10))]
    assert len(check(history).lost) == 5
    assert len(versions.filter_of("sql", "bounded < 5")._verdicts) <= 3


# A small world in which everything is right


FILTERS = ("x = 1", "x >= 1", "y = 1", BOTH, "x = 2 OR y = 2", "x IS NULL", "x = = 1")
EVENTS: tuple[dict[str, Any], ...] = (ONE, TWO, {"x": 1, "y": 1}, {"y": 1}, {"y": 2}, {"z": 0}, MANY)
CAT, DAN = Identity("dublin", "cat", "a"), Identity("dublin", "dan", "a")
IDENTITIES = (ANN, ANN_TOO, BOB, Identity("dublin", "bob", "b"))
STEPS = (
    "ask ask retry handle handle hear hear lapse expire renew publish publish publish enter deliver deliver"
)
KINDS = (*STEPS.split(), *("see " * 6).split(), "settle", "unsteady", "steady")

Step = tuple[str, int]


@dataclass
class Flight:
    """An event on its way."""

    published: Published
    entered: bool = False


@dataclass
class World:
    """One home and one broker where all events enter, each with a table of its own.

    Requests may be lost until they are written again; those that arrive are handled in order. The home tells
    the other broker of each change, in order, and acks in-force when that broker has it and nothing newer
    stands. An event is let in if the entry's table has a filter that wants it, and delivered later to whom
    the home's table then says. Acks and deliveries are seen some time after they were written, in order.
    """

    history: list[Entry] = field(default_factory=list)
    entry: dict[Identity, str] = field(default_factory=dict)
    home: dict[Identity, str] = field(default_factory=dict)
    numbers: dict[Identity, str | None] = field(default_factory=dict)
    """The request by which the home has what it has; None by expiry."""
    known: dict[Identity, set[str]] = field(default_factory=dict)
    heard: set[tuple[Identity, str | None]] = field(default_factory=set)
    """The changes that the entry has."""
    written: dict[str, Wrote] = field(default_factory=dict)
    control: deque[Wrote] = field(default_factory=deque)
    link: deque[tuple[Identity, str | None, str | None]] = field(default_factory=deque)
    acks: deque[Acked] = field(default_factory=deque)
    lapsing: set[Identity] = field(default_factory=set)
    flights: list[Flight] = field(default_factory=list)
    outs: dict[str, deque[Read | Undecided]] = field(default_factory=dict)
    steady: bool = True
    events: int = 0

    def step(self, kind: str, choice: int) -> None:
        standing = sorted(self.home)
        identity = standing[choice % len(standing)] if standing else None
        match kind:
            case "ask":
                texts = (*FILTERS, None, None)
                who, text = IDENTITIES[choice % len(IDENTITIES)], texts[choice // 7 % len(texts)]
                self._write(Wrote(who, "sql", text, f"r{len(self.written)}"), lost=choice % 5 == 0)
            case "retry" if self.written:
                self._write(self.written[f"r{choice % len(self.written)}"], lost=False)
            case "handle" if self.control:
                self._handle(self.control.popleft())
            case "hear" if self.link:
                self._hear(*self.link.popleft())
            case "lapse" if identity and not any(ack.status is Status.RENEWED for ack in self.acks):
                self.history.append(Lapsing(identity))
                self.lapsing.add(identity)
            case "expire" if identity in self.lapsing and identity:
                self._change(identity, None, None)
                self.acks.append(Acked(identity, Status.EXPIRED))
            case "renew" if identity:
                self.lapsing.discard(identity)
                self.acks.append(Acked(identity, Status.RENEWED, "renewal"))
            case "publish":
                self._publish(EVENTS[choice % len(EVENTS)], choice // 11 % 2)
            case "enter" if self.flights:
                self._enter(self.flights[choice % len(self.flights)])
            case "deliver" if self.flights:
                self._deliver(self.flights[choice % len(self.flights)], again=choice % 3 == 0)
            case "see":
                waiting = [queue for queue in (self.acks, *self.outs.values()) if queue]
                if waiting:
                    self.history.append(waiting[choice % len(waiting)].popleft())
            case "settle":
                self._settle()
            case "unsteady" if self.steady:
                self.history.append(Unsteady())
                self.steady = False
            case "steady" if not self.steady:
                self.history.append(Steady())
                self.steady = True

    def _write(self, wrote: Wrote, lost: bool) -> None:
        self.history.append(wrote)
        self.written[wrote.request] = wrote
        if not lost:
            self.control.append(wrote)

    def _handle(self, wrote: Wrote) -> None:
        identity, request = wrote.identity, wrote.request
        known = self.known.setdefault(identity, set())
        over = bool(known) and identity not in self.home
        if request in known or (wrote.filter is None and over):
            # Remembered though it changes nothing: a retry must not end what was subscribed to since.
            known.add(request)
            for status in self._stands(identity):
                self.acks.append(Acked(identity, status, request))
        elif (wrote.filter is None and not known) or (
            wrote.filter and isinstance(compile_filter("sql", wrote.filter), Rejection)
        ):
            self.acks.append(Acked(identity, Status.REFUSED, request))
        else:
            known.add(request)
            self._change(identity, wrote.filter, request)
            self.acks.append(Acked(identity, self._stands(identity)[0], request))

    def _stands(self, identity: Identity) -> list[Status]:
        number = self.numbers[identity]
        if identity not in self.home:
            return [Status.EXPIRED if number is None else Status.ENDED]
        return [Status.ACCEPTED] + [Status.IN_FORCE] * ((identity, number) in self.heard)

    def _change(self, identity: Identity, text: str | None, request: str | None) -> None:
        self.lapsing.discard(identity)
        self.numbers[identity] = request
        set_or_drop(self.home, identity, text)
        self.link.append((identity, text, request))

    def _hear(self, identity: Identity, text: str | None, request: str | None) -> None:
        set_or_drop(self.entry, identity, text)
        self.heard.add((identity, request))
        if text is not None and self.numbers[identity] == request:
            self.acks.append(Acked(identity, Status.IN_FORCE, request))

    def _publish(self, attributes: dict[str, Any], stream: int) -> None:
        published = Published(self.events, attributes, stream)
        self.events += 1
        self.history.append(published)
        self.flights.append(Flight(published))

    def _enter(self, flight: Flight) -> None:
        if not flight.entered and not wanted(self.entry, flight.published):
            self.flights.remove(flight)
        flight.entered = True

    def _deliver(self, flight: Flight, again: bool) -> None:
        stream = flight.published.stream
        if self.steady:
            flight = next(each for each in self.flights if each.published.stream == stream)
        self._enter(flight)
        if flight not in self.flights:
            return
        self.flights.remove(flight)
        for subscriber, verdict in wanted(self.home, flight.published).items():
            out = self.outs.setdefault(subscriber, deque())
            if verdict is True:
                out.append(Read(subscriber, flight.published.event))
                out.extend([Read(subscriber, flight.published.event, repeat=True)] * again)
            else:
                out.append(Undecided(subscriber, flight.published.event))

    def _settle(self) -> None:
        answered = {entry.request for entry in self.history if isinstance(entry, Acked)}
        for request, wrote in self.written.items():
            if request not in answered:
                self._write(wrote, lost=False)
        while self.control or self.link or self.flights or self.acks or any(self.outs.values()):
            for kind in ("handle", "hear", "deliver", "see"):
                self.step(kind, 1)
        self.history.append(Settled())

    def quiet(self) -> int:
        """Bring everything to rest, then publish one event of each sort; where that begins."""
        self.step("steady", 0)
        # So that there is something to break, whatever the others have done.
        for who, text in ((CAT, BOTH), (DAN, "x >= 1")):
            self._write(Wrote(who, "sql", text, f"r{len(self.written)}"), lost=False)
        self._settle()
        for place in range(len(self.home)):
            self.step("renew", place)
        self._settle()
        begin = len(self.history)
        for attributes in EVENTS:
            self._publish(attributes, 0)
        self._settle()
        return begin


def set_or_drop(table: dict[Identity, str], identity: Identity, text: str | None) -> None:
    if text is None:
        table.pop(identity, None)
    else:
        table[identity] = text


def wanted(table: dict[Identity, str], published: Published) -> dict[str, bool | Rejection]:
    """Who wants the event, or has a filter that cannot tell and none that does."""
    found: dict[str, bool | Rejection] = {}
    for identity, text in table.items():
        verdict = evaluate(expression_of("sql", text), published.attributes)
        if verdict is True or (verdict is not False and identity.subscriber not in found):
            found[identity.subscriber] = verdict
    return found


@dataclass
class Ran:
    """A world that has run, and where its quiet end begins."""

    world: World
    begin: int

    @property
    def history(self) -> list[Entry]:
        return self.world.history

    def quiet_reads(self) -> list[Read]:
        return [entry for entry in self.history[self.begin :] if isinstance(entry, Read) and not entry.repeat]


def run(steps: Iterable[Step]) -> Ran:
    world = World()
    for step in steps:
        world.step(*step)
    return Ran(world, world.quiet())


worlds = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 999)), min_size=5, max_size=80).map(run)


def pick(data: st.DataObject, things: list[Any]) -> Any:
    assume(things)
    return things[data.draw(st.integers(0, len(things) - 1))]


def without(history: list[Entry], unwanted: Callable[[Any], bool]) -> list[Entry]:
    return [entry for entry in history if not unwanted(entry)]


@often
@given(worlds)
def test_a_world_in_which_everything_is_right_is_clean(ran: Ran) -> None:
    """No delay, retry, lost request, lapse or unsteady time is taken for a mistake."""
    verdict = check(ran.history)
    assert verdict.clean, verdict.describe()
    assert check(ran.history, "allowed").clean
    repeated = any(isinstance(entry, Read) and entry.repeat for entry in ran.history)
    assert set(kinds(check(ran.history, "none"))) == ({Kind.DUPLICATED} if repeated else set())
    assert verdict.strays == 0
    assert verdict.owed >= len(ran.quiet_reads())


@often
@given(worlds, st.data())
def test_a_history_that_is_cut_off_only_lacks_what_was_on_its_way(ran: Ran, data: st.DataObject) -> None:
    """Whatever acks, requests and reads have not been seen yet, nothing but reads can be missing."""
    end = data.draw(st.integers(0, len(ran.history)))
    assert set(kinds(check(ran.history[:end]))) <= {Kind.LOST}


@often
@given(worlds, st.data())
def test_a_read_that_is_missing_is_found(ran: Ran, data: st.DataObject) -> None:
    """Exactly that one is lost, if it was owed, as all are of what was published when all was at rest."""
    reads = [entry for entry in ran.history if isinstance(entry, Read) and not entry.repeat]
    missing = pick(data, ran.quiet_reads() if data.draw(st.booleans()) else reads)
    history = without(
        ran.history,
        lambda entry: (
            isinstance(entry, Read) and (entry.subscriber, entry.event) == (missing.subscriber, missing.event)
        ),
    )
    verdict = check(history)
    if missing in ran.quiet_reads() or not verdict.clean:
        finding = only(verdict)
        assert (finding.kind, finding.subscriber, finding.event) == (
            Kind.LOST,
            missing.subscriber,
            missing.event,
        )


@often
@given(worlds, st.data())
def test_a_dead_letter_that_is_missing_is_found(ran: Ran, data: st.DataObject) -> None:
    """What could not be decided and is told to nobody is lost."""
    quiet = ran.history[ran.begin :]
    letter = pick(data, [entry for entry in quiet if isinstance(entry, Undecided)])
    finding = only(check(without(ran.history, lambda entry: entry is letter)))
    assert (finding.kind, finding.event) == (Kind.LOST, letter.event)


@often
@given(worlds, st.data())
def test_a_read_of_what_nobody_wanted_is_found(ran: Ran, data: st.DataObject) -> None:
    """Exactly that one is misrouted."""
    unwanted = [
        Read(subscriber, entry.event)
        for entry in ran.history[ran.begin :]
        if isinstance(entry, Published)
        for subscriber in ("ann", "bob", "eve")
        if wanted(ran.world.home, entry).get(subscriber) is not True
    ]
    read = pick(data, [*unwanted, Read("ann", "invented")])
    finding = only(check([*ran.history, read]))
    assert (finding.kind, finding.subscriber, finding.event) == (Kind.MISROUTED, read.subscriber, read.event)


@often
@given(worlds, st.data())
def test_a_read_that_comes_twice_is_found(ran: Ran, data: st.DataObject) -> None:
    """Exactly that one is duplicated, unless repeats are allowed."""
    read = pick(data, [entry for entry in ran.history if isinstance(entry, Read)])
    history = [*ran.history, Read(read.subscriber, read.event)]
    finding = only(check(history))
    assert (finding.kind, finding.subscriber, finding.event) == (Kind.DUPLICATED, read.subscriber, read.event)
    assert check(history, "allowed").clean


@often
@given(worlds, st.data())
def test_two_reads_that_are_swapped_are_found(ran: Ran, data: st.DataObject) -> None:
    """Exactly the one that was overtaken is out of order, however far apart they are."""
    reads = ran.quiet_reads()
    one = pick(data, reads)
    other = pick(data, [each for each in reads if each.subscriber == one.subscriber and each is not one])
    exchange = {id(one): other, id(other): one}
    history = [
        exchange.get(id(entry), entry)
        for entry in without(ran.history, lambda entry: isinstance(entry, Read) and entry.repeat)
    ]
    verdict = check(history)
    assert set(kinds(verdict)) == {Kind.OUT_OF_ORDER}
    assert min(one.event, other.event) in {finding.event for finding in verdict.out_of_order}


@often
@given(worlds, st.data())
def test_a_missing_in_force_ack_is_found(ran: Ran, data: st.DataObject) -> None:
    """Exactly that request is stuck, if it still stands."""
    identity = pick(data, sorted(ran.world.home))
    request = ran.world.numbers[identity]
    history = without(ran.history, lambda entry: entry == in_force(request, identity))
    finding = only(check(history))
    assert (finding.kind, finding.identity) == (Kind.STUCK, identity)
    assert f"'{request}'" in finding.sentence


@often
@given(worlds, st.data())
def test_a_request_whose_acks_are_missing_is_found(ran: Ran, data: st.DataObject) -> None:
    """Exactly that request is stuck, whatever became of it."""
    request = pick(data, list(ran.world.written))
    history = without(ran.history, lambda entry: isinstance(entry, Acked) and entry.request == request)
    finding = only(check(history))
    assert finding.kind is Kind.STUCK
    assert f"'{request}'" in finding.sentence


def test_worlds_are_full_of_life() -> None:
    """Within a few of them there is much that is owed, optional, undecided, unsteady, refused and expired."""
    seen: Counter[str] = Counter()
    for seed in range(20):
        draw = random.Random(seed)
        ran = run([(draw.choice(KINDS), draw.randrange(1_000)) for _ in range(80)])
        verdict = check(ran.history)
        assert verdict.clean, verdict.describe()
        seen.update(owed=verdict.owed, optional=verdict.optional, ordered=verdict.ordered)
        for entry in ran.history:
            seen[type(entry).__name__] += 1
            if isinstance(entry, Acked):
                seen[entry.status] += 1
    rare = {name: count for name, count in seen.items() if count < 10}
    assert not rare, rare
    unjudged = {
        Status.REPLACED,
        Status.SUSPENDED,
        Status.REMOVED,
        Status.EXPLAINED,
        Status.REFRESHED,
        Status.TASK,
        Status.FIXED_SET,
    }
    assert {*Status} - unjudged <= seen.keys()


# Repeats and order


def test_a_late_repeat_of_what_was_optional_is_not_out_of_order() -> None:
    """Its first copy came in time, and was for nobody then; a record that is no repeat has no such excuse."""

    def read(repeat: bool) -> list[Entry]:
        return [
            *stands("x = 1"),
            Published("first", {"y": 1}, "stream"),
            Published("second", ONE, "stream"),
            Wrote(ANN, "sql", "x = 1 OR y = 1", "r2"),
            Read("ann", "second"),
            Read("ann", "first", repeat=repeat),
        ]

    assert not check(read(repeat=True)).out_of_order
    assert check(read(repeat=False)).out_of_order
    assert not check(read(repeat=False), "allowed").out_of_order
    assert check(read(repeat=True), "none").out_of_order
