"""A broker tells what it learns, reports what it has, divides the scope, holds, joins and refuses."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overlay_hands import NOW_MS, Hands, Plain, line, numbers, ring, statuses, subscribe, told, unsubscribe

from branchline.routing.codes import Code, Rejection
from branchline.routing.control import Ended, Identity, Number, Status, Subscribed
from branchline.routing.limits import ENDED_REMEMBERED_MS, HOPS_MAX
from branchline.routing.overlay.dividing import Arrival
from branchline.routing.overlay.letters import Complete, Letter, Report
from branchline.routing.overlay.topology import Topology, founded, link
from branchline.routing.prefix.header import Header
from branchline.routing.prefix.trees import UNMATCHED
from branchline.routing.shard import EventBatch, Outputs

ANN = Identity("a", "ann", "one")
UNREADABLE = Rejection(Code.JSON_INVALID, "no JSON")
STAR = founded("abcd", [link("a", "b"), link("b", "c"), link("b", "d")])


def copies(outputs: Outputs) -> dict[str, int]:
    """To whom copies went, and with which scopes."""
    assert len({each.copy.to for each in outputs.forwarded}) == len(outputs.forwarded)
    return {each.copy.to: each.copy.header.scope for each in outputs.forwarded}


def everybody(topology: Topology) -> int:
    return sum(1 << member.number for member in topology.members)


# Changes and reports


def test_what_is_learned_is_told_to_all_neighbours_but_the_teller() -> None:
    """Once, in the very words; who told it gets a report."""
    hands = Hands(STAR)
    change = told(1)
    outputs = hands.call("b", Letter("b", "a", change))
    assert outputs.letters == [
        Letter("c", "b", change),
        Letter("d", "b", change),
        Letter("a", "b", Report("a", "b", STAR.order, ((ANN, change.number),))),
    ]


def test_a_repeat_changes_nothing_but_is_reported_again() -> None:
    """It is not told on, nor recorded; the report says what the broker has, which may be more."""
    hands = Hands(line("abc"))
    hands.call("b", Letter("b", "a", told(2)))
    for repeat in (told(2), told(1)):
        outputs = hands.call("b", Letter("b", "a", repeat))
        assert (outputs.changed, outputs.filters) == (None, [])
        (letter,) = outputs.letters
        assert letter.body == Report("a", "b", hands.topology.order, ((ANN, Number(1, 2)),))


def test_reports_are_one_letter_for_each_home_and_call() -> None:
    """What a call was told of one home, new and repeated, is reported together at its end."""
    hands = Hands(line("abc"))
    other = replace(told(1), identity=Identity("a", "bob", "one"))
    foreign = told(5, home="c")
    letters = [Letter("b", "a", each) for each in (told(1), other, told(1), foreign, told(2))]
    outputs = hands.call("b", *letters)
    reports = [letter for letter in outputs.letters if isinstance(letter.body, Report)]
    order = hands.topology.order
    assert reports == [
        Letter("a", "b", Report("a", "b", order, ((ANN, Number(1, 2)), (other.identity, Number(1, 1))))),
        Letter("c", "b", Report("c", "b", order, ((foreign.identity, Number(1, 5)),))),
    ]


def test_an_end_is_told_on_and_not_reported() -> None:
    """Nobody waits for it; what was told before it in the call is reported, as ended."""
    hands = Hands(line("abc"))
    ended = Ended(ANN, Number(1, 2), NOW_MS)
    outputs = hands.call("b", Letter("b", "a", ended))
    assert outputs.letters == [Letter("c", "b", ended)]
    outputs = hands.call("b", Letter("b", "a", told(1)))
    (letter,) = outputs.letters
    assert isinstance(letter.body, Report)
    assert letter.body.has == ((ANN, Number(1, 2)),)


def test_a_report_for_another_home_goes_hop_by_hop() -> None:
    """Untouched, with the reporter's topology."""
    hands = Hands(line("abcd"))
    report = Report("a", "d", (9, 9), ((ANN, Number(1, 1)),))
    assert hands.call("c", Letter("c", "d", report)).letters == [Letter("b", "c", report)]


