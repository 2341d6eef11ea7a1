"""A home answers at once, waits for everybody's report under its own topology, and alone ends leases."""

import pytest
from overlay_hands import NOW_MS, Hands, Plain, line, refusal, renew, ring, statuses, subscribe, unsubscribe

from branchline.routing.codes import Code
from branchline.routing.control import Ended, Identity, Number, Status, Subscribed
from branchline.routing.limits import LEASE_MIN_MS
from branchline.routing.overlay.dividing import Arrival
from branchline.routing.overlay.letters import Expire, Letter, Report
from branchline.routing.overlay.topology import Topology
from branchline.routing.shard import EventBatch, Outputs

ACCEPTED, IN_FORCE, REPLACED = Status.ACCEPTED, Status.IN_FORCE, Status.REPLACED
ENDED, EXPIRED, RENEWED = Status.ENDED, Status.EXPIRED, Status.RENEWED
ANN = Identity("a", "ann", "one")


def _entering(name: str) -> EventBatch:
    return EventBatch([name], [Arrival(Plain({}))])


def report(topology: Topology, reporter: str, number: int = 1) -> Letter:
    """A broker has ann's subscription."""
    has = ((ANN, Number(NOW_MS, number)),)
    return Letter("a", reporter, Report("a", reporter, topology.order, has))


def in_force(*all_outputs: Outputs) -> bool:
    return any(ack.status is IN_FORCE for outputs in all_outputs for ack in outputs.acks)


# In force


def test_a_request_is_accepted_at_once_and_in_force_when_everybody_has_reported() -> None:
    """The last report, whoever's it is, brings the in-force ack, under the number that was accepted."""
    hands = Hands(line("abc"))
    outputs = hands.call("a", subscribe("x = 1"))
    assert statuses(outputs) == [ACCEPTED]
    assert hands.broker("a").home.pending.waits_for(ANN) == ["b", "c"]
    assert [letter.to for letter in hands.mail] == ["b"]
    hands.deliver(to="b")
    assert {letter.to for letter in hands.mail} == {"a", "c"}
    assert not in_force(*hands.deliver(to="a"))
    assert hands.broker("a").home.pending.waits_for(ANN) == ["c"]
    assert "a/ann/one waits for c" in hands.broker("a").describe()
    hands.deliver(to="c")
    hands.deliver(to="b")
    (last,) = hands.deliver(to="a")
    (ack,) = last.acks
    assert (ack.status, ack.number, ack.request, ack.index) == (IN_FORCE, Number(NOW_MS, 1), "r1", None)
    assert not hands.mail


@pytest.mark.parametrize("order", ["bc", "cb"])
def test_the_order_of_the_reports_does_not_matter(order: str) -> None:
    """In force is told with the last of them, and once."""
    hands = Hands(line("abc"))
    hands.call("a", subscribe())
    first, last = (report(hands.topology, name) for name in order)
    assert not in_force(hands.call("a", first), hands.call("a", first))
    assert in_force(hands.call("a", last))
    assert not in_force(hands.call("a", first), hands.call("a", last))


def test_a_broker_alone_waits_for_nobody() -> None:
    """Accepted and in force are told together."""
    assert statuses(Hands(line("a")).call("a", subscribe())) == [ACCEPTED, IN_FORCE]


def test_a_report_of_an_older_number_does_not_count() -> None:
    """Somebody has what was replaced: the replacement is not in force by that."""
    hands = Hands(line("ab"))
    hands.call("a", subscribe("x = 1"))
    replaced = hands.call("a", subscribe("x = 2", "r2"))
    assert statuses(replaced) == [REPLACED, ACCEPTED]
    assert [ack.number for ack in replaced.acks] == [Number(NOW_MS, 1), Number(NOW_MS, 2)]
    assert not in_force(hands.call("a", report(hands.topology, "b", 1)))
    assert in_force(hands.call("a", report(hands.topology, "b", 2)))


