"""How tiers are divided: few, and each thing is filed again only a few times."""

import math
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from branchline.routing.tiers import TIER_RATIO, tiers_kept


@given(st.lists(st.integers(1, 50), min_size=1, max_size=200), st.integers(0, 1))
def test_tiers_stay_few_and_filing_stays_cheap(coming: list[int], at_least: int) -> None:
    """Whatever comes: each is much larger than the next, and what is filed grows with the logarithm."""
    tiers: list[int] = []
    filed = 0
    for size in coming:
        kept = tiers_kept(tiers, size, min(at_least, len(tiers)))
        made = size + sum(tiers[kept:])
        filed += made
        tiers = [*tiers[:kept], made]
        assert all(one > TIER_RATIO * other for one, other in pairwise(tiers[at_least:]))
        assert kept >= min(at_least, len(tiers) - 1)
    assert sum(tiers) == sum(coming)
    # What is filed again becomes part of something that has at least a quarter more than before.
    most = 1 + math.log(sum(coming), 1 + 1 / TIER_RATIO)
    assert filed <= sum(coming) * most
