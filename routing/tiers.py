"""How things that come and go are divided into a few tiers that are made anew seldom.

A *tier* is a table that is not changed once it is made. What comes becomes a tier, together with those tiers
that are not much larger, so each has several times as much as the next. There are as many as the logarithm of
what there is, and each thing is filed again only as often as what it lies in has grown severalfold.
"""

from collections.abc import Sequence

TIER_RATIO = 4
"""A tier has more than so many times as much as the next."""


def tiers_kept(sizes: Sequence[int], coming: int, at_least: int = 0) -> int:
    """Of tiers of these sizes, the largest first, how many stay beside one of all others and what comes."""
    kept = len(sizes)
    while kept > at_least and sizes[kept - 1] <= TIER_RATIO * coming:
        kept -= 1
        coming += sizes[kept]
    return kept