def test_a_flood_over_a_cycle_ends() -> None:
    """Everybody learns it, each tells each neighbour at most once, and then it is quiet and in force."""
    for topology in (
        ring("abcd"),
        founded("abcd", [link(*pair) for pair in ("ab", "ac", "ad", "bc", "bd", "cd")]),
    ):
        hands = Hands(topology)
        hands.call("a", subscribe())
        assert hands.settle() < 40
        assert [ack.status for ack in hands.acks] == [Status.ACCEPTED, Status.IN_FORCE]
        assert all(len(hands.broker(name).table) == 1 for name in "abcd")


def test_an_end_that_comes_after_a_day_does_not_go_round_for_ever() -> None:
    """Those who have forgotten it learn nothing from it: a site that was cut off for long stirs up nobody."""
    hands = Hands(ring("abc"))
    hands.call("a", subscribe())
    hands.settle()
    hands.call("a", unsubscribe())
    cut_off = [letter for letter in hands.mail if letter.to == "b"]
    hands.mail = [letter for letter in hands.mail if letter.to != "b"]
    hands.deliver(to="c")
    cut_off += [letter for letter in hands.mail if letter.to == "b"]
    hands.mail.clear()
    hands.now_ms += ENDED_REMEMBERED_MS + 1
    hands.call("b", cut_off[0])
    for _ in range(20):
        hands.deliver()
        hands.now_ms += 10
    assert hands.mail == []


def test_an_own_subscription_told_by_others_keeps_numbers_rising() -> None:
    """A home that has lost its past goes on above what its neighbours still know of it."""
    hands = Hands(line("ab"))
    hands.call("a", Letter("a", "b", told(7)))
    outputs = hands.call("a", subscribe("x = 1"))
    assert outputs.acks[-1].number == Number(1, 8)


# Topologies


def test_a_topology_goes_to_all_old_and_new_neighbours_but_the_teller() -> None:
    """Also to one that is no neighbour any more: it has to know that."""
    hands = Hands(ring("abcd"))
    new = hands.topology.unlinked("a", "b").linked("a", "c")
    outputs = hands.call("a", Letter("a", "d", new))
    assert [letter.to for letter in outputs.letters if letter.body == new] == ["b", "c"]
    assert outputs.filters == [new]


def test_of_two_topologies_the_higher_order_wins_wherever_they_meet() -> None:
    """Two operators made the same number: all end with the one of the higher digest."""
    for first in ("a", "c"):
        hands = Hands(line("abc"))
        one, other = hands.topology.linked("a", "c", 2), hands.topology.linked("a", "c", 3)
        hands.take(one, at=first)
        hands.take(other, at="c" if first == "a" else "a")
        hands.settle()
        wins = max(one, other, key=lambda each: each.order)
        assert {hands.broker(name).topology for name in "abc"} == {wins}


def test_a_topology_that_is_not_newer_or_no_topology_changes_nothing() -> None:
    """An old one says nothing; one that breaks a rule is unusable."""
    hands = Hands(line("ab"))
    new = hands.topology.linked("a", "b", 5)
    hands.take(new, at="a")
    hands.mail.clear()
    for old in (line("ab"), new):
        outputs = hands.call("a", Letter("a", "b", old))
        assert (outputs.changed, outputs.letters, outputs.unusable) == (None, [], [])
    outputs = hands.call("a", Letter("a", "b", replace(new, number=9, links=())))
    ((index, rejection),) = outputs.unusable
    assert (index, rejection.code, outputs.changed) == (0, Code.TOPOLOGY_INVALID, None)


def test_a_new_neighbour_is_told_everything_and_then_that_this_is_all() -> None:
    """Ends included, in the order of their names; who was a neighbour before is told nothing."""
    hands = Hands(line("abc"))
    for name, home in (("ann", "a"), ("bob", "b"), ("cid", "a")):
        hands.call(home, subscribe(subscriber=name, home=home))
    hands.settle()
    hands.call("a", unsubscribe(subscriber="cid"))
    hands.settle()
    outputs = hands.take(hands.topology.linked("a", "c"), at="a")
    assert [type(letter.body) for letter in outputs.letters if letter.to == "b"] == [Topology]
    bodies = [letter.body for letter in outputs.letters if letter.to == "c"]
    assert [type(body) for body in bodies] == [Topology, Subscribed, Ended, Subscribed, Complete]
    told_of = [body.identity for body in bodies if isinstance(body, Subscribed | Ended)]
    assert told_of == sorted(told_of)


