"""A shard that is opened from an image goes on as the one that lived, in every script.

Scripts bring subscriptions, replacements, ends, leases, topologies, brokers that join and leave, events that
are held, tree updates that are late or never come, crashes and restarts. They are played twice: as they are,
and with shards that are taken away between two batches and opened from the image of another shard of their
job.
"""

import hashlib
import os
from collections import Counter
from random import Random
from typing import Any

import pytest

from branchline.ops.simulation.runner import Runner
from branchline.ops.simulation.scripts import Script
from branchline.routing.methods.naming import Methods
from branchline.routing.prefix import stored_places
from branchline.routing.shard import Image, Shard, ShardState

STEPS = 40
SEEDS = {"everyday": 6, "thorough": 12, "soak": 2_000, "filters": 6}[
    os.environ.get("HYPOTHESIS_PROFILE", "everyday")
]


def digest(seed: int, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Counter[str]]:
    # Every other one with all that enters routed as batches, by an index that is in the image or is not.
    monkeypatch.setattr(stored_places, "INDEXED_FROM", 0 if seed % 4 == 1 else 500)
    script = Script(seed, methods=Methods(batches_from=0 if seed % 2 else None))
    played = script.play(STEPS)
    text = repr((script.world.history, played.copies, sorted(played.counts.items()), played.failures))
    return hashlib.sha256(text.encode()).hexdigest(), played.counts


class Logs:
    """What the shards of a job have remembered, as a state store keeps it, and an image of some point."""

    def __init__(self, random: Random, seen: Counter[str]) -> None:
        self._random, self._seen = random, seen
        self._shared: dict[int, list[ShardState]] = {}
        self._own: dict[int, list[ShardState]] = {}
        self._image: tuple[int, Image] | None = None

    def remember(self, index: int, changed: ShardState) -> None:
        shared, own = changed.divided()
        for state, log in ((shared, self._shared), (own, self._own)):
            log.setdefault(index, []).extend([state] if state else [])

    def reopen(self, runner: Runner) -> None:
        """Take away some shards, and open them from an image that some shard of the job once made."""
        shared = [self._shared.get(index, []) for index in range(len(runner.shards))]
        assert all(each == shared[0] for each in shared), "all shards share what they think they share"
        if self._random.random() < 0.2:
            image = self._random.choice(runner.shards).image()
            self._image = None if image is None else (len(shared[0]), image)
        for index, shard in enumerate(runner.shards):
            if self._image is not None and self._random.random() < 0.3:
                point, image = self._image
                since = shared[0][point:]
                opened = Shard(runner.job, index, [*since, *self._own.get(index, [])], image)
                assert opened.state() == shard.state()
                assert opened.describe() == shard.describe()
                assert list(map(len, places(opened))) == list(map(len, places(shard)))
                runner.shards[index] = opened
                self._note(opened, len(since))

    def _note(self, opened: Shard, since: int) -> None:
        brokers, vocabularies = opened.brokers.values(), opened.trees.vocabularies
        self._seen["opened"] += 1
        self._seen["since"] += since
        self._seen["subscriptions"] += sum(len(broker.table) for broker in brokers)
        self._seen["held"] += sum(len(broker.held) for broker in brokers)
        self._seen["pending"] += sum(len(broker.home.pending.awaited()) for broker in brokers)
        self._seen["leases"] += sum(broker.home.leases.due_ms() is not None for broker in brokers)
        self._seen["nodes"] += sum(vocabulary.tree.nodes for vocabulary in vocabularies)
        self._seen["beside"] += sum(vocabulary._stored is not None for vocabulary in vocabularies)


def places(shard: Shard) -> list[Any]:
    return [each for broker in shard.brokers.values() for each in broker.forwarding.places]  # type: ignore[attr-defined]


def test_scripts_are_the_same_with_shards_opened_from_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """History, copies and counts are the same to the byte, and every kind of state was in some image."""
    seeds = range(SEEDS)
    alive = [digest(seed, monkeypatch)[0] for seed in seeds]
    seen: Counter[str] = Counter()
    random = Random(1)
    logs: dict[Runner, Logs] = {}
    commit = Runner._commit

    def commit_and_reopen(self: Runner, batch: Any, results: list[Any]) -> None:
        commit(self, batch, results)
        mine = logs.setdefault(self, Logs(random, seen))
        for result in results:
            if result.outputs.changed is not None:
                mine.remember(result.shard, result.outputs.changed)
        mine.reopen(self)

    monkeypatch.setattr(Runner, "_commit", commit_and_reopen)
    assert [digest(seed, monkeypatch)[0] for seed in seeds] == alive
    assert all(seen.values()), seen
