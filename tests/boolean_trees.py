"""Random trees of few predicates, so that much of them is alike."""

from hypothesis import strategies as st

from branchline.routing.boolean.trees import Node, Predicate, conjunction, disjunction
from branchline.routing.dimensions import Axis
from branchline.routing.filters import Range
from branchline.routing.intervals import point


def predicate(number: int) -> Predicate:
    """One of many predicates."""
    return Range(("x",), Axis.NUMBER, point(number))


def nodes(depth: int = 3) -> st.SearchStrategy[Node]:
    """Trees of six predicates."""
    made: st.SearchStrategy[Node] = st.integers(0, 5).map(predicate)
    for _ in range(depth):
        several = st.lists(made, min_size=1, max_size=3)
        made = made | several.map(conjunction) | several.map(disjunction)
    return made