def test_whoever_joins_tells_its_neighbours_that_this_is_all_when_it_was_told_so() -> None:
    """A newcomer behind a newcomer waits until the first one knows everything."""
    hands = Hands(line("ab"))
    hands.call("a", subscribe())
    hands.settle()
    hands.start("c")
    hands.start("d")
    both = hands.topology.joined("c", {"b": 1}).joined("d", {"c": 1})
    hands.take(both, at="a")
    hands.deliver(to="b")
    hands.deliver(to="c", body=Topology)
    hands.deliver(to="d")
    assert hands.broker("d").joining
    assert not any(isinstance(body, Complete) for body in hands.bodies(to="d"))
    hands.settle()
    assert not hands.broker("c").joining
    assert not hands.broker("d").joining
    assert hands.publish("d", {}) == ["ann"]


def test_a_report_waits_for_the_topology_that_its_home_is_in() -> None:
    """On the way somebody does not know the home yet; when it does, the report goes on."""
    hands = Hands(line("ab"))
    new = hands.topology.joined("c", {"a": 1})
    report = Report("c", "b", new.order, ((Identity("c", "ann", "one"), Number(1, 1)),))
    outputs = hands.call("a", Letter("a", "b", report))
    assert outputs.letters == []
    outputs = hands.call("a", Letter("a", "b", new))
    assert outputs.letters[-1] == Letter("c", "a", report)


def test_a_report_for_a_home_that_has_gone_is_dropped() -> None:
    """Nobody waits for it."""
    hands = Hands(line("abc"))
    gone = hands.topology.left("c").without("c")
    old = hands.topology.order
    hands.call("b", Letter("b", "a", gone))
    outputs = hands.call("b", Letter("b", "a", Report("c", "a", old, ())))
    assert (outputs.letters, outputs.changed) == ([], None)


# Scope


def test_a_copy_has_all_homes_behind_its_hop_matched_or_not() -> None:
    """And is sent only where an address was found; a home whose hop got no copy is done."""
    hands = Hands(STAR)
    hands.call("c", subscribe("x = 1", home="c"))
    hands.call("d", subscribe("x = 2", home="d", subscriber="dan"))
    hands.settle()
    hands.grow()
    assert copies(hands.event("a", {"x": 1})) == {"b": numbers(STAR, "bcd")}
    header = Header(UNMATCHED, numbers(STAR, "bcd"), 1, 1)
    assert copies(hands.event("b", {"x": 1}, header)) == {"c": numbers(STAR, "c")}
    assert copies(hands.event("b", {"x": 2}, header)) == {"d": numbers(STAR, "d")}
    assert copies(hands.event("b", {"x": 3}, header)) == {}
    assert copies(hands.event("b", {"x": 1}, header._replace(scope=numbers(STAR, "bd")))) == {}
    assert hands.publish("a", {"x": 1}) == ["ann"]
    assert hands.publish("d", {"x": 2}) == ["dan"]


def test_a_broker_delivers_only_if_it_is_in_the_scope_itself() -> None:
    """What another copy answers for is not delivered by this one."""
    hands = Hands(line("ab"))
    hands.call("a", subscribe())
    hands.settle()
    for scope, delivered in ((0b01, 1), (0b11, 1), (0b10, 0), (0, 0)):
        outputs = hands.event("a", {}, Header(UNMATCHED, scope, 1, 1))
        assert len(outputs.deliveries) == delivered


RING = ring("abcde")
FILTERS = ("TRUE", "x = 1", "x = 2", "y = 1", "x = 1 AND y = 1")


