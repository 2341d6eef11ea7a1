"""Predicates of interfaces for tests: filters with owners, and events with arrays."""

from hypothesis import strategies as st
from indexed import PATHS, filters, scalars

from branchline.routing.compiling import Compiled
from branchline.routing.control import Identity
from branchline.routing.expression import Anything
from branchline.routing.filters import Filter
from branchline.routing.methods.protocols import Interest
from branchline.routing.prefix.forwarding import Found
from branchline.routing.values import JsonValue

OWNERS = ("a", "b", "c", "d", "e")

owners = st.sampled_from(OWNERS)
covers = st.lists(filters, min_size=1, max_size=3, unique=True).map(tuple)
arrays: st.SearchStrategy[JsonValue] = st.recursive(
    scalars | st.fixed_dictionaries({}, optional={"d": scalars}),
    lambda smaller: st.lists(smaller, max_size=3),
    max_leaves=5,
)
events_with_arrays: st.SearchStrategy[dict[str, JsonValue]] = st.fixed_dictionaries(
    {}, optional={path[0]: arrays for path in PATHS}
)


def interest(owner: str, *cover: Filter) -> Interest:
    """An owner's interest in what the cover holds for."""
    compiled = Compiled(Anything(), cover, None, (), frozenset())
    return Interest(Identity(owner, "ann", "one"), compiled, owner)


class Some:
    """Some owners, and so many of them are enough."""

    def __init__(self, owners: frozenset[str], enough: int | None = None) -> None:
        self._owners = owners
        self._enough = enough

    def __contains__(self, owner: object) -> bool:
        return owner in self._owners

    def enough(self, found: Found) -> bool:
        return self._enough is not None and len(found.certain | found.doubtful) >= self._enough
