"""A job made anew from what it recorded is the job that it was, as far as anybody can tell."""

import os
from dataclasses import replace

import overlay_rebuilds
import pytest
from overlay_hands import NOW_MS, Hands, line, subscribe, unsubscribe

from branchline.ops.simulation.scripts import play, play_all
from branchline.routing.control import Ended, Identity, Number, Operation, Request, Status, Subscribed
from branchline.routing.limits import ENDED_REMEMBERED_MS, REQUESTS_REMEMBERED
from branchline.routing.overlay.broker import Broker
from branchline.routing.overlay.letters import Complete, Report
from branchline.routing.overlay.rebuilding import Rebuilt, Recorded, rebuild
from branchline.routing.overlay.topology import Topology, founded, link
from branchline.routing.shard import Control, Job, Shard

STEPS = 40
SEEDS = range(
    {"everyday": 25, "thorough": 60, "soak": 4_000}.get(os.environ.get("HYPOTHESIS_PROFILE", ""), 25)
)
ANN = Identity("a", "ann", "one")
LONE = Job(("a",), founded("a"))


class Lone:
    """A broker alone, and what it has recorded."""

    def __init__(self) -> None:
        self.shard, self.recorded, self.now_ms = Shard(LONE, 0), Recorded(), NOW_MS

    def ask(self, *control: Control) -> list[Status]:
        outputs = self.shard.handle(self.now_ms, [], control, overlay_rebuilds.NO_EVENTS)
        for change in outputs.filters:
            self.recorded.add(change)
        # What it tells itself comes in the next call.
        more = self.ask(*outputs.letters) if outputs.letters else []
        return [ack.status for ack in outputs.acks] + more

    def rebuild(self) -> Rebuilt:
        rebuilt = rebuild(LONE, self.recorded, joined=True, in_force=set(), now_ms=self.now_ms)
        self.shard = Shard(LONE, 0, [rebuilt.state])
        return rebuilt

    @property
    def broker(self) -> Broker:
        return self.shard.brokers["a"]

    def stands(self) -> Subscribed | None:
        found = self.broker.table.find(ANN)
        return found if isinstance(found, Subscribed) else None


def test_random_worlds_stay_clean_though_jobs_lose_their_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is lost, misrouted or stuck, whatever else goes wrong; leases, ends, joins, leaves and all."""
    rebuilds = overlay_rebuilds.lose_states(monkeypatch)
    wrong, counts = play_all(SEEDS, STEPS)
    assert not wrong, wrong[0]
    assert rebuilds() > 3 * len(SEEDS), "too few states were lost"
    assert min(counts[name] for name in ("topologies", "joins", "leaves", "acks_expired")) > 0


def forget_to_resume(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Broker, "resume", lambda self, now_ms, within: None)


def tell_nothing_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Broker, "_tell_pending_again", lambda self: None)


def join_for_ever(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(overlay_rebuilds, "joined", lambda broker: False)


@pytest.mark.parametrize("plant", [forget_to_resume, tell_nothing_again, join_for_ever])
def test_those_worlds_find_what_a_rebuild_leaves_out(
    plant: overlay_rebuilds.Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of these rules is needed: without it, some script is not clean."""
    plant(monkeypatch)
    overlay_rebuilds.lose_states(monkeypatch)
    assert not all(play(seed, STEPS).clean for seed in range(60))


def test_what_stands_has_its_filter_requests_and_lease() -> None:
    """A lease is neither begun anew nor forgotten, and ends by itself when it is over."""
    lone = Lone()
    lone.ask(subscribe("price < 5", lease_ms=10_000))
    before = lone.stands()
    lone.now_ms += 4_000
    lone.rebuild()
    assert lone.stands() == before is not None
    assert lone.shard.handle(lone.now_ms, [], [], overlay_rebuilds.NO_EVENTS).due_ms == NOW_MS + 10_000
    lone.now_ms += 7_000
    assert lone.ask() == [Status.EXPIRED]
    assert lone.stands() is None


def test_a_lease_that_was_over_at_the_time_expires() -> None:
    """Whether it was told to or not, nobody knows: it is told again."""
    lone = Lone()
    lone.ask(subscribe(lease_ms=1_000))
    lone.now_ms += 5_000
    lone.shard.handle(lone.now_ms, [], [], overlay_rebuilds.NO_EVENTS)  # told to expire; the letter is lost
    lone.rebuild()
    assert lone.stands()
    assert lone.ask() == [Status.EXPIRED]


def test_requests_that_are_read_again_change_nothing() -> None:
    """More than are remembered, replaced, ended: the last word stays the last, and answers are repeated."""
    lone = Lone()
    requests: list[Control] = [subscribe(f"price < {n}", f"r{n}") for n in range(3 * REQUESTS_REMEMBERED)]
    lone.ask(*requests)
    lone.rebuild()
    for start in (0, 5, len(requests) - REQUESTS_REMEMBERED, len(requests) - 1):
        lone.ask(*requests[start:])
        stands = lone.stands()
        assert stands and stands.filter == f"price < {len(requests) - 1}"
    lone.ask(unsubscribe("end"))
    lone.rebuild()
    assert lone.ask(requests[-1], unsubscribe("end")) == [Status.ENDED, Status.ENDED]
    assert lone.stands() is None