@given(
    st.lists(st.tuples(st.sampled_from("abcde"), st.sampled_from(FILTERS)), max_size=5),
    st.sampled_from(
        (line("abcde"), ring("abcde"), ring("abcde").left("b"), ring("abcde").left("b").without("b"))
    ),
    st.integers(0, 2**6 - 1),
    st.fixed_dictionaries({"x": st.integers(1, 2), "y": st.integers(1, 2)}),
)
def test_the_scope_is_divided(
    asked: list[tuple[str, str]], topology: Topology, scope: int, event: dict[str, int]
) -> None:
    """The scopes of all copies and the own bit are disjoint, within the scope, and lack nobody interested.

    Bits of retired homes are dropped and counted.
    """
    names = [member.name for member in topology.members if not member.leaving]
    hands = Hands(topology)
    wanted: dict[str, list[str]] = {}
    for index, (home, filter_) in enumerate(asked):
        if home in names:
            hands.call(home, subscribe(filter_, home=home, subscriber=f"s{index}"))
            wanted.setdefault(home, []).append(filter_)
    hands.settle()
    hands.grow()
    everyone = everybody(topology)
    matches = {
        "TRUE": True,
        "x = 1": event["x"] == 1,
        "x = 2": event["x"] == 2,
        "y = 1": event["y"] == 1,
        "x = 1 AND y = 1": event == {"x": 1, "y": 1},
    }
    for member in topology.members:
        outputs = hands.event(member.name, event, Header(UNMATCHED, scope, topology.number, 1))
        sent = copies(outputs)
        answered = 1 << member.number & scope
        for part in sent.values():
            assert not part & answered, "no home is answered for twice"
            answered |= part
        assert not answered & ~scope
        interested = {home for home, filters in wanted.items() if any(matches[each] for each in filters)}
        owed = numbers(topology, interested) & scope
        assert owed & ~answered == 0
        own = hands.broker(member.name)
        for hop, homes in own.position.routes.behind.items():
            assert sent.get(hop, 0) == (homes & scope if homes & owed else 0)
        assert outputs.counts["retired_homes"] == (scope & ~everyone).bit_count()


def test_an_event_for_one_subscriber_is_for_this_home_and_nobody_else() -> None:
    """`only` sends no copies, and looks at no other subscriber."""
    hands = Hands(line("ab"))
    hands.call("a", subscribe(), subscribe(subscriber="bob"))
    hands.call("b", subscribe(home="b", subscriber="cid"))
    hands.settle()
    outputs = hands.event("a", {}, only="bob")
    assert [each.subscriber for each in outputs.deliveries] == ["bob"]
    assert outputs.forwarded == []
    assert hands.event("a", {}, only="cid").deliveries == []


# What cannot go on


def test_a_copy_that_has_crossed_too_many_links_is_refused_with_its_scope() -> None:
    """It is a fault of ours; what it answers for is still owed."""
    hands = Hands(line("abc"))
    hands.call("a", subscribe())
    hands.settle()
    last = hands.event("b", {}, Header(UNMATCHED, 0b101, 1, HOPS_MAX))
    assert copies(last) == {"a": 0b001}
    assert last.forwarded[0].copy.header.hops == HOPS_MAX + 1
    outputs = hands.event("a", {}, Header(UNMATCHED, 0b101, 1, HOPS_MAX + 1))
    (refused,) = outputs.refused
    assert (refused.scope, refused.rejection.code, refused.at) == (0b101, Code.HOPS_TOO_MANY, "a")
    assert (outputs.deliveries, outputs.forwarded) == ([], [])


def test_what_comes_to_a_retired_broker_is_refused_with_its_scope() -> None:
    """But for the homes that have gone; if nobody else is in it, nothing is owed."""
    hands = Hands(line("abc"))
    hands.take(hands.topology.left("c"), at="a")
    hands.settle()
    hands.take(hands.topology.without("c"), at="a")
    hands.settle()
    outputs = hands.event("c", {}, Header(UNMATCHED, 0b110, 1, 1))
    (refused,) = outputs.refused
    assert (refused.scope, refused.rejection.code) == (0b010, Code.BROKER_RETIRED)
    assert outputs.counts["retired_homes"] == 1
    outputs = hands.event("c", {}, Header(UNMATCHED, 0b100, 1, 1))
    assert (outputs.refused, outputs.counts["retired_homes"]) == ([], 1)
    (refused,) = hands.event("c", {}).refused
    assert refused.scope == 0b011


