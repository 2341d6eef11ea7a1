"""Random filters of few values, and random scripts of sources that come and go with them."""

from random import Random

from filter_world import dependent, normal
from hypothesis import strategies as st

from branchline.routing.dimensions import Axis
from branchline.routing.filters import Filter, Range
from branchline.routing.intervals import Interval, after, before

SOURCES = ("north", "south", "here")
filters: st.SearchStrategy[Filter] = normal(dependent)
"""Of all kinds: numbers, texts read in all ways, words, presence."""


def box(random: Random, dimensions: int = 2, values: int = 6) -> Filter:
    """Ranges between few whole numbers, so that many cover each other."""
    made = []
    for name in "xyz"[:dimensions]:
        low, high = sorted((random.randrange(values), random.randrange(values)))
        made.append(Range((name,), Axis.NUMBER, Interval(before(low), after(high))))
    return tuple(made)


boxes: st.SearchStrategy[Filter] = st.builds(
    lambda seed, dimensions: box(Random(seed), dimensions), st.integers(0, 10**6), st.integers(1, 2)
)
some_filters = boxes | filters
steps = st.lists(
    st.tuples(st.booleans(), st.integers(0, 7), st.sampled_from(SOURCES)), min_size=1, max_size=30
)
"""Whether to subscribe or to unsubscribe, which filter of a pool, who."""
pools = st.lists(some_filters, min_size=8, max_size=8)