def test_what_was_replaced_is_never_in_force() -> None:
    """Nobody waits for it any more; the one in-force ack names the newer request."""
    hands = Hands(ring("abcd"))
    hands.call("a", subscribe("x = 1"))
    hands.call("a", subscribe("x = 2", "r2"))
    hands.settle()
    assert [(ack.number, ack.request) for ack in hands.acks if ack.status is IN_FORCE] == [
        (Number(NOW_MS, 2), "r2")
    ]


def test_whoever_asks_while_it_is_pending_is_told_too() -> None:
    """All requests that ask for what stands are answered when it is in force."""
    hands = Hands(line("ab"))
    hands.call("a", subscribe("x = 1"))
    assert statuses(hands.call("a", subscribe("x = 1", "r2"), subscribe("x = 1", None))) == [ACCEPTED] * 2
    hands.settle()
    assert [ack.request for ack in hands.acks if ack.status is IN_FORCE] == ["r1", "r2", None]


def test_a_report_under_an_older_topology_does_not_count() -> None:
    """Who reported under the old one may not know the newcomer: under the new one it must report again."""
    hands = Hands(line("ab"))
    old = hands.topology
    hands.call("a", subscribe())
    hands.start("c")
    hands.take(old.joined("c", {"b": 1}), at="a")
    assert not in_force(hands.call("a", report(old, "b")), hands.call("a", report(hands.topology, "c")))
    assert hands.broker("a").home.pending.waits_for(ANN) == ["b"]
    assert in_force(hands.call("a", report(hands.topology, "b")))


def test_a_report_under_a_newer_topology_counts_only_when_the_home_has_that_one() -> None:
    """There may be newcomers of whom the home does not know; once it does, it waits for them."""
    hands = Hands(line("ab"))
    hands.start("c")
    new = hands.topology.joined("c", {"b": 1})
    hands.call("a", subscribe())
    assert not in_force(hands.call("a", report(new, "b")))
    assert hands.broker("a").home.pending.waits_for(ANN) == ["b"]
    assert not in_force(hands.take(new, at="a"))
    assert hands.broker("a").home.pending.waits_for(ANN) == ["c"]
    assert in_force(hands.call("a", report(new, "c")))


def test_a_topology_that_completes_the_reports_brings_it_into_force() -> None:
    """All had reported under it before the home took it."""
    hands = Hands(line("ab"))
    new = hands.topology.linked("a", "b", 2)
    hands.call("a", subscribe())
    hands.call("a", report(new, "b"))
    outputs = hands.take(new, at="a")
    assert [ack.status for ack in outputs.acks if ack.subscriber] == [IN_FORCE]


def test_a_report_that_was_overtaken_takes_nothing_back() -> None:
    """A later report beats an earlier one that arrives late."""
    hands = Hands(line("abc"))
    old = hands.topology
    hands.call("a", subscribe())
    new = old.linked("a", "c")
    hands.take(new, at="a")
    hands.call("a", report(new, "b"))
    hands.call("a", report(old, "b"))
    assert in_force(hands.call("a", report(new, "c")))


def test_on_a_topology_change_what_is_pending_is_told_again() -> None:
    """Under a higher revision of the same number, so that everybody passes it on and reports it anew."""
    hands = Hands(line("abc"))
    hands.call("a", subscribe("x = 1"))
    hands.settle()
    hands.call("a", subscribe("x = 2", "r2"))
    hands.mail.clear()
    outputs = hands.take(hands.topology.linked("b", "c", 3), at="a")
    again = [letter.body for letter in outputs.letters if isinstance(letter.body, Subscribed)]
    assert [(each.number, each.revision, each.filter) for each in again] == [(Number(NOW_MS, 2), 1, "x = 2")]
    hands.settle()
    assert hands.acks[-1].status is IN_FORCE
    assert hands.acks[-1].number == Number(NOW_MS, 2)


def test_what_is_in_force_is_not_told_again() -> None:
    """A topology change is a letter to each neighbour and nothing else."""
    hands = Hands(line("abc"))
    hands.call("a", subscribe())
    hands.settle()
    outputs = hands.take(hands.topology.linked("b", "c", 3), at="a")
    assert [letter.body for letter in outputs.letters] == [hands.topology]