def test_content_that_cannot_be_read_is_refused_with_its_scope() -> None:
    """Where it enters, and at a later hop that had to look at it; nothing was sent or delivered."""
    hands = Hands(line("abc"))
    for name in "abc":
        hands.call(name, subscribe("x = 1", home=name, subscriber=f"s{name}"))
    hands.settle()
    for name, header, scope in (("a", None, 0b111), ("b", Header(UNMATCHED, 0b110, 1, 1), 0b110)):
        outputs = hands.event(name, UNREADABLE, header)
        (refused,) = outputs.refused
        assert (refused.scope, refused.rejection) == (scope, UNREADABLE)
        assert (outputs.deliveries, outputs.forwarded, outputs.undecided) == ([], [], [])


def test_content_is_not_looked_at_where_nobody_needs_it() -> None:
    """A matched prefix leads on, and who is found for certain is delivered to, whatever the content."""
    hands = Hands(line("abc"))
    hands.call("c", subscribe("x = 1", home="c"))
    hands.settle()
    hands.grow()
    (sent,) = hands.event("a", {"x": 1}).forwarded
    (on,) = hands.event("b", UNREADABLE, sent.copy.header).forwarded
    assert on.copy.header.prefix == sent.copy.header.prefix
    assert on.copy.header.hops == 2
    assert [each.subscriber for each in hands.event("c", UNREADABLE, on.copy.header).deliveries] == ["ann"]


# Topologies that events need


def test_a_copy_of_a_newer_topology_is_held_until_that_is_there() -> None:
    """In the order in which they came; then they go on as they would have, before newer ones."""
    hands = Hands(line("ab"))
    hands.call("b", subscribe(home="b"))
    hands.settle()
    new = hands.topology.linked("a", "b", 3)
    header = Header(UNMATCHED, 0b10, 2, 1)
    for value in (1, 2):
        outputs = hands.event("b", {"x": value}, header)
        assert (outputs.deliveries, outputs.counts["held"], outputs.counts["visits"]) == ([], 1, 0)
    assert len(hands.event("b", {"x": 3}, header._replace(topology=1)).deliveries) == 1
    assert "2 events held" in hands.broker("b").describe()
    batch = EventBatch(["b"], [Arrival(Plain({"x": 4}), header)])
    outputs = hands.call("b", Letter("b", "a", new), events=batch)
    assert [arrival.content.attributes() for arrival in outputs.released] == [{"x": 1}, {"x": 2}]
    assert [each.event for each in outputs.deliveries] == [1, 2, 0]
    assert (hands.broker("b").held, hands.call("b").released) == ([], [])


def test_what_waits_for_a_still_newer_topology_is_held_on() -> None:
    """Each copy waits for its own."""
    hands = Hands(line("ab"))
    hands.call("b", subscribe(home="b"))
    hands.settle()
    for number in (3, 2):
        hands.event("b", {}, Header(UNMATCHED, 0b10, number, 1))
    second = hands.topology.linked("a", "b", 3)
    assert len(hands.call("b", Letter("b", "a", second)).deliveries) == 1
    assert [arrival.header.topology for arrival in hands.broker("b").held if arrival.header] == [3]
    assert len(hands.call("b", Letter("b", "a", second.linked("a", "b"))).deliveries) == 1


def test_a_broker_that_is_not_in_the_topology_yet_holds_everything() -> None:
    """Without a topology, or with one that it is not in: it knows nobody to send an event to."""
    hands = Hands(line("ab"))
    hands.call("b", subscribe(home="b"))
    hands.settle()
    hands.start("c")
    assert hands.event("c", {"x": 1}).counts["held"] == 1
    hands.call("c", Letter("c", "a", hands.topology))
    assert hands.event("c", {"x": 2}).counts["held"] == 1
    new = hands.topology.joined("c", {"a": 1})
    outputs = hands.call("c", Letter("c", "a", new))
    assert [each.copy.to for each in outputs.forwarded] == ["a", "a"]
    assert {each.copy.header.scope for each in outputs.forwarded} == {everybody(new)}


# Joining


def joiner() -> Hands:
    """In a row a, b, c the broker c has just joined, and has heard of the topology and nothing else."""
    hands = Hands(line("ab"))
    hands.call("a", subscribe("x = 1"))
    hands.settle()
    hands.start("c")
    hands.take(hands.topology.joined("c", {"b": 1}), at="b")
    hands.deliver(to="c", body=Topology)
    assert hands.broker("c").joining
    return hands


