"""Random interests of a few homes, and what their tables are compared with."""

from collections.abc import Iterable

from hypothesis import strategies as st
from strategies import constraints, expressions, paths

from branchline.routing.compiling import Compiled, compile_expression, compile_filter
from branchline.routing.control import Identity
from branchline.routing.event import Event
from branchline.routing.filters import Filter
from branchline.routing.methods.protocols import Interest
from branchline.routing.optimise.entries import Entry, in_order, plain

HOMES = ("dublin", "virginia")
NAMES = st.sampled_from(("a", "b"))
VALUES = st.sampled_from((0, 1, 2, 3, "a", "ab", "b"))
FEW = expressions(constraints(paths(NAMES, longest=1), VALUES), depth=2)
"""Of two attributes and few values, so that much is covered and much can be merged."""

compiled: st.SearchStrategy[Compiled] = st.deferred(
    lambda: FEW.map(compile_expression).filter(lambda made: isinstance(made, Compiled))  # type: ignore
)


@st.composite
def interests(draw: st.DrawFn, most: int = 8) -> list[Interest]:
    """Interests of other homes, and of subscribers here; some ask for the same."""
    made = draw(st.lists(st.tuples(st.sampled_from((*HOMES, None)), compiled), max_size=most))
    return [_interest(number, home, each) for number, (home, each) in enumerate(made)]


def _interest(number: int, home: str | None, asked: Compiled) -> Interest:
    identity = Identity(home or "here", f"s{number}", "one")
    return Interest(identity, asked, identity if home is None else home)


def matches(entries: Iterable[Entry], event: Event) -> bool:
    """Whether one of the entries matches, asked one by one."""
    return any(event.may_match(entry.cover) for entry in entries)


def filters_in(entries: Iterable[Entry]) -> list[Filter]:
    """All filters of the entries."""
    return [filter_ for entry in entries for filter_ in entry.cover]


def entries(most: int = 6) -> st.SearchStrategy[list[Entry]]:
    """Entries of one filter each, some of them twice."""
    return st.lists(compiled, max_size=most).map(
        lambda made: [plain(filter_) for each in made for filter_ in each.cover]
    )


def sql(*texts: str) -> list[Entry]:
    """The entries of filters as people write them."""
    made = [compile_filter("sql", text) for text in texts]
    return in_order(plain(filter_) for each in made if isinstance(each, Compiled) for filter_ in each.cover)
