"""Bugs planted in the overlay, each of which the history checker must find in what subscribers see.

Each is played for a few seeds around one that finds it: the same scripts are clean without it. Only the
verdict on the history counts; what the world itself calls a failure does not.
"""

import overlay_bugs
import pytest
from overlay_bugs import Plant

from branchline.ops.simulation.scripts import play
from branchline.routing.history import Kind

STEPS = 40
LOST, STUCK, DUPLICATED = Kind.LOST, Kind.STUCK, Kind.DUPLICATED

BUGS: list[tuple[Plant, Kind, int]] = [
    (overlay_bugs.tell_one_shard_only, LOST, 5),
    (overlay_bugs.expire_by_every_shards_clock, LOST, 82),
    (overlay_bugs.ack_too_early, LOST, 6),
    (overlay_bugs.wait_for_the_first_report_only, LOST, 38),
    (overlay_bugs.believe_the_last_report, STUCK, 711),
    (overlay_bugs.tell_pending_once, STUCK, 7),
    (overlay_bugs.obey_stragglers, LOST, 76),
    (overlay_bugs.report_no_repeats, STUCK, 7),
    (overlay_bugs.relay_no_reports, STUCK, 3),
    (overlay_bugs.complete_first, LOST, 164),
    (overlay_bugs.tell_a_newcomer_nothing, LOST, 12),
    (overlay_bugs.leave_the_scope_whole, DUPLICATED, 2),
    (overlay_bugs.number_bits_by_position, LOST, 171),
    (overlay_bugs.scope_of_the_found, LOST, 18),
    (overlay_bugs.drop_what_passes_a_joiner, LOST, 662),
    (overlay_bugs.join_at_once, LOST, 12),
    (overlay_bugs.drop_what_is_early, LOST, 12),
    (overlay_bugs.snapshot_without_reports, STUCK, 13),
    (overlay_bugs.snapshot_without_pending, STUCK, 13),
    (overlay_bugs.believe_dead_numbers, LOST, 50),
    (overlay_bugs.expire_renewed_leases, LOST, 28),
]
"""The bug, what is found, and a seed whose script finds it."""


def window(seed: int) -> range:
    return range(seed - 1, seed + 2)


@pytest.mark.parametrize(("plant", "kind", "seed"), BUGS, ids=[plant.__name__ for plant, _, _ in BUGS])
def test_the_checker_finds_it(plant: Plant, kind: Kind, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At least one of the scripts is not clean, in the way that is expected of the bug."""
    plant(monkeypatch)
    found = {finding.kind for each in window(seed) for finding in play(each, STEPS).verdict.findings()}
    assert kind in found, plant.__doc__


def test_without_a_bug_all_these_scripts_are_clean() -> None:
    """What finds the bugs is no mistake of the scripts."""
    for each in sorted({each for _, _, seed in BUGS for each in window(seed)}):
        played = play(each, STEPS)
        assert played.clean, played.describe()


def test_every_bug_that_is_written_down_is_planted() -> None:
    """None is forgotten in the list, and each says what it breaks."""
    written = {
        name
        for name, made in vars(overlay_bugs).items()
        if callable(made) and getattr(made, "__module__", None) == overlay_bugs.__name__
        if made.__doc__ and not isinstance(made, type)
    }
    assert written == {plant.__name__ for plant, _, _ in BUGS}