def test_a_joiner_hands_what_enters_to_its_sponsor() -> None:
    """Unmatched, with full scope, whether anybody is interested or not; nothing is delivered here yet."""
    hands = joiner()
    hands.call("c", subscribe(home="c", subscriber="cid"))
    outputs = hands.event("c", {"x": 2})
    assert copies(outputs) == {"b": 0b111}
    assert outputs.forwarded[0].copy.header.prefix == UNMATCHED
    assert (outputs.deliveries, outputs.counts["content_matches"]) == ([], 0)
    hands.settle()
    assert hands.publish("c", {"x": 2}) == ["cid"]


def test_the_sponsor_is_the_neighbour_with_the_lowest_number() -> None:
    """So every shard of the joiner's job takes the same."""
    hands = Hands(line("ba"))
    hands.start("c")
    hands.take(hands.topology.joined("c", {"a": 1, "b": 9}), at="a")
    hands.deliver(to="c", body=Topology)
    assert copies(hands.event("c", {})) == {"b": 0b111}


def test_a_joiner_divides_what_passes_in_all_directions() -> None:
    """What it was told is passed on as it is; it matches afresh for its own subscribers."""
    hands = Hands(line("ab"))
    hands.call("a", subscribe("x = 1"))
    hands.settle()
    hands.grow()
    (sent,) = hands.event("b", {"x": 1}).forwarded
    prefix = sent.copy.header.prefix
    assert prefix.parts[0].entries
    hands.start("c")
    hands.take(hands.topology.joined("c", {"a": 1, "b": 1}), at="b")
    hands.deliver(to="c", body=Topology)
    hands.call("c", subscribe("x = 1", home="c", subscriber="cid"))
    for value, delivered in ((1, ["cid"]), (7, [])):
        outputs = hands.event("c", {"x": value}, Header(prefix, 0b111, 2, 1))
        assert copies(outputs) == {"a": 0b001, "b": 0b010}
        assert {each.copy.header.prefix for each in outputs.forwarded} == {prefix}
        assert [each.subscriber for each in outputs.deliveries] == delivered
    assert copies(hands.event("c", {"x": 7}, Header(prefix, 0b110, 2, 1))) == {"b": 0b010}


def test_a_joiner_ends_joining_with_the_first_complete() -> None:
    """From then on it matches what enters."""
    hands = joiner()
    hands.settle()
    assert not hands.broker("c").joining
    hands.grow()
    assert copies(hands.event("c", {"x": 2})) == {}
    assert hands.publish("c", {"x": 1}) == ["ann"]


def test_who_was_in_the_first_topology_does_not_join() -> None:
    """There was nothing before that it would have to be told."""
    hands = Hands(line("ab"))
    assert not hands.broker("a").joining


def test_a_broker_describes_itself() -> None:
    """Its topology, whether it joins and holds, its table, and whom its homes wait for."""
    hands = joiner()
    hands.event("c", {}, Header(UNMATCHED, 1, 9, 1))
    assert hands.broker("c").describe().startswith("broker c, topology 2, joining, 1 events held")
    hands.call("a", subscribe("x = 3", "r9"))
    assert hands.broker("a").describe().splitlines() == [
        "broker a, topology 1",
        "a/ann/one #2: x = 3",
        "a/ann/one waits for b",
    ]
    hands.start("z")
    assert hands.broker("z").describe() == "broker z, no topology"
    assert statuses(hands.call("a", subscribe("x = 3", "r9"))) == [Status.ACCEPTED]


@pytest.mark.parametrize("shards", [1, 2])
def test_a_passing_event_costs_no_content_match(shards: int) -> None:
    """The one match is where it enters."""
    hands = Hands(line("abc"), shards=shards)
    hands.call("c", subscribe("x = 1", home="c"))
    hands.settle()
    first = hands.event("a", {"x": 1})
    second = hands.event("b", {"x": 1}, first.forwarded[0].copy.header)
    third = hands.event("c", {"x": 1}, second.forwarded[0].copy.header)
    counts = [each.counts for each in (first, second, third)]
    assert [each["content_matches"] for each in counts] == [1, 0, 0]
    assert [each["afresh_matches"] for each in counts] == [0, 0, 0]
    assert len(third.deliveries) == 1
