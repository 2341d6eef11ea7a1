"""Random scripts with optimised tables: nothing is lost, misrouted or stuck, whatever goes wrong."""

import pytest

from branchline.ops.simulation.scripts import play_all
from branchline.routing.methods.naming import Methods

STEPS = 20
OPTIMISED = (
    ("covering",),
    ("merging",),
    ("imperfect(40)",),
    ("replace(40)",),
    ("covering", "merging", "imperfect(20)", "replace(20)"),
)


@pytest.mark.parametrize("optimise", OPTIMISED)
def test_scripts_are_clean_with_every_optimisation(optimise: tuple[str, ...]) -> None:
    """Batches that crash, jobs that start anew from their state, brokers that come and go."""
    wrong, counts = play_all(range(3), STEPS, methods=Methods("rematch", "table", optimise=optimise))
    assert not wrong, "\n\n".join(wrong)
    assert counts["afresh_matches"] and counts["crashes"]
