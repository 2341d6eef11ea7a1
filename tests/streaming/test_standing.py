"""What a job tells of itself in statistics: how its brokers stand, and how fast it is."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overlay_hands import NOW_MS, Hands, line, subscribe

from branchline.routing.methods.naming import Methods
from branchline.routing.offloading.assisting import AskSet, Assist
from branchline.routing.overlay.topology import founded
from branchline.streaming.rates import WINDOWS_S, Rates
from branchline.streaming.standing import PENDING_TOLD, standing


def test_who_is_waited_for_is_told_until_everybody_has_reported() -> None:
    """The first subscriptions by name, and how many there are in all."""
    hands = Hands(line("abc"))
    count = PENDING_TOLD + 3
    hands.call("a", *(subscribe(f"x > {at}", None, id_=f"f{at}") for at in range(count)))
    told = standing(hands.at["a"][0], NOW_MS)
    assert told["pending"]["count"] == count
    assert [each["subscription"] for each in told["pending"]["first"]] == [
        f"a/ann/f{at}" for at in range(PENDING_TOLD)
    ]
    assert told["pending"]["first"][0] == {"subscription": "a/ann/f0", "waits_for": ["b", "c"], "more": 0}
    hands.deliver(to="b")
    hands.deliver(to="a")
    assert standing(hands.at["a"][0], NOW_MS)["pending"]["first"][0]["waits_for"] == ["c"]
    hands.settle()
    assert standing(hands.at["a"][0], NOW_MS)["pending"] == {"count": 0, "first": []}
    assert json.loads(json.dumps(told)) == told


def test_topologies_and_who_joins_are_told_for_each_broker() -> None:
    """A broker that has none yet waits; a newcomer joins until it was told everything."""
    hands = Hands(founded(["a"]))
    hands.start("b", "c", topology=None)
    assert standing(hands.at["b"][0], NOW_MS)["waiting"] == ["b", "c"]
    hands.take(founded(["a"]).joined("b", {"a": 1}), "a")
    hands.call("b", hands.mail[0])
    told = standing(hands.at["b"][0], NOW_MS)
    assert (told["topologies"], told["joining"], told["waiting"]) == ({"b": 2}, ["b"], ["c"])
    hands.settle()
    assert standing(hands.at["b"][0], NOW_MS)["joining"] == []
    assert standing(hands.at["a"][0], NOW_MS)["topologies"] == {"a": 2}


def test_the_tree_is_told_with_its_version_and_size() -> None:
    """Before anybody told of one it is empty."""
    hands = Hands(founded(["a"]))
    [part] = standing(hands.at["a"][0], NOW_MS)["tree"]
    assert (part["part"], part["nodes"], part["beside"]) == (0, 0, 0)
    hands.call("a", subscribe("x > 5 AND y = 'b'"))
    hands.grow()
    [part] = standing(hands.at["a"][0], NOW_MS)["tree"]
    assert part["version"] == [1, 1] and part["nodes"] + part["beside"] > 0


def test_who_spares_a_broker_work_is_told() -> None:
    """Volunteers while they are there, and the filters that wait for them; or the set that is given out."""
    rounds = Hands(line("ab"), methods=Methods("rematch", "table", "covering+rto(10)"))
    rounds.call("a", subscribe("x > 5"), Assist("ann", "a", 60_000), Assist("bob", "a", 1_000))
    told = standing(rounds.at["a"][0], NOW_MS)["offloading"]
    assert told == {"a": {"placed": 1, "waiting": 0, "volunteers": 2}}
    rounds.call("a", subscribe("x > 6", id_="two"))
    told = standing(rounds.at["a"][0], NOW_MS + 1_000)["offloading"]
    assert told == {"a": {"placed": 1, "waiting": 1, "volunteers": 1}}
    fixed = Hands(line("ab"), methods=Methods("rematch", "table", "covering+ff(1)"))
    fixed.call("a", subscribe("x > 5"), subscribe("x > 6", id_="two"), AskSet("ann", "a"))
    assert standing(fixed.at["a"][0], NOW_MS)["offloading"] == {"a": {"placed": 2, "fixed": 1, "left": 1}}
    assert standing(Hands(line("ab")).at["a"][0], NOW_MS)["offloading"] == {}


def test_rates_are_those_of_the_last_seconds() -> None:
    """A burst is over in the short window, and still seen in the long one."""
    rates = Rates(0.0)
    for second in range(1, 101):
        told = rates.over(float(second), {"accepted": min(second, 50) * 10, "delivered": second})
    assert told == {"10s": {"accepted": 0.0, "delivered": 1.0}, "60s": {"accepted": 1.667, "delivered": 1.0}}


def test_a_young_job_has_a_rate_at_once() -> None:
    """Over its own life, of a second at least."""
    assert Rates(5.0).over(5.1, {"accepted": 7})["60s"] == {"accepted": 7.0, "delivered": 0.0}


@given(st.lists(st.tuples(st.floats(0.2, 9), st.integers(0, 1_000)), min_size=1, max_size=100))
def test_rates_lie_between_those_of_the_parts(steps: list[tuple[float, int]]) -> None:
    """Whatever the pauses between samples: no rate is above the fastest step, and nothing is kept long."""
    rates, now_s, count = Rates(0.0), 0.0, 0
    fastest = 0.0
    for passed_s, more in steps:
        now_s, count = now_s + passed_s, count + more
        fastest = max(fastest, more / min(passed_s, 1.0))
        told = rates.over(now_s, {"accepted": count})
        for window in told.values():
            assert 0 <= window["accepted"] <= fastest + 0.001
    assert all(at_s >= now_s - max(WINDOWS_S) for at_s, _ in list(rates._samples)[1:])
    if now_s <= min(WINDOWS_S):
        assert told["10s"]["accepted"] == pytest.approx(count / max(now_s, 1.0), abs=0.001)
