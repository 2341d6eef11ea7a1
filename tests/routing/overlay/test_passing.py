"""Copies from other brokers that are routed as batches go where each would go by itself."""

import os
from collections import Counter
from dataclasses import dataclass, field
from unittest.mock import patch

import pytest
from overlay_hands import Hands, Plain, line, subscribe

from branchline.ops.simulation.scripts import play
from branchline.routing.codes import Code, Rejection
from branchline.routing.limits import HOPS_MAX
from branchline.routing.methods.naming import Methods
from branchline.routing.overlay import passing
from branchline.routing.overlay.dividing import Arrival, Routed
from branchline.routing.overlay.facts import Fact
from branchline.routing.overlay.passing import Passage, Passed
from branchline.routing.overlay.topology import founded, link
from branchline.routing.prefix.header import Header, encode
from branchline.routing.prefix.trees import UNMATCHED
from branchline.routing.shard import EventBatch, Outputs, Shard

SEEDS = {"everyday": 24, "thorough": 100, "soak": 1_000, "filters": 24}[
    os.environ.get("HYPOTHESIS_PROFILE", "everyday")
]
TOGETHER = Methods(batches_from=0)
COUNTED = (
    *("visits", "held", "content_matches", "afresh_matches", "exact_checks", "refuted", "retired_homes"),
    "older_walks",
)


@dataclass
class Compared:
    """Shards whose calls are compared with what their brokers say of each copy."""

    seen: Counter[str] = field(default_factory=Counter)

    def route(self, shard: Shard, events: EventBatch, outputs: Outputs) -> list[tuple[str, Fact]]:
        """In place of `Shard._route`: the same, and then all copies are asked about one by one."""
        alone = {
            index: (name, shard.brokers[name].route(arrival))
            for index, (name, arrival) in enumerate(zip(events.at, events.arrivals, strict=True))
            if arrival.header is not None
        }
        facts = _route(shard, events, outputs)
        copies = list(zip(outputs.forwarded, outputs.forwarded.encoded(), strict=True))
        for index, (name, routed) in alone.items():
            assert [
                each.subscriber for each in outputs.deliveries if each.event == index
            ] == routed.deliveries
            assert [(each.at, each.copy.to, data) for each, data in copies if each.event == index] == [
                (name, copy.to, encode(copy.header)) for copy in routed.copies
            ]
            assert [
                (each.subscriber, each.rejection) for each in outputs.undecided if each.event == index
            ] == list(routed.undecided.items())
            refused = [(each.scope, each.rejection) for each in outputs.refused if each.event == index]
            assert refused == ([] if routed.refused is None else [(routed.scope, routed.refused)])
        if len(alone) == len(events.at) and not outputs.released:
            counted = counts_of([routed for _, routed in alone.values()])
            assert {name: outputs.counts[name] for name in COUNTED} == counted
            self.seen["calls with nothing but copies"] += bool(alone)
        self.seen["copies"] += len(alone)
        return facts

    def pass_on(self, passage: Passage, *arguments: object) -> Passed:
        """In place of `Passage.route`: the same, counted."""
        passed = _pass_on(passage, *arguments)  # type: ignore[arg-type]
        self.seen["together"] += len(passed.done)
        self.seen["owed"] += len(passed.events)
        self.seen["forwarded"] += len(passed.copied)
        self.seen["exact checks"] += passed.exact_checks
        self.seen["refuted"] += passed.refuted
        self.seen["retired"] += passed.retired
        return passed

    def __enter__(self) -> "Compared":
        self._patches = [
            patch.object(Shard, "_route", lambda *arguments: self.route(*arguments)),
            patch.object(Passage, "route", lambda *arguments: self.pass_on(*arguments)),
        ]
        for each in self._patches:
            each.start()
        return self

    def __exit__(self, *error: object) -> None:
        for each in self._patches:
            each.stop()


_route, _pass_on = Shard._route, Passage.route


def counts_of(routed: list[Routed]) -> dict[str, int]:
    """What one by one would be counted."""
    return {
        "visits": sum(not each.held for each in routed),
        "held": sum(each.held for each in routed),
        "content_matches": sum(each.content_matches for each in routed),
        "afresh_matches": sum(each.afresh_matches for each in routed),
        "exact_checks": sum(each.exact_checks for each in routed),
        "refuted": sum(each.refuted for each in routed),
        "retired_homes": sum(each.retired for each in routed),
        "older_walks": sum(each.found is not None and each.found.older > 0 for each in routed),
    }


