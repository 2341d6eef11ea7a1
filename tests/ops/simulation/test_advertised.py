"""Publishers that advertise: nobody misses what was let in, and what is not advertised is refused."""

from collections import Counter

import pytest
from overlay_rebuilds import lose_states

from branchline.ops.simulation.scripts import play_all
from branchline.ops.simulation.setting import Faults, Setting
from branchline.ops.simulation.world import World
from branchline.routing.checking import check
from branchline.routing.control import Operation, Request
from branchline.routing.dissemination.adverts import Advertised, Adverts
from branchline.routing.history import Verdict
from branchline.routing.methods.naming import Methods
from branchline.routing.overlay.topology import founded, link

STEPS = 25
LINGER_S = 30
LINE = founded("abcd", [link("a", "b"), link("b", "c"), link("c", "d")])
SLOW = Faults(delay_ms=400, lost=0.4, doubled=0.2)


def methods(dissemination: str) -> Methods:
    return Methods("rematch", "table", dissemination, batches_from=None)


@pytest.mark.parametrize(
    ("dissemination", "seeds"),
    [
        (f"covering+advertised({LINGER_S})", range(12)),
        (f"identity+advertised({LINGER_S})", range(100, 104)),
        (f"covering+imperfect(30)+advertised({LINGER_S})", range(200, 204)),
        ("covering+advertised-counted", range(300, 304)),
    ],
)
def test_scripts_with_advertisements_are_clean(dissemination: str, seeds: range) -> None:
    """Advertisements that overlap, are replaced and end, with all the faults there are.

    Whatever is published under one that is in force is let in and arrives; what nobody has advertised is
    refused, or only counted.
    """
    wrong, counts = play_all(seeds, STEPS, methods=methods(dissemination))
    assert not wrong, "\n\n".join(wrong[:3])
    needed = ["crashes", "adverts_in-force", "adverts_replaced", "adverts_ended", "events_unadvertised"]
    if "counted" not in dissemination:
        needed += ["told_unadvertised", "events_refused"]
    assert {name: counts[name] for name in needed if not counts[name]} == {}
    assert bool(counts["events_refused"]) != ("counted" in dissemination)


def test_scripts_with_advertisements_are_clean_where_all_that_enters_is_routed_as_batches() -> None:
    """What is let in is found by an index, and the rest is refused all the same."""
    batches = Methods(dissemination=f"covering+advertised({LINGER_S})", batches_from=0)
    wrong, counts = play_all(range(400, 403), STEPS, methods=batches)
    assert not wrong, "\n\n".join(wrong[:3])
    assert counts["events_refused"] and counts["content_matches"]


def test_scripts_with_advertisements_are_clean_when_states_are_lost() -> None:
    """A job that is made anew from what it recorded lets in what was advertised, and pulls what it needs."""
    with pytest.MonkeyPatch.context() as patch:
        rebuilds = lose_states(patch)
        wrong, counts = play_all(range(10), STEPS, methods=methods(f"covering+advertised({LINGER_S})"))
        assert not wrong, "\n\n".join(wrong[:3])
        assert rebuilds() > 10 and counts["adverts_in-force"]


class Churn:
    """A line of brokers with a subscriber at one end; at the other end a publisher advertises and ends."""

    def __init__(self, seed: int, linger_s: int) -> None:
        chosen = methods(f"covering+advertised({linger_s})")
        self.world = World(Setting(LINE, tuple("abcd"), methods=chosen, faults=SLOW, batch_ms=50), seed)
        self.requests = 0

    def request(self, operation: Operation, name: str, home: str, filter_: str = "") -> Request:
        self.requests += 1
        return Request(operation, name, "one", home, filter=filter_, request=f"r{self.requests}")

    def play(self, rounds: int) -> Verdict:
        world = self.world
        world.ask(self.request(Operation.SUBSCRIBE, "ann", "d", "x > 3"))
        world.settle()
        for _ in range(rounds):
            world.advertise(self.request(Operation.ADVERTISE, "shop", "a", "x > 1"))
            self._publish(20, every_ms=300)
            self._publish(20, every_ms=10)
            world.advertise(self.request(Operation.UNADVERTISE, "shop", "a"))
            world.advance(world.now_ms + 100)
            # Something that is read after that: by then what need not linger is withdrawn.
            world.advertise(self.request(Operation.UNADVERTISE, "nobody", "a"))
            self._publish(5, every_ms=200)
        world.settle()
        assert world.failures == []
        return check(world.history)

    def _publish(self, count: int, every_ms: int) -> None:
        for _ in range(count):
            self.world.publish("a", {"x": 5})
            self.world.advance(self.world.now_ms + every_ms)


def churned(linger_s: int, seeds: range) -> tuple[Counter[str], int]:
    """What was counted, and how many events were lost that should not."""
    counts: Counter[str] = Counter()
    lost = 0
    for seed in seeds:
        churn = Churn(seed, linger_s)
        lost += len(churn.play(4).lost)
        counts.update(churn.world.counts)
    return counts, lost


def test_events_on_their_way_arrive_though_the_advertisement_has_ended() -> None:
    """What is let in arrives, since what has ended lingers; taken back at once, some would be lost."""
    counts, lost = churned(LINGER_S, range(4))
    assert lost == 0
    assert counts["events_refused"] and counts["copies"] > 100
    _, lost = churned(0, range(4))
    assert lost, "without lingering the same scripts lose events"


def test_an_advertisement_that_is_pending_lets_nothing_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it did, subscriptions that it has yet to pull would miss events."""
    monkeypatch.setattr(
        Adverts,
        "_in_force",
        lambda self: (each for each in self._changes.values() if isinstance(each, Advertised)),
    )
    counts, lost = churned(LINGER_S, range(4))
    assert counts["copies"] and lost


def told(dissemination: str) -> tuple[int, int]:
    """How many filters brokers were told in all, and how many events arrived."""
    world = World(Setting(LINE, tuple("abcd"), methods=methods(dissemination)), 1)
    for number in range(12):
        home = "bcd"[number % 3]
        asked = Request(
            Operation.SUBSCRIBE, f"s{number}", "one", home, filter=f"x = {number}", request=f"r{number}"
        )
        world.ask(asked)
    for home, filter_ in (("a", "x < 3"), ("d", "x BETWEEN 2 AND 4")):
        world.advertise(
            Request(Operation.ADVERTISE, "shop", "one", home, filter=filter_, request=f"advert {home}")
        )
    world.settle()
    for number in range(5):
        world.publish("a" if number < 3 else "d", {"x": number})
    world.settle()
    verdict = check(world.history)
    assert verdict.clean and verdict.owed == 5
    brokers = (runner.shards[0].brokers[name] for name, runner in world.at.items())
    return sum(len(broker.links or ()) for broker in brokers), verdict.reads


def test_brokers_are_told_fewer_filters_and_nobody_misses_anything() -> None:
    """The same subscriptions and events, with advertisements and without."""
    with_them, reads = told(f"identity+advertised({LINGER_S})")
    without, same = told("identity+advertised-counted")
    assert reads == same == 5
    assert with_them < without / 2
