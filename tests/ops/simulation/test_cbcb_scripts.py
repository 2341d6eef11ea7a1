"""Random scripts with CBCB: nothing is lost, misrouted or stuck, whatever goes wrong and whoever asks."""

import pytest

from branchline.ops.simulation.scripts import play_all
from branchline.routing.methods.naming import Methods

STEPS = 20


@pytest.mark.parametrize(
    "methods", [Methods("rematch", "table", "cbcb"), Methods("prefix", "tree", "cbcb+merging")], ids=str
)
def test_scripts_are_clean_with_random_refreshes(methods: Methods) -> None:
    """Batches that crash, letters that come twice, jobs that start anew, brokers that come and go."""
    wrong, counts = play_all(range(5), STEPS, methods=methods)
    assert not wrong, "\n\n".join(wrong)
    assert counts["refreshes"] and counts["crashes"] and counts["doubled"]
    for name in ("told_inflated", "told_deflated", "requests_answered", "acks_refreshed"):
        assert counts[name], name
