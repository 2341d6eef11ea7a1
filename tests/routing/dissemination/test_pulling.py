"""CBCB: tables grow, shrink when somebody asks, and stand for all that is in force at any time."""

from collections import Counter, deque
from collections.abc import Iterator
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from table_filters import filters_in, sql

from branchline.routing.codes import Code
from branchline.routing.control import Ack, Identity, Operation, Request, Status
from branchline.routing.dissemination.links import Links
from branchline.routing.dissemination.pulling import Pull, Reply
from branchline.routing.dissemination.telling import Told
from branchline.routing.filters import Filter, covers
from branchline.routing.methods.naming import Methods
from branchline.routing.overlay.letters import Letter, Propose, Refresh
from branchline.routing.overlay.topology import Topology, founded, link
from branchline.routing.shard import Control, EventBatch, Job, Outputs, Shard, ShardState

NAMES = ("a", "b", "c", "d", "e")
TEXTS = ("x > 1", "x > 5", "x = 7", "y = 1", "x > 5 AND y = 1", "z = 'k'", "TRUE", "x BETWEEN 2 AND 3")
FILTERS: dict[str, list[Filter]] = {text: filters_in(sql(text)) for text in TEXTS}
LINE = founded(["a", "b", "c"], [link("a", "b"), link("b", "c")])


class Overlay:
    """A job for each broker; letters keep the order of their link, and some come again much later."""

    def __init__(self, topology: Topology, seed: int, dissemination: str = "cbcb") -> None:
        self.topology, self.random, self.now_ms = topology, Random(seed), 1_000
        methods = Methods("rematch", "table", dissemination)
        self.jobs = {each.name: Job((each.name,), topology, methods=methods) for each in topology.members}
        self.shards = {name: Shard(job, 0) for name, job in self.jobs.items()}
        self.logs: dict[str, list[ShardState]] = {name: [] for name in self.jobs}
        self.mail: dict[tuple[str, str], deque[Letter]] = {}
        self.sent: list[Letter] = []
        self.acks: list[Ack] = []
        self.counts: Counter[str] = Counter()
        self.standing: dict[Identity, str] = {}
        self.in_force: set[Identity] = set()

    def begin(self) -> None:
        """Let all brokers tell each other that nothing is wanted."""
        for name in self.shards:
            self.call(name, Request(Operation.UNSUBSCRIBE, "nobody", "one", name))
        self.settle()

    def call(self, name: str, *control: Control) -> Outputs:
        self.now_ms += 1
        outputs = self.shards[name].handle(self.now_ms, [], control, EventBatch())
        if outputs.changed is not None:
            self.logs[name].append(outputs.changed)
        for letter in outputs.letters:
            self.mail.setdefault((letter.sender, letter.to), deque()).append(letter)
            self.sent.append(letter)
        for ack in outputs.acks:
            if ack.status is Status.IN_FORCE and ack.subscriber is not None and ack.id is not None:
                identity = Identity(ack.home, ack.subscriber, ack.id)
                if identity in self.standing:
                    self.in_force.add(identity)
        self.acks += outputs.acks
        self.counts.update(outputs.counts)
        return outputs

    def step(self, doubled: float = 0.0) -> bool:
        ways = sorted(way for way, letters in self.mail.items() if letters)
        if self.sent and self.random.random() < doubled:
            again = self.random.choice(self.sent)
            self.call(again.to, again)
        if not ways:
            return False
        way = self.random.choice(ways)
        taken = self.random.randint(1, len(self.mail[way]))
        self.call(way[1], *(self.mail[way].popleft() for _ in range(taken)))
        return True

    def settle(self) -> None:
        while self.step():
            pass

    def subscribe(self, identity: Identity, text: str) -> None:
        self.standing[identity] = text
        self.in_force.discard(identity)
        self.call(
            identity.home,
            Request(Operation.SUBSCRIBE, identity.subscriber, identity.id, identity.home, filter=text),
        )

    def unsubscribe(self, identity: Identity) -> None:
        del self.standing[identity]
        self.in_force.discard(identity)
        self.call(
            identity.home, Request(Operation.UNSUBSCRIBE, identity.subscriber, identity.id, identity.home)
        )

    def change(self) -> None:
        home = self.random.choice(sorted(self.shards))
        identity = Identity(home, f"s-{home}", self.random.choice(("one", "two", "three")))
        if identity in self.standing and self.random.random() < 0.6:
            self.unsubscribe(identity)
        else:
            self.subscribe(identity, self.random.choice(TEXTS))

    def refresh(self, name: str, request: str | None = None, *, give_up: bool = False) -> Outputs:
        return self.call(name, Refresh(name, 5_000, request, give_up))

    def links(self, name: str) -> Links:
        links = self.shards[name].brokers[name].links
        assert links is not None
        return links

    def tables(self) -> Iterator[tuple[str, str, set[Filter]]]:
        """For each link of each broker, what it knows to be wanted there."""
        for name, shard in self.shards.items():
            for neighbour in shard.brokers[name].position.routes.behind:
                yield name, neighbour, set(self.links(name).wanted(neighbour))

    def behind(self, name: str, neighbour: str, among: set[Identity]) -> list[Filter]:
        routes = self.shards[name].brokers[name].position.routes
        homes, numbers = routes.behind[neighbour], routes.numbers
        there = [each for each in sorted(among) if homes >> numbers[each.home] & 1]
        return [filter_ for each in there for filter_ in FILTERS[self.standing[each]]]

    def check_covered(self) -> None:
        """All that is in force is stood for at every broker."""
        for name, neighbour, table in self.tables():
            for each in self.behind(name, neighbour, self.in_force):
                assert any(covers(wider, each) for wider in table), (name, neighbour, each)


