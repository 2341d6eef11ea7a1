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
from branchline.routing.shard import Shard

STEPS = 40
SEEDS = {"everyday": 12, "thorough": 60, "soak": 2_000, "filters": 12}[
    os.environ.get("HYPOTHESIS_PROFILE", "everyday")
]


def digest(seed: int) -> tuple[str, Counter[str]]:
    script = Script(seed)
    played = script.play(STEPS)
    text = repr((script.world.history, played.copies, sorted(played.counts.items()), played.failures))
    return hashlib.sha256(text.encode()).hexdigest(), played.counts


def reopen(runner: Runner, random: Random, seen: Counter[str]) -> None:
    """Take away some shards, and open them from an image that some shard of the job has made."""
    for index, shard in enumerate(runner.shards):
        image = random.choice(runner.shards).image() if random.random() < 0.3 else None
        if image is None:
            continue
        opened = Shard(runner.job, index, [shard.own_state()], image)
        assert opened.state() == shard.state()
        assert opened.describe() == shard.describe()
        assert list(map(len, places(opened))) == list(map(len, places(shard)))
        runner.shards[index] = opened
        seen["opened"] += 1
        seen["subscriptions"] += sum(len(broker.table) for broker in opened.brokers.values())
        seen["held"] += sum(len(broker.held) for broker in opened.brokers.values())
        seen["pending"] += sum(len(broker.home.pending.awaited()) for broker in opened.brokers.values())
        seen["leases"] += sum(broker.home.leases.due_ms() is not None for broker in opened.brokers.values())
        seen["nodes"] += sum(vocabulary.tree.nodes for vocabulary in opened.trees.vocabularies)
        seen["beside"] += sum(vocabulary._stored is not None for vocabulary in opened.trees.vocabularies)


def places(shard: Shard) -> list[Any]:
    return [each for broker in shard.brokers.values() for each in broker.forwarding.places]  # type: ignore[attr-defined]


def test_scripts_are_the_same_with_shards_opened_from_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """History, copies and counts are the same to the byte, and every kind of state was in some image."""
    seeds = range(SEEDS)
    alive = [digest(seed)[0] for seed in seeds]
    seen: Counter[str] = Counter()
    random = Random(1)
    commit = Runner._commit

    def commit_and_reopen(self: Runner, *arguments: Any) -> None:
        commit(self, *arguments)
        reopen(self, random, seen)

    monkeypatch.setattr(Runner, "_commit", commit_and_reopen)
    assert [digest(seed)[0] for seed in seeds] == alive
    assert all(seen.values()), seen
