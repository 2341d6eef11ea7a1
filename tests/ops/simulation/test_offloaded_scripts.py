"""Random scripts in which subscribers place filters for brokers: rightly, wrongly, late or not at all.

And rules of it taken out, each of which the history checker must miss.
"""

import offloading_bugs
import pytest
from offloading_bugs import Plant

from branchline.ops.simulation.scripts import play, play_all
from branchline.routing.history import Kind
from branchline.routing.methods.counts import COUNTS
from branchline.routing.methods.naming import Methods

STEPS = 30
RTO = Methods("rematch", "table", "covering+rto(3)")


@pytest.mark.parametrize(
    "methods",
    [
        Methods("rematch", "table", "covering+rto"),
        Methods("prefix", "tree", "covering+rto(1)+merging"),
        Methods("rematch", "access", "covering+rto(2)+advertised(30)"),
    ],
    ids=lambda each: each.dissemination,
)
def test_scripts_are_clean_whatever_volunteers_say(methods: Methods) -> None:
    """Nothing is lost, misrouted or stuck, though batches crash, jobs start anew and links change."""
    wrong, counts = play_all(range(7), STEPS, methods=methods)
    assert not wrong, "\n\n".join(wrong)
    assert counts["crashes"] and counts["doubled"] and counts["topologies"] and counts["tasks_given"]


def test_every_count_of_offloading_moves() -> None:
    """Also those of what goes wrong: time-outs, false claims, and what the broker has to do by itself."""
    wrong, counts = play_all(range(243, 250), 40, methods=RTO)
    assert not wrong, "\n\n".join(wrong)
    offloaded = [name for name, (method, _) in COUNTS.items() if method == "rto"]
    assert [name for name in (*offloaded, "table_placed", "covering_tests") if not counts[name]] == []


BUGS: list[tuple[Plant, int]] = [
    (offloading_bugs.believe_claims, 243),
    (offloading_bugs.answer_before_it_is_placed, 18),
    (offloading_bugs.mark_before_it_is_placed, 4),
    (offloading_bugs.take_back_at_once, 56),
    (offloading_bugs.begin_before_it_is_placed, 103),
]
"""The bug, and a seed whose script finds it."""


@pytest.mark.parametrize(("plant", "seed"), BUGS, ids=[plant.__name__ for plant, _ in BUGS])
def test_the_checker_finds_a_planted_bug(plant: Plant, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody misses an event; without the bug the same script is clean."""
    assert play(seed, 40, methods=RTO).clean
    plant(monkeypatch)
    found = {finding.kind for finding in play(seed, 40, methods=RTO).verdict.findings()}
    assert Kind.LOST in found, plant.__doc__


def test_every_planted_bug_is_looked_for() -> None:
    """None is left out."""
    assert [plant for plant, _ in BUGS] == offloading_bugs.BUGS