def some_topology(random: Random) -> Topology:
    names = NAMES[: random.randint(2, len(NAMES))]
    return founded(names, {link(names[at], random.choice(names[:at])) for at in range(1, len(names))})


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from(["cbcb", "cbcb", "cbcb+merging"]))
def test_whatever_is_in_force_is_stood_for_at_every_moment(seed: int, strategy: str) -> None:
    """While subscriptions come and go, brokers ask and give up, and letters come again much later."""
    random = Random(seed)
    overlay = Overlay(some_topology(random), seed, strategy)
    for _ in range(20):
        overlay.change()
        if random.random() < 0.4:
            overlay.refresh(random.choice(sorted(overlay.shards)), give_up=random.random() < 0.3)
        for _ in range(random.randint(0, 4)):
            overlay.step(doubled=0.2)
            overlay.check_covered()
    overlay.settle()
    assert overlay.in_force == overlay.standing.keys(), "who waits gets an answer"
    overlay.check_covered()


@settings(max_examples=40)
@given(st.integers(0, 10**6))
def test_a_refresh_leaves_what_is_wanted(seed: int) -> None:
    """At the issuer, and on all links that lead away from it: all of it, and nothing that is gone."""
    random = Random(seed)
    overlay = Overlay(some_topology(random), seed)
    for _ in range(15):
        overlay.change()
        overlay.step()
    overlay.settle()
    issuer = random.choice(sorted(overlay.shards))
    overlay.refresh(issuer, "f1")
    overlay.settle()
    assert [ack.status for ack in overlay.acks if ack.request == "f1"] == [Status.ACCEPTED, Status.REFRESHED]
    for name, neighbour, table in overlay.tables():
        hops = overlay.shards[name].brokers[name].position.routes.hops
        if name == issuer or hops[issuer] != neighbour:
            assert table <= set(overlay.behind(name, neighbour, set(overlay.standing))), (name, neighbour)
    overlay.check_covered()


@settings(max_examples=30)
@given(st.integers(0, 10**6))
def test_without_a_refresh_tables_only_grow(seed: int) -> None:
    """But for the everything that stands for whoever has told nothing yet."""
    random = Random(seed)
    overlay = Overlay(some_topology(random), seed)
    overlay.begin()
    before = {(name, to): table for name, to, table in overlay.tables()}
    assert not any(before.values()), "what was unknown is taken back"
    wishes = [text for text in TEXTS if text != "TRUE"]
    for _ in range(12):
        home = random.choice(sorted(overlay.shards))
        identity = Identity(home, "s", random.choice(("one", "two")))
        if identity in overlay.standing:
            overlay.unsubscribe(identity)
        else:
            overlay.subscribe(identity, random.choice(wishes))
        overlay.settle()
        now = {(name, to): table for name, to, table in overlay.tables()}
        assert all(before[way] <= now[way] for way in now)
        before = now
    told = [letter.body for letter in overlay.sent if isinstance(letter.body, Told)]
    assert all(each.wanted.removed in ((), ((),)) for each in told)


@settings(max_examples=30)
@given(st.integers(0, 10**6))
def test_facts_make_equal_brokers(seed: int) -> None:
    """Those that were written down and those of a snapshot, whatever is under way; then both do the same."""
    random = Random(seed)
    overlay = Overlay(some_topology(random), seed)
    for _ in range(random.randint(1, 12)):
        overlay.change()
        if random.random() < 0.5:
            overlay.refresh(random.choice(sorted(overlay.shards)), f"f{random.randrange(3)}")
        for _ in range(random.randint(0, 4)):
            overlay.step()
    for name, shard in overlay.shards.items():
        state = shard.state()
        waiting = [letter for way, letters in overlay.mail.items() if way[1] == name for letter in letters]
        control = [*waiting, Refresh(name, 1, "g", give_up=random.random() < 0.5)]
        again = [Shard(overlay.jobs[name], 0, log) for log in (overlay.logs[name], [state])]
        assert all(each.state() == state for each in again)
        now_ms = overlay.now_ms + 1
        expected = shard.handle(now_ms, [], control, EventBatch())
        for each in again:
            outputs = each.handle(now_ms, [], control, EventBatch())
            assert outputs.letters == expected.letters
            assert outputs.acks == expected.acks
            assert outputs.changed == expected.changed