def test_an_end_waits_for_nobody() -> None:
    """It is answered at once; a report that comes later brings nothing into force."""
    hands = Hands(line("ab"))
    hands.call("a", subscribe())
    assert statuses(hands.call("a", unsubscribe())) == [ENDED]
    hands.settle()
    assert not [ack for ack in hands.acks if ack.status is IN_FORCE]


# Requests that were seen before


def test_a_repeat_of_a_request_changes_nothing() -> None:
    """It is answered as the subscription stands: pending, in force, ended."""
    hands = Hands(line("ab"))
    hands.call("a", subscribe())
    again = hands.call("a", subscribe())
    assert (statuses(again), again.letters, again.filters) == ([ACCEPTED], [], [])
    hands.settle()
    again = hands.call("a", subscribe())
    assert (statuses(again), again.changed) == ([ACCEPTED, IN_FORCE], None)
    hands.call("a", unsubscribe())
    again = hands.call("a", subscribe())
    assert (statuses(again), again.changed) == ([ENDED], None)


def test_a_request_for_what_stands_is_remembered() -> None:
    """A late repeat of it, after a replacement, changes nothing; and nobody else hears of the memory."""
    hands = Hands(line("ab"))
    hands.call("a", subscribe("x = 1", "r1"))
    hands.settle()
    asked = hands.call("a", subscribe("x = 1", "r2"))
    assert (statuses(asked), asked.letters) == ([ACCEPTED, IN_FORCE], [])
    hands.call("a", subscribe("x = 2", "r3"))
    hands.settle()
    late = hands.call("a", subscribe("x = 1", "r2"))
    assert (statuses(late), late.changed) == ([ACCEPTED, IN_FORCE], None)
    assert late.acks[0].number == Number(NOW_MS, 2)
    assert hands.publish("b", {"x": 2}) == ["ann"]


# Leases


def test_a_renewal_extends_the_lease_and_is_nobody_elses_business() -> None:
    """Same number, later end, written to `filters`, told to nobody."""
    hands = Hands(line("ab"))
    hands.call("a", subscribe(lease_ms=LEASE_MIN_MS))
    hands.settle()
    hands.now_ms += LEASE_MIN_MS - 1
    outputs = hands.call("a", renew())
    assert (statuses(outputs), outputs.letters) == ([RENEWED], [])
    (change,) = outputs.filters
    assert isinstance(change, Subscribed)
    assert (change.number, change.revision) == (Number(NOW_MS, 1), 1)
    assert change.until_ms == hands.now_ms + LEASE_MIN_MS
    hands.now_ms = change.until_ms - 1
    assert hands.call("a").letters == []
    hands.now_ms += 1
    assert hands.call("a").letters == [Letter("a", "a", Expire(ANN, change.number, change.until_ms))]


def test_a_repeated_renewal_is_refused_once_the_lease_is_over() -> None:
    """While it stands the answer is the same again; then it would promise what is not so."""
    hands = Hands(line("a"))
    hands.call("a", subscribe(lease_ms=LEASE_MIN_MS))
    assert statuses(hands.call("a", renew("r2"))) == [RENEWED]
    assert statuses(hands.call("a", renew("r2"))) == [RENEWED]
    hands.now_ms += LEASE_MIN_MS
    assert refusal(hands.call("a", renew("r2"))).code is Code.LEASE_OVER


def test_a_renewal_while_pending_leaves_it_pending() -> None:
    """It comes into force under its number when the reports are there."""
    hands = Hands(line("ab"))
    hands.call("a", subscribe(lease_ms=LEASE_MIN_MS))
    assert statuses(hands.call("a", renew())) == [RENEWED]
    hands.settle()
    assert hands.acks[-1].status is IN_FORCE


def test_a_lease_may_be_changed_or_taken_away_by_subscribing_again() -> None:
    """The same filter with another lease renews; without one it is endless from then on."""
    hands = Hands(line("a"))
    hands.call("a", subscribe(lease_ms=LEASE_MIN_MS))
    assert statuses(hands.call("a", subscribe(request="r2", lease_ms=5 * LEASE_MIN_MS))) == [
        ACCEPTED,
        IN_FORCE,
    ]
    hands.now_ms += 4 * LEASE_MIN_MS
    assert hands.call("a").letters == []
    assert statuses(hands.call("a", subscribe(request="r3"))) == [ACCEPTED, IN_FORCE]
    hands.now_ms += 90 * LEASE_MIN_MS
    assert hands.call("a").letters == []
    known = hands.broker("a").table.find(ANN)
    assert isinstance(known, Subscribed)
    assert (known.number, known.until_ms) == (Number(NOW_MS, 1), None)


