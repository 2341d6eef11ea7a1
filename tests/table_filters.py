"""Random interests of a few homes, and what their tables are compared with."""

from collections.abc import Iterable, Sequence

from hypothesis import strategies as st
from strategies import constraints, expressions, paths

from branchline.routing.compiling import Compiled, compile_expression
from branchline.routing.control import Identity
from branchline.routing.event import Event
from branchline.routing.methods.protocols import Interest
from branchline.routing.optimise.entries import Entry

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


def filters_in(entries: Sequence[Entry]) -> list[object]:
    """The filters of entries that have one each."""
    return [filter_ for entry in entries for filter_ in entry.cover]