def told_by(overlay: Overlay, sender: str, to: str) -> list[type]:
    return [type(letter.body) for letter in overlay.sent if (letter.sender, letter.to) == (sender, to)]


def test_whoever_waits_no_longer_replies_with_what_it_has() -> None:
    """A broker that never replies holds nobody up for ever; what it says late does no harm, and good."""
    overlay = Overlay(LINE, 1)
    overlay.begin()
    identity = Identity("c", "s", "one")
    overlay.subscribe(identity, "x > 1")
    overlay.settle()
    overlay.unsubscribe(identity)
    overlay.settle()
    assert set(overlay.links("a").wanted("b")) == set(FILTERS["x > 1"])
    overlay.refresh("a", "f1")
    overlay.call("b", *overlay.mail.pop(("a", "b")))
    late = overlay.mail.pop(("b", "c"))
    assert not overlay.step(), "b waits for c, and a for b"
    overlay.refresh("b", "g1", give_up=True)
    overlay.settle()
    (done,) = (ack for ack in overlay.acks if ack.status is Status.REFRESHED)
    assert (done.request, done.note) == ("f1", "1 filters of neighbours before, 1 now")
    overlay.refresh("a", "f1")
    assert not overlay.step(), "what was done is not begun again"
    assert overlay.acks[-1].status is Status.REFRESHED
    overlay.call("c", *late)
    overlay.settle()
    assert not overlay.links("b").wanted("c"), "the late reply has told it"
    assert overlay.links("a").wanted("b"), "and was for nobody else"
    overlay.refresh("a", "f2")
    overlay.settle()
    assert not overlay.links("a").wanted("b")
    assert overlay.counts["told_inflated"] >= 2 and overlay.counts["told_deflated"] == 2
    assert told_by(overlay, "c", "b")[-3:] != [Reply, Reply, Reply], "what is taken back is told before"


def test_the_issuer_says_who_did_not_reply() -> None:
    """In the answer to whoever has asked."""
    overlay = Overlay(LINE, 1)
    overlay.begin()
    overlay.refresh("b", "f1")
    (asked,) = overlay.mail.pop(("b", "c"))
    assert isinstance(asked.body, Pull)
    overlay.settle()
    overlay.refresh("b", give_up=True)
    assert overlay.acks[-1].note == "0 filters of neighbours before, 0 now; no reply from c"


def test_another_topology_ends_requests_and_their_issuer_asks_again() -> None:
    """So whoever waits gets an answer, and what was asked under the old one is let lie."""
    overlay = Overlay(LINE, 3)
    overlay.begin()
    overlay.refresh("a", "f1")
    old = list(overlay.mail[("a", "b")])
    overlay.call("b", *overlay.mail.pop(("a", "b")))
    overlay.call("a", Propose(LINE.linked("a", "c", 1), "t"))
    overlay.settle()
    assert [ack.status for ack in overlay.acks if ack.request == "f1"] == [Status.ACCEPTED, Status.REFRESHED]
    assert not overlay.call("b", *old).letters


def test_two_who_ask_one_broker_are_both_answered() -> None:
    """The second asks anew, since something may have gone since; the first waits for that, too."""
    overlay = Overlay(LINE, 1)
    overlay.begin()
    overlay.refresh("a", "f1")
    overlay.refresh("a", "f2")
    overlay.refresh("a", "f2")
    overlay.settle()
    done = [ack.request for ack in overlay.acks if ack.status is Status.REFRESHED]
    assert done == ["f1", "f2"]
    assert overlay.counts["requests_answered"] <= 5


def test_a_refresh_is_refused_where_it_means_nothing() -> None:
    """With another dissemination, and for a broker that is not there."""
    for dissemination in ("covering", "simple"):
        overlay = Overlay(LINE, 1, dissemination)
        (ack,) = overlay.refresh("a", "f1").acks
        assert ack.rejection is not None and ack.rejection.code is Code.CONTROL_OPERATION
    (ack,) = Overlay(LINE, 1).call("a", Refresh("z", 1, "f1")).acks
    assert ack.rejection is not None and ack.rejection.code is Code.HOME_UNKNOWN