def test_only_shard_0_tells_a_lease_to_expire_and_all_end_it_when_that_is_read() -> None:
    """Between the two, every shard still delivers."""
    hands = Hands(line("ab"), shards=3)
    hands.call("a", subscribe(lease_ms=LEASE_MIN_MS))
    hands.settle()
    hands.now_ms += LEASE_MIN_MS
    outputs = [shard.handle(hands.now_ms, [], [], _entering("a")) for shard in hands.at["a"]]
    assert [len(each.letters) for each in outputs] == [1, 0, 0]
    assert [len(each.deliveries) for each in outputs] == [1, 1, 1]
    (letter,) = outputs[0].letters
    hands.now_ms += 7
    outputs = [shard.handle(hands.now_ms, [], [letter], _entering("a")) for shard in hands.at["a"]]
    assert [len(each.deliveries) for each in outputs] == [0, 0, 0]
    assert [statuses(each) for each in outputs] == [[EXPIRED], [], []]
    known = {hands.broker("a", index).table.find(ANN) for index in range(3)}
    assert known == {Ended(ANN, Number(NOW_MS, 2), hands.now_ms, ("r1",), expired=True)}
    (told,) = outputs[0].letters
    assert (told.to, told.body) == ("b", *known)


@pytest.mark.parametrize("read_first", [False, True])
def test_a_renewal_of_a_lease_that_is_over_is_refused_by_all_shards(read_first: bool) -> None:
    """Whether it was told to expire yet or not, and whether that was read yet or not."""
    for told in (False, True):
        hands = Hands(line("ab"), shards=3)
        hands.call("a", subscribe(lease_ms=LEASE_MIN_MS))
        hands.settle()
        hands.now_ms += LEASE_MIN_MS
        if told:
            hands.call("a")
            if read_first:
                hands.deliver(body=Expire)
        before = [shard.state() for shard in hands.at["a"]]
        assert refusal(hands.call("a", renew())).code is Code.LEASE_OVER
        if told:
            assert [shard.state() for shard in hands.at["a"]] == before
        hands.settle()
        known = {hands.broker("a", index).table.find(ANN) for index in range(3)}
        assert [isinstance(each, Ended) and each.expired for each in known] == [True]


def test_subscribing_when_the_lease_is_over_replaces_and_is_not_expired() -> None:
    """The expiry that is on its way is of the old number, and ends nothing."""
    hands = Hands(line("ab"), shards=2)
    hands.call("a", subscribe(lease_ms=LEASE_MIN_MS))
    hands.settle()
    hands.now_ms += LEASE_MIN_MS
    hands.call("a")
    assert statuses(hands.call("a", subscribe(request="r2", lease_ms=LEASE_MIN_MS))) == [REPLACED, ACCEPTED]
    hands.settle()
    assert EXPIRED not in [ack.status for ack in hands.acks]
    assert hands.publish("b", {}) == ["ann"]


def test_an_unsubscription_of_an_expired_one_says_ended() -> None:
    """Who asks for an end is told that it has ended; who repeats the subscription, that it expired."""
    hands = Hands(line("a"))
    hands.call("a", subscribe(lease_ms=LEASE_MIN_MS))
    hands.now_ms += LEASE_MIN_MS
    hands.call("a")
    hands.settle()
    assert hands.acks[-1].status is EXPIRED
    assert statuses(hands.call("a", subscribe(lease_ms=LEASE_MIN_MS))) == [EXPIRED]
    assert statuses(hands.call("a", unsubscribe())) == [ENDED]
    assert statuses(hands.call("a", unsubscribe("r3"))) == [ENDED]
    assert refusal(hands.call("a", renew("r4"))).code is Code.LEASE_OVER


