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
FF = Methods("rematch", "table", "covering+ff(3)")


@pytest.mark.parametrize(
    "methods",
    [
        Methods("rematch", "table", "covering+rto"),
        Methods("prefix", "tree", "covering+rto(1)+merging"),
        Methods("rematch", "access", "covering+rto(2)+advertised(30)"),
        Methods("rematch", "table", "covering+ff(4)"),
        Methods("prefix", "tree", "covering+ff+merging"),
        Methods("rematch", "access", "covering+ff(2)+advertised(30)"),
    ],
    ids=lambda each: each.dissemination,
)
def test_scripts_are_clean_whatever_volunteers_say(methods: Methods) -> None:
    """Nothing is lost, misrouted or stuck, though batches crash, jobs start anew and links change."""
    wrong, counts = play_all(range(7), STEPS, methods=methods)
    assert not wrong, "\n\n".join(wrong)
    assert (
        counts["crashes"]
        and counts["doubled"]
        and counts["topologies"]
        and counts["tasks_given"] + counts["sets_given"]
    )


def test_every_count_of_offloading_moves() -> None:
    """Also those of what goes wrong: time-outs, false claims, and what the broker has to do by itself."""
    for methods, method, first in ((RTO, "rto", 243), (FF, "ff", 48)):
        wrong, counts = play_all(range(first, first + 7), 40, methods=methods)
        assert not wrong, "\n\n".join(wrong)
        own = [name for name, (by, _) in COUNTS.items() if by == method]
        moving = (*own, "claims_refuted", "table_placed", "covering_tests")
        assert [name for name in moving if not counts[name]] == []


BUGS: list[tuple[Plant, Methods, int]] = [
    (offloading_bugs.believe_claims, RTO, 243),
    (offloading_bugs.answer_before_it_is_placed, RTO, 18),
    (offloading_bugs.mark_before_it_is_placed, RTO, 4),
    (offloading_bugs.take_back_at_once, RTO, 56),
    (offloading_bugs.begin_before_it_is_placed, RTO, 103),
    (offloading_bugs.believe_claims_of_a_set, FF, 52),
]
"""The bug, and a seed whose script finds it."""


@pytest.mark.parametrize(("plant", "methods", "seed"), BUGS, ids=[plant.__name__ for plant, *_ in BUGS])
def test_the_checker_finds_a_planted_bug(
    plant: Plant, methods: Methods, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody misses an event; without the bug the same script is clean."""
    assert play(seed, 40, methods=methods).clean
    plant(monkeypatch)
    found = {finding.kind for finding in play(seed, 40, methods=methods).verdict.findings()}
    assert Kind.LOST in found, plant.__doc__


def test_every_planted_bug_is_looked_for() -> None:
    """None is left out."""
    assert [plant for plant, *_ in BUGS] == offloading_bugs.BUGS
