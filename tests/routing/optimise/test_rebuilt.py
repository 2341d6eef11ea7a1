"""A shard that was rebuilt from what it remembers has the optimised tables of one that never stopped."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overlay_hands import Plain

from branchline.ops.simulation.drawing import random_event, random_filter
from branchline.routing.control import Ended, Identity, Number, Subscribed
from branchline.routing.methods.naming import Methods
from branchline.routing.overlay.dividing import Arrival
from branchline.routing.overlay.letters import Letter
from branchline.routing.overlay.topology import Link, founded
from branchline.routing.shard import Control, EventBatch, Job, Outputs, Shard

NOW_MS = 1_700_000_000_000
TOPOLOGY = founded(["b0", "b1", "b2"], [Link("b0", "b1", 1), Link("b0", "b2", 1)])
OPTIMISED = (
    ("covering",),
    ("merging",),
    ("imperfect(40)",),
    ("replace(40)",),
    ("covering", "merging", "imperfect(20)", "replace(20)"),
)


def letter(random: Random, number: int) -> Letter:
    """What a neighbour tells of its own subscribers."""
    home = random.choice(("b1", "b2"))
    identity = Identity(home, random.choice(("ann", "bob", "cem")), random.choice(("one", "two")))
    if random.random() < 0.25:
        return Letter("b0", home, Ended(identity, Number(1, number), NOW_MS))
    return Letter("b0", home, Subscribed(identity, Number(1, number), "sql", random_filter(random)))


def handled(shard: Shard, control: list[Control], random: Random) -> Outputs:
    arrivals = [Arrival(Plain(random_event(random))) for _ in range(6)]
    return shard.handle(NOW_MS, (), control, EventBatch(["b0"] * len(arrivals), arrivals))


def said(outputs: Outputs) -> object:
    copies = outputs.forwarded
    return copies, copies.encoded(), outputs.counts, outputs.letters, outputs.acks


@pytest.mark.parametrize("optimise", OPTIMISED)
@given(seed=st.integers(0, 10_000), steps=st.integers(1, 6))
def test_a_rebuilt_shard_says_what_a_warm_one_does(optimise: tuple[str, ...], seed: int, steps: int) -> None:
    """Copies, to the byte, and what is counted, whatever came and went before."""
    job = Job(("b0",), TOPOLOGY, methods=Methods("rematch", "table", optimise=optimise))
    random, warm = Random(seed), Shard(job, 0)
    for step in range(steps):
        letters: list[Control] = [letter(random, 10 * step + each) for each in range(random.randint(0, 4))]
        cold = Shard(job, 0, [warm.state()])
        drawn = random.random()
        one, other = (handled(shard, letters, Random(drawn)) for shard in (warm, cold))
        assert said(one) == said(other)
