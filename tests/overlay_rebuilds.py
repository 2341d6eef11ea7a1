"""Simulated jobs that lose their state now and then, and are made anew from what they recorded on `filters`.

What a rebuild gets is no more than what the real one has: the records of `filters`, from where the control
and the events have to be read again (perhaps a batch too early), whether a broker of the job had joined,
some of the acks, and the copies that were held. The number of shards may change.
"""

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any, TypeAlias

import pytest

from branchline.ops.simulation.runner import Record, Runner, _Batch, _Result
from branchline.ops.simulation.world import World
from branchline.routing.control import Ack, Change, Identity, Number, Status
from branchline.routing.overlay.broker import Broker
from branchline.routing.overlay.rebuilding import Recorded, rebuild
from branchline.routing.overlay.topology import Topology
from branchline.routing.shard import EventBatch, Shard

Plant: TypeAlias = Callable[[pytest.MonkeyPatch], None]

NO_EVENTS = EventBatch()

SHARE = 0.7
"""Of all times that a job comes back, how often its state is lost."""

REBUILDS_MAX = 8
"""In one world: each brings many letters, whose batches would crash and bring more."""


def lose_states(patch: pytest.MonkeyPatch) -> Callable[[], int]:
    """From now on jobs lose their states; the function tells how many rebuilds there were."""
    recorded: dict[Runner, Recorded] = {}
    acked: dict[World, set[tuple[Identity, Number]]] = {}
    last: dict[Runner, _Batch] = {}
    count = 0
    record, ack, commit, restore = World.record, World.ack, Runner._commit, Runner.restore
    draws: dict[World, Random] = {}
    left: dict[World, int] = {}

    def record_and_fold(self: World, runner: Runner, change: Change | Topology) -> None:
        recorded.setdefault(runner, Recorded()).add(change)
        record(self, runner, change)

    def ack_and_note(self: World, told: Ack, handled_ms: int) -> None:
        if told.status is Status.IN_FORCE and told.number and told.subscriber and told.id:
            identity = Identity(told.home, told.subscriber, told.id)
            acked.setdefault(self, set()).add((identity, told.number))
        ack(self, told, handled_ms)

    def commit_and_keep(self: Runner, batch: _Batch, results: list[_Result]) -> None:
        last[self] = batch
        commit(self, batch, results)

    def restore_or_rebuild(self: Runner) -> None:
        nonlocal count
        # A source of its own, so that the script stays as it is.
        draw = draws.setdefault(self.world, Random(self.world.setting.shards))
        if draw.random() > SHARE or left.setdefault(self.world, REBUILDS_MAX) == 0:
            restore(self)
            return
        left[self.world] -= 1
        count += 1
        _read_again(self, last.get(self) if draw.random() < 0.5 else None)
        known = {each for each in sorted(acked.get(self.world, set())) if draw.random() < 0.5}
        _rebuild(self, recorded.setdefault(self, Recorded()), known, draw.randint(1, 3))

    patch.setattr(World, "record", record_and_fold)
    patch.setattr(World, "ack", ack_and_note)
    patch.setattr(Runner, "_commit", commit_and_keep)
    patch.setattr(Runner, "restore", restore_or_rebuild)
    return lambda: count


def _read_again(runner: Runner, before: _Batch | None) -> None:
    """Where the job goes on: with the batch that was not committed, or with that before it."""
    now = runner._batch
    batches = [each for each in (before, now) if each is not None]
    events = [
        (broker, partition, replace(record, repeat=True))
        for each in batches
        for broker, partition, record in each.events
    ]
    control = [message for each in batches for message in each.control]
    # The tree is told from the beginning of what is kept, of which nothing may be left.
    made = _Batch(runner.world.now_ms, [], control, events, ticked=True)
    made.attempts = now.attempts if now is not None else 0
    runner._batch = made


def _rebuild(runner: Runner, recorded: Recorded, known: set[tuple[Identity, Number]], shards: int) -> None:
    world = runner.world
    brokers = runner.shards[0].brokers
    rebuilt = rebuild(
        runner.job, recorded, joined=any(map(joined, brokers.values())), in_force=known, now_ms=world.now_ms
    )
    held = [
        (name, arrival)
        for shard in runner.shards
        for name, broker in shard.brokers.items()
        for arrival in broker.held
    ]
    runner.shards = [Shard(runner.job, index, [rebuilt.state]) for index in range(shards)]
    runner._logs = [[rebuilt.state] for _ in runner.shards]
    for change in rebuilt.filters:
        world.record(runner, change)
    for letter in rebuilt.letters:
        world.post(runner, letter)
    for ack in rebuilt.acks:
        world.ack(ack, world.now_ms)
    for name, arrival in held:
        content: Any = arrival.content
        assert isinstance(content, Record)
        runner.event("broker", name, replace(content, header=arrival.header, repeat=True))
    runner.wake()


def joined(broker: Broker) -> bool:
    return broker.position.member is not None and not broker.joining
