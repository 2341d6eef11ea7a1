"""The modelled network keeps the promises that the real one makes, and breaks those that it does not."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from branchline.ops.simulation.runner import Record
from branchline.ops.simulation.setting import Faults, Setting
from branchline.ops.simulation.world import World
from branchline.routing.checking import check
from branchline.routing.control import Identity, Operation, Request, Status
from branchline.routing.history import (
    Acked,
    Entry,
    Lapsing,
    Published,
    Read,
    Settled,
    Steady,
    Unsteady,
    Wrote,
)
from branchline.routing.overlay.topology import founded, link
from branchline.routing.prefix.header import decode
from branchline.routing.prefix.optimizer import Settings

ANN = Identity("a", "ann", "one")
TRIO = founded("abc", [link("a", "b"), link("b", "c"), link("a", "c", 3)])
JOBS = (("a",), ("b",), ("c",))
WORST = Faults(400, lost=0.3, doubled=0.5, crashes=0.3, restarts=0.1, updates_lost=0.3)


def a_world(seed: int = 1, *, faults: Faults | None = None, **changes: object) -> World:
    setting = Setting(TRIO, JOBS, faults=faults or Faults())
    return World(replace(setting, **changes), seed)  # type: ignore[arg-type]


def subscribe(
    world: World, filter_: str = "TRUE", request: str = "r1", lease_ms: int | None = None, home: str = "a"
) -> None:
    world.ask(
        Request(Operation.SUBSCRIBE, "ann", "one", home, filter=filter_, request=request, lease_ms=lease_ms)
    )


def renew(world: World, request: str) -> None:
    world.ask(Request(Operation.RENEW, "ann", "one", "a", request=request, lease_ms=60_000))


def entries(world: World, *kinds: type) -> list[Entry]:
    return [entry for entry in world.history if isinstance(entry, kinds)]


def acks(world: World) -> list[Status]:
    return [entry.status for entry in world.history if isinstance(entry, Acked)]


# What is noted


def test_a_quiet_world_tells_what_happened_in_order() -> None:
    """The request, its acks, the event, the read, and that all is settled and steady."""
    world = a_world()
    subscribe(world, "x = 1")
    world.settle()
    event = world.publish("c", {"x": 1}, "k")
    world.settle()
    quiet: list[Entry] = [Settled(), Steady()]
    assert world.history == [
        Wrote(ANN, "sql", "x = 1", "r1"),
        Acked(ANN, Status.ACCEPTED, "r1"),
        Acked(ANN, Status.IN_FORCE, "r1"),
        *quiet,
        Published(event, {"x": 1}, ("c", "k")),
        Read("ann", event),
        *quiet,
    ]
    assert world.failures == []


def test_a_lease_that_may_be_over_is_noted_before_it_can_be() -> None:
    """At the moment at which the home could at the earliest hold it to be over."""
    world = a_world()
    subscribe(world, lease_ms=1_000)
    world.settle()
    world.advance(world.now_ms + 5_000)
    world.settle()
    kinds = [type(entry) for entry in entries(world, Lapsing, Acked)]
    assert kinds == [Acked, Acked, Lapsing, Acked]
    assert acks(world)[-1] is Status.EXPIRED


def test_a_change_of_the_topology_is_unsteady_until_everybody_has_it() -> None:
    """It ends where the network is quiet and all brokers have the newest one."""
    world = a_world()
    world.propose(TRIO.linked("a", "c", 1))
    assert entries(world, Unsteady, Steady) == [Unsteady()]
    world.settle()
    assert entries(world, Unsteady, Steady) == [Unsteady(), Steady()]
    for name, runner in world.at.items():
        assert runner.shards[0].brokers[name].topology == world.topology


def test_a_network_that_is_not_quiet_is_a_failure() -> None:
    """Something that goes on for ever is told, not waited for."""
    world = a_world()

    def again() -> None:
        world.later(1_000, again)

    again()
    world.settle()
    assert any("not quiet" in failure for failure in world.failures)


# Links


def arrivals(world: World, channel: tuple[str, ...], count: int, to: str | None) -> list[tuple[int, bool]]:
    """In which order records arrive that were written one after the other, and which of them again."""
    arrived: list[tuple[int, bool]] = []

    def record(number: int) -> Callable[[bool], None]:
        return lambda again: arrived.append((number, again))

    for number in range(count):
        world._carry(channel, record(number), to)
        world.advance(world.now_ms + 3)
    world.advance(world.now_ms + 10_000)
    return arrived


@pytest.mark.parametrize("to", [None, "b"])
def test_a_link_loses_nothing_and_keeps_the_order_of_each_writer(to: str | None) -> None:
    """Whatever it does, the first copies arrive in the order in which they were written; some come twice."""
    world = a_world(faults=WORST)
    arrived = arrivals(world, ("one", "topic"), 200, to)
    assert [number for number, again in arrived if not again] == list(range(200))
    doubled = [number for number, again in arrived if again]
    assert 60 < len(doubled) < 140
    assert len(set(doubled)) == len(doubled)
    assert world.counts["doubled"] == len(doubled)
    assert 30 < world.counts["lost_and_resent"] < 90
    assert world._flying == ({} if to is None else {"b": 0})


def test_a_client_that_tries_again_writes_twice_in_a_row() -> None:
    """Between brokers the second may come after others, from a client it does not."""
    world = a_world(faults=WORST)
    arrived = [number for number, _ in arrivals(world, ("clients", "topic"), 200, None)]
    assert arrived == sorted(arrived)
    arrived = [number for number, _ in arrivals(world, ("job", "topic"), 200, "b")]
    assert arrived != sorted(arrived)


def test_a_calm_link_only_takes_its_time() -> None:
    """Nothing is doubled or lost, and nothing takes longer than the delay."""
    world = a_world(faults=Faults(delay_ms=50))
    assert arrivals(world, ("one", "topic"), 50, "b") == [(number, False) for number in range(50)]
    assert not world.counts["doubled"] + world.counts["lost_and_resent"]


# Jobs


def run_with(faults: Faults, seed: int = 3, shards: int = 2) -> World:
    """Subscribers at all brokers, then a hundred events at all of them."""
    world = a_world(seed, faults=faults, shards=shards)
    for count, home in enumerate("abc"):
        world.ask(Request(Operation.SUBSCRIBE, f"s{count}", "one", home, filter="x > 1", request=f"r{count}"))
    world.settle()
    for count in range(100):
        world.publish("abc"[count % 3], {"x": count % 4}, f"k{count % 5}")
        world.advance(world.now_ms + 7)
    world.settle()
    return world


def test_a_batch_that_crashes_is_run_again_and_its_outputs_are_marked() -> None:
    """Some are written twice, and then the second is marked as a possible repeat; nothing is lost."""
    world = run_with(Faults(crashes=0.3))
    assert world.counts["crashes"] > 20
    verdict = check(world.history)
    assert verdict.clean, verdict.describe()
    assert verdict.owed == 150
    assert verdict.reads > 150
    assert any(isinstance(entry, Read) and entry.repeat for entry in world.history)
    assert check(world.history, repeats="none").duplicated, "they really are repeats"


def test_exactly_once_a_crash_leaves_no_trace() -> None:
    """Nothing was written, so nothing is there twice, nor marked."""
    world = run_with(Faults(crashes=0.3, exactly_once=True))
    assert world.counts["crashes"] > 20
    assert check(world.history, repeats="none").clean
    assert not any(isinstance(entry, Read) and entry.repeat for entry in world.history)


def test_the_worst_of_everything_is_clean() -> None:
    """All faults at their highest."""
    world = run_with(WORST)
    assert check(world.history).clean
    assert world.failures == []


def test_a_job_that_starts_anew_goes_on_where_it_was() -> None:
    """After every step, from its log or from a snapshot of it."""
    world = a_world(shards=2)
    subscribe(world)
    for _ in range(200):
        world.advance(world.now_ms + 2)
        for runner in world.runners:
            if runner.is_idle():
                runner.restore()
    world.publish("c", {})
    world.settle()
    assert Acked(ANN, Status.IN_FORCE, "r1") in world.history
    assert len(entries(world, Read)) == 1


def test_events_of_one_key_stay_in_one_shard_and_in_order() -> None:
    """With a key it is the key's, without one the partition's."""
    world = a_world(shards=3, partitions=2)
    runner = world.runners[0]
    for key in ("k1", "k2", None):
        shards = {runner._shard_of(Record(number, key, {}), partition=1) for number in range(20)}
        assert len(shards) == 1


def test_between_brokers_content_may_be_noise() -> None:
    """Where an event enters it is what was published; afterwards nobody can tell what it was."""
    record = Record(0, None, {"x": 1})
    assert record.attributes() == {"x": 1}
    assert "x" not in replace(record, noisy=True).attributes()
    world = a_world(noise=True)
    subscribe(world, "x = 1")
    world.settle()
    world.publish("c", {"x": 1})
    world.settle()
    assert [copy[0] for copy in world.copies] == [0, 0]
    assert len(entries(world, Read)) == 1, "it was found for certain: nobody had to look"
    subscribe(world, "x = 1 AND x < y", "r2")
    world.settle()
    world.publish("c", {"x": 1, "y": 2})
    world.settle()
    assert len(world.copies) == 4
    assert check(world.history).lost, "what the last broker has to look at is noise"


def test_copies_are_written_down_with_their_headers() -> None:
    """From where, to whom, and bytes that can be read again."""
    world = a_world()
    subscribe(world)
    world.settle()
    event = world.publish("c", {})
    world.settle()
    assert [copy[:3] for copy in world.copies] == [(event, "c", "b"), (event, "b", "a")]
    headers = [decode(copy[3]) for copy in world.copies]
    assert [header.hops for header in headers if header] == [1, 2]


# Operators


def test_a_newcomer_joins_and_is_a_broker_like_the_others() -> None:
    """Its job starts without a topology, and ends knowing everything."""
    world = a_world(faults=WORST)
    subscribe(world)
    world.settle()
    world.join("d", {"c": 1}, "main")
    event = world.publish("d", {})
    world.settle()
    assert world.failures == []
    assert any(isinstance(entry, Read) and entry.event == event for entry in world.history)
    assert check(world.history).clean


def test_leaving_takes_two_topologies() -> None:
    """In the first it is leaving, in the second it has gone; its subscriptions are ended."""
    world = a_world()
    subscribe(world)
    world.settle()
    world.leave("a")
    assert entries(world, Lapsing) == [Lapsing(ANN)]
    world.settle()
    assert world.topology.number == 3
    assert world.topology.retired == (("a", 0),)
    assert acks(world)[-1] is Status.ENDED
    assert check(world.history).clean
    assert world.failures == []


def test_a_renewal_on_its_way_does_not_save_a_subscription_whose_home_leaves() -> None:
    """It may be renewed before the home hears of it; that it ends all the same is no loss."""
    world = a_world(faults=Faults(delay_ms=400), seed=2)
    subscribe(world, lease_ms=60_000)
    world.settle()
    for count in range(20):
        renew(world, f"n{count}")
    world.leave("a")
    world.advance(world.now_ms + 300)
    world.settle()
    world.publish("b", {})
    world.settle()
    statuses = acks(world)
    assert Status.RENEWED in statuses
    assert statuses[-1] in (Status.ENDED, Status.REFUSED)
    verdict = check(world.history)
    assert verdict.clean, verdict.describe()


def test_proposals_wait_for_each_other() -> None:
    """The next is asked for when the one before was accepted."""
    world = a_world(faults=WORST)
    for cost in (4, 5, 6):
        world.propose(world.topology.linked("a", "b", cost))
    world.settle()
    assert world.topology.number == 4
    assert world.failures == []
    assert world.counts["topologies"] == 3


# The Tree Optimizer


def test_the_tree_optimizer_hears_of_filters_and_tells_all_jobs() -> None:
    """An update for every job, as soon as the tree differs enough."""
    world = a_world(trees=Settings(threshold=0.0))
    subscribe(world, "x = 1")
    world.settle()
    assert world.counts["updates"] == 1
    assert world.counts["updates_applied"] == 3
    assert [clock for _, clock in world.optimizer.clocks] == [1]
    assert {runner.shards[0].trees.vocabularies[0].version for runner in world.runners} == {(1, 1)}


def test_a_tree_optimizer_that_starts_anew_tells_its_tree() -> None:
    """In a new life; everybody takes it."""
    world = a_world(trees=Settings(threshold=0.0))
    subscribe(world, "x = 1")
    world.settle()
    world.optimizer.restart()
    world.settle()
    assert {runner.shards[0].trees.vocabularies[0].version.incarnation for runner in world.runners} == {2}


def test_updates_may_be_lost_and_a_snapshot_heals() -> None:
    """A job that misses one refuses the next; with the whole tree it is up to date again."""
    world = a_world(trees=Settings(threshold=0.0), faults=Faults(updates_lost=1.0))
    subscribe(world, "x = 1")
    world.settle()
    assert world.counts["updates_lost"] == 3
    world.setting = replace(world.setting, faults=Faults())
    subscribe(world, "x = 2", "r2")
    world.settle()
    assert world.counts["updates_gap"] == 3
    world.optimizer.tell_snapshot()
    world.settle()
    assert {runner.shards[0].trees.vocabularies[0].version for runner in world.runners} == {(1, 2)}
