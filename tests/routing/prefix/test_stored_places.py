"""Places and vocabularies that are stored and opened between any two steps do all that they should."""

import ast
from typing import Any

import pytest
from prefix_runs import Run
from prefix_scripts import Step, seeded

from branchline.routing.prefix import stored_places
from branchline.routing.prefix.forwarding import Forwarder
from branchline.routing.prefix.trees import Trees

SEEDS = 30


class Reopened(Run):
    """A script whose brokers are now and then opened from what they have stored."""

    def step(self, step: Step) -> None:
        super().step(step)
        for place, broker in enumerate(self.brokers):
            if (step.choice >> place) % 3 == 0:
                broker.forwarder = opened(broker.forwarder, broker.height, self.script.keep)
                self.seen["opened"] += 1
                self.seen["filters"] += sum(map(len, broker.forwarder.places))
                self._check_places(broker)


def opened(forwarder: Forwarder, height: int | None, keep: int) -> Forwarder:
    vocabularies = forwarder.trees.vocabularies
    trees = Trees(len(vocabularies), height, keep, list(map(memoryview, forwarder.trees.stored())))
    again = Forwarder(trees, list(map(memoryview, forwarder.stored())))
    for one, other in zip(vocabularies, trees.vocabularies, strict=True):
        assert (one.version, one.digest, one.clocks()) == (other.version, other.digest, other.clocks())
        assert one.told() == other.told()
    for places, stored in zip(forwarder.places, again.places, strict=True):
        assert len(places) == len(stored)
    return again


def test_scripts_hold_with_places_opened_from_what_was_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that is checked of a script is true of one whose brokers are opened again and again."""

    def encode(owner: Any) -> bytes:
        return repr(owner).encode()

    def decode(data: memoryview) -> Any:
        return ast.literal_eval(bytes(data).decode())

    # The owners of scripts are neither homes nor subscriptions.
    monkeypatch.setattr(stored_places, "_encode_owner", encode)
    monkeypatch.setattr(stored_places, "_decode_owner", decode)
    runs = [Reopened(seeded(seed)).play() for seed in range(SEEDS)]
    for name in ("opened", "filters", "numbered", "APPLIED", "restarts", "afresh", "certain", "doubtful"):
        assert sum(run.seen[name] for run in runs) > 2, name