def test_in_random_worlds_all_is_as_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deliveries, copies to the byte, dead letters, their order and counts, whatever happens meanwhile.

    Subscriptions, trees and topologies change, brokers join and leave, events have arrays, filters residuals,
    and prefixes are of old versions or were cut. Every other world follows a few rows at a time.
    """
    with Compared() as compared:
        for seed in range(SEEDS):
            monkeypatch.setattr(passing, "FOUND_AT_ONCE", 5 if seed % 2 else 4_000_000)
            played = play(seed, 30, methods=TOGETHER)
            assert played.clean, played.describe()
    seen = compared.seen
    assert 0.3 * seen["copies"] < seen["together"] < seen["copies"], "some are left to the reference"
    for what in ("owed", "forwarded", "exact checks", "refuted", "calls with nothing but copies"):
        assert seen[what] > SEEDS, what


def grown(filters: dict[str, list[str]], names: str = "abc") -> Hands:
    """Brokers in a row, and a tree of their subscriptions, each of which has its own subscriber."""
    hands = Hands(line(names), methods=TOGETHER)
    for home, texts in filters.items():
        for place, text in enumerate(texts):
            hands.call(home, subscribe(text, home=home, subscriber=f"{home}{place}"))
    hands.settle()
    hands.grow()
    return hands


def entered(hands: Hands, at: str, events: list[dict[str, object]]) -> list[Header]:
    """The headers with which these events leave the broker where they enter, one for each."""
    batch = EventBatch([at] * len(events), [Arrival(Plain(each)) for each in events])  # type: ignore[arg-type]
    return [each.copy.header for each in hands.call(at, events=batch).forwarded]


def test_all_that_is_certain_is_routed_together() -> None:
    """Once the tree has all filters, nobody is asked about a copy, and nothing is looked at."""
    hands = grown({"b": ["x > 1", "x > 5"], "c": ["x > 3"]})
    headers = entered(hands, "a", [{"x": x} for x in range(2, 10)])
    unreadable = Plain(Rejection(Code.JSON_INVALID, "nobody looks"))
    batch = EventBatch(["b"] * len(headers), [Arrival(unreadable, each) for each in headers])
    with patch.object(type(hands.broker("b")), "route", side_effect=AssertionError("one by one")):
        outputs = hands.call("b", events=batch)
    owed = [(each.event, each.subscriber) for each in outputs.deliveries]
    assert owed == [
        (x - 2, name) for x in range(2, 10) for name, least in (("b0", 1), ("b1", 5)) if x > least
    ]
    assert [(each.event, each.copy.to) for each in outputs.forwarded] == [(x - 2, "c") for x in range(4, 10)]
    assert {each.copy.header.hops for each in outputs.forwarded} == {2}


def test_who_subscribes_between_updates_is_checked_together() -> None:
    """Found in doubt for every copy, and checked with the index, as often as one by one."""
    hands = grown({"b": ["x > 1"], "c": ["x > 3"]})
    for place, text in enumerate(("x = 2", "x = 4", "x < 3", "x IN (3, 9)")):
        hands.call("b", subscribe(text, home="b", subscriber=f"new{place % 2}", id_=f"i{place}"))
    hands.settle()
    headers = entered(hands, "a", [{"x": x} for x in range(2, 8)])
    arrivals = [Arrival(Plain({"x": x}), each) for x, each in zip(range(2, 8), headers, strict=True)]
    with Compared() as compared:
        outputs = hands.call("b", events=EventBatch(["b"] * len(arrivals), arrivals))
    owed = [(each.event + 2, each.subscriber) for each in outputs.deliveries]
    assert [each for each in owed if each[1] != "b0"] == [(2, "new0"), (3, "new1"), (4, "new1")]
    assert compared.seen["together"] == len(arrivals)
    assert compared.seen["exact checks"] == outputs.counts["exact_checks"] > len(arrivals)


def test_the_unusual_is_left_to_the_reference() -> None:
    """Too far, too early, for one subscriber, unmatched; a residual, or content that cannot be read."""
    hands = grown({"b": ["x > 1"], "c": ["x > 3"]})
    (plain,) = entered(hands, "a", [{"x": 5}])
    hands.call("b", subscribe("x < y", home="b", subscriber="residual"))
    hands.settle()
    content, unreadable = Plain({"x": 5, "y": 6}), Plain(Rejection(Code.JSON_INVALID, "no"))
    for arrival in (
        Arrival(content, plain._replace(hops=HOPS_MAX + 1)),
        Arrival(content, plain._replace(topology=plain.topology + 1)),
        Arrival(content, plain, "b0"),
        Arrival(content, plain),
        Arrival(unreadable, plain),
        Arrival(content, Header(UNMATCHED, plain.scope, plain.topology, 1)),
    ):
        with Compared() as compared:
            hands.call("b", events=EventBatch(["b"], [arrival]))
        assert compared.seen["copies"] == 1 and compared.seen["together"] == 0


def test_scopes_of_many_homes_are_left_to_the_reference() -> None:
    """Where brokers have numbers beyond what a column has bits for; small scopes go on together there too."""
    names = [f"n{number}" for number in range(70)]
    topology = founded(names, [link(names[0], other) for other in names[1:]])
    hands = Hands(topology, [tuple(names)], methods=TOGETHER)
    for home in (names[0], names[3], names[68], names[69]):
        hands.call(home, subscribe("x > 1", home=home, subscriber=f"at-{home}"))
    hands.settle()
    hands.grow()
    (copy,) = hands.event(names[3], {"x": 2}).forwarded
    for scope in (copy.copy.header.scope, copy.copy.header.scope & (1 << 64) - 1, 1 << 69, 0b1001):
        with Compared() as compared:
            arrival = Arrival(Plain({"x": 2}), copy.copy.header._replace(scope=scope))
            hands.call(names[0], events=EventBatch([names[0]], [arrival]))
        assert compared.seen["together"] == (scope < 1 << 64)


def test_homes_that_are_gone_are_counted() -> None:
    """A copy of before still names them; its other homes get it."""
    hands = grown({"a": ["x > 0"], "b": ["x > 1"], "c": ["x > 3"]})
    (plain,) = entered(hands, "c", [{"x": 5}])
    with Compared() as compared:
        gone = plain._replace(scope=plain.scope | 1 << 40 | 1 << 63)
        hands.call("b", events=EventBatch(["b"], [Arrival(Plain({"x": 5}), gone)]))
    assert compared.seen["retired"] == 2 and compared.seen["forwarded"] == 1