def test_what_ended_and_was_forgotten_is_not_known() -> None:
    """A tombstone is the end of it; what ended lately is remembered, and forgotten in its time."""
    lone = Lone()
    lone.ask(subscribe(), unsubscribe())
    lone.rebuild()
    assert isinstance(lone.broker.table.find(ANN), Ended)
    lone.now_ms += ENDED_REMEMBERED_MS
    lone.ask(Request(Operation.RENEW, "bob", "one", "a"))
    lone.rebuild()
    assert lone.broker.table.find(ANN) is None
    assert not lone.recorded.changes


def test_a_home_numbers_on_above_all_that_is_recorded() -> None:
    """Also if the clock was set back meanwhile."""
    lone = Lone()
    lone.ask(subscribe("price < 1", "r1"))
    before = lone.stands()
    lone.now_ms -= 3_600_000
    lone.rebuild()
    lone.ask(subscribe("price < 2", "r2"))
    after = lone.stands()
    assert before and after and after.number.incarnation > before.number.incarnation
    assert after.filter == "price < 2"


def test_records_of_a_batch_that_was_run_again_are_harmless() -> None:
    """An older record after a newer one, and a topology after a later one, say nothing."""
    one = Subscribed(ANN, Number(1, 1), "sql", "TRUE", ("r1",))
    two = replace(one, number=Number(1, 2), filter="price < 1")
    first = line("abc")
    later = first.linked("a", "c", 1)
    recorded = Recorded()
    for told in (one, two, replace(two, revision=1), one, two, later, first):
        recorded.add(told)
    assert recorded.changes == {ANN: replace(two, revision=1)}
    assert recorded.topology == later


def rebuilt_line(*, joined: bool, topology: Topology, known: bool) -> Rebuilt:
    """The job of b in a row of three, rebuilt with a subscription of its own and one of a."""
    recorded = Recorded()
    for home in "ab":
        recorded.add(Subscribed(Identity(home, "ann", home), Number(1, 1), "sql", "TRUE", (f"r-{home}",)))
    recorded.add(topology)
    in_force = {(Identity("b", "ann", "b"), Number(1, 1))} if known else set()
    return rebuild(Job(("b",), line("ab")), recorded, joined=joined, in_force=in_force, now_ms=NOW_MS)


def test_neighbours_outside_are_told_everything_and_homes_get_reports() -> None:
    """The topology first, then what is known, then that it is complete, unless it is not."""
    topology = founded("ab", [link("a", "b")]).joined("c", {"b": 1}, "main")
    rebuilt = rebuilt_line(joined=True, topology=topology, known=True)
    for neighbour in "ac":
        bodies = [letter.body for letter in rebuilt.letters if letter.to == neighbour]
        assert bodies[0] == topology
        assert isinstance(bodies[3], Complete)
        assert {each.identity.home for each in bodies[1:3] if isinstance(each, Subscribed)} == {"a", "b"}
    reports = [letter for letter in rebuilt.letters if isinstance(letter.body, Report)]
    assert [(letter.to, letter.body.home) for letter in reports if isinstance(letter.body, Report)] == [
        ("a", "a")
    ]
    assert (rebuilt.pending, rebuilt.filters, rebuilt.joining) == (0, [], False)


def test_what_nobody_knows_to_be_in_force_is_asked_about_again() -> None:
    """Under a higher revision, which is recorded; when all have reported, its requests are answered."""
    hands = Hands(line("ab"))
    recorded = Recorded()
    for change in hands.call("b", subscribe(home="b")).filters:
        recorded.add(change)
    hands.mail.clear()  # it was recorded, and then the state was lost
    rebuilt = rebuild(Job(("b",), line("ab")), recorded, joined=True, in_force=set(), now_ms=NOW_MS)
    assert rebuilt.pending == 1
    hands.at["b"] = [Shard(Job(("b",), line("ab")), 0, [rebuilt.state])]
    hands.mail += rebuilt.letters
    hands.acks.clear()
    hands.settle()
    assert [(ack.status, ack.request) for ack in hands.acks] == [(Status.IN_FORCE, "r1")]
    (again,) = [each for each in rebuilt.filters if isinstance(each, Subscribed)]
    assert again.revision == 1
    assert hands.publish("a", {"price": 1}) == ["ann"]


def test_a_job_of_which_nobody_had_joined_has_not_joined() -> None:
    """It says what it knows, and waits to be told the rest."""
    topology = founded("a").joined("b", {"a": 1}, "main")
    job = Job(("b",), None)
    recorded = Recorded()
    recorded.add(topology)
    for joined in (False, True):
        rebuilt = rebuild(job, recorded, joined=joined, in_force=set(), now_ms=NOW_MS)
        assert rebuilt.joining is not joined
        assert any(isinstance(letter.body, Complete) for letter in rebuilt.letters) is joined


def test_a_broker_that_is_leaving_ends_what_it_had_not_ended() -> None:
    """Another broker of the job may have heard of it first."""
    topology = line("ab").left("b")
    rebuilt = rebuilt_line(joined=True, topology=topology, known=True)
    assert [(ack.status, ack.home) for ack in rebuilt.acks] == [(Status.ENDED, "b")]
    assert [type(each) for each in rebuilt.filters] == [Ended]
