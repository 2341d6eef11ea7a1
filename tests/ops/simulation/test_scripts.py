"""Random scripts: nothing is lost, misrouted or stuck whatever goes wrong, and an event is matched once.

`HYPOTHESIS_PROFILE=thorough` (as in `make test`) plays more of them, `soak` many more.
"""

import hashlib
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from random import Random

import pytest
from prefix_bugs import walk_unknown_versions

from branchline.ops.simulation.drawing import random_setting
from branchline.ops.simulation.scripts import Script, play, play_all
from branchline.ops.simulation.setting import Setting
from branchline.routing.methods.naming import Methods

STEPS = 40
FEW_STEPS = 20
"""Of the many scripts that are played for faults alone; `branchline simulate` plays long ones."""
CHUNK = 20
SEEDS = {"everyday": 60, "thorough": 500, "soak": 20_000, "filters": 2_000}[
    os.environ.get("HYPOTHESIS_PROFILE", "everyday")
]


# Faults


def played_in_two_processes(seeds: range) -> tuple[list[str], Counter[str]]:
    """The scripts of all seeds: what went wrong, and how much of everything happened."""
    chunks = [seeds[start : start + CHUNK] for start in range(0, len(seeds), CHUNK)]
    wrong: list[str] = []
    counts: Counter[str] = Counter()
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for some, counted in pool.map(partial(play_all, steps=FEW_STEPS), chunks):
            wrong += some
            counts.update(counted)
    return wrong, counts


HAPPENED = (
    "crashes",
    "restarts",
    "lost_and_resent",
    "doubled",
    "updates_lost",
    "updates_gap",
    "updates_incomplete",
    "older_walks",
    "afresh_matches",
    "topologies",
    "joins",
    "leaves",
    "held",
    "acks_in-force",
    "acks_replaced",
    "acks_renewed",
    "acks_expired",
    "acks_ended",
    "acks_refused",
)
"""What must have happened, or the scripts have shown nothing about it."""


def test_scripts_are_clean_where_all_that_enters_is_routed_as_batches() -> None:
    """The same with every batch, however small, matched through the index and not along the tree."""
    wrong, counts = play_all(range(max(10, SEEDS // 40)), FEW_STEPS, methods=Methods(batches_from=0))
    assert not wrong, "\n\n".join(wrong[:5])
    assert counts["content_matches"] and counts["afresh_matches"]


@pytest.mark.timeout(3_600)
def test_scripts_are_clean_whatever_goes_wrong() -> None:
    """0 lost, 0 misrouted, 0 repeated without a mark, in order, none stuck; and the faults did happen."""
    wrong, counts = played_in_two_processes(range(SEEDS))
    again = "from branchline.ops.simulation.scripts import play; print(play(SEED, 20).describe())"
    assert not wrong, "\n\n".join([f"to play one again: python -c '{again}'", *wrong[:5]])
    least = max(5, SEEDS // 20)
    assert {name: counts[name] for name in HAPPENED if counts[name] < least} == {}


def test_events_walk_older_versions_and_without_them_they_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """At least 100 walk one that is not the newest; if only that is kept, matching afresh saves them."""
    seeds = range(10)
    _, counts = play_all(seeds, STEPS)
    assert counts["older_walks"] >= 100
    forgetful = Methods(kept_versions=1)
    wrong, counts = play_all(seeds, STEPS, methods=forgetful)
    assert (wrong, counts["older_walks"]) == ([], 0)
    walk_unknown_versions(monkeypatch)
    lost = [
        played.seed
        for played in (play(seed, STEPS, methods=forgetful) for seed in seeds)
        if played.verdict.lost
    ]
    assert lost


# Determinism


def digest(seed: int) -> str:
    """Of all that a script has done."""
    script = Script(seed)
    played = script.play(STEPS)
    text = repr((script.world.history, played.copies, sorted(played.counts.items()), played.failures))
    return hashlib.sha256(text.encode()).hexdigest()


def test_a_seed_says_everything() -> None:
    """Played again, also by a process that hashes otherwise, a script is the same to the last byte."""
    seeds = range(4)
    here = [digest(seed) for seed in seeds]
    assert [digest(seed) for seed in seeds] == here
    assert len(set(here)) == len(here)
    code = f"import test_scripts\nfor seed in {list(seeds)}: print(test_scripts.digest(seed))"
    paths = os.pathsep.join((str(Path(__file__).parent), os.environ.get("PYTHONPATH", ""), *sys.path))
    for hash_seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": paths}
        run = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
        )
        assert run.stdout.split() == here


# Match once


def in_one_job(seed: int, forwarding: str = "prefix", *, noise: bool = False) -> Setting:
    """The seed's world, with all brokers in one job, which hears of every update and forgets no version."""
    drawn = random_setting(Random(f"script {seed}"))
    members = tuple(member._replace(cluster="main") for member in drawn.topology.members)
    return replace(
        drawn,
        topology=replace(drawn.topology, members=members),
        jobs=(tuple(member.name for member in members),),
        methods=replace(drawn.methods, forwarding=forwarding, kept_versions=1_000),
        faults=replace(drawn.faults, updates_lost=0.0, crashes=0.0),
        noise=noise,
    )


@cache
def matched_once() -> list[int]:
    """Seeds of which no event is on its way when the first tree comes, so that all versions are kept."""
    return [
        seed
        for seed in range(16)
        if not play(seed, STEPS, setting=in_one_job(seed), steady=True).counts["afresh_matches"]
    ]


def test_the_content_of_an_event_matters_only_where_it_enters() -> None:
    """With noise for content between brokers the very same copies are sent, header bytes and all."""
    seeds = matched_once()
    assert len(seeds) >= 10
    copies = older = refuted = 0
    for seed in seeds:
        plain = play(seed, STEPS, setting=in_one_job(seed), steady=True)
        noisy = play(seed, STEPS, setting=in_one_job(seed, noise=True), steady=True)
        assert plain.clean
        assert plain.counts["afresh_matches"] == noisy.counts["afresh_matches"] == 0
        assert plain.counts["content_matches"] == plain.counts["published"]
        assert noisy.copies == plain.copies
        copies += len(plain.copies)
        older += plain.counts["older_walks"]
        refuted += not noisy.verdict.clean
    assert copies > 300
    assert older > 50
    assert refuted, "at the last broker the noise is seen: it is really there"


def test_rematching_matches_at_every_broker() -> None:
    """The same scripts: every visit of an event that looks for anybody is a match."""
    more = 0
    for seed in matched_once():
        counts = play(seed, STEPS, setting=in_one_job(seed, "rematch"), steady=True).counts
        matches = counts["content_matches"] + counts["afresh_matches"]
        # Where a copy arrives when all who wanted it have ended, nobody is looked for.
        assert counts["content_matches"] == counts["published"] <= matches <= counts["visits"]
        assert counts["visits"] - matches <= counts["visits"] / 20
        more += matches > counts["content_matches"]
    assert more >= 6