def test_a_lease_ends_though_the_clock_was_set_back_before_the_expiry_is_read() -> None:
    """What was told to expire expires: a batch may be a little earlier than the one before it."""
    hands = Hands(line("a"))
    hands.call("a", subscribe(lease_ms=LEASE_MIN_MS))
    hands.now_ms += LEASE_MIN_MS
    hands.call("a")
    hands.now_ms -= 5
    hands.settle()
    hands.now_ms += 100_000
    hands.call("a")
    hands.settle()
    assert hands.acks[-1].status is EXPIRED


def test_a_lease_that_was_taken_away_is_not_due() -> None:
    """Nobody has to call for it, whether the shard has seen it or comes from a state without it."""
    hands = Hands(line("a"))
    hands.call("a", subscribe(lease_ms=LEASE_MIN_MS))
    assert hands.call("a", subscribe(request="r2")).due_ms is None


def test_other_shards_do_not_watch_leases_for_ever() -> None:
    """What a shard keeps of renewed leases does not grow, and the next end is not one that has passed."""
    hands = Hands(line("a"), shards=2)
    hands.call("a", subscribe(lease_ms=LEASE_MIN_MS))
    for count in range(50):
        hands.now_ms += LEASE_MIN_MS // 2
        hands.call("a", renew(f"n{count}"))
    for index, shard in enumerate(hands.at["a"]):
        due_ms = shard.handle(hands.now_ms, [], [], _entering("a")).due_ms
        assert due_ms is not None
        assert due_ms > hands.now_ms
        assert len(hands.broker("a", index).home.leases._ends) < 10


# Leaving, and homes


def test_leaving_ends_all_subscriptions_with_acks_and_refuses_new_ones() -> None:
    """The topology that says so does it; others are told; the answer to a new one names the reason."""
    hands = Hands(ring("abc"))
    hands.call("a", subscribe(), subscribe(subscriber="bob"), subscribe(home="a", subscriber="cid"))
    hands.settle()
    outputs = hands.take(hands.topology.left("a"), at="a")
    ended = [ack for ack in outputs.acks if ack.status is ENDED]
    assert [(ack.subscriber, ack.index) for ack in ended] == [("ann", None), ("bob", None), ("cid", None)]
    assert all("leaving" in str(ack.note) for ack in ended)
    hands.settle()
    for name in "abc":
        assert len(hands.broker(name).table) == 0
    assert refusal(hands.call("a", subscribe(request="r7"))).code is Code.HOME_LEAVING
    assert refusal(hands.call("a", subscribe(subscriber="dan"))).code is Code.HOME_LEAVING
    assert statuses(hands.call("a", unsubscribe())) == [ENDED]
    assert hands.publish("b", {}) == []


def test_a_topology_that_is_taken_again_while_leaving_ends_nothing_twice() -> None:
    """The next one finds nothing left to end."""
    hands = Hands(ring("abc"))
    hands.call("a", subscribe())
    hands.settle()
    hands.take(hands.topology.left("a"), at="a")
    hands.settle()
    outputs = hands.take(hands.topology.linked("b", "c", 4), at="a")
    assert [ack.status for ack in outputs.acks if ack.subscriber] == []


def test_what_was_pending_when_its_home_leaves_is_ended() -> None:
    """Nobody waits for it, and it is not told again."""
    hands = Hands(ring("abc"))
    hands.call("a", subscribe())
    hands.take(hands.topology.left("a"), at="a")
    hands.settle()
    assert [ack.status for ack in hands.acks if ack.subscriber] == [ACCEPTED, ENDED]
    assert hands.broker("a").home.pending.awaited() == []


def test_a_subscriber_has_one_home() -> None:
    """At another one it is refused, by name, until its last subscription has ended."""
    hands = Hands(line("ab"))
    hands.call("a", subscribe())
    hands.settle()
    rejection = refusal(hands.call("b", subscribe(home="b")))
    assert rejection.code is Code.HOME_DIFFERS
    assert "'a'" in rejection.reason
    hands.call("a", unsubscribe())
    hands.settle()
    assert statuses(hands.call("b", subscribe(home="b"))) == [ACCEPTED]
